/* worker: what one thread that folds on the CPU carries from claim to claim, and its steps: take, fold.
 *
 * A worker never sleeps on the state of an axis that its job waits for. It knows no guard: who offers mappings of others'
 * files folds under one (lane_cpu.c).
 *
 * Thread: the one that uses it. Owner: that thread's, zero-initialised; cr_worker_end before it goes. */
#ifndef CURED_ENGINE_WORKER_H
#define CURED_ENGINE_WORKER_H

#include "engine/job_axis.h"

/* Of what a worker reads itself, at a time: the fold finds them in the second cache. */
enum {
    CR_WORKER_FETCH_BYTES = 256 * 1024,
    CR_WORKER_FETCH_ALIGNMENT = 4096, /* as a descriptor with O_DIRECT wants it */
};

typedef struct cr_worker {
    cr_turn turn;
    cr_job_axis_hand hand; /* of an axis job whose block goes on in the next claim */
    uint64_t *counts;      /* of a claim by rank */
    size_t counts_words;
    uint8_t *fetched; /* CR_WORKER_FETCH_BYTES; NULL: until there is something to fetch */
    /* What folds ranges of whole arrays that are no blocks; NULL: cr_cpu_fold_view. */
    void (*fold)(cr_partial *into, const cr_view *view, uint64_t elements, uint64_t index);
} cr_worker;

/* Gives back the claim in hand, if any, and takes the next, as one of `workers` threads. wait: sleeps until there is one, or
 * the queue is closed. False: there is none. */
bool cr_worker_next(cr_worker *worker, cr_queue *queue, uint32_t workers, bool wait);
/* Folds the claim in hand: what nobody has read yet (cr_segment.fetch) it reads. */
void cr_worker_fold(cr_worker *worker, cr_queue *queue);
/* Folds elements of the claim's job, a whole array, that lie at data, from its element `index` on. */
void cr_claim_fold(const cr_claim *claim, cr_partial *into, const uint8_t *data, uint64_t elements, uint64_t index);
/* Gives back the claim in hand and takes none. */
void cr_worker_rest(cr_worker *worker, cr_queue *queue);
/* Frees what is carried. No claim may be in hand. */
void cr_worker_end(cr_worker *worker, cr_queue *queue);

#endif
