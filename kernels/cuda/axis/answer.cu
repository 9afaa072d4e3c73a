/* answer: see answer.h. A warp makes each answer, by one of its threads: it is one number, and some thousand instructions.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/axis/answer.cuh"

__global__ void __launch_bounds__(CR_AXIS_OUTS *CR_WARP) cr_answer_kernel(const __grid_constant__ cr_answer_args args) {
    const uint32_t k = threadIdx.x / CR_WARP;
    cr_after_the_last();
    if (k >= args.axis.out_count) return;
    __shared__ cr_sum_found found[CR_AXIS_OUTS];
    cr_answer_fetch(found[k], args.slot->sums[args.sum[k].at], threadIdx.x % CR_WARP, CR_WARP);
    __syncwarp();
    if (threadIdx.x % CR_WARP != 0) return;
    cr_answer_number number;
    cr_answer_make(args, k, found[k], number);
}

extern "C" int cr_answer_launch(const cr_answer_args *args, void *stream) {
    return cr_launch(cr_answer_kernel, 1, args->axis.out_count * CR_WARP, stream, true, *args);
}
