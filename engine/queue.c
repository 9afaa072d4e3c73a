/* queue: what producers and the loop do: offer, hold, stop, collect. What lanes do is in queue_claims.c.
 *
 * Thread: any; the queue's mutex guards every member marked Q in job.h. Owner: the daemon. */
#include "engine/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/job_axis.h"
#include "engine/queue_internal.h"

enum { SOON_FOLDED_BYTES = 1024 * 1024 }; /* within some 50 us: to wake another worker takes as long, and a core */

cr_status cr_queue_new(void (*wake)(void *argument), void *argument, cr_queue **out, cr_error *error) {
    cr_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the run queue");
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_condattr_t monotonic; /* for cr_queue_doze */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) queue->line[kind] = cr_turns_new();
    cr_list_init(&queue->completed);
    cr_list_init(&queue->news);
    queue->wake = wake;
    queue->wake_argument = argument;
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) {
        if (queue->line[kind]) continue;
        cr_queue_free(queue);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the run queue");
    }
    *out = queue;
    return CR_OK;
}

void cr_queue_free(cr_queue *queue) {
    if (!queue) return;
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) cr_turns_free(queue->line[kind]);
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

void cr_queue_look_out(cr_queue *queue, cr_seats *seats, uint64_t most_ns) {
    queue->lookout = (cr_lookout){.seats = seats, .most_ns = most_ns};
}

void cr_queue_trace(cr_queue *queue, const cr_trace *trace) {
    pthread_mutex_lock(&queue->mutex);
    queue->trace = *trace;
    pthread_mutex_unlock(&queue->mutex);
}

void cr_queue_close(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) atomic_fetch_add(&queue->offers[kind], 1);
    pthread_cond_broadcast(&queue->more);
    while (queue->lately) cr_queue_wake_worker(queue);
    pthread_mutex_unlock(&queue->mutex);
}

void cr_queue_wake_worker(cr_queue *queue) {
    cr_sleeper *worker = queue->lately;
    queue->lately = worker->next;
    worker->sleeps = false;
    queue->waking++;
    pthread_cond_signal(&worker->woken);
}

void cr_queue_settle(cr_queue *queue, cr_job *job) {
    if (job->state == CR_JOB_DONE || job->holds || job->claims) return;
    if (job->state == CR_JOB_OPEN && job->claimable) return;
    cr_job_move(job, CR_JOB_DONE);
    job->done_ns = cr_now_ns();
    if (job->trace_id) queue->trace.end(queue->trace.argument, job->trace_id);
    bool was_empty = cr_list_empty(&queue->completed);
    cr_list_append(&queue->completed, &job->done);
    if (was_empty) queue->wake(queue->wake_argument);
}

/* Q. Whether one claim more may be out: what those that are may answer counts as if it waited already. */
static bool one_more(const cr_job *job) {
    if (job->output_bytes >= CR_JOB_AXIS_PENDING_BYTES) return false;
    if (!job->claims) return true;
    if (job->in_order || (job->most_claims && job->claims >= job->most_claims)) return false;
    return job->output_bytes + (job->claims + 1) * job->claim_output <= CR_JOB_AXIS_PENDING_BYTES;
}

bool cr_queue_claimable(const cr_job *job) {
    if (!job->claimable || job->state != CR_JOB_OPEN || !one_more(job)) return false;
    return (!job->in_order && !job->claim_bytes) || cr_queue_first(job);
}

/* Q. Whether the job belongs into the line of a kind. The CPU takes the GPU's jobs when there is no GPU. */
static bool wanted_by(const cr_queue *queue, const cr_job *job, cr_lane_kind kind) {
    if (!cr_queue_claimable(job)) return false;
    if (kind == CR_KIND_GPU) return job->kinds & CR_BY_GPU && queue->gpus && job->claimable >= job->gpu_from;
    return job->device < 0 && !job->named && (job->kinds & CR_BY_CPU || !queue->gpus);
}

/* Q. How long the workers waited for what is offered now. */
static void end_wait(cr_queue *queue) {
    if (!queue->dry_ns) return;
    const uint64_t now = cr_now_ns();
    cr_lookout_waited(&queue->lookout, now - queue->dry_ns, now);
    queue->dry_ns = 0;
}

