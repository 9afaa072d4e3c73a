/* floors_gpu: what the rows of device memory share: an array in this process's device memory, a daemon of the row's own, and a region of it there.
 *
 * Thread: main. Owner: the row. */
#ifndef CURED_BENCH_FLOORS_GPU_H
#define CURED_BENCH_FLOORS_GPU_H

#include "bench/floors.h"
#include "cured/cured.h"
#include "kernels/cuda/gpu.h"

typedef struct floors_gpu {
    const floors_options *options; /* while the row is measured */
    bool (*warm)(void *context);   /* once, before anything is measured */
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    void *memory; /* floats */
    uint64_t bytes;
    cured_conn *conn;
    bool asleep; /* the client never looks for an answer before it sleeps */
    cured_region *region;
    void *to[2];           /* device memory for answers; NULL: none */
    cured_region *written; /* of one of them */
} floors_gpu;

/* CUDA devices; 0: none, or no driver. */
uint32_t floors_gpu_count(void);
/* Says so; false. */
bool floors_gpu_fail(const char *what, const char *why);
/* Memory of bytes on the device of that ordinal, filled, and its region on conn; api, bytes and conn are set. False: it says why. */
bool floors_gpu_register(floors_gpu *g, uint32_t ordinal);
/* Frees what that took, or a part of it. */
void floors_gpu_release(floors_gpu *g);
/* Looks until what is enqueued is done. */
cr_status floors_gpu_await(floors_gpu *g, cr_error *error);
/* Measures one row against a daemon with that spin_us (NULL: as it comes), and prints it; its context begins with a floors_gpu, of which
 * bytes and warm are set. False: something failed. *ran: whether there was something to measure. */
bool floors_gpu_row(const floors_options *options, const floors_row *row, const char *spin_us, bool *ran);

#endif
