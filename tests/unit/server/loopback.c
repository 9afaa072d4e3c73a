/* loopback: see loopback.h. Thread: the test's. Owner: the test. */
#include "tests/unit/server/loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uv_loop_t uv;
cr_calls calls;
cr_loop loop;
cr_native native;
cr_grpc grpc;
cr_arrivals arrivals;
cr_config config;
cr_error error;
size_t slab_count = SLABS;

void setup(void) {
    char name[] = "test", folder[] = "XDG_RUNTIME_DIR=/run/user/1"; /* a daemon that is not root's wants an address */
    char *arguments[] = {name, NULL}, *environment[] = {folder, NULL};
    cr_config_action action;
    assert_ok(cr_config_load(1, arguments, environment, &config, &action, &error), error);
    config.hello_timeout_ms = 600000; /* a busy machine may keep a test from its HELLO for seconds */
    uv_loop_init(&uv);
    memset(&calls, 0, sizeof calls);
    memset(&loop, 0, sizeof loop);
    memset(&native, 0, sizeof native);
    memset(&grpc, 0, sizeof grpc);
    calls.config = &config;
    calls.version = "0";
    calls.lanes.workers = 2;
    calls.lanes.backend = "cpu";
    calls.lanes.kinds = CR_BY_CPU;
    cr_calls_init(&calls, cr_loop_wake, &loop);
    assert_ok(cr_loop_init(&loop, &uv, &calls, &error), error);
    assert_ok(cr_native_init(&native, &loop, &error), error);
    assert_ok(cr_grpc_init(&grpc, &loop, &error), error);
    cr_arrivals_init(&arrivals, &loop);
    assert_ok(cr_queue_new(cr_loop_wake, &loop, &calls.queue, &error), error);
    assert_ok(cr_slabs_new(slab_count, &calls.slabs, &error), error);
    assert_ok(cr_files_new(2, 2, &calls.files, &error), error);
    cr_lane_options options = {.queue = calls.queue, .workers = 2};
    assert_ok(cr_lane_cpu.open(&options, &calls.lanes.lanes[0], &error), error);
    calls.lanes.types[0] = &cr_lane_cpu;
    calls.lanes.count = 1;
}

void turn(void) {
    hold_failures(false);
    uv_run(&uv, UV_RUN_NOWAIT);
    hold_failures(true);
    sched_yield();
}

void teardown(void) {
    cr_arrivals_close(&arrivals);
    cr_loop_close_doors(&loop);
    while (metric_now(CR_M_jobs)) turn();
    while (calls.admission.used[CR_USE_calls]) turn(); /* whose masks go back */
    ck_assert(cr_files_stop(calls.files, 60000));
    calls.files = NULL;
    cr_queue_close(calls.queue);
    cr_lane_cpu.close(calls.lanes.lanes[0]);
    cr_loop_close_handles(&loop);
    uv_run(&uv, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&uv), 0);
    ck_assert_uint_eq(metric_now(CR_M_calls), 0);
    ck_assert_uint_eq(metric_now(CR_M_connections), 0);
    ck_assert_uint_eq(calls.admission.used[CR_USE_calls], 0);
    ck_assert_uint_eq(calls.admission.used[CR_USE_bytes], 0);
    cr_native_free(&native);
    cr_grpc_free(&grpc);
    cr_calls_free(&calls); /* gives back what was granted behind the last turn */
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    cr_slabs_free(calls.slabs);
    cr_queue_free(calls.queue);
}

void queue_bytes(client *c, const void *bytes, size_t n) {
    if (c->out_cap - c->out_len < n) {
        c->out_cap = c->out_len + n + c->out_cap;
        c->out = realloc(c->out, c->out_cap);
    }
    memcpy(c->out + c->out_len, bytes, n);
    c->out_len += n;
}