uint64_t cr_queue_weight(const cr_job *job, uint64_t bytes) {
    if (!job->brought) return SOON_FOLDED_BYTES + 1;
    return job->axis || job->families & CR_FAM_PROD ? 8 * bytes : bytes;
}

/* Q. Whether workers that are awake come to the job, which is in line, as soon as one would that is woken for it. Of the others
 * in line it takes each for as much: where one was more, a worker was woken for that. */
static bool enough_awake(const cr_queue *queue, const cr_job *job) {
    return (queue->in_hand || queue->waking) &&
           queue->in_hand + queue->standing[CR_KIND_CPU] * cr_queue_weight(job, job->claimable) <= SOON_FOLDED_BYTES;
}

static void wake_lane(cr_queue *queue, const cr_job *job, cr_lane_kind kind) {
    if (kind == CR_KIND_CPU && queue->looker) { /* it is awake, and takes what is there */
        queue->looker = NULL;
        atomic_fetch_add_explicit(&queue->offers[kind], 1, memory_order_release);
        return;
    }
    if (kind == CR_KIND_GPU) {
        if (queue->sleeping) pthread_cond_broadcast(&queue->more); /* not every GPU takes every job */
    } else if (queue->lately && !enough_awake(queue, job)) {
        cr_queue_wake_worker(queue);
    }
}

/* An input of unknown length is as large as what has come of it. */
static bool is_large(const cr_job *job) {
    return (job->total_bytes ? job->total_bytes : job->claimed_bytes + job->claimable) > CR_TURN_LARGE_BYTES;
}

static bool in_line(const cr_job *job) {
    return cr_waiting_in_line(&job->ready[CR_KIND_CPU]) || cr_waiting_in_line(&job->ready[CR_KIND_GPU]);
}

void cr_queue_count(const cr_job *job, bool before) {
    const bool now = in_line(job);
    if (now && !before) cr_metric_add(queue_depth, 1);
    if (before && !now) cr_metric_sub(queue_depth, 1);
}

void cr_queue_offer(cr_queue *queue, cr_job *job) {
    const bool before = in_line(job);
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) {
        if (cr_waiting_in_line(&job->ready[kind]) || !wanted_by(queue, job, kind)) continue;
        cr_turns_put(queue->line[kind], job->user, job->client, &job->ready[kind], is_large(job));
        queue->standing[kind]++;
        atomic_fetch_add_explicit(&queue->offers[kind], 1, memory_order_release);
        if (kind == CR_KIND_CPU) end_wait(queue);
        wake_lane(queue, job, kind);
    }
    cr_queue_count(job, before);
}

void cr_queue_leave_line(cr_queue *queue, cr_job *job, cr_lane_kind kind) {
    if (!cr_waiting_in_line(&job->ready[kind])) return;
    cr_waiting_leave(&job->ready[kind]);
    queue->standing[kind]--;
}

void cr_queue_leave(cr_queue *queue, cr_job *job) {
    const bool before = in_line(job);
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) cr_queue_leave_line(queue, job, kind);
    cr_queue_count(job, before);
}

void cr_queue_line_up(cr_queue *queue, cr_job *job, cr_lane_kind taker, uint64_t bytes) {
    const bool before = in_line(job);
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) {
        bool wanted = wanted_by(queue, job, kind);
        if (!wanted) cr_queue_leave_line(queue, job, kind);
        if (wanted && kind == (int)taker) wake_lane(queue, job, kind);
    }
    cr_queue_count(job, before);
    cr_turns_charge(queue->line[taker], &job->ready[taker], bytes);
}

bool cr_queue_finished_with(cr_segment *segment) {
    bool nothing_left = segment->claimed == segment->ready || segment->job->state != CR_JOB_OPEN;
    if (segment->released || !segment->sealed || segment->claims || !nothing_left) return false;
    cr_list_remove(&segment->link);
    segment->released = true;
    return true;
}

void cr_queue_add(cr_queue *queue, cr_segment *segment) {
    pthread_mutex_lock(&queue->mutex);
    cr_list_append(&segment->job->segments, &segment->link);
    pthread_mutex_unlock(&queue->mutex);
}

