/* job_axis: whole blocks, carried states, pieces. Thread: workers; see job_axis.h. Owner: the job. */
#include "server/engine/job_axis.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { GPU_CLAIM_BLOCKS = 256 };                    /* so that a claim of many begins where vectors may be loaded */
static const uint64_t GPU_CLAIM_BYTES = 4ull << 30; /* where blocks are no longer */

typedef struct piece {
    cr_list link;
    uint64_t block, have;
    void *state;
} piece;

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
/* a·b, or UINT64_MAX. */
static uint64_t times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }
/* a + b, or UINT64_MAX. */
static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static bool is_whole(const cr_job_axis *axis, const cr_job *job) {
    return axis->block * job->element <= CR_JOB_AXIS_GRAIN_BYTES;
}

/* How claims are cut, and what their answers may hold; returns that. whole: blocks are not cut. */
static uint64_t plan_claims(const cr_job_axis *axis, cr_job *job, bool whole) {
    const cr_shape *shape = &axis->spec.shape;
    uint64_t slice = shape->n * job->element, all = times(shape->outer * shape->inner, axis->answer_bytes);
    uint64_t of_block = times(shape->inner, axis->answer_bytes);
    job->grain = whole ? axis->block : 1;
    job->claim_bytes = job->claim_most = 0;
    if (!whole && shape->inner > 1)
        job->claim_bytes = least(times(shape->inner * job->element, CR_JOB_AXIS_CLAIM_LINES), CR_JOB_AXIS_CLAIM_BYTES);
    job->may_pause = all > CR_JOB_AXIS_PENDING_BYTES;
    if (!job->may_pause) return all;
    uint64_t most = times(CR_JOB_AXIS_OUTPUT_BYTES / axis->answer_bytes + 1, slice), unit = cr_job_unit(job);
    if (most < CR_JOB_AXIS_CLAIM_BYTES) job->claim_most = most > unit ? most / unit * unit : unit;
    uint64_t claim = job->claim_most ? job->claim_most : CR_CLAIM_MOST_BYTES;
    if (claim < unit) claim = unit;
    if (shape->outer > 1) job->claim_output = times(claim / slice + 1, axis->answer_bytes);
    uint64_t more = times(of_block, 2); /* of blocks of which many claims made a part */
    return least(all, more > UINT64_MAX / 2 ? more : CR_JOB_AXIS_PENDING_BYTES + job->claim_output + more);
}

/* How many states there may be, within max_bytes beside other memory. */
static cr_status plan_states(cr_job_axis *axis, cr_job *job, uint32_t workers, uint64_t other, uint64_t max_bytes,
                             cr_error *error) {
    uint64_t state = axis->state_bytes, beside = axis->spec.shape.outer == 1 ? 1 : CR_JOB_AXIS_STATES_BESIDE_WORKERS;
    uint64_t claims = axis->block * axis->spec.shape.outer * job->element / CR_CLAIM_LEAST_BYTES + 1;
    bool in_order = cr_axis_in_order(&axis->spec);
    uint64_t states = in_order ? 1 : least(workers, claims) + beside;
    if (is_whole(axis, job)) states = state = 0;
    uint64_t fit = other > max_bytes ? 0 : state ? (max_bytes - other) / state : 1;
    if (!fit)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "axis: %llu bytes of state and %llu of answers and input exceed max_state_bytes_per_connection "
                       "or max_state_bytes, %llu",
                       (ull)state, (ull)other, (ull)max_bytes);
    if (fit < states) {
        in_order = fit <= beside;
        states = in_order ? 1 : fit;
        job->most_claims = in_order ? 0 : (uint32_t)(fit - beside);
    }
    job->in_order = in_order && state; /* whole blocks are answered by themselves */
    axis->memory = other + states * state;
    return CR_OK;
}

/* What no lane depends on. */
static cr_job_axis *axis_new(cr_job *job, const cr_axis_spec *spec, cr_error *error) {
    cr_job_axis *axis = calloc(1, sizeof *axis);
    if (!axis) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the axis");
        return NULL;
    }
    axis->spec = *spec;
    if (spec->shape.outer) axis->block = spec->shape.n * spec->shape.inner;
    axis->state_bytes = cr_columns_bytes(spec);
    axis->scratch_bytes = cr_axis_scratch(spec);
    for (uint32_t k = 0; k < spec->op_count; k++) {
        axis->width[k] = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        axis->answer_bytes += axis->width[k];
    }
    pthread_mutex_init(&axis->mutex, NULL);
    cr_list_init(&axis->pieces);
    job->axis = axis;
    job->grain = 1;
    job->in_order = false;
    axis->memory = CR_JOB_AXIS_OUTPUT_BYTES;
    return axis;
}

