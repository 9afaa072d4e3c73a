/* wire_oracle: see wire_oracle.h. What must be refused is found by the descriptors that protoc-c makes of cured.proto, what was read
 * by the structs that protobuf-c fills. Of the product it takes the rows, which say where a value must be. */
#include "tests/unit/proto/wire_oracle.h"

#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured.pb-c.h"

#define CR_MESSAGE(id, proto, text, T) static const cr_wire_row rows_of_##id[] = {
#define CR_EMIT(no, ...) {__VA_ARGS__},
#define CR_TABLE(id, T, from, size) \
    { .number = 0 }                 \
    }                               \
    ;                               \
    enum { BYTES_OF_##id = sizeof(cr_wire_##T) };
#include "proto/table_rows.h"

#include "proto/fields.def"

#include "proto/parts.def"

#include "proto/table_end.h"

static const wire_oracle oracles[] = {
#define CR_MESSAGE(id, proto, text, T)                                \
    {#text,         &cr_message_##id,                                 \
     rows_of_##id,  sizeof rows_of_##id / sizeof rows_of_##id[0] - 1, \
     BYTES_OF_##id, &cured__v1__##proto##__descriptor},
#define CR_EMIT(no, ...)
#define CR_TABLE(id, T, from, size)
#include "proto/table_rows.h"

#include "proto/fields.def"

#include "proto/parts.def"

#include "proto/table_end.h"
};
enum { ORACLES = sizeof oracles / sizeof oracles[0] };

size_t wire_oracle_all(const wire_oracle **all) {
    *all = oracles;
    return ORACLES;
}

const wire_oracle *wire_oracle_of_row(const cr_wire_row *row) {
    for (size_t i = 0; i < ORACLES; i++)
        if (oracles[i].message->read == row->read) return &oracles[i];
    return NULL;
}

static char difference[256];

static const char *differ(const wire_oracle *o, const char *field, const char *what) {
    snprintf(difference, sizeof difference, "%s.%s: %s", o->name, field, what);
    return difference;
}

/* ---- what must be refused ---- */

static bool varint(const uint8_t *in, size_t len, size_t *at, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 70 && *at < len; shift += 7) {
        const uint8_t byte = in[(*at)++];
        if (shift == 63 && byte > 1) return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool fits(const ProtobufCFieldDescriptor *field, uint64_t value) {
    if (field->type == PROTOBUF_C_TYPE_UINT32) return value <= UINT32_MAX;
    const int64_t number = (int64_t)value;
    return field->type != PROTOBUF_C_TYPE_ENUM || (number >= INT32_MIN && number <= INT32_MAX);
}

static bool is_of_grpc(const ProtobufCMessageDescriptor *type, unsigned number) {
    if (type == &cured__v1__input__descriptor) return number == 5;
    if (type == &cured__v1__reduce_request__descriptor && number == 63) return true;
    return number == 100 &&
           (type == &cured__v1__reduce_request__descriptor || type == &cured__v1__merge_request__descriptor);
}

/* INVALID_ARGUMENT for what is malformed or cut by protobuf. *lacking: there is a field that the manner has refused. *mistyped: a
 * bool is of another wire type, which protobuf-c minds of all other fields. *twice: a
 * request has two inputs, which protobuf-c merges, but refuses when neither says anything. */
static cr_status walk(const ProtobufCMessageDescriptor *type, cr_wire_manner manner, const uint8_t *in, size_t len,
                      bool *lacking, bool *mistyped, bool *twice) {
    unsigned inputs = 0;
    uint64_t tag, value, packed;
    for (size_t at = 0; at < len;) {
        if (!varint(in, len, &at, &tag) || tag >> 3 == 0) return CR_INVALID_ARGUMENT;
        const ProtobufCFieldDescriptor *field =
            tag >> 3 <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3)) : NULL;
        if (field == NULL && (tag >> 3 < 64 || tag >> 3 > 99) && manner != CR_READ_ANY) *lacking = true;
        if (field != NULL && manner == CR_READ_OWN && is_of_grpc(type, field->id)) *lacking = true;
        if (field != NULL && field->type == PROTOBUF_C_TYPE_BOOL && (tag & 7) != 0) *mistyped = true;
        if (field != NULL && strcmp(field->name, "input") == 0 && ++inputs == 2) *twice = true;
        const size_t fixed = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
        if ((tag & 7) == 0) {
            if (!varint(in, len, &at, &value) || (field && !fits(field, value))) return CR_INVALID_ARGUMENT;
        } else if ((tag & 7) == 2) {
            if (!varint(in, len, &at, &value) || value > len - at) return CR_INVALID_ARGUMENT;
            const uint8_t *inner = in + at;
            at += (size_t)value;
            if (field == NULL) continue;
            if (field->type == PROTOBUF_C_TYPE_STRING && value && memchr(inner, 0, (size_t)value))
                return CR_INVALID_ARGUMENT;
            if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
                walk(field->descriptor, manner, inner, (size_t)value, lacking, mistyped, twice) != CR_OK)
                return CR_INVALID_ARGUMENT;
            for (size_t k = 0; field->type == PROTOBUF_C_TYPE_ENUM && k < value;)
                if (!varint(inner, (size_t)value, &k, &packed) || !fits(field, packed)) return CR_INVALID_ARGUMENT;
        } else {
            if (fixed == 0 || fixed > len - at) return CR_INVALID_ARGUMENT;
            at += fixed;
        }
    }
    return CR_OK;
}

