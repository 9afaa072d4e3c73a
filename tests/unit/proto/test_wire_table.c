/* fields.def and parts.def beside cured.proto, and the reader and writer that are made from them beside protobuf-c: random messages,
 * right, damaged, with fields that nobody knows, with fields that come twice. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check_main.h"
#include "tests/unit/proto/wire_oracle.h"

enum { ROUNDS = 4000 / CHECK_SPARSE };

static uint64_t state = 3;

static uint64_t random_number(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Often 0, often small, sometimes anything. */
static uint64_t some_number(void) {
    uint64_t r = random_number();
    return r % 3 == 0 ? 0 : r % 3 == 1 ? (r >> 8) % 40 : (r >> 8) >> (r >> 2) % 56;
}

static bool kind_is(const cr_wire_row *row, const ProtobufCFieldDescriptor *field) {
    const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    switch ((cr_row_kind)row->kind) {
        case CR_ROW_U32:
        case CR_ROW_CODE:
            return field->type == PROTOBUF_C_TYPE_UINT32 && !repeated;
        case CR_ROW_ENUM:
            return field->type == PROTOBUF_C_TYPE_ENUM && !repeated;
        case CR_ROW_U64:
            return field->type == PROTOBUF_C_TYPE_UINT64 && !repeated;
        case CR_ROW_BOOL:
        case CR_ROW_FLAG:
            return field->type == PROTOBUF_C_TYPE_BOOL && !repeated;
        case CR_ROW_DOUBLE:
        case CR_ROW_REAL:
            return field->type == PROTOBUF_C_TYPE_DOUBLE && !repeated;
        case CR_ROW_TEXT:
        case CR_ROW_NAME:
        case CR_ROW_RAW:
            return field->type == PROTOBUF_C_TYPE_STRING && !repeated;
        case CR_ROW_NAMES:
        case CR_ROW_TEXTS:
            return field->type == PROTOBUF_C_TYPE_STRING && repeated;
        case CR_ROW_BLOB:
        case CR_ROW_FIXED:
        case CR_ROW_POINTER:
            return field->type == PROTOBUF_C_TYPE_BYTES && !repeated;
        case CR_ROW_PASSED:
            return field->type == PROTOBUF_C_TYPE_BYTES;
        case CR_ROW_ENUMS:
            return field->type == PROTOBUF_C_TYPE_ENUM && repeated;
        case CR_ROW_MESSAGE:
            return field->type == PROTOBUF_C_TYPE_MESSAGE && !repeated &&
                   wire_oracle_of_row(row)->type == field->descriptor;
        case CR_ROW_LIST:
        case CR_ROW_COUNTED:
            return field->type == PROTOBUF_C_TYPE_MESSAGE && repeated &&
                   wire_oracle_of_row(row)->type == field->descriptor && wire_oracle_of_row(row)->bytes == row->bytes;
    }
    return false;
}

/* A row for each field of cured.proto, with its number, name and type; and none besides. */
START_TEST(rows_are_those_of_the_schema) {
    const wire_oracle *all;
    for (size_t i = 0, n = wire_oracle_all(&all); i < n; i++) {
        const wire_oracle *o = &all[i];
        ck_assert_str_eq(o->name, o->type->short_name);
        ck_assert_str_eq(o->name, o->message->name);
        ck_assert_msg(o->row_count == o->type->n_fields, "%s has %zu rows and %u fields", o->name, o->row_count,
                      o->type->n_fields);
        ck_assert_uint_le(o->bytes, 64 * 1024);
        for (size_t k = 0; k < o->row_count; k++) {
            const cr_wire_row *row = &o->rows[k];
            const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(o->type, row->number);
            ck_assert_msg(field != NULL, "%s has no field %u", o->name, row->number);
            ck_assert_str_eq(field->name, row->name);
            ck_assert_msg(kind_is(row, field), "%s.%s is of another type", o->name, row->name);
            ck_assert_msg(k == 0 || row->number > row[-1].number, "%s.%s: numbers rise", o->name, row->name);
            if (row->kind == CR_ROW_LIST || row->kind == CR_ROW_COUNTED) ck_assert_uint_le(row->bytes, 1024);
            if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ck_assert_uint_ne(row->chosen_bytes, 0);
        }
    }
}
END_TEST

static size_t put_varint(uint8_t *out, uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

enum { CAP = 1 << 14 };

static size_t random_message(const ProtobufCMessageDescriptor *type, uint8_t *out, size_t cap);

static size_t random_text(uint8_t *out, size_t cap) {
    const uint64_t r = random_number();
    size_t n = r % 4 == 0 ? 0 : r % 4 == 1 ? (r >> 8) % 300 : (r >> 8) % 20;
    if (n > cap) n = cap;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)('a' + i % 26);
    if (n && (r >> 32) % 100 == 0) out[(r >> 40) % n] = (uint8_t)random_number();
    return n;
}

static size_t random_bytes(uint8_t *out, size_t cap) {
    static const size_t sizes[] = {0, 1, 8, 9, 16, 32, 33, 64, 65, 200};
    const size_t n = sizes[random_number() % (sizeof sizes / sizeof sizes[0])];
    if (n > cap) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)random_number();
    return n;
}

static size_t random_enums(uint8_t *out, size_t cap) {
    size_t n = 0;
    for (uint64_t k = random_number() % 40; k > 0 && n + 10 <= cap; k--)
        n += put_varint(out + n, random_number() % 50 ? some_number() & INT32_MAX : some_number());
    return n;
}

