/* queue: what lanes do: claim, give back folded or unfolded, sleep.
 *
 * Thread: any; the queue's mutex guards every member marked Q in job.h. Owner: the daemon. */
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/queue_internal.h"

enum {
    CUT_BYTES = 64 * 1024, /* of streamed input; a multiple of every element size and of 4,096 elements' grain */
    CUT_ELEMENTS = 65536,  /* of addressable input */
    VAIN_MOST = 256,       /* jobs in a row of which a lane wants nothing more: then it has enough */
};

/* Where the next claim of a job begins: a range that came back, or else what is left of a segment. */
typedef struct place {
    cr_segment *segment;
    cr_unfolded *unfolded; /* NULL: the segment's own mark moves */
    uint64_t offset, available;
} place;

cr_segment *cr_queue_first(const cr_job *job) {
    for (cr_list *node = job->segments.next; node != &job->segments; node = node->next) {
        cr_segment *segment = cr_container(node, cr_segment, link);
        if (segment->ready <= segment->claimed) continue;
        if (!segment->sealed && segment->ready - segment->claimed < job->claim_bytes) continue;
        if (!job->in_order || segment->index * job->element + segment->claimed == job->claimed_bytes) return segment;
    }
    return NULL;
}

/* Q. False: nothing may be taken. */
static bool find_place(const cr_job *job, place *at) {
    if (!cr_list_empty(&job->unfolded)) {
        at->unfolded = cr_container(job->unfolded.next, cr_unfolded, link);
        at->segment = at->unfolded->segment;
        at->offset = at->unfolded->offset;
        at->available = at->unfolded->bytes;
        return true;
    }
    at->unfolded = NULL;
    at->segment = cr_queue_first(job);
    if (!at->segment) return false;
    at->offset = at->segment->claimed;
    at->available = at->segment->ready - at->segment->claimed;
    return true;
}

/* Bytes between which a claim of this segment may be cut. */
static uint64_t cut_of(const cr_segment *segment) {
    uint64_t cut = segment->aligned ? (uint64_t)CUT_ELEMENTS * segment->job->element : CUT_BYTES;
    uint64_t unit = cr_job_claim_unit(segment->job);
    return (cut + unit - 1) / unit * unit;
}

/* Bytes to take of available: a share that leaves the other workers something, between the limits, cut where it may be. Other
 * jobs in line are something, too. Then a claim is long enough that workers seldom meet at the queue's lock, but some worker
 * comes to its end in about the time of the least claim. */
static uint64_t claim_size(const place *at, uint32_t workers, uint32_t jobs) {
    const uint64_t pieces = (2 * (uint64_t)workers + jobs - 1) / jobs, apart = (uint64_t)workers * CR_CLAIM_LEAST_BYTES;
    const cr_job *job = at->segment->job;
    uint64_t share = at->available / pieces, most = CR_CLAIM_MOST_BYTES;
    if (jobs > 1 && apart < most) most = apart > CR_TURN_WORTH_BYTES ? apart : CR_TURN_WORTH_BYTES;
    if (share < CR_CLAIM_LEAST_BYTES) share = CR_CLAIM_LEAST_BYTES;
    if (share > most) share = most;
    if (share < job->claim_bytes) share = job->claim_bytes;
    uint64_t cut = cut_of(at->segment);
    if (job->claim_most && share > job->claim_most) {
        share = job->claim_most;
        cut = cr_job_claim_unit(job);
    }
    share = (share + cut - 1) / cut * cut;
    return share < at->available ? share : at->available;
}

