/* job_axis: whole blocks, carried states, pieces. Thread: workers; see job_axis.h. Owner: the job. */
#include "engine/job_axis_internal.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/bulk.h"
#include "engine/sink.h"

typedef unsigned long long ull;

typedef struct piece {
    cr_list link;
    uint64_t block, have, elements; /* of all its elements, so many are in state */
    void *state;
} piece;

static void piece_free(piece *p) {
    free(p->state);
    free(p);
}

bool cr_job_axis_has_states(const cr_job_axis *axis) {
    return !cr_list_empty(&axis->pieces) || cr_job_keys_has_states(axis->keys);
}

bool cr_job_axis_over_step(cr_job_axis *axis) {
    void *packed = axis->packed;
    const bool more = cr_bulk_free(&packed, &axis->packed_bytes);
    axis->packed = packed;
    return more;
}

void cr_job_axis_free(cr_job_axis *axis) {
    for (cr_list *node; (node = cr_list_pop(&axis->pieces));) piece_free(cr_container(node, piece, link));
    cr_job_keys_free(axis->keys);
    free(axis->packed);
    pthread_mutex_destroy(&axis->mutex);
    free(axis);
}

cr_output *cr_job_axis_output_new(const cr_job_axis *axis, uint64_t first, uint64_t count, void *out[],
                                  cr_error *error) {
    uint64_t bytes = axis->placed ? 0 : count * axis->answer_bytes;
    cr_output *output = malloc(sizeof *output + bytes);
    if (!output) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu answers", (ull)count);
        return NULL;
    }
    cr_list_init(&output->link);
    output->first = first;
    output->count = count;
    output->bytes = bytes;
    output->missing = 0;
    uint8_t *at = output->data;
    for (uint32_t k = 0; axis->placed && k < axis->spec.op_count; k++) {
        out[k] = (uint8_t *)axis->to[k] + first * axis->width[k];
        if (axis->spec.statuses) out[axis->spec.op_count + k] = (uint8_t *)axis->to[axis->spec.op_count + k] + first;
    }
    if (axis->placed) return output;
    for (uint32_t k = 0; k < axis->spec.op_count; k++) {
        out[k] = at;
        at += count * axis->width[k];
    }
    if (!axis->spec.statuses) return output;
    for (uint32_t k = 0; k < axis->spec.op_count; k++) {
        out[axis->spec.op_count + k] = memset(at, CR_OK, count);
        at += count;
    }
    return output;
}

/* All answers of an output are there: sums up those without a value. */
static void output_done(cr_job_axis *axis, cr_output *output, void *const out[]) {
    const cr_axis_spec *spec = &axis->spec;
    for (uint32_t k = 0; spec->statuses && k < spec->op_count; k++) {
        cr_axis_missing here = {0}, *all = &axis->missing[k];
        cr_axis_mark(spec->ops[k], spec->dtype, &spec->finish, output->first, output->count, out[k],
                     out[spec->op_count + k], &here);
        if (!here.count) continue;
        output->missing |= 1u << k;
        pthread_mutex_lock(&axis->mutex);
        if (!all->count || here.first < all->first) {
            all->first = here.first;
            all->status = here.status;
        }
        all->count += here.count;
        pthread_mutex_unlock(&axis->mutex);
    }
}

static cr_status write_output(cr_job *job, const cr_output *output, void *const out[], cr_error *error) {
    const cr_job_axis *axis = job->axis;
    cr_status status = CR_OK;
    for (uint32_t k = 0; status == CR_OK && k < axis->spec.op_count; k++)
        status = job->sink->write(job->sink, k, output->first * axis->width[k], out[k], output->count * axis->width[k],
                                  error);
    return status;
}

/* What is left of an output whose values are written: its statuses, if some have no value; NULL: nothing. Takes over output. */
static cr_output *statuses_of(const cr_job_axis *axis, cr_output *output, void *const out[]) {
    if (!output->missing) {
        free(output);
        return NULL;
    }
    output->bytes = output->count * axis->spec.op_count;
    memmove(output->data, out[axis->spec.op_count], output->bytes);
    cr_output *shorter = realloc(output, sizeof *output + output->bytes);
    if (shorter) cr_list_init(&shorter->link);
    return shorter ? shorter : output;
}

