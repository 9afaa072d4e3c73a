/* fetched: what lies in the GPU's memory and no kernel answers: blocks along an axis, or an array. It is fetched to the
 * staging buffer and folded on the lane's thread, as a worker folds its claims. There is one such work at a time, and of
 * few bytes, so that others do not wait for long. Answers that are wanted in the GPU's memory are copied there, and are there when the
 * stream is idle again.
 *
 * Thread: the lane's. Owner: the lane. */
#include "engine/job_axis.h"
#include "engine/sink.h"
#include "engine/worker.h"
#include "server/lanes/gpu/internal.h"

static bool takes(const cr_job *job) { return job->by_host; }

static uint64_t want(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment) {
    (void)segment;
    for (uint32_t i = 0; i < lane->work_count; i++)
        if (lane->works[i].state != CR_WORK_IDLE && lane->works[i].kind == &cr_gpu_kind_fetched) return 0;
    uint64_t bytes = job->claim_bytes > CR_CLAIM_LEAST_BYTES ? job->claim_bytes : CR_CLAIM_LEAST_BYTES;
    if (bytes > CR_CLAIM_MOST_BYTES) bytes = CR_CLAIM_MOST_BYTES;
    return bytes < lane->options.chunk_bytes ? bytes : lane->options.chunk_bytes;
}

static void start(cr_gpu_lane *lane, cr_gpu_work *work) {
    uint64_t at = 0;
    work->as.fetched.folded = false;
    for (uint32_t i = 0; i < work->claim_count && work->fate == CR_FATE_GOOD; i++) {
        const cr_claim *claim = &work->claims[i];
        if (lane->api->fetch(work->stream, work->staging + at, claim->data, claim->bytes, claim->bytes, 1,
                             &work->error) != CR_OK)
            work->fate = CR_FATE_UNFIT;
        at += claim->bytes;
    }
}

/* Claims of an array, which follow each other in the staging buffer. */
static void fold_whole(cr_gpu_work *work) {
    const cr_job *job = work->claims[0].job;
    cr_partial *partial = &work->as.fetched.partial;
    uint64_t at = 0;
    cr_partial_init(partial, job->dtype, job->families);
    cr_partial_want(partial, job->wants);
    for (uint32_t i = 0; i < work->claim_count; i++) {
        const cr_claim *claim = &work->claims[i];
        cr_claim_fold(claim, partial, work->staging + at, claim->bytes / job->element, claim->index);
        at += claim->bytes;
    }
}

/* Where answers go to the device's memory, from the lane that makes them. */
typedef struct putting {
    cr_gpu_lane *lane;
    cr_gpu_work *work;
} putting;

static cr_status put(void *argument, void *to, const void *values, size_t bytes, cr_error *error) {
    const putting *p = argument;
    return p->lane->api->put(p->work->stream, to, values, bytes, error);
}

static bool step(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_queue *queue = lane->options.queue;
    cr_sink *sink = work->claims[0].job->sink;
    putting to_device = {lane, work};
    uint64_t at = 0;
    if (work->fate != CR_FATE_GOOD || work->as.fetched.folded) return false;
    if (!work->claims[0].job->axis) {
        fold_whole(work);
        work->as.fetched.folded = true;
        return false;
    }
    if (sink) sink->put = put, sink->put_argument = &to_device;
    work->as.fetched.folded = true;
    work->error.code = CR_OK;
    for (uint32_t i = 0; i < work->claim_count && work->error.code == CR_OK; i++) {
        cr_claim claim = work->claims[i];
        claim.data = work->staging + at;
        at += claim.bytes;
        cr_job_axis_fold(queue, &lane->hand, &claim, &work->error);
    }
    cr_job_axis_let_go(queue, &lane->hand); /* another stream's claim may be the next */
    if (work->error.code != CR_OK) work->fate = CR_FATE_BROKEN;
    if (!sink || sink->device < 0) return false;
    cr_gpu_work_progress(work);
    return true;
}

/* The lane may have been taken from its thread while that put answers: what the thread holds is let go for it. */
static void abandon(cr_gpu_lane *lane, cr_gpu_work *work) {
    if (lane->hand.holds) cr_queue_unhold(lane->options.queue, lane->hand.job);
    lane->hand.holds = false;
    cr_gpu_work_give_back(lane, work);
}

static void finish(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_partial *partial = &work->as.fetched.partial;
    const bool whole = work->as.fetched.folded && !work->claims[0].job->axis;
    cr_gpu_work_settle(lane, work, &partial, whole);
}

const cr_gpu_kind cr_gpu_kind_fetched = {
    .takes = takes, .want = want, .start = start, .step = step, .finish = finish, .abandon = abandon};
