/* Which of the calls that wait has brought least: windows are counted, no clock is asked. */
#include "server/call/patience.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MANY = 40 };

static cr_patience p;
static cr_wait waits[MANY];

static void setup(void) { cr_patience_init(&p); }

/* n calls, from the first on. */
static void begin(int n) {
    for (int i = 0; i < n; i++) cr_patience_begin(&p, &waits[i]);
}

static bool any(const void *argument, const cr_wait *wait) {
    (void)argument;
    (void)wait;
    return true;
}

static cr_wait *least(void) { return cr_patience_least(&p, any, NULL); }

START_TEST(a_new_call_has_time) {
    begin(1);
    for (int window = 0; window < 2; window++) {
        ck_assert_ptr_null(least());
        cr_patience_turn(&p);
    }
    ck_assert_ptr_eq(least(), &waits[0]);
    cr_patience_end(&waits[0]);
    ck_assert_ptr_null(least());
}
END_TEST

/* A pipe brings a little in every window; a hoarder nothing, or a byte at the beginning of each. */
START_TEST(slow_pipes_live_and_hoarders_do_not) {
    begin(4);
    cr_wait *pipe = &waits[0], *hoarder = &waits[1], *dribbler = &waits[2], *upload = &waits[3];
    for (int window = 0; window < 10; window++) {
        cr_patience_brought(&p, dribbler, 1);
        for (int i = 0; i < 3; i++) cr_patience_brought(&p, pipe, 100);
        cr_patience_brought(&p, upload, 1 << 20);
        if (window < 3) cr_patience_brought(&p, hoarder, 1 << 20); /* at first it looks busy */
        if (window < 9) cr_patience_turn(&p);
    }
    static const int order[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        cr_wait *found = least();
        ck_assert_int_eq(found - waits, order[i]);
        cr_patience_end(found);
    }
    ck_assert_ptr_null(least()); /* the upload brings enough */
    for (int window = 0; window < 2; window++) cr_patience_turn(&p);
    ck_assert_ptr_eq(least(), upload);
    cr_patience_brought(&p, upload, UINT64_MAX);
    cr_patience_brought(&p, upload, UINT64_MAX);
    ck_assert_ptr_null(least());
}
END_TEST

static bool is_the_one(const void *argument, const cr_wait *wait) { return wait == argument; }

/* One call would be of use, and stands behind many that would not. Who asks again and again gets it. */
START_TEST(those_of_no_use_hide_nobody) {
    begin(MANY);
    for (int window = 0; window < 2; window++) cr_patience_turn(&p);
    for (int i = 0; i < MANY; i++) {
        cr_wait *found = NULL;
        int asked = 0;
        for (; !found && asked < MANY; asked++) found = cr_patience_least(&p, is_the_one, &waits[i]);
        ck_assert_ptr_eq(found, &waits[i]);
        ck_assert_int_le(asked, MANY / CR_PATIENCE_LOOK + 1);
    }
    ck_assert_ptr_null(cr_patience_least(&p, is_the_one, NULL));
}
END_TEST

/* Against the amounts of the last whole window and this one, by powers of two. */
START_TEST(random_calls) {
    uint64_t state = 11 + (uint64_t)_i, last[MANY] = {0}, now[MANY] = {0}, found = 0;
    unsigned age[MANY] = {0};
    begin(MANY);
    for (int step = 0; step < 20000; step++) {
        uint64_t i = random_next(&state) % MANY, what = random_next(&state) % 400;
        if (what == 0) {
            cr_patience_turn(&p);
            for (int k = 0; k < MANY; k++) last[k] = now[k], now[k] = 0, age[k]++;
        } else if (what < 8) {
            cr_patience_end(&waits[i]);
            cr_patience_begin(&p, &waits[i]);
            last[i] = now[i] = age[i] = 0;
        } else if (i % 3) {
            uint64_t bytes = random_next(&state) % (1u << (i % 16));
            cr_patience_brought(&p, &waits[i], bytes);
            now[i] += bytes;
        }
        cr_wait *wait = least();
        if (!wait) continue;
        ptrdiff_t k = wait - waits;
        found++;
        ck_assert_uint_ge(age[k], 2);
        ck_assert_uint_lt(last[k] + now[k], 65536);
    }
    ck_assert_uint_gt(found, 1000);
}
END_TEST

CR_CHECK_MAIN("server/patience") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_new_call_has_time);
    tcase_add_test(tc, slow_pipes_live_and_hoarders_do_not);
    tcase_add_test(tc, those_of_no_use_hide_nobody);
    tcase_add_loop_test(tc, random_calls, 0, 3);
}
