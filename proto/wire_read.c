/* wire_read: reads every message by its rows. It takes and refuses what protobuf-c does, and refuses besides what protobuf would change
 * in silence: a NUL in a string, a number of more bits than its field has, and in a request a field that nobody knows. Of all that
 * is wrong with a message the worst is told. tests/unit/proto/test_wire_table.c compares it with protobuf-c.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer; nothing is allocated. */
#include <math.h>
#include <string.h>

#include "proto/wire_table.h"

typedef unsigned long long ull;

/* What is wrong, the worst first. Only what is malformed ends the reading at once. */
typedef enum fault { SOUND, MALFORMED, UNKNOWN, MISTYPED } fault;

struct cr_wire_reader {
    const cr_wire_message *all;
    cr_wire_aside *aside;
    cr_error *error;
    cr_wire_manner manner;
    fault fault;
    cr_status status;
    uint32_t left_out; /* items of lists that had no room */
};

enum { MAX_LEFT_OUT = 1024 }; /* a message with more of them, in all its lists, is refused */

/* Why nothing behind it is looked at. */
#define REFUSE(r, ...) \
    ((r)->status = cr_fail((r)->error, CR_INVALID_ARGUMENT, __VA_ARGS__), (r)->fault = MALFORMED, false)

/* A known field of another wire type than its own, or a tag or length longer than need be. */
static void note_mistyped(cr_wire_reader *r) {
    if (r->fault != SOUND) return;
    r->fault = MISTYPED;
    r->status = cr_fail(r->error, CR_INVALID_ARGUMENT, "%s is not a valid protobuf message", r->all->name);
}

enum { FIRST_HINT = 64, LAST_HINT = 99 }; /* numbers of fields of requests that may be ignored */

static const struct numbered {
    const cr_wire_message *type;
    uint32_t number;
    const char *name;
} reserved[] = {
#define CR_RESERVED(message, number, name) {&cr_message_##message, number, name},
#include "proto/reserved.def"
#undef CR_RESERVED
};

/* A field of a request that this program does not know, unless it is a hint. */
static void note_unknown(cr_wire_reader *r, const cr_wire_message *type, uint64_t number) {
    if (r->manner == CR_READ_ANY || (number >= FIRST_HINT && number <= LAST_HINT) || r->fault == UNKNOWN) return;
    r->fault = UNKNOWN;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (reserved[i].type == type && reserved[i].number == number) {
            r->status = cr_fail(r->error, CR_UNIMPLEMENTED, "%s.%s (field %llu) is not in this server", type->name,
                                reserved[i].name, (ull)number);
            return;
        }
    r->status = cr_fail(r->error, CR_UNIMPLEMENTED, "%s has field %llu, which this server does not know", type->name,
                        (ull)number);
}

/* Fields whose bytes come in DATA where the protocol is ours. */
static void note_of_grpc(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row) {
    if (r->manner != CR_READ_OWN || r->fault == UNKNOWN) return;
    r->fault = UNKNOWN;
    r->status =
        cr_fail(r->error, CR_UNIMPLEMENTED, "%s.%s (field %u) is for gRPC; over this protocol its bytes come in DATA",
                type->name, row->name, row->number);
}

#define INLINE __attribute__((always_inline)) static inline /* the kind of a row is settled by the compiler */
#define COLD __attribute__((noinline)) static

/* Compilers write many zeros by an instruction that begins slowly; the C library knows better ones. */
COLD void clear_many(uint8_t *at, size_t bytes) { memset(at, 0, bytes); }

INLINE void clear(uint8_t *base, const cr_wire_row *row) {
    if (row->clear_bytes > 64)
        clear_many(base + row->clear_at, row->clear_bytes);
    else
        memset(base + row->clear_at, 0, row->clear_bytes);
}

/* One number of 32 bits. Enums are signed, and negative ones have 64 bits on the wire. */
COLD bool check_number(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint64_t value) {
    const bool is_enum = row->kind == CR_ROW_ENUM || row->kind == CR_ROW_ENUMS;
    if (is_enum ? value <= INT32_MAX || value >= UINT64_MAX - INT32_MAX : value <= UINT32_MAX) return true;
    return REFUSE(r, "%s.%s is %llu, which is no number of 32 bits", type->name, row->name, (ull)value);
}

