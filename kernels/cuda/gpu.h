/* gpu: what the lane of a GPU asks of its device, as one table of functions. The CUDA kernels fill it (cr_cuda); a build
 * without CUDA has none; tests fill it with a device made of host memory whose faults they choose. Plain C: no CUDA type
 * escapes.
 *
 * A stream is an ordered line of copies and folds. Everything asked of it is enqueued and returns at once; what a fold
 * found is a cr_partial in host memory that the device writes, to be read after poll has said that the stream is idle.
 * The answers are the CPU's bit for bit: a device gives partials of whole arrays, and finished values along an axis, where a partial
 * for each would be more than the input.
 *
 * Errors: a status of this call alone, unless `lost` is true afterwards: then the device is gone (a sticky CUDA error), every
 * stream of it too, and only close may still be called; host memory stays readable.
 * Thread: one thread at a time for a device and all its streams, except count, and except host memory, which anyone may touch
 * while no copy of it is enqueued. Owner: whoever opened. */
#ifndef CURED_KERNELS_CUDA_GPU_H
#define CURED_KERNELS_CUDA_GPU_H

#include "kernels/core/axis.h"

typedef struct cr_gpu cr_gpu;
typedef struct cr_gpu_stream cr_gpu_stream;

typedef struct cr_gpu_info {
    char name[64];
    char uuid[48]; /* "GPU-" and 32 hexadecimal digits in the driver's grouping */
    uint32_t ordinal, multiprocessors, major, minor;
    uint64_t memory_bytes, l2_bytes;
} cr_gpu_info;

/* One fold: n elements at data, which is a device address or pinned host memory, at any byte alignment. index: the input's
 * index of data[0]. wants: of the extrema, those that are asked for (CR_WANTS_...; 0: all); without its index an extremum's index
 * only says that there is one, likewise the first NaN's. */
typedef struct cr_gpu_fold {
    cr_dtype dtype;
    uint32_t families;
    const void *data;
    uint64_t n, index;
    uint32_t wants;
} cr_gpu_fold;

/* A reduction along an axis of whole blocks: shape.outer of them at data, where a fold's could be. first: the number of the first
 * output, for sentences. to: where in the device's memory the answers of each op go, at a multiple of their size; NULL: to host memory
 * of the stream's. ops and to must live until the answers are there. */
enum { CR_GPU_AXIS_OPS = 32 };
typedef struct cr_gpu_axis {
    cr_dtype dtype;
    cr_shape shape;
    const void *data, *second; /* second: of ops of two arrays, which whole arrays alone have; NULL: there is none */
    uint64_t first;
    const cr_op *ops;
    uint32_t op_count;
    cr_finish_opts finish;
    void *const *to;
} cr_gpu_axis;
/* Bytes of pinned host memory, and their place in the device's. */
typedef struct cr_gpu_copy {
    void *device;
    const void *host;
    size_t bytes;
} cr_gpu_copy;
enum { CR_GPU_COPIES = 64 }; /* at once */

enum {
    CR_GPU_PACK_BYTES = 128 * 1024,                        /* of a fold that may be one of a pack, */
    CR_GPU_PACK_FAMILIES = CR_FAM_SINGLE & ~CR_FAM_DIGEST, /* and its families */
    CR_GPU_PACK_FOLDS = 1024,                              /* in a stream's packs at a time */
};