cr_status cr_job_axis_output_emit(cr_queue *queue, cr_job *job, cr_output *output, void *const out[], cr_error *error) {
    cr_status status = CR_OK;
    if (job->axis->placed) {
        free(output);
        return CR_OK;
    }
    output_done(job->axis, output, out);
    if (job->sink) {
        if (!cr_queue_stopped(queue, job)) status = write_output(job, output, out, error);
        output = statuses_of(job->axis, output, out);
    }
    if (output) cr_queue_emit(queue, job, output);
    return status;
}

uint64_t cr_job_axis_answers_at_once(const cr_job_axis *axis) {
    uint64_t n = CR_JOB_AXIS_OUTPUT_BYTES / axis->answer_bytes;
    return n ? n : 1;
}

/* Where a block lies. Blocks are numbered strip by strip. */
typedef struct place {
    const cr_axis_spec *spec; /* of its strip */
    uint64_t first, elements,
        answers;       /* its first element, in the job's order; of it; the number of its first answer */
    uint64_t in_array; /* its first element, in the array's order, which is that of its mask and its second array */
    uint64_t end;      /* element after its strip */
} place;

static place place_of(const cr_job_axis *axis, uint64_t block) {
    const uint64_t outer = axis->spec.shape.outer, n = axis->spec.shape.n;
    const uint64_t strip = block / outer, in_strip = block % outer;
    const cr_axis_spec *spec = &axis->of_strip[strip + 1 == axis->strips];
    const uint64_t elements = n * spec->shape.inner, begin = strip * outer * n * axis->strip;
    return (place){spec,
                   begin + in_strip * elements,
                   elements,
                   in_strip * axis->spec.shape.inner + strip * axis->strip,
                   in_strip * n * axis->spec.shape.inner + strip * axis->strip,
                   begin + outer * elements};
}

/* The block of an element. */
static uint64_t block_of(const cr_job_axis *axis, uint64_t element) {
    const uint64_t outer = axis->spec.shape.outer, n = axis->spec.shape.n, strips = outer * n * axis->strip;
    const uint64_t strip = element / strips;
    return strip * outer + element % strips / (n * axis->of_strip[strip + 1 == axis->strips].shape.inner);
}

cr_status cr_job_axis_need_scratch(cr_job_axis_hand *hand, size_t bytes, cr_error *error) {
    if (hand->scratch_bytes >= bytes) return CR_OK;
    free(hand->scratch);
    hand->scratch_bytes = (bytes + 63) / 64 * 64;
    hand->scratch = aligned_alloc(64, hand->scratch_bytes);
    if (hand->scratch) return CR_OK;
    hand->scratch_bytes = 0;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of scratch", bytes);
}

/* blocks that lie one after the other, in one strip, the first at first. */
static cr_status whole_blocks(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, const uint8_t *data,
                              const place *first, uint64_t blocks, cr_error *error) {
    const cr_job_axis *axis = claim->job->axis;
    uint64_t inner = first->spec->shape.inner, step = cr_job_axis_answers_at_once(axis) / inner;
    cr_status status = cr_job_axis_need_scratch(hand, cr_axis_scratch(first->spec), error);
    if (!step || axis->strips > 1) step = 1; /* in strips the answers of two blocks do not follow each other */
    for (uint64_t done = 0; status == CR_OK && done < blocks; done += step) {
        void *out[CR_AXIS_PLACES];
        uint64_t now = blocks - done < step ? blocks - done : step;
        uint64_t answer = first->answers + done * axis->spec.shape.inner;
        cr_output *output = cr_job_axis_output_new(axis, answer, now * inner, out, error);
        if (!output) return error->code;
        const cr_view view = cr_claim_view(claim, data + done * first->elements * claim->job->element,
                                           first->in_array + done * axis->spec.shape.n * axis->spec.shape.inner, 0);
        status = cr_cpu_axis_blocks_view(first->spec, &view, answer, now, hand->scratch, out, error);
        if (status == CR_OK)
            status = cr_job_axis_output_emit(queue, claim->job, output, out, error);
        else
            free(output);
    }
    return status;
}

