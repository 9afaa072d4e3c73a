/* How a blocking wait looks and sleeps. The linker puts a clock in place that only looking and sleeping move on, so what a wait does is
 * the same on every machine. The daemon answers as soon as that clock says so. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/conn/look.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

enum { YIELD_NS = 1000, WAKE_NS = 20 * 1000, LATE_NS = 300 * 1000, MS = 1000 * 1000, AHEAD_NS = 130 * 1000 };

static const cured_op sum = CURED_OP_SUM;
static const float values[8] = {1, 2};
static bool moved;                /* the clock is the test's */
static uint64_t clock_ns, due_ns; /* due_ns: when the daemon answers; 0: it has nothing to answer */
static unsigned sleeps, yields;   /* of the last call */
static uint64_t first_ns,
    slept_ns;            /* when the first sleep was to end, at most, and how long all took; 0: when something comes */
static uint64_t wake_ns; /* how late a thread wakes that slept */
static bool forks;       /* another thread forks in the next look */
static int seats_taken;  /* then, in the child */
static size_t asked;     /* elements */
static cr_status answer; /* CR_OK: a sum */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *most, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *most, const sigset_t *mask);
int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    if (!moved || clock != CLOCK_MONOTONIC) return __real_clock_gettime(clock, now);
    *now = (struct timespec){(time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000)};
    return 0;
}

static void answer_if_due(void) {
    cr_frame h;
    const uint8_t *p;
    if (due_ns == 0 || clock_ns < due_ns) return;
    due_ns = 0;
    fake_read(&f);
    while (fake_take(&f, &h, &p)) {
        if (h.type != CR_FRAME_CALL) continue;
        if (answer == CR_OK)
            fake_sum_of(&f, h.stream, 3, asked);
        else
            fake_status(&f, h.stream, answer, 0, "as the test says");
    }
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *most, const sigset_t *mask) {
    const struct timespec none = {0, 0};
    if (!moved) return __real_ppoll(fds, count, most, mask);
    const uint64_t until = most ? clock_ns + (uint64_t)most->tv_sec * 1000000000 + (uint64_t)most->tv_nsec : UINT64_MAX;
    const uint64_t began = clock_ns;
    if (sleeps++ == 0) first_ns = until;
    if (due_ns != 0 && due_ns <= until)
        clock_ns = due_ns + wake_ns;
    else if (until != UINT64_MAX)
        clock_ns = until;
    slept_ns += clock_ns - began;
    answer_if_due();
    return __real_ppoll(fds, count, &none, mask);
}

static void *fork_here(void *unused) {
    (void)unused;
    const pid_t child = fork();
    if (child == 0) _exit(7 - cr_cl_look_seats(0));
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    seats_taken = WEXITSTATUS(status);
    return NULL;
}

int __wrap_sched_yield(void) {
    if (!moved) return __real_sched_yield();
    if (forks) {
        pthread_t other;
        forks = false;
        ck_assert_int_eq(cr_cl_look_seats(0), 6);
        ck_assert_int_eq(pthread_create(&other, NULL, fork_here, NULL), 0);
        ck_assert_int_eq(pthread_join(other, NULL), 0);
    }
    yields++;
    clock_ns += YIELD_NS;
    answer_if_due();
    return 0;
}

static void begin(uint32_t cores, uint32_t spin_us) {
    cr_frame h;
    const uint8_t *p;
    cured_connect_options o = CURED_CONNECT_OPTIONS_INIT;
    o.spin_us = spin_us;
    cr_cl_look_seats(cores);
    fake_start(&f);
    ck_assert_int_eq(cured_connect(f.address, &o, &conn, &error), CURED_OK);
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f);
    fake_settle(&f, conn);
    clock_ns = 1000 * UINT64_C(1000000000);
    wake_ns = WAKE_NS;
    moved = true;
}

static void end(void) {
    moved = false;
    teardown();
}

