/* batch: one stream's work. Claims of a job are copied into the stream's device buffer one behind the other, folded run
 * by run (claims that follow each other in the array are one), and given back when their partials lie in host memory.
 *
 * What is pinned is copied from where it lies. Anything else goes through the stream's pinned staging buffer, a step at a
 * time, so that the copy of one step runs while the next is read; a client's mapping is read under the guard. The claims are
 * held until the end in either case: if the device is lost, others fold them.
 * Thread: the lane's. Owner: the lane. */
#include <string.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/metrics.h"
#include "server/job/kernel.h"
#include "server/lanes/gpu/internal.h"
#include "server/memory/guard.h"
#include "server/memory/kept.h"

enum {
    STREAM_BYTES = 8 * 1024 * 1024, /* of slabs at a time: others must be free to be filled meanwhile */
    STEP_BYTES = 2 * 1024 * 1024,   /* through the staging buffer at a time */
    NEAR_BYTES = 128 * 1024,        /* up to here, over the bus by the fold itself */
    MANY_BYTES = 4 * 1024 * 1024,   /* of small jobs that are gathered, in host memory: they come over the bus */
    ALIGN = 256,                    /* where a run begins in the device buffer */
};

cr_status cr_gpu_batch_open(cr_gpu_lane *lane, cr_gpu_batch *batch, cr_error *error) {
    const cr_gpu_api *api = lane->api;
    size_t bytes = lane->options.chunk_bytes + CR_BATCH_SLACK;
    void *device = NULL, *staging = NULL;
    cr_status status = api->stream_open(lane->gpu, CR_BATCH_CLAIMS, &batch->stream, error);
    if (status == CR_OK) status = api->device_alloc(lane->gpu, bytes, &device, error);
    batch->device = device;
    if (status == CR_OK) status = api->host_alloc(lane->gpu, bytes, &staging, error);
    batch->staging = staging;
    return status;
}

void cr_gpu_batch_close(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (batch->stream) lane->api->stream_close(batch->stream);
    if (batch->device) lane->api->device_free(lane->gpu, batch->device);
    if (batch->staging) lane->api->host_free(lane->gpu, batch->staging);
}

/* Whoever owns a job's device memory may have work under way on it, with an event behind. A stream that waited for the event would be its
 * owner's to stop, so the job waits in line, and the event is looked at: outside the queue's lock, for the driver may take its time. */
static struct cr_kept *awaited(const cr_job *job, const cr_segment *segment) {
    return job->device >= 0 && segment->kept && segment->kept->device.event ? segment->kept : NULL;
}

/* Notes whose events to look at; claims nothing. */
static uint64_t want_to_ask(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    cr_kept *kept = awaited(job, segment);
    if (!kept || job->device != (int32_t)lane->options.ordinal) return 0;
    uint32_t place = lane->waiting++;
    if (place < lane->ask_from || lane->asked_count == CR_EVENTS_ASKED) return 0;
    cr_kept_use(kept);
    lane->events[lane->asked_count].fired = false;
    lane->events[lane->asked_count].error.code = CR_OK;
    lane->events[lane->asked_count++].kept = kept;
    return 0;
}

static void ask_events(cr_gpu_lane *lane, cr_claim *claims) {
    uint32_t from = lane->ask_from;
    lane->waiting = 0;
    cr_queue_take(lane->options.queue, want_to_ask, lane, claims, CR_BATCH_CLAIMS);
    lane->ask_from = from + CR_EVENTS_ASKED < lane->waiting ? from + CR_EVENTS_ASKED : 0;
    for (uint32_t i = 0; i < lane->asked_count && !lane->api->lost(lane->gpu); i++) {
        cr_error *error = &lane->events[i].error;
        void *event = lane->events[i].kept->device.event;
        if (lane->api->event_look(lane->gpu, event, &lane->events[i].fired, error) != CR_OK)
            lane->events[i].fired = true; /* and fails */
    }
}

