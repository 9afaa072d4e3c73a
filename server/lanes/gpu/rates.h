/* rates: what was measured of a GPU and of the CPU beside it, and what follows: which jobs a GPU takes, how much of
 * one at a time, and what it leaves to the CPU because that is done sooner.
 *
 * Thread: measuring on the GPU's; the rest are pure functions. Owner: the lane. */
#ifndef CURED_SERVER_LANES_GPU_RATES_H
#define CURED_SERVER_LANES_GPU_RATES_H

#include "engine/job.h"
#include "kernels/cuda/gpu.h"

typedef struct cr_gpu_rates {
    double cpu;            /* bytes a second of all CPU workers; 0: not measured, the GPU takes what it can */
    double pinned, staged; /* bytes a second to the GPU, from pinned memory and through the staging buffers */
    double launch_s;       /* a small fold, there and back */
    uint64_t chunk_bytes;  /* most at a time */
    uint64_t min_bytes;    /* of an option: used instead of what was measured; 0: none */
} cr_gpu_rates;

/* The jobs that a GPU can fold at all; the CPU takes the others: products of floats, which are one chain in the order
 * of the array. Answers along an axis have a rule of their own (cr_gpu_axis_place). */
bool cr_gpu_takes(const cr_job *job);
/* With how many bytes to claim it is worth a look. */
uint64_t cr_gpu_from(const cr_gpu_rates *rates);

/* Bytes a second, of shared memory. It reaches a GPU by slabs alone, and each byte is then moved twice. */
typedef struct cr_shared_rates {
    double read;  /* all workers together, each reading what it folds; 0: not measured */
    double slabs; /* into slabs */
    double cpu;   /* all workers together, from slabs */
    double bus;   /* all GPUs together, from slabs */
} cr_shared_rates;
/* From how many bytes on shared memory is worth slabs, so that GPUs take their part; UINT64_MAX: however many there are, workers
 * that read it themselves are done sooner. gpu_from: what cr_gpu_from says. */
uint64_t cr_gpu_slabs_from(const cr_shared_rates *rates, uint64_t gpu_from);
/* How many of rest bytes to take, with queued bytes on their way to the GPU already, so that it is done no later than
 * the CPU with all the others; 0: none. */
uint64_t cr_gpu_share(const cr_gpu_rates *rates, uint64_t rest, uint64_t queued, bool staged);

enum { CR_GPU_LARGE_BYTES = 128 * 1024 * 1024 };
/* How fast the GPU folds its own memory, by the last large work: bytes in a nanosecond; 0: there was none. */
typedef double cr_gpu_pace;
/* A work that folded so many bytes took so long. */
void cr_gpu_learn(cr_gpu_pace *pace, uint64_t bytes, uint64_t took_ns);
/* Whether a work of so many bytes, under way for so long, will be done in ahead_ns. Nobody knows it of a small work. */
bool cr_gpu_nearly_done(cr_gpu_pace pace, uint64_t bytes, uint64_t since_ns, uint64_t ahead_ns);

/* Measures pinned, staged and launch_s, with buffers of bytes each. */
cr_status cr_gpu_measure(const cr_gpu_api *api, cr_gpu_stream *stream, void *device, void *staging, size_t bytes,
                         cr_gpu_rates *rates, cr_error *error);

#endif
