/* The books of a pack (kernels/cuda/pack/pack.c) where a launch fails: what was added is forgotten as a whole.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/pack/pack.h"
#include "tests/unit/check_main.h"

enum { UNITS = 8, MORE = 64, FAILED = 719 };

static uint64_t memory[UNITS * (CR_PACK_WORDS + sizeof(cr_pack_unit) / 8) + MORE];
static int launch_gives;
static bool told; /* the units, with the launch */

int cr_pack_launch(const cr_pack_args *args, void *stream) {
    (void)stream;
    told = args->units == NULL;
    return launch_gives;
}

START_TEST(a_launch_that_fails_leaves_nothing_behind) {
    static const float array[100];
    const cr_gpu_fold fold = {.dtype = CR_F32, .families = CR_FAM_SUM, .data = array, .n = 100};
    cr_pack pack;
    uint32_t first = 0;
    cr_pack_init(&pack, memory, UNITS, MORE);
    ck_assert(cr_pack_add(&pack, &fold, &first));
    ck_assert_int_eq(cr_pack_start(&pack, NULL), 0);
    const uint32_t kept = pack.more_count;
    ck_assert_uint_gt(kept, 0);
    launch_gives = FAILED;
    for (int i = 0; i < 20; i++) { /* more often than there would be words */
        ck_assert(cr_pack_add(&pack, &fold, &first));
        ck_assert_uint_eq(first, 1);
        ck_assert_int_eq(cr_pack_start(&pack, NULL), FAILED);
        ck_assert_uint_eq(pack.count, 1);
        ck_assert_uint_eq(pack.more_count, kept);
    }
    launch_gives = 0;
    ck_assert(cr_pack_add(&pack, &fold, &first));
    ck_assert_int_eq(cr_pack_start(&pack, NULL), 0);
    ck_assert_uint_eq(pack.launched, 2);
    ck_assert_uint_eq(pack.more_count, 2 * kept);
    ck_assert(told);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_FEW_UNITS);
    ck_assert_int_eq(cr_pack_enqueue(&pack, 0, 1, NULL), 0);
    ck_assert(!told);
    cr_fast_switch_off(0);
}
END_TEST

CR_CHECK_MAIN("cuda/pack") { tcase_add_test(tc, a_launch_that_fails_leaves_nothing_behind); }
