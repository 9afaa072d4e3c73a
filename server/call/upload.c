/* upload: see upload.h. Thread: the loop's (release, on_granted: any). Owner: the call. */
#include "server/call/upload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/job_axis.h"
#include "engine/worker.h"

enum {
    OFFER_BYTES = 128 * 1024, /* at least, of an offer before the slab is full */
    OFFER_PART = 8,           /* and this part of what came so far */
    IDLE_MS = 10,             /* an upload that brings nothing for so long hands over its slab */
    HALF_BYTES = CR_SLAB_BYTES / 2,
    HERE_BYTES = 256 * 1024, /* the most that the loop folds at once: 10 to 150 us; its second cache keeps as much */
    HERE_FIRST = 128 * 1024,
    HERE_LEAST = 64 * 1024, /* more than that: so little may be all, and then needs no job */
    HERE_NS = 250000,       /* half a turn: who takes longer is heavy, however slowly its bytes come */
};
_Static_assert(HALF_BYTES >= CR_PAIR_BLOCK_BYTES + CR_JOB_AXIS_GRAIN_BYTES, "a block fits behind a tail");

typedef struct cr_slab_segment {
    cr_segment segment;
    cr_slabs *slabs;
    uint8_t *slab;   /* NULL: own instead */
    uint8_t *own;    /* memory of its own, freed with it */
    uint8_t *second; /* likewise, of a second array that is kept */
    bool added;      /* the queue knows it */
} cr_slab_segment;

typedef struct cr_slab_wait {
    cr_slab_waiter waiter;
    cr_list link; /* in calls->granted; guarded by calls->mutex, as slab is */
    cr_calls *calls;
    cr_upload *upload; /* NULL: it went away while the slab was on its way. The loop's */
    void *slab;
} cr_slab_wait;

void cr_upload_init(cr_upload *up, cr_calls *calls) {
    up->calls = calls;
    cr_list_init(&up->filling);
}

static void release(cr_segment *segment) {
    cr_slab_segment *s = cr_container(segment, cr_slab_segment, segment);
    if (s->slab) cr_slab_give(s->slabs, s->slab);
    free(s->own);
    free(s->second);
    free(s);
}

/* A segment at the upload's place, over a slab or over memory of its own. */
static cr_slab_segment *new_segment(const cr_upload *up, uint8_t *slab, uint8_t *own) {
    cr_slab_segment *s = malloc(sizeof *s);
    if (!s) return NULL;
    cr_segment_init(&s->segment, up->job, slab ? slab : own, up->handed);
    s->segment.release = release;
    s->segment.second = up->pairs ? s->segment.data + HALF_BYTES : NULL;
    s->slabs = up->calls->slabs;
    s->segment.pinned = slab && cr_slabs_pinned(s->slabs);
    s->slab = slab;
    s->own = own;
    s->second = NULL;
    s->added = false;
    return s;
}

static void touch(cr_upload *up) {
    cr_calls *calls = up->calls;
    up->touched_ms = calls->read_ns / 1000000;
    cr_list_remove(&up->filling);
    cr_list_append(&calls->filling, &up->filling);
    if (!calls->sealing.slot) cr_timer_set(&calls->timers, &calls->sealing, cr_now_ms() + IDLE_MS);
}

/* Moves the ready mark to bytes; seal: for the last time, after which the slab is the lanes'. */
static void offer(cr_upload *up, uint32_t bytes, bool seal) {
    cr_slab_segment *s = up->slab;
    cr_queue *queue = up->calls->queue;
    if (seal) {
        up->slab = NULL;
        up->handed += bytes / up->job->element;
        cr_list_remove(&up->filling);
        if (!bytes && !s->added) {
            release(&s->segment);
            return;
        }
    }
    if (!s->added) cr_queue_add(queue, &s->segment);
    s->added = true;
    up->offered = bytes;
    cr_queue_ready(queue, &s->segment, bytes, seal);
}

/* How much more must come before a worker is woken for it. Waking one costs what folding as much does, and at the input's end it
 * has no more than this to fold. */
static uint64_t offer_step(const cr_upload *up) {
    const uint64_t part = up->handed * up->job->element / OFFER_PART;
    return part > OFFER_BYTES ? part : OFFER_BYTES;
}

/* What came of all arrays. */
static uint32_t ready_bytes(const cr_upload *up) { return up->pairs ? up->second : up->filled; }

static uint32_t whole_bytes(const cr_upload *up) {
    const uint32_t ready = ready_bytes(up);
    return ready - (uint32_t)(ready % cr_job_unit(up->job));
}

