/* wire_table: what a row of fields.def and parts.def is to those who read and write messages by it. Rows are tables, which a loop reads
 * any message by. Of parts.def, which every call needs, rows are code as well: there a row is a constant where it is used, so
 * that what depends on its kind is settled when the program is compiled.
 *
 * A pass over the lists defines CR_MESSAGE, CR_EMIT and CR_TABLE, includes table_rows.h and the lists, then table_end.h.
 * Thread: any; the tables are constant. Owner: the caller owns every struct and buffer. */
#ifndef CURED_PROTO_WIRE_TABLE_H
#define CURED_PROTO_WIRE_TABLE_H

#include "proto/wire.h"

enum { CR_VARINT = 0, CR_FIXED64 = 1, CR_BYTES = 2, CR_FIXED32 = 5 }; /* protobuf's wire types */

/* How a field lies in its struct, and what is refused. */
typedef enum cr_row_kind {
    CR_ROW_U32,     /* uint32_t; a number of more bits is refused */
    CR_ROW_ENUM,    /* uint32_t; signed on the wire, refused as above */
    CR_ROW_CODE,    /* U32, a status code: CR_UNKNOWN for those of a newer peer */
    CR_ROW_U64,     /* uint64_t */
    CR_ROW_BOOL,    /* bool */
    CR_ROW_FLAG,    /* bool, of a oneof: when it is written it is true */
    CR_ROW_DOUBLE,  /* double; 0 for what is not finite */
    CR_ROW_REAL,    /* double, whatever it is */
    CR_ROW_TEXT,    /* char[most], printable, cut to fit */
    CR_ROW_NAME,    /* the same, and how many bytes came, which may be more */
    CR_ROW_RAW,     /* char[most] as it came, and how many bytes came; "" when it does not fit */
    CR_ROW_NAMES,   /* char[most][bytes], printable; longer ones are left out: extensions nobody knows */
    CR_ROW_TEXTS,   /* the same; longer ones are cut */
    CR_ROW_BLOB,    /* uint8_t[most], and how many came, which may be more */
    CR_ROW_FIXED,   /* the same; written, it has most bytes */
    CR_ROW_POINTER, /* const uint8_t * into the payload, and size_t */
    CR_ROW_PASSED,  /* known, and not looked at */
    CR_ROW_ENUMS,   /* uint32_t[most], and how many came, which may be more */
    CR_ROW_MESSAGE, /* a struct, or members of this one */
    CR_ROW_LIST,    /* structs; what is beyond most is left out: a newer peer may have more to tell */
    CR_ROW_COUNTED, /* structs, and how many came, which may be more */
} cr_row_kind;

enum { CR_ITEM_MAX_BYTES = 1024 };
enum {
    CR_IN_ASIDE = 1 << 0,  /* offset is in cr_wire_aside */
    CR_ALWAYS = 1 << 1,    /* written whatever the chosen member says, and not zeroed when it comes again */
    CR_GRPC_ONLY = 1 << 2, /* its bytes come in DATA where the protocol is ours */
    CR_JOINS = 1 << 3,     /* not zeroed when it comes again */
};

typedef struct cr_wire_reader cr_wire_reader;
typedef struct cr_wire_writer cr_wire_writer;
typedef bool cr_wire_read_fields(cr_wire_reader *r, uint8_t *base, const uint8_t *in, const uint8_t *end);
typedef uint8_t *cr_wire_write_fields(const cr_wire_writer *w, uint8_t *at, const uint8_t *base);

typedef struct cr_wire_row {
    uint8_t number, wire, kind, flags;
    uint8_t chosen_bytes, value; /* of the member that says which field of a oneof there is; 0: none, not in a oneof */
    uint16_t bytes;              /* of each item of a list */
    uint32_t chosen, offset, count, most;
    uint32_t clear_at, clear_bytes; /* of a message: what is zero before it is read */
    cr_wire_read_fields *read;
    cr_wire_write_fields *write;
    const char *name;
} cr_wire_row;

typedef struct cr_wire_message {
    const char *name;
    const cr_wire_row *rows; /* by number; the last has the number 0 */
    cr_wire_read_fields *read;
    cr_wire_write_fields *write;
    uint32_t row_count, clear_at, clear_bytes;
} cr_wire_message;

/* What a request says beside cr_wire_reduce, so that a call keeps its size. */
typedef struct cr_wire_output_row {
    uint32_t op;
    uint64_t region, offset;
} cr_wire_output_row;

