/* whole: answers along an axis in the one message of Reduce. So few that the job never pauses for want of a reader: they wait in it until all
 * are there. Then they are gathered and packed, in one go.
 *
 * Thread: the loop's. Owner: the stream; what is gathered is the loop's, and means nothing once a go is over. */
#include <string.h>

#include "server/grpc/stream.h"

/* The answers of each op in their order, one op behind the other. The statuses follow them in the same way. */
static struct {
    uint8_t bytes[CR_GRPC_WHOLE_BYTES];
    bool has_status[CR_CALL_MAX_OPS]; /* an answer of the op has another than 0 */
} gathered;

cr_status cr_grpc_whole_check(const cr_grpc_stream *stream, const cr_wire_reduce *asked, cr_error *error) {
    uint64_t width = 0;
    if (stream->method->parts || cr_call_geometry(stream->call) == CR_GEOMETRY_WHOLE) return CR_OK;
    if (asked->want_partial)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: one by key comes in parts, and Reduce answers by one message: call ReduceStream");
    for (uint32_t i = 0; i < asked->op_count; i++) width += cr_call_answer_bytes(stream->call, i) + asked->statuses;
    if (!width || cr_call_answers(stream->call) <= CR_GRPC_WHOLE_BYTES / width) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "%s for %llu answers of %llu bytes, and the message that answers Reduce has room for %d bytes: call "
                   "ReduceStream, which sends them in parts",
                   cr_call_asks(stream->call), (unsigned long long)cr_call_answers(stream->call),
                   (unsigned long long)width, CR_GRPC_WHOLE_BYTES);
}

/* Where what belongs to the op begins. */
static size_t values_at(const cr_grpc_stream *stream, uint32_t op) {
    size_t width = 0;
    for (uint32_t i = 0; i < op; i++) width += cr_call_answer_bytes(stream->call, i);
    return width * (size_t)cr_call_answers(stream->call);
}

static size_t statuses_at(const cr_grpc_stream *stream, const cr_wire_reduce *asked, uint32_t op) {
    return values_at(stream, asked->op_count) + op * (size_t)cr_call_answers(stream->call);
}

void cr_grpc_whole_parts(cr_grpc_stream *stream) {
    cr_part part;
    cr_error error;
    if (!cr_call_is_folded(stream->call)) return;
    const cr_wire_reduce *asked = &cr_call_request(stream->call)->reduce;
    memset(gathered.has_status, 0, sizeof gathered.has_status);
    if (asked->statuses)
        memset(gathered.bytes + statuses_at(stream, asked, 0), 0,
               asked->op_count * (size_t)cr_call_answers(stream->call));
    for (;;) {
        const cr_pull pulled = cr_call_part(stream->call, sizeof gathered.bytes, &part);
        if (pulled == CR_PULLED) return; /* it is answered by cr_grpc_whole_reply, or has failed */
        if (pulled == CR_LATER) break;
        memcpy(gathered.bytes + values_at(stream, part.op) +
                   (size_t)part.first * cr_call_answer_bytes(stream->call, part.op),
               part.values, part.bytes);
        if (part.statuses)
            memcpy(gathered.bytes + statuses_at(stream, asked, part.op) + part.first, part.statuses, part.status_count);
        gathered.has_status[part.op] |= part.statuses != NULL;
        cr_call_sent(stream->call);
    }
    cr_fail(&error, CR_INTERNAL, "answers along the axis are missing");
    cr_call_cancel(stream->call, &error);
}

/* A field of bytes, which are not copied where there are none. */
static uint8_t *put(uint8_t *to, uint32_t number, const uint8_t *bytes, size_t n) {
    if (!n) return to;
    to += cr_wire_pack_field_head(number, n, to);
    memcpy(to, bytes, n);
    return to + n;
}

enum { RESULTS = 1, RESULT_VALUE = 5, RESULT_STATUSES = 8, HEADS = 36 /* of a result, its values and its statuses */ };

void cr_grpc_whole_reply(cr_grpc_stream *stream, const uint8_t *packed, size_t n, const cr_wire_reduce *asked) {
    const size_t answers = (size_t)cr_call_answers(stream->call);
    const size_t all = statuses_at(stream, asked, asked->statuses ? asked->op_count : 0);
    uint8_t *const room = cr_grpc_reply_room(stream, n + all + HEADS * asked->op_count), *to = room;
    uint32_t op = 0;
    cr_wire_field field;
    if (!room) return;
    for (size_t at = 0, from = 0; cr_wire_next_field(packed, n, &at, &field); from = at) {
        if (field.number != RESULTS || !field.bytes) {
            memcpy(to, packed + from, at - from);
            to += at - from;
            continue;
        }
        const size_t values = answers * cr_call_answer_bytes(stream->call, op);
        const size_t statuses = gathered.has_status[op] ? answers : 0;
        uint8_t head[12];
        const size_t inner = (size_t)field.value +
                             (values ? cr_wire_pack_field_head(RESULT_VALUE, values, head) + values : 0) +
                             (statuses ? cr_wire_pack_field_head(RESULT_STATUSES, statuses, head) + statuses : 0);
        to += cr_wire_pack_field_head(RESULTS, inner, to);
        memcpy(to, field.bytes, (size_t)field.value);
        to += field.value;
        to = put(to, RESULT_VALUE, gathered.bytes + values_at(stream, op), values);
        to = put(to, RESULT_STATUSES, gathered.bytes + statuses_at(stream, asked, op), statuses);
        op++;
    }
    cr_grpc_reply_message(stream, (size_t)(to - room));
}