/* Of pairs, too, whose next block goes to the next slab, if it might not fit. */
static bool is_full(const cr_upload *up) {
    if (!up->pairs) return up->filled == CR_SLAB_BYTES;
    return up->first_left == up->second_left && up->first_left > HALF_BYTES - up->filled;
}

/* The most that a tail has of one array. */
static uint64_t tail_room(const cr_upload *up) { return cr_job_unit(up->job) + (up->pairs ? CR_PAIR_BLOCK_BYTES : 0); }

/* Hands over what can be handed over, and lets the slab go. */
static void seal(cr_upload *up) {
    uint32_t whole = whole_bytes(up), tail = up->filled - whole;
    if (tail) {
        if (!up->tail) up->tail = malloc(tail_room(up) * (up->pairs ? 2 : 1));
        if (!up->tail) return; /* the slab stays until there is memory */
        memcpy(up->tail, up->slab->segment.data + whole, tail);
        up->second_tail = up->pairs ? up->second - whole : 0;
        if (up->second_tail) memcpy(up->tail + tail_room(up), up->slab->segment.second + whole, up->second_tail);
    }
    up->tail_len = tail;
    offer(up, whole, true);
}

/* Whether the loop may fold what comes, if it has nothing else to do. Products of integers take ten times as long as other folds. */
static bool may_fold_here(const cr_upload *up) {
    const cr_job *job = up->job;
    return up->heavy < CR_UPLOAD_HEAVY && cr_job_is_divisible(job) && !up->pairs && !job->layout &&
           job->mask.kind == CR_MASK_NONE && !(job->families & CR_FAM_PROD) && up->slab->slab && !up->slab->added;
}

/* The most that the loop folds at once. Little at first, because nothing is known of the time that it takes. */
static uint32_t most_here(const cr_upload *up) { return up->fed ? HERE_BYTES : HERE_FIRST; }

/* Whether nobody waits for the loop, a worker or a slab, and no GPU would fold it. */
static bool has_all(const cr_upload *up) {
    const cr_calls *calls = up->calls;
    return !calls->pressed && calls->filling.next == calls->filling.prev && cr_queue_idle(calls->queue, up->job);
}

/* Folds the whole elements in the slab. The rest moves to its begin. */
static void fold_here(cr_upload *up) {
    cr_calls *calls = up->calls;
    cr_job *job = up->job;
    cr_segment *segment = &up->slab->segment;
    const uint32_t whole = whole_bytes(up);
    const cr_claim claim = {.job = job, .segment = segment};
    const uint64_t began = cr_now_ns(), came = began - calls->fed_ns;
    cr_partial partial;
    cr_partial_init(&partial, job->dtype, job->families);
    cr_partial_want(&partial, job->wants);
    cr_claim_fold(&claim, &partial, segment->data, whole / job->element, segment->index);
    cr_queue_fed(calls->queue, job, &partial, whole, began);
    calls->fed_ns = calls->last_ns = cr_now_ns();
    const uint64_t took = calls->fed_ns - began;
    up->heavy = up->fed && (took > came || took > HERE_NS) ? up->heavy + 1 : 0;
    up->fed = true;
    up->filled -= whole;
    up->handed += whole / job->element;
    segment->index = up->handed;
    memmove(up->slab->slab, up->slab->slab + whole, up->filled);
}

/* The upload that is idle longest gives its slab back. */
static void seal_one(cr_calls *calls) {
    for (cr_list *node = calls->filling.next; node != &calls->filling; node = node->next) {
        cr_upload *up = cr_container(node, cr_upload, filling);
        if (!up->slab->slab) continue;
        seal(up);
        return;
    }
}

/* Begins the next segment, with what the last could not hand over. It takes over slab, or own. */
static bool open_segment(cr_upload *up, uint8_t *slab, uint8_t *own) {
    up->slab = slab || own ? new_segment(up, slab, own) : NULL;
    if (!up->slab) {
        if (slab) cr_slab_give(up->calls->slabs, slab);
        free(own);
        return false;
    }
    if (up->tail_len) memcpy(slab ? slab : own, up->tail, up->tail_len);
    if (up->second_tail) memcpy((slab ? slab : own) + HALF_BYTES, up->tail + tail_room(up), up->second_tail);
    up->filled = up->tail_len;
    up->second = up->second_tail;
    up->offered = up->tail_len = up->second_tail = 0;
    touch(up);
    return true;
}

