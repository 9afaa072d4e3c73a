/* axis: whole blocks, carried states, pieces. Thread: workers; see axis.h. Owner: the job. */
#include "server/job/axis.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

typedef struct piece {
    cr_list link;
    uint64_t block, have;
    void *state;
} piece;

cr_status cr_axis_make(cr_job *job, const cr_axis_spec *spec, uint32_t workers, uint64_t max_state_bytes,
                       cr_error *error) {
    uint64_t block = spec->shape.n * spec->shape.inner, unit = block * job->element;
    size_t state = cr_columns_bytes(spec);
    bool whole = unit <= CR_AXIS_GRAIN_BYTES, in_order = !whole && cr_axis_in_order(spec);
    uint64_t states = (uint64_t)workers + (spec->shape.outer == 1 ? 1 : CR_AXIS_STATES_BESIDE_WORKERS);
    if (in_order) states = 1;
    if (!whole && state > max_state_bytes / states)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "axis: %zu bytes of state for each of %llu blocks exceed max_state_bytes, %llu", state,
                       (ull)states, (ull)max_state_bytes);
    cr_axis *axis = calloc(1, sizeof *axis);
    if (!axis) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the axis");
    axis->spec = *spec;
    axis->block = block;
    axis->state_bytes = state;
    axis->scratch_bytes = cr_axis_scratch(spec);
    for (uint32_t k = 0; k < spec->op_count; k++) {
        axis->width[k] = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        axis->answer_bytes += axis->width[k];
    }
    pthread_mutex_init(&axis->mutex, NULL);
    cr_list_init(&axis->pieces);
    job->axis = axis;
    job->grain = whole && block ? block : 1;
    if (!whole && spec->shape.inner > 1) {
        uint64_t line = spec->shape.inner * job->element;
        job->claim_bytes =
            line < CR_AXIS_CLAIM_BYTES / CR_AXIS_CLAIM_LINES ? line * CR_AXIS_CLAIM_LINES : CR_AXIS_CLAIM_BYTES;
    }
    job->in_order = in_order; /* whole blocks are answered by themselves */
    return CR_OK;
}

static void piece_free(piece *p) {
    free(p->state);
    free(p);
}

void cr_axis_free(cr_axis *axis) {
    for (cr_list *node; (node = cr_list_pop(&axis->pieces));) piece_free(cr_container(node, piece, link));
    pthread_mutex_destroy(&axis->mutex);
    free(axis);
}

/* Room for count answers of every op; out[k] is where op k's begin. */
static cr_output *output_new(const cr_axis *axis, uint64_t first, uint64_t count, void *out[], cr_error *error) {
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

static uint64_t answers_at_once(const cr_axis *axis) {
    uint64_t n = CR_AXIS_OUTPUT_BYTES / axis->answer_bytes;
    return n ? n : 1;
}

/* Scratch for whole blocks, kept while it is large enough. */
static cr_status need_scratch(cr_axis_hand *hand, size_t bytes, cr_error *error) {
    if (hand->scratch_bytes >= bytes) return CR_OK;
    free(hand->scratch);
    hand->scratch_bytes = (bytes + 63) / 64 * 64;
    hand->scratch = aligned_alloc(64, hand->scratch_bytes);
    if (hand->scratch) return CR_OK;
    hand->scratch_bytes = 0;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of scratch", bytes);
}

static cr_status whole_blocks(cr_queue *queue, cr_axis_hand *hand, const cr_claim *claim, const uint8_t *data,
                              uint64_t first, uint64_t blocks, cr_error *error) {
    const cr_axis *axis = claim->job->axis;
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

/* Answers a block from its complete state. */
static cr_status finish_block(cr_queue *queue, cr_job *job, uint64_t block, const void *state, cr_error *error) {
    const cr_axis *axis = job->axis;
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
static piece *find_piece(const cr_axis *axis, uint64_t block) {
    for (cr_list *node = axis->pieces.next; node != &axis->pieces; node = node->next) {
        piece *p = cr_container(node, piece, link);
        if (p->block == block) return p;
    }
    return NULL;
}

/* Takes back what is known of a block, to go on with it; NULL: nothing is. */
static void *take_piece(cr_axis *axis, uint64_t block, uint64_t *have) {
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
static cr_status add_piece(cr_axis *axis, uint64_t block, uint64_t have, void *state, void **complete,
                           cr_error *error) {
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
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a piece of the axis");
    }
    pthread_mutex_unlock(&axis->mutex);
    return found ? CR_OK : CR_RESOURCE_EXHAUSTED;
}

void cr_axis_let_go(cr_queue *queue, cr_axis_hand *hand) {
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

static cr_status take_up(cr_queue *queue, cr_axis_hand *hand, cr_job *job, uint64_t block, cr_error *error) {
    cr_axis *axis = job->axis;
    if (hand->state && hand->job == job && hand->block == block) return CR_OK;
    cr_axis_let_go(queue, hand);
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

void cr_axis_fold(cr_queue *queue, cr_axis_hand *hand, const cr_claim *claim, cr_error *error) {
    cr_job *job = claim->job;
    const cr_axis *axis = job->axis;
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
    }
    if (job->in_order) cr_axis_let_go(queue, hand); /* the next claim may be another worker's */
}

cr_output *cr_axis_empty_next(cr_axis *axis, cr_error *error) {
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
