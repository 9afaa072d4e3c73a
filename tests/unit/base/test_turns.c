/* Turns of clients in one line: who is next, what a turn is worth, short and large, lines that are wanted in part, and more
 * clients than there are places. */
#include <check.h>
#include <stdlib.h>

#include "base/turns.h"
#include "tests/unit/check_main.h"

enum { MIB = 1024 * 1024, MOST = 8192 };

typedef struct task {
    cr_waiting waiting;
    uint64_t user, client;
    unsigned asked;
} task;

static cr_turns *turns;
static task tasks[MOST];
static unsigned count;

static void setup(void) {
    count = 0;
    turns = cr_turns_new();
    ck_assert_ptr_nonnull(turns);
}

static void teardown(void) { cr_turns_free(turns); }

static task *put_of(uint64_t user, uint64_t client, bool large) {
    task *t = &tasks[count++];
    ck_assert_uint_le(count, MOST);
    *t = (task){.user = user, .client = client};
    cr_waiting_init(&t->waiting);
    cr_turns_put(turns, user, client, &t->waiting, large);
    return t;
}

/* Where nothing else is said, all clients are of one user: to them it must be as if there were no users. */
static task *put(uint64_t client, bool large) { return put_of(0, client, large); }

static task *task_of(cr_waiting *w) { return w ? cr_container(w, task, waiting) : NULL; }

/* The client that is served next, with all of one task. 0: nobody. */
static uint64_t serve(uint64_t bytes) {
    task *t = task_of(cr_turns_next(turns));
    if (!t) return 0;
    cr_waiting_leave(&t->waiting);
    cr_turns_charge(turns, &t->waiting, bytes);
    return t->client;
}

START_TEST(one_behind_thousands_is_next) {
    ck_assert_ptr_null(cr_turns_next(turns));
    for (int i = 0; i < 3840; i++) put(1, false);
    for (int i = 0; i < 100; i++) ck_assert_uint_eq(serve(MIB), 1);
    put(2, false);
    ck_assert_uint_eq(serve(4096), 2);
    for (int i = 100; i < 3840; i++) ck_assert_uint_eq(serve(MIB), 1);
    ck_assert_uint_eq(serve(MIB), 0);
}
END_TEST

/* Who comes back each time that nothing of it is left goes first for one turn, and then has its place like everybody. */
START_TEST(who_keeps_coming_back_goes_first_for_one_turn) {
    unsigned in_a_row = 0;
    for (int i = 0; i < 100; i++) put(1, false);
    ck_assert_uint_eq(serve(MIB), 1); /* its own first turn */
    for (;; in_a_row++) {
        put(2, false);
        if (serve(MIB / 8) != 2) break;
    }
    ck_assert_uint_eq(in_a_row, 8);
    unsigned served[3] = {0};
    for (int i = 0; i < 60; i++) {
        put(2, false);
        served[serve(MIB)]++;
    }
    ck_assert_uint_eq(served[0], 0);
    ck_assert_uint_ge(served[1], 29);
    ck_assert_uint_ge(served[2], 29);
}
END_TEST

/* By bytes, whatever a single piece is. */
START_TEST(clients_get_the_same_bytes) {
    static const uint64_t piece[] = {0, 4 * MIB, 64 * 1024, MIB + 12345};
    uint64_t got[4] = {0};
    for (int i = 0; i < 12; i++) put(1 + (uint64_t)i % 3, i % 2);
    for (int i = 0; i < 3000; i++) {
        task *t = task_of(cr_turns_next(turns));
        got[t->client] += piece[t->client];
        cr_turns_charge(turns, &t->waiting, piece[t->client]); /* it stays */
        for (int a = 1; a < 4; a++)
            for (int b = 1; b < 4; b++) ck_assert_uint_le(got[a], got[b] + 6ull * MIB);
    }
}
END_TEST

START_TEST(what_costs_nothing_costs_something) {
    for (int i = 0; i < 1000; i++) put(1, false);
    ck_assert_uint_eq(serve(MIB), 1);
    put(2, false);
    put(2, false);
    ck_assert_uint_eq(serve(MIB), 2);
    unsigned before = 0;
    while (serve(0) == 1) before++;
    ck_assert_uint_le(before, MIB / CR_TURN_LEAST_BYTES);
}
END_TEST

