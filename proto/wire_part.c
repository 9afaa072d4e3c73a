/* wire_part: messages whose long bytes stay where they are: a head is packed for them to follow, and unpacking points at them.
 * protobuf-c would copy them twice. ArrayPart, and what gRPC brings in one piece with its array.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. Format: the Protocol Buffers
 * encoding guide (protobuf.dev/programming-guides/encoding). */
#include <string.h>

#include "proto/wire.h"
#include "proto/wire_internal.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

bool cr_wire_get_varint(const uint8_t *in, size_t len, size_t *at, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < len; shift += 7) {
        uint8_t byte = in[(*at)++];
        if (shift == 63 && byte > 1) return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

bool cr_wire_next_field(const uint8_t *in, size_t len, size_t *position, cr_wire_field *field) {
    uint64_t tag;
    size_t at = *position;
    field->bytes = NULL;
    field->value = 0;
    if (!cr_wire_get_varint(in, len, &at, &tag) || tag >> 3 == 0) return false;
    field->number = tag >> 3;
    unsigned type = tag & 7;
    size_t skip = type == FIXED64 ? 8 : type == FIXED32 ? 4 : 0;
    if (type == VARINT || type == BYTES) {
        if (!cr_wire_get_varint(in, len, &at, &field->value)) return false;
        if (type == BYTES) {
            field->bytes = in + at;
            if (field->value > len - at) return false;
            skip = (size_t)field->value;
        }
    } else if (!skip) {
        return false; /* groups: not in proto3 */
    }
    if (skip > len - at) return false;
    *position = at + skip;
    return true;
}

static size_t put_varint(uint8_t *out, uint64_t value) {
    size_t n = 0;
    for (; value > 0x7f; value >>= 7) out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

size_t cr_wire_pack_part_head(const cr_wire_part *m, uint8_t *out, size_t cap) {
    if (cap < CR_WIRE_PART_HEAD_BYTES || cap - CR_WIRE_PART_HEAD_BYTES < m->statuses_len) return 0;
    size_t n = 0;
    out[n++] = 1 << 3 | VARINT;
    n += put_varint(out + n, m->op);
    out[n++] = 2 << 3 | VARINT;
    n += put_varint(out + n, m->first);
    if (m->statuses_len) {
        out[n++] = 4 << 3 | BYTES;
        n += put_varint(out + n, m->statuses_len);
        memcpy(out + n, m->statuses, m->statuses_len);
        n += m->statuses_len;
    }
    out[n++] = 3 << 3 | BYTES;
    return n + put_varint(out + n, m->values_len);
}

cr_status cr_wire_unpack_part(const uint8_t *in, size_t len, cr_wire_part *m, cr_error *error) {
    *m = (cr_wire_part){0};
    size_t at = 0;
    cr_wire_field field;
    while (cr_wire_next_field(in, len, &at, &field)) {
        bool is_bytes = field.bytes != NULL;
        if (field.number <= 4 && is_bytes != (field.number >= 3)) break;
        if (field.number == 1) m->op = field.value < CR_CALL_MAX_OPS ? (uint32_t)field.value : CR_CALL_MAX_OPS;
        if (field.number == 2) m->first = field.value;
        if (field.number == 3) m->values = field.bytes, m->values_len = (size_t)field.value;
        if (field.number == 4) m->statuses = field.bytes, m->statuses_len = (size_t)field.value;
    }
    if (at != len) return cr_fail(error, CR_INVALID_ARGUMENT, "ArrayPart is not a valid protobuf message");
    if (m->op >= CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ArrayPart.op is beyond %d, the most a call has", CR_CALL_MAX_OPS);
    return CR_OK;
}

cr_wire_scan cr_wire_find_bulk(const uint8_t *in, size_t len, uint64_t whole, uint32_t number, cr_wire_bulk *found) {
    cr_wire_field field;
    for (size_t at = 0; at < len;) {
        uint64_t tag;
        size_t behind = at;
        bool cut = len < whole;
        found->head = at;
        if (!cr_wire_get_varint(in, len, &behind, &tag)) return cut && behind == len ? CR_SCAN_MORE : CR_SCAN_BAD;
        if (number != 0 && tag == ((uint64_t)number << 3 | BYTES)) {
            if (!cr_wire_get_varint(in, len, &behind, &found->bytes))
                return cut && behind == len ? CR_SCAN_MORE : CR_SCAN_BAD;
            found->at = behind;
            return found->bytes <= whole - behind ? CR_SCAN_BULK : CR_SCAN_BAD;
        }
        if (!cr_wire_next_field(in, len, &at, &field)) return cut ? CR_SCAN_MORE : CR_SCAN_BAD;
    }
    found->head = len;
    return len < whole ? CR_SCAN_MORE : CR_SCAN_NONE;
}

size_t cr_wire_pack_field_head(uint32_t number, uint64_t bytes, uint8_t *out) {
    size_t n = put_varint(out, (uint64_t)number << 3 | BYTES);
    return n + put_varint(out + n, bytes);
}
