/* queue_internal: the run queue's members and what its two halves (queue.c: producers and the loop, queue_claims.c: lanes)
 * need of each other. Every function here wants the mutex held, but for cr_queue_release_all.
 *
 * Thread: any. Owner: the queue. */
#ifndef CURED_ENGINE_QUEUE_INTERNAL_H
#define CURED_ENGINE_QUEUE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lookout.h"
#include "engine/queue.h"

/* A worker that sleeps, on its stack. The thread that wakes the worker takes it out of the list. */
typedef struct cr_sleeper {
    struct cr_sleeper *next;
    pthread_cond_t woken;
    bool sleeps;
} cr_sleeper;

struct cr_queue {
    pthread_mutex_t mutex;
    pthread_cond_t more;              /* for lanes of GPUs */
    uint32_t sleeping;                /* of those */
    cr_turns *line[CR_LANE_KINDS];    /* of jobs that a lane of the kind may claim from */
    uint32_t standing[CR_LANE_KINDS]; /* jobs in the line */
    cr_list completed, news;
    cr_sleeper *lately; /* workers that sleep, the last to begin first: it is woken first, for its caches are warm */
    uint32_t waking;    /* workers that were woken, and do not run yet */
    uint64_t in_hand;   /* of all that workers have claimed, the weight: cr_queue_weight */
    uint32_t gpus;      /* whose lanes claim by cr_queue_take: a bit each, by ordinal */
    bool closed;
    _Atomic uint32_t offers[CR_LANE_KINDS]; /* rises with every offer: what a thread that looks watches */
    cr_lookout lookout;                     /* the workers' */
    const cr_look *looker;                  /* the worker that looks, and has not been given something; NULL: none */
    bool soon;                              /* a job is nearly done, and the loop was woken for it */
    uint64_t dry_ns;                        /* when a worker last found nothing; 0: something was offered since */
    void (*wake)(void *argument);
    void *wake_argument;
    cr_trace trace; /* begin NULL: none */
};

/* Completes the job when nothing is out and nothing is left. */
void cr_queue_settle(cr_queue *queue, cr_job *job);
/* A worker's time for so many bytes of the job, as bytes that a plain fold takes from a cache in that time. Bytes that may have
 * to be read from a file count as too many, because their time is not known. */
uint64_t cr_queue_weight(const cr_job *job, uint64_t bytes);
/* The first segment of job with bytes to claim (the next in the array, for a job in order); NULL: none may be taken. */
cr_segment *cr_queue_first(const cr_job *job);
/* Whether a lane may take something of it: answers that nobody reads stop their job. */
bool cr_queue_claimable(const cr_job *job);
/* Puts the job into the lines where it has something to claim and does not stand. */
void cr_queue_offer(cr_queue *queue, cr_job *job);
/* A lane of the kind taker has claimed bytes: the job's client is charged, and the job leaves the lines where it has
 * nothing left. */
void cr_queue_line_up(cr_queue *queue, cr_job *job, cr_lane_kind taker, uint64_t bytes);
/* The job stood in a line, or in none, before its lines changed: counts it among those that wait. */
void cr_queue_count(const cr_job *job, bool before);
/* Out of one line, if it stands there, and out of all. */
void cr_queue_leave_line(cr_queue *queue, cr_job *job, cr_lane_kind kind);
void cr_queue_leave(cr_queue *queue, cr_job *job);
/* True when the caller must call segment->release after unlocking. */
bool cr_queue_finished_with(cr_segment *segment);
/* Moves what can be released to let_go. Segments still claimed or unsealed are released by whoever holds them. */
void cr_queue_stop_locked(cr_queue *queue, cr_job *job, const cr_error *error, cr_list *let_go);
/* Stops a job that only a GPU can do which is not there (any more): true. */
bool cr_queue_stop_orphan(cr_queue *queue, cr_job *job, cr_list *let_go);
void cr_queue_wake_worker(cr_queue *queue);
void cr_queue_poke_locked(cr_queue *queue);
/* Outside the mutex. */
void cr_queue_release_all(cr_list *let_go);

#endif
