/* queue: the run queue. Producers offer input, lanes claim ranges of it, the loop collects what is done; all under one
 * mutex that is held for a few hundred nanoseconds at a time.
 *
 * Jobs with something to claim stand in line, one line for each kind of lane. Their clients take turns (base/turns.h),
 * and a claim sends its job behind the others of its client. Completions are a list drained at one wake: the wake is sent
 * under the lock and only when the list was empty, so nothing is lost and nothing is sent twice.
 *
 * Thread: any, except where said. Owner: the daemon. */
#ifndef CURED_ENGINE_QUEUE_H
#define CURED_ENGINE_QUEUE_H

#include "base/lookout.h"
#include "engine/job.h"

typedef struct cr_queue cr_queue;

/* The most bytes of a claim, unless its job names another limit, and the least that are worth one. */
enum { CR_CLAIM_MOST_BYTES = 4 * 1024 * 1024, CR_CLAIM_LEAST_BYTES = 256 * 1024 };
/* What a GPU takes at once of a client's host memory, or of its own memory, while other clients are there: the bus and
 * the GPU are busy with either for about a tenth of a millisecond. */
enum { CR_SHARED_HOST_BYTES = 4 * 1024 * 1024, CR_SHARED_DEVICE_BYTES = 256 * 1024 * 1024 };

/* wake(argument) is called, under the queue's lock, when the completion list becomes non-empty: it must only post. */
cr_status cr_queue_new(void (*wake)(void *argument), void *argument, cr_queue **queue, cr_error *error);
void cr_queue_free(cr_queue *queue);
/* Before there are workers: one of them may look for offers before it sleeps. Without, none does. */
void cr_queue_look_out(cr_queue *queue, cr_seats *seats, uint64_t most_ns);
/* Lanes see no more claims and return from cr_queue_turn; for the daemon's end. */
void cr_queue_close(cr_queue *queue);

/* For producers; each needs a hold on the job. */
void cr_queue_add(cr_queue *queue, cr_segment *segment);
/* Moves the segment's ready mark to ready bytes; with seal it moves for the last time. */
void cr_queue_ready(cr_queue *queue, cr_segment *segment, uint64_t ready, bool seal);
/* Whether every worker of the CPU has something to do: what is offered now waits for one. */
bool cr_queue_busy(cr_queue *queue);
/* Whether all workers are idle, no job is in line for them, and none but them may fold this one. */
bool cr_queue_idle(cr_queue *queue, const cr_job *job);
/* The job is divisible, and its producer has folded bytes of its input into partial, from began_ns on, and never offered them. */
void cr_queue_fed(cr_queue *queue, cr_job *job, const cr_partial *partial, uint64_t bytes, uint64_t began_ns);
/* One hold more; false when the job has stopped (then the caller holds nothing). */
bool cr_queue_hold(cr_queue *queue, cr_job *job);
/* One hold less. The job may be gone when this returns. */
void cr_queue_unhold(cr_queue *queue, cr_job *job);
bool cr_queue_stopped(cr_queue *queue, cr_job *job);
void cr_queue_set_total(cr_queue *queue, cr_job *job, uint64_t bytes);
/* The same, where the loop does not know it yet: it is told. */
void cr_queue_measured(cr_queue *queue, cr_job *job, uint64_t bytes);
/* Before its first segment: all of the job's input will lie in memory in pieces that begin and end with whole blocks of an axis. */
void cr_queue_whole(cr_queue *queue, cr_job *job);
/* Before its first segment, of a job whose input is so many bytes of shared memory: whether workers read it as they fold it. Then
 * the job is theirs alone. */
bool cr_queue_reads(cr_queue *queue, cr_job *job, uint64_t bytes);
/* The job offers nothing more. error: why, NULL for a cancellation from outside; the first reason stands. Sealed segments
 * nobody folds are released at once, unsealed ones when their producer seals them. */
void cr_queue_stop(cr_queue *queue, cr_job *job, const cr_error *error);

/* For lanes on an axis job: one output for the loop to send. Takes it over (and frees it when the job has stopped). */
struct cr_output;
void cr_queue_emit(cr_queue *queue, cr_job *job, struct cr_output *output);
/* For the loop: a job that has new outputs or was measured, NULL when there is none left; it stays the loop's until the loop frees it. */
cr_job *cr_queue_news(cr_queue *queue);
/* For the loop: the job's next output, NULL when there is none now; the caller frees it and then says it was sent. */
struct cr_output *cr_queue_output(cr_queue *queue, cr_job *job);
void cr_queue_sent(cr_queue *queue, cr_job *job, uint64_t bytes);

/* For lanes: a job will be done in some ten microseconds. The loop is woken now, because a thread that slept long wakes slowly. */
void cr_queue_announce(cr_queue *queue);
/* For the loop: whether it was woken for that; true once. */
bool cr_queue_take_announced(cr_queue *queue);
/* For the loop: takes the completed jobs, all in state DONE, into list (linked by their done node). */
void cr_queue_completed(cr_queue *queue, cr_list *list);
typedef struct cr_progress {
    uint64_t folded_bytes, total_bytes;
} cr_progress;
cr_progress cr_queue_progress(cr_queue *queue, cr_job *job);

/* A range of one job's input, in the hands of one lane thread. */
typedef struct cr_claim {
    cr_job *job; /* NULL: nothing */
    cr_segment *segment;
    const uint8_t *data;
    uint64_t bytes, index;
    uint64_t weight; /* of a worker's claim: the queue's own count; 0: a lane's, that is none */
} cr_claim;

