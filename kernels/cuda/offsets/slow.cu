/* slow: launches slow.cuh's kernel. Thread: the stream's. Owner: none. */
#include "kernels/cuda/offsets/slow.cuh"

extern "C" int cr_segments_launch_slow(const cr_segments_args *args, void *stream) {
    return cr_launch(cr_segments_slowly, args->slow_blocks, CR_GPU_THREADS, stream, args->all == 0, *args);
}
