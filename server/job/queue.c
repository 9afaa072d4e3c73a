/* queue: claims, returns and completions. Thread: any; the queue's mutex guards every member marked Q in job.h.
 * Owner: the daemon. */
#include "server/job/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/metrics.h"
#include "server/job/axis.h"

enum {
    CLAIM_MIN = 256 * 1024,
    CLAIM_MAX = 4 * 1024 * 1024,
    CUT_BYTES = 64 * 1024, /* of streamed input; a multiple of every element size and of 4,096 elements' grain */
    CUT_ELEMENTS = 65536,  /* of addressable input */
};

struct cr_queue {
    pthread_mutex_t mutex;
    pthread_cond_t more;
    cr_list ready, completed, news;
    uint32_t sleeping;
    bool closed;
    _Atomic uint32_t offers; /* rises with every offer: what a spinning worker watches */
    void (*wake)(void *argument);
    void *wake_argument;
};

cr_status cr_queue_new(void (*wake)(void *argument), void *argument, cr_queue **out, cr_error *error) {
    cr_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the run queue");
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->more, NULL);
    cr_list_init(&queue->ready);
    cr_list_init(&queue->completed);
    cr_list_init(&queue->news);
    queue->wake = wake;
    queue->wake_argument = argument;
    *out = queue;
    return CR_OK;
}

