/* floors_device: a region in this process's device memory, reduced by the daemon, beside the same kernel on the same memory in this process: what
 * is between them is the socket, the daemon and its lane. The large one by its bandwidth, the small one by what its answer takes beyond
 * the bare launch; there the client looks for the answer all the time, as the bare launch does, sleeps until it comes, or waits as
 * cured_wait() does.
 *
 * Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/floors_gpu.h"
#include "kernels/core/op.h"

typedef enum way { LOOKING, ASLEEP, WAITING } way;

enum { SMALL = 4096, SMALL_CALLS = 2000, LARGE_CALLS = 9 };

typedef struct device_row {
    floors_gpu g; /* first: floors_gpu_row's */
    uint64_t count;
    bool looks;
    double *took; /* of the small calls */
    double bare_us, ours_us;
    char expected[CURED_TEXT_BYTES];
} device_row;

/* Seconds; the sum's text is what the daemon's must equal. */
static double bare_seconds(device_row *r) {
    const uint32_t families = cr_op_needs(CR_OP_SUM, CR_F32);
    const cr_gpu_fold input = {.dtype = CR_F32, .families = families, .data = r->g.memory, .n = r->count};
    cr_error error;
    cr_value value;
    double start = bench_now();
    cr_status status = r->g.api->fold(r->g.stream, &input, 1, 0, &error);
    if (status == CR_OK) status = floors_gpu_await(&r->g, &error);
    if (status != CR_OK) return floors_gpu_fail("the bare kernel", error.text), -1;
    const cr_partial *partial = r->g.api->result(r->g.stream, 0);
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
    bool good = cured_region_reduce(r->g.region, CURED_F32, &op, 1, 0, CURED_TO_END, NULL, &call, &error) == CURED_OK;
    while (good && r->looks && !cured_call_done(call)) good = cured_process(r->g.conn, &error) == CURED_OK;
    good = good && cured_wait(call, &error) == CURED_OK;
    double took = bench_now() - start;
    if (good) cured_value_text(cured_call_value(call, 0), text, sizeof text);
    cured_call_free(call);
    if (good && strcmp(text, r->expected) == 0) return took;
    return floors_gpu_fail(good ? "a wrong sum" : "the daemon", good ? text : error.text), -1;
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
    return took > 0 ? (double)r->g.bytes / took / 1e9 : -1;
}

static double measure_small(void *context, bool floor) {
    device_row *r = context;
    (void)floor;
    r->bare_us = median_seconds(r, bare_seconds, SMALL_CALLS) * 1e6;
    r->ours_us = median_seconds(r, daemon_seconds, SMALL_CALLS) * 1e6;
    return r->bare_us < 0 || r->ours_us < 0 ? -1 : r->ours_us - r->bare_us;
}

static bool warm(void *context) { return bare_seconds(context) > 0; }

static bool run_row(const floors_options *o, FILE *json, const char *name, uint64_t bytes, way how,
                    const char *spin_us) {
    device_row r = {
        .g = {.bytes = bytes, .asleep = how == ASLEEP}, .count = bytes / sizeof(float), .looks = how == LOOKING};
    bool small = bytes == SMALL, ran;
    floors_row row = {.name = name,
                      .unit = small ? "us over the bare launch" : "GB/s",
                      .floor_name = "the bare kernel",
                      .has_floor = !small,
                      .less_is_better = small,
                      .target = small ? 15 : 0.97};
    r.took = malloc(SMALL_CALLS * sizeof *r.took);
    if (!r.took) return floors_gpu_fail("the row", "no memory");
    bool good = floors_gpu_row(o, json, &row, spin_us, small ? measure_small : measure_large, warm, &r, &ran);
    if (ran && small) printf("%36s last round: bare %.1f us, the daemon %.1f us\n", "", r.bare_us, r.ours_us);
    free(r.took);
    return good;
}

bool floors_device_rows(const floors_options *o, FILE *json) {
    const uint64_t large = o->device_bytes / SMALL * SMALL;
    return run_row(o, json, "device region, sum f32, large", large, LOOKING, NULL) &&
           run_row(o, json, "device region, 4 KiB, looking", SMALL, LOOKING, NULL) &&
           run_row(o, json, "device region, 4 KiB, asleep", SMALL, ASLEEP, NULL) &&
           run_row(o, json, "device region, 4 KiB, waiting", SMALL, WAITING, NULL) &&
           run_row(o, json, "device region, large, spin_us 1000", large, LOOKING, "1000") &&
           run_row(o, json, "device region, 4 KiB, looking, spin_us 0", SMALL, LOOKING, "0") &&
           run_row(o, json, "device region, 4 KiB, asleep, spin_us 0", SMALL, ASLEEP, "0");
}
