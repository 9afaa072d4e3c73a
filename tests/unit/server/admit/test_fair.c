/* Who may hold how much beside whom, and whose idle connection ends for another user. */
#include <stdlib.h>

#include "server/admit/admission.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

#define ALONE UINT64_MAX

static cr_admission a;
static cr_peer one;
static cr_error error;

static void setup(void) {
    one = (cr_peer){.owner = 7};
    a = (cr_admission){.max_files = 4096, .max_calls_per_connection = 4096};
    cr_admit_init(&a);
}

static void teardown(void) {
    ck_assert(cr_list_empty(&a.by_age));
    for (int i = 0; i < CR_USES; i++) ck_assert_uint_eq(a.used[i], 0);
    for (int i = 0; i < CR_RANKS; i++) ck_assert(cr_list_empty(&a.ranks[i]));
    cr_admit_free(&a);
}

/* The rule, at limits large and small: admission.h has the formula. */
START_TEST(the_rule) {
    static const struct {
        uint64_t most;
        uint64_t others; /* what they hold; ALONE: there are none */
        uint64_t stranger, own;
        cr_use use;
    } rows[] = {
        {0, ALONE, 0, 0, CR_USE_calls},
        {0, 0, 0, 0, CR_USE_calls},
        {1, ALONE, 1, 1, CR_USE_calls},
        {1, 0, 1, 1, CR_USE_calls},
        {1, 1, 0, 0, CR_USE_calls},
        {2, ALONE, 1, 1, CR_USE_calls},
        {2, 1, 1, 1, CR_USE_calls},
        {4, ALONE, 3, 3, CR_USE_calls},
        {4, 3, 1, 1, CR_USE_calls},
        {8, ALONE, 6, 7, CR_USE_calls}, /* the last of 8 is the own user's */
        {8, 6, 1, 1, CR_USE_calls},
        {8, 7, 0, 1, CR_USE_calls},
        {8, 8, 0, 0, CR_USE_calls},
        {64, ALONE, 49, 56, CR_USE_calls},
        {4096, ALONE, 3528, 3584, CR_USE_calls},
        {4096, 0, 2016, 2048, CR_USE_calls},
        {4096, 3528, 252, 284, CR_USE_calls},
        {4096, 4031, 1, 33, CR_USE_calls},
        {4096, 4032, 0, 32, CR_USE_calls},
        {4096, 4097, 0, 0, CR_USE_calls}, /* more than there are: those that ask about the daemon always come in */
        {1, ALONE, 1, 1, CR_USE_connections},
        {2, ALONE, 1, 1, CR_USE_connections},
        {3, ALONE, 2, 2, CR_USE_connections},
        {48, ALONE, 21, 24, CR_USE_connections},
        {768, ALONE, 368, 384, CR_USE_connections},
        {768, 368, 184, 200, CR_USE_connections},
        {768, 735, 1, 17, CR_USE_connections},
        {768, 736, 0, 16, CR_USE_connections},
        {64, ALONE, 49, 56, CR_USE_descriptors},
        {64, 49, 4, 8, CR_USE_descriptors},
        {1ull << 52, ALONE, 7ull << 49, 7ull << 49, CR_USE_bytes},
        {1ull << 52, 7ull << 49, 1ull << 48, 1ull << 48, CR_USE_bytes},
        {1000, ALONE, 875, 875, CR_USE_state_bytes},
        {1000, 875, 63, 63, CR_USE_state_bytes},
        {4096, ALONE, 3584, 3584, CR_USE_regions},
        {4096, 3584, 256, 256, CR_USE_regions},
        {1000, 1, 500, 500, CR_USE_region_bytes},
    };
    cr_peer stranger = {.owner = 8}, own = {.owner = 9, .own = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool alone = rows[i].others == ALONE;
        a.most[rows[i].use] = rows[i].most;
        if (!alone) {
            assert_ok(cr_admit_join(&a, &one, &error), error);
            a.used[rows[i].use] = one.user->used[rows[i].use] = rows[i].others;
        }
        assert_ok(cr_admit_join(&a, &stranger, &error), error);
        ck_assert_msg(cr_admit_share(&a, stranger.user, rows[i].use) == rows[i].stranger, "row %zu, stranger: %llu", i,
                      (unsigned long long)cr_admit_share(&a, stranger.user, rows[i].use));
        cr_admit_leave(&a, &stranger);
        assert_ok(cr_admit_join(&a, &own, &error), error);
        ck_assert_msg(cr_admit_share(&a, own.user, rows[i].use) == rows[i].own, "row %zu, own: %llu", i,
                      (unsigned long long)cr_admit_share(&a, own.user, rows[i].use));
        cr_admit_leave(&a, &own);
        if (alone) continue;
        a.used[rows[i].use] = one.user->used[rows[i].use] = 0;
        cr_admit_leave(&a, &one);
    }
}
END_TEST