void cr_queue_free(cr_queue *queue) {
    if (!queue) return;
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

void cr_queue_close(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    atomic_fetch_add(&queue->offers, 1);
    pthread_cond_broadcast(&queue->more);
    pthread_mutex_unlock(&queue->mutex);
}

/* Q. Completes the job when nothing is out and nothing is left. */
static void settle(cr_queue *queue, cr_job *job) {
    if (job->state == CR_JOB_DONE || job->holds || job->claims) return;
    if (job->state == CR_JOB_OPEN && job->claimable) return;
    cr_job_move(job, CR_JOB_DONE);
    job->done_ns = cr_now_ns();
    bool was_empty = cr_list_empty(&queue->completed);
    cr_list_append(&queue->completed, &job->done);
    if (was_empty) queue->wake(queue->wake_argument);
}

/* Q. The first segment of job with bytes to claim (the next in the array, for a job in order); NULL: none may be taken. */
static cr_segment *first_claimable(cr_job *job) {
    for (cr_list *node = job->segments.next; node != &job->segments; node = node->next) {
        cr_segment *segment = cr_container(node, cr_segment, link);
        if (segment->ready <= segment->claimed) continue;
        if (!segment->sealed && segment->ready - segment->claimed < job->claim_bytes) continue;
        if (!job->in_order || segment->index * job->element + segment->claimed == job->claimed_bytes) return segment;
    }
    return NULL;
}

/* Q. Whether a lane may take something of it: answers that nobody reads stop their job. */
static bool claimable(cr_job *job) {
    if (!job->claimable || job->state != CR_JOB_OPEN || job->output_bytes >= CR_AXIS_PENDING_BYTES) return false;
    if (!job->in_order && !job->claim_bytes) return true;
    return !(job->in_order && job->claims) && first_claimable(job);
}

/* Q. Puts the job in line when it has something to claim and stands nowhere. */
static void offer(cr_queue *queue, cr_job *job) {
    if (job->queued || !claimable(job)) return;
    job->queued = true;
    cr_list_append(&queue->ready, &job->ready);
    atomic_fetch_add_explicit(&queue->offers, 1, memory_order_release);
    if (queue->sleeping) pthread_cond_signal(&queue->more);
}

/* Q. True when the caller must call segment->release after unlocking. */
static bool finished_with(cr_segment *segment) {
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
    pthread_mutex_lock(&queue->mutex);
    assert(!segment->sealed && ready >= segment->ready && ready % job->element == 0);
    if (job->state == CR_JOB_OPEN) {
        job->claimable += ready - segment->ready;
        segment->ready = ready;
    }
    segment->sealed = seal;
    bool release = finished_with(segment);
    offer(queue, job);
    pthread_mutex_unlock(&queue->mutex);
    if (release) segment->release(segment);
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
    settle(queue, job);
    pthread_mutex_unlock(&queue->mutex);
}

bool cr_queue_stopped(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    bool stopped = job->state != CR_JOB_OPEN;
    pthread_mutex_unlock(&queue->mutex);
    return stopped;
}

void cr_queue_set_total(cr_queue *queue, cr_job *job, uint64_t bytes) {
    pthread_mutex_lock(&queue->mutex);
    job->total_bytes = bytes;
    pthread_mutex_unlock(&queue->mutex);
}

/* Q. Moves what can be released to let_go. Segments still claimed or unsealed are released by whoever holds them. */
static void stop_locked(cr_queue *queue, cr_job *job, const cr_error *error, cr_list *let_go) {
    if (job->state != CR_JOB_OPEN) return;
    if (error) job->error = *error;
    cr_job_move(job, CR_JOB_STOPPING);
    job->claimable = 0;
    if (job->queued) {
        cr_list_remove(&job->ready);
        job->queued = false;
    }
    for (cr_list *node = job->segments.next, *next; node != &job->segments; node = next) {
        next = node->next;
        cr_segment *segment = cr_container(node, cr_segment, link);
        if (finished_with(segment))
            cr_list_append(let_go, node);
        else
            cr_list_remove(node);
    }
    settle(queue, job);
}

static void release_all(cr_list *let_go) {
    for (cr_list *node; (node = cr_list_pop(let_go));) {
        cr_segment *segment = cr_container(node, cr_segment, link);
        segment->release(segment);
    }
}

void cr_queue_stop(cr_queue *queue, cr_job *job, const cr_error *error) {
    cr_list let_go;
    cr_list_init(&let_go);
    pthread_mutex_lock(&queue->mutex);
    stop_locked(queue, job, error, &let_go);
    pthread_mutex_unlock(&queue->mutex);
    release_all(&let_go);
}

void cr_queue_emit(cr_queue *queue, cr_job *job, cr_output *output) {
    pthread_mutex_lock(&queue->mutex);
    bool wanted = job->state == CR_JOB_OPEN;
    if (wanted) {
        job->output_bytes += output->bytes;
        cr_list_append(&job->outputs, &output->link);
        bool told = !cr_list_empty(&job->news);
        if (!told) {
            bool was_empty = cr_list_empty(&queue->news);
            cr_list_append(&queue->news, &job->news);
            if (was_empty) queue->wake(queue->wake_argument);
        }
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
    pthread_mutex_lock(&queue->mutex);
    job->output_bytes -= bytes;
    offer(queue, job);
    pthread_mutex_unlock(&queue->mutex);
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

/* Bytes to take of available: a share that leaves the other workers something, between the limits, cut where it may be. */
static uint64_t claim_size(const cr_segment *segment, uint64_t available, uint32_t workers) {
    uint64_t share = available / (2 * (uint64_t)workers);
    if (share < CLAIM_MIN) share = CLAIM_MIN;
    if (share > CLAIM_MAX) share = CLAIM_MAX;
    if (share < segment->job->claim_bytes) share = segment->job->claim_bytes;
    uint64_t cut = segment->aligned ? (uint64_t)CUT_ELEMENTS * segment->job->element : CUT_BYTES;
    uint64_t unit = cr_job_unit(segment->job);
    cut = (cut + unit - 1) / unit * unit;
    share = (share + cut - 1) / cut * cut;
    return share < available ? share : available;
}

/* Q. Takes the next range of the first job in line; an empty claim when there is none. */
static cr_claim take_claim(cr_queue *queue, uint32_t workers) {
    cr_list *node = cr_list_pop(&queue->ready);
    if (!node) return (cr_claim){0};
    cr_job *job = cr_container(node, cr_job, ready);
    cr_segment *segment = first_claimable(job);
    assert(segment);
    cr_claim claim = {.job = job,
                      .segment = segment,
                      .data = segment->data + segment->claimed,
                      .bytes = claim_size(segment, segment->ready - segment->claimed, workers),
                      .index = segment->index + segment->claimed / job->element};
    segment->claimed += claim.bytes;
    segment->claims++;
    job->claims++;
    job->claimable -= claim.bytes;
    job->claimed_bytes += claim.bytes;
    if (segment->sealed && segment->claimed == segment->ready) cr_list_remove(&segment->link);
    if (!job->first_claim_ns) job->first_claim_ns = cr_now_ns();
    job->queued = claimable(job);
    if (job->queued) {
        cr_list_append(&queue->ready, &job->ready);
        if (queue->sleeping) pthread_cond_signal(&queue->more);
    }
    return claim;
}

/* Q. Gives back the turn's claim. stays: the thread's next claim is of the same job, so its partial need not be merged
 * yet. Segments to release after unlocking go to let_go. */
static void give_back(cr_queue *queue, cr_turn *turn, bool stays, cr_list *let_go) {
    cr_job *job = turn->claim.job;
    cr_segment *segment = turn->claim.segment;
    if (turn->error.code != CR_OK) stop_locked(queue, job, &turn->error, let_go);
    if (!stays && !job->axis && job->state == CR_JOB_OPEN) cr_partial_merge(&job->partial, &turn->partial);
    job->folded_bytes += turn->claim.bytes;
    cr_metric_add(input_bytes_total, turn->claim.bytes);
    cr_metric_add(claims_total, 1);
    job->claims--;
    segment->claims--;
    if (finished_with(segment)) cr_list_append(let_go, &segment->link);
    settle(queue, job);
    offer(queue, job); /* a job in order waited for this claim */
}

/* Looks for an offer without the lock; worth it only when the next one is a few microseconds away. */
static void spin(cr_queue *queue, uint64_t spin_ns) {
    uint32_t seen = atomic_load_explicit(&queue->offers, memory_order_acquire);
    uint64_t until = cr_now_ns() + spin_ns;
    while (atomic_load_explicit(&queue->offers, memory_order_acquire) == seen && cr_now_ns() < until) {
    }
}

bool cr_queue_turn(cr_queue *queue, cr_turn *turn, uint32_t workers, uint64_t spin_ns, bool wait) {
    cr_list let_go;
    cr_list_init(&let_go);
    bool spun = spin_ns == 0;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        if (turn->claim.job && turn->claim.job->in_order) {
            give_back(queue, turn, false, &let_go);
            turn->claim.job = NULL;
        }
        cr_claim next = take_claim(queue, workers);
        bool stays = next.job && next.job == turn->claim.job;
        if (turn->claim.job) give_back(queue, turn, stays, &let_go);
        turn->claim = next;
        turn->error.code = CR_OK;
        if (next.job && !stays && !next.job->axis) cr_partial_init(&turn->partial, next.job->dtype, next.job->families);
        if (next.job || queue->closed || !wait) break;
        if (!cr_list_empty(&let_go) || !spun) {
            pthread_mutex_unlock(&queue->mutex);
            release_all(&let_go);
            if (!spun) spin(queue, spin_ns);
            spun = true;
            pthread_mutex_lock(&queue->mutex);
            continue;
        }
        queue->sleeping++;
        pthread_cond_wait(&queue->more, &queue->mutex);
        queue->sleeping--;
    }
    pthread_mutex_unlock(&queue->mutex);
    release_all(&let_go);
    return turn->claim.job != NULL;
}