/* Bytes from the claim's data on that its fold may read. Its segment is sealed, where they are more than the claim's. */
static inline uint64_t cr_claim_reach(const cr_claim *claim) {
    const cr_segment *segment = claim->segment;
    return claim->job->as_one ? segment->ready - (uint64_t)(claim->data - segment->data) : claim->bytes;
}

/* What folds see of the claim's elements at data. Mask and second array begin `behind` elements before those, with element `beside` of
 * all. A second array that comes with the first lies as that does, and its elements before the segment are nobody's to read. */
static inline cr_view cr_claim_view(const cr_claim *claim, const uint8_t *data, uint64_t beside, uint64_t behind) {
    const cr_job *job = claim->job;
    const cr_segment *segment = claim->segment;
    const cr_mask mask = cr_mask_from(job->mask, beside);
    if (!segment->second) return (cr_view){data, mask, cr_second_from(job->beside, beside * job->element)};
    const uintptr_t second = (uintptr_t)segment->second + (uintptr_t)(data - segment->data) - behind * job->element;
    return (cr_view){data, mask, (const uint8_t *)second}; /* NOLINT */
}

/* What a lane has done, by all its threads. */
typedef struct cr_lane_meter {
    _Atomic uint64_t bytes, launches, busy_ns;
} cr_lane_meter;

static inline void cr_meter_add(_Atomic uint64_t *counter, uint64_t amount) {
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static inline uint64_t cr_meter_get(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* A lane thread's turn: the claim in hand, how it went, and the partial it grows, which stays with the thread while the
 * next claim is of the same job. Zero-initialise it once. */
typedef struct cr_turn {
    cr_claim claim;
    cr_error error;       /* set by the lane when the claim's bytes could not be read: the job then fails with it */
    cr_partial partial;   /* of claim.job; the lane folds the claim into it */
    cr_lane_meter *meter; /* of its lane; NULL: nobody asks */
    uint64_t claimed_ns;  /* with meter: when the claim was taken */
} cr_turn;

/* Returns the claim in hand, if any, and takes the next: of workers lane threads, this one gets a fair share. With wait it
 * looks and then sleeps while there is nothing. False: nothing, or the queue closed. */
bool cr_queue_turn(cr_queue *queue, cr_turn *turn, uint32_t workers, bool wait);

/* For profilers. `begin` is called once for each job, at the first claim that a GPU takes of it. `end` is called once when that job is
 * done, with the id that `begin` returned, unless the id is 0. Both run on any thread, under the queue's lock. Without `begin`
 * a claim costs nothing more. */
typedef struct cr_trace {
    uint64_t (*begin)(void *argument, const cr_job *job);
    void (*end)(void *argument, uint64_t trace_id);
    void *argument;
} cr_trace;
void cr_queue_trace(cr_queue *queue, const cr_trace *trace);

/* For lanes with many claims in flight (a GPU): they take several at once, and give each back when it is folded, or
 * unfolded when it could not be. They claim from jobs whose kinds have CR_BY_GPU. */

/* How many bytes to take of job now; segment is where the next would come from. 0: none, another job is asked for. Called under
 * the queue's lock. */
typedef uint64_t (*cr_want)(void *argument, const cr_job *job, const cr_segment *segment);
/* Takes at most `most` claims of one job: the first in turn of which `want` wants bytes. 0: no job is wanted. While other
 * clients are in line, or were lately, a claim has at most CR_SHARED_HOST_BYTES or CR_SHARED_DEVICE_BYTES. */
uint32_t cr_queue_take(cr_queue *queue, cr_want want, void *argument, cr_claim *claims, uint32_t most);
/* Likewise, and then takes claims of other jobs in line of which `more` wants bytes. The claims of one job stand together. `claims`
 * has room for `room`. After 256 unwanted jobs in a row it ends, because the queue is locked all that time. */
uint32_t cr_queue_gather(cr_queue *queue, cr_want want, cr_want more, void *argument, cr_claim *claims, uint32_t most,
                         uint32_t room);
/* Claims of one job are folded; what they gave is in partials. error: they could not be read, and the job fails with it. */
void cr_queue_folded(cr_queue *queue, const cr_claim *claims, uint32_t count, const cr_partial *const *partials,
                     uint32_t partial_count, const cr_error *error);
/* Claims of one job that were not folded. kinds: who claims them, and the rest of the job, from now on; 0: as before. */
void cr_queue_unfolded(cr_queue *queue, const cr_claim *claims, uint32_t count, uint32_t kinds);
/* For a job that names a kernel, held by its lane: whether all of its input has come and been copied. */
bool cr_queue_all_taken(cr_queue *queue, cr_job *job);
/* The kernel has answered, of n elements. */
void cr_queue_named_ran(cr_queue *queue, cr_job *job, uint64_t n);
/* The lane of a GPU begins, and ends, to claim. When the last is gone its jobs are the CPU's; those whose input is in a GPU's
 * memory, or that name a kernel, end UNAVAILABLE. */
void cr_queue_gpu_comes(cr_queue *queue, uint32_t ordinal);
void cr_queue_gpu_goes(cr_queue *queue, uint32_t ordinal);
/* Rises with every offer to a GPU and every poke. */
uint32_t cr_queue_offers(cr_queue *queue);
/* Sleeps until it is no longer seen; false when the queue is closed. */
bool cr_queue_sleep(cr_queue *queue, uint32_t seen);
/* The same, for at most most_ns, under a second. */
bool cr_queue_doze(cr_queue *queue, uint32_t seen, uint64_t most_ns);
void cr_queue_poke(cr_queue *queue);

#endif