typedef struct cr_wire_parameter_row {
    uint32_t op, method;
    double share;
} cr_wire_parameter_row;

typedef struct cr_wire_axis_row {
    uint64_t shape, start, extent;
} cr_wire_axis_row;

typedef struct cr_wire_piece_row {
    uint64_t region, offset, length;
    bool length_known, open;
} cr_wire_piece_row;

typedef struct cr_wire_aside {
    union {
        cr_wire_beside beside[CR_BESIDES];
        struct {
#define CR_BESIDE(field, KIND, message, name) cr_wire_beside field;
#include "proto/beside.def"
#undef CR_BESIDE
        };
    };
    cr_wire_output_row outputs[CR_CALL_MAX_OPS];
    cr_wire_parameter_row parameters[CR_CALL_MAX_OPS];
    cr_wire_piece_row pieces[CR_CALL_MAX_PIECES];
    cr_wire_axis_row axes[CR_CALL_MAX_AXES];
} cr_wire_aside;

/* Each KIND of the lists. T is the struct that it counts in. */
#define CR_R_U32 .kind = CR_ROW_U32
#define CR_R_ENUM .kind = CR_ROW_ENUM
#define CR_R_CODE .kind = CR_ROW_CODE
#define CR_R_U64 .kind = CR_ROW_U64
#define CR_R_BOOL .kind = CR_ROW_BOOL
#define CR_R_FLAG .kind = CR_ROW_FLAG
#define CR_R_DOUBLE .kind = CR_ROW_DOUBLE, .wire = CR_FIXED64
#define CR_R_REAL .kind = CR_ROW_REAL, .wire = CR_FIXED64
#define CR_R_SIZED(k, limit) .kind = (k), .wire = CR_BYTES, .most = (limit)
#define CR_R_TEXT(limit) CR_R_SIZED(CR_ROW_TEXT, limit)
#define CR_R_OF(T, k, counter, limit) CR_R_SIZED(k, limit), .count = offsetof(cr_wire_##T, counter)
#define CR_R_NAME(T, counter, limit) CR_R_OF(T, CR_ROW_NAME, counter, limit)
#define CR_R_RAW(T, counter, limit) CR_R_OF(T, CR_ROW_RAW, counter, limit)
#define CR_R_NAMES(T, counter, limit, each) CR_R_OF(T, CR_ROW_NAMES, counter, limit), .bytes = (each)
#define CR_R_TEXTS(T, counter, limit, each) CR_R_OF(T, CR_ROW_TEXTS, counter, limit), .bytes = (each)
#define CR_R_BLOB(T, counter, limit) CR_R_OF(T, CR_ROW_BLOB, counter, limit)
#define CR_R_FIXED(T, counter, limit) CR_R_OF(T, CR_ROW_FIXED, counter, limit)
#define CR_R_POINTER(T, counter) CR_R_OF(T, CR_ROW_POINTER, counter, 0)
#define CR_R_PASSED .kind = CR_ROW_PASSED, .wire = CR_BYTES
#define CR_R_OF_GRPC(kind_) CR_R_##kind_, .flags = CR_GRPC_ONLY
#define CR_R_ENUMS(T, counter, limit) CR_R_OF(T, CR_ROW_ENUMS, counter, limit)
#define CR_R_INNER(id) \
    .clear_at = CR_CLEAR_AT_##id, .clear_bytes = CR_CLEAR_BYTES_##id, .read = cr_read_##id, .write = cr_write_##id
#define CR_R_MESSAGE(T, id) .kind = CR_ROW_MESSAGE, .wire = CR_BYTES, CR_R_INNER(id)
/* An item that has no room in its list is read into a spare one of CR_ITEM_MAX_BYTES. */
#define CR_ITEM_BYTES(item)                                                                         \
    (sizeof(item) + 0 * sizeof(struct {                                                             \
                        _Static_assert(sizeof(item) <= CR_ITEM_MAX_BYTES, "there is a spare item"); \
                        int none;                                                                   \
                    }))
