/* job_axis_merged: the answers of a job from partials by key, or their merged partial, a step at a time.
 *
 *   parts ──merge, some cells a step──▶ one partial ──the parts go back──▶ finish, an output a step ──▶ outputs
 *                                                            └──(a spec without ops)──▶ axis->packed
 *
 * Thread: one at a time; whoever steps has a hold on the job. Owner: a merging owns its parts and what it made of them. */
#include <stdlib.h>

#include "engine/job_axis_internal.h"
#include "engine/memory/bulk.h"

enum {
    STEP_CELLS = 4096,      /* parts that are opened, and cells of parts that are read: some milliseconds */
    STEP_PARTS = 16 * 1024, /* that are freed */
};

struct cr_merging {
    cr_job *job;
    cr_keyed_bytes *parts;
    size_t count;
    cr_keyed_merger *merger; /* NULL behind the last cell */
    void *heap;              /* the merger's memory, while that goes back */
    uint64_t heap_left;
    uint8_t *bytes; /* the merged partial, until the job has it */
    uint64_t length, at;
    cr_keyed_finisher *finisher;
};

cr_merging *cr_merging_new(cr_job *job, cr_keyed_bytes *parts, size_t count, cr_error *error) {
    cr_merging *m = calloc(1, sizeof *m);
    if (!m) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
        return NULL;
    }
    if (cr_keyed_merger_new(parts, count, &m->merger, error) != CR_OK) {
        free(m);
        return NULL;
    }
    m->job = job;
    m->parts = parts;
    m->count = count;
    return m;
}

bool cr_merging_free_parts(cr_keyed_bytes *parts, size_t *count) {
    for (uint64_t bytes = 0, n = 0; *count; (*count)--) {
        cr_keyed_bytes *last = &parts[*count - 1];
        uint64_t left = last->length;
        if (bytes >= CR_BULK_STEP_BYTES || n++ == STEP_PARTS) return true;
        bytes += left;
        if (left < CR_BULK_BYTES) {
            free((void *)(uintptr_t)last->data);
        } else if (cr_bulk_step((void *)(uintptr_t)last->data, &left)) {
            last->length = (size_t)left;
            return true;
        }
    }
    return false;
}

/* Gives back the merger, which goes no further: what it has made, if the partial was not whole, is given back as that is. */
static bool free_merger(cr_merging *m) {
    if (m->merger) {
        m->heap = m->merger;
        m->heap_left = cr_keyed_merger_bytes(m->count);
        if (!m->bytes) m->bytes = cr_keyed_merger_take(m->merger, &m->length);
        m->merger = NULL;
    }
    return cr_bulk_free(&m->heap, &m->heap_left);
}

/* What only the merging reads. True: there is more. */
static bool empty_step(cr_merging *m) { return free_merger(m) || cr_merging_free_parts(m->parts, &m->count); }

bool cr_merging_over_step(cr_merging *m) {
    if (empty_step(m)) return true;
    void *bytes = m->bytes;
    const bool more = cr_bulk_free(&bytes, &m->length);
    m->bytes = bytes;
    return more;
}

void cr_merging_free(cr_merging *m) {
    if (!m) return;
    while (cr_merging_over_step(m)) continue;
    free(m->parts);
    free(m->finisher);
    free(m);
}

/* All parts are one. */
static void merged(cr_merging *m) {
    cr_job_axis *axis = m->job->axis;
    axis->spec.shape.n = cr_keyed_merger_elements(m->merger);
    axis->empty_next = axis->spec.shape.outer; /* of no elements, too, the answers are made here */
    m->bytes = cr_keyed_merger_end(m->merger, &m->length);
}

/* All parts are back: what is left of them. */
static cr_status begin_answers(cr_merging *m, bool *more, cr_error *error) {
    cr_job_axis *axis = m->job->axis;
    uint32_t ops[CR_AXIS_MAX_OPS];
    if (cr_job_axis_packs(axis)) {
        axis->packed = m->bytes;
        axis->packed_bytes = m->length;
        m->bytes = NULL;
        return CR_OK;
    }
    for (uint32_t k = 0; k < axis->spec.op_count; k++) ops[k] = (uint32_t)axis->spec.ops[k];
    *more = axis->spec.shape.outer != 0;
    return cr_keyed_finisher_new(m->bytes, (size_t)m->length, ops, axis->spec.op_count, &axis->spec.finish,
                                 &m->finisher, error);
}

static cr_status finish(cr_merging *m, cr_queue *queue, bool *more, cr_error *error) {
    cr_job_axis *axis = m->job->axis;
    const uint64_t all = axis->spec.shape.outer, step = cr_job_axis_answers_at_once(axis);
    const uint64_t now = all - m->at < step ? all - m->at : step;
    void *out[CR_AXIS_PLACES];
    uint8_t *statuses[CR_AXIS_MAX_OPS];
    cr_output *output = cr_job_axis_output_new(axis, m->at, now, out, error);
    if (!output) return error->code;
    for (uint32_t k = 0; axis->spec.statuses && k < axis->spec.op_count; k++)
        statuses[k] = out[axis->spec.op_count + k];
    const cr_status status = cr_keyed_finish_next(m->finisher, now, out, axis->spec.statuses ? statuses : NULL, error);
    m->at += now;
    *more = m->at < all;
    if (status == CR_OK) return cr_job_axis_output_emit(queue, m->job, output, out, error);
    free(output);
    return status;
}

cr_status cr_merging_step(cr_merging *m, cr_queue *queue, bool *more, cr_error *error) {
    size_t which;
    bool over;
    *more = false;
    if (m->finisher) return finish(m, queue, more, error);
    if (m->bytes) {
        *more = empty_step(m);
        return *more ? CR_OK : begin_answers(m, more, error);
    }
    const cr_status status = cr_keyed_merger_step(m->merger, STEP_CELLS, &over, &which, error);
    if (status != CR_OK) return status;
    *more = true;
    if (over) merged(m);
    return CR_OK;
}
