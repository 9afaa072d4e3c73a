/* Whose turn it is on the loop: counted by a go that does nothing, so that no clock decides. */
#include <string.h>

#include "base/clock.h"
#include "server/loop/rounds.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MOST = 64 };

/* One connection. */
typedef struct sitter {
    cr_seat seat;
    unsigned work; /* goes that it still needs */
    unsigned went;
    bool takes_part, lasts, leaves;
} sitter;

static cr_rounds rounds;
static sitter sitters[MOST];
static sitter *order[1024];
static unsigned goes;

static bool go(cr_seat *seat, uint64_t until_ns) {
    sitter *s = cr_container(seat, sitter, seat);
    s->went++;
    ck_assert_uint_lt(goes, 1024);
    order[goes++] = s;
    while (s->lasts && cr_now_ns() < until_ns) continue;
    if (s->leaves) {
        cr_rounds_leave(&rounds, &s->seat);
    } else if (--s->work) {
        cr_rounds_wait(&rounds, &s->seat);
    }
    return s->takes_part;
}

/* A turn whose time is never over: whoever may go goes, on a busy machine, too. */
static bool long_turn(void) { return cr_rounds_turn(&rounds, cr_now_ns() + 3600ull * 1000000000, go); }

static void setup(void) {
    cr_rounds_init(&rounds);
    memset(sitters, 0, sizeof sitters);
    goes = 0;
}

static void teardown(void) {
    for (int i = 0; i < MOST; i++) cr_rounds_leave(&rounds, &sitters[i].seat);
    ck_assert_uint_eq(rounds.waiting, 0);
    ck_assert(!cr_rounds_turn(&rounds, cr_now_ns(), go));
    cr_rounds_free(&rounds);
}

/* Seat i is of client. */
static sitter *join(int i, uint64_t client) {
    ck_assert(cr_rounds_join(&rounds, &sitters[i].seat, client));
    return &sitters[i];
}

static void wait_with(sitter *s, unsigned work) {
    s->work = work;
    cr_rounds_wait(&rounds, &s->seat);
    cr_rounds_wait(&rounds, &s->seat); /* once is enough */
}

START_TEST(a_connection_goes_once_in_a_turn) {
    for (int i = 0; i < 8; i++) wait_with(join(i, 1 + i % 3), 3);
    for (unsigned turn = 1; turn <= 3; turn++) {
        ck_assert(long_turn() == (turn < 3));
        for (int i = 0; i < 8; i++) ck_assert_uint_eq(sitters[i].went, turn);
    }
}
END_TEST

/* Fifteen connections of one client, which never end, and one of another. */
START_TEST(a_newcomer_goes_first) {
    for (int i = 0; i < 15; i++) {
        join(i, 7)->takes_part = true;
        sitters[i].lasts = true;
        wait_with(&sitters[i], 1000);
    }
    for (int turn = 0; turn < 20; turn++) ck_assert(cr_rounds_turn(&rounds, cr_now_ns(), go));
    sitter *other = join(15, 8);
    for (unsigned n = 1; n <= 5; n++) {
        unsigned before = goes;
        wait_with(other, 1);
        ck_assert(cr_rounds_turn(&rounds, cr_now_ns(), go));
        ck_assert_ptr_eq(order[before], other);
        ck_assert_uint_gt(goes, before + 1); /* and the first client is not kept from going */
    }
    for (int i = 0; i < 15; i++) ck_assert_uint_ge(sitters[i].went, 1);
}
END_TEST

/* Whoever takes whole parts goes in turn with the like, by client and not by connection. */
START_TEST(clients_take_turns) {
    for (int i = 0; i < 9; i++) {
        join(i, i < 8 ? 1 : 2)->takes_part = true;
        sitters[i].lasts = true;
        wait_with(&sitters[i], 1000);
    }
    while (goes < 40) cr_rounds_turn(&rounds, cr_now_ns(), go);
    unsigned first = 0;
    for (int i = 0; i < 8; i++) first += sitters[i].went;
    ck_assert_uint_le(first, sitters[8].went + 2);
    ck_assert_uint_ge(first + 2, sitters[8].went);
    for (int i = 0; i < 8; i++) ck_assert_uint_ge(sitters[i].went, 2);
}
END_TEST

/* However many come with little, those with much go on. */
START_TEST(the_light_leave_a_part_of_the_turn) {
    sitter *heavy = join(0, 99);
    heavy->takes_part = heavy->lasts = true;
    wait_with(heavy, 1000);
    cr_rounds_turn(&rounds, cr_now_ns(), go);
    for (int i = 1; i < 20; i++) join(i, (uint64_t)i)->lasts = true;
    for (unsigned turn = 2; turn < 30; turn++) {
        for (int i = 1; i < 20; i++)
            if (!sitters[i].seat.waits) wait_with(&sitters[i], 1);
        ck_assert(cr_rounds_turn(&rounds, cr_now_ns(), go));
        ck_assert_uint_eq(heavy->went, turn);
    }
}
END_TEST

START_TEST(connections_leave_while_they_go) {
    for (int i = 0; i < 12; i++) {
        join(i, 1 + i % 4)->leaves = i % 2;
        wait_with(&sitters[i], 2);
    }
    cr_rounds_leave(&rounds, &sitters[0].seat);
    ck_assert(long_turn());
    ck_assert(!long_turn());
    for (int i = 1; i < 12; i++) ck_assert_uint_eq(sitters[i].went, i % 2 ? 1 : 2);
    fail_allocation(1);
    bool joined = cr_rounds_join(&rounds, &sitters[20].seat, 77);
    ck_assert(!joined);
}
END_TEST

START_TEST(many_clients) {
    static cr_seat seats[5000];
    for (uint64_t i = 0; i < 5000; i++) ck_assert(cr_rounds_join(&rounds, &seats[i], (i % 2500) << (i % 2 ? 32 : 0)));
    size_t count = rounds.clients.count;
    ck_assert_uint_le(count, 3750);
    for (uint64_t i = 0; i < 5000; i++) cr_rounds_leave(&rounds, &seats[(i * 7) % 5000]);
    ck_assert_uint_eq(rounds.clients.count, 0);
}
END_TEST

CR_CHECK_MAIN("server/rounds") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_connection_goes_once_in_a_turn);
    tcase_add_test(tc, a_newcomer_goes_first);
    tcase_add_test(tc, clients_take_turns);
    tcase_add_test(tc, the_light_leave_a_part_of_the_turn);
    tcase_add_test(tc, connections_leave_while_they_go);
    tcase_add_test(tc, many_clients);
}
