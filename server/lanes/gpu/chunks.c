/* chunks: claims of one job of one answer. They are copied into the stream's device buffer one behind the other,
 * folded run by run (claims that follow each other in the array and in memory are one), and given back when their
 * partials lie in host memory.
 *
 * Thread: the lane's. Owner: the lane. */
#include <assert.h>

#include "engine/memory/kept.h"
#include "server/lanes/gpu/internal.h"

enum {
    STREAM_BYTES = 8 * 1024 * 1024, /* of slabs at a time: others must be free to be filled meanwhile */
    ALIGN = 256,                    /* where a run begins in the device buffer */
};

static bool takes(const cr_job *job) {
    (void)job;
    return true; /* what no other kind takes */
}

uint64_t cr_gpu_chunk_wants(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment) {
    if (job->device >= 0) return UINT64_MAX;
    uint64_t chunk = lane->options.chunk_bytes;
    if (!segment->aligned && chunk > STREAM_BYTES) chunk = STREAM_BYTES;
    if (job->may_pause && chunk > CR_CLAIM_MOST_BYTES) chunk = CR_CLAIM_MOST_BYTES; /* its answers count as a claim's */
    /* While there is enough under way, a little waits until it is more: the next completion looks again. Slabs wait
     * until they are as many as go at a time: each copy leaves the bus idle for some microseconds. */
    if (lane->queued_bytes > chunk && job->claimable < (segment->aligned ? chunk / 2 : chunk)) return 0;
    if (!(job->kinds & CR_BY_CPU)) return chunk;
    uint64_t rest = job->claimable;
    if (job->total_bytes > job->claimed_bytes && job->total_bytes - job->claimed_bytes > rest)
        rest = job->total_bytes - job->claimed_bytes;
    bool staged = !segment->pinned && !(segment->kept && atomic_load(&segment->kept->pinned));
    uint64_t share = cr_gpu_share(&lane->rates, rest, lane->queued_bytes, staged);
    if (job->axis && share < cr_job_unit(job)) return 0;
    return share < chunk ? share : chunk;
}

static void add_fold(cr_gpu_work *work, const cr_claim *claim, const uint8_t *data) {
    const cr_job *job = claim->job;
    uint64_t n = claim->bytes / job->element, index = job->base + claim->index;
    cr_gpu_fold *run = work->as.chunks.fold_count ? &work->as.chunks.folds[work->as.chunks.fold_count - 1] : NULL;
    if (run && run->index + run->n == index && (const uint8_t *)run->data + run->n * job->element == data) {
        run->n += n;
        return;
    }
    work->as.chunks.folds[work->as.chunks.fold_count++] = (cr_gpu_fold){
        .dtype = job->dtype, .families = job->families, .data = data, .n = n, .index = index, .wants = job->wants};
}

static void start(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_job *job = work->claims[0].job;
    const bool over_bus = cr_gpu_few(work->bytes);
    uint64_t at = 0, next = 0;
    assert(work->claim_count <= CR_CHUNK_CLAIMS);
    work->as.chunks.fold_count = 0;
    for (uint32_t i = 0; i < work->claim_count && work->fate == CR_FATE_GOOD; i++) {
        const cr_claim *claim = &work->claims[i];
        if (claim->index != next) at = (at + ALIGN - 1) / ALIGN * ALIGN;
        next = claim->index + claim->bytes / job->element;
        add_fold(work, claim, cr_gpu_load(lane, work, claim, work->device + at, at, over_bus));
        at += claim->bytes;
    }
    cr_gpu_copy_noted(lane, work);
    if (work->fate == CR_FATE_GOOD &&
        lane->api->fold(work->stream, work->as.chunks.folds, work->as.chunks.fold_count, 0, &work->error) != CR_OK)
        work->fate = CR_FATE_UNFIT;
}

/* Whether each fold has given the partial of what it was asked for. */
static bool collect(cr_gpu_lane *lane, cr_gpu_work *work, const cr_partial **partials) {
    for (uint32_t i = 0; i < work->as.chunks.fold_count; i++) {
        const cr_gpu_fold *fold = &work->as.chunks.folds[i];
        const cr_partial *p = lane->api->result(work->stream, i);
        if (!p || p->n != fold->n || p->dtype != (uint8_t)fold->dtype || p->families != fold->families) return false;
        partials[i] = p;
    }
    return true;
}

static void finish(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_partial *partials[CR_CHUNK_CLAIMS];
    if (work->fate == CR_FATE_GOOD && !collect(lane, work, partials)) {
        work->fate = CR_FATE_UNFIT;
        cr_fail(&work->error, CR_INTERNAL, "a fold gave the partial of something else");
    }
    cr_gpu_check_all(work);
    if (work->fate == CR_FATE_GOOD) cr_gpu_work_count(lane, work->bytes, 1);
    cr_gpu_work_settle(lane, work, partials, work->as.chunks.fold_count);
}

const cr_gpu_kind cr_gpu_kind_chunks = {
    .takes = takes, .want = cr_gpu_chunk_wants, .start = start, .finish = finish, .abandon = cr_gpu_work_give_back};
