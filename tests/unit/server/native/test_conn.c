/* Connections, calls and uploads through a loop of their own: the test is the client at the other end of a socket pair. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

START_TEST(small_calls_are_answered_in_their_turn) {
    client *c = new_client();
    uint32_t data[3] = {7, 8, 9};
    for (uint32_t stream = 1; stream <= 20; stream++) {
        queue_call(c, stream, sizeof data);
        queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, stream, data, sizeof data);
    }
    /* In one piece, or in pieces of a few bytes. */
    while (c->answers < 20) step(c, _i ? (size_t)_i : SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(c->welcomes, 1);
    ck_assert_uint_eq(c->failures, 0);
    for (uint32_t stream = 1; stream <= 20; stream++) ck_assert_uint_eq(c->sum[stream], 24);
    ck_assert_uint_eq(metric_now(CR_M_calls_inline), 20);
    free_client(c);
}
END_TEST

/* Keeps one worker until the gate opens. */
typedef struct hog {
    cr_segment segment;
    cr_job *job;
} hog;

static gate kept_busy = GATE_INIT, let_go = GATE_INIT;

static cr_status wait_in_claim(cr_segment *segment, uint64_t end, cr_error *why) {
    (void)segment, (void)end, (void)why;
    gate_add(&kept_busy);
    gate_wait(&let_go, 1);
    return CR_OK;
}

static void no_release(cr_segment *segment) { (void)segment; }

static void begin_hog(hog *h) {
    static const uint8_t one = 1;
    h->job = cr_job_new(CR_U8, cr_op_needs(CR_OP_SUM, CR_U8));
    cr_segment_init(&h->segment, h->job, &one, 0);
    h->segment.mapped = true;
    h->segment.still = wait_in_claim;
    h->segment.release = no_release;
    cr_queue_add(calls.queue, &h->segment);
    cr_queue_ready(calls.queue, &h->segment, 1, true);
}

static void end_hog(hog *h) {
    cr_list list;
    while (!cr_queue_all_taken(calls.queue, h->job)) sched_yield();
    cr_queue_unhold(calls.queue, h->job);
    cr_queue_completed(calls.queue, &list);
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), h->job);
    cr_job_free(h->job);
}

/* A sum of 64 KiB costs the loop less than to wake a worker. The clock stands still, for what pauses goes to the workers. */
START_TEST(a_quick_upload_needs_no_worker) {
    enum { SMALL = 64 * 1024 };
    client *c = new_client();
    stop_clock(true);
    uint64_t sums[2];
    uint32_t *small = numbers(SMALL / 4, &sums[0]), *large = numbers(SMALL / 4 + 1, &sums[1]);
    queue_call(c, 1, SMALL);
    queue_frame(c, CR_FRAME_DATA, 0, 1, small, 20000);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, (char *)small + 20000, SMALL - 20000);
    finish(c, 1);
    ck_assert_uint_eq(c->sum[1], sums[0]);
    ck_assert_uint_eq(metric_now(CR_M_calls_inline), 1);
    queue_call(c, 2, SMALL + 4);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 2, large, SMALL + 4);
    finish(c, 2);
    ck_assert_uint_eq(c->sum[2], sums[1]);
    ck_assert_uint_eq(metric_now(CR_M_calls_inline), 1);
    free(small);
    free(large);
    free_client(c);
}
END_TEST

/* Where both workers are at something, the loop folds an upload of 64 KiB itself. One element more waits for a worker. */
START_TEST(a_small_upload_waits_for_no_worker) {
    enum { SMALL = 64 * 1024 };
    hog hogs[2];
    client *c = new_client();
    stop_clock(true); /* as above */
    uint64_t small_sum, large_sum;
    uint32_t *small = numbers(SMALL / 4, &small_sum), *large = numbers(SMALL / 4 + 1, &large_sum);
    for (int i = 0; i < 2; i++) begin_hog(&hogs[i]);
    gate_wait(&kept_busy, 2);
    queue_call(c, 1, SMALL + 4);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, large, SMALL + 4);
    queue_call(c, 2, SMALL);
    queue_frame(c, CR_FRAME_DATA, 0, 2, small, 20000);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 2, (char *)small + 20000, SMALL - 20000);
    finish(c, 1);
    ck_assert_uint_eq(c->sum[2], small_sum);
    for (int i = 0; i < 20; i++) step(c, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(c->answers, 1);
    gate_add(&let_go);
    finish(c, 2);
    ck_assert_uint_eq(c->sum[1], large_sum);
    for (int i = 0; i < 2; i++) end_hog(&hogs[i]);
    free(small);
    free(large);
    free_client(c);
}
END_TEST

