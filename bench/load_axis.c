/* load_axis: an array in this process's device memory, reduced along an axis by the daemon, beside the same kernel on the same memory in this
 * process, whose answers come back to the host likewise: what is between them is the daemon, its lane, and the answers' way through the socket.
 *
 * Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/load.h"
#include "cured/cured.h"
#include "kernels/cuda/gpu.h"

extern const cr_gpu_api CURED_GPU_API;

enum { PIECE = 16 << 20, CALLS = 5 };

typedef struct axis_row {
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    void *memory;
    cr_shape shape;
    uint64_t bytes, answers;
    cured_conn *conn;
    cured_region *region;
    double *expected, *got;
} axis_row;

static bool fail(const char *what, const char *why) {
    fprintf(stderr, "cured-bench: %s: %s\n", what, why);
    return false;
}

static cr_status await(axis_row *r, cr_error *error) {
    cr_status status = CR_OK;
    for (bool idle = false; status == CR_OK && !idle;) status = r->api->poll(r->stream, &idle, error);
    return status;
}

static cr_status fill(axis_row *r, cr_error *error) {
    void *host;
    cr_status status = r->api->host_alloc(r->gpu, PIECE, &host, error);
    if (status != CR_OK) return status;
    float *floats = host;
    for (uint64_t i = 0; i < PIECE / sizeof *floats; i++)
        floats[i] = (float)(i * 2654435761u >> 8 & 0xffffff) / 65536.0f - 128.0f;
    for (uint64_t at = 0; at < r->bytes && status == CR_OK; at += PIECE) {
        floats[at / PIECE % PIECE] += 1; /* no piece is another's */
        uint64_t step = r->bytes - at < PIECE ? r->bytes - at : PIECE;
        status = r->api->copy(r->stream, (char *)r->memory + at, host, step, error);
        if (status == CR_OK) status = await(r, error);
    }
    r->api->host_free(r->gpu, host);
    return status;
}

static double bare_seconds(axis_row *r) {
    static const cr_op op = CR_OP_SUM;
    const cr_gpu_axis axis = {.dtype = CR_F32, .shape = r->shape, .data = r->memory, .ops = &op, .op_count = 1};
    const void *out[CR_GPU_AXIS_OPS];
    uint64_t failed;
    cr_error error;
    double start = bench_now();
    cr_status status = r->api->axis(r->stream, &axis, &error);
    if (status == CR_OK) status = await(r, &error);
    if (status == CR_OK) status = r->api->axis_result(r->stream, out, &failed, &error);
    double took = bench_now() - start;
    if (status != CR_OK) return fail("the bare kernel", error.text), -1;
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
    options.results = results;
    double start = bench_now();
    bool good =
        cured_region_reduce(r->region, CURED_F32, &op, 1, 0, CURED_TO_END, &options, &call, &error) == CURED_OK &&
        cured_wait(call, &error) == CURED_OK;
    double took = bench_now() - start;
    cured_call_free(call);
    if (!good) return fail("the daemon", error.text), -1;
    if (memcmp(r->got, r->expected, r->answers * sizeof *r->got) == 0) return took;
    return fail("the daemon", "a wrong sum"), -1;
}

/* GB/s: the median of several in a row; the first brings the GPU from the other process's context to this one's. */
static double measure(void *context, bool floor) {
    axis_row *r = context;
    double took[CALLS];
    for (int i = -1; i < CALLS; i++)
        if ((took[i < 0 ? 0 : i] = (floor ? bare_seconds : daemon_seconds)(r)) < 0) return -1;
    return (double)r->bytes / bench_median(took, CALLS) / 1e9;
}

static bool open_row(axis_row *r, const load_options *o) {
    cr_error e;
    cured_error error;
    char address[128];
    snprintf(address, sizeof address, "unix:%s", o->socket);
    r->expected = malloc(r->answers * sizeof *r->expected);
    r->got = malloc(r->answers * sizeof *r->got);
    if (!r->expected || !r->got) return fail("the row", "no memory");
    cr_status status = r->api->open(0, &r->gpu, &e);
    if (status == CR_OK) status = r->api->stream_open(r->gpu, 1, &r->stream, &e);
    if (status == CR_OK) status = r->api->device_alloc(r->gpu, r->bytes, &r->memory, &e);
    if (status == CR_OK) status = fill(r, &e);
    if (status != CR_OK) return fail("the GPU", e.text);
    if (cured_connect(address, NULL, &r->conn, &error) == CURED_OK &&
        cured_region_cuda_pointer(r->conn, r->memory, r->bytes, NULL, &r->region, &error) == CURED_OK &&
        cured_region_wait(r->region, &error) == CURED_OK)
        return bare_seconds(r) > 0;
    return fail("the region", error.text);
}

static void close_row(axis_row *r) {
    cured_region_free(r->region);
    cured_close(r->conn);
    if (r->stream) r->api->stream_close(r->stream);
    if (r->memory) r->api->device_free(r->gpu, r->memory);
    if (r->gpu) r->api->close(r->gpu);
    free(r->expected);
    free(r->got);
}

/* n = 0: as many lines as there are bytes. */
static bool run_row(const load_options *options, FILE *json, const char *name, uint64_t n, uint64_t inner,
                    const char *spin_us) {
    load_options with = *options;
    const load_options *o = &with;
    with.spin_us = spin_us;
    const uint64_t lines = o->device_bytes / sizeof(float) / inner;
    cr_shape shape = n ? (cr_shape){lines / n, n, inner} : (cr_shape){1, lines, inner};
    axis_row r = {.api = &CURED_GPU_API, .shape = shape};
    r.answers = shape.outer * shape.inner;
    r.bytes = r.answers * shape.n * sizeof(float);
    cr_error why;
    if (!load_wanted(o, name)) return true;
    if (!r.api->count(&why)) {
        printf("%-36s not here: %s\n", name, why.text);
        return true;
    }
    pid_t daemon = load_daemon_start(o, -1); /* before this process has a context */
    bool good = daemon > 0 && open_row(&r, o);
    load_row row = {.name = name, .unit = "GB/s", .floor_name = "the bare kernel", .has_floor = true};
    good = good && load_rounds(&row, o->rounds, measure, &r);
    if (good) load_print(&row, json);
    close_row(&r);
    load_stop(daemon);
    return good;
}

bool load_axis_rows(const load_options *o, FILE *json) {
    return run_row(o, json, "device axis, rows of 65536", 65536, 1, NULL) &&
           run_row(o, json, "device axis, 65536 columns", 0, 65536, NULL) &&
           run_row(o, json, "device axis, rows of 4096", 4096, 1, NULL) &&
           run_row(o, json, "device axis, rows of 1024", 1024, 1, NULL) &&
           run_row(o, json, "device axis, rows of 32", 32, 1, NULL) &&
           run_row(o, json, "device axis, rows of 65536, spin_us 50", 65536, 1, "50");
}