cr_status cr_job_axis_make(cr_job *job, const cr_axis_spec *spec, uint32_t workers, uint64_t max_bytes,
                           cr_error *error) {
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    if (!axis->block) return CR_OK; /* the loop makes its answers, if there are any */
    uint64_t other = plan_claims(axis, job, is_whole(axis, job));
    if (job->may_pause)
        other = plus(other, CR_JOB_AXIS_INPUT_BYTES); /* state_bytes may have wrapped, but not if this fits */
    return plan_states(axis, job, workers, other, max_bytes, error);
}

void cr_job_axis_claim_whole(cr_job *job) {
    cr_job_axis *axis = job->axis;
    if (!axis || !axis->whole_kinds) return;
    plan_claims(axis, job, true);
    job->in_order = false;
    job->most_claims = 0;
    job->kinds = axis->whole_kinds;
}

cr_status cr_job_axis_make_on_device(cr_job *job, const cr_axis_spec *spec, uint64_t max_bytes, cr_error *error) {
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    if (!axis->block) return CR_OK;
    const cr_shape *shape = &spec->shape;
    uint64_t of_block = times(shape->inner, axis->answer_bytes), all = times(of_block, shape->outer);
    uint64_t blocks = least(CR_JOB_AXIS_GPU_OUTPUT_BYTES / of_block, GPU_CLAIM_BYTES / (axis->block * job->element));
    if (blocks > GPU_CLAIM_BLOCKS) blocks -= blocks % GPU_CLAIM_BLOCKS;
    blocks = least(blocks ? blocks : 1, shape->outer);
    job->grain = axis->block;
    job->claim_most = blocks * cr_job_unit(job);
    job->claim_output = times(of_block, blocks);
    job->may_pause = all > CR_JOB_AXIS_PENDING_BYTES;
    uint64_t waiting = least(all, CR_JOB_AXIS_PENDING_BYTES + least(job->claim_output, UINT64_MAX / 4));
    axis->memory = waiting + least(job->claim_output, UINT64_MAX / 4); /* and in the lane's own memory meanwhile */
    if (shape->inner > UINT32_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: a GPU gives at most 2^32 - 1 answers of a block, not %llu",
                       (ull)shape->inner);
    if (axis->memory <= max_bytes) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "axis: a GPU answers whole blocks, and %llu bytes of answers exceed max_state_bytes_per_connection "
                   "or max_state_bytes, %llu",
                   (ull)axis->memory, (ull)max_bytes);
}

cr_status cr_job_axis_make_by_host(cr_job *job, uint64_t max_bytes, cr_error *error) {
    const cr_axis_spec spec = job->axis->spec;
    cr_job_axis_free(job->axis);
    job->axis = NULL;
    job->claim_bytes = job->claim_most = job->claim_output = 0;
    job->may_pause = false;
    cr_status status = cr_job_axis_make(job, &spec, 1, max_bytes, error);
    if (job->axis) job->axis->by_host = true;
    return status;
}

static void piece_free(piece *p) {
    free(p->state);
    free(p);
}

void cr_job_axis_free(cr_job_axis *axis) {
    for (cr_list *node; (node = cr_list_pop(&axis->pieces));) piece_free(cr_container(node, piece, link));
    pthread_mutex_destroy(&axis->mutex);
    free(axis);
}

/* Room for count answers of every op; out[k] is where op k's begin. */
static cr_output *output_new(const cr_job_axis *axis, uint64_t first, uint64_t count, void *out[], cr_error *error) {
    uint64_t bytes = count * axis->answer_bytes;
    cr_output *output = malloc(sizeof *output + bytes);
    if (!output) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu answers", (ull)count);
        return NULL;
    }
    cr_list_init(&output->link);
    output->first = first;
    output->count = count;
    output->bytes = bytes;
    uint8_t *at = output->data;
    for (uint32_t k = 0; k < axis->spec.op_count; k++) {
        out[k] = at;
        at += count * axis->width[k];
    }
    return output;
}

