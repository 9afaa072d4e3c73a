/* wire_write: writes every message, by a function that is made from its rows, byte for byte as protobuf-c would: fields by number, none
 * that is 0, enums packed.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. Every function here takes where it
 * writes, and returns where it ended; NULL: it did not fit. */
#include <string.h>

#include "proto/wire_table.h"

struct cr_wire_writer {
    uint8_t *end;
    const cr_wire_aside *aside;
};

#define INLINE __attribute__((always_inline)) static inline /* the kind of a row is settled by the compiler */

enum { NUMBER_BYTES = 12 }; /* a tag of two bytes and a varint of ten */

INLINE size_t varint_size(uint64_t v) { return 1 + (size_t)(63 - __builtin_clzll(v | 1)) / 7; }

INLINE uint8_t *put_varint(uint8_t *at, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

INLINE uint8_t *put_tag(uint8_t *at, const cr_wire_row *row) {
    return put_varint(at, (uint32_t)row->number << 3 | row->wire);
}

/* Whether a tag, this number and `more` bytes fit. */
INLINE bool has_room(const cr_wire_writer *w, const uint8_t *at, const cr_wire_row *row, uint64_t v, size_t more) {
    const size_t room = (size_t)(w->end - at), tag = row->number < 16 ? 1 : 2;
    return room >= more && (room - more >= NUMBER_BYTES || room - more >= tag + varint_size(v));
}

INLINE uint8_t *put_number(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, uint64_t v) {
    return has_room(w, at, row, v, 0) ? put_varint(put_tag(at, row), v) : NULL;
}

INLINE uint8_t *put_bytes(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const void *bytes, size_t n) {
    if (!has_room(w, at, row, n, n)) return NULL;
    at = put_varint(put_tag(at, row), n);
    if (n) memcpy(at, bytes, n);
    return at + n;
}

/* The length of what was written from `from` on, in the one byte before it that was left for that. What is longer than 127 bytes
 * moves, to make room. */
INLINE uint8_t *put_length(const cr_wire_writer *w, uint8_t *from, uint8_t *at) {
    const size_t n = (size_t)(at - from);
    if (n < 0x80) {
        from[-1] = (uint8_t)n;
        return at;
    }
    const size_t more = varint_size(n) - 1;
    if (more > (size_t)(w->end - at)) return NULL;
    memmove(from + more, from, n);
    put_varint(from - 1, n);
    return at + more;
}

INLINE uint8_t *write_message(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const uint8_t *base) {
    uint8_t *const from = put_number(w, at, row, 0);
    at = from ? row->write(w, from, base) : NULL;
    return at ? put_length(w, from, at) : NULL;
}

INLINE uint32_t count_of(const cr_wire_row *row, const uint8_t *base) {
    const uint32_t count = *(const uint32_t *)(const void *)(base + row->count);
    return count < row->most ? count : row->most;
}

/* Enums are signed on the wire. */
INLINE uint64_t enum_bits(uint32_t v) { return (uint64_t)(int64_t)(int32_t)v; }

static uint8_t *write_enums(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const uint8_t *base) {
    const uint32_t *const from = (const uint32_t *)(const void *)(base + row->offset), count = count_of(row, base);
    if (count == 0) return at;
    uint8_t *const first = at = put_number(w, at, row, 0);
    for (uint32_t i = 0; i < count && at; i++) {
        const uint64_t v = enum_bits(from[i]);
        at = varint_size(v) <= (size_t)(w->end - at) ? put_varint(at, v) : NULL;
    }
    return at ? put_length(w, first, at) : NULL;
}

/* A field of a oneof is there even if it is 0. */
INLINE uint8_t *write_number(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, uint64_t v) {
    return v || row->chosen_bytes ? put_number(w, at, row, v) : at;
}

static uint8_t *write_double(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (v == 0) return at;
    if (!has_room(w, at, row, 0, sizeof v - 1)) return NULL; /* and one for the number that there is not */
    at = put_tag(at, row);
    for (unsigned i = 0; i < sizeof bits; i++) *at++ = (uint8_t)(bits >> 8 * i);
    return at;
}

INLINE uint8_t *write_bytes(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const void *bytes, size_t n) {
    return n ? put_bytes(w, at, row, bytes, n) : at;
}

INLINE uint8_t *write_list(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const uint8_t *base,
                           const uint8_t *items) {
    const uint32_t count = count_of(row, base);
    const bool are_texts = row->kind == CR_ROW_NAMES || row->kind == CR_ROW_TEXTS;
    for (uint32_t i = 0; i < count && at; i++, items += row->bytes)
        at = are_texts ? put_bytes(w, at, row, items, strlen((const char *)items)) : write_message(w, at, row, items);
    return at;
}

INLINE uint8_t *write_value(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const uint8_t *base,
                            const uint8_t *from) {
    const uint8_t *bytes;
    switch ((cr_row_kind)row->kind) {
        case CR_ROW_U32:
        case CR_ROW_CODE:
            return write_number(w, at, row, *(const uint32_t *)(const void *)from);
        case CR_ROW_ENUM:
            return write_number(w, at, row, enum_bits(*(const uint32_t *)(const void *)from));
        case CR_ROW_U64:
            return write_number(w, at, row, *(const uint64_t *)(const void *)from);
        case CR_ROW_BOOL:
            return write_number(w, at, row, *(const bool *)from);
        case CR_ROW_FLAG:
            return put_number(w, at, row, 1);
        case CR_ROW_DOUBLE:
        case CR_ROW_REAL:
            return write_double(w, at, row, *(const double *)(const void *)from);
        case CR_ROW_TEXT:
        case CR_ROW_NAME:
        case CR_ROW_RAW:
            return *from ? write_bytes(w, at, row, from, strlen((const char *)from)) : at;
        case CR_ROW_BLOB:
            return write_bytes(w, at, row, from, count_of(row, base));
        case CR_ROW_FIXED:
            return put_bytes(w, at, row, from, row->most);
        case CR_ROW_POINTER:
            bytes = *(const uint8_t *const *)(const void *)from;
            return bytes ? write_bytes(w, at, row, bytes, *(const size_t *)(const void *)(base + row->count)) : at;
        case CR_ROW_PASSED:
            return at;
        case CR_ROW_ENUMS:
            return write_enums(w, at, row, base);
        case CR_ROW_MESSAGE:
            return write_message(w, at, row, from);
        case CR_ROW_NAMES:
        case CR_ROW_TEXTS:
        case CR_ROW_LIST:
        case CR_ROW_COUNTED:
            return write_list(w, at, row, base, from);
    }
    return at;
}

/* Whether the oneof of this row says that it is this one. */
INLINE bool is_chosen(const cr_wire_row *row, const uint8_t *base) {
    if (row->chosen_bytes == 0 || row->flags & CR_ALWAYS) return true;
    if (row->chosen_bytes == sizeof(bool)) return base[row->chosen] == row->value;
    return *(const uint32_t *)(const void *)(base + row->chosen) == row->value;
}

INLINE uint8_t *write_row(const cr_wire_writer *w, uint8_t *at, const cr_wire_row *row, const uint8_t *base) {
    if (!is_chosen(row, base)) return at;
    if (!(row->flags & CR_IN_ASIDE)) return write_value(w, at, row, base, base + row->offset);
    return w->aside ? write_value(w, at, row, base, (const uint8_t *)w->aside + row->offset) : at;
}

/* Rows one after the other, by the table. */
static uint8_t *write_any(const cr_wire_writer *w, uint8_t *at, const cr_wire_message *type, const uint8_t *base) {
    for (const cr_wire_row *row = type->rows; row->number && at; row++) at = write_row(w, at, row, base);
    return at;
}

/* The functions of messages: those of parts.def are rows of code, the others tables. */
#define CR_MESSAGE(id, proto, text, T) \
    uint8_t *cr_write_##id(const cr_wire_writer *w, uint8_t *at, const uint8_t *base) {
#define CR_EMIT(no, ...)                                       \
    {                                                          \
        static const cr_wire_row row = {__VA_ARGS__};          \
        if (!(at = write_row(w, at, &row, base))) return NULL; \
    }
#define CR_TABLE(id, T, from, size) \
    (void)w;                        \
    (void)base;                     \
    return at;                      \
    }
#include "proto/table_rows.h"

#include "proto/parts.def"
#undef CR_EMIT
#undef CR_TABLE
#define CR_EMIT(no, ...)
#define CR_TABLE(id, T, from, size)                  \
    return write_any(w, at, &cr_message_##id, base); \
    }
#include "proto/fields.def"

#include "proto/table_end.h"

size_t cr_wire_write(const cr_wire_message *type, const void *m, const cr_wire_aside *aside, uint8_t *out, size_t cap) {
    const cr_wire_writer w = {.end = out + cap, .aside = aside};
    const uint8_t *const at = type->write(&w, out, m);
    return at ? (size_t)(at - out) : 0;
}
