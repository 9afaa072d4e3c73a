/* job_axis: a job whose answers are an array: one for each (outer, inner) of its shape.
 *
 * A claim is any range of the input. The blocks (n·inner elements) that lie wholly in it are answered by the worker on the
 * spot. A block that is cut by the claim's ends gives a state, which the worker carries to its next claim, or hands over
 * to the job's pieces when it moves on; whoever completes a block answers it. So answers come as they are ready, in any order.
 *
 * Where the states of all columns would take more memory than the job may hold, its input comes strip by strip: first the first
 * columns of every line, then the next ones. A strip is an array of its own with blocks of its own, whose states fit. Whoever
 * brings the input asks cr_job_axis_run where its next bytes lie, or keeps the whole of a stream and asks cr_job_axis_turned
 * where they belong.
 *
 * By offsets (spec.offsets) each segment is a block of its own length. A claim answers those that lie wholly in it, and the empty ones
 * among them; the empty ones where the last border lies belong to the last claim. The offsets stay the caller's, and may change: each
 * claim copies and checks those that it reads by. How many answers a claim brings does not follow from its bytes, because there may be
 * any number of empty segments, so whoever admits such a job counts all of its answers (axis->memory does).
 *
 * Thread: spec and sizes are fixed at make time; pieces have a mutex of their own (merging many columns takes too long for
 * the queue's). Owner: the job. */
#ifndef CURED_ENGINE_JOB_AXIS_H
#define CURED_ENGINE_JOB_AXIS_H

#include <pthread.h>

#include "engine/queue.h"
#include "kernels/core/keyed.h"
#include "kernels/core/keys.h"
#include "kernels/cpu/axis.h"

enum {
    CR_JOB_AXIS_GRAIN_BYTES = 64 * 1024, /* blocks up to here are never cut */
    CR_JOB_AXIS_CLAIM_LINES = 16, /* of columns: each claim reads and writes the states of all its columns once */
    CR_JOB_AXIS_CLAIM_BYTES = 16 * 1024 * 1024,  /* but no more */
    CR_JOB_AXIS_OUTPUT_BYTES = 256 * 1024,       /* answers in one output, and of one claim, about */
    CR_JOB_AXIS_PENDING_BYTES = 4 * 1024 * 1024, /* answers that wait to be sent before the job pauses */
    CR_JOB_AXIS_STATES_BESIDE_WORKERS = 8,       /* incomplete blocks that may exist besides those in workers' hands */
    CR_JOB_AXIS_STRIP_STATE_BYTES = 16 * 1024 * 1024, /* of a strip, about: more would leave the caches sooner */
    CR_JOB_AXIS_STRIP_COLUMNS = 256,                  /* at least; a multiple */
    CR_JOB_AXIS_GPU_OUTPUT_BYTES =
        1024 * 1024, /* answers of a GPU's claim, where a block has no more: some are under way at a time */
    CR_JOB_AXIS_PLACED_ANSWERS =
        8
        << 20, /* of a GPU's claim, where its kernels put them into the client's memory: between two claims it idles */
    CR_JOB_AXIS_PLACED_BYTES = 4, /* that these keep of each meanwhile */
    CR_JOB_AXIS_PLACED_VARIANCES = 1 << 19,
    CR_JOB_AXIS_PLACED_VARIANCE_BYTES = 64,
    CR_JOB_AXIS_INPUT_BYTES =
        6 * 1024 * 1024, /* of a paused job, in memory of its own: what a client may send unasked, in segments */
};

/* How the input of a job comes. */
typedef enum cr_job_axis_input {
    CR_JOB_AXIS_PASSES, /* in the array's order, and nobody can read it again */
    CR_JOB_AXIS_READ,   /* from where it can be read in any order */
    CR_JOB_AXIS_STREAM, /* in the array's order; its bytes can be kept, as state */
} cr_job_axis_input;

/* Answers [first, first + count), op after op: data holds count values of the first op, then of the second, …; then, where each has a
 * status, as many bytes for each op. */
typedef struct cr_output {
    cr_list link;
    uint64_t first, count, bytes;
    uint32_t missing; /* of which ops some have no value: a bit for each position */
    uint8_t data[];
} cr_output;

