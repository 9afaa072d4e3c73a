/* wire_fast: the two messages that every small call has, by hand: a plain Call is read and written without protobuf-c, a plain
 * ReduceResponse is read without it, and every one is written so. protobuf-c's general walk through descriptors took half of the
 * daemon's time for a call of 1 KiB, and two thirds of the client's. A Call is plain with an axis, statuses and a few outputs, too.
 *
 * What is read here is read exactly as protobuf-c would; whatever is unusual (other fields, another order, repeated or
 * overlong ones) is left to it. What is written here is what protobuf-c would write, byte for byte.
 * tests/unit/proto/test_wire_fast.c compares both.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire.h"
#include "proto/wire_internal.h"

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* A varint of at most 63 bits. Most have one byte. */
static inline bool take_varint(cursor *c, uint64_t *value) {
    uint64_t v = 0;
    if (c->at < c->end && *c->at < 0x80) {
        *value = *c->at++;
        return true;
    }
    for (unsigned shift = 0; shift < 63 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = v;
            return true;
        }
    }
    return false;
}

/* The field with this one-byte tag, when it comes next; 0 otherwise. False when it is malformed or above most. */
static inline bool take_field(cursor *c, uint8_t tag, uint64_t most, uint64_t *value) {
    *value = 0;
    if (c->at == c->end || *c->at != tag) return true;
    c->at++;
    return take_varint(c, value) && *value <= most;
}

static inline bool take_u32(cursor *c, uint8_t tag, uint32_t *value) {
    uint64_t v;
    bool good = take_field(c, tag, UINT32_MAX, &v);
    *value = (uint32_t)v;
    return good;
}

static inline bool take_enum(cursor *c, uint8_t tag, uint32_t *value) {
    uint64_t v;
    bool good = take_field(c, tag, INT32_MAX, &v);
    *value = (uint32_t)v;
    return good;
}

/* The message or bytes with this tag, which must come next and be shorter than 128 bytes. */
static inline bool take_inner(cursor *c, uint8_t tag, cursor *inner) {
    if (c->end - c->at < 2 || c->at[0] != tag || c->at[1] >= 0x80 || c->at[1] > c->end - c->at - 2) return false;
    *inner = (cursor){c->at + 2, c->at + 2 + c->at[1]};
    c->at = inner->end;
    return true;
}

static bool take_ops(cursor *c, cr_wire_reduce *m) {
    cursor ops;
    if (!take_inner(c, 2 << 3 | 2, &ops)) return false;
    uint64_t op, seen = 0;
    for (m->op_count = 0; ops.at < ops.end; m->op_count++) {
        if (m->op_count == CR_CALL_MAX_OPS || !take_varint(&ops, &op) || op > 63 || seen >> op & 1) return false;
        seen |= (uint64_t)1 << op;
        m->ops[m->op_count] = (uint32_t)op;
    }
    return m->op_count > 0;
}

/* A length known (in a field that is there even when it is 0), or the flag that says it is not, and no more. */
static bool take_length(cursor *c, uint8_t known, uint8_t unknown, cr_wire_reduce *m) {
    uint64_t flag = 0;
    m->length = 0;
    m->length_known = c->at < c->end && *c->at == known;
    bool good =
        m->length_known ? take_field(c, known, UINT64_MAX, &m->length) : take_field(c, unknown, 1, &flag) && flag != 0;
    return good && c->at == c->end;
}

/* gRPC: the array is in the request, and its length may be told. */
static bool take_inline(cursor *c, cr_wire_reduce *m) {
    const uint8_t tag = 3 << 3 | 2, known = CR_SOURCE_INLINE << 3;
    cursor input;
    m->source = CR_SOURCE_INLINE;
    m->offset = m->length = 0;
    m->length_known = c->at < c->end && *c->at == tag;
    if (!m->length_known) return true;
    return take_inner(c, tag, &input) && input.at < input.end && *input.at == known &&
           take_field(&input, known, UINT64_MAX, &m->length) && input.at == input.end;
}