/* Runs on whichever thread gave a slab back. */
static void on_granted(cr_slab_waiter *waiter, void *slab) {
    cr_slab_wait *wait = cr_container(waiter, cr_slab_wait, waiter);
    cr_calls *calls = wait->calls;
    pthread_mutex_lock(&calls->mutex);
    wait->slab = slab;
    cr_list_append(&calls->granted, &wait->link);
    calls->wake(calls->wake_argument);
    pthread_mutex_unlock(&calls->mutex);
}

/* A slab, or a place in line. */
static cr_status take_or_wait(cr_upload *up, uint8_t **slab, cr_error *error) {
    cr_slabs *slabs = up->calls->slabs;
    *slab = up->spare ? up->spare : cr_slab_take(slabs, &up->asker);
    up->spare = NULL;
    if (*slab) return CR_OK;
    cr_slab_wait *wait = calloc(1, sizeof *wait);
    if (!wait) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the upload");
    cr_list_init(&wait->link);
    cr_waiting_init(&wait->waiter.waiting);
    wait->waiter.asker = up->asker;
    wait->waiter.granted = on_granted;
    wait->calls = up->calls;
    wait->upload = up;
    *slab = cr_slab_take_or_wait(slabs, &wait->waiter);
    if (*slab)
        free(wait);
    else
        up->wait = wait;
    return CR_OK;
}

/* The upload no longer needs the slab that it waits for, or that has come. */
static void forget(cr_upload *up) {
    cr_slab_wait *wait = up->wait;
    if (up->spare) cr_slab_give(up->calls->slabs, up->spare);
    up->spare = NULL;
    if (!wait) return;
    up->wait = NULL;
    wait->upload = NULL;
    if (cr_slab_forget(up->calls->slabs, &wait->waiter)) free(wait); /* or it is on its way, and the loop frees it */
}

cr_upload *cr_upload_granted(cr_calls *calls) {
    for (;;) {
        pthread_mutex_lock(&calls->mutex);
        cr_list *node = cr_list_pop(&calls->granted);
        pthread_mutex_unlock(&calls->mutex);
        if (!node) return NULL;
        cr_slab_wait *wait = cr_container(node, cr_slab_wait, link);
        cr_upload *up = wait->upload;
        void *slab = wait->slab;
        free(wait);
        if (!up) {
            cr_slab_give(calls->slabs, slab);
            continue;
        }
        up->wait = NULL;
        up->spare = slab; /* not open yet: it may not be sealed as idle before the bytes that wait are in it */
        return up;
    }
}

static uint64_t array_bytes(const cr_job *job) { return job->axis->block * job->axis->spec.shape.outer * job->element; }

/* The place of the next bytes of an array that is kept. */
static bool kept_room(cr_upload *up, uint8_t **at, size_t *room, cr_error *error) {
    const bool second = up->pairs && !up->first_left;
    uint8_t **const kept = second ? &up->kept_second : &up->kept;
    uint64_t to = up->kept_second_bytes, run = up->second_left, bytes = array_bytes(up->job);
    if (!second) run = cr_job_axis_turned(up->job, up->kept_bytes, &to);
    if (!*kept) *kept = malloc(bytes);
    if (!*kept)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to keep %llu bytes of the upload",
                       (unsigned long long)bytes) == CR_OK;
    *at = *kept + to;
    *room = up->pairs && !second && up->first_left < run ? up->first_left : run;
    return true;
}

/* All of it is there: it goes to the lanes. */
static bool kept_finish(cr_upload *up) {
    up->slab = new_segment(up, NULL, up->kept);
    if (!up->slab) return false;
    up->slab->segment.aligned = true;
    up->slab->segment.second = NULL;
    up->slab->second = up->kept_second;
    up->job->beside = up->kept_second; /* as long as the segment is there */
    up->kept = up->kept_second = NULL;
    cr_queue_add(up->calls->queue, &up->slab->segment);
    cr_queue_ready(up->calls->queue, &up->slab->segment, array_bytes(up->job), true);
    up->slab = NULL;
    return true;
}