/* ---- what was read ---- */

/* What the protobuf-c message has was written from the struct. Then a oneof says one of two where nothing was said, and bytes have
 * the length that they must have. */
static bool is_written;

#define MEMBER(type, base, offset) (*(type const *)(const void *)((const uint8_t *)(base) + (offset)))

/* How many there are: of what is written no more than there was room for. */
static uint32_t count_of(const cr_wire_row *row, const uint8_t *m) {
    const uint32_t count = MEMBER(uint32_t, m, row->count);
    return is_written && count > row->most ? row->most : count;
}

static const char *compare(const wire_oracle *o, const uint8_t *m, const cr_wire_aside *aside,
                           const ProtobufCMessage *p);

/* Only plain text is compared: what others become is test_wire.c's business. */
static bool same_text(const char *ours, const char *theirs, size_t most) {
    for (const char *c = theirs; *c; c++)
        if (*c < ' ' || *c > '~') return true;
    return strlen(ours) == (strlen(theirs) < most ? strlen(theirs) : most - 1) && strncmp(ours, theirs, most - 1) == 0;
}

static bool same_texts(const cr_wire_row *row, const uint8_t *m, const uint8_t *items, size_t n, char *const *theirs) {
    uint32_t count = 0;
    for (size_t i = 0; i < n && count < row->most; i++) {
        if (row->kind == CR_ROW_NAMES && strlen(theirs[i]) >= row->bytes) continue;
        if (!same_text((const char *)items + (size_t)row->bytes * count++, theirs[i], row->bytes)) return false;
    }
    return MEMBER(uint32_t, m, row->count) == count;
}

static bool same_bytes(const cr_wire_row *row, const uint8_t *m, const uint8_t *ours,
                       const ProtobufCBinaryData *theirs) {
    const size_t kept = theirs->len < row->most ? theirs->len : row->most;
    if (row->kind == CR_ROW_POINTER)
        return MEMBER(size_t, m, row->count) == theirs->len &&
               (theirs->len == 0 || memcmp(MEMBER(uint8_t *, ours, 0), theirs->data, theirs->len) == 0);
    if (is_written && row->kind == CR_ROW_FIXED) {
        if (row->chosen_bytes && m[row->chosen] != row->value) return theirs->len == 0;
        return theirs->len == row->most && memcmp(ours, theirs->data, kept) == 0;
    }
    if (count_of(row, m) != theirs->len || (kept && memcmp(ours, theirs->data, kept) != 0)) return false;
    for (size_t i = kept; i < row->most; i++)
        if (ours[i] != 0) return false;
    return true;
}

/* A message that there is not is one whose fields are all 0. */
static const char *compare_absent(const wire_oracle *o, const uint8_t *m, const cr_wire_aside *aside) {
    ProtobufCMessage *empty = malloc(o->type->sizeof_message);
    if (empty == NULL) abort();
    o->type->message_init(empty);
    const char *what = compare(o, m, aside, empty);
    free(empty);
    return what;
}

static const char *compare_messages(const cr_wire_row *row, const uint8_t *m, const uint8_t *ours,
                                    const cr_wire_aside *aside, size_t n, ProtobufCMessage *const *theirs) {
    const wire_oracle *o = wire_oracle_of_row(row);
    const uint32_t count = row->kind == CR_ROW_MESSAGE ? (uint32_t)(n != 0) : count_of(row, m);
    const char *what = NULL;
    if (row->kind == CR_ROW_MESSAGE && n == 0) return compare_absent(o, ours, aside);
    if (count != (row->kind == CR_ROW_LIST && n > row->most ? row->most : n))
        return differ(o, row->name, "their number");
    for (size_t i = 0; i < n && what == NULL && (i < row->most || row->kind == CR_ROW_MESSAGE); i++)
        what = compare(o, ours + i * o->bytes, aside, theirs[i]);
    return what;
}