static bool take_input(cursor *c, cr_wire_reduce *m) {
    cursor input, source;
    if (!take_inner(c, 3 << 3 | 2, &input) || input.at == input.end) return false;
    m->source = (cr_wire_source)(*input.at >> 3); /* the fields of Input have the numbers of the list */
    if (!take_inner(&input, (uint8_t)(m->source << 3 | 2), &source) || input.at != input.end) return false;
    m->offset = 0;
    switch (m->source) {
        case CR_SOURCE_STREAM:
            return take_length(&source, 1 << 3, 2 << 3, m);
        case CR_SOURCE_DESCRIPTOR:
            return take_field(&source, 1 << 3, UINT64_MAX, &m->offset) && take_length(&source, 2 << 3, 3 << 3, m);
        case CR_SOURCE_REGION:
            return take_field(&source, 1 << 3, UINT64_MAX, &m->region) &&
                   take_field(&source, 2 << 3, UINT64_MAX, &m->offset) && take_length(&source, 3 << 3, 4 << 3, m);
        case CR_SOURCE_REGIONS:
        case CR_SOURCE_INLINE:
            break;
    }
    return false;
}

static bool take_axis(cursor *c, cr_wire_reduce *m) {
    const uint8_t tag = 8 << 3 | 2;
    cursor axis = {c->at, c->at};
    m->has_axis = c->at < c->end && *c->at == tag;
    if (m->has_axis && !take_inner(c, tag, &axis)) return false;
    return take_field(&axis, 1 << 3, UINT64_MAX, &m->outer) && take_field(&axis, 2 << 3, UINT64_MAX, &m->n) &&
           take_field(&axis, 3 << 3, UINT64_MAX, &m->inner) && axis.at == axis.end;
}

/* Tags of two bytes: fields of numbers from 16 on. */
enum { OUTPUTS_TAG = 17 << 3 | 2, STATUSES_TAG = 18 << 3, TAG_LOW = 0x80, TAG_HIGH = 1 };

/* Moves behind the first byte of a tag of two, when it comes next, so that the second is a tag of one. */
static bool take_tag_low(cursor *c, unsigned tag) {
    if (c->end - c->at < 2 || c->at[0] != (tag % 0x80 | TAG_LOW) || c->at[1] != tag / 0x80) return false;
    c->at++;
    return true;
}

/* None, or one for each op. outputs: NULL, or where they go. */
static bool take_outputs(cursor *c, cr_wire_reduce *m, cr_wire_output *outputs) {
    uint64_t op, seen = 0;
    cursor one;
    for (m->outputs = 0; take_tag_low(c, OUTPUTS_TAG); m->outputs++) {
        cr_wire_output output;
        if (!take_inner(c, TAG_HIGH, &one) || !take_field(&one, 1 << 3, UINT32_MAX, &op)) return false;
        if (!take_field(&one, 2 << 3, UINT64_MAX, &output.region)) return false;
        if (!take_field(&one, 3 << 3, UINT64_MAX, &output.offset) || one.at != one.end) return false;
        if (op >= m->op_count || seen >> op & 1 || output.region == 0) return false;
        seen |= (uint64_t)1 << op;
        if (outputs) outputs[op] = output;
    }
    return m->outputs == 0 || m->outputs == m->op_count;
}

static bool take_statuses(cursor *c, cr_wire_reduce *m) {
    uint64_t flag = 0;
    const bool good = !take_tag_low(c, STATUSES_TAG) || take_field(c, TAG_HIGH, 1, &flag);
    m->statuses = flag != 0;
    return good;
}

static bool read_reduce(cursor *c, bool (*input)(cursor *, cr_wire_reduce *), cr_wire_reduce *r,
                        cr_wire_output *outputs) {
    if (!take_enum(c, 1 << 3, &r->dtype) || !take_ops(c, r) || !input(c, r)) return false;
    if (!take_enum(c, 4 << 3, &r->nan) || !take_enum(c, 5 << 3, &r->result_dtype)) return false;
    if (!take_field(c, 6 << 3, UINT64_MAX, &r->ddof) || !take_enum(c, 7 << 3, &r->overflow)) return false;
    r->want_partial = r->unplaced = false;
    r->first = 0;
    r->kernel[0] = '\0';
    return take_axis(c, r) && take_outputs(c, r, outputs) && take_statuses(c, r) && c->at == c->end;
}