/* Q. Bytes of the place, at most what is available there. The job's line is the caller's business. */
static cr_claim claim_place(cr_job *job, const place *at, uint64_t bytes) {
    cr_segment *segment = at->segment;
    cr_claim claim = {.job = job,
                      .segment = segment,
                      .data = segment->data + at->offset,
                      .bytes = bytes,
                      .index = segment->index + at->offset / job->element};
    if (!at->unfolded) {
        segment->claimed += bytes;
        segment->claims++;
        if (segment->sealed && segment->claimed == segment->ready) cr_list_remove(&segment->link);
    } else if (bytes < at->available) {
        at->unfolded->offset += bytes;
        at->unfolded->bytes -= bytes;
        segment->claims++;
    } else {
        cr_list_remove(&at->unfolded->link);
        free(at->unfolded); /* its place among the segment's claims is the claim's now */
    }
    job->claims++;
    job->claimable -= bytes;
    job->claimed_bytes += bytes;
    if (!job->first_claim_ns) job->first_claim_ns = cr_now_ns();
    return claim;
}

/* Q. Takes the next range of the job whose turn it is; an empty claim when there is none. */
static cr_claim take_claim(cr_queue *queue, uint32_t workers) {
    place at;
    cr_waiting *first = cr_turns_next(queue->line[CR_KIND_CPU]);
    if (!first) return (cr_claim){0};
    cr_job *job = cr_container(first, cr_job, ready[CR_KIND_CPU]);
    bool found = find_place(job, &at);
    assert(found);
    (void)found;
    cr_claim claim = claim_place(job, &at, claim_size(&at, workers, queue->standing[CR_KIND_CPU]));
    claim.weight = cr_queue_weight(job, claim.bytes);
    queue->in_hand += claim.weight;
    cr_queue_line_up(queue, job, CR_KIND_CPU, claim.bytes);
    return claim;
}

/* Q. The claim is folded. Segments to release after unlocking go to let_go. */
static void give_back(cr_queue *queue, const cr_claim *claim, cr_list *let_go) {
    cr_job *job = claim->job;
    queue->in_hand -= claim->weight;
    job->folded_bytes += claim->bytes;
    cr_metric_add(input_bytes_total, claim->bytes);
    cr_metric_add(claims_total, 1);
    job->claims--;
    claim->segment->claims--;
    if (cr_queue_finished_with(claim->segment)) cr_list_append(let_go, &claim->segment->link);
}

/* Q. Gives back the turn's claim. stays: the thread's next claim is of the same job, so its partial need not be merged yet. */
static void end_turn(cr_queue *queue, cr_turn *turn, bool stays, cr_list *let_go) {
    cr_job *job = turn->claim.job;
    if (turn->error.code != CR_OK) cr_queue_stop_locked(queue, job, &turn->error, let_go);
    if (!stays && !job->axis && job->state == CR_JOB_OPEN) cr_partial_merge(&job->partial, &turn->partial);
    give_back(queue, &turn->claim, let_go);
    cr_queue_settle(queue, job);
    cr_queue_offer(queue, job); /* a job in order waited for this claim */
}

/* Q. Looks for an offer, without the lock, as the only worker that does. False: it is time to sleep. */
static bool look_out(cr_queue *queue) {
    _Atomic uint32_t *offers = &queue->offers[CR_KIND_CPU];
    cr_look look;
    if (!queue->lookout.most_ns) return false;
    queue->dry_ns = cr_now_ns();
    if (queue->looker || !cr_lookout_begin(&queue->lookout, &look, queue->dry_ns)) return false;
    const uint32_t seen = atomic_load_explicit(offers, memory_order_relaxed);
    queue->looker = &look;
    pthread_mutex_unlock(&queue->mutex);
    while (atomic_load_explicit(offers, memory_order_acquire) == seen && cr_look_on(&look, cr_now_ns())) sched_yield();
    pthread_mutex_lock(&queue->mutex);
    if (queue->looker == &look) queue->looker = NULL;
    cr_lookout_end(&queue->lookout, &look);
    return true;
}

/* Q. */
static void sleep_until_woken(cr_queue *queue) {
    cr_sleeper self = {.next = queue->lately, .woken = PTHREAD_COND_INITIALIZER, .sleeps = true};
    queue->lately = &self;
    while (self.sleeps) pthread_cond_wait(&self.woken, &queue->mutex);
    queue->waking--;
    pthread_cond_destroy(&self.woken);
}