static bool may_begin(cr_gpu_lane *lane, const cr_kept *kept) {
    for (uint32_t i = 0; i < lane->asked_count; i++) {
        if (lane->events[i].kept != kept || !lane->events[i].fired) continue;
        if (lane->events[i].error.code != CR_OK) lane->event_error = &lane->events[i].error;
        return true;
    }
    lane->waiting++;
    return false;
}

static void forget_events(cr_gpu_lane *lane) {
    while (lane->asked_count) cr_kept_release(lane->events[--lane->asked_count].kept);
}

static uint64_t want_of(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment) {
    const uint32_t own = lane->options.ordinal + 1;
    if (job->device >= 0) {
        const cr_kept *kept = awaited(job, segment);
        if (job->device != (int32_t)lane->options.ordinal) return 0;
        const uint64_t bytes = cr_gpu_axis_wants(lane, job);
        return bytes && (!kept || may_begin(lane, kept)) ? bytes
                                                         : 0; /* who has begun is claimed: its event may have failed */
    }
    if (job->kernel) {
        if ((job->kernel->lane && job->kernel->lane != own) || !cr_gpu_run_wants(lane, job)) return 0;
        job->kernel->lane = own;
        return lane->options.chunk_bytes;
    }
    uint64_t chunk = lane->options.chunk_bytes;
    if (!segment->aligned && chunk > STREAM_BYTES) chunk = STREAM_BYTES;
    if (job->may_pause && chunk > CR_CLAIM_MOST_BYTES) chunk = CR_CLAIM_MOST_BYTES; /* its answers count as a claim's */
    /* While there is enough under way, a little waits until it is more: the next completion looks again. Slabs wait until they are
     * as many as go at a time: each copy leaves the bus idle for some microseconds. */
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

/* The first job: when it is small, others may join it. */
static uint64_t want(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    uint64_t bytes = want_of(lane, job, segment);
    if (!bytes || lane->event_error || !cr_gpu_many_fits(job)) return bytes;
    const uint64_t chunk = lane->options.chunk_bytes; /* what the staging buffer takes */
    lane->gather_bytes = (chunk < MANY_BYTES ? chunk : MANY_BYTES) - (job->device < 0 ? job->claimable : 0);
    return bytes;
}

/* Another one. What is in the device's memory needs no room. */
static uint64_t more(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    if (!lane->gather_bytes || !cr_gpu_many_fits(job)) return 0;
    if (job->device < 0 && job->claimable > lane->gather_bytes) return 0;
    if (want_of(lane, job, segment) < job->claimable) return 0;
    if (lane->event_error) { /* of a job that is to fail: when it is the first */
        lane->event_error = NULL;
        return 0;
    }
    if (job->device < 0) lane->gather_bytes -= job->claimable;
    return job->claimable;
}

cr_status cr_gpu_batch_stage(const cr_claim *claim, uint64_t at, void *to, size_t bytes, cr_error *error) {
    cr_segment *segment = claim->segment;
    const uint8_t *from = claim->data + at;
    if (!segment->mapped) {
        memcpy(to, from, bytes);
        return CR_OK;
    }
    cr_guard_enter_shared(from, bytes, segment->kept ? &segment->kept->lost : NULL);
    memcpy(to, from, bytes);
    if (cr_guard_leave())
        return cr_fail(error, CR_DATA_LOSS, "descriptor: the file was cut or its storage failed while it was read");
    return segment->still(segment, (uint64_t)(from - segment->data) + bytes, error);
}

/* Pinned, and of the file as it was (see cr_gpu_batch_checked). */
bool cr_gpu_batch_direct(const cr_claim *claim) {
    const cr_kept *kept = claim->segment->kept;
    if (!kept || !claim->segment->mapped) return claim->segment->pinned;
    return (uint64_t)(claim->data - kept->map.data) + claim->bytes <= atomic_load(&kept->pinned);
}

/* A copy may not go from one pinned piece of a region into the next. */
static uint64_t within_piece(const cr_claim *claim, uint64_t done, uint64_t step) {
    const cr_kept *kept = claim->segment->kept;
    if (!kept) return step;
    uint64_t left = CR_KEPT_PIN_BYTES - (uint64_t)(claim->data + done - kept->map.data) % CR_KEPT_PIN_BYTES;
    return step < left ? step : left;
}

void cr_gpu_batch_copy(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (batch->fate == CR_BATCH_GOOD && batch->copy_count &&
        lane->api->copies(batch->stream, batch->copies, batch->copy_count, &batch->error) != CR_OK)
        batch->fate = CR_BATCH_UNFIT;
    batch->copy_count = 0;
}

/* Copies from pinned memory are made together: each alone would leave the bus idle for a while. Slabs are pinned as one, and what lies
 * side by side on both sides is one copy. */
static void note_copy(cr_gpu_lane *lane, cr_gpu_batch *batch, void *to, const void *from, size_t bytes, bool slab) {
    cr_gpu_copy *last = batch->copy_count ? &batch->copies[batch->copy_count - 1] : NULL;
    if (slab && last && (const char *)last->host + last->bytes == from && (char *)last->device + last->bytes == to) {
        last->bytes += bytes;
        return;
    }
    if (batch->copy_count == CR_GPU_COPIES) cr_gpu_batch_copy(lane, batch);
    batch->copies[batch->copy_count++] = (cr_gpu_copy){to, from, bytes};
}

/* Brings a claim's bytes to where the device folds them, which is returned: its own memory, at `at` in its buffer, or, for so
 * few that a copy would take longer than reading them over the bus, pinned memory. */
const uint8_t *cr_gpu_batch_load(cr_gpu_lane *lane, cr_gpu_batch *batch, const cr_claim *claim, uint64_t at) {
    const cr_gpu_api *api = lane->api;
    bool direct = cr_gpu_batch_direct(claim), near = batch->bytes <= NEAR_BYTES && !batch->run;
    if (claim->job->axis && batch->claim_count > 1) near = false; /* side by side they are one reduction */
    uint8_t *to = batch->run ? batch->run->device + claim->index * claim->job->element : batch->device + at;
    if (claim->job->device >= 0 || (direct && near)) return claim->data;
    for (uint64_t done = 0; done < claim->bytes && batch->fate == CR_BATCH_GOOD;) {
        uint64_t step = claim->bytes - done;
        if (direct)
            step = within_piece(claim, done, step);
        else if (step > STEP_BYTES)
            step = STEP_BYTES;
        const void *from = claim->data + done;
        if (!direct) {
            from = batch->staging + at + done;
            if (cr_gpu_batch_stage(claim, done, batch->staging + at + done, step, &batch->error) != CR_OK)
                batch->fate = CR_BATCH_BROKEN;
        }
        if (direct)
            note_copy(lane, batch, to + done, from, step, !claim->segment->kept && !claim->segment->mapped);
        else if (batch->fate == CR_BATCH_GOOD && !near &&
                 api->copy(batch->stream, to + done, from, step, &batch->error) != CR_OK)
            batch->fate = CR_BATCH_UNFIT;
        done += step;
    }
    return near ? batch->staging + at : to;
}

/* Claims that follow each other in the array and in memory are one fold. */
static void add_fold(cr_gpu_batch *batch, const cr_claim *claim, const uint8_t *data) {
    const cr_job *job = claim->job;
    uint64_t n = claim->bytes / job->element, index = job->base + claim->index;
    cr_gpu_fold *run = batch->fold_count ? &batch->folds[batch->fold_count - 1] : NULL;
    if (run && run->index + run->n == index && (const uint8_t *)run->data + run->n * job->element == data) {
        run->n += n;
        return;
    }
    batch->folds[batch->fold_count++] = (cr_gpu_fold){
        .dtype = job->dtype, .families = job->families, .data = data, .n = n, .index = index, .wants = job->wants};
}

/* The place of a named kernel's input; input on the device needs none, and the kernel has run. */
static void start_run(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_claim *claim = &batch->claims[0];
    cr_job *job = claim->job;
    if (job->device >= 0) {
        if (cr_gpu_run_in_place(lane, job, claim->data, claim->bytes, &batch->error) != CR_OK)
            batch->fate = CR_BATCH_BROKEN;
        return;
    }
    batch->run = cr_gpu_run_begin(lane, job, &batch->error);
    if (!batch->run) batch->fate = CR_BATCH_BROKEN;
    for (uint32_t i = 0; i < batch->claim_count && batch->run; i++) {
        const cr_claim *each = &batch->claims[i];
        if (each->index * job->element + each->bytes <= batch->run->bytes) continue;
        cr_fail(&batch->error, CR_INVALID_ARGUMENT, "kernel: the array is longer than was said");
        batch->fate = CR_BATCH_BROKEN;
    }
}

static void start_one_job(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_job *job = batch->claims[0].job;
    if (job->kernel) start_run(lane, batch);
    uint64_t at = 0, next = 0;
    for (uint32_t i = 0; i < batch->claim_count && batch->fate == CR_BATCH_GOOD; i++) {
        const cr_claim *claim = &batch->claims[i];
        if (claim->index != next) at = (at + ALIGN - 1) / ALIGN * ALIGN;
        next = claim->index + claim->bytes / job->element;
        const uint8_t *data = cr_gpu_batch_load(lane, batch, claim, at);
        if (!job->kernel) add_fold(batch, claim, data);
        at += claim->bytes;
    }
    cr_gpu_batch_copy(lane, batch);
    if (batch->fate == CR_BATCH_GOOD && batch->fold_count &&
        lane->api->fold(batch->stream, batch->folds, batch->fold_count, 0, &batch->error) != CR_OK)
        batch->fate = CR_BATCH_UNFIT;
}

bool cr_gpu_batch_start(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    lane->event_error = NULL;
    if (lane->waiting) ask_events(lane, batch->claims);
    lane->waiting = 0;
    lane->gather_bytes = 0;
    batch->claim_count =
        cr_queue_gather(lane->options.queue, want, more, lane, batch->claims, CR_BATCH_CLAIMS, CR_BATCH_MANY);
    if (lane->event_error) batch->error = *lane->event_error;
    forget_events(lane);
    if (!batch->claim_count) return false;
    batch->claimed_ns = cr_now_ns();
    batch->busy = true;
    batch->parked = false;
    batch->fate = CR_BATCH_GOOD;
    batch->fold_count = batch->copy_count = 0;
    batch->bytes = batch->queued_bytes = 0;
    batch->run = NULL;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < batch->claim_count; i++) {
        const cr_claim *claim = &batch->claims[i];
        batch->bytes += claim->bytes;
        if (claim->job->device < 0) batch->queued_bytes += claim->bytes;
        if (claim->bytes > longest) longest = claim->bytes;
    }
    lane->queued_bytes += batch->queued_bytes;
    const cr_job *first = batch->claims[0].job;
    batch->many = !first->kernel && !first->axis && longest <= CR_GPU_BATCH_BYTES &&
                  (batch->claims[batch->claim_count - 1].job != first || batch->bytes <= CR_GPU_BATCH_BYTES);
    if (lane->event_error) { /* then it is one job's */
        batch->many = false;
        batch->fate = CR_BATCH_BROKEN;
    } else if (first->axis) {
        cr_gpu_axis_start(lane, batch);
    } else if (!batch->many) {
        start_one_job(lane, batch);
    } else if (!cr_gpu_many_start(lane, batch)) {
        return true;
    }
    batch->started_ns = cr_now_ns();
    return true;
}

