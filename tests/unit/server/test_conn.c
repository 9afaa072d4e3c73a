/* Connections, calls and uploads through a loop of their own: the test is the client at the other end of a socket pair. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/net/conn.h"
#include "server/net/server.h"
#include "tests/unit/server/support.h"

enum { SLABS = 4, MIB = 1024 * 1024 };

static uv_loop_t loop;
static cr_server server;
static cr_config config;
static cr_error error;

/* The client's side of one connection. */
typedef struct client {
    int fd;
    uint8_t *out; /* not yet written */
    size_t out_len, out_off, out_cap;
    uint8_t in[256 * 1024];
    size_t held;
    bool gone;
    unsigned answers, failures, welcomes, pongs;
    uint64_t sum[64];    /* by stream */
    uint32_t status[64]; /* by stream; 0 while there is none */
    uint64_t credit[64];
} client;

static void setup(void) {
    char name[] = "test", *arguments[] = {name, NULL}, *environment[] = {NULL};
    cr_config_action action;
    assert_ok(cr_config_load(1, arguments, environment, &config, &action, &error), error);
    uv_loop_init(&loop);
    memset(&server, 0, sizeof server);
    server.config = &config;
    server.version = "0";
    server.lanes.workers = 2;
    server.lanes.backend = "cpu";
    server.lanes.kinds = CR_BY_CPU;
    assert_ok(cr_server_init(&server, &loop, &config, &error), error);
    assert_ok(cr_queue_new(cr_server_wake, &server, &server.queue, &error), error);
    assert_ok(cr_slabs_new(SLABS, &server.slabs, &error), error);
    assert_ok(cr_files_new(2, 2, &server.files, &error), error);
    cr_lane_options options = {.queue = server.queue, .workers = 2};
    assert_ok(cr_lane_cpu.open(&options, &server.lanes.lanes[0], &error), error);
    server.lanes.types[0] = &cr_lane_cpu;
    server.lanes.count = 1;
}

static void turn(void) {
    hold_failures(false);
    uv_run(&loop, UV_RUN_NOWAIT);
    hold_failures(true);
    sched_yield();
}

static void teardown(void) {
    cr_server_close_all(&server);
    while (metric_now(CR_M_jobs)) turn();
    ck_assert(cr_files_stop(server.files, 60000));
    cr_queue_close(server.queue);
    cr_lane_cpu.close(server.lanes.lanes[0]);
    cr_server_close_handles(&server);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    ck_assert_uint_eq(metric_now(CR_M_calls), 0);
    ck_assert_uint_eq(metric_now(CR_M_connections), 0);
    ck_assert_uint_eq(server.admission.calls, 0);
    ck_assert_uint_eq(server.admission.bytes, 0);
    cr_slabs_free(server.slabs);
    cr_queue_free(server.queue);
    cr_server_free(&server);
}

static void queue_bytes(client *c, const void *bytes, size_t n) {
    if (c->out_cap - c->out_len < n) {
        c->out_cap = c->out_len + n + c->out_cap;
        c->out = realloc(c->out, c->out_cap);
    }
    memcpy(c->out + c->out_len, bytes, n);
    c->out_len += n;
}

static void queue_frame(client *c, uint8_t type, uint16_t flags, uint32_t stream, const void *payload, size_t n) {
    uint8_t head[CR_FRAME_HEADER_BYTES];
    cr_frame frame = {.type = type, .flags = flags, .stream = stream, .length = (uint32_t)n};
    cr_frame_put(head, &frame);
    queue_bytes(c, head, sizeof head);
    if (n) queue_bytes(c, payload, n);
}

