/* answered: a float sum whose last block makes the answers (answer.h), so that one launch does both: to launch takes the host longer than
 * anything else about a call whose answers stay on the device. Of sums that are bursts (walk/burst_float.cuh) the last block makes them of
 * the words that it has in registers.
 *
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_ANSWERED_CUH
#define CURED_KERNELS_CUDA_AXIS_ANSWERED_CUH

#include "kernels/cuda/axis/answer.cuh"
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/walk/burst_float.cuh"
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

/* ---- Bursts ---- */

struct cr_answered_burst_args {
    cr_burst_args burst;
    cr_answer_args answer;
};

/* By a block's first warp: adds its words to those of the others. True of the last block, whose lanes have the words of all then. A block
 * adds its words by one instruction, so those that the last one on the first word does not see yet are on their way. */
template <int DIGITS> CR_DEVICE bool cr_answered_meet(const cr_fold_args &args, unsigned long long &word, bool dirty) {
    const uint32_t lane = threadIdx.x, blocks = args.plan.blocks;
    if (lane == 0 && dirty) word += 1ull << CR_BURST_FLOAT_DIRTY_AT;
    if (blocks == 1) return true;
    unsigned long long *to = &args.state->sums[CR_SUM_PLAIN].words[lane];
    word += 1ull << CR_BURST_FLOAT_COUNT_AT;
    if (lane < DIGITS) word += atomicAdd(to, word);
    if (__shfl_sync(CR_EVERYONE, word, 0) >> CR_BURST_FLOAT_COUNT_AT != blocks) return false;
    if (lane < DIGITS) {
        while (word >> CR_BURST_FLOAT_COUNT_AT != blocks) word = __ldcg(to);
        *to = 0;
    }
    word &= (1ull << CR_BURST_FLOAT_COUNT_AT) - 1;
    return true;
}

/* The answers where some blocks have put elements into the limbs. */
template <int DIGITS, int LIMBS>
CR_CALLED void cr_answered_hard(const cr_fold_args &fold, const cr_answer_args &answer, unsigned long long word, int unit) {
    __shared__ cr_answer_number number;
    __shared__ cr_sum_found found;
    if (threadIdx.x < DIGITS) found.words[threadIdx.x] = word;
    __syncwarp();
    if (threadIdx.x != 0) return;
    found.unit = unit;
    found.digits = DIGITS | CR_BURST_FLOAT;
    found.blocks = fold.plan.blocks;
    cr_burst_float_limbs(&fold.state->sums[CR_SUM_PLAIN], &found, LIMBS);
#pragma unroll 1
    for (uint32_t k = 0; k < answer.axis.out_count; k++) cr_answer_make(answer, k, found, number);
}

/* The end of a block of a burst: the last one makes the answers, a lane each. */
template <class E> struct cr_answered_end {
    static constexpr bool WARP = true, WAITS = true;
    const cr_answer_args &answer;

    CR_DEVICE void operator()(const cr_fold_args &fold, unsigned long long word, bool dirty, int unit) const {
        constexpr int DIGITS = 3 + cr_burst_float<E>::WIDE, LIMBS = E::SIZE == 8 ? CR_F64_LIMBS : CR_F32_LIMBS;
        static_assert(CR_BURST_FLOAT_BITS * (DIGITS - 1) + CR_BURST_FLOAT_DIRTY_AT < 128, "all digits are one number");
        if (!cr_answered_meet<DIGITS>(fold, word, dirty)) return;
        if (__shfl_sync(CR_EVERYONE, word, 0) >> CR_BURST_FLOAT_DIRTY_AT != 0) {
            cr_answered_hard<DIGITS, LIMBS>(fold, answer, word, unit);
            return;
        }
        if (threadIdx.x == DIGITS - 1) word -= fold.plan.blocks * CR_BURST_FLOAT_BIAS;
        __int128 value = 0;
#pragma unroll
        for (int i = 0; i < DIGITS; i++) value += (__int128)(long long)__shfl_sync(CR_EVERYONE, word, i) << CR_BURST_FLOAT_BITS * i;
        if (threadIdx.x >= answer.axis.out_count) return;
        const cr_u128 magnitude = (cr_u128)(value < 0 ? -value : value);
        cr_float_answer(answer.axis, answer.axis.out[threadIdx.x], 0, value < 0, magnitude, unit, false, 0);
    }
};

/* V, LONG, ONCE: as cr_burst_float_block has them. */
template <class E, int V, bool LONG, bool ONCE>
__global__ void __launch_bounds__(CR_GPU_THREADS, CR_GPU_BLOCKS_PER_SM) cr_burst_answered(const __grid_constant__ cr_answered_burst_args told) {
    cr_burst_float_block<E, V, LONG, ONCE>(told.burst, cr_answered_end<E>{told.answer});
}

/* Its blocks wait at once for what came before, so it may be launched early behind anything; that also takes the host less. */
template <class E, int V, bool LONG, bool ONCE> int cr_answered_burst_start(const cr_fold_args &fold, const cr_answer_args &answer, void *stream) {
    const cr_answered_burst_args args = {cr_burst_told<E::SIZE>(fold), answer};
    return cr_launch(cr_burst_answered<E, V, LONG, ONCE>, fold.plan.blocks, CR_GPU_THREADS, stream, true, args);
}

/* Σx, by the kernel for the length: as cr_answered_launch takes it. */
template <class E> int cr_answered_sum(const cr_fold_args *given, void *stream) {
    const cr_answered_args &args = *reinterpret_cast<const cr_answered_args *>(given);
    cr_fold_args fold = args.fold;
    const uint32_t each = cr_fold_plan_answered(&fold.plan, fold.multiprocessors);
    if (each == 0) return cr_answered_launch<cr_float_sum<E, CR_SUM_PLAIN>>(given, stream);
    return each == 1 ? cr_answered_burst_start<E, 1, false, false>(fold, args.answer, stream)
                     : cr_answered_burst_start<E, 4, true, true>(fold, args.answer, stream);
}

#endif