static bool read_call(const uint8_t *in, size_t len, cr_wire_call *m, cr_wire_output *outputs) {
    cursor call = {in, in + len}, reduce;
    if (!take_u32(&call, 1 << 3, &m->timeout_ms) || !take_u32(&call, 2 << 3, &m->progress_ms)) return false;
    if (m->timeout_ms > CR_TIMEOUT_MAX_MS || !take_inner(&call, 3 << 3 | 2, &reduce) || call.at != call.end)
        return false;
    m->kind = CR_CALL_REDUCE;
    return read_reduce(&reduce, take_input, &m->reduce, outputs);
}

bool cr_wire_read_plain_call(const uint8_t *in, size_t len, cr_wire_call *m) { return read_call(in, len, m, NULL); }

bool cr_wire_read_plain_outputs(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS]) {
    cr_wire_call call;
    return read_call(in, len, &call, outputs) && call.reduce.outputs != 0;
}

bool cr_wire_read_plain_reduce(const uint8_t *in, size_t len, cr_wire_reduce *m) {
    cursor reduce = {in, in + len};
    return read_reduce(&reduce, take_inline, m, NULL);
}

/* The bytes with this tag, when they come next, into to[0..most) with zeros behind them. False: there are more. */
static inline bool take_bytes(cursor *c, uint8_t tag, uint8_t *to, size_t most, uint8_t *len) {
    cursor bytes = {c->at, c->at};
    memset(to, 0, most);
    if (c->at < c->end && *c->at == tag && !take_inner(c, tag, &bytes)) return false;
    const size_t n = (size_t)(bytes.end - bytes.at);
    if (n > most) return false;
    memcpy(to, bytes.at, n);
    *len = (uint8_t)n;
    return true;
}

/* An answer without a message. */
static bool take_op_result(cursor *c, cr_wire_op_result *m) {
    uint64_t inexact;
    if (!take_enum(c, 1 << 3, &m->op) || !take_u32(c, 2 << 3, &m->status)) return false;
    if (!take_enum(c, 4 << 3, &m->dtype)) return false;
    if (!take_bytes(c, 5 << 3 | 2, m->value, sizeof m->value, &m->value_len)) return false;
    if (!take_bytes(c, 6 << 3 | 2, m->at, sizeof m->at, &m->at_len)) return false;
    if (!take_field(c, 7 << 3, 1, &inexact)) return false;
    m->inexact = inexact != 0;
    m->message[0] = '\0';
    return c->at == c->end;
}

static bool take_timing(cursor *c, cr_wire_timing *t) {
    const uint8_t tag = 3 << 3 | 2;
    cursor timing = {c->at, c->at};
    if (c->at < c->end && *c->at == tag && !take_inner(c, tag, &timing)) return false;
    return take_field(&timing, 1 << 3, UINT64_MAX, &t->queue_ns) &&
           take_field(&timing, 2 << 3, UINT64_MAX, &t->run_ns) &&
           take_field(&timing, 3 << 3, UINT64_MAX, &t->total_ns) && timing.at == timing.end;
}

bool cr_wire_read_plain_result(const uint8_t *in, size_t len, cr_wire_result *m) {
    const uint8_t tag = 1 << 3 | 2;
    cursor c = {in, in + len}, op;
    for (m->result_count = 0; c.at < c.end && *c.at == tag; m->result_count++) {
        if (m->result_count == CR_CALL_MAX_OPS || !take_inner(&c, tag, &op)) return false;
        if (!take_op_result(&op, &m->results[m->result_count])) return false;
    }
    m->partial = NULL;
    m->partial_len = 0;
    if (!take_field(&c, 2 << 3, UINT64_MAX, &m->count) || !take_timing(&c, &m->timing)) return false;
    return take_field(&c, 5 << 3, UINT64_MAX, &m->written) && c.at == c.end;
}

static size_t varint_size(uint64_t v) { return 1 + (size_t)(63 - __builtin_clzll(v | 1)) / 7; }

/* A field with a tag of one byte; none when the value is 0, as proto3 has it. */
static size_t field_size(uint64_t v) { return v ? 1 + varint_size(v) : 0; }
static size_t bytes_size(size_t n) { return n ? 1 + varint_size(n) + n : 0; }

