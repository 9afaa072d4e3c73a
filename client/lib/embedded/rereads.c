/* rereads: calls with ops by rank (kernels/core/quantile.h), whose input is read several times: each read is a job of its own, over the
 * same memory, file or kept stream. Other ops of the call are folded with the first.
 *
 * Thread: the one that uses the connection. Owner: the work. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/options.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/order.h"

/* Their answers' type. */
static cr_dtype result_of(const cr_ask *ask) {
    return ask->finish.result_dtype != CR_DTYPE_NONE ? ask->finish.result_dtype : CR_F64;
}

static bool skips(const cr_ask *ask) { return ask->finish.nan == CR_NAN_SKIP; }

cr_status cr_local_rank(const cr_ask *ask, const cr_quantile_item *all, const cr_view *view, uint64_t elements,
                        uint64_t *bits, cr_error *error) {
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    uint64_t answers[CR_QUANTILE_ITEMS];
    uint32_t at[CR_QUANTILE_ITEMS];
    const uint32_t count = cr_cl_ranked_items(ask->ops, ask->op_count, all, items, at);
    const cr_order order = {ask->dtype, result_of(ask), items, count, skips(ask)};
    const size_t bytes = cr_order_scratch(&order, elements);
    void *scratch = aligned_alloc(CR_LOCAL_ALIGNMENT, bytes + CR_LOCAL_ALIGNMENT);
    if (scratch == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu bytes of counts", bytes);
    cr_cpu_order(&order, view, elements, scratch, answers);
    free(scratch);
    for (uint32_t i = 0; i < count; i++) bits[at[i]] = answers[i];
    return CR_OK;
}

void cr_local_value(const cr_ask *ask, const cr_partial *partial, const uint64_t *bits, uint32_t i, cr_value *value) {
    const cr_op op = (cr_op)ask->ops[i];
    if (cr_op_closing(op) == CR_CLOSING_ORDER)
        cr_quantile_value(op, result_of(ask), bits[i], value);
    else
        cr_partial_finish(partial, op, &ask->finish, value);
}

cr_status cr_local_counts(cr_cl_ranked *ranked, const cr_view *view, uint64_t elements, cr_error *error) {
    ranked->counts = calloc(cr_quantile_words(&ranked->asked), sizeof ranked->counts[0]);
    if (ranked->counts == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
    cr_cpu_quantile_fold(&ranked->asked, ranked->counts, view, elements);
    return CR_OK;
}

/* Zeroed counts for the next read; false: no memory. */
static bool new_counts(cr_rereads *r) {
    free(r->counts);
    r->counts = calloc(cr_quantile_words(&r->state), sizeof r->counts[0]);
    return r->counts != NULL;
}

cr_status cr_rereads_begin(cr_work *work, const cr_local_input *input, cr_error *error) {
    const cured_call *call = work->call;
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    if (call->ranked == NULL || call->geometry != CR_GEOMETRY_WHOLE) return CR_OK;
    const bool once = call->ranked->counts_only;
    if (!once && call->kind == KIND_STREAM && input->bytes != UINT64_MAX &&
        cr_work_check_stream(input->bytes, error) != CR_OK)
        return error->code;
    cr_rereads *r = work->rereads = calloc(1, sizeof *r);
    if (r == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    const cr_ask ask = cr_local_ask(call);
    const uint32_t count = cr_cl_ranked_items(ask.ops, ask.op_count, call->ranked->items, items, r->at);
    cr_quantile_begin(&r->state, ask.dtype, items, count, skips(&ask));
    r->once = once;
    if (once) r->state = call->ranked->asked;
    r->input = *input;
    return new_counts(r) ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
}

void cr_rereads_free(cr_rereads *r) {
    if (r != NULL) free(r->counts);
    free(r);
}

/* The times of all reads are those of the first begin and the last end. */
static void take_job(cr_work *work) {
    cr_rereads *r = work->rereads;
    const cr_job *job = work->job;
    if (r->opened_ns == 0) {
        r->partial = job->partial;
        r->opened_ns = job->opened_ns;
        r->first_claim_ns = job->first_claim_ns != 0 ? job->first_claim_ns : job->done_ns;
    }
    r->done_ns = job->done_ns;
    r->bytes = job->folded_bytes;
}

bool cr_rereads_next(cr_work *work, cr_error *error) {
    cr_rereads *r = work->rereads;
    cured_call *call = work->call;
    take_job(work);
    error->code = CR_OK;
    if (r->once) {
        call->ranked->counts = r->counts;
        r->counts = NULL;
        return false;
    }
    if (!cr_quantile_next(&r->state, r->counts)) {
        const cr_ask ask = cr_local_ask(call);
        for (uint32_t i = 0; i < r->state.count; i++)
            call->ranked->bits[r->at[i]] = cr_quantile_finish(&r->state, i, result_of(&ask));
        return false;
    }
    if (!new_counts(r)) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
        return true;
    }
    if (work->memory != NULL) { /* a kept stream is memory now */
        r->input.memory = work->memory;
        r->input.bytes = work->received;
    }
    return true;
}