typedef struct cr_job_axis {
    cr_axis_spec spec;
    uint64_t block;                /* elements */
    size_t width[CR_AXIS_MAX_OPS]; /* bytes of one answer, by op */
    size_t answer_bytes;           /* their sum, and a status for each */
    uint64_t strip; /* columns that are folded at a time: all of them, or those of every strip but the last */
    uint64_t strips;
    cr_axis_spec of_strip[2]; /* as an array of its own: any but the last strip, and the last */
    uint64_t memory;          /* bytes that the job may hold, at most: states, answers, input that waits or is kept */
    uint32_t whole_kinds; /* not 0: where all of the input can be claimed in whole blocks, it is, by these (CR_BY_*) */
    uint64_t empty_next;  /* n = 0: answers made so far; the loop's */
    struct cr_job_keys *keys;           /* of a job that answers by key (job_axis_keys.c); NULL: it does not */
    uint8_t *packed;                    /* by key without ops: the partial by key, once the job is done; malloc's */
    uint64_t packed_bytes, packed_next; /* of them, and how many went into outputs: the loop's */
    uint64_t from, till; /* by offsets: the array's element that is the input's first, and the last border */
    bool placed;         /* answers go straight to these places, and into no outputs */
    void *to[CR_AXIS_PLACES];
    pthread_mutex_t mutex;
    cr_list pieces;                           /* incomplete blocks; guarded by mutex */
    cr_axis_missing missing[CR_AXIS_MAX_OPS]; /* with statuses, by op; guarded by mutex until the job is done */
    uint64_t missing_of
        [CR_AXIS_MAX_OPS]; /* by offsets, which are gone when it is asked: elements of the first without a value */
} cr_job_axis;

/* Whether no answer has an element, whatever comes: then the loop makes them all (cr_job_axis_empty_next), and no worker any. */
static inline bool cr_job_axis_is_empty(const cr_job_axis *axis) { return axis->block == 0; }

/* The statuses of the op's answers in output; NULL: each has a value. */
static inline const uint8_t *cr_output_statuses(const cr_output *output, const cr_job_axis *axis, uint32_t op) {
    if (!(output->missing >> op & 1)) return NULL;
    return output->data + output->bytes - (axis->spec.op_count - op) * output->count;
}

/* What a worker carries from claim to claim. Zero-initialise. It holds `job` while `state` is set, and until the answers of that
 * state have gone out. */
typedef struct cr_job_axis_hand {
    cr_job *job;
    uint64_t block, have, elements; /* of that block's elements, so many are in state */
    void *state;
    bool holds;
    void *scratch;
    size_t scratch_bytes;
} cr_job_axis_hand;

/* Makes job an axis job, for workers workers, or for as few as have their states within max_bytes; in strips if not even one has.
 * INVALID_ARGUMENT where the input cannot come in strips, or is too long to be kept. axis->memory is for admission. */
cr_status cr_job_axis_make(cr_job *job, const cr_axis_spec *spec, uint32_t workers, cr_job_axis_input input,
                           uint64_t max_bytes, cr_error *error);
/* The same by offsets, which were checked. The input is the array's elements [from, …), as many as segments need at least. */
cr_status cr_job_axis_make_by_offsets(cr_job *job, const cr_axis_spec *spec, uint64_t from, uint32_t workers,
                                      uint64_t max_bytes, cr_error *error);
/* The same by key: shape is (groups, rows, columns), and wants are CR_WANTS_... of the ops. The keys stay the caller's. RESOURCE_EXHAUSTED
 * where the states of so many groups are beyond the limit (kernels/cpu/keys/keys.h). A spec without ops gives a partial: axis->packed, or
 * nothing where there are no elements. max_bytes says how many workers have some. strict:
 * states and answers stay within max_bytes, whatever comes: INVALID_ARGUMENT where not even one state of zeros does. */
cr_status cr_job_axis_make_by_keys(cr_job *job, const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants,
                                   uint32_t workers, uint64_t max_bytes, bool strict, cr_error *error);
/* The same from partials by key, for whoever finishes them by cr_merging (job_axis_merged.c): spec has their ops, or none for the merged
 * partial, and shape (cells, …, 1). */