static uint8_t *put_varint(uint8_t *out, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *out++ = (uint8_t)(v | 0x80);
    *out++ = (uint8_t)v;
    return out;
}

static uint8_t *put_field(uint8_t *out, uint8_t tag, uint64_t v) {
    if (!v) return out;
    *out++ = tag;
    return put_varint(out, v);
}

static uint8_t *put_bytes(uint8_t *out, uint8_t tag, const void *bytes, size_t n) {
    if (!n) return out;
    *out++ = tag;
    out = put_varint(out, n);
    memcpy(out, bytes, n);
    return out + n;
}

/* Enums are signed on the wire. */
static uint64_t enum_bits(uint32_t v) { return (uint64_t)(int64_t)(int32_t)v; }

typedef struct op_lengths {
    size_t all, message, value, at;
} op_lengths;

static op_lengths measure_op(const cr_wire_op_result *m) {
    op_lengths n = {.message = strlen(m->message),
                    .value = m->value_len < CR_WIRE_VALUE_BYTES ? m->value_len : CR_WIRE_VALUE_BYTES,
                    .at = m->at_len < sizeof m->at ? m->at_len : sizeof m->at};
    n.all = field_size(enum_bits(m->op)) + field_size(m->status) + bytes_size(n.message) +
            field_size(enum_bits(m->dtype)) + bytes_size(n.value) + bytes_size(n.at) + field_size(m->inexact);
    return n;
}

static uint8_t *put_op(uint8_t *out, const cr_wire_op_result *m, const op_lengths *n) {
    *out++ = 1 << 3 | 2;
    out = put_varint(out, n->all);
    out = put_field(out, 1 << 3, enum_bits(m->op));
    out = put_field(out, 2 << 3, m->status);
    out = put_bytes(out, 3 << 3 | 2, m->message, n->message);
    out = put_field(out, 4 << 3, enum_bits(m->dtype));
    out = put_bytes(out, 5 << 3 | 2, m->value, n->value);
    out = put_bytes(out, 6 << 3 | 2, m->at, n->at);
    return put_field(out, 7 << 3, m->inexact);
}

size_t cr_wire_pack_result(const cr_wire_result *m, uint8_t *out, size_t cap) {
    op_lengths ops[CR_CALL_MAX_OPS];
    const cr_wire_timing *t = &m->timing;
    size_t count = m->result_count < CR_CALL_MAX_OPS ? m->result_count : CR_CALL_MAX_OPS;
    size_t partial = m->partial ? m->partial_len : 0;
    size_t timing = field_size(t->queue_ns) + field_size(t->run_ns) + field_size(t->total_ns);
    size_t all = field_size(m->count) + 2 + timing + bytes_size(partial) + field_size(m->written);
    for (size_t i = 0; i < count; i++) {
        ops[i] = measure_op(&m->results[i]);
        all += 1 + varint_size(ops[i].all) + ops[i].all;
    }
    if (all > cap) return 0;
    uint8_t *start = out;
    for (size_t i = 0; i < count; i++) out = put_op(out, &m->results[i], &ops[i]);
    out = put_field(out, 2 << 3, m->count);
    *out++ = 3 << 3 | 2;
    *out++ = (uint8_t)timing; /* at most 33 */
    out = put_field(out, 1 << 3, t->queue_ns);
    out = put_field(out, 2 << 3, t->run_ns);
    out = put_field(out, 3 << 3, t->total_ns);
    out = put_bytes(out, 4 << 3 | 2, m->partial, partial);
    out = put_field(out, 5 << 3, m->written);
    return (size_t)(out - start);
}

/* A message of fewer than 128 bytes: its tag, and room for its length, which end_inner fills in. */
static uint8_t *begin_inner(uint8_t *out, uint8_t tag) {
    *out = tag;
    return out + 2;
}

static uint8_t *end_inner(uint8_t *begin, uint8_t *end) {
    begin[-1] = (uint8_t)(end - begin);
    return end;
}

/* One of the two fields of a length, which is there even when it is 0. */
static uint8_t *put_length(uint8_t *out, uint8_t known, uint8_t unknown, const cr_wire_reduce *m) {
    *out++ = m->length_known ? known : unknown;
    return put_varint(out, m->length_known ? m->length : 1);
}