/* Sum of u32; bytes UINT64_MAX: length unknown. */
static void queue_call(client *c, uint32_t stream, uint64_t bytes) {
    uint8_t payload[128];
    cr_wire_call call = {.kind = CR_CALL_REDUCE};
    call.reduce.dtype = CR_U32;
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_SUM;
    call.reduce.source = CR_SOURCE_STREAM;
    call.reduce.length_known = bytes != UINT64_MAX;
    call.reduce.length = call.reduce.length_known ? bytes : 0;
    queue_frame(c, CR_FRAME_CALL, 0, stream, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    c->credit[stream] = CR_CREDIT_INITIAL_BYTES;
}

static client *new_client(void) {
    client *c = calloc(1, sizeof *c);
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    c->fd = ends[0];
    assert_ok(cr_conn_open(&server, ends[1], true, &error), error);
    uint8_t payload[256];
    cr_wire_hello hello = {.version_min = 1, .version_max = 1, .client = "unit"};
    queue_frame(c, CR_FRAME_HELLO, 0, 0, payload, cr_wire_pack_hello(&hello, payload, sizeof payload));
    return c;
}

static void free_client(client *c) {
    close(c->fd);
    free(c->out);
    free(c);
}

static void take_frame(client *c, const cr_frame *frame, const uint8_t *payload) {
    cr_wire_result result;
    cr_wire_status status;
    uint64_t bytes;
    switch (frame->type) {
        case CR_FRAME_RESULT:
            assert_ok(cr_wire_unpack_result(payload, frame->length, &result, &error), error);
            ck_assert_uint_eq(result.results[0].status, 0);
            memcpy(&c->sum[frame->stream], result.results[0].value, 8);
            c->answers++;
            break;
        case CR_FRAME_STATUS:
            assert_ok(cr_wire_unpack_status(payload, frame->length, &status, &error), error);
            c->status[frame->stream] = status.code;
            c->failures++;
            break;
        case CR_FRAME_CREDIT:
            assert_ok(cr_wire_unpack_credit(payload, frame->length, &bytes, &error), error);
            c->credit[frame->stream] += bytes;
            break;
        default:
            c->welcomes += frame->type == CR_FRAME_WELCOME;
            c->pongs += frame->type == CR_FRAME_PONG;
    }
}

/* Writes at most most_out and reads at most most_in bytes of what is there, and lets the loop turn. */
static void step(client *c, size_t most_out, size_t most_in) {
    size_t left = c->out_len - c->out_off, room = sizeof c->in - c->held, at = 0;
    if (left && most_out) {
        ssize_t n = send(c->fd, c->out + c->out_off, left < most_out ? left : most_out, MSG_NOSIGNAL);
        if (n > 0) c->out_off += (size_t)n;
        if (c->out_off == c->out_len) c->out_off = c->out_len = 0;
    }
    turn();
    ssize_t n = most_in ? recv(c->fd, c->in + c->held, room < most_in ? room : most_in, 0) : -1;
    if (n == 0 || (most_in && n < 0 && errno != EAGAIN)) c->gone = true;
    if (n > 0) c->held += (size_t)n;
    cr_frame frame;
    bool skip;
    while (c->held - at >= CR_FRAME_HEADER_BYTES) {
        assert_ok(cr_frame_get(c->in + at, false, &frame, &skip, &error), error);
        if (c->held - at < CR_FRAME_HEADER_BYTES + frame.length) break;
        take_frame(c, &frame, c->in + at + CR_FRAME_HEADER_BYTES);
        at += CR_FRAME_HEADER_BYTES + frame.length;
    }
    memmove(c->in, c->in + at, c->held - at);
    c->held -= at;
}

static void finish(client *c, unsigned answers) {
    while (c->answers + c->failures < answers && !c->gone) step(c, SIZE_MAX, SIZE_MAX);
}

static uint32_t *numbers(size_t n, uint64_t *sum) {
    uint32_t *p = malloc(n * sizeof *p);
    *sum = 0;
    for (size_t i = 0; i < n; i++) *sum += p[i] = (uint32_t)(i * 2654435761u);
    return p;
}

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

static cr_conn *only_conn(void) { return cr_container(server.connections.next, cr_conn, link); }

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

int main(void) {
    Suite *suite = suite_create("server/conn");
    TCase *tc = tcase_create("conn");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, small_calls_are_answered_in_their_turn, 0, 4);
    tcase_add_loop_test(tc, an_upload_in_pieces, 0, 8);
    tcase_add_loop_test(tc, more_uploads_than_slabs, 0, 2);
    tcase_add_loop_test(tc, leaving_in_the_middle, 0, 16);
    tcase_add_test(tc, a_slow_reader_does_not_grow_the_reply_buffer);
    tcase_add_test(tc, a_wrong_upload_fails_alone);
    tcase_add_loop_test(tc, without_memory, 0, 8);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
