/* Timers: order, moving, stopping, what a firing timer may do, and a random run against a plain model. */
#include <stdlib.h>
#include <string.h>

#include "base/timers.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MANY = 300 };

typedef struct node {
    cr_timer timer;
    int id;
} node;

static cr_timers timers;
static node nodes[MANY];
static int fired[MANY * 4], fired_count;

static void note(cr_timer *timer) { fired[fired_count++] = ((node *)(void *)timer)->id; }

static void setup(void) {
    cr_timers_init(&timers);
    fired_count = 0;
    memset(nodes, 0, sizeof nodes);
    for (int i = 0; i < MANY; i++) nodes[i] = (node){.timer = {.fire = note}, .id = i};
}

static void teardown(void) { cr_timers_free(&timers); }

START_TEST(fire_in_order_when_due) {
    static const uint64_t when[] = {50, 10, 40, 10, 30, 20};
    ck_assert_uint_eq(cr_timers_next(&timers), UINT64_MAX);
    for (int i = 0; i < 6; i++) ck_assert(cr_timer_set(&timers, &nodes[i].timer, when[i]));
    ck_assert_uint_eq(cr_timers_next(&timers), 10);
    cr_timers_run(&timers, 9, SIZE_MAX);
    ck_assert_int_eq(fired_count, 0);
    cr_timers_run(&timers, 30, SIZE_MAX);
    ck_assert_int_eq(fired_count, 4);
    ck_assert_int_eq(fired[0] + fired[1], 1 + 3);
    ck_assert_int_eq(fired[2], 5);
    ck_assert_int_eq(fired[3], 4);
    ck_assert_uint_eq(cr_timers_next(&timers), 40);
    cr_timers_run(&timers, UINT64_MAX - 1, SIZE_MAX);
    ck_assert_int_eq(fired[4], 2);
    ck_assert_int_eq(fired[5], 0);
    ck_assert_uint_eq(cr_timers_next(&timers), UINT64_MAX);
}
END_TEST

START_TEST(a_timer_can_be_moved_and_stopped) {
    cr_timer_set(&timers, &nodes[0].timer, 10);
    cr_timer_set(&timers, &nodes[1].timer, 20);
    cr_timer_set(&timers, &nodes[0].timer, 30);
    ck_assert_uint_eq(timers.count, 2);
    ck_assert_uint_eq(cr_timers_next(&timers), 20);
    cr_timer_stop(&timers, &nodes[1].timer);
    cr_timer_stop(&timers, &nodes[1].timer);
    cr_timer_stop(&timers, &nodes[2].timer);
    cr_timers_run(&timers, 100, SIZE_MAX);
    ck_assert_int_eq(fired_count, 1);
    ck_assert_int_eq(fired[0], 0);
    cr_timer_stop(&timers, &nodes[0].timer);
    ck_assert_uint_eq(timers.count, 0);
}
END_TEST

static void again(cr_timer *timer) {
    note(timer);
    if (fired_count < 3) cr_timer_set(&timers, timer, timer->when_ms + 10);
    cr_timer_stop(&timers, &nodes[1].timer);
}

START_TEST(a_firing_timer_may_set_itself_and_stop_others) {
    nodes[0].timer.fire = again;
    cr_timer_set(&timers, &nodes[0].timer, 10);
    cr_timer_set(&timers, &nodes[1].timer, 10);
    cr_timer_stop(&timers, &nodes[1].timer);
    cr_timer_set(&timers, &nodes[1].timer, 11);
    cr_timers_run(&timers, 20, SIZE_MAX);
    ck_assert_int_eq(fired_count, 2);
    ck_assert_int_eq(fired[0] + fired[1], 0);
    cr_timers_run(&timers, 30, SIZE_MAX);
    ck_assert_int_eq(fired_count, 3);
    ck_assert_uint_eq(timers.count, 0);
}
END_TEST

START_TEST(random_operations_agree_with_a_model) {
    uint64_t state = 1, model[MANY], now = 0;
    for (int i = 0; i < MANY; i++) model[i] = UINT64_MAX;
    for (int step = 0; step < 20000; step++) {
        uint64_t r = random_next(&state);
        int i = (int)(r % MANY);
        if (r >> 32 & 1) {
            model[i] = now + (r >> 40) % 1000;
            ck_assert(cr_timer_set(&timers, &nodes[i].timer, model[i]));
        } else if (r >> 33 & 1) {
            model[i] = UINT64_MAX;
            cr_timer_stop(&timers, &nodes[i].timer);
        } else {
            now += (r >> 50) % 8;
            fired_count = 0;
            cr_timers_run(&timers, now, SIZE_MAX);
            uint64_t last = 0;
            for (int f = 0; f < fired_count; f++) {
                ck_assert_uint_le(model[fired[f]], now);
                ck_assert_uint_ge(model[fired[f]], last);
                last = model[fired[f]];
                model[fired[f]] = UINT64_MAX;
            }
        }
        uint64_t next = UINT64_MAX;
        for (int k = 0; k < MANY; k++) next = model[k] < next ? model[k] : next;
        ck_assert_uint_eq(cr_timers_next(&timers), next);
    }
}
END_TEST

START_TEST(without_memory_the_timer_is_not_set_and_the_others_stand) {
    int set = 0;
    while (timers.count < timers.room || !set) cr_timer_set(&timers, &nodes[set].timer, (uint64_t)set + 5), set++;
    fail_allocation(1);
    ck_assert(!cr_timer_set(&timers, &nodes[set].timer, 1));
    ck_assert_uint_eq(nodes[set].timer.slot, 0);
    ck_assert_uint_eq(cr_timers_next(&timers), 5);
    ck_assert(cr_timer_set(&timers, &nodes[set].timer, 1));
    cr_timers_run(&timers, 1000, SIZE_MAX);
    ck_assert_int_eq(fired_count, set + 1);
    ck_assert_int_eq(fired[0], set);
}
END_TEST

CR_CHECK_MAIN("base/timers") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, fire_in_order_when_due);
    tcase_add_test(tc, a_timer_can_be_moved_and_stopped);
    tcase_add_test(tc, a_firing_timer_may_set_itself_and_stop_others);
    tcase_add_test(tc, random_operations_agree_with_a_model);
    tcase_add_test(tc, without_memory_the_timer_is_not_set_and_the_others_stand);
}
