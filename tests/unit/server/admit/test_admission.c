/* Admission: every limit, at it and beyond it, and that what was let in comes off again. */
#include <stdlib.h>
#include <string.h>

#include "server/admit/admission.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static cr_admission a;
static cr_peer one, other;
static cr_error error;

/* Two connections of one user. */
static void setup(void) {
    one = other = (cr_peer){.owner = 7};
    a = (cr_admission){.max_files = 100, .max_calls_per_connection = 3, .max_input_bytes = 1000};
    a.most[CR_USE_connections] = 4; /* one user may have 2 */
    a.most[CR_USE_calls] = 5;       /* 4 */
    a.most[CR_USE_bytes] = 2857;    /* 2,500 */
    cr_admit_init(&a);
    assert_ok(cr_admit_join(&a, &one, &error), error);
    assert_ok(cr_admit_join(&a, &other, &error), error);
    ck_assert_ptr_eq(one.user, other.user);
}

static void teardown(void) {
    cr_admit_leave(&a, &one);
    cr_admit_leave(&a, &other);
    ck_assert(cr_list_empty(&a.by_age));
    for (int i = 0; i < CR_USES; i++) ck_assert_uint_eq(a.used[i], 0);
    cr_admit_free(&a);
}

START_TEST(connections) {
    assert_ok(cr_admit_connection(&a, &one, 9, &error), error);
    assert_ok(cr_admit_connection(&a, &one, 9, &error), error);
    assert_fails(cr_admit_connection(&a, &one, 9, &error), CR_RESOURCE_EXHAUSTED, error, "max_connections, 4");
    cr_admit_connection_over(&a, &one);
    assert_ok(cr_admit_connection(&a, &one, 9, &error), error);
    cr_admit_connection_over(&a, &one);
    cr_admit_connection_over(&a, &one);
}
END_TEST

START_TEST(descriptors_are_shared_out) {
    for (uint64_t most = 1; most <= 1u << 20; most *= 32) {
        cr_admit_limit_descriptors(&a, most);
        int last = (int)(most - most / 4) - 1;
        assert_ok(cr_admit_connection(&a, &one, last, &error), error);
        assert_fails(cr_admit_connection(&a, &one, last + 1, &error), CR_RESOURCE_EXHAUSTED, error,
                     "for what clients pass");
        ck_assert_uint_eq(a.used[CR_USE_connections], 1);
        cr_admit_connection_over(&a, &one);
        uint64_t refused = 0;
        while (cr_admit_refused(&a)) refused++;
        ck_assert_uint_eq(refused, most < 64 ? 1 : most < 65536 ? most / 64 : 1024);
        for (; refused; refused--) cr_admit_refused_over(&a);
    }
}
END_TEST

START_TEST(calls_in_all_and_per_connection) {
    cr_ticket tickets[5];
    for (uint64_t i = 0; i < 3; i++) assert_ok(cr_admit_call(&a, &one, 0, &tickets[i], &error), error);
    assert_fails(cr_admit_call(&a, &one, 0, &tickets[3], &error), CR_RESOURCE_EXHAUSTED, error, "per_connection is 3");
    assert_ok(cr_admit_call(&a, &other, 0, &tickets[3], &error), error);
    assert_fails(cr_admit_call(&a, &other, 0, &tickets[4], &error), CR_RESOURCE_EXHAUSTED, error, "max_jobs, 5");
    cr_admit_always(&a, &other, &tickets[4]);
    ck_assert_uint_eq(a.used[CR_USE_calls], 5);
    ck_assert_uint_eq(other.calls, 2);
    cr_admit_answered(&tickets[0]); /* its job goes on: the peer may ask again, the daemon is as full as before */
    ck_assert_uint_eq(one.calls, 2);
    ck_assert_uint_eq(a.used[CR_USE_calls], 5);
    for (int i = 0; i < 5; i++) cr_admit_over(&a, &tickets[i]);
    ck_assert_uint_eq(a.used[CR_USE_calls] + one.calls + other.calls, 0);
}
END_TEST

