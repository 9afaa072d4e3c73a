/* arrival: what a float sum leaves in host memory, seen to be there. Its words come one by one, in any order, because each is written by whoever was
 * the last to add to it.
 *
 * Thread: one at a time for a slot. Owner: the slot's. */
#include <stdatomic.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/burst_float.h"

/* The first block stands for all. Where few blocks go over their elements twice, it seldom does. */
bool cr_fold_was_hard(const cr_fold_slot *slot, cr_dtype dtype, uint32_t families) {
    const cr_sum_found *found = slot->sums;
    return cr_fold_is_float_sum(dtype, families) && found->digits & CR_BURST_FLOAT && found->again;
}

bool cr_fold_await_walk(cr_fold_slot *slot, cr_dtype dtype, uint32_t families) {
    const bool one = families != 0 && (families & (families - 1)) == 0 && (families & CR_FAM_SUMS) != 0;
    if (!one || cr_dtype_kind(dtype) != CR_KIND_FLOAT || !cr_fast_on(CR_FAST_GPU_ARRIVAL)) return false;
    slot->awaited = cr_fold_sum_at(cr_sum_of(families));
    cr_sum_found *found = &slot->sums[slot->awaited];
    memset(found->words, 0, sizeof found->words);
    found->control = UINT64_MAX;
    found->unit = INT32_MIN;
    found->digits = found->blocks = 0;
    return true;
}

/* The words of a burst of one block may be 0. */
bool cr_fold_await(const cr_fold_args *args, cr_dtype dtype, uint32_t families) {
    cr_fold_plan plan = args->plan;
    if (args->n == 0) return false;
    if (cr_fold_is_float_sum(dtype, families) && cr_fold_plan_burst_float(&plan, args->multiprocessors) &&
        plan.blocks == 1)
        return false;
    return cr_fold_await_walk(args->slot, dtype, families);
}

/* A word counts its blocks, or has a bias for each, so it is not 0. */
bool cr_fold_there(const cr_fold_slot *slot) {
    const volatile cr_sum_found *found = &slot->sums[slot->awaited];
    const uint32_t digits = found->digits & ~(uint32_t)CR_BURST_FLOAT; /* it changes meanwhile */
    bool there = digits != 0 && digits <= CR_SUM_DIGITS && found->blocks != 0 && found->unit != INT32_MIN;
    for (uint32_t i = 0; there && i < digits; i++) there = found->words[i] != 0;
    if (there && !(found->digits & CR_BURST_FLOAT)) there = found->control != UINT64_MAX;
    atomic_thread_fence(memory_order_acquire);
    return there && !cr_sum_in_limbs(&slot->sums[slot->awaited]);
}
