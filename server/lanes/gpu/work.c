/* work: the life of a work, whatever its kind. Thread: the lane's, but for cr_gpu_work_abandon, which may run on the
 * loop's. Owner: the lane. */
#include "server/lanes/gpu/work.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/lanes/gpu/internal.h"

enum {
    SLACK_BYTES = 64 * 1024,      /* a device buffer's room for aligning runs of claims */
    KEEP_BYTES = 8 * 1024 * 1024, /* of answers along an axis, a stream's */
};

cr_status cr_gpu_work_open(cr_gpu_lane *lane, cr_gpu_work *work, cr_error *error) {
    const cr_gpu_api *api = lane->api;
    size_t bytes = lane->options.chunk_bytes + SLACK_BYTES;
    void *device = NULL, *staging = NULL;
    cr_status status = api->stream_open(lane->gpu, CR_CHUNK_CLAIMS, &work->stream, error);
    if (status == CR_OK) status = api->device_alloc(lane->gpu, bytes, &device, error);
    work->device = device;
    if (status == CR_OK) status = api->host_alloc(lane->gpu, bytes, &staging, error);
    work->staging = staging;
    return status;
}

void cr_gpu_work_close(cr_gpu_lane *lane, cr_gpu_work *work) {
    assert(work->state == CR_WORK_IDLE);
    if (work->stream) lane->api->stream_close(work->stream);
    if (work->device) lane->api->device_free(lane->gpu, work->device);
    if (work->staging) lane->api->host_free(lane->gpu, work->staging);
}

void cr_gpu_work_move(cr_gpu_work *work, cr_gpu_work_state next) {
    static const bool legal[CR_WORK_STATES][CR_WORK_STATES] = {
        [CR_WORK_IDLE] = {[CR_WORK_RUNNING] = true},
        [CR_WORK_RUNNING] = {[CR_WORK_PARKED] = true, [CR_WORK_IDLE] = true},
        [CR_WORK_PARKED] = {[CR_WORK_RUNNING] = true, [CR_WORK_IDLE] = true},
    };
    assert(legal[work->state][next]);
    assert(next == CR_WORK_IDLE || work->claim_count);
    (void)legal;
    work->state = next;
}

void cr_gpu_work_progress(cr_gpu_work *work) {
    assert(work->state == CR_WORK_RUNNING);
    work->started_ns = cr_now_ns();
}

static void enter(cr_gpu_lane *lane, cr_gpu_work *work) {
    work->bytes = work->queued_bytes = 0;
    work->copy_count = 0;
    for (uint32_t i = 0; i < work->claim_count; i++) {
        const cr_claim *claim = &work->claims[i];
        work->bytes += claim->bytes;
        if (claim->job->device < 0) work->queued_bytes += claim->bytes;
    }
    lane->queued_bytes += work->queued_bytes;
    cr_gpu_work_move(work, CR_WORK_RUNNING);
}

static void leave(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_work_move(work, CR_WORK_IDLE);
    assert(lane->queued_bytes >= work->queued_bytes);
    lane->queued_bytes -= work->queued_bytes;
    cr_meter_add(&lane->meter.busy_ns, cr_now_ns() - work->claimed_ns);
}

/* By finish or abandon, which call no device. */
static void empty(cr_gpu_lane *lane, cr_gpu_work *work, void (*give)(cr_gpu_lane *, cr_gpu_work *)) {
    leave(lane, work);
    lane->silent = true;
    give(lane, work);
    lane->silent = false;
    assert(work->claim_count == 0);
}

bool cr_gpu_work_begin(cr_gpu_lane *lane, cr_gpu_work *work) {
    assert(work->state == CR_WORK_IDLE);
    if (!cr_gpu_claim(lane, work)) return false;
    work->claimed_ns = cr_now_ns();
    work->announced = false;
    enter(lane, work);
    if (work->fate != CR_FATE_GOOD) {
        empty(lane, work, work->kind->finish);
        return true;
    }
    work->kind->start(lane, work);
    if (work->claim_count)
        cr_gpu_work_progress(work);
    else
        leave(lane, work);
    return true;
}

