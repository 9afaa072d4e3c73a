/* merge: merges of partials, a slice a turn, so that no merge keeps its thread long from looking at deadlines and at other calls.
 *
 *   partials:        records ──▶ one share ──▶ values, or its bytes
 *   partials by key: records ──merge, some cells a slice──▶ one partial ──▶ its bytes, or finish, some answers a slice ──▶ arrays, on_part
 *
 * Thread: the one that uses the connection. Owner: the call; while on_part runs, which may end the call, whoever runs it. */
#include <stdlib.h>

#include "client/lib/embedded/embedded.h"
#include "kernels/core/keyed.h"

enum {
    SLICE_RECORDS = 1024, /* each of these slices takes some milliseconds at most */
    SLICE_CELLS = 4096,
    SLICE_ANSWERS = 4096, /* of each op */
    ALIGNMENT = 16,       /* of an op's answers in `slice`, as malloc's */
};

struct cr_local_merge {
    cured_call *call;        /* NULL: it is over */
    bool handing;            /* on_part runs */
    const uint8_t *at, *end; /* records to come */
    bool begun;              /* sum has some */
    cr_share sum, next;
    /* By key: */
    size_t count;
    cr_keyed_merger *merger;
    cr_keyed of;
    uint8_t *merged;
    uint64_t length, answered;
    cr_keyed_finisher *finisher;
    uint8_t *slice; /* answers on their way to on_part; NULL: they go where the program wants them */
    cr_keyed_bytes parts[];
};

static void merge_free(cr_local_merge *m) {
    cr_keyed_merger_free(m->merger);
    free(m->finisher);
    free(m->merged);
    free(m->slice);
    free(m);
}

void cr_local_merge_drop(cured_call *call) {
    cr_local_merge *m = call->merge;
    call->merge = NULL;
    if (m == NULL) return;
    m->call = NULL;
    if (!m->handing) merge_free(m);
}

/* ---- Partials ---- */

static cr_status check_merged(cured_call *call, const cr_share *sum, cr_error *error) {
    cr_ask ask = cr_local_ask(call);
    ask.dtype = (cr_dtype)sum->partial.dtype;
    ask.folded = true;
    cr_status status = cr_ask_ops(&ask, &call->needs, error);
    return status == CR_OK ? cr_share_answers(sum, ask.ops, ask.op_count, !ask.partial, error) : status;
}

static cr_status merge_records(cr_local_merge *m, bool *more, cr_error *error) {
    cured_call *call = m->call;
    cr_status status = CR_OK;
    if (m->at == m->end) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there was none to merge");
    for (uint32_t i = 0; i < SLICE_RECORDS && m->at < m->end && status == CR_OK; i++) {
        const cr_keyed_bytes record = cr_cl_record_next(&m->at);
        status = cr_share_unpack(record.data, record.length, m->begun ? &m->next : &m->sum, error);
        if (status == CR_OK && m->begun) status = cr_share_merge(&m->sum, &m->next, error);
        m->begun = true;
    }
    *more = m->at < m->end;
    if (status != CR_OK || *more) return status;
    status = check_merged(call, &m->sum, error);
    if (status != CR_OK) return status;
    call->count = m->sum.partial.n;
    if (call->request.reduce.want_partial) return cr_local_keep_share(call, &m->sum, error);
    cr_local_give_values(call, &m->sum.partial);
    return CR_OK;
}

/* ---- By key ---- */

static cr_status begin_keyed(cr_local_merge *m, cr_error *error) {
    cured_call *call = m->call;
    cr_keyed_reader first;
    cr_ask ask = cr_local_ask(call);
    ask.dtype = (cr_dtype)call->input_dtype;
    ask.folded = true;
    cr_status status = cr_ask_ops(&ask, &call->needs, error);
    if (status == CR_OK) status = cr_keyed_open(&first, m->parts[0].data, m->parts[0].length, error);
    if (status == CR_OK) status = cr_keyed_answers(&first.of, ask.ops, ask.op_count, error);
    if (status != CR_OK) return status;
    m->of = first.of;
    return cr_keyed_merger_new(m->parts, m->count, &m->merger, error);
}

/* Of an op's answers in `slice`; their statuses lie behind. */
static size_t slice_bytes(const cured_call *call, uint32_t op) {
    return (cr_cl_array_size(call->array, op) * SLICE_ANSWERS / ALIGNMENT + 1) * ALIGNMENT;
}