/* What is charged later counts like the rest, and whom nothing waits for owes nothing. */
START_TEST(a_later_charge_counts) {
    cr_turns_charge_more(turns, 0, 1, MIB);
    for (int i = 0; i < 10; i++) put_of(1, 1, false);
    for (int i = 0; i < 10; i++) put_of(2, 2, false);
    ck_assert_uint_eq(serve(0), 1);
    cr_turns_charge_more(turns, 1, 2, MIB); /* nobody's */
    ck_assert_uint_eq(serve(0), 1);
    cr_turns_charge_more(turns, 1, 1, 4 * MIB);
    for (int i = 0; i < 3; i++) ck_assert_uint_eq(serve(MIB), 2);
}
END_TEST

START_TEST(one_in_nine_is_large) {
    task *large = put(1, true), *other = put(1, true);
    unsigned place = 0;
    for (int i = 0; i < 100; i++) put(1, false);
    for (int i = 0; i < 27; i++) {
        task *t = task_of(cr_turns_next(turns));
        ck_assert_int_eq(t->waiting.large, i % 9 == 8);
        if (t->waiting.large) ck_assert_ptr_eq(t, place++ % 2 ? other : large); /* by turns */
        if (!t->waiting.large) cr_waiting_leave(&t->waiting);
        cr_turns_charge(turns, &t->waiting, 1000);
    }
    while (!task_of(cr_turns_next(turns))->waiting.large) ck_assert_uint_eq(serve(1000), 1);
    cr_waiting_leave(&other->waiting);
    cr_waiting_leave(&other->waiting);
    ck_assert_ptr_eq(cr_turns_next(turns), &large->waiting);
}
END_TEST

/* A debt made alone is not held against a client when others come; one made beside others is. */
START_TEST(debts) {
    task *a = put(1, true);
    cr_turns_charge(turns, cr_turns_next(turns), 1ull << 60);
    ck_assert_ptr_eq(cr_turns_next(turns), &a->waiting);
    task *b = put(2, true);
    ck_assert_ptr_eq(cr_turns_next(turns), &b->waiting);
    cr_turns_charge(turns, &b->waiting, MIB);
    ck_assert_ptr_eq(cr_turns_next(turns), &a->waiting);
    cr_turns_charge(turns, &a->waiting, 1ull << 60);
    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_eq(cr_turns_next(turns), &b->waiting);
        cr_turns_charge(turns, &b->waiting, MIB);
    }
    cr_waiting_leave(&b->waiting);
    ck_assert_ptr_eq(cr_turns_next(turns), &a->waiting);
}
END_TEST

static uint64_t unwanted, passed;

static cr_choice ask(void *argument, cr_waiting *w) {
    task *t = task_of(w);
    t->asked++;
    *(task **)argument = t;
    if (t->client == passed) return CR_CHOICE_PASS_CLIENT;
    return t->client == unwanted ? CR_CHOICE_PASS : CR_CHOICE_TAKE;
}

static uint64_t picked(uint64_t bytes) {
    task *last = NULL, *t = task_of(cr_turns_pick(turns, ask, &last));
    if (!t) return 0;
    ck_assert_ptr_eq(t, last);
    cr_turns_charge(turns, &t->waiting, bytes);
    return t->client;
}

START_TEST(some_are_not_wanted) {
    for (int i = 0; i < 30; i++) put(1 + (uint64_t)i % 3, false);
    unwanted = 1;
    passed = 2;
    ck_assert_uint_eq(picked(MIB), 3);
    for (unsigned i = 0; i < count; i++)
        ck_assert_uint_eq(tasks[i].asked, tasks[i].client == 1 || i == 1 || i == 2 ? 1 : 0);
    for (int i = 0; i < 10; i++) ck_assert_uint_eq(picked(MIB), 3);
    unwanted = passed = 0;
    uint64_t got[4] = {0};
    for (int i = 0; i < 300; i++) {
        uint64_t bytes = i % 3 ? MIB : 5 * MIB, client;
        ck_assert_uint_ne(client = picked(bytes), 0);
        got[client] += bytes;
    }
    for (int a = 1; a < 4; a++)
        for (int b = 1; b < 4; b++) ck_assert_uint_le(got[a], got[b] + 12ull * MIB);
    unwanted = 1;
    for (unsigned i = 0; i < count; i++)
        if (tasks[i].client != 1) cr_waiting_leave(&tasks[i].waiting);
    ck_assert_uint_eq(picked(MIB), 0);
}
END_TEST

