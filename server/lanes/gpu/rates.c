/* rates: measuring at start, and the rule that follows from it. Thread: see rates.h. Owner: the lane. */
#include "server/lanes/gpu/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    ROUNDS = 5,
    SMALL_BYTES = 4096,
    LEAST_BYTES = 1024 * 1024, /* less is not worth a launch */
    STAGING_COST =
        2, /* staging moves each byte through memory three times, and CPU workers that fill the bus lose by it */
    WAIT_MS = 2000, /* a device that takes longer for a chunk is of no use */
};

/* Filling slabs and folding share cores and memory, so less than the slower of the two is reached. */
static const double SLABS_WORTH = 1.5;

bool cr_gpu_takes(const cr_job *job) { return !job->axis && !job->in_order && !job->named; }

static uint64_t clamp(double bytes, uint64_t least, uint64_t most) {
    if (bytes < (double)least) return 0;
    return bytes > (double)most ? most : (uint64_t)bytes;
}

/* With b bytes taken of rest, the GPU is done after launch + (queued + b)/rate, the CPU after (rest - b)/cpu. */
uint64_t cr_gpu_share(const cr_gpu_rates *rates, uint64_t rest, uint64_t queued, bool staged) {
    double rate = staged ? rates->staged : rates->pinned;
    if (rates->min_bytes) return rest < rates->min_bytes ? 0 : rest < rates->chunk_bytes ? rest : rates->chunk_bytes;
    if (rates->cpu <= 0 || rate <= 0) return rates->chunk_bytes;
    if (staged && rates->staged < rates->cpu / STAGING_COST) return 0;
    double until = (double)rest / rates->cpu - rates->launch_s - (double)queued / rate;
    return clamp(until / (1 / rate + 1 / rates->cpu), LEAST_BYTES, rates->chunk_bytes);
}

uint64_t cr_gpu_from(const cr_gpu_rates *rates) {
    if (rates->min_bytes) return rates->min_bytes;
    if (rates->cpu <= 0 || rates->pinned <= 0) return 1;
    return (uint64_t)(rates->cpu * (rates->launch_s + LEAST_BYTES * (1 / rates->pinned + 1 / rates->cpu))) + 1;
}

uint64_t cr_gpu_slabs_from(const cr_shared_rates *rates, uint64_t gpu_from) {
    const double folded = rates->cpu + rates->bus, most = rates->slabs < folded ? rates->slabs : folded;
    return rates->read > 0 && most > rates->read * SLABS_WORTH ? gpu_from : UINT64_MAX;
}

static cr_status await(const cr_gpu_api *api, cr_gpu_stream *stream, cr_error *error) {
    uint64_t limit = cr_now_ms() + WAIT_MS;
    for (bool idle = false; !idle;) {
        cr_status status = api->poll(stream, &idle, error);
        if (status != CR_OK) return status;
        if (!idle && cr_now_ms() > limit)
            return cr_fail(error, CR_UNAVAILABLE, "it did not finish a copy within %d ms", WAIT_MS);
    }
    return CR_OK;
}

void cr_gpu_learn(cr_gpu_pace *pace, uint64_t bytes, uint64_t took_ns) {
    if (bytes >= CR_GPU_LARGE_BYTES && took_ns) *pace = (double)bytes / (double)took_ns;
}

bool cr_gpu_nearly_done(cr_gpu_pace pace, uint64_t bytes, uint64_t since_ns, uint64_t ahead_ns) {
    return bytes >= CR_GPU_LARGE_BYTES && pace > 0 && (double)(since_ns + ahead_ns) * pace >= (double)bytes;
}

/* Nanoseconds of the quickest of a few rounds of: through (may be NULL) to staging, staging to device, fold of n
 * bytes. */
static cr_status time_rounds(const cr_gpu_api *api, cr_gpu_stream *stream, void *device, void *staging,
                             const void *through, size_t bytes, size_t n, double *seconds, cr_error *error) {
    cr_gpu_fold fold = {.dtype = CR_U8, .families = CR_FAM_COUNTS, .data = device, .n = n};
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = cr_now_ns();
        fold.index++; /* what is asked again and again is sooner done than most jobs are */
        if (through) memcpy(staging, through, bytes);
        cr_status status = bytes ? api->copy(stream, device, staging, bytes, error) : CR_OK;
        if (status == CR_OK && n) status = api->fold(stream, &fold, 1, 0, error);
        if (status == CR_OK) status = await(api, stream, error);
        if (status != CR_OK) return status;
        uint64_t took = cr_now_ns() - start;
        if (took < best) best = took;
    }
    *seconds = (double)(best ? best : 1) / 1e9;
    return CR_OK;
}

cr_status cr_gpu_measure(const cr_gpu_api *api, cr_gpu_stream *stream, void *device, void *staging, size_t bytes,
                         cr_gpu_rates *rates, cr_error *error) {
    double pinned, staged;
    void *through = calloc(1, bytes);
    if (!through) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to measure with");
    memset(through, 0x3f, bytes);
    memset(staging, 0x3f, bytes);
    cr_status status = time_rounds(api, stream, device, staging, NULL, bytes, 0, &pinned, error);
    if (status == CR_OK) status = time_rounds(api, stream, device, staging, through, bytes, 0, &staged, error);
    if (status == CR_OK)
        status = time_rounds(api, stream, device, staging, NULL, 0, SMALL_BYTES, &rates->launch_s, error);
    free(through);
    if (status != CR_OK) return status;
    rates->pinned = (double)bytes / pinned;
    rates->staged = (double)bytes / staged;
    return CR_OK;
}