/* Each user who comes takes all that it gets. As long as anything is left the next one gets some, and the daemon's own user always does. */
START_TEST(whoever_comes_finds_something) {
    enum { USERS = 24, MOST = 4096 };
    static const uint64_t limits[] = {1, 2, 3, 8, 9, 64, 500, MOST};
    static cr_peer peers[USERS];
    static cr_ticket tickets[MOST];
    const uint64_t most = limits[_i];
    uint64_t taken = 0, kept = most / 8 < 64 ? most / 8 : 64;
    cr_peer own = {.owner = 99, .own = true};
    cr_ticket ticket;
    a.most[CR_USE_calls] = most;
    for (int u = 0; u < USERS; u++) {
        const bool some = taken < most - kept;
        const uint64_t before = taken;
        peers[u] = (cr_peer){.owner = (uint64_t)u + 1};
        assert_ok(cr_admit_join(&a, &peers[u], &error), error);
        while (cr_admit_call(&a, &peers[u], 0, &tickets[taken], &error) == CR_OK) taken++;
        ck_assert_int_eq(error.code, CR_RESOURCE_EXHAUSTED);
        ck_assert_int_eq(taken > before, some);
    }
    ck_assert_uint_eq(taken, most - kept);
    ck_assert(cr_admit_full(&a, CR_USE_calls));
    assert_ok(cr_admit_join(&a, &own, &error), error);
    ck_assert_int_eq(cr_admit_call(&a, &own, 0, &ticket, &error) == CR_OK, kept > 0);
    if (kept) cr_admit_over(&a, &ticket);
    cr_admit_leave(&a, &own);
    while (taken) cr_admit_over(&a, &tickets[--taken]);
    for (int u = 0; u < USERS; u++) cr_admit_leave(&a, &peers[u]);
}
END_TEST

START_TEST(a_newcomer_finds_room) {
    cr_peer stranger = {.owner = 8}, own = {.owner = 9, .own = true};
    cr_ticket mine[6], theirs[2], last;
    assert_ok(cr_admit_join(&a, &one, &error), error);
    a.most[CR_USE_calls] = 8;
    for (int i = 0; i < 6; i++) assert_ok(cr_admit_call(&a, &one, 0, &mine[i], &error), error);
    assert_fails(cr_admit_call(&a, &one, 0, &theirs[0], &error), CR_RESOURCE_EXHAUSTED, error,
                 "calls: 1 more beside 6 of this user exceed 6, all that one user may hold of max_jobs, 8; wait for "
                 "answers");
    assert_ok(cr_admit_join(&a, &stranger, &error), error);
    assert_ok(cr_admit_call(&a, &stranger, 0, &theirs[0], &error), error);
    assert_fails(cr_admit_call(&a, &stranger, 0, &theirs[1], &error), CR_RESOURCE_EXHAUSTED, error,
                 "calls: 1 more beside 7 of all users need the last 1 of max_jobs, 8, which are for the daemon's own "
                 "user; wait for answers");
    assert_ok(cr_admit_join(&a, &own, &error), error);
    assert_ok(cr_admit_call(&a, &own, 0, &last, &error), error);
    assert_fails(cr_admit_call(&a, &own, 0, &theirs[1], &error), CR_RESOURCE_EXHAUSTED, error,
                 "calls: 1 more beside 8 of all users exceed max_jobs, 8; wait for answers");
    cr_admit_over(&a, &last);
    cr_admit_leave(&a, &own);
    /* Nothing new for the first before the rule holds, and the newcomer finds what comes back. */
    cr_admit_over(&a, &mine[0]);
    assert_fails(
        cr_admit_call(&a, &one, 0, &mine[0], &error), CR_RESOURCE_EXHAUSTED, error,
        "calls: 1 more beside 5 of this user exceed 3, half of what others leave free of max_jobs, 8; wait for "
        "answers");
    cr_admit_over(&a, &mine[1]);
    assert_ok(cr_admit_call(&a, &stranger, 0, &theirs[1], &error), error);
    /* A call that outlives its connection still counts as its user's. */
    cr_admit_over(&a, &theirs[1]);
    cr_admit_answered(&theirs[0]);
    cr_admit_leave(&a, &stranger);
    ck_assert_uint_eq(a.users.count, 2);
    assert_fails(cr_admit_call(&a, &one, 0, &mine[0], &error), CR_RESOURCE_EXHAUSTED, error, "free of max_jobs");
    cr_admit_over(&a, &theirs[0]);
    ck_assert_uint_eq(a.users.count, 1);
    assert_ok(cr_admit_call(&a, &one, 0, &mine[0], &error), error);
    assert_ok(cr_admit_call(&a, &one, 0, &mine[1], &error), error);
    for (int i = 0; i < 6; i++) cr_admit_over(&a, &mine[i]);
    cr_admit_leave(&a, &one);
}
END_TEST

/* ---- idle connections ---- */

enum { SITTERS = 300 };

