/* pack: a stream's work when all of its claims are small: whatever waits in line, of whatever jobs, types and ops, is one
 * batch of the device. Nothing is copied: the device reads pinned memory over the bus; what is not pinned is put into the
 * staging buffer, side by side.
 *
 * Every claim's fate is its own: one whose bytes cannot be read, that the device refuses, or whose answer is wrong goes back alone.
 * Thread: the lane's. Owner: the lane. */
#include <string.h>

#include "server/base/clock.h"
#include "server/base/metrics.h"
#include "server/lanes/gpu/internal.h"

enum { ALIGN = 16 };

bool cr_gpu_many_fits(const cr_job *job) {
    return !job->kernel && !job->axis && !job->in_order && job->claimable <= CR_GPU_BATCH_BYTES;
}

/* Makes folds of the claims. Those that cannot be read leave, with their jobs. */
static void load_all(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    uint32_t kept = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < batch->claim_count; i++) {
        const cr_claim claim = batch->claims[i];
        const cr_job *job = claim.job;
        const uint8_t *data = claim.data;
        cr_error error;
        if (job->device < 0 && !cr_gpu_batch_direct(&claim)) {
            uint8_t *to = batch->staging + at;
            if (cr_gpu_batch_stage(&claim, 0, to, claim.bytes, &error) != CR_OK) {
                cr_queue_folded(lane->options.queue, &claim, 1, NULL, 0, &error);
                continue;
            }
            data = to;
            at += (claim.bytes + ALIGN - 1) / ALIGN * ALIGN;
        }
        batch->claims[kept] = claim;
        batch->folds[kept++] = (cr_gpu_fold){.dtype = job->dtype,
                                             .families = job->families,
                                             .data = data,
                                             .n = claim.bytes / job->element,
                                             .index = job->base + claim.index,
                                             .wants = job->wants};
    }
    batch->claim_count = kept;
}

static void remove_claim(cr_gpu_batch *batch, uint32_t number) {
    const uint32_t after = --batch->claim_count - number;
    memmove(&batch->claims[number], &batch->claims[number + 1], after * sizeof batch->claims[0]);
    memmove(&batch->folds[number], &batch->folds[number + 1], after * sizeof batch->folds[0]);
}

bool cr_gpu_many_start(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_gpu_api *api = lane->api;
    load_all(lane, batch);
    for (uint32_t done = 0; done < batch->claim_count;) {
        uint32_t taken = 0;
        cr_error error;
        cr_status status =
            api->batch(batch->stream, batch->folds + done, batch->claim_count - done, done, &taken, &error);
        done += taken;
        if (api->lost(lane->gpu)) break; /* all claims go back together */
        if (status != CR_OK) {
            const cr_claim refused = batch->claims[done];
            remove_claim(batch, done);
            cr_gpu_batch_unfit(lane, &refused, 1, &error);
        } else if (done < batch->claim_count) { /* no room: the rest waits in line again */
            for (uint32_t i = done; i < batch->claim_count; i++)
                cr_queue_unfolded(lane->options.queue, &batch->claims[i], 1, 0);
            batch->claim_count = done;
        }
    }
    batch->busy = batch->claim_count != 0;
    if (!batch->busy) lane->queued_bytes -= batch->queued_bytes;
    return batch->busy;
}

static void end_claim(cr_gpu_lane *lane, cr_gpu_batch *batch, uint32_t number) {
    const cr_claim *claim = &batch->claims[number];
    const cr_gpu_fold *fold = &batch->folds[number];
    cr_partial *p = &lane->partial;
    cr_error error;
    lane->api->batch_result(batch->stream, number, p);
    if (p->n != fold->n || p->dtype != (uint8_t)fold->dtype || p->families != fold->families) {
        cr_fail(&error, CR_INTERNAL, "a fold gave the partial of something else");
        cr_gpu_batch_unfit(lane, claim, 1, &error);
    } else if (cr_gpu_batch_checked(claim, &error) != CR_OK) {
        cr_queue_folded(lane->options.queue, claim, 1, NULL, 0, &error);
    } else {
        cr_metric_add(gpu_bytes_total, claim->bytes);
        cr_queue_folded(lane->options.queue, claim, 1, &(const cr_partial *){p}, 1, NULL);
    }
}

void cr_gpu_many_end(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const uint64_t seen_ns = cr_now_ns();
    lane->queued_bytes -= batch->queued_bytes;
    batch->busy = false;
    if (batch->fate == CR_BATCH_GOOD) {
        cr_metric_add(gpu_launches_total, 1);
        for (uint32_t i = 0; i < batch->claim_count; i++) end_claim(lane, batch, i);
    } else {
        for (uint32_t i = 0; i < batch->claim_count; i++) cr_gpu_batch_unfit(lane, &batch->claims[i], 1, &batch->error);
    }
    cr_gpu_phases *phases = &lane->phases;
    atomic_fetch_add_explicit(&phases->batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->jobs, batch->claim_count, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->launch_ns, batch->started_ns - batch->claimed_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->device_ns, seen_ns - batch->started_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->end_ns, cr_now_ns() - seen_ns, memory_order_relaxed);
}

void cr_gpu_many_abandon(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    for (uint32_t i = 0; i < batch->claim_count; i++) {
        const cr_claim *claim = &batch->claims[i];
        if (claim->job->device < 0)
            cr_queue_unfolded(lane->options.queue, claim, 1, 0);
        else
            cr_queue_folded(lane->options.queue, claim, 1, NULL, 0, &lane->lost_error);
    }
}