void cr_queue_ready(cr_queue *queue, cr_segment *segment, uint64_t ready, bool seal) {
    cr_job *job = segment->job;
    cr_list let_go;
    cr_list_init(&let_go);
    pthread_mutex_lock(&queue->mutex);
    assert(!segment->sealed && ready >= segment->ready && ready % job->element == 0);
    if (job->state == CR_JOB_OPEN) {
        job->claimable += ready - segment->ready;
        segment->ready = ready;
    }
    segment->sealed = seal;
    if (cr_queue_finished_with(segment)) cr_list_append(&let_go, &segment->link);
    if ((job->device < 0 && !job->named) || !cr_queue_stop_orphan(queue, job, &let_go)) cr_queue_offer(queue, job);
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
}

bool cr_queue_busy(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    const bool busy = !queue->lately && !queue->looker;
    pthread_mutex_unlock(&queue->mutex);
    return busy;
}

bool cr_queue_idle(cr_queue *queue, const cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    const bool idle = !queue->in_hand && !queue->waking && !queue->standing[CR_KIND_CPU] && !(job->kinds & CR_BY_GPU);
    pthread_mutex_unlock(&queue->mutex);
    return idle;
}

void cr_queue_fed(cr_queue *queue, cr_job *job, const cr_partial *partial, uint64_t bytes, uint64_t began_ns) {
    assert(cr_job_is_divisible(job));
    pthread_mutex_lock(&queue->mutex);
    if (job->state == CR_JOB_OPEN) {
        cr_partial_merge(&job->partial, partial);
        if (!job->first_claim_ns) job->first_claim_ns = began_ns;
        job->claimed_bytes += bytes;
        job->folded_bytes += bytes;
        cr_metric_add(input_bytes_total, bytes);
    }
    pthread_mutex_unlock(&queue->mutex);
}

bool cr_queue_hold(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    bool open = job->state == CR_JOB_OPEN;
    if (open) job->holds++;
    pthread_mutex_unlock(&queue->mutex);
    return open;
}

void cr_queue_unhold(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    assert(job->holds);
    job->holds--;
    if (job->named) cr_queue_poke_locked(queue); /* its lane waits for the last producer */
    cr_queue_settle(queue, job);
    pthread_mutex_unlock(&queue->mutex);
}

bool cr_queue_stopped(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    bool stopped = job->state != CR_JOB_OPEN;
    pthread_mutex_unlock(&queue->mutex);
    return stopped;
}

/* Q. The loop has something to see of the job. */
static void publish_locked(cr_queue *queue, cr_job *job) {
    if (!cr_list_empty(&job->news)) return;
    bool was_empty = cr_list_empty(&queue->news);
    cr_list_append(&queue->news, &job->news);
    if (was_empty) queue->wake(queue->wake_argument);
}

void cr_queue_set_total(cr_queue *queue, cr_job *job, uint64_t bytes) {
    pthread_mutex_lock(&queue->mutex);
    job->total_bytes = bytes;
    pthread_mutex_unlock(&queue->mutex);
}

void cr_queue_measured(cr_queue *queue, cr_job *job, uint64_t bytes) {
    pthread_mutex_lock(&queue->mutex);
    job->total_bytes = bytes;
    if (job->state == CR_JOB_OPEN) publish_locked(queue, job);
    pthread_mutex_unlock(&queue->mutex);
}

void cr_queue_whole(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    cr_job_axis_claim_whole(job);
    pthread_mutex_unlock(&queue->mutex);
}

bool cr_queue_reads(cr_queue *queue, cr_job *job, uint64_t bytes) {
    pthread_mutex_lock(&queue->mutex);
    const bool reads =
        cr_job_is_divisible(job) && job->kinds & CR_BY_CPU && (!(job->kinds & CR_BY_GPU) || bytes < job->slabs_from);
    if (reads) job->kinds = CR_BY_CPU;
    pthread_mutex_unlock(&queue->mutex);
    return reads;
}