/* DATA of any lengths, cut anywhere on the way, with known length or without. */
START_TEST(an_upload_in_pieces) {
    client *c = new_client();
    uint64_t sum, state = (uint64_t)_i;
    size_t n = 3 * MIB / 4 + 5, at = 0;
    uint32_t *data = numbers(n, &sum);
    queue_call(c, 1, _i % 2 ? n * 4 : UINT64_MAX);
    while (at < n * 4) {
        size_t most = _i < 4 ? CR_DATA_MAX_BYTES : 30000, piece = random_next(&state) % most;
        if (piece > n * 4 - at) piece = n * 4 - at;
        queue_frame(c, CR_FRAME_DATA, at + piece == n * 4 ? CR_FLAG_END : 0, 1, (char *)data + at, piece);
        at += piece;
    }
    while (!c->answers && !c->failures) step(c, 1 + random_next(&state) % 200000, SIZE_MAX);
    ck_assert_uint_eq(c->answers, 1);
    ck_assert_uint_eq(c->sum[1], sum);
    free(data);
    free_client(c);
}
END_TEST

/* Three times as many uploads as slabs, all of them half done, then all of them finished. */
START_TEST(more_uploads_than_slabs) {
    enum { CALLS = 3 * SLABS };
    client *c[CALLS];
    uint64_t sum;
    size_t n = MIB / 4 + 1, half = n * 2 + 1; /* in the middle of an element */
    uint32_t *data = numbers(n, &sum);
    for (uint32_t i = 0; i < CALLS; i++) {
        c[i] = _i && i ? c[0] : new_client(); /* on one connection, or on many */
        queue_call(c[i], i + 1, n * 4);
        queue_frame(c[i], CR_FRAME_DATA, 0, i + 1, data, half);
    }
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < CALLS; i++) step(c[i], SIZE_MAX, SIZE_MAX);
    for (uint32_t i = 0; i < CALLS; i++)
        queue_frame(c[i], CR_FRAME_DATA, CR_FLAG_END, i + 1, (char *)data + half, n * 4 - half);
    for (unsigned done = 0; done < CALLS;) {
        done = 0;
        for (int i = 0; i < CALLS; i++) step(c[i], SIZE_MAX, SIZE_MAX);
        for (int i = 0; i < (_i ? 1 : CALLS); i++) done += c[i]->answers + c[i]->failures;
    }
    for (uint32_t i = 0; i < CALLS; i++) ck_assert_uint_eq(c[i]->sum[i + 1], sum);
    for (int i = 0; i < (_i ? 1 : CALLS); i++) free_client(c[i]);
    free(data);
}
END_TEST

static int least_of(const cr_conn *conn) {
    int least = 0;
    socklen_t length = sizeof least;
    ck_assert_int_eq(getsockopt(conn->socket.fd, SOL_SOCKET, SO_RCVLOWAT, &least, &length), 0);
    return least;
}

/* While much of a frame is on its way, the loop is not woken for little of it. A client that then brings little is read all the
 * same, after a while. Over a Unix socket, and of small frames, nothing is waited for. */
START_TEST(a_fast_upload_is_read_in_large_pieces) {
    enum { BEGUN = 100 * 1024, MORE = 64 * 1024 };
    client *c = _i == 1 ? new_client() : new_tcp_client();
    uint64_t sum;
    const uint32_t n = _i == 2 ? BEGUN + MORE : MIB;
    uint32_t *data = numbers(n / 4, &sum);
    uint8_t *bytes = (uint8_t *)data, head[CR_FRAME_HEADER_BYTES];
    const cr_frame frame = {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 1, .length = n};
    cr_frame_put(head, &frame);
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    cr_conn *conn = cr_container(native.connections.next, cr_conn, link);
    queue_call(c, 1, n);
    queue_bytes(c, head, sizeof head);
    queue_bytes(c, bytes, BEGUN);
    while (conn->payload_left != n - BEGUN) step(c, SIZE_MAX, SIZE_MAX);
    conn->pace = UINT32_MAX; /* as if it had come at once, however slow this machine is */
    cr_conn_flush(conn);
    ck_assert_int_eq(least_of(conn), _i ? 1 : 192 * 1024);
    queue_bytes(c, bytes + BEGUN, MORE);
    for (int i = 0; i < 3; i++) {
        step(c, SIZE_MAX, SIZE_MAX);
        ck_assert(_i || conn->payload_left == n - BEGUN || !conn->socket.waits_for);
    }
    while (conn->payload_left != n - BEGUN - MORE) step(c, SIZE_MAX, SIZE_MAX);
    queue_bytes(c, bytes + BEGUN + MORE, n - BEGUN - MORE);
    finish(c, 1);
    ck_assert_uint_eq(c->sum[1], sum);
    ck_assert_int_eq(least_of(conn), 1);
    free(data);
    free_client(c);
}
END_TEST