/* The time of the claim in hand is over. Returns now. */
static uint64_t count_claim(cr_turn *turn) {
    cr_lane_meter *meter = turn->meter;
    const uint64_t now = cr_now_ns();
    cr_meter_add(&meter->bytes, turn->claim.bytes);
    cr_meter_add(&meter->launches, 1);
    cr_meter_add(&meter->busy_ns, now - turn->claimed_ns);
    return now;
}

bool cr_queue_turn(cr_queue *queue, cr_turn *turn, uint32_t workers, bool wait) {
    cr_list let_go;
    cr_list_init(&let_go);
    bool looked = false;
    uint64_t now = turn->meter && turn->claim.job ? count_claim(turn) : 0;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        /* What such a job offers next may depend on this claim. */
        if (turn->claim.job && (turn->claim.job->in_order || turn->claim.job->axis)) {
            end_turn(queue, turn, false, &let_go);
            turn->claim.job = NULL;
        }
        cr_claim next = take_claim(queue, workers);
        bool stays = next.job && next.job == turn->claim.job;
        if (turn->claim.job) end_turn(queue, turn, stays, &let_go);
        turn->claim = next;
        turn->error.code = CR_OK;
        if (next.job && !stays && !next.job->axis) {
            cr_partial_init(&turn->partial, next.job->dtype, next.job->families);
            cr_partial_want(&turn->partial, next.job->wants);
        }
        if (next.job) cr_job_joins(next.job, 0);
        if (next.job || queue->closed || !wait) break;
        now = 0; /* it is over by the time that there is a claim */
        if (!cr_list_empty(&let_go)) {
            pthread_mutex_unlock(&queue->mutex);
            cr_queue_release_all(&let_go);
            pthread_mutex_lock(&queue->mutex);
            continue;
        }
        if (!looked && look_out(queue)) {
            looked = true;
            continue;
        }
        sleep_until_woken(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
    if (turn->meter && turn->claim.job) turn->claimed_ns = now ? now : cr_now_ns();
    return turn->claim.job != NULL;
}

/* Q. Claims of one job, want bytes together, or as many as there are. */
static uint32_t take_claims(cr_job *job, uint64_t want, cr_claim *claims, uint32_t most) {
    uint32_t count = 0;
    place at;
    if (job->claim_most && want > job->claim_most) want = job->claim_most;
    for (; count < most && want && find_place(job, &at); count++) {
        uint64_t bytes = at.available, cut = job->claim_most ? cr_job_claim_unit(job) : cut_of(at.segment);
        if (bytes > want) {
            bytes = want / cut * cut;
            if (!bytes && count) break;
            if (!bytes) bytes = cut < at.available ? cut : at.available;
        }
        claims[count] = claim_place(job, &at, bytes);
        want -= bytes < want ? bytes : want;
    }
    return count;
}

/* What cr_queue_gather is about, for the line that it goes through. */
typedef struct gathering {
    cr_queue *queue;
    cr_want want;
    void *argument;
    uint64_t bytes; /* wanted of the job that was asked for last */
    cr_claim *claims;
    uint32_t count, most, room, vain;
} gathering;

/* Q. */
static cr_choice ask_lane(void *argument, cr_waiting *waiting) {
    gathering *g = argument;
    place at;
    const cr_job *job = cr_container(waiting, cr_job, ready[CR_KIND_GPU]);
    g->bytes = find_place(job, &at) ? g->want(g->argument, job, at.segment) : 0;
    return g->bytes ? CR_CHOICE_TAKE : CR_CHOICE_PASS;
}

/* Q. Claims the wanted bytes of the job, or fewer where other clients want the device too. A kernel that is asked for by
 * name folds device memory as a whole. */
static void gather_from(gathering *g, cr_waiting *waiting) {
    cr_queue *queue = g->queue;
    cr_job *job = cr_container(waiting, cr_job, ready[CR_KIND_GPU]);
    const uint64_t shared = job->device < 0 ? CR_SHARED_HOST_BYTES : CR_SHARED_DEVICE_BYTES;
    const uint32_t room = g->room - g->count;
    cr_claim *claims = g->claims + g->count;
    uint64_t bytes = 0;
    if (g->bytes > shared && !(job->named && job->device >= 0) && !cr_turns_alone(queue->line[CR_KIND_GPU], waiting))
        g->bytes = shared;
    const uint32_t count = take_claims(job, g->bytes, claims, g->most < room ? g->most : room);
    for (uint32_t i = 0; i < count; i++) bytes += claims[i].bytes;
    g->count += count;
    if (queue->trace.begin && !job->trace_id) job->trace_id = queue->trace.begin(queue->trace.argument, job);
    cr_queue_line_up(queue, job, CR_KIND_GPU, bytes);
}

/* Q. */
static bool gather_more(void *argument, cr_waiting *waiting) {
    gathering *g = argument;
    const bool wanted = ask_lane(g, waiting) == CR_CHOICE_TAKE;
    if (wanted) gather_from(g, waiting);
    g->vain = wanted ? 0 : g->vain + 1;
    return g->count < g->room && g->vain < VAIN_MOST;
}

uint32_t cr_queue_gather(cr_queue *queue, cr_want want, cr_want more, void *argument, cr_claim *claims, uint32_t most,
                         uint32_t room) {
    gathering g = {.queue = queue, .want = want, .argument = argument, .claims = claims, .most = most, .room = room};
    pthread_mutex_lock(&queue->mutex);
    cr_waiting *first = cr_turns_pick(queue->line[CR_KIND_GPU], ask_lane, &g);
    if (first) gather_from(&g, first);
    g.want = more;
    if (first && more && g.count < room) cr_turns_follow(queue->line[CR_KIND_GPU], gather_more, &g);
    pthread_mutex_unlock(&queue->mutex);
    return g.count;
}

uint32_t cr_queue_take(cr_queue *queue, cr_want want, void *argument, cr_claim *claims, uint32_t most) {
    return cr_queue_gather(queue, want, NULL, argument, claims, most, most);
}

void cr_queue_folded(cr_queue *queue, const cr_claim *claims, uint32_t count, const cr_partial *const *partials,
                     uint32_t partial_count, const cr_error *error) {
    cr_list let_go;
    cr_list_init(&let_go);
    cr_job *job = claims[0].job;
    pthread_mutex_lock(&queue->mutex);
    if (error) cr_queue_stop_locked(queue, job, error, &let_go);
    for (uint32_t i = 0; i < partial_count && job->state == CR_JOB_OPEN; i++)
        cr_partial_merge(&job->partial, partials[i]);
    for (uint32_t i = 0; i < count; i++) give_back(queue, &claims[i], &let_go);
    cr_queue_settle(queue, job);
    cr_queue_offer(queue, job); /* a job in order waited for them */
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
}

void cr_queue_unfolded(cr_queue *queue, const cr_claim *claims, uint32_t count, uint32_t kinds) {
    cr_list let_go;
    cr_list_init(&let_go);
    cr_job *job = claims[0].job;
    assert(!job->in_order); /* its mark cannot move back */
    pthread_mutex_lock(&queue->mutex);
    if (kinds) job->kinds = kinds;
    for (uint32_t i = 0; i < count; i++) {
        const cr_claim *claim = &claims[i];
        cr_unfolded *unfolded = job->state == CR_JOB_OPEN ? malloc(sizeof *unfolded) : NULL;
        job->claims--;
        if (unfolded) {
            *unfolded = (cr_unfolded){.segment = claim->segment,
                                      .offset = (uint64_t)(claim->data - claim->segment->data),
                                      .bytes = claim->bytes};
            cr_list_append(&job->unfolded, &unfolded->link);
            job->claimable += claim->bytes;
            job->claimed_bytes -= claim->bytes;
            continue;
        }
        claim->segment->claims--;
        if (job->state == CR_JOB_OPEN) {
            cr_error error;
            cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory to fold again what a GPU could not");
            cr_queue_stop_locked(queue, job, &error, &let_go);
        }
        if (cr_queue_finished_with(claim->segment)) cr_list_append(&let_go, &claim->segment->link);
    }
    cr_queue_leave(queue, job); /* kinds may be others now */
    cr_queue_settle(queue, job);
    cr_queue_offer(queue, job);
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&let_go);
}

