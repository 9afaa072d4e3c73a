/* Connections that move between the loop of the test and an annex on a thread of its own: every byte is kept, and every count. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/native/annex.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { LARGE = 20000, HALF = 24, STREAMS = 40 };

static const uint32_t small[3] = {7, 8, 9};

static void setup_two(void) {
    setup();
    assert_ok(cr_annexes_start(&native, 2, &error), error);
}

/* Connections that the first loop reads. Those that are on their way are nobody's. */
static unsigned at_home(void) {
    unsigned n = 0;
    for (cr_list *node = native.connections.next; node != &native.connections; node = node->next) n++;
    return n;
}

static void queue_request(client *c, uint32_t stream, uint16_t flags, uint64_t bytes, uint32_t timeout_ms) {
    uint8_t payload[128];
    cr_wire_call call = {.kind = CR_CALL_REDUCE, .timeout_ms = timeout_ms};
    call.reduce.dtype = CR_U32;
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_SUM;
    call.reduce.source = CR_SOURCE_STREAM;
    call.reduce.length_known = true;
    call.reduce.length = bytes;
    queue_frame(c, CR_FRAME_CALL, flags, stream, payload, cr_wire_pack_call(&call, payload, sizeof payload));
}

static void queue_small(client *c, uint32_t stream) {
    queue_request(c, stream, 0, sizeof small, 0);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, stream, small, sizeof small);
}

/* A client whose connection is in the annex, which has answered stream 1 or will answer stream 2. */
static client *new_guest(void) {
    const unsigned before = at_home();
    client *c = new_client();
    for (uint32_t stream = 1; stream <= 2; stream++) {
        queue_small(c, stream);
        finish(c, stream);
        ck_assert_uint_eq(c->sum[stream], 24);
    }
    ck_assert_uint_eq(at_home(), before);
    return c;
}

static void await_home(client *c, unsigned n) {
    while (at_home() != n && !c->gone) step(c, SIZE_MAX, SIZE_MAX);
    ck_assert(!c->gone);
}

static void await_end(void) {
    while (metric_now(CR_M_connections) || calls.admission.used[CR_USE_connections]) turn();
}

START_TEST(small_arrays_are_answered_there) {
    static const size_t pieces[] = {SIZE_MAX, 1, 7, 16, 17, 33, 61};
    client *c = new_guest();
    stop_clock(true); /* a piece may come late on a busy machine */
    for (uint32_t stream = 3; stream <= STREAMS; stream++) queue_small(c, stream);
    while (c->answers < STREAMS) step(c, pieces[_i], SIZE_MAX);
    ck_assert_uint_eq(c->failures, 0);
    for (uint32_t stream = 1; stream <= STREAMS; stream++) ck_assert_uint_eq(c->sum[stream], 24);
    ck_assert_uint_eq(at_home(), 0);
    stop_clock(false);
    free_client(c);
    await_end();
}
END_TEST

/* Nothing comes behind it. */
START_TEST(an_empty_array_waits_for_no_data) {
    client *c = new_guest();
    stop_clock(true);
    queue_request(c, 3, CR_FLAG_END, 0, 0);
    finish(c, 3);
    ck_assert_uint_eq(c->answers, 3);
    ck_assert_uint_eq(c->sum[3], 0);
    ck_assert_uint_eq(at_home(), 0);
    stop_clock(false);
    free_client(c);
    await_end();
}
END_TEST

static void pass_descriptors(client *c, int count, const void *bytes, size_t n) {
    union {
        char bytes[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    int passed[4];
    for (int i = 0; i < count; i++) passed[i] = eventfd(0, EFD_CLOEXEC);
    const size_t size = (size_t)count * sizeof passed[0];
    struct iovec iov = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(size)};
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), passed, size);
    ck_assert_int_eq(sendmsg(c->fd, &message, MSG_NOSIGNAL), (ssize_t)n);
    for (int i = 0; i < count; i++) close(passed[i]);
}

/* What is to be answered as stream 3, in each of the ways that are home's. Returns the sum. */
static uint64_t ask_home(client *c, int way) {
    static uint32_t data[LARGE / 4];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LARGE / 4; i++) sum += data[i] = i * 2654435761u;
    switch (way) {
        case 0: /* too large */
            queue_request(c, 3, 0, LARGE, 0);
            queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 3, data, LARGE);
            return sum;
        case 1: /* in two DATA */
            queue_request(c, 3, 0, sizeof small, 0);
            queue_frame(c, CR_FRAME_DATA, 0, 3, small, 4);
            queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 3, small + 1, 8);
            return 24;
        case 2: /* whose time is counted from the CALL on */
            queue_request(c, 3, 0, sizeof small, 60000);
            while (c->out_len) step(c, SIZE_MAX, SIZE_MAX);
            await_home(c, 1);
            queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 3, small, sizeof small);
            return 24;
        case 3: /* half a frame, and nothing more for a while */
        case 4: /* half a header */
        case 5: /* a CALL, and not its DATA */
            queue_small(c, 3);
            const size_t first = way == 3 ? c->out_len - 5 : way == 4 ? 9 : c->out_len - CR_FRAME_HEADER_BYTES - 12;
            step(c, first, SIZE_MAX);
            while (at_home() != 1) step(c, 0, SIZE_MAX);
            return 24;
        default: /* a descriptor, which nothing takes */
            pass_descriptors(c, 1, "C", 1);
            await_home(c, 1);
            queue_small(c, 3);
            c->out_off = 1; /* which came with it */
            return 24;
    }
}