static bool same_number(const cr_wire_row *row, const uint8_t *ours, const uint8_t *theirs) {
    const uint32_t number = MEMBER(uint32_t, theirs, 0);
    switch ((cr_row_kind)row->kind) {
        case CR_ROW_U64:
            return MEMBER(uint64_t, ours, 0) == MEMBER(uint64_t, theirs, 0);
        case CR_ROW_FLAG:
            if (is_written) return MEMBER(protobuf_c_boolean, theirs, 0);
            return MEMBER(bool, ours, 0) == (MEMBER(protobuf_c_boolean, theirs, 0) != 0);
        case CR_ROW_BOOL:
            return MEMBER(bool, ours, 0) == (MEMBER(protobuf_c_boolean, theirs, 0) != 0);
        case CR_ROW_CODE:
            return MEMBER(uint32_t, ours, 0) == (number > CR_STATUS_MAX ? CR_UNKNOWN : number);
        case CR_ROW_REAL:
            return MEMBER(double, ours, 0) == MEMBER(double, theirs, 0) ||
                   (isnan(MEMBER(double, ours, 0)) && isnan(MEMBER(double, theirs, 0)));
        case CR_ROW_DOUBLE:
            return MEMBER(double, ours, 0) == (isfinite(MEMBER(double, theirs, 0)) ? MEMBER(double, theirs, 0) : 0);
        default:
            return MEMBER(uint32_t, ours, 0) == number;
    }
}

static bool same_enums(const cr_wire_row *row, const uint8_t *m, const uint8_t *ours, size_t n, const uint8_t *theirs) {
    const uint32_t *const numbers = MEMBER(uint32_t *, theirs, 0);
    if (count_of(row, m) != n) return false;
    for (size_t i = 0; i < n && i < row->most; i++)
        if (MEMBER(uint32_t, ours, i * sizeof(uint32_t)) != numbers[i]) return false;
    return true;
}

/* Whether the member that says which field there is says what protobuf-c does. *there: there is this one. */
static bool same_choice(const cr_wire_row *row, const ProtobufCFieldDescriptor *field, const uint8_t *m,
                        const ProtobufCMessage *p, bool *there) {
    const bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE,
               is_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    *there = !is_oneof || MEMBER(uint32_t, p, field->quantifier_offset) == field->id;
    if (!is_oneof && is_message) *there = MEMBER(void *, p, field->offset) != NULL;
    if (row->chosen_bytes == 0 || (!is_oneof && !is_message)) return !is_oneof;
    const uint32_t chosen = row->chosen_bytes == 1 ? MEMBER(uint8_t, m, row->chosen) : MEMBER(uint32_t, m, row->chosen);
    if (row->value == 0 && !*there) return true; /* false stands for none as well */
    if (is_written && row->flags & CR_ALWAYS) return *there;
    return *there == (chosen == row->value);
}

static const char *compare_row(const wire_oracle *o, const cr_wire_row *row, const uint8_t *m,
                               const cr_wire_aside *aside, const ProtobufCMessage *p) {
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(o->type, row->number);
    const uint8_t *ours = (row->flags & CR_IN_ASIDE ? (const uint8_t *)aside : m) + row->offset;
    const uint8_t *theirs = (const uint8_t *)p + field->offset;
    const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    const size_t n = repeated ? MEMBER(size_t, p, field->quantifier_offset) : 1;
    size_t came;
    bool same = true, there;
    if (!same_choice(row, field, m, p, &there)) return differ(o, row->name, "which of a oneof");
    if (row->chosen_bytes && !there) return NULL;
    switch ((cr_row_kind)row->kind) {
        case CR_ROW_NAME:
        case CR_ROW_RAW:
            came = strlen(MEMBER(char *, theirs, 0));
            same = (is_written || MEMBER(uint32_t, m, row->count) == came) &&
                   (came >= row->most || same_text((const char *)ours, MEMBER(char *, theirs, 0), row->most));
            break;
        case CR_ROW_TEXT:
            same = same_text((const char *)ours, MEMBER(char *, theirs, 0), row->most);
            break;
        case CR_ROW_NAMES:
        case CR_ROW_TEXTS:
            same = same_texts(row, m, ours, n, MEMBER(char **, theirs, 0));
            break;
        case CR_ROW_BLOB:
        case CR_ROW_FIXED:
        case CR_ROW_POINTER:
            same = same_bytes(row, m, ours, &MEMBER(ProtobufCBinaryData, theirs, 0));
            break;
        case CR_ROW_PASSED:
            break;
        case CR_ROW_ENUMS:
            same = same_enums(row, m, ours, n, theirs);
            break;
        case CR_ROW_MESSAGE:
            return compare_messages(row, m, ours, aside, there, (ProtobufCMessage *const *)(const void *)theirs);
        case CR_ROW_LIST:
        case CR_ROW_COUNTED:
            return compare_messages(row, m, ours, aside, n, MEMBER(ProtobufCMessage **, theirs, 0));
        case CR_ROW_U32:
        case CR_ROW_ENUM:
        case CR_ROW_CODE:
        case CR_ROW_U64:
        case CR_ROW_BOOL:
        case CR_ROW_FLAG:
        case CR_ROW_DOUBLE:
        case CR_ROW_REAL:
            same = same_number(row, ours, theirs);
            break;
    }
    return same ? NULL : differ(o, row->name, "its value");
}