bool cr_upload_room(cr_upload *up, bool own, uint8_t **at, size_t *room, cr_error *error) {
    error->code = CR_OK;
    if (cr_job_axis_in_strips(up->job)) return kept_room(up, at, room, error);
    if (up->slab && is_full(up)) { /* no memory for its tail, when it became full */
        seal(up);
        if (up->slab) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the upload") == CR_OK;
    }
    if (own && up->slab && up->slab->slab) seal(up);
    if (own) forget(up);
    if (!up->slab && up->wait) return false;
    if (!up->slab) {
        uint8_t *slab = NULL;
        if (!own && take_or_wait(up, &slab, error) != CR_OK) return false;
        if (!own && !slab) {
            seal_one(up->calls);
            return false;
        }
        if (!open_segment(up, slab, own ? malloc(CR_SLAB_BYTES) : NULL))
            return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the upload") == CR_OK;
    }
    uint8_t *const base = up->slab->slab ? up->slab->slab : up->slab->own;
    const bool second = up->pairs && !up->first_left;
    *at = base + (second ? HALF_BYTES + up->second : up->filled);
    *room = second ? up->second_left : up->pairs ? up->first_left : CR_SLAB_BYTES - up->filled;
    if (up->filled < most_here(up) && *room > most_here(up) - up->filled && may_fold_here(up))
        *room = most_here(up) - up->filled;
    return true;
}

static void next_block(cr_upload *up) {
    up->first_left = up->second_left =
        up->pair_left < CR_PAIR_BLOCK_BYTES ? (uint32_t)up->pair_left : CR_PAIR_BLOCK_BYTES;
    up->pair_left -= up->first_left;
}

void cr_upload_pair(cr_upload *up, uint64_t bytes) {
    up->pairs = true;
    up->pair_left = bytes;
    next_block(up);
}

/* Bytes of the array that is in turn came. Whether that is the second. */
static bool take_turn(cr_upload *up, uint32_t bytes) {
    if (!up->pairs) return false;
    if (up->first_left) {
        up->first_left -= bytes;
        return false;
    }
    up->second_left -= bytes;
    if (!up->second_left) next_block(up);
    return true;
}

void cr_upload_filled(cr_upload *up, size_t bytes) {
    const bool second = take_turn(up, (uint32_t)bytes);
    if (up->kept) {
        *(second ? &up->kept_second_bytes : &up->kept_bytes) += bytes;
        return;
    }
    *(second ? &up->second : &up->filled) += (uint32_t)bytes;
    assert(up->filled <= (up->pairs ? HALF_BYTES : CR_SLAB_BYTES) && (!up->pairs || up->second <= up->filled));
    touch(up);
    if (up->filled > HERE_LEAST && up->filled <= HERE_BYTES && may_fold_here(up) && has_all(up))
        fold_here(up);
    else if (is_full(up))
        seal(up);
    else if (ready_bytes(up) - up->offered >= offer_step(up))
        offer(up, whole_bytes(up), false);
}

const uint8_t *cr_upload_whole(const cr_upload *up, uint32_t *bytes, const uint8_t **second) {
    if (!up->slab || up->slab->added || up->handed) return NULL;
    *bytes = up->filled;
    *second = up->slab->segment.second;
    return up->slab->segment.data;
}

bool cr_upload_finish(cr_upload *up) {
    forget(up);
    if (up->kept) return kept_finish(up);
    if (!up->slab && up->tail_len) {
        /* An incomplete block of prod, left by an earlier seal: its buffer goes to the lanes as it is. */
        up->slab = new_segment(up, NULL, up->tail);
        if (!up->slab) return false;
        if (up->pairs) up->slab->segment.second = up->tail + tail_room(up);
        up->filled = up->tail_len;
        up->tail = NULL;
        up->tail_len = 0;
    }
    if (up->slab && up->filled <= HERE_BYTES && may_fold_here(up) && has_all(up)) fold_here(up);
    if (up->slab) offer(up, up->filled, true);
    return true;
}

void cr_upload_drop(cr_upload *up) {
    forget(up);
    if (up->slab) offer(up, up->offered, true);
    free(up->tail);
    free(up->kept);
    free(up->kept_second);
    up->tail = up->kept = up->kept_second = NULL;
    up->tail_len = 0;
}

void cr_upload_seal_idle(cr_timer *sealing) {
    cr_calls *calls = cr_container(sealing, cr_calls, sealing);
    uint64_t now = cr_now_ms();
    for (cr_list *node = calls->filling.next, *next; node != &calls->filling; node = next) {
        next = node->next;
        cr_upload *up = cr_container(node, cr_upload, filling);
        if (now - up->touched_ms < IDLE_MS) break;
        if (up->slab->slab) {
            seal(up);
        } else { /* no slab: it may wait for more, but what is whole may be folded */
            offer(up, whole_bytes(up), false);
            cr_list_remove(node);
        }
    }
    if (!cr_list_empty(&calls->filling)) cr_timer_set(&calls->timers, sealing, now + IDLE_MS);
}
