/* Posts to a block that stays (kernels/cuda/pack/linger.c), without one: what is written, who may post, and what becomes of a post that nobody
 * saw. The block itself is tested with the pack kernel (tests/gpu).
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/pack/linger.h"
#include "tests/unit/check_main.h"

enum { UNITS = 64 };

static cr_linger_box box;
static cr_linger linger;
static cr_pack pack, other;
static cr_pack_unit units[UNITS];
static uint64_t found[UNITS * CR_PACK_WORDS], more[8];
static unsigned launches;
static cr_linger_args launched;

int cr_linger_launch(const cr_linger_args *args, void *stream) {
    ck_assert_ptr_eq(stream, &linger);
    launched = *args;
    launches++;
    return 0;
}

static void begin(uint64_t linger_ns) {
    box = (cr_linger_box){.gone = 0};
    launches = 0;
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = (cr_pack_unit){UINT64_C(0x80ff123456789a00) + i, (uint16_t)(1000 + i), CR_F32, 3, i};
    pack = other = (cr_pack){.units = units, .found = found, .more = more, .room = UNITS, .more_room = 8};
    cr_linger_init(&linger, &box, &linger, linger_ns);
}

/* A small pack was launched, closely after another. */
static void start(void) {
    pack.count = pack.launched = 1;
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
}

static void add(uint32_t count) { pack.count += count; }

START_TEST(nobody_stays_until_packs_follow_each_other) {
    begin(UINT64_MAX);
    add(1);
    ck_assert(!cr_linger_post(&linger, &pack));
    ck_assert_uint_eq(pack.launched, 0);
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 0);
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 1);
    ck_assert_ptr_eq(launched.box, &box);
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0); /* it is there already */
    ck_assert_uint_eq(launches, 1);
    begin(0); /* they never follow closely enough */
    start();
    ck_assert_uint_eq(launches, 0);
    pack.count = CR_LINGER_UNITS + 1;
    begin(UINT64_MAX);
    pack.count = CR_LINGER_UNITS + 1;
    for (int i = 0; i < 3; i++) ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 0);
    begin(UINT64_MAX);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_LINGER);
    start();
    ck_assert_uint_eq(launches, 0);
    cr_fast_switch_off(0);
    linger = (cr_linger){.box = NULL};
    cr_linger_quit(&linger);
    ck_assert(!cr_linger_post(&linger, &pack));
}
END_TEST

START_TEST(what_a_post_says) {
    begin(UINT64_MAX);
    start();
    add(3);
    ck_assert(cr_linger_post(&linger, &pack));
    ck_assert_uint_eq(pack.launched, 4);
    ck_assert_uint_eq(linger.from, 1);
    ck_assert_uint_eq(linger.count, 3);
    for (unsigned i = 0; i < CR_LINGER_QUIT; i++) ck_assert_uint_eq(box.word[i] >> CR_LINGER_SHIFT, 1);
    const uint64_t payload = (UINT64_C(1) << CR_LINGER_SHIFT) - 1;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t *word = &box.word[i * CR_LINGER_UNIT_WORDS];
        ck_assert_uint_eq((word[0] & payload) | (word[1] & payload) >> 32 << CR_LINGER_SHIFT, units[1 + i].data);
        ck_assert_uint_eq(word[1] & 0xffff, 1001 + i);
        ck_assert_uint_eq(word[1] >> 16 & 0xff, CR_F32);
        ck_assert_uint_eq(word[1] >> 24 & 0xff, 3);
        ck_assert_uint_eq(word[2] & payload, 1 + i);
    }
    ck_assert_uint_eq(box.word[CR_LINGER_FOUND] & payload, (uintptr_t)(found + CR_PACK_WORDS));
    ck_assert_uint_eq(box.word[CR_LINGER_MORE] & payload, (uintptr_t)more);
    ck_assert_uint_eq(box.word[CR_LINGER_COUNT] & payload, 3);
    ck_assert_uint_eq(box.word[CR_LINGER_QUIT], 0);
}
END_TEST

START_TEST(one_post_at_a_time) {
    begin(UINT64_MAX);
    start();
    add(CR_LINGER_UNITS + 1);
    ck_assert(!cr_linger_post(&linger, &pack)); /* too many */
    pack.launched = pack.count;
    ck_assert(!cr_linger_post(&linger, &pack)); /* none */
    for (unsigned i = 1; i <= 600; i++) {
        other.launched = 0;
        other.count = 1;
        ck_assert(cr_linger_post(&linger, &other));
        ck_assert_uint_eq(box.word[CR_LINGER_COUNT] >> CR_LINGER_SHIFT,
                          (i - 1) % 255 + 1); /* never 0, and never twice */
        pack.count = pack.launched + 1;
        ck_assert(!cr_linger_post(&linger, &pack));
        cr_linger_forget(&linger, &pack); /* has none out */
        ck_assert_ptr_eq(linger.posted, &other);
        cr_linger_forget(&linger, &other);
    }
}
END_TEST

START_TEST(whoever_leaves) {
    begin(UINT64_MAX);
    start();
    add(1);
    ck_assert(cr_linger_post(&linger, &pack));
    ck_assert(!cr_linger_gone(&linger));
    box.gone = 1; /* without having seen it */
    ck_assert(cr_linger_gone(&linger));
    cr_linger_forget(&linger, &pack);
    add(1);
    ck_assert(!cr_linger_post(&linger, &pack));
    pack.launched = pack.count;
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 2);
    ck_assert_uint_eq(launched.number, 1); /* of the post that is not to be answered any more */
    ck_assert_uint_eq(box.gone, 0);
    cr_linger_quit(&linger);
    ck_assert_uint_eq(box.word[CR_LINGER_QUIT], 1);
    add(1);
    ck_assert(!cr_linger_post(&linger, &pack)); /* it is leaving */
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 2);
    box.gone = 1;
    ck_assert_int_eq(cr_linger_follow(&linger, &pack), 0);
    ck_assert_uint_eq(launches, 3);
    ck_assert_uint_eq(box.word[CR_LINGER_QUIT], 0);
}
END_TEST

CR_CHECK_MAIN("cuda/linger") {
    tcase_add_test(tc, nobody_stays_until_packs_follow_each_other);
    tcase_add_test(tc, what_a_post_says);
    tcase_add_test(tc, one_post_at_a_time);
    tcase_add_test(tc, whoever_leaves);
}