void queue_frame(client *c, uint8_t type, uint16_t flags, uint32_t stream, const void *payload, size_t n) {
    uint8_t head[CR_FRAME_HEADER_BYTES];
    cr_frame frame = {.type = type, .flags = flags, .stream = stream, .length = (uint32_t)n};
    cr_frame_put(head, &frame);
    queue_bytes(c, head, sizeof head);
    if (n) queue_bytes(c, payload, n);
}

void queue_call(client *c, uint32_t stream, uint64_t bytes) {
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

static client *greet(const int ends[2], bool is_unix) {
    client *c = calloc(1, sizeof *c);
    c->fd = ends[0];
    c->served = ends[1];
    const cr_arrival_from from = {.is_unix = is_unix};
    assert_ok(cr_arrival_open(&arrivals, ends[1], &from, &error), error);
    uint8_t payload[256];
    cr_wire_hello hello = {.version_min = 1, .version_max = 1, .client = "unit"};
    queue_frame(c, CR_FRAME_HELLO, 0, 0, payload, cr_wire_pack_hello(&hello, payload, sizeof payload));
    return c;
}

client *new_client(void) {
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    return greet(ends, true);
}

client *new_tcp_client(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    const int kind = SOCK_STREAM | SOCK_CLOEXEC, listener = socket(AF_INET, kind, 0);
    int ends[2] = {socket(AF_INET, kind, 0)};
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    ck_assert_int_eq(connect(ends[0], (struct sockaddr *)&name, length), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    close(listener);
    return greet(ends, false);
}

void free_client(client *c) {
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
            if (!(frame->flags & CR_FLAG_END)) break; /* answers along an axis are not looked at */
            assert_ok(cr_wire_unpack_result(payload, frame->length, &result, &error), error);
            ck_assert_uint_eq(result.results[0].status, 0);
            memcpy(&c->sum[frame->stream], result.results[0].value, 8);
            c->answers++;
            break;
        case CR_FRAME_STATUS:
            assert_ok(cr_wire_unpack_status(payload, frame->length, &status, &error), error);
            c->status[frame->stream] = status.code;
            memcpy(c->message, status.message, sizeof c->message);
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

void step(client *c, size_t most_out, size_t most_in) {
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

void finish(client *c, unsigned answers) {
    while (c->answers + c->failures < answers && !c->gone) step(c, SIZE_MAX, SIZE_MAX);
}

uint32_t *numbers(size_t n, uint64_t *sum) {
    uint32_t *p = malloc(n * sizeof *p);
    *sum = 0;
    for (size_t i = 0; i < n; i++) *sum += p[i] = (uint32_t)(i * 2654435761u);
    return p;
}

/* The linker puts this in front of send. */
static int swallowing = -1;
static size_t swallowed, swallow_most;
static unsigned sends;

void swallow(const client *c, size_t most) {
    swallowing = c ? c->served : -1;
    swallowed = sends = 0;
    swallow_most = most;
}

size_t swallowed_bytes(void) { return swallowed; }
unsigned swallowed_sends(void) { return sends; }

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags) {
    if (fd != swallowing) return __real_send(fd, bytes, n, flags);
    if (swallowed >= swallow_most) {
        errno = EAGAIN;
        return -1;
    }
    swallowed += n;
    sends++;
    return (ssize_t)n;
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static _Atomic uint64_t stopped_ns; /* workers ask for the time as well; 0: it goes on */

void stop_clock(bool stopped) {
    struct timespec now = {0};
    if (stopped) __real_clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&stopped_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    uint64_t at = atomic_load(&stopped_ns);
    if (clock != CLOCK_MONOTONIC || at == 0) return __real_clock_gettime(clock, now);
    *now = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
    return 0;
}

int __real_accept4(int fd, struct sockaddr *name, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *length, int flags);

static unsigned accepts;

unsigned accept_calls(void) { return accepts; }

int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *length, int flags) {
    accepts++;
    return __real_accept4(fd, name, length, flags);
}

rlim_t limit_descriptors(rlim_t most) {
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}
