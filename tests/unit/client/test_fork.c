/* libcured after fork(): the child has a connection of its own, and the parent notices nothing. The daemon of these tests
 * runs in the parent. A child tells by its exit status which step failed. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/call/calls.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

enum { BIG = 8 << 20, HANG_S = 60 };

static const cured_op sum = CURED_OP_SUM;
static const float three[] = {1, 2, 3};
static int callbacks;

static void count_callback(cured_call *call, void *user) {
    (void)call;
    (void)user;
    callbacks++;
}

static cured_call *start(const void *data, uint64_t count) {
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    o.on_done = count_callback;
    ck_assert_msg(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, count, &o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

static bool sum_is(cured_call *call, double expected) {
    double got = 0;
    return cured_wait(call, &error) == CURED_OK && cured_value_double(cured_call_value(call, 0), &got) == CURED_OK &&
           got == expected;
}

static bool is_not_the_childs(cured_call *call) {
    return cured_wait(call, &error) == CURED_CANCELLED && strstr(error.text, "forked") != NULL;
}

/* The daemon's end of the child's connection; it shares the listener. */
static fake accept_child(void) {
    fake g = {.peer = -1, .listener = f.listener, .cap = 1 << 20};
    struct pollfd p = {.fd = f.listener, .events = POLLIN};
    cr_frame h;
    const uint8_t *payload;
    g.in = malloc(g.cap);
    ck_assert_msg(poll(&p, 1, HANG_S * 1000) == 1, "the child does not connect");
    fake_accept(&g);
    fake_expect(&g, NULL, CR_FRAME_HELLO, &h, &payload);
    fake_welcome(&g);
    return g;
}

static void expect_exit(pid_t child) {
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child was ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "the child failed at step %d", WEXITSTATUS(status));
}

static void answer_registered(fake *to, uint32_t stream) {
    uint8_t p[32];
    const cr_wire_registered m = {.bytes = 12};
    fake_send(to, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_registered(&m, p, sizeof p));
}

/* What the parent had when it forked. */
struct before {
    cured_call *done, *sent, *big, *shared;
    cured_region *region;
};

static int run_child(struct before *b) {
    cured_call *call;
    alarm(HANG_S);
    close(f.peer);
    callbacks = 0;
    if (!is_not_the_childs(b->sent)) return 1;
    if (!is_not_the_childs(b->big) || !is_not_the_childs(b->shared)) return 2;
    if (!sum_is(b->done, 6)) return 3;
    if (cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, NULL, &call, &error) != CURED_OK) return 4;
    if (!sum_is(call, 7)) return 5;
    cured_call_free(call);
    if (cured_region_wait(b->region, &error) != CURED_OK) return 6;
    if (cured_region_reduce(b->region, CURED_F32, &sum, 1, 0, 3, NULL, &call, &error) != CURED_OK) return 7;
    if (!sum_is(call, 8)) return 8;
    cured_call_free(call);
    if (callbacks != 0) return 9;
    cured_call_free(b->sent);
    cured_call_free(b->big);
    cured_call_free(b->shared);
    cured_call_free(b->done);
    cured_region_free(b->region);
    cured_close(conn);
    return 0;
}

static void serve_child(void) {
    cr_frame h;
    const uint8_t *p;
    fake g = accept_child();
    fake_expect(&g, NULL, CR_FRAME_CALL, &h, &p);
    ck_assert_uint_eq(h.stream, 1);
    fake_expect(&g, NULL, CR_FRAME_DATA, &h, &p);
    fake_sum(&g, 1, 7);
    fake_expect(&g, NULL, CR_FRAME_CALL, &h, &p); /* Register, with a descriptor of the child's */
    ck_assert_uint_eq(h.descriptors, 1);
    ck_assert_int_eq(g.fd_count, 1);
    answer_registered(&g, h.stream);
    fake_expect(&g, NULL, CR_FRAME_CALL, &h, &p);
    fake_sum(&g, h.stream, 8);
    while (fake_read(&g)) poll(NULL, 0, 1); /* until the child has closed */
    free(g.in);
    close(g.peer);
    for (int i = 0; i < g.fd_count; i++) close(g.fds[i]);
}

