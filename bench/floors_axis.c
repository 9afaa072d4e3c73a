/* floors_axis: an array in this process's device memory, reduced along an axis by the daemon, beside the same kernel on the same memory in this
 * process, whose answers come back to the host likewise: what is between them is the daemon, its lane, and the answers' way through the socket.
 * With the answers in this process's device memory neither has that way to go. There the client looks for the answer all the time, as the
 * bare launch does, sleeps until it comes, or waits as cured_wait() does.
 *
 * Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/floors_gpu.h"

enum { CALLS = 5 };

typedef struct axis_row {
    floors_gpu g; /* first: floors_gpu_row's */
    cr_shape shape;
    uint64_t answers;
    double *expected, *got;
    double ours_us, fold_us; /* of the last call; fold_us: in the lane */
    bool placed;             /* answers go to device memory: g.to[0] has the bare kernel's, g.to[1] the daemon's */
    bool looks;
} axis_row;

/* Memory for the answers on the device, when there is a context. */
static bool places(axis_row *r) {
    const uint64_t bytes = r->answers * sizeof *r->got;
    cr_error e;
    cured_error error;
    if (!r->placed || r->g.written) return true;
    if (r->g.api->device_alloc(r->g.gpu, bytes, &r->g.to[0], &e) != CR_OK ||
        r->g.api->device_alloc(r->g.gpu, bytes, &r->g.to[1], &e) != CR_OK)
        return floors_gpu_fail("memory for the answers", e.text);
    if (cured_region_cuda_pointer_writable(r->g.conn, r->g.to[1], bytes, NULL, &r->g.written, &error) != CURED_OK ||
        cured_region_wait(r->g.written, &error) != CURED_OK)
        return floors_gpu_fail("the answers' region", error.text);
    return true;
}

/* Brings placed answers to the host. */
static bool fetch(axis_row *r, const void *from, double *to) {
    enum { PIECE = 16 << 20 };
    const uint64_t bytes = r->answers * sizeof *to;
    cr_error error;
    void *host;
    cr_status status = r->g.api->host_alloc(r->g.gpu, PIECE, &host, &error);
    for (uint64_t at = 0; status == CR_OK && at < bytes; at += PIECE) {
        const uint64_t step = bytes - at < PIECE ? bytes - at : PIECE;
        status = r->g.api->fetch(r->g.stream, host, (const char *)from + at, step, step, 1, &error);
        if (status == CR_OK) status = floors_gpu_await(&r->g, &error);
        if (status == CR_OK) memcpy((char *)to + at, host, step);
    }
    if (status == CR_OK) r->g.api->host_free(r->g.gpu, host);
    return status == CR_OK || floors_gpu_fail("the answers", error.text);
}

static double bare_seconds(axis_row *r) {
    static const cr_op op = CR_OP_SUM;
    const cr_gpu_axis axis = {.dtype = CR_F32,
                              .shape = r->shape,
                              .data = r->g.memory,
                              .ops = &op,
                              .op_count = 1,
                              .to = r->placed ? r->g.to : NULL};
    const void *out[CR_GPU_AXIS_OPS];
    uint64_t failed;
    cr_error error;
    double start = bench_now();
    cr_status status = r->g.api->axis(r->g.stream, &axis, &error);
    if (status == CR_OK) status = floors_gpu_await(&r->g, &error);
    if (status == CR_OK) status = r->g.api->axis_result(r->g.stream, out, &failed, &error);
    double took = bench_now() - start;
    if (status != CR_OK) return floors_gpu_fail("the bare kernel", error.text), -1;
    if (r->placed) return took;
    memcpy(r->expected, out[0], r->answers * sizeof *r->expected);
    return took;
}

static double daemon_seconds(axis_row *r) {
    static const cured_op op = CURED_OP_SUM;
    const cured_axis axis = {r->shape.outer, r->shape.n, r->shape.inner};
    void *const results[] = {r->got};
    cured_options options = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error;
    options.axis = &axis;
    const cured_output output = {r->g.written, 0};
    if (r->placed)
        options.outputs = &output;
    else
        options.results = results;
    double start = bench_now();
    bool good =
        cured_region_reduce(r->g.region, CURED_F32, &op, 1, 0, CURED_TO_END, &options, &call, &error) == CURED_OK;
    while (good && r->looks && !cured_call_done(call)) good = cured_process(r->g.conn, &error) == CURED_OK;
    good = good && cured_wait(call, &error) == CURED_OK;
    double took = bench_now() - start;
    if (good) r->fold_us = (double)cured_call_timing(call).run_ns / 1e3;
    cured_call_free(call);
    if (!good) return floors_gpu_fail("the daemon", error.text), -1;
    r->ours_us = took * 1e6;
    if (r->placed || memcmp(r->got, r->expected, r->answers * sizeof *r->got) == 0) return took;
    return floors_gpu_fail("the daemon", "a wrong sum"), -1;
}

