/* annex_takes: which requests an annex answers, and how much of them it waits for. Thread: the annex's. Owner: see annex.h. */
#include <string.h>

#include "server/native/annex.h"
#include "server/native/front.h"

enum { MOST_CALL_BYTES = 4096 }; /* longer requests are home's */

/* Whether such a request is folded where its array lies. */
static bool is_plain(const cr_wire_call *asked) {
    const cr_wire_reduce *r = &asked->reduce;
    if (asked->kind != CR_CALL_REDUCE || r->source != CR_SOURCE_STREAM || r->has_axis || r->has_layout || r->outputs ||
        r->parameters || r->kernel[0] || cr_wire_takes_beside(r) || asked->progress_ms)
        return false;
    for (uint32_t i = 0; i < r->op_count; i++)
        if (cr_op_closing((cr_op)r->ops[i]) == CR_CLOSING_ORDER) return false; /* by rank */
    return true;
}

/* Whether the request is an annex's, and whether it may wait there for its array. */
static bool takes(const cr_conn *conn, const uint8_t *payload, uint32_t bytes, bool *waits) {
    const cr_again *last = &conn->native->calls->again;
    cr_wire_call asked;
    cr_error error;
    const bool again = last->bytes && bytes == last->bytes && memcmp(payload, last->payload, bytes) == 0;
    if (!again && cr_wire_unpack_call(payload, bytes, &asked, &error) != CR_OK) return false;
    const cr_wire_call *request = again ? &last->request : &asked;
    *waits = !request->timeout_ms; /* which counts from the request on */
    return is_plain(request) && !cr_annex_full(conn);
}

size_t cr_annex_needs(const cr_conn *conn, const cr_frame *frame, const uint8_t *p, size_t n) {
    const size_t call = CR_FRAME_HEADER_BYTES + (size_t)frame->length, header = call + CR_FRAME_HEADER_BYTES;
    cr_frame data;
    cr_error error;
    bool waits, skip;
    if (frame->type != CR_FRAME_CALL) return 0;
    if (frame->length > MOST_CALL_BYTES || frame->descriptors || conn->descriptor_count) return CR_ANNEX_HOME;
    if (n < call) return 0; /* as anywhere */
    if (!takes(conn, p + CR_FRAME_HEADER_BYTES, frame->length, &waits)) return CR_ANNEX_HOME;
    if (frame->flags & CR_FLAG_END) return 0; /* of nothing: no DATA comes */
    if (n < header) return waits ? header : CR_ANNEX_HOME;
    if (cr_frame_get(p + call, true, &data, &skip, &error) != CR_OK || data.type != CR_FRAME_DATA ||
        data.stream != frame->stream || !(data.flags & CR_FLAG_END) || data.length > CR_INLINE_BYTES)
        return CR_ANNEX_HOME;
    if (n >= header + data.length) return 0;
    return waits ? header + data.length : CR_ANNEX_HOME;
}