/* All parts are one. */
static cr_status end_merging(cr_local_merge *m, bool *more, cr_error *error) {
    cured_call *call = m->call;
    call->count = cr_keyed_merger_elements(m->merger);
    m->merged = cr_keyed_merger_end(m->merger, &m->length);
    cr_keyed_merger_free(m->merger);
    m->merger = NULL;
    *more = !call->request.reduce.want_partial;
    if (!*more) {
        call->partial = m->merged;
        call->partial_bytes = (size_t)m->length;
        m->merged = NULL;
        return CR_OK;
    }
    const cr_ask ask = cr_local_ask(call);
    void *out[CR_AXIS_PLACES];
    size_t bytes = 0;
    for (uint32_t k = 0; k < ask.op_count; k++) bytes += slice_bytes(call, k) + SLICE_ANSWERS;
    if (!cr_cl_array_places(call->array, out)) {
        m->slice = malloc(bytes);
        if (m->slice == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for answers");
    }
    return cr_keyed_finisher_new(m->merged, (size_t)m->length, ask.ops, ask.op_count, &ask.finish, &m->finisher, error);
}

/* The next answers go to on_part, which may end the call. */
static void hand_over(cr_local_merge *m, uint64_t count, void *const out[], uint8_t *const statuses[]) {
    const uint32_t op_count = m->call->request.reduce.op_count;
    m->handing = true;
    for (uint32_t k = 0; k < op_count && m->call != NULL; k++) {
        const bool some = cr_cl_array_wants_statuses(m->call->array);
        const cr_wire_part part = {.op = k,
                                   .first = m->answered,
                                   .values = out[k],
                                   .values_len = (size_t)count * cr_cl_array_size(m->call->array, k),
                                   .statuses = some ? statuses[k] : NULL,
                                   .statuses_len = some ? (size_t)count : 0};
        cr_cl_array_take(m->call, &part);
    }
    m->handing = false;
}

static cr_status finish_keyed(cr_local_merge *m, bool *more, cr_error *error) {
    cured_call *call = m->call;
    const uint32_t op_count = call->request.reduce.op_count;
    const uint64_t all = m->of.groups * m->of.columns, left = all - m->answered;
    const uint64_t now = left < SLICE_ANSWERS ? left : SLICE_ANSWERS;
    void *out[CR_AXIS_PLACES];
    uint8_t *statuses[CURED_MAX_OPS], *at = m->slice;
    const bool some = cr_cl_array_wants_statuses(call->array);
    if (m->slice == NULL) cr_cl_array_places(call->array, out);
    for (uint32_t k = 0; k < op_count; k++) {
        if (m->slice != NULL) {
            out[k] = at;
            at += slice_bytes(call, k);
            statuses[k] = at;
            at += SLICE_ANSWERS;
        } else {
            if (some) statuses[k] = (uint8_t *)out[op_count + k] + m->answered;
            out[k] = (uint8_t *)out[k] + m->answered * cr_cl_array_size(call->array, k);
        }
    }
    const cr_status status = cr_keyed_finish_next(m->finisher, now, out, some ? statuses : NULL, error);
    if (status != CR_OK) return status;
    if (m->slice != NULL) hand_over(m, now, out, statuses);
    m->answered += now;
    *more = m->answered < all;
    if (!*more && m->slice == NULL) cr_cl_array_filled(call);
    return CR_OK;
}

static cr_status merge_keyed(cr_local_merge *m, bool *more, cr_error *error) {
    size_t which;
    bool over = false;
    if (m->finisher != NULL) return finish_keyed(m, more, error);
    *more = true;
    cr_status status = m->merger == NULL ? begin_keyed(m, error) : CR_OK;
    if (status == CR_OK) status = cr_keyed_merger_step(m->merger, SLICE_CELLS, &over, &which, error);
    return status == CR_OK && over ? end_merging(m, more, error) : status;
}

/* ---- Both ---- */

/* How many records there are; parts NULL: they are only counted. */
static size_t list_records(const cured_call *call, cr_keyed_bytes *parts) {
    size_t count = 0;
    for (const uint8_t *at = call->data; at < call->data + call->data_bytes; count++) {
        const cr_keyed_bytes record = cr_cl_record_next(&at);
        if (parts != NULL) parts[count] = record;
    }
    return count;
}

static cr_local_merge *merge_new(cured_call *call) {
    const size_t count = call->request.reduce.keyed ? list_records(call, NULL) : 0;
    cr_local_merge *m = malloc(sizeof *m + count * sizeof m->parts[0]);
    if (m == NULL) return NULL;
    m->call = call;
    m->handing = m->begun = false;
    m->at = call->data;
    m->end = call->data + call->data_bytes;
    m->count = count;
    m->merger = NULL;
    m->merged = m->slice = NULL;
    m->answered = 0;
    m->finisher = NULL;
    if (count != 0) list_records(call, m->parts);
    call->merge = m;
    return m;
}

void cr_local_merge_step(cured_call *call) {
    cr_error error = {CR_OK, ""};
    bool more = false;
    cr_local_merge *m = call->merge != NULL ? call->merge : merge_new(call);
    if (m == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for merging");
        return;
    }
    const cr_status status =
        call->request.reduce.keyed ? merge_keyed(m, &more, &error) : merge_records(m, &more, &error);
    if (m->call == NULL) /* on_part has ended the call, and it may be gone */
        merge_free(m);
    else if (status == CR_OK && more)
        cr_cl_call_enqueue(call);
    else
        cr_cl_call_finish(call, status, 0, error.text);
}
