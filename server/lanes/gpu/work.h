/* work: what one stream of a GPU does at a time. Every work is of one of five kinds. A kind is a table of functions.
 *
 *   chunks   claims of one job, copied one behind the other and folded                       chunks.c
 *   pack     small jobs that wait in line, folded by one launch                              pack.c
 *   axis     whole blocks of a job along an axis, answered by one launch                     axis.c
 *   fetched  what is in the GPU's memory and no kernel answers: fetched and folded here      fetched.c
 *   named    the input of a job that names a kernel: copied to memory of the job's own       named.c
 *
 * A work moves like this; cr_gpu_work_move checks each move against a table:
 *
 *             claims are listed: start              the last step is done: finish
 *      IDLE ──────────────────────────► RUNNING ─────────────────────────────────► IDLE
 *                                        │   ▲
 *   between two pieces of a column:      │   │ nobody waits for the device
 *   others wait for the device           ▼   │ any more
 *                                       PARKED
 *
 *      RUNNING or PARKED ── the device is lost: abandon ──► IDLE
 *
 * What holds for all kinds, and is asserted where the code does not show it:
 *
 *   1. The claims are listed and the work is RUNNING before the first call of the device, because the loop may take the
 *      lane from its thread in any call. Claims leave the list only between two calls.
 *   2. abandon calls no device and may run on any thread. It gives back each claim that is left, once.
 *   3. finish calls no device.
 *   4. The answers along an axis of host memory leave together, because after a loss others answer those claims anew.
 *   5. Only progress moves started_ns. A PARKED work has no deadline.
 *   6. While others wait for the device (lane->asking) no work starts. Every step is bounded.
 *   7. A work's bytes leave lane->queued_bytes in one place, the move to IDLE.
 *   8. Before each step of several the lane asks whether the job was stopped.
 *
 * A call of the device is one that watch.c watches; reading what the device has left in host memory is none.
 * Thread: the lane's, but for abandon. Owner: the lane. */
#ifndef CURED_SERVER_LANES_GPU_WORK_H
#define CURED_SERVER_LANES_GPU_WORK_H

#include "engine/queue.h"
#include "kernels/cuda/gpu.h"

enum {
    CR_CHUNK_CLAIMS = 64,               /* of one job */
    CR_PACK_CLAIMS = CR_GPU_PACK_FOLDS, /* of small jobs */
};

typedef struct cr_gpu_lane cr_gpu_lane;
typedef struct cr_gpu_work cr_gpu_work;
typedef struct cr_gpu_input cr_gpu_input; /* named.c */

typedef enum cr_gpu_work_state { CR_WORK_IDLE, CR_WORK_RUNNING, CR_WORK_PARKED, CR_WORK_STATES } cr_gpu_work_state;

/* What becomes of a work's claims. */
typedef enum cr_gpu_fate {
    CR_FATE_GOOD,
    CR_FATE_UNFIT,  /* this GPU cannot fold this job: the CPU does */
    CR_FATE_BROKEN, /* their bytes could not be read: the job fails */
} cr_gpu_fate;

typedef struct cr_gpu_kind {
    /* Whether a job's claims are of this kind; of several kinds that say so, the first of the list has it. Under the
     * queue's lock. */
    bool (*takes)(const cr_job *job);
    /* How many bytes to claim of such a job now. Under the queue's lock. */
    uint64_t (*want)(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment);
    /* Enqueues what the device is to do, and sets the fate where that fails. Claims may be given back; without one
     * left the work is over. */
    void (*start)(cr_gpu_lane *lane, cr_gpu_work *work);
    /* What was enqueued is done. True: there is more to do, or the work is parked. NULL: nothing is left but finish. */
    bool (*step)(cr_gpu_lane *lane, cr_gpu_work *work);
    /* Gives the claims back as the fate says. */
    void (*finish)(cr_gpu_lane *lane, cr_gpu_work *work);
    /* The device is lost: gives the claims back unfolded, or ends their jobs where no other lane can fold them. */
    void (*abandon)(cr_gpu_lane *lane, cr_gpu_work *work);
    bool trims; /* after finish, what the stream keeps for answers is cut to a bound */
} cr_gpu_kind;

extern const cr_gpu_kind cr_gpu_kind_chunks, cr_gpu_kind_pack, cr_gpu_kind_axis, cr_gpu_kind_fetched, cr_gpu_kind_named;

typedef enum cr_gpu_axis_phase {
    CR_AXIS_ANSWERS, /* the device makes them */
    CR_AXIS_EMIT,    /* they are copied to the job's outputs; not where the device has put them */
    CR_AXIS_COLUMN,  /* an integer does not fit: its column is fetched */
} cr_gpu_axis_phase;

typedef struct cr_gpu_axis_work {
    cr_gpu_axis asked;
    void *to[CR_GPU_AXIS_OPS]; /* asked.to, where the job's sink is in the device's memory */
    cr_gpu_axis_phase phase;
    const void *answers[CR_GPU_AXIS_OPS]; /* EMIT: what is still to be copied */
    uint64_t emitted;                     /* EMIT: answers of claim number emit_claim */
    uint32_t emit_claim;
    uint64_t failed;               /* COLUMN: the output whose integer does not fit */
    uint64_t fetched, fetch_count; /* COLUMN: elements that are folded; those that are under way */
    cr_partial column;             /* COLUMN: of the elements that are folded */
} cr_gpu_axis_work;

