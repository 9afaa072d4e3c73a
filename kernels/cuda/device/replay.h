/* replay: folds that are asked for again and again, as graphs. Who keeps a tensor asks for the same fold of the same memory each time, and a graph of
 * it is launched in 1.1 µs on an H200, where its kernel takes 3.0. The third such fold makes the graph.
 *
 * Thread: one at a time for a stream. Owner: the stream. */
#ifndef CURED_KERNELS_CUDA_DEVICE_REPLAY_H
#define CURED_KERNELS_CUDA_DEVICE_REPLAY_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/gpu.h"

enum { CR_REPLAYS = 16 };

/* Zero-initialise it. */
typedef struct cr_replay {
    struct {
        cr_gpu_fold fold;
        uint32_t seen;
        cudaGraphExec_t graph; /* NULL: not made yet */
    } of[CR_REPLAYS];
    uint32_t next; /* whose place another takes */
} cr_replay;

/* Launches the graph of a fold, or makes it by `enqueue`, which enqueues the fold. False: it was not launched, and is to be enqueued. */
bool cr_replay_launch(cr_replay *replay, const cr_gpu_fold *fold, cudaStream_t stream, int (*enqueue)(void *argument),
                      void *argument);
void cr_replay_free(cr_replay *replay);

#endif
