/* wire: how messages grow: what an old client sent and a new one will send, and what each side makes of fields that it does
 * not know. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "tests/unit/check_main.h"

static uint8_t buffer[CR_HEAD_MAX_BYTES];

/* Field `number` with `len` bytes of value, at out. */
static size_t put_bytes_field(uint8_t *out, unsigned number, const uint8_t *value, size_t len) {
    uint8_t *at = out;
    for (uint64_t tag = number << 3 | 2; tag != 0; tag >>= 7) *at++ = (uint8_t)((tag & 0x7f) | (tag >> 7 ? 0x80 : 0));
    ck_assert_uint_lt(len, 128);
    *at++ = (uint8_t)len;
    memcpy(at, value, len);
    return (size_t)(at + len - out);
}

/* A good Call with one more field in the message `inside`: "call", "reduce_request", … */
static size_t call_with_field(const char *inside, unsigned number, uint8_t *out) {
    static const struct {
        const char *message;
        unsigned path[3]; /* from the field itself to Call */
        const char *rest; /* what the message has besides */
    } places[] = {
        {"call", {0}, ""},
        {"reduce_request", {3}, "\x08\x0c\x12\x01\x01\x1a\x04\x0a\x02\x08\x0c"},
        {"merge_request", {5}, "\x0a\x01\x01\x12\x02\x08\x0c"},
        {"input", {3, 3}, ""},
        {"descriptor_input", {2, 3, 3}, "\x18\x01"},
        {"register_request", {6}, "\x08\x01"},
        {"axis", {8, 3}, ""},
        {"output", {17, 3}, ""},
        {"mask", {14, 3}, ""},
        {"parameter", {12, 3}, ""},
        {"segments", {15, 3}, ""},
        {"keys", {20, 3}, ""},
        {"second", {13, 3}, ""},
        {"array_layout", {16, 3}, ""},
        {"array_axis", {1, 16, 3}, ""},
        {"stream_input", {1, 3, 3}, ""},
        {"region_input", {3, 3, 3}, ""},
    };
    uint8_t inner[128];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(places[i].message, inside) != 0) continue;
        size_t n = strlen(places[i].rest);
        memcpy(out, places[i].rest, n);
        n += put_bytes_field(out + n, number, (const uint8_t *)"new", 3);
        for (int k = 0; k < 3 && places[i].path[k] != 0; k++) {
            memcpy(inner, out, n);
            n = put_bytes_field(out, places[i].path[k], inner, n);
        }
        return n;
    }
    ck_abort_msg("no place for %s", inside);
}

static void is_lacking(const char *inside, unsigned number, const char *says) {
    uint8_t in[128];
    cr_wire_call m;
    cr_error e;
    size_t n = call_with_field(inside, number, in);
    cr_status status = cr_wire_unpack_call(in, n, &m, &e);
    ck_assert_msg(status == CR_UNIMPLEMENTED, "%s %u: %d %s", inside, number, status, e.text);
    ck_assert_msg(strstr(e.text, says) != NULL, "'%s' does not say '%s'", e.text, says);
}

/* What new clients will send: fields that change the answer are refused by name, whether they are reserved or not. */
START_TEST(fields_to_come_are_refused) {
    static const struct {
        const char *message;
        unsigned number;
        const char *name;
    } fields[] = {
#define CR_RESERVED(message, number, name) {#message, number, name},
#include "proto/reserved.def"
#undef CR_RESERVED
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char says[64];
        snprintf(says, sizeof says, ".%s (field %u)", fields[i].name, fields[i].number);
        is_lacking(fields[i].message, fields[i].number, says);
    }
    static const char *const messages[] = {
        "call",         "reduce_request", "merge_request", "input", "descriptor_input", "axis", "register_request",
        "stream_input", "region_input",   "output",        "mask",  "segments",         "keys", "second",
        "parameter",    "array_layout",   "array_axis"};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        is_lacking(messages[i], 40, "has field 40");
        is_lacking(messages[i], 62, "has field 62");
        is_lacking(messages[i], 1000, "has field 1000");
    }
    /* wrong altogether is worse than unknown */
    cr_wire_call m;
    cr_error e;
    ck_assert_int_eq(cr_wire_unpack_call((const uint8_t *)"\xba\x01\x00\x1a", 4, &m, &e), CR_INVALID_ARGUMENT);
    /* more of ReduceRequest.data than unpacking has room for */
    uint8_t head[] = {0x1a, 0xf0, 0xb8, 0x02, 0xa2, 0x06, 0xeb, 0xb8, 0x02};
    memcpy(buffer, head, sizeof head);
    memset(buffer + sizeof head, 1, 40043);
    ck_assert_int_eq(cr_wire_unpack_call(buffer, sizeof head + 40043, &m, &e), CR_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(e.text, "ReduceRequest.data (field 100)"));
}
END_TEST