cr_status cr_job_axis_emit(cr_queue *queue, cr_job *job, uint64_t first, uint64_t count, const void *const out[],
                           cr_error *error) {
    const cr_job_axis *axis = job->axis;
    uint64_t step = cr_job_axis_answers_at_once(axis);
    for (uint64_t at = 0; at < count; at += step) {
        void *to[CR_AXIS_PLACES];
        uint64_t now = count - at < step ? count - at : step;
        cr_output *output = cr_job_axis_output_new(axis, first + at, now, to, error);
        if (!output) return error->code;
        for (uint32_t k = 0; k < axis->spec.op_count; k++)
            memcpy(to[k], (const uint8_t *)out[k] + at * axis->width[k], now * axis->width[k]);
        if (cr_job_axis_output_emit(queue, job, output, to, error) != CR_OK) return error->code;
    }
    return CR_OK;
}

/* Answers a block from its complete state. */
static cr_status finish_block(cr_queue *queue, cr_job *job, uint64_t block, const void *state, cr_error *error) {
    const cr_job_axis *axis = job->axis;
    const place at = place_of(axis, block);
    uint64_t inner = at.spec->shape.inner, step = cr_job_axis_answers_at_once(axis);
    for (uint64_t column = 0; column < inner; column += step) {
        void *out[CR_AXIS_PLACES];
        uint64_t now = inner - column < step ? inner - column : step;
        cr_output *output = cr_job_axis_output_new(axis, at.answers + column, now, out, error);
        if (!output) return error->code;
        cr_status status = cr_columns_finish(at.spec, state, at.answers + column, column, now, out, error);
        if (status != CR_OK) {
            free(output);
            return status;
        }
        if (cr_job_axis_output_emit(queue, job, output, out, error) != CR_OK) return error->code;
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
static cr_status add_piece(cr_job_axis *axis, uint64_t block, uint64_t have, uint64_t elements, void *state,
                           void **complete, cr_error *error) {
    cr_status status = CR_OK;
    *complete = NULL;
    pthread_mutex_lock(&axis->mutex);
    piece *found = find_piece(axis, block);
    const place at = place_of(axis, block);
    if (found) {
        cr_columns_merge(at.spec, found->state, state);
        found->have += have;
        free(state);
        if (found->have == found->elements) {
            cr_list_remove(&found->link);
            *complete = found->state;
            free(found);
        }
    } else if ((found = malloc(sizeof *found))) {
        *found = (piece){.block = block, .have = have, .elements = elements, .state = state};
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
    if (hand->have == hand->elements)
        complete = hand->state;
    else
        status = add_piece(job->axis, hand->block, hand->have, hand->elements, hand->state, &complete, &error);
    hand->state = NULL;
    if (complete) status = finish_block(queue, job, hand->block, complete, &error);
    free(complete);
    if (status != CR_OK) cr_queue_stop(queue, job, &error);
    hand->holds = false;
    cr_queue_unhold(queue, job);
}

cr_status cr_job_axis_take_up(cr_queue *queue, cr_job_axis_hand *hand, cr_job *job, uint64_t block, uint64_t elements,
                              cr_error *error) {
    cr_job_axis *axis = job->axis;
    const cr_axis_spec *spec = place_of(axis, block).spec;
    if (hand->state && hand->job == job && hand->block == block) return CR_OK;
    cr_job_axis_let_go(queue, hand);
    if (!cr_queue_hold(queue, job)) return cr_fail(error, CR_CANCELLED, "the call is over");
    hand->have = 0;
    hand->holds = true;
    hand->state = take_piece(axis, block, &hand->have);
    if (!hand->state) {
        /* Aligned, because a vector of digits that lies across lines of the cache costs twice. */
        hand->state = aligned_alloc(64, (cr_columns_bytes(spec) + 63) / 64 * 64);
        if (hand->state) cr_columns_init(spec, hand->state);
    }
    if (!hand->state) {
        hand->holds = false;
        cr_queue_unhold(queue, job);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of state", cr_columns_bytes(spec));
    }
    hand->job = job;
    hand->block = block;
    hand->elements = elements;
    return CR_OK;
}

void cr_job_axis_fold(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, cr_error *error) {
    cr_job *job = claim->job;
    const cr_job_axis *axis = job->axis;
    uint64_t at = claim->index, end = at + claim->bytes / job->element;
    if (cr_job_axis_is_empty(axis)) return;
    if (axis->keys) {
        cr_job_axis_fold_keys(queue, claim, error);
        return;
    }
    if (cr_axis_by_offsets(&axis->spec)) {
        cr_job_axis_fold_offsets(queue, hand, claim, error);
        at = end;
    }
    while (at < end) {
        const uint8_t *data = claim->data + (at - claim->index) * job->element;
        const uint64_t block = block_of(axis, at);
        const place in = place_of(axis, block);
        const uint64_t offset = at - in.first, left = (end < in.end ? end : in.end) - at;
        if (offset == 0 && left >= in.elements) {
            const uint64_t blocks = left / in.elements;
            if (whole_blocks(queue, hand, claim, data, &in, blocks, error) != CR_OK) return;
            at += blocks * in.elements;
            continue;
        }
        uint64_t now = in.elements - offset < left ? in.elements - offset : left;
        if (cr_job_axis_take_up(queue, hand, job, block, in.elements, error) != CR_OK) return;
        const cr_view view = cr_claim_view(claim, data, in.in_array, offset);
        cr_cpu_columns_fold_view(in.spec, hand->state, &view, now, offset);
        hand->have += now;
        at += now;
        if (hand->have == in.elements) cr_job_axis_let_go(queue, hand); /* what it answers counts as this claim's */
    }
    if (job->in_order || job->most_claims) cr_job_axis_let_go(queue, hand); /* the next claim may be another worker's */
}

static cr_output *empty_next(cr_job_axis *axis, void *out[], cr_error *error) {
    const cr_axis_spec *spec = &axis->spec;
    uint64_t all = spec->shape.outer * spec->shape.inner, count = cr_job_axis_answers_at_once(axis);
    if (all - axis->empty_next < count) count = all - axis->empty_next;
    if (!count) return NULL;
    cr_partial none;
    cr_partial_init(&none, spec->dtype, spec->families);
    cr_output *output = cr_job_axis_output_new(axis, axis->empty_next, count, out, error);
    for (uint32_t k = 0; output && k < spec->op_count; k++) {
        uint8_t *status = spec->statuses ? out[spec->op_count + k] : NULL;
        if (cr_axis_store_or(&none, spec->ops[k], &spec->finish, axis->empty_next, out[k], status, error) != CR_OK) {
            free(output);
            return NULL;
        }
        for (uint64_t i = 1; i < count; i++) memcpy((uint8_t *)out[k] + i * axis->width[k], out[k], axis->width[k]);
        if (status) memset(status, status[0], count);
    }
    if (output) output_done(axis, output, out);
    axis->empty_next += count;
    return output;
}

cr_output *cr_job_axis_empty_next(cr_job_axis *axis, cr_error *error) {
    void *out[CR_AXIS_PLACES];
    return empty_next(axis, out, error);
}

cr_status cr_job_axis_empty_write(cr_job *job, bool *more, cr_output **statuses, cr_error *error) {
    void *out[CR_AXIS_PLACES];
    cr_output *output = empty_next(job->axis, out, error);
    *more = output != NULL;
    if (!output) return error->code;
    const cr_status status = write_output(job, output, out, error);
    *statuses = statuses_of(job->axis, output, out);
    return status;
}

uint64_t cr_job_axis_value_bytes(const cr_job_axis *axis) {
    const uint64_t width = axis->answer_bytes - (axis->spec.statuses ? axis->spec.op_count : 0);
    return width * (axis->spec.shape.outer * axis->spec.shape.inner);
}