static cured_call *start(size_t count, uint64_t takes_ns) {
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = 0;
    sleeps = yields = 0;
    slept_ns = first_ns = 0;
    answer = CR_OK;
    asked = count;
    due_ns = clock_ns + takes_ns;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, values, count, &o, &call, &error), CURED_OK);
    return call;
}

/* A call of so many elements that the daemon answers after so long. Gives the nanoseconds that it waited beyond that. */
static uint64_t wait_for(size_t count, uint64_t takes_ns) {
    const uint64_t due = clock_ns + takes_ns;
    cured_call *call = start(count, takes_ns);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    cured_call_free(call);
    return clock_ns - due;
}

START_TEST(short_waits_are_looked_through) {
    begin(8, 0);
    wait_for(2, 30 * 1000);
    ck_assert_uint_eq(yields, 0); /* nothing is known yet */
    ck_assert_uint_eq(sleeps, 1);
    for (int i = 0; i < 4; i++) wait_for(2, 30 * 1000);
    ck_assert_uint_lt(wait_for(2, 30 * 1000), 2 * YIELD_NS);
    ck_assert_uint_eq(sleeps, 0);
    wait_for(3, 50 * MS); /* not worth it */
    wait_for(4, 30 * 1000);
    ck_assert_uint_eq(yields, 0);
    ck_assert_uint_lt(wait_for(2, 30 * 1000), 2 * YIELD_NS); /* it is known how long this takes */
    ck_assert_uint_eq(sleeps, 0);
    end();
}
END_TEST

/* The third call that takes a millisecond sleeps until shortly before, and looks for the answer from there. */
START_TEST(waits_of_a_kind_are_foreseen) {
    begin(8, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(wait_for(2, MS), WAKE_NS);
        ck_assert_uint_eq(yields, 0);
    }
    for (int i = 0; i < 3; i++) {
        const uint64_t began = clock_ns;
        ck_assert_uint_lt(wait_for(2, MS), 2 * YIELD_NS);
        ck_assert_uint_eq(sleeps, 1);
        ck_assert_uint_ge(first_ns - began, MS - AHEAD_NS);
        ck_assert_uint_le(first_ns - began, MS - AHEAD_NS + WAKE_NS);
        ck_assert_uint_ge(yields, AHEAD_NS / YIELD_NS - WAKE_NS / YIELD_NS);
    }
    /* earlier than foreseen: it wakes */
    ck_assert_uint_eq(wait_for(2, MS / 2), WAKE_NS);
    ck_assert_uint_eq(yields, 0);
    /* others are not foreseen, nor those that took longer than before */
    ck_assert_uint_eq(wait_for(3, MS), WAKE_NS);
    ck_assert_uint_eq(wait_for(2, 3 * MS), WAKE_NS);
    ck_assert_uint_eq(wait_for(2, 3 * MS), WAKE_NS);
    ck_assert_uint_eq(yields, 0);
    ck_assert_uint_lt(wait_for(2, 3 * MS), 2 * YIELD_NS);
    /* later than foreseen: looked for in vain, then slept for */
    ck_assert_uint_eq(wait_for(2, 4 * MS), WAKE_NS);
    ck_assert_uint_eq(sleeps, 2);
    ck_assert_uint_gt(yields, 0);
    end();
}
END_TEST

/* Who wakes late thinks that its calls take so long, and sleeps through the next one's end: but each time it begins to look sooner. */
START_TEST(who_wakes_late_looks_sooner) {
    begin(8, 0);
    wake_ns = LATE_NS;
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(wait_for(2, MS), LATE_NS);
        ck_assert_uint_eq(yields, 0);
    }
    ck_assert_uint_eq(wait_for(2, MS), LATE_NS);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_lt(wait_for(2, MS), 2 * YIELD_NS);
        ck_assert_uint_ne(yields, 0);
    }
    end();
}
END_TEST

/* What fails says nothing of how long others take, and what takes long is not foreseen. */
START_TEST(some_waits_are_not_foreseen) {
    begin(8, 0);
    for (int i = 0; i < 3; i++) {
        cured_call *call = start(2, MS);
        answer = CR_INVALID_ARGUMENT;
        ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
        cured_call_free(call);
        ck_assert_uint_eq(yields, 0);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(wait_for(3, 20 * MS), WAKE_NS);
        ck_assert_uint_eq(yields, 0);
    }
    end();
}
END_TEST