/* Hints, and everything in replies and HELLO: a peer that does not know it goes on without. */
START_TEST(other_fields_are_ignored) {
    cr_wire_call out;
    cr_wire_hello hello;
    cr_wire_part part;
    size_t n = call_with_field("reduce_request", 64, buffer);
    memcpy(buffer + n, "\x82\x04\x03new\x98\x06\x07", 9); /* fields 64 and 99 */
    ck_assert_int_eq(cr_wire_unpack_call(buffer, n + 9, &out, NULL), CR_OK);
    ck_assert_uint_eq(out.reduce.length, 12);
    uint8_t in[128];
    n = call_with_field("reduce_request", 80, in);
    ck_assert_int_eq(cr_wire_unpack_call(in, n, &out, NULL), CR_OK);
    /* a token in HELLO, a field of ArrayPart that is to come: what an old client gets, and an old server */
    ck_assert_int_eq(cr_wire_unpack_hello((const uint8_t *)"\x08\x01\x10\x01\x2a\x03key", 9, &hello, NULL), CR_OK);
    ck_assert_str_eq(hello.token, "key");
    ck_assert_int_eq(cr_wire_unpack_part((const uint8_t *)"\x1a\x01\x05\x2a\x01\x00", 6, &part, NULL), CR_OK);
    ck_assert_uint_eq(part.values_len, 1);
    n = (size_t)(stpcpy((char *)in,
                        "\x08\x08\x12\x04"
                        "full\xa2\x06\x03new") -
                 (char *)in);
    cr_wire_status status;
    ck_assert_int_eq(cr_wire_unpack_status(in, n, &status, NULL), CR_OK);
    ck_assert_str_eq(status.message, "full");
}
END_TEST

/* cured.proto reserves what reserved.def names, and no number twice; enums, HELLO and replies have their own. */
START_TEST(reserved_numbers_agree) {
    static const char *const expected[] = {
#define CR_RESERVED(message, number, name) #message " " #number " " name,
#include "proto/reserved.def"
#undef CR_RESERVED
        "dtype 18 DTYPE_C64",
        "dtype 19 DTYPE_C128",
    };
    enum { EXPECTED = sizeof expected / sizeof expected[0] };
    char line[256], word[64], name[64], inside[64] = "", found[192];
    int number;
    size_t seen = 0;
    FILE *f = fopen(PROTO_FILE, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "message %63s {", word) == 1 || sscanf(line, "enum %63s {", word) == 1) {
            size_t n = 0; /* ReduceRequest as reduce_request */
            for (size_t i = 0; word[i] != '\0' && n + 2 < sizeof inside; i++) {
                bool capital = word[i] >= 'A' && word[i] <= 'Z';
                if (capital && i != 0) inside[n++] = '_';
                inside[n++] = (char)(capital ? word[i] + ('a' - 'A') : word[i]);
            }
            inside[n] = '\0';
        }
        if (sscanf(line, " reserved %d; reserved \"%63[A-Za-z0-9_]\";", &number, name) != 2) continue;
        snprintf(found, sizeof found, "%s %d %s", inside, number, name);
        bool known = false;
        for (size_t i = 0; i < EXPECTED; i++) known = known || strcmp(expected[i], found) == 0;
        ck_assert_msg(known, "cured.proto reserves '%s'", found);
        seen++;
    }
    fclose(f);
    ck_assert_uint_eq(seen, EXPECTED);
}
END_TEST

/* What goes beside a reduction shares its memory with the regions of other calls: those are written as they are. */
START_TEST(other_calls_have_nothing_beside) {
    static uint8_t alone[CR_HEAD_MAX_BYTES];
    cr_wire_call m = {.timeout_ms = 1, .kind = CR_CALL_REGISTER};
    m.region = (cr_wire_region){.id = 7, .kind = CR_SHARED_CUDA_IPC, .has_handle = true, .has_event = true, .bytes = 9};
    memset(m.region.device, 0xd1, sizeof m.region.device);
    memset(m.region.handle, 0xa5, sizeof m.region.handle);
    memset(m.region.event, 0xe7, sizeof m.region.event);
    const size_t bytes = cr_wire_pack_call(&m, alone, sizeof alone);
    ck_assert_uint_ne(bytes, 0);
    ck_assert_uint_eq(cr_wire_pack_more(&m, &(cr_wire_more){.beside = NULL}, buffer, sizeof buffer), bytes);
    ck_assert(memcmp(buffer, alone, bytes) == 0);
}
END_TEST

CR_CHECK_MAIN("wire growth") {
    tcase_add_test(tc, other_calls_have_nothing_beside);
    tcase_add_test(tc, fields_to_come_are_refused);
    tcase_add_test(tc, other_fields_are_ignored);
    tcase_add_test(tc, reserved_numbers_agree);
}