START_TEST(other_requests_go_home_and_stay_for_long) {
    client *c = new_guest();
    const uint64_t sum = ask_home(c, _i);
    finish(c, 3);
    ck_assert_uint_eq(c->failures, 0);
    ck_assert_uint_eq(c->sum[3], sum);
    ck_assert_uint_eq(at_home(), 1);
    for (uint32_t stream = 4; stream <= STREAMS; stream++) queue_small(c, stream);
    finish(c, STREAMS);
    ck_assert_uint_eq(at_home(), 1);
    cr_conn *conn = cr_container(native.connections.next, cr_conn, link);
    ck_assert_uint_eq(conn->small, STREAMS - 3 + (_i > 1)); /* in a row: stream 3 was one, too, or was not */
    conn->wanted = conn->small + 1;
    for (uint32_t stream = STREAMS + 1; stream < STREAMS + 9; stream++) {
        queue_small(c, stream);
        finish(c, stream);
        ck_assert_uint_eq(at_home(), _i == 6); /* with a descriptor that waits it cannot leave */
    }
    ck_assert_uint_eq(c->failures, 0);
    free_client(c);
    await_end();
}
END_TEST

START_TEST(all_that_it_counts_is_the_daemons) {
    client *c = new_guest();
    for (uint32_t stream = 3; stream <= STREAMS; stream++) queue_small(c, stream);
    finish(c, STREAMS);
    cr_stats_gather(&calls.stats);
    ck_assert_uint_eq(calls.stats.now.requests, STREAMS);
    ck_assert_uint_eq(calls.stats.now.bytes, STREAMS * sizeof small);
    ck_assert_uint_eq(cr_histogram_count(&calls.stats.now.stages[CR_STAGE_total]), STREAMS);
    ck_assert_uint_eq(metric_now(CR_M_calls_ok), STREAMS);
    ck_assert_uint_eq(metric_now(CR_M_calls_inline), STREAMS);
    ck_assert_uint_eq(metric_now(CR_M_calls), 0);
    ck_assert_uint_eq(calls.admission.used[CR_USE_connections], 1);
    cr_stats_gather(&calls.stats);
    ck_assert_uint_eq(calls.stats.now.requests, STREAMS);
    free_client(c);
    await_end();
    ck_assert_uint_eq(calls.admission.used[CR_USE_connections], 0);
}
END_TEST