static uint64_t answers_at_once(const cr_job_axis *axis) {
    uint64_t n = CR_JOB_AXIS_OUTPUT_BYTES / axis->answer_bytes;
    return n ? n : 1;
}

/* Scratch for whole blocks, kept while it is large enough. */
static cr_status need_scratch(cr_job_axis_hand *hand, size_t bytes, cr_error *error) {
    if (hand->scratch_bytes >= bytes) return CR_OK;
    free(hand->scratch);
    hand->scratch_bytes = (bytes + 63) / 64 * 64;
    hand->scratch = aligned_alloc(64, hand->scratch_bytes);
    if (hand->scratch) return CR_OK;
    hand->scratch_bytes = 0;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of scratch", bytes);
}

static cr_status whole_blocks(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, const uint8_t *data,
                              uint64_t first, uint64_t blocks, cr_error *error) {
    const cr_job_axis *axis = claim->job->axis;
    uint64_t inner = axis->spec.shape.inner, step = answers_at_once(axis) / inner;
    cr_status status = need_scratch(hand, axis->scratch_bytes, error);
    if (!step) step = 1;
    for (uint64_t done = 0; status == CR_OK && done < blocks; done += step) {
        void *out[CR_AXIS_MAX_OPS];
        uint64_t now = blocks - done < step ? blocks - done : step;
        cr_output *output = output_new(axis, (first + done) * inner, now * inner, out, error);
        if (!output) return error->code;
        status = cr_cpu_axis_blocks(&axis->spec, data + done * axis->block * claim->job->element, first + done, now,
                                    hand->scratch, out, error);
        if (status == CR_OK)
            cr_queue_emit(queue, claim->job, output);
        else
            free(output);
    }
    return status;
}

cr_status cr_job_axis_emit(cr_queue *queue, cr_job *job, uint64_t first, uint64_t count, const void *const out[],
                           cr_error *error) {
    const cr_job_axis *axis = job->axis;
    uint64_t step = answers_at_once(axis);
    for (uint64_t at = 0; at < count; at += step) {
        void *to[CR_AXIS_MAX_OPS];
        uint64_t now = least(count - at, step);
        cr_output *output = output_new(axis, first + at, now, to, error);
        if (!output) return error->code;
        for (uint32_t k = 0; k < axis->spec.op_count; k++)
            memcpy(to[k], (const uint8_t *)out[k] + at * axis->width[k], now * axis->width[k]);
        cr_queue_emit(queue, job, output);
    }
    return CR_OK;
}

/* Answers a block from its complete state. */
static cr_status finish_block(cr_queue *queue, cr_job *job, uint64_t block, const void *state, cr_error *error) {
    const cr_job_axis *axis = job->axis;
    const cr_axis_spec *spec = &axis->spec;
    uint64_t inner = spec->shape.inner, step = answers_at_once(axis);
    for (uint64_t column = 0; column < inner; column += step) {
        void *out[CR_AXIS_MAX_OPS];
        uint64_t now = inner - column < step ? inner - column : step;
        cr_output *output = output_new(axis, block * inner + column, now, out, error);
        if (!output) return error->code;
        cr_status status = cr_columns_finish(spec, state, block, column, now, out, error);
        if (status != CR_OK) {
            free(output);
            return status;
        }
        cr_queue_emit(queue, job, output);
    }
    return CR_OK;
}

/* Under the mutex. */
static piece *find_piece(const cr_job_axis *axis, uint64_t block) {
    for (cr_list *node = axis->pieces.next; node != &axis->pieces; node = node->next) {
        piece *p = cr_container(node, piece, link);
        if (p->block == block) return p;
    }
    return NULL;
}

/* Takes back what is known of a block, to go on with it; NULL: nothing is. */
static void *take_piece(cr_job_axis *axis, uint64_t block, uint64_t *have) {
    pthread_mutex_lock(&axis->mutex);
    piece *found = find_piece(axis, block);
    if (found) cr_list_remove(&found->link);
    pthread_mutex_unlock(&axis->mutex);
    if (!found) return NULL;
    void *state = found->state;
    *have = found->have;
    free(found);
    return state;
}

