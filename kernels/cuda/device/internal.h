/* internal: what the files of the CUDA device share: device.c (devices and errors), memory.c, import.c, stream.c.
 *
 * Thread: see gpu.h. Owner: whoever opened. */
#ifndef CURED_KERNELS_CUDA_DEVICE_INTERNAL_H
#define CURED_KERNELS_CUDA_DEVICE_INTERNAL_H

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/pack/linger.h"
#include "kernels/cuda/plan/fold.h"

typedef struct cr_cuda_import cr_cuda_import;

struct cr_gpu {
    cr_gpu_info info;
    bool lost;
    cr_linger linger;               /* see linger */
    struct cr_ladder_space *ladder; /* NULL until a kernel is asked for by name */
    cr_cuda_import *imports;        /* memory of other processes that is open */
};

/* trace.c */
bool cr_cuda_traced(void);
uint64_t cr_cuda_trace_begin(const char *name);
void cr_cuda_trace_end(uint64_t trace_id);

/* Makes an error of a cudaError_t; CR_OK for success. A sticky error marks the device as lost. what: "copy", "fold", … */
cr_status cr_cuda_error(cr_gpu *gpu, int failure, const char *what, cr_error *error);
/* Binds the device to this thread. Refuses when it is lost. */
cr_status cr_cuda_bind(cr_gpu *gpu, cr_error *error);

cr_status cr_cuda_host_alloc(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error);
void cr_cuda_host_free(cr_gpu *gpu, void *memory);
cr_status cr_cuda_pin(cr_gpu *gpu, void *memory, size_t bytes, bool read_only, cr_error *error);
void cr_cuda_unpin(cr_gpu *gpu, void *memory);
cr_status cr_cuda_device_alloc(cr_gpu *gpu, size_t bytes, void **device, cr_error *error);
void cr_cuda_device_free(cr_gpu *gpu, void *device);
cr_status cr_cuda_import_memory(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, bool writable,
                                void **device, cr_error *error);
void cr_cuda_release(cr_gpu *gpu, void *device);
void cr_cuda_release_all(cr_gpu *gpu);
cr_status cr_cuda_inspect(int descriptor, cr_error *error);
cr_status cr_cuda_event_open(cr_gpu *gpu, const void *handle, void **event, cr_error *error);
cr_status cr_cuda_event_look(cr_gpu *gpu, void *event, bool *fired, cr_error *error);
void cr_cuda_event_close(cr_gpu *gpu, void *event);

cr_status cr_cuda_stream_open(cr_gpu *gpu, uint32_t results, cr_gpu_stream **stream, cr_error *error);
void cr_cuda_stream_close(cr_gpu_stream *stream);
cr_status cr_cuda_copy(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error);
cr_status cr_cuda_copies(cr_gpu_stream *stream, const cr_gpu_copy *copies, uint32_t count, cr_error *error);
cr_status cr_cuda_fold(cr_gpu_stream *stream, const cr_gpu_fold *folds, uint32_t count, uint32_t first,
                       cr_error *error);
cr_status cr_cuda_axis(cr_gpu_stream *stream, const cr_gpu_axis *axis, cr_error *error);
cr_status cr_cuda_axis_result(cr_gpu_stream *stream, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                              cr_error *error);
void cr_cuda_axis_trim(cr_gpu_stream *stream, size_t most);
cr_status cr_cuda_fetch(cr_gpu_stream *stream, void *host, const void *device, size_t width, size_t pitch, size_t count,
                        cr_error *error);
cr_status cr_cuda_put(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error);
cr_status cr_cuda_poll(cr_gpu_stream *stream, bool *idle, cr_error *error);
const cr_partial *cr_cuda_result(const cr_gpu_stream *stream, uint32_t number);
cr_status cr_cuda_pack(cr_gpu_stream *stream, const cr_gpu_fold *folds, uint32_t count, uint32_t first, uint32_t *taken,
                       cr_error *error);
void cr_cuda_linger(cr_gpu *gpu, uint64_t ns);
void cr_cuda_linger_end(cr_gpu *gpu);
void cr_cuda_pack_result(const cr_gpu_stream *stream, uint32_t number, cr_partial *p);
cr_status cr_cuda_kernel(cr_gpu_stream *stream, const char *name, cr_op op, const cr_gpu_fold *input, cr_value *value,
                         bool *exact, cr_error *error);

#endif