/* Home alone knows what a user holds in all. */
START_TEST(a_user_at_its_limit_is_refused_at_home) {
    client *c = new_guest(), *hoarder = new_client();
    queue_small(hoarder, 1);
    finish(hoarder, 1);
    config.max_jobs_per_user = 1;
    cr_calls_limit(&calls);
    queue_request(hoarder, 2, 0, sizeof small, 0);
    const cr_user *user = cr_container(calls.admission.by_age.next, cr_user, link);
    while (!user->full) step(hoarder, SIZE_MAX, SIZE_MAX);
    queue_small(c, 3);
    finish(c, 3);
    ck_assert_uint_eq(c->status[3], CR_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(at_home(), 2);
    queue_frame(hoarder, CR_FRAME_DATA, CR_FLAG_END, 2, small, sizeof small);
    finish(hoarder, 2);
    while (user->full) turn();
    queue_small(c, 4);
    finish(c, 4);
    ck_assert_uint_eq(c->sum[4], 24);
    free_client(hoarder);
    free_client(c);
    await_end();
}
END_TEST

/* The user's oldest connection, which is the annex's. */
START_TEST(an_idle_guest_ends_for_another_user) {
    client *c = new_guest(), *other = new_client();
    queue_small(other, 1);
    finish(other, 1);
    ck_assert_uint_eq(at_home(), 1);
    cr_peer late = {.owner = 77};
    assert_ok(cr_admit_join(&calls.admission, &late, &error), error);
    calls.still(calls.still_argument, true);
    const bool ended = cr_admit_end_idle(&calls.admission, late.user);
    calls.still(calls.still_argument, false);
    ck_assert(ended);
    while (!c->gone) step(c, 0, SIZE_MAX);
    ck_assert_uint_eq(c->status[0], CR_UNAVAILABLE);
    ck_assert_uint_eq(calls.admission.used[CR_USE_connections], 1);
    cr_admit_leave(&calls.admission, &late);
    queue_small(other, 2);
    finish(other, 2);
    ck_assert_uint_eq(other->answers, 2);
    free_client(c);
    free_client(other);
    await_end();
}
END_TEST

/* Of one that comes home with more descriptors than may wait nobody has to read anything more. */
START_TEST(descriptors_that_come_home_count) {
    client *c = new_guest();
    calls.admission.most_per_user[CR_USE_descriptors] = 2; /* of home's admission, and not of the annex's */
    pass_descriptors(c, 3, "C", 1);
    while (!c->failures) step(c, 0, SIZE_MAX);
    ck_assert_uint_eq(c->status[0], CR_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(calls.admission.used[CR_USE_descriptors], 0);
    free_client(c);
    await_end();
}
END_TEST

/* The daemon drains, with calls under way, half a frame, and a client that leaves. */
START_TEST(all_come_home_at_the_end) {
    client *c = new_guest();
    queue_small(c, 3);
    if (_i == 1) step(c, HALF, SIZE_MAX);
    if (_i == 2) ck_assert_int_eq(shutdown(c->fd, SHUT_RDWR), 0);
    if (_i == 3) ck_assert_int_eq(send(c->fd, c->out, c->out_len, MSG_NOSIGNAL), (ssize_t)c->out_len);
    if (_i == 3) c->out_len = 0;
    cr_annexes_end(&native);
    cr_annexes_end(&native);
    ck_assert_uint_eq(metric_now(CR_M_calls), 0);
    if (_i == 2) {
        while (!c->gone) step(c, 0, SIZE_MAX);
    } else {
        finish(c, 3);
        ck_assert_uint_eq(c->sum[3], 24);
        ck_assert_uint_eq(at_home(), 1);
    }
    free_client(c);
    await_end();
}
END_TEST

/* Bytes at every moment of every move, while home has the annex stand still again and again. */
START_TEST(nothing_is_lost_on_the_way) {
    enum { CLIENTS = 24 };
    client *all[CLIENTS];
    uint32_t random = 1;
    static uint32_t data[LARGE / 4];
    srand((unsigned)_i);
    for (int i = 0; i < CLIENTS; i++) all[i] = i % 5 ? new_client() : new_tcp_client();
    for (int i = 0; i < CLIENTS; i++) {
        for (uint32_t stream = 1; stream <= STREAMS; stream++) {
            random = (uint32_t)rand();
            queue_small(all[i], stream);
            if (random % 64 || stream == STREAMS) continue;
            queue_request(all[i], ++stream, 0, LARGE, 0);
            queue_frame(all[i], CR_FRAME_DATA, CR_FLAG_END, stream, data, LARGE);
        }
    }
    for (bool left = true; left;) {
        left = false;
        for (int i = 0; i < CLIENTS; i++) {
            client *c = all[i];
            if (!c) continue;
            random = (uint32_t)rand();
            if (random % 4096 == 0 && c->answers > 2) { /* it leaves */
                free_client(c);
                all[i] = NULL;
                continue;
            }
            step(c, random % 3 ? random % 700 : SIZE_MAX, random % 5 ? SIZE_MAX : 100);
            if (random % 32 == 0) cr_stats_gather(&calls.stats);
            left |= c->answers < STREAMS;
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (!all[i]) continue;
        ck_assert_uint_eq(all[i]->answers, STREAMS);
        ck_assert_uint_eq(all[i]->failures, 0);
        free_client(all[i]);
    }
    await_end();
    cr_stats_gather(&calls.stats);
    ck_assert_uint_eq(calls.stats.now.failed, 0);
}
END_TEST

/* On one loop: what is read stays read, and what waited for a timer of the old one asks anew. */
START_TEST(a_connection_is_lifted_and_settles) {
    client *c = new_client();
    cr_annexes_end(&native);
    queue_small(c, 1);
    finish(c, 1);
    queue_small(c, 2);
    step(c, HALF, SIZE_MAX); /* of the CALL */
    turn();
    cr_conn *conn = cr_container(native.connections.next, cr_conn, link);
    conn->waits_for_closes = _i;
    cr_admit_place(&conn->peer, NULL);
    cr_conn *fresh = cr_conn_lift(conn);
    ck_assert_ptr_nonnull(fresh);
    ck_assert_uint_eq(at_home(), 0);
    turn(); /* in which the old one is freed */
    ck_assert(cr_conn_settle(fresh, &native));
    cr_admit_place(&fresh->peer, &fresh->place);
    finish(c, 2);
    ck_assert_uint_eq(c->sum[2], 24);
    free_client(c);
    await_end();
}
END_TEST

CR_CHECK_MAIN("server/annex") {
    tcase_add_checked_fixture(tc, setup_two, teardown);
    tcase_add_loop_test(tc, small_arrays_are_answered_there, 0, 7);
    tcase_add_test(tc, an_empty_array_waits_for_no_data);
    tcase_add_loop_test(tc, other_requests_go_home_and_stay_for_long, 0, 7);
    tcase_add_test(tc, all_that_it_counts_is_the_daemons);
    tcase_add_test(tc, a_user_at_its_limit_is_refused_at_home);
    tcase_add_test(tc, an_idle_guest_ends_for_another_user);
    tcase_add_test(tc, descriptors_that_come_home_count);
    tcase_add_loop_test(tc, all_come_home_at_the_end, 0, 4);
    tcase_add_loop_test(tc, nothing_is_lost_on_the_way, 0, 4);
    tcase_add_loop_test(tc, a_connection_is_lifted_and_settles, 0, 2);
}