/* Adds a state to its block's piece; takes over state. *complete: the block's state, when it is whole now. */
static cr_status add_piece(cr_job_axis *axis, uint64_t block, uint64_t have, void *state, void **complete,
                           cr_error *error) {
    cr_status status = CR_OK;
    *complete = NULL;
    pthread_mutex_lock(&axis->mutex);
    piece *found = find_piece(axis, block);
    if (found) {
        cr_columns_merge(&axis->spec, found->state, state);
        found->have += have;
        free(state);
        if (found->have == axis->block) {
            cr_list_remove(&found->link);
            *complete = found->state;
            free(found);
        }
    } else if ((found = malloc(sizeof *found))) {
        *found = (piece){.block = block, .have = have, .state = state};
        cr_list_append(&axis->pieces, &found->link);
    } else {
        free(state);
        status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a piece of the axis");
    }
    pthread_mutex_unlock(&axis->mutex);
    return status;
}

void cr_job_axis_let_go(cr_queue *queue, cr_job_axis_hand *hand) {
    if (!hand->state) return;
    cr_job *job = hand->job;
    cr_error error;
    void *complete = NULL;
    cr_status status = CR_OK;
    if (hand->have == job->axis->block)
        complete = hand->state;
    else
        status = add_piece(job->axis, hand->block, hand->have, hand->state, &complete, &error);
    hand->state = NULL;
    if (complete) status = finish_block(queue, job, hand->block, complete, &error);
    free(complete);
    if (status != CR_OK) cr_queue_stop(queue, job, &error);
    cr_queue_unhold(queue, job);
}

static cr_status take_up(cr_queue *queue, cr_job_axis_hand *hand, cr_job *job, uint64_t block, cr_error *error) {
    cr_job_axis *axis = job->axis;
    if (hand->state && hand->job == job && hand->block == block) return CR_OK;
    cr_job_axis_let_go(queue, hand);
    if (!cr_queue_hold(queue, job)) return cr_fail(error, CR_CANCELLED, "the call is over");
    hand->have = 0;
    hand->state = take_piece(axis, block, &hand->have);
    if (!hand->state) {
        hand->state = malloc(axis->state_bytes);
        if (hand->state) cr_columns_init(&axis->spec, hand->state);
    }
    if (!hand->state) {
        cr_queue_unhold(queue, job);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of state", axis->state_bytes);
    }
    hand->job = job;
    hand->block = block;
    return CR_OK;
}

void cr_job_axis_fold(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, cr_error *error) {
    cr_job *job = claim->job;
    const cr_job_axis *axis = job->axis;
    uint64_t at = claim->index, end = at + claim->bytes / job->element;
    while (at < end) {
        const uint8_t *data = claim->data + (at - claim->index) * job->element;
        uint64_t block = at / axis->block, offset = at % axis->block, left = end - at;
        if (offset == 0 && left >= axis->block) {
            uint64_t blocks = left / axis->block;
            if (whole_blocks(queue, hand, claim, data, block, blocks, error) != CR_OK) return;
            at += blocks * axis->block;
            continue;
        }
        uint64_t now = axis->block - offset < left ? axis->block - offset : left;
        if (take_up(queue, hand, job, block, error) != CR_OK) return;
        cr_cpu_columns_fold(&axis->spec, hand->state, data, now, offset);
        hand->have += now;
        at += now;
        if (hand->have == axis->block) cr_job_axis_let_go(queue, hand); /* what it answers counts as this claim's */
    }
    if (job->in_order || job->most_claims) cr_job_axis_let_go(queue, hand); /* the next claim may be another worker's */
}

cr_output *cr_job_axis_empty_next(cr_job_axis *axis, cr_error *error) {
    const cr_axis_spec *spec = &axis->spec;
    uint64_t all = spec->shape.outer * spec->shape.inner, count = answers_at_once(axis);
    if (all - axis->empty_next < count) count = all - axis->empty_next;
    if (!count) return NULL;
    cr_partial none;
    cr_partial_init(&none, spec->dtype, spec->families);
    void *out[CR_AXIS_MAX_OPS];
    cr_output *output = output_new(axis, axis->empty_next, count, out, error);
    for (uint32_t k = 0; output && k < spec->op_count; k++) {
        if (cr_axis_store(&none, spec->ops[k], &spec->finish, axis->empty_next, out[k], error) != CR_OK) {
            free(output);
            return NULL;
        }
        for (uint64_t i = 1; i < count; i++) memcpy((uint8_t *)out[k] + i * axis->width[k], out[k], axis->width[k]);
    }
    axis->empty_next += count;
    return output;
}
