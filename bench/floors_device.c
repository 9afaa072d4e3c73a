/* floors_device: a region in this process's device memory, reduced by the daemon, beside the same kernel on the same memory in this process: what
 * is between them is the socket, the daemon and its lane. The large one by its bandwidth, the small one by what its answer takes beyond
 * the bare launch; there the client looks for the answer all the time, as the bare launch does, sleeps until it comes, or waits as
 * cured_wait() does.
 *
 * Thread: main. Owner: the row. */
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

static double seconds(void *context, int floor) { return floor ? bare_seconds(context) : daemon_seconds(context); }

/* The first of several calls, which does not count, brings the GPU from the other process's context to this one's. */
static double measure_large(void *context, int floor) { return bench_repeat(LARGE_CALLS, seconds, context, floor); }

static double measure_small(void *context, int floor) {
    device_row *r = context;
    (void)floor;
    r->bare_us = bench_repeat(SMALL_CALLS, seconds, r, true) * 1e6;
    r->ours_us = bench_repeat(SMALL_CALLS, seconds, r, false) * 1e6;
    return r->bare_us < 0 || r->ours_us < 0 ? -1 : r->ours_us - r->bare_us;
}

static bool warm(void *context) { return bare_seconds(context) > 0; }

typedef struct asked {
    const char *name;
    bool small;
    way how;
    const char *spin_us;
} asked;

static bool run_row(const floors_options *o, const asked *a) {
    const uint64_t bytes = a->small ? SMALL : o->device_bytes / SMALL * SMALL;
    device_row r = {.g = {.bytes = bytes, .warm = warm, .asleep = a->how == ASLEEP},
                    .count = bytes / sizeof(float),
                    .looks = a->how == LOOKING};
    const floors_row small = {a->name, "us over the bare launch", NULL, true, 15, 0, 0, measure_small, &r},
                     large = {a->name, "GB/s", "the bare kernel", false, 0.97, 0, bytes, measure_large, &r};
    bool ran;
    const bool good = floors_gpu_row(o, a->small ? &small : &large, a->spin_us, &ran);
    if (ran && a->small) printf("%36s last round: bare %.1f us, the daemon %.1f us\n", "", r.bare_us, r.ours_us);
    return good;
}

bool floors_device_rows(const floors_options *o) {
    static const asked rows[] = {{"device region, sum f32, large", false, LOOKING, NULL},
                                 {"device region, 4 KiB, looking", true, LOOKING, NULL},
                                 {"device region, 4 KiB, asleep", true, ASLEEP, NULL},
                                 {"device region, 4 KiB, waiting", true, WAITING, NULL},
                                 {"device region, large, spin_us 1000", false, LOOKING, "1000"},
                                 {"device region, 4 KiB, looking, spin_us 0", true, LOOKING, "0"},
                                 {"device region, 4 KiB, asleep, spin_us 0", true, ASLEEP, "0"}};
    bool good = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && good; i++) good = run_row(o, &rows[i]);
    return good;
}