/* Whether others can fold what this one could not. */
static bool other_lanes(const cr_job *job) { return job->device < 0 && !job->kernel; }

/* Whether each fold has given the partial of what it was asked for. */
static bool collect(cr_gpu_lane *lane, cr_gpu_batch *batch, const cr_partial **partials) {
    for (uint32_t i = 0; i < batch->fold_count; i++) {
        const cr_gpu_fold *fold = &batch->folds[i];
        const cr_partial *p = lane->api->result(batch->stream, i);
        if (!p || p->n != fold->n || p->dtype != (uint8_t)fold->dtype || p->families != fold->families) return false;
        partials[i] = p;
    }
    return true;
}

cr_status cr_gpu_batch_checked(const cr_claim *claim, cr_error *error) {
    cr_segment *segment = claim->segment;
    if (!segment->mapped || !segment->kept || claim->job->device >= 0) return CR_OK;
    return segment->still(segment, (uint64_t)(claim->data - segment->data) + claim->bytes, error);
}

bool cr_gpu_batch_all_checked(cr_gpu_batch *batch) {
    for (uint32_t i = 0; i < batch->claim_count; i++)
        if (cr_gpu_batch_checked(&batch->claims[i], &batch->error) != CR_OK) return false;
    return true;
}

void cr_gpu_batch_unfit(cr_gpu_lane *lane, const cr_claim *claims, uint32_t count, const cr_error *error) {
    if (!other_lanes(claims[0].job)) {
        cr_queue_folded(lane->options.queue, claims, count, NULL, 0, error);
        return;
    }
    if (error->code != CR_UNIMPLEMENTED && error->code != CR_OUT_OF_RANGE)
        cr_warn("%s %u: %s; the CPU takes over this job", lane->api->name, lane->options.ordinal, error->text);
    cr_metric_add(gpu_returned_total, count);
    cr_queue_unfolded(lane->options.queue, claims, count, CR_BY_CPU);
}

