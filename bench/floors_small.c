/* floors_small: 1 KiB requests, one or many in flight, beside an echo of the same bytes under the same client loop.
 *
 * A connection keeps its window full: what comes back is counted in whole replies, and as many requests go out in one
 * write. A reply of the echo is the request; a reply of the daemon is a RESULT frame. Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/floors.h"
#include "kernels/core/op.h"

enum {
    ARRAY_BYTES = 1024,
    REQUEST_MAX = 2 * CR_FRAME_HEADER_BYTES + 64 + ARRAY_BYTES,
    WINDOW_MAX = 64,
    CONNS_MAX = 64
};

typedef struct small_conn {
    int fd;
    uint32_t stream; /* the next one */
    size_t held;     /* bytes of an incomplete reply at the front of in */
    uint8_t in[128 * 1024];
} small_conn;

typedef struct small {
    const floors_options *options;
    int conns, window;
    bool blocking; /* one connection; the client sleeps in read() */
    uint8_t request[REQUEST_MAX];
    size_t request_bytes, data_at; /* where DATA's header stands */
    uint8_t expected[64];          /* how every RESULT's payload begins: the first op's answer */
    size_t expected_bytes;
    uint8_t requests[WINDOW_MAX * REQUEST_MAX];
    small_conn conn[CONNS_MAX];
} small;

static void make_request(small *s) {
    cr_wire_call call = {.kind = CR_CALL_REDUCE,
                         .reduce = {.source = CR_SOURCE_STREAM, .length_known = true, .length = ARRAY_BYTES}};
    uint8_t *p = s->request;
    s->data_at = floors_call(p, CR_FRAME_HEADER_BYTES + 64, 1, &call);
    const cr_frame frame = {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 1, .length = ARRAY_BYTES};
    cr_frame_put(p + s->data_at, &frame);
    double sum = 0;
    for (size_t i = 0; i < ARRAY_BYTES / 4; i++) {
        float x = (float)(i % 100) * 0.25f - 7;
        memcpy(p + s->data_at + CR_FRAME_HEADER_BYTES + 4 * i, &x, sizeof x);
        sum += (double)x;
    }
    s->request_bytes = s->data_at + CR_FRAME_HEADER_BYTES + ARRAY_BYTES;
    cr_wire_result result = {.result_count = 1};
    result.results[0] = (cr_wire_op_result){.op = CR_OP_SUM, .dtype = CR_F64, .value_len = 8};
    memcpy(result.results[0].value, &sum, sizeof sum);
    uint8_t packed[256];
    cr_wire_pack_result(&result, packed, sizeof packed);
    s->expected_bytes = 2 + (size_t)packed[1]; /* the first field: tag, length, OpResult */
    memcpy(s->expected, packed, s->expected_bytes);
}

/* Sends n requests in one write. */
static bool send_requests(small *s, small_conn *c, int n) {
    uint8_t *p = s->requests;
    for (int i = 0; i < n; i++, p += s->request_bytes) {
        uint32_t stream = c->stream++;
        memcpy(p + 8, &stream, sizeof stream);
        memcpy(p + s->data_at + 8, &stream, sizeof stream);
    }
    return floors_write(c->fd, s->requests, (size_t)n * s->request_bytes);
}

static int wrong(const char *what) {
    fprintf(stderr, "cured-bench: %s\n", what);
    return -1;
}

/* Whole replies in in[0..held), which are taken out; -1 when one is not what it should be. */
static int take_replies(small *s, small_conn *c, bool floor) {
    size_t at = 0;
    int count = 0;
    while (c->held - at >= CR_FRAME_HEADER_BYTES) {
        const uint8_t *p = c->in + at;
        uint32_t length;
        memcpy(&length, p + 12, sizeof length);
        size_t whole = floor ? s->request_bytes : CR_FRAME_HEADER_BYTES + (size_t)length;
        if (c->held - at < whole) break;
        if (floor && memcmp(p + 12, s->request + 12, 16) != 0) return wrong("the echo gave back other bytes");
        if (!floor && p[3] != CR_FRAME_RESULT) return wrong("the answer is not a RESULT");
        if (!floor && memcmp(p + CR_FRAME_HEADER_BYTES, s->expected, s->expected_bytes) != 0)
            return wrong("the sum is wrong");
        at += whole;
        count++;
    }
    memmove(c->in, c->in + at, c->held - at);
    c->held -= at;
    return count;
}