/* The value of a field whose length stands before it. */
static size_t random_inner(const ProtobufCFieldDescriptor *field, uint8_t *out, size_t cap) {
    switch (field->type) {
        case PROTOBUF_C_TYPE_STRING:
            return random_text(out, cap);
        case PROTOBUF_C_TYPE_MESSAGE:
            return random_message(field->descriptor, out, cap);
        case PROTOBUF_C_TYPE_ENUM:
            return random_enums(out, cap);
        default:
            return random_bytes(out, cap);
    }
}

static bool is_long(const ProtobufCFieldDescriptor *field) {
    if (field->type == PROTOBUF_C_TYPE_ENUM) return field->label == PROTOBUF_C_LABEL_REPEATED && random_number() % 4;
    return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES ||
           field->type == PROTOBUF_C_TYPE_MESSAGE;
}

static size_t random_field(const ProtobufCFieldDescriptor *field, uint8_t *out, size_t cap) {
    const unsigned wire = random_number() % 100 == 0              ? random_number() % 6
                          : is_long(field)                        ? 2
                          : field->type == PROTOBUF_C_TYPE_DOUBLE ? 1
                                                                  : 0;
    static const size_t fixed[] = {[1] = 8, [5] = 4};
    uint8_t *inner;
    size_t n = put_varint(out, (uint64_t)field->id << 3 | wire), len;
    if (wire == 0) {
        uint64_t value = some_number();
        if (field->type == PROTOBUF_C_TYPE_UINT32 && random_number() % 50) value &= UINT32_MAX;
        if (field->type == PROTOBUF_C_TYPE_ENUM && random_number() % 50) value &= INT32_MAX;
        if (field->type == PROTOBUF_C_TYPE_ENUM && random_number() % 20 == 0) value = ~value;
        return n + put_varint(out + n, value);
    }
    if (wire != 2) {
        for (size_t i = 0; i < fixed[wire]; i++) out[n++] = (uint8_t)random_number();
        return n;
    }
    inner = malloc(cap);
    ck_assert_ptr_nonnull(inner);
    len = random_inner(field, inner, cap - 32);
    n += put_varint(out + n, len);
    memcpy(out + n, inner, len);
    free(inner);
    return n + len;
}

static size_t random_message(const ProtobufCMessageDescriptor *type, uint8_t *out, size_t cap) {
    const uint64_t r = random_number();
    size_t n = 0;
    for (uint64_t k = r % 8 == 0 ? (r >> 8) % 60 : (r >> 8) % (type->n_fields + 2); k > 0 && n + 1024 < cap; k--) {
        if (type->n_fields == 0 || random_number() % 60 == 0) {
            n +=
                put_varint(out + n, (random_number() % 2 ? 64 + random_number() % 36 : 1 + random_number() % 120) << 3);
            n += put_varint(out + n, some_number());
        } else {
            n += random_field(&type->fields[random_number() % type->n_fields], out + n, (cap - n) / 4);
        }
    }
    return n;
}

/* Cuts, inserts and changes one to three bytes of n; how many there are then, at most three more. */
static size_t damage(uint8_t *bytes, size_t n) {
    for (uint64_t k = random_number() % 3 + 1; k > 0; k--) {
        uint64_t r = random_number();
        if (r % 4 == 0 && n > 1) {
            n = (size_t)(r >> 8) % n;
        } else if (r % 4 == 1) {
            size_t at = (size_t)(r >> 8) % (n + 1);
            memmove(bytes + at + 1, bytes + at, n++ - at);
            bytes[at] = (uint8_t)(r >> 40);
        } else if (n) {
            bytes[(size_t)(r >> 8) % n] =
                r % 4 == 2 ? (uint8_t)(r >> 40) : bytes[(size_t)(r >> 8) % n] ^ (uint8_t)(1u << (r >> 40) % 8);
        }
    }
    return n;
}

static void say(const uint8_t *in, size_t len, const char *what) {
    if (what == NULL) return;
    for (size_t i = 0; i < len && i < 100; i++) fprintf(stderr, "%02x", in[i]);
    fprintf(stderr, "\n");
    ck_abort_msg("%s", what);
}

START_TEST(messages_are_read_and_written_as_by_protobuf) {
    const wire_oracle *all;
    const size_t n = wire_oracle_all(&all);
    const wire_oracle *o = &all[_i];
    int accepted = 0;
    ck_assert_uint_lt((size_t)_i, n);
    state = (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (int i = 0; i < ROUNDS; i++) {
        static uint8_t bytes[CAP + 3];
        cr_status status;
        const cr_wire_manner manner = (cr_wire_manner)(random_number() % 3);
        size_t len = random_message(o->type, bytes, CAP);
        if (random_number() % 3 == 0) len = damage(bytes, len);
        uint8_t *exact = malloc(len + !len); /* so that a read beyond is seen */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bytes, len);
        say(exact, len, wire_oracle_differs(o, manner, exact, len, &status));
        accepted += status == CR_OK;
        free(exact);
    }
    ck_assert_msg(accepted > ROUNDS / 20, "%s: %d of %d were read", o->name, accepted, ROUNDS);
}
END_TEST

CR_CHECK_MAIN("proto/wire_table") {
    const wire_oracle *all;
    tcase_add_test(tc, rows_are_those_of_the_schema);
    tcase_add_loop_test(tc, messages_are_read_and_written_as_by_protobuf, 0, (int)wire_oracle_all(&all));
}