#define CR_R_ITEMS(T, k, counter, limit, item, id) \
    CR_R_OF(T, k, counter, limit), .bytes = CR_ITEM_BYTES(cr_wire_##item), CR_R_INNER(id)
#define CR_R_LIST(T, counter, limit, item, id) CR_R_ITEMS(T, CR_ROW_LIST, counter, limit, item, id)
#define CR_R_COUNTED(T, counter, limit, item, id) CR_R_ITEMS(T, CR_ROW_COUNTED, counter, limit, item, id)
#define CR_CHOSEN(T, member, is) \
    .chosen = offsetof(cr_wire_##T, member), .chosen_bytes = sizeof(((const cr_wire_##T *)0)->member), .value = (is)

/* Every message: its code, and what is zero before it is read. */
#define CR_MESSAGE(id, proto, text, T)            \
    extern const cr_wire_message cr_message_##id; \
    cr_wire_read_fields cr_read_##id;             \
    cr_wire_write_fields cr_write_##id;
#define CR_EMIT(no, ...)
#define CR_TABLE(id, T, from, size) enum { CR_CLEAR_AT_##id = (from), CR_CLEAR_BYTES_##id = (size) };
#include "proto/table_rows.h"

#include "proto/fields.def"

#include "proto/parts.def"

#include "proto/table_end.h"

/* What fields that nobody knows mean. */
typedef enum cr_wire_manner {
    CR_READ_ANY,     /* of a reply, or a HELLO: nothing */
    CR_READ_OWN,     /* of a request over our protocol: it is refused, but for hints */
    CR_READ_OF_GRPC, /* of a request over gRPC: the same, and the array may be within */
} cr_wire_manner;

/* Reads in[0..len) into *m, and *aside. INVALID_ARGUMENT: it is no such message, or holds what protobuf would change in silence (a
 * NUL in a string, a number of more bits than its field has). UNIMPLEMENTED: cr_wire_manner says.
 * The last field of a number counts, and replaces an earlier message whole, but adds to one that is a list, as protobuf-c has it. */
cr_status cr_wire_read(const cr_wire_message *type, cr_wire_manner manner, const uint8_t *in, size_t len, void *m,
                       cr_wire_aside *aside, cr_error *error);
/* Writes *m to out, as protobuf-c would; 0: it does not fit. aside: NULL, or what lists in it point at. */
size_t cr_wire_write(const cr_wire_message *type, const void *m, const cr_wire_aside *aside, uint8_t *out, size_t cap);

/* A NAME or RAW, which must have fit. what: "Hello.client". */
cr_status cr_wire_check_text(const char *what, uint32_t bytes, uint32_t limit, cr_error *error);

/* The bytes of the UTF-8 character that text begins with, of at most len; 0: it is the end, or nothing that may be printed. */
size_t cr_wire_printable(const char *text, size_t len);

/* The varint at *at, which moves behind what was looked at; false when it is cut short or has more than 64 bits. */
static inline bool cr_wire_take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    const uint8_t *p = *at;
    if (p < end && *p < 0x80) { /* most */
        *value = *p;
        *at = p + 1;
        return true;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        const uint8_t byte = *p++;
        *at = p;
        if (shift == 63 && byte > 1) return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        *value = v;
        if (byte < 0x80) return true;
    }
    return false;
}

/* The field at *at, which moves behind it; false: it is not well formed. */
static inline bool cr_wire_take_field(const uint8_t **at, const uint8_t *end, cr_wire_field *field) {
    const uint8_t *p = *at, *const begin = p;
    uint64_t tag;
    field->bytes = NULL;
    field->value = 0;
    if (!cr_wire_take_varint(&p, end, &tag) || tag >> 3 == 0) return false;
    field->number = tag >> 3;
    field->wire = tag & 7;
    field->overlong = p - begin > 5;
    if (field->wire == CR_VARINT) {
        if (!cr_wire_take_varint(&p, end, &field->value)) return false;
    } else if (field->wire == CR_BYTES) {
        const uint8_t *const length = p;
        if (!cr_wire_take_varint(&p, end, &field->value) || field->value > (uint64_t)(end - p)) return false;
        field->overlong |= p - length > 5;
        field->bytes = p;
        p += field->value;
    } else {
        const size_t fixed = field->wire == CR_FIXED64 ? 8 : field->wire == CR_FIXED32 ? 4 : 0;
        if (fixed == 0 || fixed > (size_t)(end - p)) return false; /* groups: not in proto3 */
        for (size_t i = 0; i < fixed; i++) field->value |= (uint64_t)p[i] << 8 * i;
        p += fixed;
    }
    *at = p;
    return true;
}

#endif