static void end(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    cr_queue *queue = lane->options.queue;
    const cr_partial *partials[CR_BATCH_CLAIMS];
    const cr_axis *axis = batch->claims[0].job->axis;
    const bool by_host = axis && axis->by_host;
    if (batch->fate == CR_BATCH_GOOD && !collect(lane, batch, partials)) {
        batch->fate = CR_BATCH_UNFIT;
        cr_fail(&batch->error, CR_INTERNAL, "a fold gave the partial of something else");
    }
    if (batch->fate == CR_BATCH_GOOD && !axis && !cr_gpu_batch_all_checked(batch)) batch->fate = CR_BATCH_BROKEN;
    lane->queued_bytes -= batch->queued_bytes;
    batch->busy = false;
    switch (batch->fate) {
        case CR_BATCH_GOOD:
            cr_metric_add(gpu_bytes_total, by_host ? 0 : batch->bytes);
            cr_metric_add(gpu_launches_total, !by_host);
            cr_queue_folded(queue, batch->claims, batch->claim_count, partials, batch->fold_count, NULL);
            break;
        case CR_BATCH_BROKEN:
            cr_queue_folded(queue, batch->claims, batch->claim_count, NULL, 0, &batch->error);
            break;
        case CR_BATCH_UNFIT:
            cr_gpu_batch_unfit(lane, batch->claims, batch->claim_count, &batch->error);
            break;
    }
}

