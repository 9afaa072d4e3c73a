/* When the answer of a float sum is seen in the words that a GPU writes: once all of them have come, in whatever order, and not before; and never
 * where a part of it comes by the limbs. */
#include <check.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/burst_float.h"
#include "tests/unit/check_main.h"

enum { MULTIPROCESSORS = 132, DIGITS = 5 };

static cr_fold_slot slot;

static cr_fold_args args_of(uintptr_t address, uint64_t n) {
    return (cr_fold_args){.n = n,
                          .plan = cr_fold_plan_make(address, n, 4, MULTIPROCESSORS),
                          .multiprocessors = MULTIPROCESSORS,
                          .slot = &slot};
}

/* What a kernel writes, one of these at a time. */
enum { CONTROL = DIGITS, UNIT, NUMBER, BLOCKS, WRITES };

static void put(int what, bool burst, bool dirty) {
    cr_sum_found *found = slot.sums;
    const uint64_t blocks = 7;
    if (what < DIGITS)
        found->words[what] = burst ? blocks << CR_BURST_FLOAT_COUNT_AT : blocks * CR_DIGIT_BIAS;
    else if (what == CONTROL)
        found->control = burst ? found->control : dirty; /* one kind of kernel leaves it */
    else if (what == UNIT)
        found->unit = 0;
    else if (what == NUMBER)
        found->digits = DIGITS | (burst ? (uint32_t)CR_BURST_FLOAT : 0);
    else
        found->blocks = (uint32_t)blocks;
    if (what == 0 && burst && dirty) found->words[0] += UINT64_C(1) << CR_BURST_FLOAT_DIRTY_AT;
}

START_TEST(nothing_is_there_before_all_of_it) {
    const bool burst = _i & 1, dirty = _i & 2;
    srand(7);
    for (int round = 0; round < 500; round++) {
        const cr_fold_args args = args_of(0, burst ? 1 << 20 : 1 << 26);
        int order[WRITES];
        for (int i = 0; i < WRITES; i++) order[i] = i;
        for (int i = WRITES - 1; i > 0; i--) {
            const int k = rand() % (i + 1), other = order[k];
            order[k] = order[i];
            order[i] = other;
        }
        const int last = burst && order[WRITES - 1] == CONTROL ? WRITES - 2 : WRITES - 1;
        ck_assert(cr_fold_await(&args, CR_F32, CR_FAM_SUM));
        for (int i = 0; i < WRITES; i++) {
            ck_assert_msg(!cr_fold_there(&slot), "after %d of %d writes", i, WRITES);
            put(order[i], burst, dirty);
            if (i < last) continue;
            ck_assert_int_eq(cr_fold_there(&slot), !dirty);
            break;
        }
        ck_assert_int_eq(cr_sum_in_limbs(slot.sums), dirty);
    }
}
END_TEST

START_TEST(who_tells) {
    const cr_fold_args burst = args_of(0, 1 << 20), whole = args_of(0, 1 << 26), odd = args_of(1, 1 << 20),
                       alone = args_of(0, 1000), none = args_of(0, 0);
    ck_assert(cr_fold_await(&burst, CR_F16, CR_FAM_SUM));
    ck_assert(cr_fold_await(&whole, CR_F64, CR_FAM_SUM));
    ck_assert(cr_fold_await(&odd, CR_BF16, CR_FAM_SUM));
    ck_assert(!cr_fold_await(&alone, CR_F32, CR_FAM_SUM)); /* the words of one block alone may be 0 */
    ck_assert(!cr_fold_await(&none, CR_F32, CR_FAM_SUM));
    ck_assert(!cr_fold_await(&burst, CR_I32, CR_FAM_SUM));
    ck_assert(!cr_fold_await(&burst, CR_F32, CR_FAM_SUM | CR_FAM_SUMSQ));
    ck_assert(!cr_fold_await(&burst, CR_F32, CR_FAM_EXTREMA));
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_ARRIVAL);
    ck_assert(!cr_fold_await(&burst, CR_F16, CR_FAM_SUM));
    cr_fast_switch_off(0);
}
END_TEST

/* The first block tells. What it told of another kind of fold says nothing. */
START_TEST(who_was_hard) {
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < WRITES; i++) put(i, true, true);
        slot.sums->again = (uint32_t)again;
        ck_assert_int_eq(cr_fold_was_hard(&slot, CR_F32, CR_FAM_SUM), again);
        ck_assert(!cr_fold_was_hard(&slot, CR_I32, CR_FAM_SUM));
        ck_assert(!cr_fold_was_hard(&slot, CR_F32, CR_FAM_SUM | CR_FAM_SUMSQ));
        put(NUMBER, false, true);
        ck_assert(!cr_fold_was_hard(&slot, CR_F32, CR_FAM_SUM));
    }
}
END_TEST

CR_CHECK_MAIN("told") {
    tcase_add_loop_test(tc, nothing_is_there_before_all_of_it, 0, 4);
    tcase_add_test(tc, who_tells);
    tcase_add_test(tc, who_was_hard);
}
