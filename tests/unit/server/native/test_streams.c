/* Streams: as many calls as one connection may have, found by number; gaps take no room for long. */
#include "server/native/streams.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MOST = 65536 };

static cr_streams streams;
static char calls[MOST];

static void setup(void) { streams = (cr_streams){0}; }
static void teardown(void) { cr_streams_free(&streams); }

/* Numbers that rise by _i, whatever that is. */
START_TEST(each_is_found_until_it_is_over) {
    uint32_t step = (uint32_t)_i, added = 0, right = 0;
    for (uint32_t i = 0; i < MOST; i++) added += cr_streams_add(&streams, (i + 1) * step, &calls[i]);
    ck_assert_uint_eq(added, MOST);
    ck_assert_uint_eq(streams.open, MOST);
    for (uint32_t i = 0; i < MOST; i += 1 + i % 3) cr_streams_remove(&streams, (i + 1) * step);
    uint32_t next = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        right += cr_streams_find(&streams, (i + 1) * step) == (i == next ? NULL : &calls[i]);
        if (i == next) next += 1 + i % 3;
    }
    ck_assert_uint_eq(right, MOST);
    ck_assert_ptr_null(cr_streams_find(&streams, 0));
    ck_assert_ptr_null(cr_streams_find(&streams, UINT32_MAX));
}
END_TEST

/* A million calls, a few at a time, beside one that stays. */
START_TEST(gaps_do_not_grow_it) {
    enum { AT_ONCE = 5, CALLS = 1000000 };
    uint32_t added = cr_streams_add(&streams, 1, calls);
    for (uint32_t i = 2; i <= CALLS; i++) {
        added += cr_streams_add(&streams, i, calls);
        if (i > AT_ONCE) cr_streams_remove(&streams, i - AT_ONCE + 1);
    }
    ck_assert_uint_eq(added, CALLS);
    ck_assert_uint_eq(streams.open, AT_ONCE);
    ck_assert_uint_le(streams.room, 32);
}
END_TEST

START_TEST(without_memory_the_next_is_refused) {
    fail_allocation(1);
    ck_assert(!cr_streams_add(&streams, 1, calls));
    ck_assert(cr_streams_add(&streams, 2, calls));
    for (uint32_t i = 3; streams.used < streams.room; i++) ck_assert(cr_streams_add(&streams, i, calls));
    fail_allocation(1);
    ck_assert(!cr_streams_add(&streams, 1000, calls));
    ck_assert_ptr_eq(cr_streams_find(&streams, 2), calls);
}
END_TEST

CR_CHECK_MAIN("server/streams") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, each_is_found_until_it_is_over, 1, 4);
    tcase_add_test(tc, gaps_do_not_grow_it);
    tcase_add_test(tc, without_memory_the_next_is_refused);
}