void cr_queue_gpu_comes(cr_queue *queue, uint32_t ordinal) {
    pthread_mutex_lock(&queue->mutex);
    queue->gpus |= 1u << ordinal;
    pthread_mutex_unlock(&queue->mutex);
}

/* A GPU that goes. */
typedef struct going {
    cr_queue *queue;
    cr_list let_go;
} going;

/* Q. What only that GPU could do is stopped; without any GPU the rest is the CPU's. */
static bool leave_gpu(void *argument, cr_waiting *waiting) {
    going *g = argument;
    cr_job *job = cr_container(waiting, cr_job, ready[CR_KIND_GPU]);
    if (cr_queue_stop_orphan(g->queue, job, &g->let_go) || g->queue->gpus) return true;
    cr_queue_leave_line(g->queue, job, CR_KIND_GPU);
    cr_queue_count(job, true);
    cr_queue_offer(g->queue, job);
    return true;
}

void cr_queue_gpu_goes(cr_queue *queue, uint32_t ordinal) {
    going g = {.queue = queue};
    cr_list_init(&g.let_go);
    pthread_mutex_lock(&queue->mutex);
    queue->gpus &= ~(1u << ordinal);
    cr_turns_follow(queue->line[CR_KIND_GPU], leave_gpu, &g);
    pthread_mutex_unlock(&queue->mutex);
    cr_queue_release_all(&g.let_go);
}