bool cr_gpu_batch_poll(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (batch->parked && !cr_gpu_axis_unpark(lane, batch)) return false;
    bool idle = false;
    cr_error error;
    if (lane->api->poll(batch->stream, &idle, &error) != CR_OK) {
        if (batch->fate == CR_BATCH_GOOD) {
            batch->fate = CR_BATCH_UNFIT;
            batch->error = error;
        }
        idle = true; /* what failed does not go on running */
        batch->fetching = false;
    }
    if (!idle || lane->api->lost(lane->gpu)) return false;
    const bool axis = batch->claims[0].job->axis != NULL;
    if (axis && !cr_gpu_axis_done(lane, batch)) return true;
    if (batch->many)
        cr_gpu_many_end(lane, batch);
    else
        end(lane, batch);
    /* Not before: in a call of the driver the lane may be taken from its thread, and what has been answered must not be claimed again. */
    if (axis && !lane->api->lost(lane->gpu)) lane->api->axis_trim(batch->stream, CR_AXIS_KEEP_BYTES);
    return true;
}

void cr_gpu_batch_abandon(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (!batch->busy) return;
    batch->busy = false;
    lane->queued_bytes -= batch->queued_bytes;
    cr_metric_add(gpu_returned_total, batch->claim_count);
    if (batch->many)
        cr_gpu_many_abandon(lane, batch);
    else if (other_lanes(batch->claims[0].job))
        cr_queue_unfolded(lane->options.queue, batch->claims, batch->claim_count, 0);
    else
        cr_queue_folded(lane->options.queue, batch->claims, batch->claim_count, NULL, 0, &lane->lost_error);
}