cr_status cr_job_axis_make_merged(cr_job *job, const cr_axis_spec *spec, cr_error *error);
typedef struct cr_merging cr_merging;
/* A job's answers from these parts, count of them, which are taken over with their memory, and freed. NULL: no memory; the parts stay. */
cr_merging *cr_merging_new(cr_job *job, cr_keyed_bytes *parts, size_t count, cr_error *error);
/* The next step, on a thread that may take its time: some thousand cells, or answers. *more: it was not the last. */
cr_status cr_merging_step(cr_merging *merging, cr_queue *queue, bool *more, cr_error *error);
/* Gives back a step of all its memory: of a merging that takes no more steps, before it is freed. True: there is more. */
bool cr_merging_over_step(cr_merging *merging);
/* merging may be NULL. */
void cr_merging_free(cr_merging *merging);
/* Gives back a step of the memory of *count parts, the last first; not their list. True: there is more. */
bool cr_merging_free_parts(cr_keyed_bytes *parts, size_t *count);
/* From now on answers are made where they are wanted: places as cr_axis_spec says, of all answers, where statuses are zeros. Of a job that
 * nothing was offered of yet, and whose axis has elements. Whoever takes them when the job is done completes their statuses. */
void cr_job_axis_place(cr_job *job, void *const places[]);
/* Where bytes [at, …) of the job's input lie: offset in the array, in bytes. Returns how many lie there in a row. */
uint64_t cr_job_axis_run(const cr_job *job, uint64_t at, uint64_t *offset);
/* The same the other way round: at what byte of the input the array's bytes [offset, …) belong. */
uint64_t cr_job_axis_turned(const cr_job *job, uint64_t offset, uint64_t *at);
static inline bool cr_job_axis_in_strips(const cr_job *job) {
    const cr_job_axis *axis = (const cr_job_axis *)job->axis;
    return axis && axis->strips > 1;
}
/* The same for input in a GPU's memory, all of which is there: it is claimed in whole blocks, which need no states. */
cr_status cr_job_axis_make_on_device(cr_job *job, const cr_axis_spec *spec, uint64_t max_bytes, cr_error *error);
/* Undoes cr_job_axis_make_on_device: what the GPU has no kernel for is made anew, for its lane to fold on the host. */
cr_status cr_job_axis_make_by_host(cr_job *job, uint64_t max_bytes, cr_error *error);
/* From now on blocks are not cut, as axis->whole_kinds has it; of a job that nothing was offered of yet. Under the queue's lock. */
void cr_job_axis_claim_whole(cr_job *job);
/* Of a job that is DONE: takes what its answer needs of offsets, because from now on nobody keeps them. */
void cr_job_axis_leave_offsets(cr_job_axis *axis);
/* Of a job that is DONE: whether it ended before all its states were answered. */
bool cr_job_axis_has_states(const cr_job_axis *axis);
/* Whether the job makes a partial by key in place of answers: its outputs are that partial's bytes, as answers of a byte to one op. */
static inline bool cr_job_axis_packs(const cr_job_axis *axis) { return axis->spec.op_count == 0; }
/* Of such a job that is DONE: makes the partial where there were no elements; otherwise it is there. */
cr_status cr_job_axis_pack(cr_job_axis *axis, cr_error *error);
/* The next bytes of it, NULL after the last. For the loop. */
cr_output *cr_job_axis_packed_next(cr_job_axis *axis, cr_error *error);
/* For cr_job_free. */
void cr_job_axis_free(cr_job_axis *axis);
/* Gives back a step of what is large in it: of a job that is over, before it is freed. True: there is more. */
bool cr_job_axis_over_step(cr_job_axis *axis);

/* Folds a claim of an axis job, on a lane's thread. */
void cr_job_axis_fold(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, cr_error *error);
/* For a lane that has computed answers [first, first + count): those of op k begin at out[k]. */
cr_status cr_job_axis_emit(cr_queue *queue, cr_job *job, uint64_t first, uint64_t count, const void *const out[],
                           cr_error *error);
/* The worker moves on: hands over what it carries, and lets its job go. */
void cr_job_axis_let_go(cr_queue *queue, cr_job_axis_hand *hand);

/* n = 0, with a sink: writes the next answers there. *more: they were not the last. *statuses: of those, NULL where all have values. For the
 * loop. */
cr_status cr_job_axis_empty_write(cr_job *job, bool *more, cr_output **statuses, cr_error *error);
/* The bytes of all answers, without statuses. */
uint64_t cr_job_axis_value_bytes(const cr_job_axis *axis);
/* n = 0: the next answers (the empty rule's), NULL after the last. For the loop. */
cr_output *cr_job_axis_empty_next(cr_job_axis *axis, cr_error *error);

#endif
