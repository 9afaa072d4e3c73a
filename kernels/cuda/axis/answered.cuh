/* answered: a float sum whose last block makes the answers (answer.h), so that one launch does both: to launch takes the host longer than
 * anything else about a call whose answers stay on the device.
 *
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_ANSWERED_CUH
#define CURED_KERNELS_CUDA_AXIS_ANSWERED_CUH

#include "kernels/cuda/axis/answer.cuh"
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/walk/walk.cuh"

template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_walk_answered(const __grid_constant__ cr_answered_args args) {
    __shared__ typename A::Shared shared;
    __shared__ cr_answer_number number;
    __shared__ cr_sum_found found;
    A acc;
    cr_walk_chunks<A::UNROLL>(acc, args.fold, shared);
    cr_walk_edges(acc, args.fold, shared);
    __syncwarp();
    acc.publish(args.fold, shared);
    if (!cr_last_block(args.fold)) return;
    cr_answer_fetch(found, args.answer.slot->sums[args.answer.sum[0].at], threadIdx.x, CR_GPU_THREADS); /* all answers are of one sum */
    __syncthreads();
    if (threadIdx.x != 0) return;
#pragma unroll 1
    for (uint32_t k = 0; k < args.answer.axis.out_count; k++) cr_answer_make(args.answer, k, found, number);
}

/* given: the beginning of a cr_answered_args. */
template <class A> int cr_answered_launch(const cr_fold_args *given, void *stream) {
    cr_answered_args args = *reinterpret_cast<const cr_answered_args *>(given);
    cr_fold_plan_fit(&args.fold.plan, A::BLOCKS);
    cr_fold_plan_chunks(&args.fold.plan, args.fold.multiprocessors, A::BLOCKS);
    return cr_launch(cr_walk_answered<A>, args.fold.plan.blocks, CR_GPU_THREADS, stream, args.fold.follows, args);
}

#endif