/* Counts in place of sums, so that answers that are not written are wrong. */
static bool spoil(axis_row *r) {
    static const cr_op op = CR_OP_COUNT_NONZERO;
    const cr_gpu_axis axis = {
        .dtype = CR_F32, .shape = r->shape, .data = r->g.memory, .ops = &op, .op_count = 1, .to = &r->g.to[1]};
    cr_error error;
    cr_status status = r->g.api->axis(r->g.stream, &axis, &error);
    if (status == CR_OK) status = floors_gpu_await(&r->g, &error);
    return status == CR_OK || floors_gpu_fail("the bare kernel", error.text);
}

/* Of placed answers, which are looked at when all calls are over. */
static bool check(axis_row *r) {
    if (!fetch(r, r->g.to[0], r->expected) || !fetch(r, r->g.to[1], r->got)) return false;
    return memcmp(r->got, r->expected, r->answers * sizeof *r->got) == 0 ||
           floors_gpu_fail("the daemon", "a wrong sum");
}

static double seconds(void *context, int floor) { return floor ? bare_seconds(context) : daemon_seconds(context); }

/* The first of several calls, which does not count, brings the GPU from the other process's context to this one's. */
static double measure(void *context, int floor) {
    axis_row *r = context;
    const bool checked = r->placed && !floor;
    if (checked && !spoil(r)) return -1;
    const double took = bench_repeat(CALLS, seconds, r, floor);
    return checked && took >= 0 && !check(r) ? -1 : took;
}

static bool warm(void *context) { return places(context) && bare_seconds(context) > 0; }

/* Where the answers go, and how the client waits for them. */
typedef enum way { SOCKET, PLACED, PLACED_ASLEEP, PLACED_WAITING } way;

typedef struct asked {
    const char *name;
    uint64_t n, inner; /* n = 0: as many lines as there are bytes */
    way how;
    const char *spin_us;
} asked;

static bool run_row(const floors_options *o, const asked *a) {
    const uint64_t lines = o->device_bytes / sizeof(float) / a->inner;
    const cr_shape shape = a->n ? (cr_shape){lines / a->n, a->n, a->inner} : (cr_shape){1, lines, a->inner};
    axis_row r = {
        .shape = shape, .answers = shape.outer * shape.inner, .placed = a->how != SOCKET, .looks = a->how == PLACED};
    r.g.asleep = a->how == PLACED_ASLEEP;
    r.g.warm = warm;
    r.g.bytes = r.answers * shape.n * sizeof(float);
    const floors_row row = {a->name, "GB/s", "the bare kernel", false, 0, 0, r.g.bytes, measure, &r};
    bool ran = false;
    r.expected = malloc(r.answers * sizeof *r.expected);
    r.got = malloc(r.answers * sizeof *r.got);
    const bool good =
        r.expected && r.got ? floors_gpu_row(o, &row, a->spin_us, &ran) : floors_gpu_fail("the row", "no memory");
    if (ran) printf("%36s last call: %.1f us, of which %.1f in the lane\n", "", r.ours_us, r.fold_us);
    free(r.expected);
    free(r.got);
    return good;
}

bool floors_axis_rows(const floors_options *o) {
    static const asked rows[] = {{"device axis, rows of 65536", 65536, 1, SOCKET, NULL},
                                 {"device axis, 65536 columns", 0, 65536, SOCKET, NULL},
                                 {"device axis, rows of 4096", 4096, 1, SOCKET, NULL},
                                 {"device axis, rows of 1024", 1024, 1, SOCKET, NULL},
                                 {"device axis, rows of 32", 32, 1, SOCKET, NULL},
                                 {"device axis, placed, rows of 1024", 1024, 1, PLACED, NULL},
                                 {"device axis, placed, rows of 1024, asleep", 1024, 1, PLACED_ASLEEP, NULL},
                                 {"device axis, placed, rows of 1024, waiting", 1024, 1, PLACED_WAITING, NULL},
                                 {"device axis, placed, rows of 32", 32, 1, PLACED, NULL},
                                 {"device axis, rows of 65536, spin_us 0", 65536, 1, SOCKET, "0"}};
    bool good = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && good; i++) good = run_row(o, &rows[i]);
    return good;
}