/* One read, and as many requests as replies were in it. Replies, or -1. */
static int step(small *s, small_conn *c, bool floor) {
    ssize_t n = read(c->fd, c->in + c->held, sizeof c->in - c->held);
    if (n <= 0) return wrong("the connection ended");
    c->held += (size_t)n;
    int count = take_replies(s, c, floor);
    if (count > 0 && !send_requests(s, c, count)) return wrong("the connection ended");
    return count;
}

/* Waits in epoll, as clients of many calls do. */
static long run(small *s, int poller, bool floor, double until) {
    struct epoll_event events[CONNS_MAX];
    long done = 0;
    while (bench_now() < until) {
        int ready = epoll_wait(poller, events, CONNS_MAX, -1);
        for (int i = 0; i < ready; i++) {
            int n = step(s, events[i].data.ptr, floor);
            if (n < 0) return -1;
            done += n;
        }
    }
    return done;
}

/* Sleeps in read(). Linux wakes such a client not only for data, but also when the server has read its requests, for
 * then there is room to write again: too early for any server but an echo, which by then has answered. */
static long run_blocking(small *s, bool floor, double until) {
    long done = 0;
    for (int i = 0; i % 64 || bench_now() < until; i++) {
        int n = step(s, &s->conn[0], floor);
        if (n < 0) return -1;
        done += n;
    }
    return done;
}

/* Requests a second. */
static double measure(void *context, int floor) {
    small *s = context;
    int poller = epoll_create1(EPOLL_CLOEXEC);
    bool good = true;
    for (int i = 0; i < s->conns; i++) {
        small_conn *c = &s->conn[i];
        c->fd = floors_connect(s->options, floor);
        c->stream = 1;
        c->held = 0;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        good = good && c->fd >= 0 && epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) == 0;
    }
    for (int i = 0; i < s->conns && good; i++) good = send_requests(s, &s->conn[i], s->window);
    double start = bench_now(), until = start + s->options->seconds;
    long done = -1;
    if (good) done = s->blocking ? run_blocking(s, floor, until) : run(s, poller, floor, until);
    double took = bench_now() - start;
    for (int i = 0; i < s->conns; i++) close(s->conn[i].fd);
    close(poller);
    return done < 0 ? -1 : (double)done / took;
}

bool floors_small_rows(const floors_options *o) {
    static const struct {
        const char *name;
        int conns, window;
        bool blocking;
        double target;
    } rows[] = {{"1 KiB requests, 1 in flight", 1, 1, false, 0.8},
                {"1 KiB requests, 32 in flight", 1, 32, false, 0.7},
                {"1 KiB requests, 50 connections", 50, 1, false, 0},
                {"1 KiB requests, 32, client in read()", 1, 32, true, 0}};
    enum { ROWS = sizeof rows / sizeof *rows };
    bool any = false;
    for (int i = 0; i < ROWS; i++) any |= bench_wanted(o->only, rows[i].name);
    if (!any) return true;
    pid_t daemon = floors_daemon_start(o, o->server_core), echo = floors_echo_start(o, o->server_core);
    small *s = calloc(1, sizeof *s);
    bool good = daemon > 0 && echo > 0 && s;
    floors_pin_client(o);
    for (int i = 0; i < ROWS && good; i++) {
        if (!bench_wanted(o->only, rows[i].name)) continue;
        *s = (small){.options = o, .conns = rows[i].conns, .window = rows[i].window, .blocking = rows[i].blocking};
        make_request(s);
        for (int k = 0; k < WINDOW_MAX; k++)
            memcpy(s->requests + (size_t)k * s->request_bytes, s->request, s->request_bytes);
        const floors_row row = {rows[i].name, "requests/s", "libuv echo", false, rows[i].target, 0, 0, measure, s};
        good = floors_run(o, &row);
    }
    free(s);
    floors_stop(echo);
    floors_stop(daemon);
    return good;
}
