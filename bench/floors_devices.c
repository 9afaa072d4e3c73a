/* floors_devices: one array in the memory of two GPUs, reduced in one call (cured_reduce_regions), beside the half on the first GPU alone.
 *
 * Both halves hold the same numbers, so the sum of both is twice that of one, exactly.
 * Thread: main. Owner: the row. */
#include "bench/bench.h"
#include "bench/floors_gpu.h"

enum { CALLS = 9 };

typedef struct devices_row {
    floors_gpu g; /* first: floors_gpu_row's */
    floors_gpu second;
    double sum; /* of one half */
} devices_row;

/* Seconds; -1: it failed, or the sum is wrong. */
static double seconds(void *context, int one) {
    devices_row *r = context;
    const bool both = !one;
    const cured_op op = CURED_OP_SUM;
    const cured_piece pieces[] = {{r->g.region, 0, CURED_TO_END}, {r->second.region, 0, CURED_TO_END}};
    cured_call *call = NULL;
    cured_error error;
    double sum = 0;
    const double start = bench_now();
    cured_status status =
        both ? cured_reduce_regions(pieces, 2, CURED_F32, &op, 1, NULL, &call, &error)
             : cured_region_reduce(r->g.region, CURED_F32, &op, 1, 0, CURED_TO_END, NULL, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    const double took = bench_now() - start;
    if (status == CURED_OK) cured_value_double(cured_call_value(call, 0), &sum);
    cured_call_free(call);
    if (status != CURED_OK) return floors_gpu_fail("the daemon", error.text), -1;
    if (!both) r->sum = sum;
    return sum == (both ? 2 * r->sum : r->sum) ? took : (floors_gpu_fail("two devices", "a wrong sum"), -1);
}

/* GB/s. */
static double measure(void *context, int one) {
    const devices_row *r = context;
    const double took = bench_repeat(CALLS, seconds, context, one);
    return took > 0 ? (double)r->g.bytes * (one ? 1 : 2) / took / 1e9 : -1;
}

static bool warm(void *context) {
    devices_row *r = context;
    r->second = (floors_gpu){.api = r->g.api, .bytes = r->g.bytes, .conn = r->g.conn};
    return floors_gpu_register(&r->second, 1) && seconds(r, true) > 0 && seconds(r, false) > 0;
}

bool floors_devices_rows(const floors_options *o) {
    devices_row r = {.g = {.bytes = o->device_bytes / 4096 * 4096, .warm = warm}};
    const floors_row row = {"two devices' regions, sum f32", "GB/s", "one of them", false, 1.95, 0, 0, measure, &r};
    bool ran;
    if (floors_gpu_count() < 2) {
        if (bench_wanted(o->only, row.name)) printf("%-36s not here: fewer than two CUDA devices\n", row.name);
        return true;
    }
    const bool good = floors_gpu_row(o, &row, NULL, &ran);
    floors_gpu_release(&r.second);
    return good;
}
