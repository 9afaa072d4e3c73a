/* The rule by which threads look for work before they sleep: how the window grows and goes, who gets a seat, and what a look that
 * comes late means. Times are numbers here; no clock is read. */
#include <check.h>

#include "base/lookout.h"
#include "tests/unit/check_main.h"

enum { US = 1000, MS = 1000000 };

/* A wait, and the window after it. */
typedef struct wait {
    uint64_t waited_us, window_us;
} wait;

static const struct {
    uint64_t most_us;
    wait waits[12];
    unsigned count;
} rows[] = {
    {50,
     {{30, 10}, {30, 20}, {30, 40}, {30, 40}, {40, 40}, {41, 50}, {50, 50}, {49, 50}},
     8},                                                                    /* as wide as waits are */
    {50, {{1, 10}, {9, 10}, {10, 10}, {11, 20}, {3, 20}, {21, 40}}, 6},     /* no wider than they are */
    {50, {{30, 10}, {51, 0}, {30, 10}, {30, 20}, {10000, 0}, {50, 10}}, 6}, /* a long one ends it */
    {50, {{51, 0}, {10000, 0}, {60, 0}}, 3},                                /* long ones begin nothing */
    {5, {{4, 5}, {5, 5}, {6, 0}}, 3},                                       /* below the first window */
    {1000, {{900, 10}, {900, 20}, {900, 40}, {900, 80}, {900, 160}, {900, 320}, {900, 640}, {900, 1000}, {1001, 0}}, 9},
    {0, {{0, 0}, {1, 0}, {30, 0}}, 3}, /* never */
};

START_TEST(window_follows_waits) {
    cr_seats seats;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = rows[_i].most_us * US};
    uint64_t now = 5 * MS;
    for (unsigned i = 0; i < rows[_i].count; i++) {
        const wait *w = &rows[_i].waits[i];
        now += w->waited_us * US;
        cr_lookout_waited(&l, w->waited_us * US, now);
        ck_assert_msg(l.window_ns == w->window_us * US, "row %d, wait %u: %llu ns", _i, i,
                      (unsigned long long)l.window_ns);
    }
}
END_TEST

/* Looks that a thread makes which waits for ever and looks every step_us. */
static unsigned looks(cr_lookout *l, uint64_t now, uint64_t step_us) {
    cr_look look;
    unsigned count = 0;
    if (!cr_lookout_begin(l, &look, now)) return 0;
    do {
        count++;
        now += step_us * US;
    } while (cr_look_on(&look, now));
    cr_lookout_end(l, &look);
    return count;
}

START_TEST(a_long_wait_costs_one_window) {
    cr_seats seats;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = 50 * US};
    ck_assert_uint_eq(looks(&l, MS, 1), 0);
    for (int i = 0; i < 4; i++) cr_lookout_waited(&l, 45 * US, MS);
    ck_assert_uint_eq(looks(&l, MS, 1), 50);
    cr_lookout_waited(&l, 10 * MS, 11 * MS);
    ck_assert_uint_eq(looks(&l, 11 * MS, 1), 0);
    ck_assert_int_eq(atomic_load(&seats.free), 1);
}
END_TEST

START_TEST(a_late_look_stops_looking_for_a_while) {
    cr_seats seats;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = 500 * US, .window_ns = 500 * US};
    ck_assert_uint_eq(looks(&l, MS, 60), 9); /* just not late: the window decides */
    ck_assert_uint_eq(l.window_ns, 500 * US);
    ck_assert_uint_eq(looks(&l, MS, 61), 1);
    ck_assert_uint_eq(l.window_ns, 0);
    cr_lookout_waited(&l, 20 * US, 101 * MS + 60 * US);
    ck_assert_uint_eq(l.window_ns, 0);
    cr_lookout_waited(&l, 20 * US, 101 * MS + 61 * US);
    ck_assert_uint_eq(l.window_ns, 10 * US);
}
END_TEST

START_TEST(who_is_disturbed_again_looks_ever_more_rarely) {
    cr_seats seats;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = 50 * US};
    static const uint64_t calm_ms[] = {100, 200, 400, 800, 1000, 1000};
    uint64_t now = MS;
    for (size_t i = 0; i < sizeof calm_ms / sizeof *calm_ms; i++) {
        l.window_ns = 50 * US;
        ck_assert_uint_eq(looks(&l, now, 100), 1);
        ck_assert_uint_eq(l.calm_until_ns, now + 100 * US + calm_ms[i] * MS);
        now = l.calm_until_ns;
    }
    for (uint64_t calm = 1000 * MS; calm >= 100 * MS; calm /= 2) {
        l.window_ns = 50 * US;
        ck_assert_uint_eq(l.calm_ns, calm);
        ck_assert_uint_eq(looks(&l, now, 10), 5);
    }
}
END_TEST