bool cr_gpu_work_advance(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_gpu_kind *kind = work->kind;
    cr_error error;
    bool idle = work->state == CR_WORK_PARKED, failed = false;
    if (idle) {
        if (atomic_load(&lane->asking)) return false;
        cr_gpu_work_move(work, CR_WORK_RUNNING);
    } else if (lane->api->poll(work->stream, &idle, &error) != CR_OK) {
        if (work->fate == CR_FATE_GOOD) work->error = error;
        if (work->fate == CR_FATE_GOOD) work->fate = CR_FATE_UNFIT;
        idle = failed = true; /* what failed does not go on running */
    }
    if (!idle || lane->api->lost(lane->gpu)) return false;
    if (kind->step && !failed && !cr_queue_stopped(lane->options.queue, work->claims[0].job) && kind->step(lane, work))
        return true;
    empty(lane, work, kind->finish);
    /* Not before: in a call of the device the lane may be taken from its thread, and what was answered must not be
     * claimed again. */
    if (kind->trims && !lane->api->lost(lane->gpu)) lane->api->axis_trim(work->stream, KEEP_BYTES);
    return true;
}

void cr_gpu_work_abandon(cr_gpu_lane *lane, cr_gpu_work *work) {
    if (work->state == CR_WORK_IDLE) return;
    cr_metric_add(gpu_returned_total, work->claim_count);
    empty(lane, work, work->kind->abandon);
}

/* What failed for a reason of the client, or of its file, is none of the GPU's errors. */
void cr_gpu_failed(cr_gpu_lane *lane, const cr_error *error) {
    if (error->code == CR_RESOURCE_EXHAUSTED) cr_gpu_count_error(lane, CR_GPU_ERROR_memory);
    if (error->code == CR_INTERNAL || error->code == CR_UNKNOWN) cr_gpu_count_error(lane, CR_GPU_ERROR_call);
}

/* Whether others can fold what this GPU could not. */
static bool other_lanes(const cr_job *job) { return job->device < 0 && !job->named; }

void cr_gpu_unfit(cr_gpu_lane *lane, const cr_claim *claims, uint32_t count, const cr_error *error) {
    assert(cr_gpu_between_calls(lane));
    cr_gpu_failed(lane, error);
    if (!other_lanes(claims[0].job)) {
        cr_queue_folded(lane->options.queue, claims, count, NULL, 0, error);
        return;
    }
    if (error->code != CR_UNIMPLEMENTED && error->code != CR_OUT_OF_RANGE)
        cr_warn("%s %u: %s; the CPU takes over this job", lane->api->name, lane->options.ordinal, error->text);
    cr_metric_add(gpu_returned_total, count);
    cr_queue_unfolded(lane->options.queue, claims, count, CR_BY_CPU);
}

void cr_gpu_work_count(cr_gpu_lane *lane, uint64_t bytes, uint32_t launches) {
    cr_metric_add(gpu_bytes_total, bytes);
    cr_metric_add(gpu_launches_total, launches);
    cr_meter_add(&lane->meter.bytes, bytes);
    cr_meter_add(&lane->meter.launches, launches);
}

void cr_gpu_work_settle(cr_gpu_lane *lane, cr_gpu_work *work, const cr_partial *const *partials, uint32_t count) {
    const uint32_t claims = work->claim_count;
    assert(cr_gpu_between_calls(lane));
    work->claim_count = 0;
    if (work->fate == CR_FATE_BROKEN) cr_gpu_failed(lane, &work->error);
    if (work->fate == CR_FATE_UNFIT)
        cr_gpu_unfit(lane, work->claims, claims, &work->error);
    else if (work->fate == CR_FATE_BROKEN)
        cr_queue_folded(lane->options.queue, work->claims, claims, NULL, 0, &work->error);
    else
        cr_queue_folded(lane->options.queue, work->claims, claims, partials, count, NULL);
}

void cr_gpu_work_give_back(cr_gpu_lane *lane, cr_gpu_work *work) {
    const uint32_t claims = work->claim_count;
    assert(cr_gpu_between_calls(lane));
    work->claim_count = 0;
    if (other_lanes(work->claims[0].job))
        cr_queue_unfolded(lane->options.queue, work->claims, claims, 0);
    else
        cr_queue_folded(lane->options.queue, work->claims, claims, NULL, 0, &lane->lost_error);
}