/* Some who each come back when they were served, one at a time, keep nobody from a turn. */
START_TEST(who_comes_and_goes_keeps_nobody_waiting) {
    uint64_t got[5] = {0};
    unwanted = passed = 0;
    put(1, true);
    for (uint64_t client = 2; client < 5; client++) put(client, false);
    for (int i = 0; i < 1000; i++) {
        task *last = NULL, *t = task_of(cr_turns_pick(turns, ask, &last));
        got[t->client] += 4 * MIB;
        if (t->client > 1) cr_waiting_leave(&t->waiting);
        cr_turns_charge(turns, &t->waiting, 4 * MIB);
        if (t->client > 1) ck_assert_ptr_nonnull(cr_turns_pick(turns, ask, &last)); /* before it is back */
        if (t->client > 1) cr_turns_put(turns, 0, t->client, &t->waiting, false);
    }
    for (int client = 2; client < 5; client++) ck_assert_uint_ge(got[1] + 32ull * MIB, got[client]);
}
END_TEST

static uint64_t order[64];
static unsigned taken;

static bool take(void *argument, cr_waiting *w) {
    unsigned *most = argument;
    order[taken++] = task_of(w)->client;
    cr_waiting_leave(w);
    cr_turns_charge(turns, w, MIB / 2);
    return taken < *most;
}

/* Into a pack: a turn of each, then what is left. */
START_TEST(following_goes_by_turns) {
    static const uint64_t expected[] = {1, 1, 2, 2, 3, 3, 1, 1, 1, 2, 3};
    unsigned most = 11;
    for (int client = 1; client < 4; client++)
        for (int i = 0; i < 5; i++) put((uint64_t)client, i == 1);
    taken = 0;
    cr_turns_follow(turns, take, &most);
    ck_assert_uint_eq(taken, most);
    for (unsigned i = 0; i < 6; i++) ck_assert_uint_eq(order[i], expected[i]);
    for (unsigned i = 6; i < 9; i++) ck_assert_uint_eq(order[i], 1);
    ck_assert_uint_eq(order[9], 2);
}
END_TEST

START_TEST(alone_until_another_comes_and_for_a_while_after) {
    task *a = put(1, true);
    ck_assert(cr_turns_alone(turns, &a->waiting));
    cr_turns_charge(turns, cr_turns_next(turns), MIB);
    ck_assert(cr_turns_alone(turns, &a->waiting));
    put(2, false);
    ck_assert(!cr_turns_alone(turns, &a->waiting));
    ck_assert_uint_eq(serve(1), 2);
    ck_assert(!cr_turns_alone(turns, &a->waiting));
    unsigned until = 0;
    for (; !cr_turns_alone(turns, &a->waiting); until++) cr_turns_charge(turns, cr_turns_next(turns), MIB);
    ck_assert_uint_gt(until, 10);
    ck_assert_uint_lt(until, 1000);
}
END_TEST

/* More clients than there are places: all are served, and what waits is served once. */
START_TEST(more_clients_than_places) {
    static bool served[MOST + 1];
    for (uint64_t client = 1; client <= MOST; client++) put(client, client % 2);
    for (unsigned i = 0; i < MOST; i++) {
        uint64_t client = serve(MIB);
        ck_assert_uint_ne(client, 0);
        ck_assert(!served[client]);
        served[client] = true;
    }
    ck_assert_uint_eq(serve(MIB), 0);
    count = 0;
    put(5, false);
    ck_assert_uint_eq(serve(MIB), 5);
}
END_TEST

enum { FORKS = 10 };

/* A number as drawn at random. Small ones in a row share a set of the table for one factor in a thousand, and so their turns. */
static uint64_t drawn(uint64_t i) {
    const uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    return (x ^ x >> 31) * 0xbf58476d1ce4e5b9u ^ x >> 17;
}

/* What each user got in so many steps: user 1 has FORKS clients in line, user 2 one. */
static void share(unsigned steps, task *(*next)(void), uint64_t got[3]) {
    for (uint64_t client = 1; client <= FORKS; client++)
        for (int i = 0; i < 4; i++) put_of(1, drawn(client), i % 2);
    for (int i = 0; i < 4; i++) put_of(2, drawn(FORKS + 1), i % 2);
    for (unsigned i = 0; i < steps; i++) {
        task *t = next();
        uint64_t bytes = i % 3 ? MIB : 4 * MIB;
        ck_assert_ptr_nonnull(t);
        got[t->user] += bytes;
        cr_turns_charge(turns, &t->waiting, bytes);
    }
}

static task *next_task(void) { return task_of(cr_turns_next(turns)); }

static task *next_pick(void) {
    task *last = NULL, *t = task_of(cr_turns_pick(turns, ask, &last));
    ck_assert_ptr_eq(t, last);
    return t;
}

