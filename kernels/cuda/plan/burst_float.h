/* burst_float: what the host and the kernels of short float sums (walk/burst_float.cuh) share: for which arrays they are, and how what they leave
 * is read. Apart from fold.h, which every kernel sees.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CUDA_PLAN_BURST_FLOAT_H
#define CURED_KERNELS_CUDA_PLAN_BURST_FLOAT_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/core/close.h"
#include "kernels/cuda/plan/fold.h"

/* A short sum's words, in cr_sum_found: digits of CR_BURST_FLOAT_BITS bits, of which only the last one has a sign, and a bias for each block. In
 * a word: the sum of the digits, the blocks that have put something into the limbs (in the first word), and the blocks. CR_BURST_FLOAT in
 * `digits` says that the words are such; cr_sum_found's `control` then says nothing. */
enum {
    CR_BURST_FLOAT = 1 << 8,
    CR_BURST_FLOAT_BITS = 21,
    CR_BURST_FLOAT_DIRTY_AT = 40,
    CR_BURST_FLOAT_COUNT_AT = 52,
    CR_BURST_FLOAT_COUNTED = 4095
};
#define CR_BURST_FLOAT_BIAS ((uint64_t)1 << 29)

enum {
    CR_BURST_FLOAT_ALONE = CR_GPU_THREADS * 4, /* vectors that one block takes alone */
    CR_BURST_FLOAT_MOST = 32,                  /* vectors of one thread: then its sum fits 64 bits */
    CR_BURST_FLOAT_AGAIN = 16,    /* up to so many a block with an element outside the window loads all again */
    CR_BURST_FLOAT_BLOCKS = 1280, /* so many at most: then a word holds what they add to it */
};

/* Whether something of a float sum lies in the limbs. */
CR_CLOSE bool cr_sum_in_limbs(const cr_sum_found *found) {
    if (!(found->digits & CR_BURST_FLOAT)) return found->control != 0;
    return (found->words[0] >> CR_BURST_FLOAT_DIRTY_AT & CR_BURST_FLOAT_COUNTED) != 0;
}
/* How many digits a float sum has, how wide they are, and digit i of them. */
CR_CLOSE uint32_t cr_sum_digits(const cr_sum_found *found) { return found->digits & ~(uint32_t)CR_BURST_FLOAT; }
CR_CLOSE int cr_sum_digit_bits(const cr_sum_found *found) {
    return found->digits & CR_BURST_FLOAT ? (int)CR_BURST_FLOAT_BITS : (int)CR_DIGIT_BITS;
}
CR_CLOSE int64_t cr_sum_digit(const cr_sum_found *found, uint32_t i) {
    if (!(found->digits & CR_BURST_FLOAT)) return (int64_t)(found->words[i] - found->blocks * CR_DIGIT_BIAS);
    const uint64_t digit = found->words[i] & (((uint64_t)1 << CR_BURST_FLOAT_DIRTY_AT) - 1);
    return (int64_t)(digit - (i + 1 == cr_sum_digits(found) ? found->blocks * CR_BURST_FLOAT_BIAS : 0));
}

/* Makes a plan of it for a fold whose threads take so many vectors each, and gives that number: 1, or 4 and more; or 0, and leaves it, where
 * the array is too long, or its elements lie at odd addresses. */
uint32_t cr_fold_plan_burst_float(cr_fold_plan *plan, uint32_t multiprocessors);
/* The same of a sum whose last block makes the answers (axis/answered.cuh). */
uint32_t cr_fold_plan_answered(cr_fold_plan *plan, uint32_t multiprocessors);

/* The kernel of it: without a loop for 1 or 4 vectors a thread, with one for others; these load again where an element lies outside the
 * window. ONCE takes any number, and has bins for such elements. */
typedef enum cr_burst_float_kernel {
    CR_BURST_FLOAT_ONE,
    CR_BURST_FLOAT_FOUR,
    CR_BURST_FLOAT_LOOP,
    CR_BURST_FLOAT_ONCE
} cr_burst_float_kernel;
cr_burst_float_kernel cr_burst_float_kernel_of(uint32_t each);

#ifdef __cplusplus
}
#endif

#endif
