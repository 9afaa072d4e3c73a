/* The books of a batch (kernels/cuda/batch.c) where a launch fails: what was added is forgotten as a whole.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>

#include "kernels/cuda/batch.h"

enum { UNITS = 8, MORE = 64, FAILED = 719 };

static uint64_t memory[UNITS * (CR_BATCH_WORDS + sizeof(cr_batch_unit) / 8) + MORE];
static int launch_gives;

int cr_batch_launch(const cr_batch_args *args, void *stream) {
    (void)args, (void)stream;
    return launch_gives;
}

START_TEST(a_launch_that_fails_leaves_nothing_behind) {
    static const float array[100];
    const cr_gpu_fold fold = {.dtype = CR_F32, .families = CR_FAM_SUM, .data = array, .n = 100};
    cr_batch batch;
    uint32_t first = 0;
    cr_batch_init(&batch, memory, UNITS, MORE);
    ck_assert(cr_batch_add(&batch, &fold, &first));
    ck_assert_int_eq(cr_batch_start(&batch, NULL), 0);
    const uint32_t kept = batch.more_count;
    ck_assert_uint_gt(kept, 0);
    launch_gives = FAILED;
    for (int i = 0; i < 20; i++) { /* more often than there would be words */
        ck_assert(cr_batch_add(&batch, &fold, &first));
        ck_assert_uint_eq(first, 1);
        ck_assert_int_eq(cr_batch_start(&batch, NULL), FAILED);
        ck_assert_uint_eq(batch.count, 1);
        ck_assert_uint_eq(batch.more_count, kept);
    }
    launch_gives = 0;
    ck_assert(cr_batch_add(&batch, &fold, &first));
    ck_assert_int_eq(cr_batch_start(&batch, NULL), 0);
    ck_assert_uint_eq(batch.launched, 2);
    ck_assert_uint_eq(batch.more_count, 2 * kept);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cuda/batch");
    TCase *tc = tcase_create("batch");
    tcase_add_test(tc, a_launch_that_fails_leaves_nothing_behind);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
