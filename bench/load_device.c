/* load_device: a region in this process's device memory, reduced by the daemon, beside the same kernel on the same memory in this process: what
 * is between them is the socket, the daemon and its lane. The large one by its bandwidth, the small one by what its answer takes beyond
 * the bare launch; there the client looks for the answer all the time, as the bare launch does, or sleeps until it comes.
 *
 * Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/load.h"
#include "cured/cured.h"
#include "kernels/core/op.h"
#include "kernels/cuda/gpu.h"

extern const cr_gpu_api CURED_GPU_API;

enum { PIECE = 16 << 20, SMALL = 4096, SMALL_CALLS = 2000, LARGE_CALLS = 9 };

typedef struct device_row {
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    void *memory;
    uint64_t bytes, count;
    cured_conn *conn;
    cured_region *region;
    bool looks;
    double *took; /* of the small calls */
    double bare_us, ours_us;
    char expected[CURED_TEXT_BYTES];
} device_row;

static bool fail(const char *what, const char *why) {
    fprintf(stderr, "cured-bench: %s: %s\n", what, why);
    return false;
}

static cr_status await(device_row *r, cr_error *error) {
    cr_status status = CR_OK;
    for (bool idle = false; status == CR_OK && !idle;) status = r->api->poll(r->stream, &idle, error);
    return status;
}

static cr_status fill(device_row *r, cr_error *error) {
    void *host;
    cr_status status = r->api->host_alloc(r->gpu, PIECE, &host, error);
    if (status != CR_OK) return status;
    float *floats = host;
    for (uint64_t at = 0; at < r->bytes && status == CR_OK; at += PIECE) {
        uint64_t step = r->bytes - at < PIECE ? r->bytes - at : PIECE;
        for (uint64_t i = 0; i < step / sizeof *floats; i++)
            floats[i] = (float)(((at / 4 + i) * 2654435761u) >> 8 & 0xffffff) / 65536.0f - 128.0f;
        status = r->api->copy(r->stream, (char *)r->memory + at, host, step, error);
        if (status == CR_OK) status = await(r, error);
    }
    r->api->host_free(r->gpu, host);
    return status;
}

/* Seconds; the sum's text is what the daemon's must equal. */
static double bare_seconds(device_row *r) {
    const uint32_t families = cr_op_needs(CR_OP_SUM, CR_F32);
    const cr_gpu_fold input = {.dtype = CR_F32, .families = families, .data = r->memory, .n = r->count};
    cr_error error;
    cr_value value;
    double start = bench_now();
    cr_status status = r->api->fold(r->stream, &input, 1, 0, &error);
    if (status == CR_OK) status = await(r, &error);
    if (status != CR_OK) return fail("the bare kernel", error.text), -1;
    const cr_partial *partial = r->api->result(r->stream, 0);
    cr_partial_finish(partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    double took = bench_now() - start;
    cured_text(CURED_F64, value.bytes, sizeof(double), r->expected, sizeof r->expected);
    return took;
}

static double daemon_seconds(device_row *r) {
    const cured_op op = CURED_OP_SUM;
    cured_call *call = NULL;
    cured_error error;
    char text[CURED_TEXT_BYTES] = "";
    double start = bench_now();
    bool good = cured_region_reduce(r->region, CURED_F32, &op, 1, 0, CURED_TO_END, NULL, &call, &error) == CURED_OK;
    while (good && r->looks && !cured_call_done(call)) good = cured_process(r->conn, &error) == CURED_OK;
    good = good && cured_wait(call, &error) == CURED_OK;
    double took = bench_now() - start;
    if (good) cured_value_text(cured_call_value(call, 0), text, sizeof text);
    cured_call_free(call);
    if (good && strcmp(text, r->expected) == 0) return took;
    return fail(good ? "a wrong sum" : "the daemon", good ? text : error.text), -1;
}

/* The median of several in a row, in seconds; -1: one failed. The first brings the GPU from the other process's context to this one's. */
static double median_seconds(device_row *r, double (*run)(device_row *), int calls) {
    for (int i = -1; i < calls; i++)
        if ((r->took[i < 0 ? 0 : i] = run(r)) < 0) return -1;
    return bench_median(r->took, (size_t)calls);
}

/* GB/s. */
static double measure_large(void *context, bool floor) {
    device_row *r = context;
    double took = median_seconds(r, floor ? bare_seconds : daemon_seconds, LARGE_CALLS);
    return took > 0 ? (double)r->bytes / took / 1e9 : -1;
}

static double measure_small(void *context, bool floor) {
    device_row *r = context;
    (void)floor;
    r->bare_us = median_seconds(r, bare_seconds, SMALL_CALLS) * 1e6;
    r->ours_us = median_seconds(r, daemon_seconds, SMALL_CALLS) * 1e6;
    return r->bare_us < 0 || r->ours_us < 0 ? -1 : r->ours_us - r->bare_us;
}

static bool open_row(device_row *r, const load_options *o) {
    cr_error e;
    cured_error error;
    char address[128];
    snprintf(address, sizeof address, "unix:%s", o->socket);
    r->took = malloc(SMALL_CALLS * sizeof *r->took);
    if (!r->took) return fail("the row", "no memory");
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

static void close_row(device_row *r) {
    cured_region_free(r->region);
    cured_close(r->conn);
    if (r->stream) r->api->stream_close(r->stream);
    if (r->memory) r->api->device_free(r->gpu, r->memory);
    if (r->gpu) r->api->close(r->gpu);
    free(r->took);
}

static bool run_row(const load_options *options, FILE *json, const char *name, uint64_t bytes, bool looks,
                    const char *spin_us) {
    load_options with = *options;
    const load_options *o = &with;
    with.spin_us = spin_us;
    device_row r = {.api = &CURED_GPU_API, .bytes = bytes, .count = bytes / sizeof(float), .looks = looks};
    cr_error why;
    bool small = bytes == SMALL;
    if (!load_wanted(o, name)) return true;
    if (!r.api->count(&why)) {
        printf("%-36s not here: %s\n", name, why.text);
        return true;
    }
    pid_t daemon = load_daemon_start(o, -1); /* before this process has a context */
    bool good = daemon > 0 && open_row(&r, o);
    load_row row = {.name = name,
                    .unit = small ? "us over the bare launch" : "GB/s",
                    .floor_name = "the bare kernel",
                    .has_floor = !small,
                    .less_is_better = small,
                    .target = small ? 15 : 0.97};
    good = good && load_rounds(&row, o->rounds, small ? measure_small : measure_large, &r);
    if (good) load_print(&row, json);
    if (good && small) printf("%36s last round: bare %.1f us, the daemon %.1f us\n", "", r.bare_us, r.ours_us);
    close_row(&r);
    load_stop(daemon);
    return good;
}

bool load_device_rows(const load_options *o, FILE *json) {
    const uint64_t large = o->device_bytes / SMALL * SMALL;
    return run_row(o, json, "device region, sum f32, large", large, true, NULL) &&
           run_row(o, json, "device region, 4 KiB, looking", SMALL, true, NULL) &&
           run_row(o, json, "device region, 4 KiB, asleep", SMALL, false, NULL) &&
           run_row(o, json, "device region, large, spin_us 1000", large, true, "1000") &&
           run_row(o, json, "device region, 4 KiB, looking, spin_us 50", SMALL, true, "50") &&
           run_row(o, json, "device region, 4 KiB, asleep, spin_us 50", SMALL, false, "50");
}