START_TEST(what_is_expected_is_looked_for) {
    cr_seats seats;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = 50 * US};
    cr_lookout_waited(&l, 900 * US, MS);
    cr_lookout_expect(&l, MS);
    ck_assert_uint_eq(looks(&l, MS, 1), 50);
    ck_assert_uint_eq(looks(&l, MS, 70), 1);
    cr_lookout_expect(&l, MS + 100 * US); /* but not where others want the core */
    ck_assert_uint_eq(looks(&l, MS + 100 * US, 1), 0);
}
END_TEST

/* What was known before each wait, by the waits before, of three kinds of which two have one place. */
START_TEST(waits_of_a_kind_are_foreseen) {
    enum { A = 1, B = 2, C = A + CR_FORESIGHT_KINDS };
    static const struct {
        uint64_t kind, known_us, took_us;
    } waits[] = {{A, 0, 900},    {A, 0, 950},     {A, 900, 1051}, {A, 0, 1000}, /* 101 us apart */
                 {A, 1000, 990}, {B, 0, 50},      {B, 0, 50},     {B, 50, 60},  {A, 990, 5000},
                 {A, 0, 5000},   {A, 5000, 5100}, {C, 0, 5100},   {A, 0, 5100}, {A, 0, 5100},
                 {A, 5100, 0},   {A, 0, 10},      {A, 0, 10},     {A, 10, 10}};
    cr_foresight f = {0};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        ck_assert_msg(cr_foresight_of(&f, waits[i].kind) == waits[i].known_us * US, "wait %zu: %llu ns", i,
                      (unsigned long long)cr_foresight_of(&f, waits[i].kind));
        cr_foresight_took(&f, waits[i].kind, waits[i].took_us * US);
    }
    cr_foresight_overslept(&f, A, 300 * US);
    ck_assert_uint_eq(cr_foresight_of(&f, A), 300 * US);
}
END_TEST

START_TEST(nobody_may_look_without_a_seat_or_where_others_want_the_core) {
    cr_seats seats;
    cr_look look;
    cr_seats_init(&seats, 2);
    cr_lookout l = {.seats = &seats, .most_ns = 50 * US}, never = {.seats = &seats};
    ck_assert(cr_lookout_may(&l, MS));
    ck_assert(!cr_lookout_may(&never, MS));
    cr_lookout_expect(&l, MS);
    ck_assert(cr_lookout_begin(&l, &look, MS));
    ck_assert(!cr_lookout_may(&l, MS));
    ck_assert(!cr_look_on(&look, MS + 100 * US));
    cr_lookout_end(&l, &look);
    ck_assert(!cr_lookout_may(&l, MS + 200 * US));
    ck_assert(cr_lookout_may(&l, 102 * MS));
}
END_TEST

START_TEST(seats_leave_a_core) {
    static const struct {
        uint32_t cores;
        int seats;
    } cases[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 3}, {16, 15}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        cr_seats seats;
        cr_seats_init(&seats, cases[c].cores);
        cr_lookout l = {.seats = &seats, .most_ns = 50 * US, .window_ns = 50 * US};
        cr_look look[16];
        int taken = 0;
        while (taken < 16 && cr_lookout_begin(&l, &look[taken], 0)) taken++;
        ck_assert_int_eq(taken, cases[c].seats);
        if (!taken) continue;
        cr_lookout_end(&l, &look[0]); /* a seat given back is there again */
        ck_assert(cr_lookout_begin(&l, &look[0], 0));
        ck_assert(!cr_lookout_begin(&l, &look[0], 0));
    }
}
END_TEST

CR_CHECK_MAIN("lookout") {
    tcase_add_loop_test(tc, window_follows_waits, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tc, a_long_wait_costs_one_window);
    tcase_add_test(tc, a_late_look_stops_looking_for_a_while);
    tcase_add_test(tc, who_is_disturbed_again_looks_ever_more_rarely);
    tcase_add_test(tc, what_is_expected_is_looked_for);
    tcase_add_test(tc, waits_of_a_kind_are_foreseen);
    tcase_add_test(tc, nobody_may_look_without_a_seat_or_where_others_want_the_core);
    tcase_add_test(tc, seats_leave_a_core);
}
