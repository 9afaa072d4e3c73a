/* merge: records of a length and a partial, cut out of the stream. Thread: the loop's. Owner: the call. */
#include "server/call/merge.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"
#include "server/base/clock.h"
#include "server/base/metrics.h"
#include "server/call/check.h"
#include "server/native/reply.h"

enum { LENGTH_BYTES = 4 };

typedef struct cr_merge {
    uint64_t merged;
    uint32_t used; /* bytes of record, which begins with a length */
    uint8_t record[LENGTH_BYTES + CR_SERIAL_MAX_BYTES];
    cr_share sum, next;
} cr_merge;

cr_status cr_merge_begin(cr_call *call, cr_error *error) {
    if (call->merge) return CR_OK;
    call->merge = malloc(sizeof *call->merge);
    if (!call->merge) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    call->merge->merged = call->merge->used = 0;
    return CR_OK;
}

void cr_merge_room(cr_call *call, uint8_t **at, size_t *room) {
    *at = call->merge->record + call->merge->used;
    *room = sizeof call->merge->record - call->merge->used;
}

/* The first partial says what type all are of, and whether the asked ops can be answered from them. */
static cr_status add(cr_call *call, const uint8_t *bytes, size_t len, cr_error *error) {
    cr_merge *m = call->merge;
    cr_share *into = m->merged ? &m->next : &m->sum;
    cr_status status = cr_share_unpack(bytes, len, into, error);
    if (status != CR_OK) return status;
    if (m->merged++) return cr_share_merge(&m->sum, &m->next, error);
    call->dtype = (cr_dtype)m->sum.partial.dtype;
    status = cr_request_check_ops(call, error);
    if (status == CR_OK && call->families & ~m->sum.partial.families)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: it was not made for all of the ops that are asked for");
    return status;
}

cr_status cr_merge_advance(cr_call *call, size_t bytes, cr_error *error) {
    cr_merge *m = call->merge;
    m->used += (uint32_t)bytes;
    uint32_t at = 0;
    while (m->used - at >= LENGTH_BYTES) {
        uint32_t len;
        memcpy(&len, m->record + at, sizeof len);
        len = le32toh(len);
        if (len > CR_SERIAL_MAX_BYTES)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partial: its length is %u, limit is %d", len,
                           CR_SERIAL_MAX_BYTES);
        if (m->used - at - LENGTH_BYTES < len) break;
        cr_status status = add(call, m->record + at + LENGTH_BYTES, len, error);
        if (status != CR_OK) return status;
        at += LENGTH_BYTES + len;
    }
    m->used -= at;
    memmove(m->record, m->record + at, m->used);
    return CR_OK;
}

cr_status cr_merge_end(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_merge *m = call->merge;
    if (!m || !m->merged) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there was none to merge");
    if (m->used) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: END came in the middle of one");
    uint64_t took = cr_now_ns() - call->arrived_ns;
    cr_wire_timing timing = {0, took, took};
    cr_metric_add(calls_ok, 1);
    if (r->want_partial)
        cr_reply_partial(call->conn, call->stream, &m->sum, &timing);
    else
        cr_reply_result(call->conn, call->stream, &m->sum.partial, r->ops, r->op_count, &call->finish, &timing);
    return CR_OK;
}