static const char *compare(const wire_oracle *o, const uint8_t *m, const cr_wire_aside *aside,
                           const ProtobufCMessage *p) {
    const char *what = NULL;
    for (const cr_wire_row *row = o->rows; row->number && what == NULL; row++) what = compare_row(o, row, m, aside, p);
    return what;
}

/* ---- both ---- */

enum { STRUCT_BYTES = 64 * 1024, PAYLOAD_BYTES = 256 * 1024 };
static alignas(max_align_t) uint8_t ours[STRUCT_BYTES], back[STRUCT_BYTES];
static uint8_t written[PAYLOAD_BYTES], again[PAYLOAD_BYTES];
static cr_wire_aside aside;

/* What was read is written as protobuf-c would write it, fits exactly, and is read again. */
static const char *differs_written(const wire_oracle *o) {
    cr_error error;
    const size_t n = cr_wire_write(o->message, ours, &aside, written, sizeof written);
    ProtobufCMessage *p = protobuf_c_message_unpack(o->type, NULL, n, written);
    if (p == NULL) return differ(o, "", "protobuf-c does not read what was written");
    is_written = true;
    const char *what = compare(o, ours, &aside, p);
    is_written = false;
    if (what == NULL && (protobuf_c_message_get_packed_size(p) != n || protobuf_c_message_pack(p, again) != n ||
                         memcmp(written, again, n) != 0))
        what = differ(o, "", "protobuf-c writes other bytes");
    protobuf_c_message_free_unpacked(p, NULL);
    if (what != NULL) return what;
    if (n && (cr_wire_write(o->message, ours, &aside, again, n) != n || memcmp(written, again, n) != 0))
        return differ(o, "", "it does not fit its own length");
    memset(again, 0xee, n + 1);
    if (n && cr_wire_write(o->message, ours, &aside, again, n - 1) != 0) return differ(o, "", "it fits less");
    if (n && again[n - 1] != 0xee) return differ(o, "", "writing leaves its room");
    if (o->message->clear_bytes == 0) memset(back, 0, o->bytes);
    if (cr_wire_read(o->message, CR_READ_ANY, written, n, back, &aside, &error) != CR_OK)
        return differ(o, "", "what was written is refused");
    if (cr_wire_write(o->message, back, &aside, again, sizeof again) != n || memcmp(written, again, n) != 0)
        return differ(o, "", "what was written reads as something else");
    return NULL;
}

const char *wire_oracle_differs(const wire_oracle *o, cr_wire_manner manner, const uint8_t *in, size_t len,
                                cr_status *status) {
    bool lacking = false, mistyped = false, twice = false;
    cr_error error = {CR_OK, ""};
    memset(ours, o->message->clear_bytes ? 0xa5 : 0, o->bytes);
    memset(&aside, 0x5a, sizeof aside);
    *status = cr_wire_read(o->message, manner, in, len, ours, &aside, &error);
    cr_status expected = walk(o->type, manner, in, len, &lacking, &mistyped, &twice);
    if (*status != CR_OK && (error.code != *status || error.text[0] == '\0'))
        return differ(o, "", "no reason is given");
    if (expected == CR_OK && lacking) expected = CR_UNIMPLEMENTED;
    if (expected == CR_OK && mistyped) expected = CR_INVALID_ARGUMENT;
    ProtobufCMessage *p = expected == CR_OK ? protobuf_c_message_unpack(o->type, NULL, len, in) : NULL;
    if (p == NULL && expected == CR_OK && twice) return NULL;
    if (p == NULL && expected == CR_OK) expected = CR_INVALID_ARGUMENT;
    const char *what = p ? compare(o, ours, &aside, p) : NULL;
    if (p) protobuf_c_message_free_unpacked(p, NULL);
    if (expected != *status) return differ(o, error.text, *status == CR_OK ? "was to be refused" : "was to be read");
    if (what != NULL || *status != CR_OK) return *status == CR_OK ? what : NULL;
    return differs_written(o);
}
