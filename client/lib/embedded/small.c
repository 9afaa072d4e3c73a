/* small: calls that take one turn and no job: small arrays, and merges of partials.
 *
 * Thread: the one that uses the connection. Owner: the call. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/embedded/split.h"
#include "kernels/core/keyed.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/offsets.h"

enum { SCRATCH_ALIGNMENT = 64 };

bool cr_local_is_pooled(const cured_call *call, const cr_local_input *input) {
    return call->calls->local->pooled && call->geometry == CR_GEOMETRY_WHOLE && input->memory != NULL &&
           call->block == NULL && call->ranked == NULL;
}

bool cr_small_takes(const cured_call *call, const cr_local_input *input) {
    void *out[CR_AXIS_PLACES];
    const bool pooled = input->bytes <= CR_LOCAL_POOLED_BYTES && cr_local_is_pooled(call, input);
    if (input->memory == NULL || (input->bytes > CR_LOCAL_SMALL_BYTES && !pooled)) return false;
    if (call->geometry == CR_GEOMETRY_KEYS) return false; /* it has a state, which its job holds */
    if (call->array == NULL) return true;
    return (input->bytes != 0 || call->geometry == CR_GEOMETRY_OFFSETS) && cr_cl_array_places(call->array, out);
}

static void run_axis(cured_call *call) {
    cr_error error;
    void *out[CR_AXIS_PLACES];
    const cr_axis_spec spec = cr_local_spec(call);
    const bool segments = cr_axis_by_offsets(&spec);
    size_t bytes =
        ((segments ? cr_offsets_scratch : cr_axis_scratch)(&spec) / SCRATCH_ALIGNMENT + 1) * SCRATCH_ALIGNMENT;
    void *scratch = aligned_alloc(SCRATCH_ALIGNMENT, bytes);
    cr_cl_array_places(call->array, out);
    const cr_view view = {call->data, call->mask, call->second.data};
    const uint64_t elements = call->data_bytes / cr_dtype_size(spec.dtype);
    cr_status status;
    if (scratch == NULL)
        status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of scratch", bytes);
    else if (segments)
        status = cr_cpu_offsets_view(&spec, &view, 0, elements, 0, spec.shape.outer, scratch, out, &error);
    else
        status = cr_cpu_axis_blocks_view(&spec, &view, 0, spec.shape.outer, scratch, out, &error);
    free(scratch);
    call->count = segments ? cr_offsets_span(&spec.offsets) : elements;
    if (status == CR_OK) cr_cl_array_filled(call);
    if (status == CR_OK) status = cr_local_write_outputs(call, &error);
    cr_cl_call_finish(call, status, 0, status == CR_OK ? "" : error.text);
}

/* ---- merges ---- */

struct merging {
    cr_share sum, next;
};

static cr_status merge_next(struct merging *m, bool first, cr_keyed_bytes record, cr_error *error) {
    cr_status status = cr_share_unpack(record.data, record.length, first ? &m->sum : &m->next, error);
    return status != CR_OK || first ? status : cr_share_merge(&m->sum, &m->next, error);
}

