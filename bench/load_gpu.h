/* load_gpu: what the rows of device memory share: an array in this process's device memory, a daemon of the row's own, and a region of it there.
 *
 * Thread: main. Owner: the row. */
#ifndef CURED_BENCH_LOAD_GPU_H
#define CURED_BENCH_LOAD_GPU_H

#include "bench/load.h"
#include "cured/cured.h"
#include "kernels/cuda/gpu.h"

typedef struct load_gpu {
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    void *memory; /* floats */
    uint64_t bytes;
    cured_conn *conn;
    cured_region *region;
} load_gpu;

/* Says so; false. */
bool load_gpu_fail(const char *what, const char *why);
/* Looks until what is enqueued is done. */
cr_status load_gpu_await(load_gpu *g, cr_error *error);
/* Measures one row against a daemon with that spin_us (NULL: as it comes), and prints it; context begins with a load_gpu, of which bytes is
 * set. warm: once, before anything is measured. False: something failed. *ran: whether there was something to measure. */
bool load_gpu_row(const load_options *options, FILE *json, load_row *row, const char *spin_us, load_measure measure,
                  bool (*warm)(void *context), void *context, bool *ran);

#endif