bool cr_queue_all_taken(cr_queue *queue, cr_job *job) {
    pthread_mutex_lock(&queue->mutex);
    bool all = job->state == CR_JOB_OPEN && job->holds == 1 && !job->claims && !job->claimable;
    pthread_mutex_unlock(&queue->mutex);
    return all;
}

void cr_queue_named_ran(cr_queue *queue, cr_job *job, uint64_t n) {
    pthread_mutex_lock(&queue->mutex);
    job->partial.n = n;
    pthread_mutex_unlock(&queue->mutex);
}

uint32_t cr_queue_offers(cr_queue *queue) {
    return atomic_load_explicit(&queue->offers[CR_KIND_GPU], memory_order_acquire);
}

bool cr_queue_sleep(cr_queue *queue, uint32_t seen) {
    pthread_mutex_lock(&queue->mutex);
    queue->sleeping++;
    while (!queue->closed && atomic_load_explicit(&queue->offers[CR_KIND_GPU], memory_order_relaxed) == seen)
        pthread_cond_wait(&queue->more, &queue->mutex);
    queue->sleeping--;
    bool open = !queue->closed;
    pthread_mutex_unlock(&queue->mutex);
    return open;
}

bool cr_queue_doze(cr_queue *queue, uint32_t seen, uint64_t most_ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)most_ns;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    int late = 0;
    pthread_mutex_lock(&queue->mutex);
    queue->sleeping++;
    while (!late && !queue->closed && atomic_load_explicit(&queue->offers[CR_KIND_GPU], memory_order_relaxed) == seen)
        late = pthread_cond_timedwait(&queue->more, &queue->mutex, &until);
    queue->sleeping--;
    bool open = !queue->closed;
    pthread_mutex_unlock(&queue->mutex);
    return open;
}

void cr_queue_poke(cr_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    cr_queue_poke_locked(queue);
    pthread_mutex_unlock(&queue->mutex);
}
