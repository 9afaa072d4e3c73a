/* claim: which claims a stream takes next, and of what kind of work they are. The job whose turn it is among those that
 * the device wants decides the kind. Into a pack other small jobs may follow it.
 *
 * A job in device memory may have events, behind which its owner has work under way on what the job reads, or on what
 * its answers go to. A stream that waited for an event would be its owner's to stop. So the job waits in line and its
 * events are looked at, outside the queue's lock, for the driver may take its time.
 * Thread: the lane's; the wants run under the queue's lock. Owner: the lane. */
#include "engine/memory/kept.h"
#include "engine/sink.h"
#include "server/lanes/gpu/internal.h"

enum { AWAITED = 1 + CR_AXIS_MAX_OPS }; /* regions, by one job */
enum { PACK_BYTES = 4 * 1024 * 1024 };  /* of a pack, in host memory: they come over the bus */

/* The first that takes a job does it; the last takes any. */
static const cr_gpu_kind *const kinds[] = {&cr_gpu_kind_named, &cr_gpu_kind_fetched, &cr_gpu_kind_axis,
                                           &cr_gpu_kind_pack, &cr_gpu_kind_chunks};

static const cr_gpu_kind *kind_of(const cr_job *job) {
    uint32_t i = 0;
    while (!kinds[i]->takes(job)) i++;
    return kinds[i];
}

/* The regions whose events a job waits for. */
static uint32_t find_awaited(const cr_job *job, const cr_segment *segment, cr_kept *all[AWAITED]) {
    uint32_t count = 0;
    if (job->device < 0) return 0;
    if (segment->kept && segment->kept->device.event) all[count++] = segment->kept;
    for (uint32_t i = 0; job->sink && i < job->sink->await_count; i++)
        if (job->sink->awaited[i] != segment->kept) all[count++] = job->sink->awaited[i];
    return count;
}

/* Notes which events to look at; claims nothing. */
static uint64_t want_to_ask(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    cr_kept *all[AWAITED];
    const uint32_t count = find_awaited(job, segment, all);
    if (!count || job->device != (int32_t)lane->options.ordinal) return 0;
    const uint32_t place = lane->waiting++;
    if (place < lane->ask_from || lane->asked_count >= CR_EVENTS_ASKED) return 0;
    lane->ask_to = place + 1;
    for (uint32_t i = 0; i < count; i++) {
        struct cr_gpu_event *event = &lane->events[lane->asked_count++];
        cr_kept_use(all[i]);
        event->kept = all[i];
        event->fired = false;
        event->error.code = CR_OK;
    }
    return 0;
}

static void ask_events(cr_gpu_lane *lane, cr_claim *claims) {
    lane->waiting = lane->ask_to = 0;
    cr_queue_take(lane->options.queue, want_to_ask, lane, claims, CR_CHUNK_CLAIMS);
    lane->ask_from = lane->ask_to < lane->waiting ? lane->ask_to : 0;
    for (uint32_t i = 0; i < lane->asked_count && !lane->api->lost(lane->gpu); i++) {
        cr_error *error = &lane->events[i].error;
        void *event = lane->events[i].kept->device.event;
        if (lane->api->event_look(lane->gpu, event, &lane->events[i].fired, error) != CR_OK)
            lane->events[i].fired = true; /* and fails */
    }
}

static const struct cr_gpu_event *fired_event(const cr_gpu_lane *lane, const cr_kept *kept) {
    for (uint32_t i = 0; i < lane->asked_count; i++)
        if (lane->events[i].kept == kept && lane->events[i].fired) return &lane->events[i];
    return NULL;
}

/* Whether all its events have fired. One of them may have failed: then the job does. */
static bool may_begin(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment) {
    cr_kept *all[AWAITED];
    const uint32_t count = find_awaited(job, segment, all);
    const cr_error *failed = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct cr_gpu_event *event = fired_event(lane, all[i]);
        if (!event) {
            lane->waiting++;
            return false;
        }
        if (event->error.code != CR_OK) failed = &event->error;
    }
    if (failed) lane->event_error = failed;
    return true;
}

static void forget_events(cr_gpu_lane *lane) {
    while (lane->asked_count) cr_kept_release(lane->events[--lane->asked_count].kept);
}

/* The event comes last: a job that may begin is claimed, because its event may have failed. */
static uint64_t want_of(cr_gpu_lane *lane, const cr_gpu_kind *kind, const cr_job *job, const cr_segment *segment) {
    if (job->device >= 0 && job->device != (int32_t)lane->options.ordinal) return 0;
    const uint64_t bytes = kind->want(lane, job, segment);
    return bytes && may_begin(lane, job, segment) ? bytes : 0;
}

/* Of the first job: when it is small, others may join it. Several jobs may be asked about; the last of them that is
 * wanted is the first job. */
static uint64_t want(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    const cr_gpu_kind *kind = kind_of(job);
    lane->event_error = NULL;
    lane->gather_bytes = 0;
    const uint64_t bytes = want_of(lane, kind, job, segment);
    if (!bytes) return 0;
    lane->claimed_kind = kind;
    if (lane->event_error || !cr_gpu_pack_joins(job)) return bytes;
    const uint64_t chunk = lane->options.chunk_bytes; /* what the staging buffer takes */
    lane->gather_bytes = (chunk < PACK_BYTES ? chunk : PACK_BYTES) - (job->device < 0 ? job->claimable : 0);
    return bytes;
}

/* Of another job. What is in the device's memory needs no room. */
static uint64_t more(void *argument, const cr_job *job, const cr_segment *segment) {
    cr_gpu_lane *lane = argument;
    if (!lane->gather_bytes || !cr_gpu_pack_joins(job)) return 0;
    if (job->device < 0 && job->claimable > lane->gather_bytes) return 0;
    if (want_of(lane, &cr_gpu_kind_pack, job, segment) < job->claimable) return 0;
    if (lane->event_error) { /* of a job that is to fail: when it is the first */
        lane->event_error = NULL;
        return 0;
    }
    if (job->device < 0) lane->gather_bytes -= job->claimable;
    return job->claimable;
}

bool cr_gpu_claim(cr_gpu_lane *lane, cr_gpu_work *work) {
    if (lane->waiting) ask_events(lane, work->claims);
    lane->event_error = NULL;
    lane->waiting = 0;
    work->claim_count =
        cr_queue_gather(lane->options.queue, want, more, lane, work->claims, CR_CHUNK_CLAIMS, CR_PACK_CLAIMS);
    for (uint32_t i = 0; i < work->claim_count; i++) cr_job_joins(work->claims[i].job, 1 + lane->options.ordinal);
    work->kind = lane->claimed_kind;
    work->fate = lane->event_error ? CR_FATE_BROKEN : CR_FATE_GOOD;
    if (lane->event_error) work->error = *lane->event_error;
    forget_events(lane);
    return work->claim_count != 0;
}