/* Cores and spin_us, and whether a third call of a millisecond, and a tenth of 30 us, looks. */
static const struct {
    uint32_t cores, spin_us;
    bool looks;
} machines[] = {{8, 0, true},   {4, 0, true},   {3, 0, false},
                {2, 200, true}, {1, 200, true}, {8, CURED_NEVER_LOOK, false}};

START_TEST(who_may_look) {
    begin(machines[_i].cores, machines[_i].spin_us);
    for (int i = 0; i < 3; i++) wait_for(2, MS);
    ck_assert_int_eq(yields != 0, machines[_i].looks);
    for (int i = 0; i < 10; i++) wait_for(3, 30 * 1000);
    ck_assert_int_eq(sleeps == 0, machines[_i].looks);
    ck_assert_int_eq(cr_cl_look_seats(0), machines[_i].cores < 4 ? 1 : machines[_i].cores - 1);
    end();
}
END_TEST

START_TEST(a_wait_may_end_before_its_call) {
    begin(8, 0);
    for (int i = 0; i < 4; i++) {
        const uint64_t began = clock_ns;
        cured_call *call = start(2, 8 * MS);
        ck_assert_int_eq(cured_wait_for(call, 0, &error), CURED_FAILED_PRECONDITION);
        ck_assert_uint_eq(clock_ns, began);
        ck_assert_int_eq(cured_wait_for(call, 5, &error), CURED_FAILED_PRECONDITION);
        ck_assert_uint_eq(clock_ns, began + 5 * MS);
        ck_assert(!cured_call_done(call));
        ck_assert_int_eq(cured_wait_for(call, 5, &error), CURED_OK);
        ck_assert_uint_le(clock_ns, began + 8 * MS + WAKE_NS);
        ck_assert_int_eq(yields != 0, i >= 2); /* foreseen through both */
        ck_assert_int_eq(cured_wait_for(call, 5, &error), CURED_OK);
        cured_call_free(call);
    }
    end();
}
END_TEST

/* The thread that looks is none of the child's, whose seats are all free. */
START_TEST(a_child_has_all_seats) {
    begin(8, 0);
    forks = true;
    seats_taken = -1;
    wait_for(2, MS);
    for (int i = 0; i < 3; i++) wait_for(2, 30 * 1000);
    ck_assert(!forks);
    ck_assert_int_eq(seats_taken, 0);
    end();
}
END_TEST

static void ask_again(cured_call *call, void *user) {
    cured_call *other = user;
    (void)call;
    ck_assert_int_eq(cured_wait_for(other, 5, &error), CURED_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(error.text, "from inside a callback"));
}

START_TEST(no_wait_inside_a_callback) {
    cured_call *call, *other;
    cured_options o = CURED_OPTIONS_INIT;
    begin(8, 0);
    due_ns = clock_ns + MS;
    asked = 2;
    o.on_done = ask_again;
    ck_assert_int_eq(cured_ping(conn, NULL, &other, &error), CURED_OK); /* nobody answers it */
    o.user = other;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, values, 2, &o, &call, &error), CURED_OK);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    cured_call_free(call);
    cured_call_free(other);
    end();
}
END_TEST

CR_CHECK_MAIN("client look") {
    tcase_add_test(tc, short_waits_are_looked_through);
    tcase_add_test(tc, waits_of_a_kind_are_foreseen);
    tcase_add_test(tc, who_wakes_late_looks_sooner);
    tcase_add_test(tc, some_waits_are_not_foreseen);
    tcase_add_loop_test(tc, who_may_look, 0, sizeof machines / sizeof machines[0]);
    tcase_add_test(tc, a_wait_may_end_before_its_call);
    tcase_add_test(tc, a_child_has_all_seats);
    tcase_add_test(tc, no_wait_inside_a_callback);
}