INLINE bool read_enum(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                      uint64_t value) {
    uint32_t *const count = (uint32_t *)(void *)(base + row->count);
    if (value > INT32_MAX && !check_number(r, type, row, value)) return false;
    if (*count < row->most) ((uint32_t *)(void *)(base + row->offset))[*count] = (uint32_t)value;
    (*count)++;
    return true;
}

COLD bool read_enums(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                     const uint8_t *at, const uint8_t *end) {
    uint64_t value;
    while (at != end) {
        if (!cr_wire_take_varint(&at, end, &value))
            return REFUSE(r, "%s.%s has a number of more than 64 bits", type->name, row->name);
        if (!read_enum(r, type, row, base, value)) return false;
    }
    return true;
}

/* A field whose wire type is not its row's: right for single enums of a list, which are packed otherwise. bytes: NULL, or value of
 * them. */
COLD bool read_other_wire(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                          unsigned wire, uint64_t value, const uint8_t *bytes) {
    if (row->kind == CR_ROW_ENUMS && wire == CR_VARINT) return read_enum(r, type, row, base, value);
    if (row->kind == CR_ROW_ENUM && bytes) { /* of no use, but its numbers are looked at first */
        cr_wire_row none = *row;
        uint32_t count = 0;
        none.count = none.most = 0;
        if (!read_enums(r, type, &none, (uint8_t *)&count, bytes, bytes + value)) return false;
    }
    note_mistyped(r);
    return true;
}