struct cr_gpu_work {
    cr_gpu_stream *stream;
    uint8_t *device, *staging; /* buffers of the stream's own; staging is pinned */

    cr_gpu_work_state state;
    const cr_gpu_kind *kind;
    cr_gpu_fate fate;
    cr_error error; /* unless GOOD */
    uint32_t claim_count, copy_count;
    uint64_t bytes, queued_bytes; /* of the claims; those that come over the bus */
    uint64_t claimed_ns, started_ns;
    bool announced; /* the loop was woken for its end */
    cr_claim claims[CR_PACK_CLAIMS];
    cr_gpu_copy copies[CR_GPU_COPIES]; /* to be enqueued together */
    union {
        struct {
            uint32_t fold_count;
            cr_gpu_fold folds[CR_CHUNK_CLAIMS]; /* of claims that follow each other: one */
        } chunks;
        struct {
            cr_gpu_fold folds[CR_PACK_CLAIMS]; /* of each claim: one */
        } pack;
        cr_gpu_axis_work axis;
        struct {
            bool folded;        /* answers are on their way to the device, or in partial */
            cr_partial partial; /* of an array */
        } fetched;
        struct {
            uint32_t ran; /* of the ops, on device memory */
        } named;
    } as;
};

/* ---- work.c ---- */

/* The stream and its buffers. cr_gpu_work_close gives back what there is, whatever open returned. */
cr_status cr_gpu_work_open(cr_gpu_lane *lane, cr_gpu_work *work, cr_error *error);
void cr_gpu_work_close(cr_gpu_lane *lane, cr_gpu_work *work);
/* Claims something and starts it; false when there is nothing that the device wants. */
bool cr_gpu_work_begin(cr_gpu_lane *lane, cr_gpu_work *work);
/* Looks whether the device is done, and takes the next step; true when it did. */
bool cr_gpu_work_advance(cr_gpu_lane *lane, cr_gpu_work *work);
/* The device is lost. Nothing happens to an IDLE work. */
void cr_gpu_work_abandon(cr_gpu_lane *lane, cr_gpu_work *work);

/* For the kinds. */
void cr_gpu_work_move(cr_gpu_work *work, cr_gpu_work_state next);
void cr_gpu_work_progress(cr_gpu_work *work);
/* Counts what a GOOD work has folded. */
void cr_gpu_work_count(cr_gpu_lane *lane, uint64_t bytes, uint32_t launches);
/* Claims of one job: folded, failed or unfit, as the fate says. */
void cr_gpu_work_settle(cr_gpu_lane *lane, cr_gpu_work *work, const cr_partial *const *partials, uint32_t count);
/* Claims of one job: unfolded, because the device is lost. */
void cr_gpu_work_give_back(cr_gpu_lane *lane, cr_gpu_work *work);
/* Counts error if it is the GPU's. */
void cr_gpu_failed(cr_gpu_lane *lane, const cr_error *error);
/* Claims of one job that the GPU could not fold: the CPU does, or the job ends with the error. */
void cr_gpu_unfit(cr_gpu_lane *lane, const cr_claim *claims, uint32_t count, const cr_error *error);

/* ---- claim.c ---- */

/* Lists claims, and the kind that they are of; false: there is none. With the fate BROKEN the event of their job
 * failed. */
bool cr_gpu_claim(cr_gpu_lane *lane, cr_gpu_work *work);

/* ---- chunks.c ---- */

/* How much of a job of one answer to claim now. */
uint64_t cr_gpu_chunk_wants(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment);

/* ---- pack.c ---- */

/* Whether the job may stand in one pack with others. */
bool cr_gpu_pack_joins(const cr_job *job);

/* ---- load.c ---- */

/* Whether a GPU may copy the claim from where it is. */
bool cr_gpu_direct(const cr_claim *claim);
/* Reads bytes of a claim, from `at` on, into pinned memory. */
cr_status cr_gpu_stage(const cr_claim *claim, uint64_t at, void *to, size_t bytes, cr_error *error);
/* Brings a claim's bytes to where the device reads them, which is returned: `to` in its memory, through `at` in the
 * staging buffer where need be, or, with over_bus, pinned memory. Copies may be only noted until cr_gpu_copy_noted
 * enqueues them. */
const uint8_t *cr_gpu_load(cr_gpu_lane *lane, cr_gpu_work *work, const cr_claim *claim, uint8_t *to, uint64_t at,
                           bool over_bus);
void cr_gpu_copy_noted(cr_gpu_lane *lane, cr_gpu_work *work);
/* Whether so few bytes are read over the bus sooner than they are copied. */
bool cr_gpu_few(uint64_t bytes);
/* Whether what was read from a client's mapping without the guard was the file's to the end. */
cr_status cr_gpu_checked(const cr_claim *claim, cr_error *error);
/* The same of all claims: a GOOD work becomes BROKEN when it was not. */
void cr_gpu_check_all(cr_gpu_work *work);

#endif
