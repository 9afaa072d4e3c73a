/* job: an input with a cursor, the partial of what was folded, and what is still out.
 *
 *   state        what it waits for                                       leaves by
 *   OPEN         more input, or lanes                                    the last hold, claim or byte → DONE; stop → STOPPING
 *   STOPPING     holds and claims still out; offers nothing              the last of them → DONE
 *   DONE         on the completion list, the loop's again                cr_job_free
 *
 * A hold is a producer that may still add input: the loop for a stream, a feed for a descriptor. A claim is a range that
 * a lane folds right now. So a job is done when nobody holds it, nothing is claimed and nothing is left to claim.
 *
 * Thread: members marked Q are guarded by the run queue's mutex; the others are set by the loop before the job is opened.
 * Owner: the loop makes and frees it; it is freed only in DONE. */
#ifndef CURED_ENGINE_JOB_H
#define CURED_ENGINE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/turns.h"
#include "engine/ticket.h"
#include "kernels/core/partial.h"
#include "kernels/core/view.h"

/* Who may claim: the lines of the run queue, and bits of cr_job.kinds. */
typedef enum cr_lane_kind { CR_KIND_CPU, CR_KIND_GPU, CR_LANE_KINDS } cr_lane_kind;
enum { CR_BY_CPU = 1 << CR_KIND_CPU, CR_BY_GPU = 1 << CR_KIND_GPU };

typedef enum cr_job_state { CR_JOB_OPEN, CR_JOB_STOPPING, CR_JOB_DONE, CR_JOB_STATES } cr_job_state;

/* What the folds of a job read beside its segments. */
typedef struct cr_held {
    struct cr_held *next;
    void (*release)(struct cr_held *held);
    /* Of a job that is DONE: gives back a step of its memory, whoever else has a use of it. True: there is more. */
    bool (*empty)(struct cr_held *held);
    uint64_t left; /* bytes of that memory */
} cr_held;

typedef struct cr_job {
    void *owner;           /* the call that waits for it; NULL once answered. The loop's */
    cr_ticket ticket;      /* of a call that was answered before the job was done. The loop's */
    uint64_t number;       /* of all jobs, from 1 on */
    uint64_t user, client; /* whose turns it takes; 0 unless the loop sets them */
    cr_ops ops;            /* what is asked for; only for whoever shows it */
    cr_dtype dtype;
    uint32_t families;
    uint32_t wants;   /* of the extrema: CR_WANTS_...; all of them unless the call sets it before the first claim */
    uint32_t element; /* bytes */
    cr_mask
        mask; /* of the whole input, and as long in memory as the job is open: the caller's. CR_MASK_NONE unless it is set */
    const uint8_t
        *beside;   /* the second array, likewise, where it is all in memory. NULL: there is none, or segments have it */
    cr_held *held; /* which is let go of when the job is freed. Set before the first claim */
    const struct cr_quantile
        *quantile; /* a read for ops by rank, into counts, which all workers add to: the caller's. NULL: none */
    uint64_t *counts;
    const struct cr_layout *layout; /* the input is a block of a larger array; it lives as long. NULL: it is none */
    uint64_t grain;                 /* elements; cuts between segments and claims fall on multiples of it */
    uint64_t claim_bytes;           /* lanes want as much at once, as far as there is; 0: whatever is ready */
    uint64_t claim_most;            /* axis: and no more than this; 0: no limit of its own */
    uint64_t claim_output;          /* axis: bytes of answers that a claim may bring, about */
    uint32_t most_claims;           /* axis: at a time; 0: any number */
    bool
        as_one; /* axis: a unit is all of its input, which lies in one segment, and folds of a claim read what is behind it, too */
    bool brought;   /* its input comes over a connection: when it is offered, it is in memory, and in a cache */
    bool may_pause; /* axis: its answers may wait for the client, and then its input does too */
    uint64_t base;  /* index of the input's first element, for the fold */
    bool in_order;  /* one claim at a time, by rising index: a product of floats keeps few nodes only when contiguous */

    bool
        by_host; /* not a GPU's to answer: of what is in its memory, its lane brings it to the host and folds it there */
    int32_t device;      /* ordinal of the GPU whose memory the input is; no other lane can read it. -1: host memory */
    uint64_t gpu_from;   /* while fewer bytes can be claimed, no GPU looks at it */
    uint64_t slabs_from; /* fewer bytes of shared memory are the CPU's, because no GPU gains what slabs cost */

    uint32_t kinds;                              /* Q: CR_BY_*: the lanes that may claim */
    cr_waiting ready[CR_LANE_KINDS];             /* Q: in the line of each kind while it can claim something */
    cr_list done;                                /* Q: in the completion list */
    cr_job_state state;                          /* Q */
    uint32_t holds, claims;                      /* Q */
    cr_list segments;                            /* Q: those with bytes to claim, now or later */
    cr_list unfolded;                            /* Q: claims that came back unfolded, to be claimed again */
    uint64_t claimable;                          /* Q: bytes ready and not claimed */
    uint64_t total_bytes;                        /* Q: of the whole input; 0 while unknown */
    uint64_t claimed_bytes;                      /* Q */
    uint64_t folded_bytes;                       /* Q */
    cr_error error;                              /* Q: why it stopped, when not cancelled from outside */
    cr_partial partial;                          /* Q until DONE, then the loop's */
    uint64_t opened_ns, first_claim_ns, done_ns; /* Q */
    _Atomic uint32_t lanes; /* that took part: a bit for the CPU, and one above it for each GPU, by ordinal */
    uint64_t trace_id;      /* Q: that a tool sees while a GPU has it (cr_queue_trace); 0: none */

    struct cr_named *named;   /* NULL: no kernel is asked for by name (engine/named.h) */
    struct cr_job_axis *axis; /* NULL: the whole array is one answer, in partial */
    struct cr_sink *sink;     /* where the answers along the axis go; NULL: into outputs. Set before the axis is */
    cr_list outputs;          /* Q: answers along the axis that the loop has not taken */
    cr_list news;             /* Q: in the queue's news while outputs came and the loop was not told */
    uint64_t output_bytes;    /* Q: made and not yet sent; at a limit the job offers nothing */
} cr_job;