size_t cr_wire_printable(const char *text, size_t len) {
    const unsigned char *in = (const unsigned char *)text;
    if (len == 0) return 0;
    if (in[0] < 0x80) return in[0] >= 0x20 && in[0] != 0x7f;
    size_t n = in[0] >= 0xf0 ? 4 : in[0] >= 0xe0 ? 3 : 2;
    uint32_t c = in[0] & (0xffu >> (n + 1));
    if (n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((in[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (in[i] & 0x3fu);
    }
    const uint32_t least = n == 2 ? 0xa0 : n == 3 ? 0x800 : 0x10000; /* below 0xa0: the control characters of Latin 1 */
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return in[0] >= 0xc2 && in[0] <= 0xf4 && c >= least && c <= 0x10ffff && !surrogate ? n : 0;
}

/* Copies a peer's string, cut to what fits, with control characters replaced: it will be printed by someone. */
static void copy_text(char *out, size_t cap, const char *in, size_t len) {
    size_t at = 0;
    for (size_t from = 0, n; from < len; from += n, at += n) {
        const size_t good = cr_wire_printable(in + from, len - from);
        n = good ? good : 1;
        if (at + n + 1 > cap) break; /* cut before a character, never inside one */
        if (good)
            memcpy(out + at, in + from, n);
        else
            out[at] = '?';
    }
    out[at] = '\0';
}

static bool leave_out(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row) {
    if (++r->left_out <= MAX_LEFT_OUT) return true;
    return REFUSE(r, "%s.%s: more than %d entries are beyond what lists have room for", type->name, row->name,
                  MAX_LEFT_OUT);
}

COLD bool read_text(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base, uint8_t *to,
                    const char *text, size_t len) {
    if (len && memchr(text, '\0', len))
        return REFUSE(r, "%s.%s has a NUL byte, strings have none", type->name, row->name);
    if (row->kind == CR_ROW_NAMES || row->kind == CR_ROW_TEXTS) {
        uint32_t *const count = (uint32_t *)(void *)(base + row->count);
        if (*count == row->most || (row->kind == CR_ROW_NAMES && len >= row->bytes)) return leave_out(r, type, row);
        copy_text((char *)to + (size_t)row->bytes * (*count)++, row->bytes, text, len);
        return true;
    }
    if (row->kind != CR_ROW_TEXT) *(uint32_t *)(void *)(base + row->count) = (uint32_t)len;
    if (row->kind == CR_ROW_RAW) {
        const size_t kept = len < row->most ? len : 0;
        if (kept) memcpy(to, text, kept);
        to[kept] = '\0';
    } else {
        copy_text((char *)to, row->most, text, len);
    }
    return true;
}

INLINE void read_blob(const cr_wire_row *row, uint8_t *base, uint8_t *to, cr_wire_field f) {
    const size_t kept = f.value < row->most ? (size_t)f.value : row->most;
    uint32_t *const came = (uint32_t *)(void *)(base + row->count);
    if (*came) memset(to, 0, row->most); /* the last one counts */
    if (kept) memcpy(to, f.bytes, kept);
    *came = (uint32_t)f.value; /* a message of so many bytes has fewer than 2^32 */
}

/* An item that has no room is read all the same: it may be wrong. */
COLD bool read_left_out(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, const uint8_t *in,
                        const uint8_t *end) {
    union {
        uint64_t aligned;
        uint8_t bytes[CR_ITEM_MAX_BYTES];
    } spare;
    if (row->kind == CR_ROW_LIST && !leave_out(r, type, row)) return false;
    memset(spare.bytes, 0, row->bytes);
    return row->read(r, spare.bytes, in, end);
}

INLINE bool read_item(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                      uint8_t *to, cr_wire_field f) {
    uint32_t *const count = (uint32_t *)(void *)(base + row->count);
    if (*count >= row->most) {
        *count += row->kind == CR_ROW_COUNTED;
        return read_left_out(r, type, row, f.bytes, f.bytes + f.value);
    }
    to += (size_t)row->bytes * (*count)++;
    clear(to, row);
    return row->read(r, to, f.bytes, f.bytes + f.value);
}

INLINE bool read_value(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                       cr_wire_field f) {
    uint8_t *const to = (row->flags & CR_IN_ASIDE ? (uint8_t *)r->aside : base) + row->offset;
    double number;
    switch ((cr_row_kind)row->kind) {
        case CR_ROW_U32:
        case CR_ROW_ENUM:
        case CR_ROW_CODE:
            if (f.value > INT32_MAX && !check_number(r, type, row, f.value)) return false;
            *(uint32_t *)(void *)to =
                row->kind == CR_ROW_CODE && f.value > CR_STATUS_MAX ? CR_UNKNOWN : (uint32_t)f.value;
            return true;
        case CR_ROW_U64:
            *(uint64_t *)(void *)to = f.value;
            return true;
        case CR_ROW_BOOL:
        case CR_ROW_FLAG:
            *(bool *)to = f.value != 0;
            return true;
        case CR_ROW_REAL:
            memcpy(to, &f.value, sizeof f.value);
            return true;
        case CR_ROW_DOUBLE:
            memcpy(&number, &f.value, sizeof number);
            *(double *)(void *)to = isfinite(number) ? number : 0;
            return true;
        case CR_ROW_TEXT:
        case CR_ROW_NAME:
        case CR_ROW_RAW:
        case CR_ROW_NAMES:
        case CR_ROW_TEXTS:
            return read_text(r, type, row, base, to, (const char *)f.bytes, (size_t)f.value);
        case CR_ROW_BLOB:
        case CR_ROW_FIXED:
            read_blob(row, base, to, f);
            return true;
        case CR_ROW_POINTER:
            *(const uint8_t **)(void *)to = f.bytes;
            *(size_t *)(void *)(base + row->count) = (size_t)f.value;
            return true;
        case CR_ROW_PASSED:
            return true;
        case CR_ROW_ENUMS:
            return read_enums(r, type, row, base, f.bytes, f.bytes + f.value);
        case CR_ROW_MESSAGE:
            if (!(row->flags & (CR_ALWAYS | CR_JOINS))) clear(to, row);
            return row->read(r, to, f.bytes, f.bytes + f.value);
        case CR_ROW_LIST:
        case CR_ROW_COUNTED:
            return read_item(r, type, row, base, to, f);
    }
    return true;
}

INLINE bool read_row(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                     cr_wire_field f) {
    if (row->flags & CR_GRPC_ONLY) note_of_grpc(r, type, row);
    if (f.wire != row->wire ? !read_other_wire(r, type, row, base, f.wire, f.value, f.bytes)
                            : !read_value(r, type, row, base, f))
        return false;
    if (row->chosen_bytes == sizeof(bool)) base[row->chosen] = row->value;
    if (row->chosen_bytes > sizeof(bool)) *(uint32_t *)(void *)(base + row->chosen) = row->value;
    return true;
}

/* Most messages have the fields 1, 2, 3, …; what is beyond a gap is looked for. */
static const cr_wire_row *row_of(const cr_wire_message *type, uint64_t number) {
    if (number <= type->row_count && type->rows[number - 1].number == number) return &type->rows[number - 1];
    for (uint32_t i = type->row_count; i > 0 && type->rows[i - 1].number >= number; i--)
        if (type->rows[i - 1].number == number) return &type->rows[i - 1];
    return NULL;
}

/* Fields in any order, by the table. */
COLD bool read_any(cr_wire_reader *r, const cr_wire_message *type, uint8_t *base, const uint8_t *in,
                   const uint8_t *end) {
    cr_wire_field f;
    while (in != end) {
        if (!cr_wire_take_field(&in, end, &f)) return REFUSE(r, "%s is not a valid protobuf message", type->name);
        if (f.overlong) note_mistyped(r);
        const cr_wire_row *row = row_of(type, f.number);
        if (!row)
            note_unknown(r, type, f.number);
        else if (!read_row(r, type, row, base, f))
            return false;
    }
    return true;
}

/* The field of this row, if it comes next and is short: everybody writes fields by number. NULL: refused. Otherwise what follows,
 * which is `in` when the row is left to read_any. */
INLINE const uint8_t *read_next(cr_wire_reader *r, const cr_wire_message *type, const cr_wire_row *row, uint8_t *base,
                                const uint8_t *in, const uint8_t *end) {
    const unsigned tag = (unsigned)row->number << 3 | row->wire, low = tag < 0x80 ? tag : (tag & 0x7f) | 0x80;
    const uint8_t *at = in + (tag < 0x80 ? 1 : 2);
    cr_wire_field f = {.number = row->number, .wire = row->wire};
    if (row->flags & CR_GRPC_ONLY || row->wire == CR_FIXED64 || end - in < (tag < 0x80 ? 2 : 3) || in[0] != low ||
        (tag >= 0x80 && in[1] != tag >> 7))
        return in;
    if (row->wire == CR_VARINT) {
        if (!cr_wire_take_varint(&at, end, &f.value)) return in;
    } else {
        f.value = *at++;
        f.bytes = at;
        if (f.value >= 0x80 || f.value > (uint64_t)(end - at)) return in;
        at += f.value;
    }
    return read_row(r, type, row, base, f) ? at : NULL;
}

/* The functions of messages: those of parts.def are read row after row, and by the table what is left. */
#define CR_MESSAGE(id, proto, text, T)                                                           \
    bool cr_read_##id(cr_wire_reader *r, uint8_t *base, const uint8_t *in, const uint8_t *end) { \
        const cr_wire_message *const type = &cr_message_##id;
#define CR_EMIT(no, ...)                                                 \
    if (in != end) {                                                     \
        static const cr_wire_row row = {__VA_ARGS__};                    \
        const uint8_t *last;                                             \
        do { /* a list is its items, one after the other */              \
            last = in;                                                   \
            in = read_next(r, type, &row, base, in, end);                \
            if (!in) return false;                                       \
        } while (row.kind == CR_ROW_COUNTED && in != last && in != end); \
    }
#define CR_TABLE(id, T, from, size)                       \
    return in == end || read_any(r, type, base, in, end); \
    }
#include "proto/table_rows.h"

#include "proto/parts.def"
#undef CR_EMIT
#define CR_EMIT(no, ...)
#include "proto/fields.def"

#include "proto/table_end.h"

cr_status cr_wire_read(const cr_wire_message *type, cr_wire_manner manner, const uint8_t *in, size_t len, void *m,
                       cr_wire_aside *aside, cr_error *error) {
    if (len > CR_DATA_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %zu bytes, limit is %d", type->name, len, CR_DATA_MAX_BYTES);
    cr_wire_reader r;
    r.all = type;
    r.aside = aside;
    r.error = error;
    r.manner = manner;
    r.fault = SOUND;
    r.left_out = 0;
    memset((uint8_t *)m + type->clear_at, 0, type->clear_bytes);
    if (len) type->read(&r, m, in, in + len);
    return r.fault == SOUND ? CR_OK : r.status;
}

cr_status cr_wire_check_text(const char *what, uint32_t bytes, uint32_t limit, cr_error *error) {
    if (bytes <= limit) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %u bytes, limit is %u", what, bytes, limit);
}