START_TEST(bytes_of_one_input_and_of_all) {
    cr_ticket x, y, z;
    assert_ok(cr_admit_call(&a, &one, 1000, &x, &error), error);
    assert_fails(cr_admit_call(&a, &one, 1001, &y, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes, 1000");
    assert_fails(cr_admit_call(&a, &one, UINT64_MAX, &y, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes");
    assert_ok(cr_admit_call(&a, &one, 1000, &y, &error), error);
    assert_fails(cr_admit_call(&a, &one, 501, &z, &error), CR_RESOURCE_EXHAUSTED, error, "2857; wait");
    assert_ok(cr_admit_call(&a, &one, 500, &z, &error), error);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 2500);
    ck_assert_uint_eq(a.used[CR_USE_calls], 3);
    cr_admit_over(&a, &x);
    cr_admit_over(&a, &y);
    cr_admit_over(&a, &z);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 0);
    ck_assert_uint_eq(a.used[CR_USE_calls], 0);
}
END_TEST

START_TEST(a_growing_input_is_counted_once) {
    cr_ticket x, y;
    assert_ok(cr_admit_call(&a, &one, 0, &x, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 400, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 400, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 300, &error), error);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 400);
    assert_fails(cr_admit_growth(&a, &x, 1001, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes");
    a.most[CR_USE_bytes] = 1485; /* of one user 1,300 */
    assert_ok(cr_admit_call(&a, &one, 500, &y, &error), error);
    assert_fails(cr_admit_growth(&a, &x, 801, &error), CR_RESOURCE_EXHAUSTED, error, "beside 900");
    assert_ok(cr_admit_growth(&a, &x, 800, &error), error);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 1300);
    cr_admit_over(&a, &x);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 500);
    cr_admit_over(&a, &y);
    ck_assert_uint_eq(a.used[CR_USE_bytes], 0);
}
END_TEST

START_TEST(memory_of_reductions_along_an_axis) {
    cr_ticket x, y;
    a.most[CR_USE_state_bytes] = 1142; /* of one user 1,000 */
    a.max_state_bytes_per_connection = 600;
    cr_ticket z;
    assert_ok(cr_admit_call(&a, &one, 0, &x, &error), error);
    assert_ok(cr_admit_call(&a, &one, 0, &y, &error), error);
    assert_ok(cr_admit_call(&a, &other, 0, &z, &error), error);
    assert_fails(cr_admit_state(&a, 601, &x, &error), CR_RESOURCE_EXHAUSTED, error, "_per_connection, 600");
    assert_ok(cr_admit_state(&a, 500, &x, &error), error);
    assert_fails(cr_admit_state(&a, 101, &y, &error), CR_RESOURCE_EXHAUSTED, error, "beside 500 of this connection");
    assert_fails(cr_admit_state(&a, UINT64_MAX, &y, &error), CR_RESOURCE_EXHAUSTED, error, "_per_connection, 600");
    assert_fails(cr_admit_state(&a, 501, &z, &error), CR_RESOURCE_EXHAUSTED, error, "max_state_bytes, 1142");
    assert_ok(cr_admit_state(&a, 500, &z, &error), error);
    ck_assert_uint_eq(one.state_bytes, 500);
    ck_assert_uint_eq(a.used[CR_USE_state_bytes], 1000);
    cr_admit_over(&a, &x);
    ck_assert_uint_eq(a.used[CR_USE_state_bytes], 500);
    ck_assert_uint_eq(one.state_bytes, 0);
    cr_admit_over(&a, &y);
    cr_admit_over(&a, &z);
    ck_assert_uint_eq(a.used[CR_USE_state_bytes], 0);
}
END_TEST

START_TEST(regions_and_their_bytes) {
    a.most[CR_USE_regions] = 4; /* of one user 3 */
    a.max_regions_per_connection = 2;
    a.max_region_bytes = 1000;
    a.most[CR_USE_region_bytes] = 1714; /* 1,500 */
    assert_ok(cr_admit_region(&a, &one, &error), error);
    assert_ok(cr_admit_region(&a, &one, &error), error);
    assert_fails(cr_admit_region(&a, &one, &error), CR_RESOURCE_EXHAUSTED, error, "max_regions_per_connection is 2");
    assert_ok(cr_admit_region(&a, &other, &error), error);
    assert_fails(cr_admit_region(&a, &other, &error), CR_RESOURCE_EXHAUSTED, error, "max_regions, 4");
    cr_admit_region_over(&a, one.user, NULL, 0); /* its connection is gone */
    assert_ok(cr_admit_region(&a, &other, &error), error);
    assert_ok(cr_admit_region_bytes(&a, &one, 400, &error), error);
    assert_fails(cr_admit_region_bytes(&a, &one, 601, &error), CR_RESOURCE_EXHAUSTED, error, "max_region_bytes, 1000");
    assert_fails(cr_admit_region_bytes(&a, &one, UINT64_MAX, &error), CR_RESOURCE_EXHAUSTED, error, "beside 400");
    assert_ok(cr_admit_region_bytes(&a, &one, 600, &error), error);
    assert_fails(cr_admit_region_bytes(&a, &other, 501, &error), CR_RESOURCE_EXHAUSTED, error,
                 "max_total_region_bytes, 1714; unregister some");
    cr_admit_region_over(&a, one.user, &one, 600);
    ck_assert_uint_eq(one.region_bytes, 400);
    ck_assert_uint_eq(one.regions, 1);
    cr_admit_region_over(&a, one.user, &one, 400);
    cr_admit_region_over(&a, other.user, &other, 0);
    ck_assert_uint_eq(a.used[CR_USE_regions], 0);
}
END_TEST

/* The line of a principal caps its user alone, and a reload changes that under it. */
START_TEST(a_line_limits) {
    cr_principals fresh;
    cr_ticket x, y;
    cr_peer guest = {.owner = 8};
    a.max_calls_per_connection = 100;
    a.most[CR_USE_calls] = 100;
    cr_principals_init(&fresh);
    cr_principal *line = cr_principals_add(&fresh, CR_KNOWN_CN, "CN=web");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(cr_principals_add(&fresh, CR_KNOWN_CN, "CN=web"));
    line->line = 1;
    line->most[CR_USE_calls] = 1;
    cr_admit_principals(&a, &fresh);
    const cr_principal *web = cr_principals_find(&a.principals, "CN=web");
    ck_assert_ptr_eq(web, line);
    assert_ok(cr_admit_join(&a, &guest, &error), error);
    assert_ok(cr_admit_connection(&a, &guest, 9, &error), error);
    assert_ok(cr_admit_become(&a, &guest, web, web->name, &error), error);
    assert_ok(cr_admit_call(&a, &guest, 0, &x, &error), error);
    assert_fails(cr_admit_call(&a, &guest, 0, &y, &error), CR_RESOURCE_EXHAUSTED, error,
                 "calls: 1 more beside 1 of this user exceed 1 (calls= in its line of principals); wait for answers");
    ck_assert(cr_admit_capped(&a, guest.user, CR_USE_calls, 1) && !cr_admit_capped(&a, one.user, CR_USE_calls, 1));
    ck_assert(cr_admit_lacks(&a, &guest, CR_USE_calls, 1) && !cr_admit_lacks(&a, &one, CR_USE_calls, 1));
    ck_assert_uint_eq(cr_admit_share(&a, guest.user, CR_USE_calls), 1);
    ck_assert_uint_eq(cr_admit_share(&a, one.user, CR_USE_calls), 44);
    /* Gone, while its client is not: as the options say. Then there again: the same line. */
    cr_admit_principals(&a, &fresh);
    ck_assert_ptr_null(cr_principals_find(&a.principals, "CN=web"));
    assert_ok(cr_admit_call(&a, &guest, 0, &y, &error), error);
    line = cr_principals_add(&fresh, CR_KNOWN_CN, "CN=web");
    line->line = 1;
    line->may = CR_MAY_info;
    cr_admit_principals(&a, &fresh);
    ck_assert_ptr_eq(web, cr_principals_find(&a.principals, "CN=web"));
    ck_assert_uint_eq(cr_peer_may(&guest), CR_MAY_info);
    cr_admit_over(&a, &x);
    cr_admit_over(&a, &y);
    cr_admit_connection_over(&a, &guest);
    cr_admit_leave(&a, &guest);
    /* Nobody goes by it any more: it is freed with the next reload. */
    cr_admit_principals(&a, &fresh);
    ck_assert(cr_list_empty(&a.principals.all));
}
END_TEST

/* Who lacks something because of others, or of its own user's calls, and not because it asks for too much. */
START_TEST(what_is_lacking) {
    cr_peer stranger = {.owner = 8};
    cr_ticket x, y;
    a.most[CR_USE_state_bytes] = 1300;
    a.max_state_bytes_per_connection = 600;
    assert_ok(cr_admit_call(&a, &one, 1000, &x, &error), error);
    assert_ok(cr_admit_call(&a, &other, 1000, &y, &error), error);
    assert_ok(cr_admit_state(&a, 600, &x, &error), error);
    ck_assert(cr_admit_holds(&x, CR_USE_calls) == 1 && cr_admit_holds(&x, CR_USE_bytes) == 1000);
    ck_assert(cr_admit_holds(&x, CR_USE_state_bytes) == 600 && !cr_admit_holds(&y, CR_USE_state_bytes));
    assert_ok(cr_admit_join(&a, &stranger, &error), error);
    ck_assert(!cr_admit_lacks(&a, &stranger, CR_USE_calls, 1));
    ck_assert(!cr_admit_lacks(&a, &stranger, CR_USE_bytes, 429) && cr_admit_lacks(&a, &stranger, CR_USE_bytes, 430));
    ck_assert(!cr_admit_lacks(&a, &stranger, CR_USE_bytes, 1430)); /* more than it gets when nobody holds any */
    ck_assert(cr_admit_lacks(&a, &stranger, CR_USE_state_bytes, 351));
    ck_assert(!cr_admit_lacks(&a, &stranger, CR_USE_state_bytes, 601)); /* more than a connection may have */
    ck_assert(!cr_admit_lacks(&a, &one, CR_USE_state_bytes, 1));
    ck_assert(cr_admit_lacks(&a, &other, CR_USE_state_bytes, 51)); /* half of what others leave is 650 */
    a.most_per_user[CR_USE_bytes] = 400;
    ck_assert(!cr_admit_lacks(&a, &stranger, CR_USE_bytes, 430));
    ck_assert_str_eq(cr_admit_option(&a, CR_USE_state_bytes), "max_state_bytes");
    cr_admit_over(&a, &x);
    cr_admit_over(&a, &y);
    cr_admit_leave(&a, &stranger);
}
END_TEST

START_TEST(an_option_caps_a_user) {
    cr_ticket tickets[3];
    a.most_per_user[CR_USE_calls] = 2;
    assert_ok(cr_admit_call(&a, &one, 0, &tickets[0], &error), error);
    assert_ok(cr_admit_call(&a, &other, 0, &tickets[1], &error), error);
    assert_fails(cr_admit_call(&a, &one, 0, &tickets[2], &error), CR_RESOURCE_EXHAUSTED, error,
                 "beside 2 of this user exceed max_jobs_per_user, 2; wait for answers");
    ck_assert_uint_eq(cr_admit_share(&a, one.user, CR_USE_calls), 2);
    cr_admit_over(&a, &tickets[0]);
    cr_admit_over(&a, &tickets[1]);
}
END_TEST

START_TEST(descriptors_that_wait_go_by_user) {
    cr_peer stranger = {.owner = 9};
    const cr_user *whose;
    a.most[CR_USE_descriptors] = 10;
    cr_admit_parked(&a, &one, 8);
    assert_ok(cr_admit_check_parked(&a, &one, &whose, &error), error);
    assert_ok(cr_admit_join(&a, &stranger, &error), error);
    assert_fails(cr_admit_check_parked(&a, &one, &whose, &error), CR_RESOURCE_EXHAUSTED, error, "send them with their");
    ck_assert_ptr_eq(whose, one.user);
    cr_admit_parked(&a, &stranger, 1);
    assert_ok(cr_admit_check_parked(&a, &stranger, &whose, &error), error);
    cr_admit_parked(&a, &stranger, 2);
    assert_fails(cr_admit_check_parked(&a, &stranger, &whose, &error), CR_RESOURCE_EXHAUSTED, error, "of all clients");
    ck_assert_ptr_null(whose);
    cr_admit_parked(&a, &stranger, -3);
    cr_admit_parked(&a, &one, -8);
    cr_admit_leave(&a, &stranger);
}
END_TEST

/* What the rule leaves a stranger, said once more. */
static uint64_t rule(uint64_t most, uint64_t others, bool alone) {
    return alone ? most - most / 8 : most > others ? (most - others + 1) / 2 : 0;
}

/* Random users come, take, give back and go. Whatever they do: the sums are right, no limit is passed, and a user is given what the
 * rule says. */
START_TEST(random_users) {
    enum { USERS = 6, CALLS = 40, STEPS = 10000 };
    static cr_peer peers[USERS];
    static cr_ticket tickets[USERS][CALLS];
    static unsigned held[USERS];
    uint64_t state = 5 + (uint64_t)_i, refused = 0, admitted = 0;
    a.most[CR_USE_calls] = 64;
    a.most[CR_USE_bytes] = 20000;
    a.most_per_user[CR_USE_calls] = _i % 2 ? 20 : 0;
    a.max_calls_per_connection = CALLS;
    cr_admit_leave(&a, &one);
    cr_admit_leave(&a, &other);
    for (int step = 0; step < STEPS; step++) {
        uint64_t u = random_next(&state) % USERS, what = random_next(&state) % 16;
        cr_peer *peer = &peers[u];
        if (!peer->user) {
            *peer = (cr_peer){.owner = u / 2 + 1};
            assert_ok(cr_admit_join(&a, peer, &error), error);
        } else if (what == 0 && !held[u]) {
            cr_admit_leave(&a, peer);
        } else if (what < 9 && held[u] < CALLS) {
            uint64_t bytes = random_next(&state) % 1001, own = peer->user->used[CR_USE_calls],
                     own_bytes = peer->user->used[CR_USE_bytes];
            bool alone = a.users.count == 1;
            uint64_t may = rule(64 - 8, a.used[CR_USE_calls] - own, alone),
                     may_bytes = rule(20000, a.used[CR_USE_bytes] - own_bytes, alone);
            bool fits = own + 1 <= may && (!a.most_per_user[CR_USE_calls] || own < 20) &&
                        (!bytes || own_bytes + bytes <= may_bytes);
            cr_status status = cr_admit_call(&a, peer, bytes, &tickets[u][held[u]], &error);
            ck_assert_int_eq(status == CR_OK, fits);
            held[u] += fits;
            admitted += fits;
            refused += !fits;
        } else if (held[u]) {
            cr_admit_over(&a, &tickets[u][--held[u]]);
        }
        uint64_t sums[2] = {0, 0}, users = 0;
        for (cr_list *node = a.by_age.next; node != &a.by_age; node = node->next, users++) {
            sums[0] += cr_container(node, cr_user, link)->used[CR_USE_calls];
            sums[1] += cr_container(node, cr_user, link)->used[CR_USE_bytes];
        }
        ck_assert_uint_eq(sums[0], a.used[CR_USE_calls]);
        ck_assert_uint_eq(sums[1], a.used[CR_USE_bytes]);
        ck_assert_uint_eq(users, a.users.count);
        ck_assert(sums[0] <= a.most[CR_USE_calls] && sums[1] <= a.most[CR_USE_bytes]);
    }
    ck_assert_uint_gt(admitted, STEPS / 20);
    ck_assert_uint_gt(refused, STEPS / 100);
    for (int u = 0; u < USERS; u++) {
        while (held[u]) cr_admit_over(&a, &tickets[u][--held[u]]);
        cr_admit_leave(&a, &peers[u]);
    }
}
END_TEST

CR_CHECK_MAIN("server/admission") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, connections);
    tcase_add_test(tc, descriptors_are_shared_out);
    tcase_add_test(tc, calls_in_all_and_per_connection);
    tcase_add_test(tc, bytes_of_one_input_and_of_all);
    tcase_add_test(tc, a_growing_input_is_counted_once);
    tcase_add_test(tc, memory_of_reductions_along_an_axis);
    tcase_add_test(tc, regions_and_their_bytes);
    tcase_add_test(tc, a_line_limits);
    tcase_add_test(tc, what_is_lacking);
    tcase_add_test(tc, an_option_caps_a_user);
    tcase_add_test(tc, descriptors_that_wait_go_by_user);
    tcase_add_loop_test(tc, random_users, 0, 4);
}