/* The client leaves somewhere in the middle. teardown counts what is left. */
START_TEST(leaving_in_the_middle) {
    enum { CALLS = 6 };
    client *c[CALLS];
    uint64_t sum, state = (uint64_t)_i;
    size_t n = MIB / 2;
    uint32_t *data = numbers(n, &sum);
    for (uint32_t i = 0; i < CALLS; i++) {
        c[i] = new_client();
        queue_call(c[i], 1, n * 4);
        queue_frame(c[i], CR_FRAME_DATA, 0, 1, data, MIB);
        queue_frame(c[i], CR_FRAME_DATA, CR_FLAG_END, 1, data + MIB / 4, n * 4 - MIB);
    }
    for (unsigned steps = random_next(&state) % 150; steps; steps--)
        step(c[steps % CALLS], 1 + random_next(&state) % 150000, SIZE_MAX);
    for (int i = 0; i < CALLS; i++) free_client(c[i]);
    while (metric_now(CR_M_connections)) turn();
    free(data);
}
END_TEST

static cr_conn *only_conn(void) { return cr_container(native.connections.next, cr_conn, link); }

/* Somebody who reads, but is never done: what was sent must leave the reply buffer. */
START_TEST(a_slow_reader_does_not_grow_the_reply_buffer) {
    client *c = new_client();
    char payload[64] = "ping";
    for (int i = 0; i < 6000; i++) queue_frame(c, CR_FRAME_PING, 0, 0, payload, sizeof payload);
    while (c->out_len) step(c, SIZE_MAX, 0);
    ck_assert_uint_gt(cr_conn_backlog(only_conn()), 0);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 1000; i++) queue_frame(c, CR_FRAME_PING, 0, 0, payload, sizeof payload);
        unsigned before = c->pongs;
        while (c->out_len || c->pongs < before + 1000) step(c, SIZE_MAX, c->pongs < before + 1000 ? 8000 : 0);
        ck_assert_uint_gt(cr_conn_backlog(only_conn()), 0); /* or the test shows nothing */
    }
    ck_assert_uint_le(only_conn()->out.cap, 4 * MIB);
    free_client(c);
}
END_TEST

START_TEST(a_wrong_upload_fails_alone) {
    client *c = new_client();
    uint32_t data[3] = {1, 2, 3};
    queue_call(c, 1, 8);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, data, 12); /* too many */
    queue_call(c, 2, 16);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 2, data, 12); /* too few */
    queue_call(c, 3, UINT64_MAX);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 3, data, 11); /* not whole */
    queue_call(c, 4, UINT64_MAX);
    queue_frame(c, CR_FRAME_DATA, 0, 4, data, 11);
    queue_frame(c, CR_FRAME_CANCEL, 0, 4, NULL, 0);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 4, data, 1); /* over: dropped */
    queue_call(c, 5, 12);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 5, data, 12);
    finish(c, 5);
    ck_assert_uint_eq(c->status[1], CR_INVALID_ARGUMENT);
    ck_assert_uint_eq(c->status[2], CR_DATA_LOSS);
    ck_assert_uint_eq(c->status[3], CR_INVALID_ARGUMENT);
    ck_assert_uint_eq(c->status[4], CR_CANCELLED);
    ck_assert_uint_eq(c->sum[5], 6);
    ck_assert(!c->gone);
    free_client(c);
}
END_TEST

/* Keeps a thread that closes files until the gate opens. */
static gate closers_kept = GATE_INIT, closers_go = GATE_INIT;

static void keep_closer(cr_file_task *task) {
    (void)task;
    gate_add(&closers_kept);
    gate_wait(&closers_go, 1);
}