/* The records that cured_merge made, one behind the other. */
static cr_status merge_all(const cured_call *call, struct merging *m, cr_error *error) {
    const uint8_t *at = call->data, *end = at + call->data_bytes;
    if (at == end) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there was none to merge");
    for (bool first = true; at < end; first = false) {
        cr_status status = merge_next(m, first, cr_cl_record_next(&at), error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

static cr_status check_merged(cured_call *call, const cr_share *sum, cr_error *error) {
    cr_ask ask = cr_local_ask(call);
    ask.dtype = (cr_dtype)sum->partial.dtype;
    ask.folded = true;
    cr_status status = cr_ask_ops(&ask, &call->needs, error);
    return status == CR_OK ? cr_share_answers(sum, ask.ops, ask.op_count, !ask.partial, error) : status;
}

static cr_status keep_share(cured_call *call, const cr_share *share, cr_error *error) {
    uint8_t *packed = malloc(CR_SERIAL_MAX_BYTES);
    if (packed == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the partial");
    call->partial_bytes = cr_share_pack(share, packed, CR_SERIAL_MAX_BYTES);
    uint8_t *fitting = realloc(packed, call->partial_bytes);
    call->partial = fitting != NULL ? fitting : packed;
    return CR_OK;
}

static void give_values(cured_call *call, const cr_partial *partial) {
    const cr_ask ask = cr_local_ask(call);
    for (uint32_t i = 0; i < ask.op_count; i++) {
        cr_value value;
        cr_local_value(&ask, partial, call->ranked != NULL ? call->ranked->bits : NULL, i, &value);
        cr_cl_value_set(&call->values[i], &value, partial->dtype);
    }
}

/* How many records there are; parts NULL: they are only counted. */
static size_t list_records(const cured_call *call, cr_keyed_bytes *parts) {
    size_t count = 0;
    for (const uint8_t *at = call->data; at < call->data + call->data_bytes; count++) {
        const cr_keyed_bytes record = cr_cl_record_next(&at);
        if (parts != NULL) parts[count] = record;
    }
    return count;
}

/* The partials by key of those, for the caller to free. */
static cr_status list_keyed(const cured_call *call, cr_keyed_bytes **parts, size_t *count, cr_error *error) {
    *count = list_records(call, NULL);
    *parts = malloc(*count * sizeof **parts);
    if (*parts == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    list_records(call, *parts);
    return CR_OK;
}

/* The answers of a merged partial by key, where the program wants them. */
static cr_status finish_keyed(cured_call *call, const uint8_t *merged, uint64_t length, cr_error *error) {
    void *out[CR_AXIS_PLACES];
    uint8_t *statuses[CURED_MAX_OPS];
    const cr_ask ask = cr_local_ask(call);
    if (!cr_cl_array_places(call->array, out))
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "on_part: merges by key in this process answer at once; leave it out, or give results");
    for (uint32_t k = 0; k < ask.op_count; k++) statuses[k] = out[ask.op_count + k];
    const bool some = cr_cl_array_wants_statuses(call->array);
    cr_status status =
        cr_keyed_finish(merged, (size_t)length, ask.ops, ask.op_count, &ask.finish, out, some ? statuses : NULL, error);
    if (status == CR_OK) cr_cl_array_filled(call);
    return status;
}

static void run_merge_keyed(cured_call *call) {
    cr_error error = {CR_OK, ""};
    cr_keyed_bytes *parts;
    cr_keyed of;
    size_t count, which;
    uint8_t *merged = NULL;
    uint64_t length = 0;
    cr_ask ask = cr_local_ask(call);
    ask.dtype = (cr_dtype)call->input_dtype;
    ask.folded = true;
    cr_status status = list_keyed(call, &parts, &count, &error);
    if (status == CR_OK) status = cr_ask_ops(&ask, &call->needs, &error);
    if (status == CR_OK) status = cr_keyed_merge(parts, count, &merged, &length, &which, &error);
    if (status == CR_OK) status = cr_keyed_check(merged, (size_t)length, &of, &call->count, &error);
    if (status == CR_OK) status = cr_keyed_answers(&of, ask.ops, ask.op_count, &error);
    if (status == CR_OK && call->request.reduce.want_partial) {
        call->partial = merged;
        call->partial_bytes = (size_t)length;
        merged = NULL;
    } else if (status == CR_OK) {
        status = finish_keyed(call, merged, length, &error);
    }
    free(merged);
    free(parts);
    cr_cl_call_finish(call, status, 0, error.text);
}

static void run_merge(cured_call *call) {
    cr_error error = {CR_OK, ""};
    struct merging *m = malloc(sizeof *m);
    cr_status status =
        m != NULL ? merge_all(call, m, &error) : cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    if (status == CR_OK) status = check_merged(call, &m->sum, &error);
    if (status == CR_OK) {
        call->count = m->sum.partial.n;
        if (call->request.reduce.want_partial)
            status = keep_share(call, &m->sum, &error);
        else
            give_values(call, &m->sum.partial);
    }
    free(m);
    cr_cl_call_finish(call, status, 0, error.text);
}

void cr_local_answer(cured_call *call, const cr_partial *partial, const cured_timing *timing) {
    cr_error error = {CR_OK, ""};
    cr_status status = CR_OK;
    call->timing = *timing;
    call->count = partial->n;
    if (!call->request.reduce.want_partial) {
        give_values(call, partial);
    } else {
        cr_share *share = malloc(sizeof *share);
        uint64_t base = call->request.reduce.unplaced ? CR_UNPLACED : call->request.reduce.first;
        if (share == NULL)
            status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for the partial");
        else if (call->block != NULL)
            status = cr_share_make_block(share, partial, &call->block->at, &error);
        else
            status = cr_share_make(share, partial, base, &error);
        if (status == CR_OK) status = keep_share(call, share, &error);
        free(share);
    }
    cr_cl_call_finish(call, status, 0, error.text);
}

void cr_small_run(cured_call *call) {
    const cr_ask ask = cr_local_ask(call);
    if (call->request.kind == CR_CALL_MERGE) {
        call->request.reduce.keyed ? run_merge_keyed(call) : run_merge(call);
        return;
    }
    uint64_t begin = cr_now_ns();
    if (call->array != NULL) {
        run_axis(call);
        call->timing =
            (cured_timing){begin - call->start_ns, call->elapsed_ns - (begin - call->start_ns), call->elapsed_ns};
        return;
    }
    cr_partial partial;
    cr_partial_init(&partial, ask.dtype, call->needs.families);
    cr_partial_want(&partial, call->needs.wants);
    const cr_view view = {call->data, call->mask, call->second.data};
    const uint64_t elements = call->data_bytes / cr_dtype_size(ask.dtype);
    if (call->block != NULL)
        cr_cpu_fold_layout(&partial, &call->block->at, call->data, elements, 0);
    else if (call->calls->local->pooled)
        cr_split_fold(&partial, &view, elements, ask.first);
    else
        cr_cpu_fold_view(&partial, &view, elements, ask.first);
    cr_error error;
    if (call->ranked != NULL) {
        const cr_status status = call->ranked->counts_only ? cr_local_counts(call->ranked, &view, elements, &error)
                                                           : cr_local_rank(&ask, call->ranked->items, &view, elements,
                                                                           call->ranked->bits, &error);
        if (status != CR_OK) {
            cr_cl_call_finish(call, error.code, 0, error.text);
            return;
        }
    }
    uint64_t end = cr_now_ns();
    const cured_timing timing = {begin - call->start_ns, end - begin, end - call->start_ns};
    cr_local_answer(call, &partial, &timing);
}
