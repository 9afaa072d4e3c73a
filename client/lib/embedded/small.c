/* small: calls that take one turn and no job: small arrays.
 *
 * Thread: the one that uses the connection. Owner: the call. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/embedded/split.h"
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

cr_status cr_local_keep_share(cured_call *call, const cr_share *share, cr_error *error) {
    uint8_t *packed = malloc(CR_SERIAL_MAX_BYTES);
    if (packed == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the partial");
    call->partial_bytes = cr_share_pack(share, packed, CR_SERIAL_MAX_BYTES);
    uint8_t *fitting = realloc(packed, call->partial_bytes);
    call->partial = fitting != NULL ? fitting : packed;
    return CR_OK;
}

void cr_local_give_values(cured_call *call, const cr_partial *partial) {
    const cr_ask ask = cr_local_ask(call);
    for (uint32_t i = 0; i < ask.op_count; i++) {
        cr_value value;
        cr_local_value(&ask, partial, call->ranked != NULL ? call->ranked->bits : NULL, i, &value);
        cr_cl_value_set(&call->values[i], &value, partial->dtype);
    }
}

void cr_local_answer(cured_call *call, const cr_partial *partial, const cured_timing *timing) {
    cr_error error = {CR_OK, ""};
    cr_status status = CR_OK;
    call->timing = *timing;
    call->count = partial->n;
    if (!call->request.reduce.want_partial) {
        cr_local_give_values(call, partial);
    } else {
        cr_share *share = malloc(sizeof *share);
        uint64_t base = call->request.reduce.unplaced ? CR_UNPLACED : call->request.reduce.first;
        if (share == NULL)
            status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for the partial");
        else if (call->block != NULL)
            status = cr_share_make_block(share, partial, &call->block->at, &error);
        else
            status = cr_share_make(share, partial, base, &error);
        if (status == CR_OK) status = cr_local_keep_share(call, share, &error);
        free(share);
    }
    cr_cl_call_finish(call, status, 0, error.text);
}

void cr_small_run(cured_call *call) {
    const cr_ask ask = cr_local_ask(call);
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