/* A call that is refused, for it takes no descriptor. */
static void pass_unwanted(client *c, uint32_t stream, int descriptor) {
    uint8_t bytes[CR_FRAME_HEADER_BYTES + 64];
    union {
        char bytes[CMSG_SPACE(sizeof descriptor)];
        struct cmsghdr align;
    } control = {{0}};
    const cr_wire_call call = {.kind = CR_CALL_UNREGISTER, .region.id = 1};
    const size_t n = cr_wire_pack_call(&call, bytes + CR_FRAME_HEADER_BYTES, 64);
    const cr_frame frame = {
        .type = CR_FRAME_CALL, .flags = CR_FLAG_END, .stream = stream, .length = (uint32_t)n, .descriptors = 1};
    cr_frame_put(bytes, &frame);
    struct iovec iov = {bytes, CR_FRAME_HEADER_BYTES + n};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof descriptor), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    ck_assert_int_eq(sendmsg(c->fd, &message, MSG_NOSIGNAL), (ssize_t)iov.iov_len);
}

/* On a busy machine the threads that close files come late. A client that is refused faster than they close waits, and loses neither
 * descriptors nor its connection. */
START_TEST(a_quick_client_waits_for_closes) {
    enum { CALLS = 60, BEHIND = 4 * 8 + 1 }; /* of a table of 16 */
    cr_file_task kept[2] = {{.run = keep_closer, .user = 1, .client = 1}, {.run = keep_closer, .user = 2, .client = 2}};
    const int file = memory_file();
    client *c = new_client();
    cr_admit_limit_descriptors(&calls.admission, 16);
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    const size_t before = open_descriptors();
    for (int i = 0; i < 2; i++) {
        cr_waiting_init(&kept[i].waiting);
        cr_files_submit(calls.files, &kept[i], CR_FILES_LOCAL);
    }
    gate_wait(&closers_kept, 2);
    for (uint32_t stream = 1; stream <= CALLS; stream++) pass_unwanted(c, stream, file);
    while (c->failures < BEHIND && !c->gone) step(c, 0, SIZE_MAX);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        step(c, 0, SIZE_MAX);
    }
    ck_assert_uint_eq(c->failures, BEHIND);
    ck_assert_uint_eq(open_descriptors(), before + BEHIND);
    gate_add(&closers_go);
    finish(c, CALLS);
    ck_assert_msg(!c->gone && !c->status[0], "%s", c->message);
    for (uint32_t stream = 1; stream <= CALLS; stream++) ck_assert_uint_eq(c->status[stream], CR_INVALID_ARGUMENT);
    while (open_descriptors() > before + 1) turn(); /* the mount table */
    free_client(c);
    close(file);
}
END_TEST

/* Each allocation of a call fails in turn: the call or the connection ends with a status, nothing is left. */
START_TEST(without_memory) {
    client *c = new_client();
    uint64_t sum;
    size_t n = MIB / 8;
    uint32_t *data = numbers(n, &sum);
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    queue_call(c, 1, n * 4);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, data, n * 4);
    hold_failures(true);
    fail_allocation((unsigned)_i + 1);
    while (!c->answers && !c->failures && !c->gone) step(c, SIZE_MAX, SIZE_MAX);
    fail_allocation(0);
    if (c->answers)
        ck_assert_uint_eq(c->sum[1], sum);
    else if (c->failures)
        ck_assert_uint_eq(c->status[1] | c->status[0], CR_RESOURCE_EXHAUSTED);
    free(data);
    free_client(c);
}
END_TEST

CR_CHECK_MAIN("server/conn") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, small_calls_are_answered_in_their_turn, 0, 4);
    tcase_add_test(tc, a_quick_upload_needs_no_worker);
    tcase_add_test(tc, a_small_upload_waits_for_no_worker);
    tcase_add_loop_test(tc, an_upload_in_pieces, 0, 8);
    tcase_add_loop_test(tc, a_fast_upload_is_read_in_large_pieces, 0, 3);
    tcase_add_loop_test(tc, more_uploads_than_slabs, 0, 2);
    tcase_add_loop_test(tc, leaving_in_the_middle, 0, 16);
    tcase_add_test(tc, a_slow_reader_does_not_grow_the_reply_buffer);
    tcase_add_test(tc, a_wrong_upload_fails_alone);
    tcase_add_test(tc, a_quick_client_waits_for_closes);
    tcase_add_loop_test(tc, without_memory, 0, 8);
}