START_TEST(who_forks_gains_nothing) {
    uint64_t got[3] = {0};
    unwanted = passed = 0;
    share(3000, _i ? next_pick : next_task, got);
    ck_assert_uint_le(got[1], got[2] + 16ull * MIB);
    ck_assert_uint_le(got[2], got[1] + 16ull * MIB);
    for (unsigned i = 0; i < count; i++) cr_waiting_leave(&tasks[i].waiting);
    ck_assert_ptr_null(cr_turns_next(turns));
}
END_TEST

/* A client that is new goes first among those of its user, and no further: the other user's turn comes between. */
START_TEST(new_clients_of_one_user_do_not_go_first) {
    for (int i = 0; i < 100; i++) put_of(2, 1, false);
    ck_assert_uint_eq(serve(MIB), 1); /* its own first turn */
    unsigned others = 0;
    for (uint64_t client = 100; client < 200; client++) {
        put_of(1, client, false);
        others += serve(MIB) == 1;
    }
    ck_assert_uint_ge(others, 45);
    ck_assert_uint_le(others, 55);
}
END_TEST

/* Into a pack: a turn of each user, then what is left. */
START_TEST(following_goes_by_users) {
    unsigned most = 12, first[3] = {0};
    for (uint64_t client = 1; client < 4; client++)
        for (int i = 0; i < 4; i++) put_of(1, client, false);
    for (int i = 0; i < 4; i++) put_of(2, 4, false);
    taken = 0;
    cr_turns_follow(turns, take, &most);
    for (int i = 0; i < 4; i++) first[order[i] == 4 ? 2 : 1]++;
    ck_assert_uint_eq(first[1], 2);
    ck_assert_uint_eq(first[2], 2);
}
END_TEST

/* Users and clients come and go, by every way to ask. What waits is served once, and nothing is lost. */
START_TEST(random_users) {
    enum { AT_ONCE = 64, STEPS = 20000 };
    uint64_t state = 77 + (uint64_t)_i, served = 0;
    unwanted = passed = 0;
    for (int step = 0; step < STEPS; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t r = state >> 33, what = r % 8;
        task *t = &tasks[r / 8 % AT_ONCE];
        if (what < 4 && (!t->waiting.link.next || !cr_waiting_in_line(&t->waiting))) {
            *t = (task){.user = r / 512 % 5, .client = 1 + r / 4096 % 7};
            cr_waiting_init(&t->waiting);
            cr_turns_put(turns, t->user, t->client, &t->waiting, r & 1 << 20);
            continue;
        }
        unsigned in_line = 0;
        for (int i = 0; i < AT_ONCE; i++)
            in_line += tasks[i].waiting.link.next && cr_waiting_in_line(&tasks[i].waiting);
        t = what % 2 ? next_task() : next_pick();
        ck_assert_int_eq(t != NULL, in_line > 0);
        if (!t) continue;
        ck_assert(cr_waiting_in_line(&t->waiting));
        if (what < 6) cr_waiting_leave(&t->waiting);
        cr_turns_charge(turns, &t->waiting, r % (8 * MIB));
        served++;
    }
    ck_assert_uint_gt(served, STEPS / 4);
}
END_TEST

/* More users than there are places, each with a client of its own: all are served, and what waits is served once. */
START_TEST(more_users_than_places) {
    static bool served[MOST + 1];
    for (uint64_t client = 1; client <= MOST; client++) put_of(client, client, client % 2);
    for (unsigned i = 0; i < MOST; i++) {
        uint64_t client = serve(MIB);
        ck_assert_uint_ne(client, 0);
        ck_assert(!served[client]);
        served[client] = true;
    }
    ck_assert_uint_eq(serve(MIB), 0);
}
END_TEST

CR_CHECK_MAIN("base/turns") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_behind_thousands_is_next);
    tcase_add_test(tc, who_keeps_coming_back_goes_first_for_one_turn);
    tcase_add_test(tc, clients_get_the_same_bytes);
    tcase_add_test(tc, what_costs_nothing_costs_something);
    tcase_add_test(tc, a_later_charge_counts);
    tcase_add_test(tc, one_in_nine_is_large);
    tcase_add_test(tc, debts);
    tcase_add_test(tc, some_are_not_wanted);
    tcase_add_test(tc, who_comes_and_goes_keeps_nobody_waiting);
    tcase_add_test(tc, following_goes_by_turns);
    tcase_add_test(tc, alone_until_another_comes_and_for_a_while_after);
    tcase_add_test(tc, more_clients_than_places);
    tcase_add_loop_test(tc, who_forks_gains_nothing, 0, 2);
    tcase_add_test(tc, new_clients_of_one_user_do_not_go_first);
    tcase_add_test(tc, following_goes_by_users);
    tcase_add_loop_test(tc, random_users, 0, 4);
    tcase_add_test(tc, more_users_than_places);
}