static struct sitter {
    cr_peer peer;
    cr_place place;
    bool open, busy, loud; /* a call is open; or something else is under way */
} sitters[SITTERS];

static bool end_sitter(cr_place *place, bool quiet) {
    struct sitter *s = cr_container(place, struct sitter, place);
    ck_assert(s->open);
    if (s->busy || (quiet && s->loud)) return false;
    s->open = false;
    cr_admit_connection_over(&a, &s->peer);
    cr_admit_leave(&a, &s->peer);
    return true;
}

static void sit(int i, uint64_t owner) {
    sitters[i] = (struct sitter){.peer = {.owner = owner}, .place.end = end_sitter, .open = true};
    assert_ok(cr_admit_join(&a, &sitters[i].peer, &error), error);
    assert_ok(cr_admit_connection(&a, &sitters[i].peer, 9, &error), error);
    cr_admit_place(&sitters[i].peer, &sitters[i].place);
}

static void all_leave(void) {
    for (int i = 0; i < SITTERS; i++)
        if (sitters[i].open) {
            sitters[i].busy = false;
            ck_assert(end_sitter(&sitters[i].place, false));
        }
}

static int open_of(int from, int to) {
    int open = 0;
    for (int i = from; i < to; i++) open += sitters[i].open;
    return open;
}

/* The oldest of whoever has most ends, and of them rather one on which nothing is under way. */
START_TEST(idle_connections_end) {
    cr_peer late = {.owner = 8};
    a.most[CR_USE_connections] = 1000;
    for (int i = 0; i < 40; i++) sit(i, 1);
    for (int i = 40; i < 60; i++) sit(i, 2);
    for (int i = 60; i < 100; i++) sit(i, (uint64_t)i);
    assert_ok(cr_admit_join(&a, &late, &error), error);
    sitters[0].busy = sitters[1].loud = true;
    ck_assert(cr_admit_end_idle(&a, late.user));
    ck_assert(sitters[0].open && sitters[1].open && !sitters[2].open && open_of(0, 60) == 59);
    for (int i = 0; i < 20; i++) ck_assert(cr_admit_might_end_idle(&a, late.user) && cr_admit_end_idle(&a, late.user));
    ck_assert(sitters[0].open && sitters[1].open);
    ck_assert_int_le(abs(open_of(0, 40) - open_of(40, 60)), 1);
    while (cr_admit_end_idle(&a, late.user)) {
    }
    ck_assert_int_eq(open_of(0, 40), 1); /* who has one keeps it: the newcomer would have no more */
    ck_assert_int_eq(open_of(40, 60), 1);
    ck_assert_int_eq(open_of(60, 100), 40);
    ck_assert(sitters[0].open);
    cr_admit_leave(&a, &late);
    all_leave();
}
END_TEST

/* Connections with calls stay, and a look at them is short: who asks again sees others. */
START_TEST(busy_connections_stay) {
    cr_peer late = {.owner = 8};
    int asked = 0;
    a.most[CR_USE_connections] = 1000;
    for (int i = 0; i < SITTERS; i++) sit(i, 1);
    for (int i = 0; i < SITTERS - 1; i++) sitters[i].busy = true;
    assert_ok(cr_admit_join(&a, &late, &error), error);
    ck_assert(cr_admit_might_end_idle(&a, late.user) && !cr_admit_might_end_idle(&a, sitters[0].peer.user));
    while (!cr_admit_end_idle(&a, late.user)) ck_assert_int_lt(++asked, SITTERS);
    ck_assert_int_gt(asked, 0);
    ck_assert_int_eq(open_of(0, SITTERS), SITTERS - 1);
    ck_assert(!sitters[SITTERS - 1].open && !cr_admit_end_idle(&a, late.user));
    cr_admit_leave(&a, &late);
    all_leave();
}
END_TEST

/* A connection that becomes a principal's is found there. */
START_TEST(a_place_goes_with_its_connection) {
    cr_peer late = {.owner = 8};
    a.most[CR_USE_connections] = 100;
    for (int i = 0; i < 3; i++) {
        sit(i, 1);
        assert_ok(cr_admit_become(&a, &sitters[i].peer, &cr_principal_plain, "laptop", &error), error);
    }
    sit(3, 1);
    assert_ok(cr_admit_join(&a, &late, &error), error);
    ck_assert(cr_admit_end_idle(&a, late.user) && !sitters[0].open);
    ck_assert(cr_admit_end_idle(&a, late.user) && !sitters[1].open);
    ck_assert(!cr_admit_end_idle(&a, late.user));
    cr_admit_leave(&a, &late);
    all_leave();
}
END_TEST

CR_CHECK_MAIN("server/fair") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_rule);
    tcase_add_loop_test(tc, whoever_comes_finds_something, 0, 8);
    tcase_add_test(tc, a_newcomer_finds_room);
    tcase_add_test(tc, idle_connections_end);
    tcase_add_test(tc, busy_connections_stay);
    tcase_add_test(tc, a_place_goes_with_its_connection);
}
