/* job_axis_keys: a job that answers by key. Any claim may have elements of any group, so each worker folds into a state of all cells, which
 * stays with the job between claims; whoever folds the last element merges them and answers. With ops by rank one claim has all elements,
 * which are folded and then brought together by cell.
 *
 * Thread: workers; see job_axis.h. Owner: the job. */
#include <stdlib.h>
#include <string.h>

#include "engine/job_axis_internal.h"
#include "kernels/core/keyed.h"
#include "kernels/cpu/keys/keys.h"

enum { PART_ELEMENTS = 1 << 20 }; /* of a claim of all, between two looks whether the call is over */

struct cr_job_keys {
    cr_keys keys;
    uint32_t wants;
    uint64_t bytes;                       /* of a state, at most */
    uint32_t idle;                        /* guarded by the axis' mutex, as are */
    uint64_t have;                        /* elements that are folded, and */
    cr_by_key *state[CR_JOB_KEYS_STATES]; /* the first `idle`: those that nobody folds into */
};

cr_job_keys *cr_job_keys_new(const cr_keys *keys, uint32_t wants, uint64_t bytes, cr_error *error) {
    cr_job_keys *of = calloc(1, sizeof *of);
    if (!of) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the keys");
        return NULL;
    }
    of->keys = *keys;
    of->wants = wants;
    of->bytes = bytes;
    return of;
}

static void free_states(cr_job_keys *of) {
    for (uint32_t i = 0; i < of->idle; i++) cr_by_key_free(of->state[i]);
    of->idle = 0;
}

bool cr_job_keys_has_states(const cr_job_keys *of) { return of && of->idle; }

void cr_job_keys_free(cr_job_keys *of) {
    if (!of) return;
    free_states(of);
    free(of);
}

/* Merges all states, and answers every cell, or makes the partial of all. Nobody else has one any more, and they go here: the loop need not free so much memory. */
static cr_status finish(cr_queue *queue, cr_job *job, cr_error *error) {
    cr_job_axis *axis = job->axis;
    cr_job_keys *of = axis->keys;
    const bool packs = cr_job_axis_packs(axis);
    const uint64_t all = packs ? 0 : cr_keys_answers(&of->keys), step = packs ? 1 : cr_job_axis_answers_at_once(axis);
    cr_status status = CR_OK;
    for (uint32_t i = 1; i < of->idle && status == CR_OK; i++)
        status = cr_by_key_merge(of->state[0], of->state[i], error);
    if (packs && status == CR_OK) status = cr_by_key_pack(of->state[0], &axis->packed, &axis->packed_bytes, error);
    for (uint64_t at = 0, now; at < all && status == CR_OK; at += now) {
        void *out[CR_AXIS_PLACES];
        now = all - at < step ? all - at : step;
        if (cr_queue_stopped(queue, job)) break;
        cr_output *output = cr_job_axis_output_new(axis, at, now, out, error);
        if (!output) return error->code;
        status = cr_by_key_finish(of->state[0], at, now, out, error);
        if (status == CR_OK)
            status = cr_job_axis_output_emit(queue, job, output, out, error);
        else
            free(output);
    }
    free_states(of);
    return status;
}

cr_status cr_job_axis_pack(cr_job_axis *axis, cr_error *error) {
    const cr_axis_spec *spec = &axis->spec;
    const cr_keyed of = {spec->dtype, spec->families, spec->shape.outer, spec->shape.inner, 0};
    cr_keyed_writer w;
    if (axis->packed) return CR_OK;
    if (cr_keyed_begin(&w, &of, 0, error) != CR_OK) return error->code;
    axis->packed = cr_keyed_end(&w, &axis->packed_bytes);
    return CR_OK;
}

cr_output *cr_job_axis_packed_next(cr_job_axis *axis, cr_error *error) {
    if (cr_job_axis_pack(axis, error) != CR_OK) return NULL;
    const uint64_t left = axis->packed_bytes - axis->packed_next;
    const uint64_t now = left < CR_JOB_AXIS_OUTPUT_BYTES ? left : CR_JOB_AXIS_OUTPUT_BYTES;
    if (!now) return NULL;
    cr_output *output = malloc(sizeof *output + now);
    if (!output) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu bytes of the partial", (unsigned long long)now);
        return NULL;
    }
    cr_list_init(&output->link);
    output->first = axis->packed_next;
    output->count = output->bytes = now;
    output->missing = 0;
    memcpy(output->data, axis->packed + axis->packed_next, now);
    axis->packed_next += now;
    return output;
}

/* A claim beyond may have found a key outside first: the call names the first of all, whoever sees one. */
static void name_first(const cr_keys *keys, uint64_t outside, cr_error *error) {
    for (uint64_t row = 0; row < outside; row++) {
        const uint64_t key = cr_keys_at(keys, row);
        if (key < keys->groups) continue;
        cr_keys_outside(keys, row, key, error);
        return;
    }
}

/* Elements of the claim, from one on. */
static cr_view part_of(const cr_claim *claim, uint64_t at) {
    return cr_claim_view(claim, claim->data + at * claim->job->element, claim->index + at, 0);
}

static cr_status fold_claim(cr_queue *queue, const cr_claim *claim, cr_by_key *state, uint64_t *outside,
                            cr_error *error) {
    cr_job *job = claim->job;
    const uint64_t elements = claim->bytes / job->element, most = job->as_one ? PART_ELEMENTS : elements;
    cr_status status = CR_OK;
    *outside = UINT64_MAX;
    for (uint64_t at = 0, now; at < elements && status == CR_OK; at += now) {
        const cr_view view = part_of(claim, at);
        now = elements - at < most ? elements - at : most;
        status = cr_by_key_fold(state, &view, now, claim->index + at, outside, error);
        if (job->as_one && cr_queue_stopped(queue, job)) return cr_fail(error, CR_CANCELLED, "the call is over");
    }
    if (!job->as_one) return status;
    if (status == CR_OK) status = cr_by_key_rank(state, error);
    for (uint64_t at = 0, now; at < elements && status == CR_OK; at += now) {
        const cr_view view = part_of(claim, at);
        now = elements - at < most ? elements - at : most;
        cr_by_key_put(state, &view, now, claim->index + at);
        if (cr_queue_stopped(queue, job)) return cr_fail(error, CR_CANCELLED, "the call is over");
    }
    return status;
}

void cr_job_axis_fold_keys(cr_queue *queue, const cr_claim *claim, cr_error *error) {
    cr_job *job = claim->job;
    cr_job_axis *axis = job->axis;
    cr_job_keys *of = axis->keys;
    const uint64_t elements = claim->bytes / job->element, all = cr_keys_elements(&of->keys);
    uint64_t outside;
    pthread_mutex_lock(&axis->mutex);
    cr_by_key *state = of->idle ? of->state[--of->idle] : NULL;
    pthread_mutex_unlock(&axis->mutex);
    if (!state && cr_by_key_new(&axis->spec, &of->keys, of->wants, &state, error) != CR_OK) return;
    cr_by_key_bound(state, of->bytes);
    const cr_status status = fold_claim(queue, claim, state, &outside, error);
    pthread_mutex_lock(&axis->mutex);
    of->state[of->idle++] = state;
    if (status == CR_OK) of->have += elements;
    const bool last = of->have == all;
    pthread_mutex_unlock(&axis->mutex);
    if (status == CR_OK && last) finish(queue, job, error);
    if (status != CR_OK && outside != UINT64_MAX) name_first(&of->keys, outside, error);
}
