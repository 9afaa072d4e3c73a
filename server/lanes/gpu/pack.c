/* pack: small jobs. Whatever waits in line, of whatever jobs, types and ops, is one launch. Nothing is copied: the
 * device reads pinned memory over the bus, and what is not pinned is put into the staging buffer, side by side.
 *
 * Every claim's fate is its own: one whose bytes cannot be read, that the device refuses, or whose answer is wrong
 * goes back alone. The work's fate is that of all claims together.
 * Thread: the lane's. Owner: the lane. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/core/fast.h"
#include "server/lanes/gpu/internal.h"

enum { ALIGN = 16 };

static bool takes(const cr_job *job) {
    return !job->named && !job->axis && !job->by_host && job->claimable <= CR_GPU_PACK_BYTES &&
           (job->families & ~CR_GPU_PACK_FAMILIES) == 0 && cr_fast_on(CR_FAST_GPU_PACKS);
}

bool cr_gpu_pack_joins(const cr_job *job) { return takes(job) && !job->in_order; }

/* Makes folds of the claims. Those that cannot be read leave, with their jobs. */
static void load_all(cr_gpu_lane *lane, cr_gpu_work *work) {
    uint32_t kept = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < work->claim_count; i++) {
        const cr_claim claim = work->claims[i];
        const cr_job *job = claim.job;
        const uint8_t *data = claim.data;
        cr_error error;
        if (job->device < 0 && !cr_gpu_direct(&claim)) {
            uint8_t *to = work->staging + at;
            if (cr_gpu_stage(&claim, 0, to, claim.bytes, &error) != CR_OK) {
                cr_queue_folded(lane->options.queue, &claim, 1, NULL, 0, &error);
                continue;
            }
            data = to;
            at += (claim.bytes + ALIGN - 1) / ALIGN * ALIGN;
        }
        work->claims[kept] = claim;
        work->as.pack.folds[kept++] = (cr_gpu_fold){.dtype = job->dtype,
                                                    .families = job->families,
                                                    .data = data,
                                                    .n = claim.bytes / job->element,
                                                    .index = job->base + claim.index,
                                                    .wants = job->wants};
    }
    work->claim_count = kept;
}

static void remove_claim(cr_gpu_work *work, uint32_t number) {
    const uint32_t after = --work->claim_count - number;
    memmove(&work->claims[number], &work->claims[number + 1], after * sizeof work->claims[0]);
    memmove(&work->as.pack.folds[number], &work->as.pack.folds[number + 1], after * sizeof work->as.pack.folds[0]);
}

static void start(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_gpu_api *api = lane->api;
    load_all(lane, work);
    for (uint32_t done = 0; done < work->claim_count;) {
        uint32_t taken = 0;
        cr_error error;
        cr_status status =
            api->pack(work->stream, work->as.pack.folds + done, work->claim_count - done, done, &taken, &error);
        done += taken;
        if (api->lost(lane->gpu)) break; /* all claims go back together */
        if (status != CR_OK) {
            const cr_claim refused = work->claims[done];
            remove_claim(work, done);
            cr_gpu_unfit(lane, &refused, 1, &error);
        } else if (done < work->claim_count) { /* no room: the rest waits in line again */
            for (uint32_t i = done; i < work->claim_count; i++)
                cr_queue_unfolded(lane->options.queue, &work->claims[i], 1, 0);
            work->claim_count = done;
        }
    }
}

static void end_claim(cr_gpu_lane *lane, cr_gpu_work *work, uint32_t number) {
    const cr_claim *claim = &work->claims[number];
    const cr_gpu_fold *fold = &work->as.pack.folds[number];
    cr_partial *p = &lane->partial;
    cr_error error;
    lane->api->pack_result(work->stream, number, p);
    if (p->n != fold->n || p->dtype != (uint8_t)fold->dtype || p->families != fold->families) {
        cr_fail(&error, CR_INTERNAL, "a fold gave the partial of something else");
        cr_gpu_unfit(lane, claim, 1, &error);
    } else if (cr_gpu_checked(claim, &error) != CR_OK) {
        cr_queue_folded(lane->options.queue, claim, 1, NULL, 0, &error);
    } else {
        cr_gpu_work_count(lane, claim->bytes, 0);
        cr_queue_folded(lane->options.queue, claim, 1, &(const cr_partial *){p}, 1, NULL);
    }
}

static void finish(cr_gpu_lane *lane, cr_gpu_work *work) {
    const uint64_t seen_ns = cr_now_ns();
    const uint32_t claims = work->claim_count;
    cr_gpu_phases *phases = &lane->phases;
    assert(cr_gpu_between_calls(lane));
    work->claim_count = 0;
    if (work->fate == CR_FATE_GOOD) cr_gpu_work_count(lane, 0, 1);
    for (uint32_t i = 0; i < claims; i++) {
        if (work->fate == CR_FATE_GOOD)
            end_claim(lane, work, i);
        else
            cr_gpu_unfit(lane, &work->claims[i], 1, &work->error);
    }
    atomic_fetch_add_explicit(&phases->packs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->jobs, claims, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->launch_ns, work->started_ns - work->claimed_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->device_ns, seen_ns - work->started_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&phases->end_ns, cr_now_ns() - seen_ns, memory_order_relaxed);
}

static void abandon(cr_gpu_lane *lane, cr_gpu_work *work) {
    const uint32_t claims = work->claim_count;
    assert(cr_gpu_between_calls(lane));
    work->claim_count = 0;
    for (uint32_t i = 0; i < claims; i++) {
        const cr_claim *claim = &work->claims[i];
        if (claim->job->device < 0)
            cr_queue_unfolded(lane->options.queue, claim, 1, 0);
        else
            cr_queue_folded(lane->options.queue, claim, 1, NULL, 0, &lane->lost_error);
    }
}

const cr_gpu_kind cr_gpu_kind_pack = {
    .takes = takes, .want = cr_gpu_chunk_wants, .start = start, .finish = finish, .abandon = abandon};