static uint8_t *put_input(uint8_t *out, const cr_wire_reduce *m) {
    uint8_t *input = begin_inner(out, 3 << 3 | 2), *source = begin_inner(input, (uint8_t)(m->source << 3 | 2));
    uint8_t *at = source;
    if (m->source == CR_SOURCE_STREAM) {
        at = put_length(at, 1 << 3, 2 << 3, m);
    } else if (m->source == CR_SOURCE_DESCRIPTOR) {
        at = put_length(put_field(at, 1 << 3, m->offset), 2 << 3, 3 << 3, m);
    } else {
        at = put_field(put_field(at, 1 << 3, m->region), 2 << 3, m->offset);
        at = put_length(at, 3 << 3, 4 << 3, m);
    }
    return end_inner(input, end_inner(source, at));
}

static uint8_t *put_axis(uint8_t *out, const cr_wire_reduce *m) {
    uint8_t *axis = begin_inner(out, 8 << 3 | 2);
    uint8_t *at = put_field(put_field(axis, 1 << 3, m->outer), 2 << 3, m->n);
    return end_inner(axis, put_field(at, 3 << 3, m->inner));
}

static uint8_t *put_output(uint8_t *out, uint32_t op, const cr_wire_output *m) {
    *out++ = OUTPUTS_TAG % 0x80 | TAG_LOW;
    uint8_t *output = begin_inner(out, TAG_HIGH), *at = put_field(output, 1 << 3, op);
    return end_inner(output, put_field(put_field(at, 2 << 3, m->region), 3 << 3, m->offset));
}

/* More than the longest Call has, without and with what axes have. */
enum { PLAIN_CALL_BYTES = 160, AXIS_BYTES = 40, OUTPUT_BYTES = 28, PLAIN_OUTPUTS = 4 };

static uint8_t *put_reduce(uint8_t *at, const cr_wire_reduce *r, const cr_wire_output *outputs) {
    uint8_t *ops = begin_inner(put_field(at, 1 << 3, enum_bits(r->dtype)), 2 << 3 | 2);
    at = ops;
    for (uint32_t i = 0; i < r->op_count; i++) {
        if (r->ops[i] >= 0x80) return NULL;
        *at++ = (uint8_t)r->ops[i];
    }
    at = put_input(end_inner(ops, at), r);
    at = put_field(at, 4 << 3, enum_bits(r->nan));
    at = put_field(at, 5 << 3, enum_bits(r->result_dtype));
    at = put_field(at, 6 << 3, r->ddof);
    at = put_field(at, 7 << 3, enum_bits(r->overflow));
    if (r->has_axis) at = put_axis(at, r);
    for (uint32_t i = 0; outputs && i < r->op_count; i++) at = put_output(at, i, &outputs[i]);
    if (!r->statuses) return at;
    *at++ = STATUSES_TAG % 0x80 | TAG_LOW;
    return put_field(at, TAG_HIGH, 1);
}

size_t cr_wire_write_plain_call(const cr_wire_call *m, const cr_wire_output *outputs, uint8_t *out, size_t cap) {
    const cr_wire_reduce *r = &m->reduce;
    if (m->kind != CR_CALL_REDUCE || r->source < CR_SOURCE_STREAM || r->source > CR_SOURCE_REGION) return 0;
    if (r->want_partial || r->unplaced || r->first || r->kernel[0]) return 0;
    if (!r->op_count || r->op_count > (outputs ? PLAIN_OUTPUTS : CR_CALL_MAX_OPS)) return 0;
    if (cap <
        PLAIN_CALL_BYTES + (r->has_axis || r->statuses ? AXIS_BYTES : 0) + (outputs ? r->op_count * OUTPUT_BYTES : 0))
        return 0;
    uint8_t *at = put_field(put_field(out, 1 << 3, m->timeout_ms), 2 << 3, m->progress_ms);
    uint8_t *reduce = begin_inner(at, 3 << 3 | 2);
    at = put_reduce(reduce, r, outputs);
    return at && at - reduce < 0x80 ? (size_t)(end_inner(reduce, at) - out) : 0;
}