void cr_queue_stop_locked(cr_queue *queue, cr_job *job, const cr_error *error, cr_list *let_go) {
    if (job->state != CR_JOB_OPEN) return;
    if (error) job->error = *error;
    cr_job_move(job, CR_JOB_STOPPING);
    job->claimable = 0;
    cr_queue_leave(queue, job);
    if (job->named) cr_queue_poke_locked(queue);
    for (cr_list *node; (node = cr_list_pop(&job->unfolded));) {
        cr_unfolded *unfolded = cr_container(node, cr_unfolded, link);
        unfolded->segment->claims--;
        if (cr_queue_finished_with(unfolded->segment)) cr_list_append(let_go, &unfolded->segment->link);
        free(unfolded);
    }
    for (cr_list *node = job->segments.next, *next; node != &job->segments; node = next) {
        next = node->next;
        cr_segment *segment = cr_container(node, cr_segment, link);
        if (cr_queue_finished_with(segment))
            cr_list_append(let_go, node);
        else
            cr_list_remove(node);
    }
    cr_queue_settle(queue, job);
}

bool cr_queue_stop_orphan(cr_queue *queue, cr_job *job, cr_list *let_go) {
    bool home = job->device < 0 || queue->gpus >> job->device & 1;
    if (job->state != CR_JOB_OPEN || (home && (!job->named || queue->gpus))) return false;
    cr_error error;
    cr_fail(&error, CR_UNAVAILABLE, "%s has been lost",
            home ? "kernel: the GPU" : "region: the GPU whose memory it is");
    cr_queue_stop_locked(queue, job, &error, let_go);
    return true;
}

void cr_queue_poke_locked(cr_queue *queue) {
    atomic_fetch_add_explicit(&queue->offers[CR_KIND_GPU], 1, memory_order_release);
    pthread_cond_broadcast(&queue->more);
}

void cr_queue_release_all(cr_list *let_go) {
    for (cr_list *node; (node = cr_list_pop(let_go));) {
        cr_segment *segment = cr_container(node, cr_segment, link);
        segment->release(segment);
    }
}

void cr_queue_stop(cr_queue *queue, cr_job *job, const cr_error *error) {
    cr_list let_go;
    cr_list_init(&let_go);
    pthread_mutex_lock(&queue->mutex);
    cr_queue_stop_locked(queue, job, error, &let_go);
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
}

void cr_queue_emit(cr_queue *queue, cr_job *job, cr_output *output) {
    pthread_mutex_lock(&queue->mutex);
    bool wanted = job->state == CR_JOB_OPEN;
    if (wanted) {
        if (!job->sink) job->output_bytes += output->bytes; /* statuses beside a sink are no reason to pause */
        cr_list_append(&job->outputs, &output->link);
        publish_locked(queue, job);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (!wanted) free(output);
}

cr_job *cr_queue_news(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    cr_list *node = cr_list_pop(&queue->news);
    pthread_mutex_unlock(&queue->mutex);
    return node ? cr_container(node, cr_job, news) : NULL;
}

cr_output *cr_queue_output(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    cr_list *node = cr_list_pop(&job->outputs);
    pthread_mutex_unlock(&queue->mutex);
    return node ? cr_container(node, cr_output, link) : NULL;
}

void cr_queue_sent(cr_queue *queue, cr_job *job, uint64_t bytes) {
    cr_list let_go;
    cr_list_init(&let_go);
    pthread_mutex_lock(&queue->mutex);
    job->output_bytes -= bytes;
    /* While it paused it stood in no line: its GPU may have gone meanwhile. */
    if (!cr_queue_stop_orphan(queue, job, &let_go)) cr_queue_offer(queue, job);
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
}

void cr_queue_announce(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->soon = true;
    queue->wake(queue->wake_argument);
    pthread_mutex_unlock(&queue->mutex);
}

bool cr_queue_take_announced(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    const bool soon = queue->soon;
    queue->soon = false;
    pthread_mutex_unlock(&queue->mutex);
    return soon;
}

void cr_queue_completed(cr_queue *queue, cr_list *list) {
    cr_list_init(list);
    pthread_mutex_lock(&queue->mutex);
    for (cr_list *node; (node = cr_list_pop(&queue->completed));) {
        cr_list_remove(&cr_container(node, cr_job, done)->news); /* being done is all the news there is */
        cr_list_append(list, node);
    }
    pthread_mutex_unlock(&queue->mutex);
}

cr_progress cr_queue_progress(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    cr_progress progress = {job->folded_bytes, job->total_bytes};
    pthread_mutex_unlock(&queue->mutex);
    return progress;
}
