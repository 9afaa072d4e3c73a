/* closing: what each kernel that closes groups begins with: their words, and the ops that only count.
 *
 * Thread: GPU; a group's. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_KEYS_CLOSING_CUH
#define CURED_KERNELS_CUDA_KEYS_CLOSING_CUH

#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/keys/keys.h"
#include "kernels/cuda/thread/simt.cuh"

enum { CR_KEYS_CLOSERS = 128 }; /* threads of a block */

CR_DEVICE unsigned long long cr_keys_word(const cr_keys_close_args &args, int number, uint32_t group) {
    return number < 0 ? 0 : args.fold.planes[(uint64_t)number * args.fold.groups + group];
}

CR_DEVICE bool cr_keys_is_count(const cr_axis_out &out) {
    return out.term == CR_TERM_ELEMENTS || out.term == CR_TERM_NONZERO || out.term == CR_TERM_NANS || out.term == CR_TERM_INFINITIES ||
           out.term == CR_TERM_SOME || out.term == CR_TERM_EVERY;
}

/* What a group has beside its sum. */
struct cr_keys_counted {
    uint64_t count, nonzero, special[CR_KEYS_SPECIAL_PLANES];

    CR_DEVICE cr_keys_counted(const cr_keys_close_args &args, uint32_t group) {
        const cr_keys_planes &at = args.fold.at;
        count = cr_keys_word(args, at.count, group);
        nonzero = cr_keys_word(args, at.nonzero, group);
#pragma unroll
        for (int i = 0; i < CR_KEYS_SPECIAL_PLANES; i++) special[i] = at.special < 0 ? 0 : cr_keys_word(args, at.special + i, group);
    }
    CR_DEVICE uint64_t marks() const {
        return (special[0] & CR_MARK_NANS) | (special[1] != 0 ? (uint64_t)CR_MARK_PLUS : 0) | (special[2] != 0 ? (uint64_t)CR_MARK_MINUS : 0);
    }
    /* Answers the ops that only count. Whether there are others. */
    CR_DEVICE bool answer(const cr_axis_args &axis, uint32_t group) const {
        const uint64_t left_out = axis.skip ? special[0] : 0;
        bool others = false;
        for (uint32_t k = 0; k < axis.out_count; k++) {
            const cr_axis_out &out = axis.out[k];
            others |= !cr_keys_is_count(out);
            if (cr_keys_is_count(out))
                cr_put_bits(out.to, group, out.result,
                            cr_close_count((cr_term)out.term, count - left_out, nonzero - left_out, special[0], special[1] + special[2]));
        }
        return others;
    }
};

/* Says what is outside; which group the thread has. */
CR_DEVICE uint32_t cr_keys_begin_close(const cr_keys_close_args &args) {
    const uint32_t group = blockIdx.x * CR_KEYS_CLOSERS + threadIdx.x;
    if (group == 0 && args.fold.head->inside != 0) atomicMax(args.wrong, 0 - args.fold.head->inside);
    return group;
}

#endif