/* _i 0: by the page that the kernel wipes; 1: by the process number, as on old kernels. */
START_TEST(child_has_a_connection_of_its_own) {
    static uint8_t data[BIG];
    cr_frame h;
    const uint8_t *p;
    struct before b;
    int memory = memfd_create("fork", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(memory, 12), 0);
    if (_i == 1) cr_cl_fork_unmark(cr_cl_calls_of(conn));
    b.done = start(three, 3); /* stream 1 */
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    fake_sum(&f, h.stream, 6);
    ck_assert(sum_is(b.done, 6));
    b.sent = start(three, 3);                                                     /* 2 */
    ck_assert_int_eq(cured_region_fd(conn, memory, &b.region, &error), CURED_OK); /* 3 */
    ck_assert_int_eq(cured_region_reduce(b.region, CURED_F32, &sum, 1, 0, 3, NULL, &b.shared, &error), CURED_OK);
    b.big = start(data, BIG / 4); /* 5: more than its window, so a frame or its rest is always to come */
    fake_settle(&f, conn);
    size_t received = f.received;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(run_child(&b));
    serve_child();
    expect_exit(child);
    ck_assert(fake_read(&f));                /* nobody has closed the parent's connection, */
    ck_assert_uint_eq(f.received, received); /* or written to it */
    answer_registered(&f, 3);
    fake_sum(&f, 4, 4);
    ck_assert(sum_is(b.shared, 4));
    fake_credit(&f, 5, BIG);
    fake_settle(&f, conn);
    size_t bytes = 0;
    while (fake_take(&f, &h, &p))
        if (h.type == CR_FRAME_DATA && h.stream == 5) bytes += h.length;
    ck_assert_uint_eq(bytes, BIG);
    fake_sum_of(&f, 5, 5, BIG / 4);
    fake_sum(&f, 2, 2);
    ck_assert(sum_is(b.big, 5));
    ck_assert(sum_is(b.sent, 2));
    ck_assert_int_eq(callbacks, 3);
    cured_call_free(b.done);
    cured_call_free(b.sent);
    cured_call_free(b.big);
    cured_call_free(b.shared);
    cured_region_free(b.region);
    close(memory);
}
END_TEST

static pid_t forked;

static void fork_in_callback(cured_call *call, void *user) {
    (void)call;
    (void)user;
    forked = fork();
}

/* The child comes back into the library in the middle of a turn. */
START_TEST(fork_inside_a_callback) {
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *first, *second;
    o.on_done = fork_in_callback;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, &o, &first, &error), CURED_OK);
    fake_settle(&f, conn);
    second = start(three, 3);
    fake_settle(&f, conn);
    size_t received = f.received;
    fake_sum(&f, 1, 1);
    for (int i = 0; i < 1000 && !cured_call_done(first); i++) cured_process(conn, NULL);
    if (forked == 0) {
        alarm(HANG_S);
        _exit(cured_fd(conn) >= 0 ? 1 : !is_not_the_childs(second) ? 2 : callbacks != 0 ? 3 : 0);
    }
    expect_exit(forked);
    ck_assert(fake_read(&f));
    ck_assert_uint_eq(f.received, received);
    fake_sum(&f, 2, 2);
    ck_assert(sum_is(second, 2));
    cured_call_free(first);
    cured_call_free(second);
}
END_TEST

/* A child that only cleans up disturbs nobody. */
START_TEST(child_closes) {
    cured_call *call = start(three, 3);
    fake_settle(&f, conn);
    size_t received = f.received;
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        cured_call_free(call);
        cured_close(conn);
        _exit(0);
    }
    expect_exit(child);
    ck_assert(fake_read(&f));
    ck_assert_uint_eq(f.received, received);
    fake_sum(&f, 1, 6);
    ck_assert(sum_is(call, 6));
    cured_call_free(call);
}
END_TEST

CR_CHECK_MAIN("fork") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, child_has_a_connection_of_its_own, 0, 2);
    tcase_add_test(tc, fork_inside_a_callback);
    tcase_add_test(tc, child_closes);
}