typedef struct cr_gpu_api {
    const char *name; /* "cuda" */
    /* For tools that look on, such as Nsight Systems; from any thread, with a device or without. Whether one does: where not, nobody need
     * make a name. What begins ends once, perhaps on another thread; trace_begin may give 0: then nothing has begun. */
    bool (*traced)(void);
    uint64_t (*trace_begin)(const char *name);
    void (*trace_end)(uint64_t trace_id);
    /* Devices that can be used. 0: why holds the reason (no driver, driver too old, no device). */
    uint32_t (*count)(cr_error *why);
    /* Makes the device's context and keeps it. UNAVAILABLE when it cannot be had. */
    cr_status (*open)(uint32_t ordinal, cr_gpu **gpu, cr_error *error);
    void (*close)(cr_gpu *gpu);
    const cr_gpu_info *(*info)(const cr_gpu *gpu);
    bool (*lost)(const cr_gpu *gpu);

    /* Pinned host memory; RESOURCE_EXHAUSTED when there is none. */
    cr_status (*host_alloc)(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error);
    void (*host_free)(cr_gpu *gpu, void *memory);
    /* Pins memory that exists (whole pages), so that copies from it run at full speed. */
    cr_status (*pin)(cr_gpu *gpu, void *memory, size_t bytes, bool read_only, cr_error *error);
    void (*unpin)(cr_gpu *gpu, void *memory);
    cr_status (*device_alloc)(cr_gpu *gpu, size_t bytes, void **device, cr_error *error);
    void (*device_free)(cr_gpu *gpu, void *device);

    /* results: how many folds may be enqueued between two idle moments. */
    cr_status (*stream_open)(cr_gpu *gpu, uint32_t results, cr_gpu_stream **stream, cr_error *error);
    void (*stream_close)(cr_gpu_stream *stream);
    cr_status (*copy)(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error);
    /* Enqueues at most CR_GPU_COPIES of them, in no order among themselves: between two calls of copy the bus is idle for some microseconds. */
    cr_status (*copies)(cr_gpu_stream *stream, const cr_gpu_copy *copies, uint32_t count, cr_error *error);
    /* Whether the device folds all of these families. */
    bool (*fold_takes)(cr_dtype dtype, uint32_t families);
    /* Enqueues count folds, each with a result of its own: result number `first`, first + 1, … and a launch or more. */
    cr_status (*fold)(cr_gpu_stream *stream, const cr_gpu_fold *folds, uint32_t count, uint32_t first, cr_error *error);
    /* Whether the device answers every op of axis (whose data is not looked at). */
    bool (*axis_takes)(const cr_gpu_axis *axis);
    /* Enqueues one reduction along an axis; one at a time between two idle moments. */
    cr_status (*axis)(cr_gpu_stream *stream, const cr_gpu_axis *axis, cr_error *error);
    /* Of one that is done: out[k]: outer·inner answers of ops[k], each in cr_axis_dtype, valid until the next (with `to` they are there,
     * and out is left alone); or OUT_OF_RANGE, which names the lowest output whose integer does not fit; *failed is its number among
     * these. */
    cr_status (*axis_result)(cr_gpu_stream *stream, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                             cr_error *error);
    /* On an idle stream: what it keeps for answers along an axis is given back if it is more than most bytes. */
    void (*axis_trim)(cr_gpu_stream *stream, size_t most);
    /* Enqueues a copy of count pieces of width bytes, pitch bytes apart in what the device can read, to pinned host memory, where they
     * lie side by side. */
    cr_status (*fetch)(cr_gpu_stream *stream, void *host, const void *device, size_t width, size_t pitch, size_t count,
                       cr_error *error);
    /* Enqueues a copy of host memory that is not pinned, and may be changed as soon as this returns. For few bytes. */
    cr_status (*put)(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error);
    /* Whether everything enqueued is done. OK with *idle false: still running. */
    cr_status (*poll)(cr_gpu_stream *stream, bool *idle, cr_error *error);
    /* Of a fold that is done: the device's partial of just those elements; valid until the next fold of that number. */
    const cr_partial *(*result)(const cr_gpu_stream *stream, uint32_t number);

    /* Enqueues folds of at most CR_GPU_PACK_BYTES each as one launch; their results have numbers of their own, `first` being at most
     * the number of those that are taken since the last idle moment. *taken: how many of count there was room for (0 only when others
     * are under way); with a status, fold number *taken is refused, and those before it are enqueued. */
    cr_status (*pack)(cr_gpu_stream *stream, const cr_gpu_fold *folds, uint32_t count, uint32_t first, uint32_t *taken,
                      cr_error *error);
    /* Small packs that follow each other within ns may find the device awake, which spares them a launch: for so long after the last of
     * them, some milliseconds in all, it keeps one of its multiprocessors busy. 0, as it begins: never. Once, before there are packs. */
    void (*linger)(cr_gpu *gpu, uint64_t ns);
    /* Of such a fold that is done: makes p its partial. */
    void (*pack_result)(const cr_gpu_stream *stream, uint32_t number, cr_partial *p);

    /* The ladder: one kernel by name over the whole of data, in the order and precision it teaches. Waits for its answer. *exact says
     * whether the value is the true one rounded once. NOT_FOUND for an unknown name, UNIMPLEMENTED for an op or type it lacks. */
    cr_status (*kernel)(cr_gpu_stream *stream, const char *name, cr_op op, const cr_gpu_fold *input, cr_value *value,
                        bool *exact, cr_error *error);

    /* Whether a client's descriptor may be device memory at all: INVALID_ARGUMENT when it is something else. It may wait for the
     * client's file system, so it is for any thread but the device's, and comes before import. */
    cr_status (*inspect)(int descriptor, cr_error *error);
    /* Device memory of another process: a CUDA IPC handle of 64 bytes (descriptor -1), the descriptor of VMM memory (handle NULL), or that
     * of a memory pool with the 64 bytes that export a pointer in it. bytes: what is claimed to be there; checked against the real
     * allocation. writable: it is written, too. The descriptor stays the caller's. */
    cr_status (*import)(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, bool writable, void **device,
                        cr_error *error);
    void (*release)(cr_gpu *gpu, void *device);
    /* An event of another process, by its IPC handle of 64 bytes. It has fired when what its owner recorded last is done (or nothing
     * was recorded). It is looked at and never waited for on a stream: its owner might never let it fire. */
    cr_status (*event_open)(cr_gpu *gpu, const void *handle, void **event, cr_error *error);
    cr_status (*event_look)(cr_gpu *gpu, void *event, bool *fired, cr_error *error);
    void (*event_close)(cr_gpu *gpu, void *event);
} cr_gpu_api;

extern const cr_gpu_api cr_cuda;

#endif
