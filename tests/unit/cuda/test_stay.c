/* Posts to a block that stays (kernels/cuda/stay.c), without one: what is written, who may post, and what becomes of a post that nobody
 * saw. The block itself is tested with the batch kernel (tests/gpu).
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>

#include "kernels/cuda/stay.h"

enum { UNITS = 64 };

static cr_stay_box box;
static cr_stay stay;
static cr_batch batch, other;
static cr_batch_unit units[UNITS];
static uint64_t found[UNITS * CR_BATCH_WORDS], more[8];
static unsigned launches;
static cr_stay_args launched;

int cr_stay_launch(const cr_stay_args *args, void *stream) {
    ck_assert_ptr_eq(stream, &stay);
    launched = *args;
    launches++;
    return 0;
}

static void begin(uint64_t linger_ns) {
    box = (cr_stay_box){.gone = 0};
    launches = 0;
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = (cr_batch_unit){UINT64_C(0x80ff123456789a00) + i, (uint16_t)(1000 + i), CR_F32, 3, i};
    batch = other = (cr_batch){.units = units, .found = found, .more = more, .room = UNITS, .more_room = 8};
    cr_stay_init(&stay, &box, &stay, linger_ns);
}

/* A small batch was launched, closely after another. */
static void start(void) {
    batch.count = batch.launched = 1;
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
}

static void add(uint32_t count) { batch.count += count; }

START_TEST(nobody_stays_until_batches_follow_each_other) {
    begin(UINT64_MAX);
    add(1);
    ck_assert(!cr_stay_post(&stay, &batch));
    ck_assert_uint_eq(batch.launched, 0);
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 0);
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 1);
    ck_assert_ptr_eq(launched.box, &box);
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0); /* it is there already */
    ck_assert_uint_eq(launches, 1);
    begin(0); /* they never follow closely enough */
    start();
    ck_assert_uint_eq(launches, 0);
    batch.count = CR_STAY_UNITS + 1;
    begin(UINT64_MAX);
    batch.count = CR_STAY_UNITS + 1;
    for (int i = 0; i < 3; i++) ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 0);
    stay = (cr_stay){.box = NULL};
    cr_stay_quit(&stay);
    ck_assert(!cr_stay_post(&stay, &batch));
}
END_TEST

START_TEST(what_a_post_says) {
    begin(UINT64_MAX);
    start();
    add(3);
    ck_assert(cr_stay_post(&stay, &batch));
    ck_assert_uint_eq(batch.launched, 4);
    ck_assert_uint_eq(stay.from, 1);
    ck_assert_uint_eq(stay.count, 3);
    for (unsigned i = 0; i < CR_STAY_QUIT; i++) ck_assert_uint_eq(box.word[i] >> CR_STAY_SHIFT, 1);
    const uint64_t payload = (UINT64_C(1) << CR_STAY_SHIFT) - 1;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t *word = &box.word[i * CR_STAY_UNIT_WORDS];
        ck_assert_uint_eq((word[0] & payload) | (word[1] & payload) >> 32 << CR_STAY_SHIFT, units[1 + i].data);
        ck_assert_uint_eq(word[1] & 0xffff, 1001 + i);
        ck_assert_uint_eq(word[1] >> 16 & 0xff, CR_F32);
        ck_assert_uint_eq(word[1] >> 24 & 0xff, 3);
        ck_assert_uint_eq(word[2] & payload, 1 + i);
    }
    ck_assert_uint_eq(box.word[CR_STAY_FOUND] & payload, (uintptr_t)(found + CR_BATCH_WORDS));
    ck_assert_uint_eq(box.word[CR_STAY_MORE] & payload, (uintptr_t)more);
    ck_assert_uint_eq(box.word[CR_STAY_COUNT] & payload, 3);
    ck_assert_uint_eq(box.word[CR_STAY_QUIT], 0);
}
END_TEST

START_TEST(one_post_at_a_time) {
    begin(UINT64_MAX);
    start();
    add(CR_STAY_UNITS + 1);
    ck_assert(!cr_stay_post(&stay, &batch)); /* too many */
    batch.launched = batch.count;
    ck_assert(!cr_stay_post(&stay, &batch)); /* none */
    for (unsigned i = 1; i <= 600; i++) {
        other.launched = 0;
        other.count = 1;
        ck_assert(cr_stay_post(&stay, &other));
        ck_assert_uint_eq(box.word[CR_STAY_COUNT] >> CR_STAY_SHIFT, (i - 1) % 255 + 1); /* never 0, and never twice */
        batch.count = batch.launched + 1;
        ck_assert(!cr_stay_post(&stay, &batch));
        cr_stay_forget(&stay, &batch); /* has none out */
        ck_assert_ptr_eq(stay.posted, &other);
        cr_stay_forget(&stay, &other);
    }
}
END_TEST

START_TEST(whoever_leaves) {
    begin(UINT64_MAX);
    start();
    add(1);
    ck_assert(cr_stay_post(&stay, &batch));
    ck_assert(!cr_stay_gone(&stay));
    box.gone = 1; /* without having seen it */
    ck_assert(cr_stay_gone(&stay));
    cr_stay_forget(&stay, &batch);
    add(1);
    ck_assert(!cr_stay_post(&stay, &batch));
    batch.launched = batch.count;
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 2);
    ck_assert_uint_eq(launched.number, 1); /* of the post that is not to be answered any more */
    ck_assert_uint_eq(box.gone, 0);
    cr_stay_quit(&stay);
    ck_assert_uint_eq(box.word[CR_STAY_QUIT], 1);
    add(1);
    ck_assert(!cr_stay_post(&stay, &batch)); /* it is leaving */
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 2);
    box.gone = 1;
    ck_assert_int_eq(cr_stay_follow(&stay, &batch), 0);
    ck_assert_uint_eq(launches, 3);
    ck_assert_uint_eq(box.word[CR_STAY_QUIT], 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cuda/stay");
    TCase *tc = tcase_create("stay");
    tcase_add_test(tc, nobody_stays_until_batches_follow_each_other);
    tcase_add_test(tc, what_a_post_says);
    tcase_add_test(tc, one_post_at_a_time);
    tcase_add_test(tc, whoever_leaves);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
