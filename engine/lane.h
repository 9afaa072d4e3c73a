/* lane: something that claims input from the run queue and folds it: CPU workers, a GPU's streams.
 *
 * Thread: open and close on main's; run on threads of the lane's own. Owner: main. Every lane gives the same bits for the
 * same elements, so none is ever asked for by a job. */
#ifndef CURED_ENGINE_LANE_H
#define CURED_ENGINE_LANE_H

#include "base/names.h"
#include "engine/queue.h"
#include "kernels/cuda/gpu.h"

typedef struct cr_lane cr_lane;

typedef struct cr_lane_options {
    cr_queue *queue;
    uint32_t workers; /* CPU; 0: the lane decides */
    const char *isa;  /* CPU: "auto", "portable", "avx2", "avx512" */
    cr_seats *seats;  /* of threads that look for work before they sleep; NULL: none does */
    uint64_t spin_ns; /* how long at most; 0: never */
    void *scratch; /* CPU: touched memory of nobody's, to measure all workers together; NULL: they are not measured */
    size_t scratch_bytes;

    const cr_gpu_api *gpu;
    uint32_t ordinal, streams;
    uint64_t chunk_bytes, min_bytes, timeout_ms;
    uint64_t start_timeout_ms;    /* 0: none */
    double cpu_rate;              /* what it competes with; 0: not measured */
    const char *probe;            /* this program (gpu/probe.h); NULL: what clients share is opened untried */
    void (*lost)(void *argument); /* a GPU is gone: on its thread; it must only post */
    void *lost_argument;
} cr_lane_options;

typedef struct cr_lane_info {
    const char *name;   /* "cpu", "cuda" */
    const char *device; /* instruction set or GPU name */
    uint32_t ordinal;   /* of a GPU */
    uint32_t workers;   /* threads, or streams */
    double
        bytes_per_second; /* CPU: folding an f32 sum, one worker, hot; GPU: from pinned host memory. 0: not measured */
    double all_rate;      /* CPU: all workers together, from memory */
    double shared_rate;   /* CPU: the same of shared memory that they read themselves */
    double slab_rate;     /* CPU: shared memory that one feed reads into slabs */
    const char *lost;     /* why it is of no use any more; NULL: it is */
    uint64_t bytes, launches,
        busy_ns; /* folded since its start; claims, of a GPU batches of them; of all workers together */
    uint64_t errors[CR_GPU_ERRORS]; /* of a GPU, since its start */
} cr_lane_info;

typedef struct cr_lane_type {
    const char *name;
    /* Starts the lane's threads; they claim at once. */
    cr_status (*open)(const cr_lane_options *options, cr_lane **lane, cr_error *error);
    cr_lane_info (*info)(const cr_lane *lane);
    /* Waits for the threads, after cr_queue_close, and frees the lane. */
    void (*close)(cr_lane *lane);
} cr_lane_type;

extern const cr_lane_type cr_lane_cpu, cr_lane_gpu;

#endif