/* A piece of input in memory. Made by a producer; offered to lanes; released when its last byte was folded (or its job
 * stopped) and it is sealed. ready and data move only as whole elements, in multiples of the job's grain until sealed. */
typedef struct cr_segment {
    cr_list link; /* Q: in job->segments */
    cr_job *job;
    const uint8_t *data;
    const uint8_t
        *second;    /* the second array's elements that belong to data's; NULL: there is none, or job->beside has it */
    uint64_t index; /* element index of data[0] */
    uint64_t ready, claimed; /* Q: bytes from data */
    bool sealed;             /* Q: ready moves no more */
    uint32_t claims;         /* Q */
    bool released;           /* Q */
    bool aligned;         /* cuts fall on multiples of 65,536 elements (addressable input); otherwise on any 64 KiB */
    bool pinned;          /* a GPU may copy it from where it is */
    bool mapped;          /* a client's mapping: read under the guard, and checked afterwards by still */
    struct cr_kept *kept; /* the registered region it lies in; NULL: none */
    /* NULL: data is memory. Otherwise it is none, and whoever folds gets bytes of the segment from offset on by this, on its thread. */
    cr_status (*fetch)(struct cr_segment *segment, uint64_t offset, void *into, size_t bytes, cr_error *error);
    /* For mapped: CR_OK while the bytes before offset end of data were really the file's. Runs on the lane. */
    cr_status (*still)(struct cr_segment *segment, uint64_t end, cr_error *error);
    /* Gives the memory back. Runs on whichever thread let go last, outside every lock; it must not block. The job may be DONE by
     * then, and freed: nothing of the job may be touched, and the segment may not be a part of what is freed with it. */
    void (*release)(struct cr_segment *segment);
} cr_segment;

/* A claim that came back unfolded. While it is there it counts among its segment's claims. */
typedef struct cr_unfolded {
    cr_list link; /* Q: in job->unfolded */
    cr_segment *segment;
    uint64_t offset, bytes; /* from segment->data */
} cr_unfolded;

/* A lane takes part: the CPU (lane 0), or a GPU (1 and its ordinal). */
static inline void cr_job_joins(cr_job *job, uint32_t lane) {
    const uint32_t bit = 1u << lane;
    if (!(atomic_load_explicit(&job->lanes, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(&job->lanes, bit, memory_order_relaxed);
}

/* Bytes between which input may be cut. */
static inline uint64_t cr_job_unit(const cr_job *job) { return job->grain * job->element; }

/* The same of claims. */
static inline uint64_t cr_job_claim_unit(const cr_job *job) { return job->as_one ? job->element : cr_job_unit(job); }

/* Whether any worker may fold any range of it. */
static inline bool cr_job_is_divisible(const cr_job *job) {
    return !job->axis && !job->named && !job->in_order && !job->may_pause && !job->quantile;
}

/* A job in state OPEN with one hold. NULL when there is no memory. */
cr_job *cr_job_new(cr_dtype dtype, uint32_t families);
/* Moves to next, which must be a legal step; asserted. Q. */
void cr_job_move(cr_job *job, cr_job_state next);
void cr_job_free(cr_job *job);
/* Of a job that is DONE: the memory that its folds read beside its segments. */
uint64_t cr_job_beside_bytes(const cr_job *job);
/* Gives back a step of that, on a thread that may wait. True: there is more. */
bool cr_job_empty_step(cr_job *job);
/* The same of a job whose answers nobody wants any more: of its partial by key, too. */
bool cr_job_over_step(cr_job *job);
/* Of a job that is DONE, and whose answers nobody wants any more: what else it holds, about. */
uint64_t cr_job_unwanted_bytes(const cr_job *job);

void cr_segment_init(cr_segment *segment, cr_job *job, const void *data, uint64_t index);

#endif
