/* wire_part: messages whose long bytes stay where they are: a head is packed for them to follow, and what gRPC brings in one piece
 * with its array is looked through.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. Format: the Protocol Buffers
 * encoding guide (protobuf.dev/programming-guides/encoding). */
#include <string.h>

#include "proto/wire_table.h"

bool cr_wire_next_field(const uint8_t *in, size_t len, size_t *position, cr_wire_field *field) {
    if (*position == len) return false;
    const uint8_t *at = in + *position;
    if (!cr_wire_take_field(&at, in + len, field)) return false;
    *position = (size_t)(at - in);
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
    out[n++] = 1 << 3 | CR_VARINT;
    n += put_varint(out + n, m->op);
    out[n++] = 2 << 3 | CR_VARINT;
    n += put_varint(out + n, m->first);
    if (m->statuses_len) {
        out[n++] = 4 << 3 | CR_BYTES;
        n += put_varint(out + n, m->statuses_len);
        memcpy(out + n, m->statuses, m->statuses_len);
        n += m->statuses_len;
    }
    out[n++] = 3 << 3 | CR_BYTES;
    return n + put_varint(out + n, m->values_len);
}

cr_wire_scan cr_wire_find_bulk(const uint8_t *in, size_t len, uint64_t whole, uint32_t number, cr_wire_bulk *found) {
    const bool cut = len < whole;
    cr_wire_field field;
    for (size_t at = 0; at < len;) {
        const uint8_t *behind = in + at, *const end = in + len;
        uint64_t tag;
        found->head = at;
        if (!cr_wire_take_varint(&behind, end, &tag)) return cut && behind == end ? CR_SCAN_MORE : CR_SCAN_BAD;
        if (number != 0 && tag == ((uint64_t)number << 3 | CR_BYTES)) {
            if (!cr_wire_take_varint(&behind, end, &found->bytes))
                return cut && behind == end ? CR_SCAN_MORE : CR_SCAN_BAD;
            found->at = (size_t)(behind - in);
            return found->bytes <= whole - found->at ? CR_SCAN_BULK : CR_SCAN_BAD;
        }
        if (!cr_wire_next_field(in, len, &at, &field)) return cut ? CR_SCAN_MORE : CR_SCAN_BAD;
    }
    found->head = len;
    return len < whole ? CR_SCAN_MORE : CR_SCAN_NONE;
}

size_t cr_wire_pack_field_head(uint32_t number, uint64_t bytes, uint8_t *out) {
    size_t n = put_varint(out, (uint64_t)number << 3 | CR_BYTES);
    return n + put_varint(out + n, bytes);
}
