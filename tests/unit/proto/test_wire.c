/* wire: limits, hostile payloads, growth. The exact bytes are the golden files' business. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/partial.h"
#include "proto/wire.h"
#include "tests/unit/check_main.h"

/* The enums of cured.proto, read as they stand there, agree with the lists of kernels/core. */
#define PROTO_IS(name, number, ours) _Static_assert((int)(ours) == (number), name " is the same on the wire and inside")
PROTO_IS("NAN_SKIP", 1, CR_NAN_SKIP);
PROTO_IS("OVERFLOW_WRAP", 1, CR_OVERFLOW_WRAP);
PROTO_IS("DTYPE_I128", 14, CR_I128);
PROTO_IS("DTYPE_INT", 15, CR_BIGINT);
PROTO_IS("DTYPE_DIGEST", 20, CR_DIGEST);

static uint8_t buffer[CR_DATA_MAX_BYTES];

/* The number that cured.proto gives to `name`; -1: none. */
static int proto_number(const char *name) {
    char line[256], word[64];
    int number, found = -1;
    FILE *f = fopen(PROTO_FILE, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, " %63[A-Z0-9_] = %d;", word, &number) == 2 && strcmp(word, name) == 0) found = number;
    fclose(f);
    return found;
}

START_TEST(numbers_agree_with_the_lists) {
#define CR_DTYPE(symbol, id, ...) ck_assert_int_eq(proto_number("DTYPE_" #symbol), id);
#include "kernels/core/dtype.def"
#undef CR_DTYPE
#define CR_OP(symbol, id, ...) ck_assert_int_eq(proto_number("OP_" #symbol), id);
#include "kernels/core/op.def"
#undef CR_OP
    ck_assert_int_eq(proto_number("OP_NO_SUCH_THING"), -1);
}
END_TEST

static cr_wire_call small_call(void) {
    return (cr_wire_call){
        .timeout_ms = 5,
        .kind = CR_CALL_REDUCE,
        .reduce = {
            .dtype = 12, .op_count = 1, .ops = {1}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 1024}};
}

static void refused(const uint8_t *in, size_t len, const char *says) {
    cr_wire_call m;
    cr_error e = {CR_OK, ""};
    ck_assert_int_eq(cr_wire_unpack_call(in, len, &m, &e), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(e.code, CR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(e.text, says) != NULL, "'%s' does not say '%s'", e.text, says);
}

START_TEST(cut_anywhere) {
    cr_wire_call m = small_call(), out;
    size_t n = cr_wire_pack_call(&m, buffer, sizeof buffer);
    for (size_t len = 0; len < n; len++) {
        uint8_t *exact = malloc(len + 1); /* so that a read beyond is seen */
        memcpy(exact, buffer, len);
        ck_assert_int_ne(cr_wire_unpack_call(exact, len, &out, NULL), CR_OK);
        free(exact);
    }
    ck_assert_int_eq(cr_wire_unpack_call(buffer, n, &out, NULL), CR_OK);
}
END_TEST

START_TEST(every_byte_wrong) {
    cr_wire_call m = small_call(), out;
    uint8_t in[64];
    size_t n = cr_wire_pack_call(&m, in, sizeof in);
    for (size_t i = 0; i < n; i++)
        for (unsigned v = 0; v < 256; v++) {
            uint8_t was = in[i];
            cr_error e = {CR_OK, ""};
            in[i] = (uint8_t)v;
            cr_status s = cr_wire_unpack_call(in, n, &out, &e);
            ck_assert(s == CR_OK || ((s == CR_INVALID_ARGUMENT || s == CR_UNIMPLEMENTED) && e.text[0] != '\0'));
            if (s == CR_OK && out.kind == CR_CALL_REDUCE) ck_assert_uint_le(out.reduce.op_count, CR_CALL_MAX_OPS);
            in[i] = was;
        }
}
END_TEST

START_TEST(call_limits) {
    cr_wire_call m = small_call(), out;
    m.timeout_ms = CR_TIMEOUT_MAX_MS;
    size_t n = cr_wire_pack_call(&m, buffer, sizeof buffer);
    ck_assert_int_eq(cr_wire_unpack_call(buffer, n, &out, NULL), CR_OK);
    m.timeout_ms++;
    refused(buffer, cr_wire_pack_call(&m, buffer, sizeof buffer), "timeout_ms");
    m = small_call();
    m.reduce.op_count = 0;
    refused(buffer, cr_wire_pack_call(&m, buffer, sizeof buffer), "ops");
    m.reduce.op_count = CR_CALL_MAX_OPS;
    for (uint32_t i = 0; i < CR_CALL_MAX_OPS; i++) m.reduce.ops[i] = i + 1;
    n = cr_wire_pack_call(&m, buffer, sizeof buffer);
    ck_assert_int_eq(cr_wire_unpack_call(buffer, n, &out, NULL), CR_OK);
    ck_assert_uint_eq(out.reduce.op_count, CR_CALL_MAX_OPS);
    ck_assert_mem_eq(out.reduce.ops, m.reduce.ops, sizeof m.reduce.ops);
    m.reduce.ops[31] = 7;
    refused(buffer, cr_wire_pack_call(&m, buffer, sizeof buffer), "twice");
    m = small_call();
    m.reduce.source = 0;
    refused(buffer, cr_wire_pack_call(&m, buffer, sizeof buffer), "input");
    refused(buffer, 0, "request");
    /* StreamInput without a length, and one that says unknown = false */
    refused((const uint8_t *)"\x1a\x09\x08\x0c\x12\x01\x01\x1a\x02\x0a\x00", 11, "length");
    refused((const uint8_t *)"\x1a\x0b\x08\x0c\x12\x01\x01\x1a\x04\x0a\x02\x10\x00", 13, "length");
    refused((const uint8_t *)"\x1a\x0b\x08\x0c\x12\x01\x01\x1a\x04\x12\x02\x18\x00", 13, "length");
}
END_TEST

/* Thousands of entries where a few are expected: refused, and nothing is allocated for them. */
START_TEST(many_entries) {
    size_t n = 0;
    /* Call.reduce with 60,000 ops, packed */
    static const uint8_t packed[] = {0x1a, 0xe4, 0xd4, 0x03, 0x12, 0xe0, 0xd4, 0x03};
    memcpy(buffer, packed, sizeof packed);
    memset(buffer + sizeof packed, 1, 60000);
    refused(buffer, sizeof packed + 60000, "");
    /* the same, one field each */
    static const uint8_t head[] = {0x1a, 0xc0, 0xb8, 0x02};
    memcpy(buffer, head, sizeof head);
    for (n = sizeof head; n < sizeof head + 40000; n += 2) memcpy(buffer + n, "\x10\x01", 2);
    refused(buffer, n, "");
    /* 21,845 fields that nobody knows, hints all of them */
    for (n = 0; n + 3 <= CR_HEAD_MAX_BYTES; n += 3) memcpy(buffer + n, "\x98\x06\x01", 3);
    refused(buffer, n, "");
    /* 32,768 empty results, lanes, features */
    cr_wire_result *result = malloc(sizeof *result);
    cr_wire_info *info = malloc(sizeof *info);
    cr_wire_hello hello;
    for (n = 0; n + 2 <= CR_HEAD_MAX_BYTES; n += 2) memcpy(buffer + n, "\x0a\x00", 2);
    ck_assert_int_eq(cr_wire_unpack_result(buffer, n, result, NULL), CR_INVALID_ARGUMENT);
    for (n = 0; n + 2 <= CR_HEAD_MAX_BYTES; n += 2) memcpy(buffer + n, "\x2a\x00", 2);
    ck_assert_int_eq(cr_wire_unpack_info(buffer, n, info, NULL), CR_INVALID_ARGUMENT);
    for (n = 0; n + 2 <= CR_HEAD_MAX_BYTES; n += 2) memcpy(buffer + n, "\x1a\x00", 2);
    ck_assert_int_eq(cr_wire_unpack_hello(buffer, n, &hello, NULL), CR_INVALID_ARGUMENT);
    /* the same message, 13,000 times, within itself: merged, never nested deeper than it is */
    for (n = 0; n + 5 <= CR_HEAD_MAX_BYTES; n += 5) memcpy(buffer + n, "\x1a\x03\x1a\x01\x0a", 5);
    refused(buffer, n, "");
    free(result);
    free(info);
}
END_TEST

START_TEST(largest_replies_fit) {
    cr_wire_result *r = calloc(1, sizeof *r), *back = malloc(sizeof *back);
    r->count = UINT64_MAX;
    r->timing = (cr_wire_timing){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    r->result_count = CR_CALL_MAX_OPS;
    for (uint32_t i = 0; i < CR_CALL_MAX_OPS; i++) {
        cr_wire_op_result *o = &r->results[i];
        *o = (cr_wire_op_result){.op = UINT32_MAX, .status = 11, .dtype = 15, .value_len = 32, .at_len = 8};
        memset(o->message, 'x', sizeof o->message - 1);
    }
    size_t n = cr_wire_pack_result(r, buffer, CR_HEAD_MAX_BYTES);
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(cr_wire_unpack_result(buffer, n, back, NULL), CR_OK);
    ck_assert_uint_eq(back->result_count, CR_CALL_MAX_OPS);
    ck_assert_uint_eq(strlen(back->results[31].message), CR_ERROR_TEXT - 1);
    ck_assert_uint_eq(cr_wire_pack_result(r, buffer, n), n);
    ck_assert_uint_eq(cr_wire_pack_result(r, buffer, n - 1), 0);
    free(r);
    free(back);
    cr_wire_info *info = calloc(1, sizeof *info), *info_back = malloc(sizeof *info_back);
    info->lane_count = CR_WIRE_MAX_LANES;
    info->user_count = CR_WIRE_MAX_USERS;
    for (int i = 0; i < CR_WIRE_MAX_USERS; i++) {
        memset(info->users[i].name, 'u', CR_NAME_MAX_BYTES);
        memset(&info->users[i].used, 0xff, sizeof info->users[i].used);
        memset(&info->users[i].limit, 0xff, sizeof info->users[i].limit);
    }
    info->counter_count = CR_WIRE_MAX_COUNTERS;
    for (int i = 0; i < CR_WIRE_MAX_LANES; i++) memset(info->lanes[i].name, 'n', CR_NAME_MAX_BYTES);
    for (int i = 0; i < CR_WIRE_MAX_LANES; i++) memset(info->lanes[i].device, 'd', CR_NAME_MAX_BYTES);
    for (int i = 0; i < CR_WIRE_MAX_COUNTERS; i++) memset(info->counters[i].name, 'c', CR_NAME_MAX_BYTES);
    memset(info->backend_reason, 'r', sizeof info->backend_reason - 1);
    n = cr_wire_pack_info(info, buffer, CR_HEAD_MAX_BYTES);
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(cr_wire_unpack_info(buffer, n, info_back, NULL), CR_OK);
    ck_assert_uint_eq(info_back->counter_count, CR_WIRE_MAX_COUNTERS);
    ck_assert_str_eq(info_back->counters[63].name, info->counters[63].name);
    ck_assert_uint_eq(info_back->user_count, CR_WIRE_MAX_USERS);
    ck_assert_mem_eq(&info_back->users[31].limit, &info->users[31].limit, sizeof info->users[31].limit);
    free(info);
    free(info_back);
}
END_TEST

START_TEST(result_bounds) {
    cr_wire_result m;
    cr_error e;
    uint8_t in[64] = {0x0a, 35, 0x2a, 33}; /* a value of 33 bytes */
    ck_assert_int_eq(cr_wire_unpack_result(in, 37, &m, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "value"));
    uint8_t at[64] = {0x0a, 11, 0x32, 9};
    ck_assert_int_eq(cr_wire_unpack_result(at, 13, &m, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "at"));
}
END_TEST

static size_t pack_register(cr_wire_region region) {
    cr_wire_call m = {.kind = CR_CALL_REGISTER, .region = region};
    return cr_wire_pack_call(&m, buffer, sizeof buffer);
}

START_TEST(regions_are_checked) {
    static const char *const bad_names[] = {"", "/", "name", "/a/b", "//a", "/.", "/.."};
    refused(buffer, pack_register((cr_wire_region){.kind = CR_SHARED_DESCRIPTOR}), "region is 0");
    refused(buffer, pack_register((cr_wire_region){.id = 1}), "source");
    for (size_t i = 0; i < sizeof bad_names / sizeof bad_names[0]; i++) {
        cr_wire_region named = {.id = 1, .kind = CR_SHARED_NAME};
        strcpy(named.name, bad_names[i]);
        refused(buffer, pack_register(named), "ShmRegion.name");
    }
    cr_wire_region device = {.id = 1, .kind = CR_SHARED_CUDA_IPC, .has_handle = true, .bytes = 0};
    refused(buffer, pack_register(device), "bytes");
    device.bytes = 2;
    device.offset = UINT64_MAX - 1;
    refused(buffer, pack_register(device), "offset");
    device.kind = CR_SHARED_CUDA_DESCRIPTOR;
    refused(buffer, pack_register(device), "offset");
    device.offset = UINT64_MAX - 2;
    cr_wire_call out;
    ck_assert_int_eq(cr_wire_unpack_call(buffer, pack_register(device), &out, NULL), CR_OK);
    /* register_region {region = 1, cuda_ipc {…}} with a UUID of 15 bytes, and with a handle of 63 */
    uint8_t in[128] = "\x32\x15\x08\x01\x22\x11\x0a\x0f";
    refused(in, 23, "device has 15 bytes, must have 16");
    uint8_t handle[128] = "\x32\x57\x08\x01\x22\x53\x0a\x10";
    memcpy(handle + 24, "\x12\x3f", 2);
    refused(handle, 89, "handle has 63 bytes, must have 64");
    refused((const uint8_t *)"\x3a\x00", 2, "UnregisterRequest.region is 0");
    /* reduce {dtype, ops, input {region {region = 1}}}: no length */
    refused((const uint8_t *)"\x1a\x0b\x08\x0c\x12\x01\x01\x1a\x04\x1a\x02\x08\x01", 13, "RegionInput.length");
}
END_TEST

START_TEST(longest_name) {
    /* register_region {region = 1, shm {name}}: a name of 255 bytes, and of 256 */
    for (unsigned len = CR_SHM_NAME_MAX_BYTES; len <= CR_SHM_NAME_MAX_BYTES + 1; len++) {
        uint8_t head[] = {0x32, 0, 0, 0x08, 1, 0x1a, 0, 0, 0x0a, 0, 0, '/'};
        unsigned inner[] = {len + 8, len + 3, len};
        for (int i = 0; i < 3; i++) {
            head[i == 0 ? 1 : i == 1 ? 6 : 9] = (uint8_t)(inner[i] & 0x7f) | 0x80;
            head[i == 0 ? 2 : i == 1 ? 7 : 10] = (uint8_t)(inner[i] >> 7);
        }
        memcpy(buffer, head, sizeof head);
        memset(buffer + sizeof head, 'n', len - 1);
        size_t all = sizeof head + len - 1;
        if (len > CR_SHM_NAME_MAX_BYTES) {
            refused(buffer, all, "limit is 255");
            continue;
        }
        cr_wire_call out;
        ck_assert_int_eq(cr_wire_unpack_call(buffer, all, &out, NULL), CR_OK);
        ck_assert_uint_eq(strlen(out.region.name), len);
    }
}
END_TEST

START_TEST(text_is_cut_and_cleaned) {
    cr_wire_status m = {.code = CR_INTERNAL}, out;
    /* 238 bytes, then a character of two bytes that does not fit whole */
    uint8_t in[512] = {0x08, 13, 0x12, 0x84, 0x02};
    memset(in + 5, 'a', 260);
    memcpy(in + 5 + 238, "\xc3\xa9", 2);
    ck_assert_int_eq(cr_wire_unpack_status(in, 265, &out, NULL), CR_OK);
    ck_assert_uint_eq(strlen(out.message), 238);
    strcpy(m.message, "red \033[31m\nline\x7f");
    size_t n = cr_wire_pack_status(&m, buffer, sizeof buffer);
    ck_assert_int_eq(cr_wire_unpack_status(buffer, n, &out, NULL), CR_OK);
    ck_assert_str_eq(out.message, "red ?[31m?line?");
    m.code = (cr_status)4711;
    n = cr_wire_pack_status(&m, buffer, sizeof buffer);
    ck_assert_int_eq(cr_wire_unpack_status(buffer, n, &out, NULL), CR_OK);
    ck_assert_int_eq(out.code, CR_UNKNOWN);
}
END_TEST

START_TEST(hello_bounds) {
    cr_wire_hello m = {.version_min = 1, .version_max = 1}, out;
    cr_error e;
    memset(m.client, 'c', CR_NAME_MAX_BYTES);
    size_t n = cr_wire_pack_hello(&m, buffer, sizeof buffer);
    ck_assert_int_eq(cr_wire_unpack_hello(buffer, n, &out, NULL), CR_OK);
    ck_assert_str_eq(out.client, m.client);
    /* one byte more */
    uint8_t in[80] = {0x08, 1, 0x10, 1, 0x22, 65};
    memset(in + 6, 'c', 65);
    ck_assert_int_eq(cr_wire_unpack_hello(in, 71, &out, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "limit is 64"));
    static const uint8_t versions[][2] = {{0, 0}, {0, 1}, {2, 1}};
    for (size_t i = 0; i < 3; i++) {
        m = (cr_wire_hello){.version_min = versions[i][0], .version_max = versions[i][1]};
        n = cr_wire_pack_hello(&m, buffer, sizeof buffer);
        ck_assert_int_eq(cr_wire_unpack_hello(buffer, n, &out, NULL), CR_INVALID_ARGUMENT);
    }
    /* 20 features, one of them too long for any this version knows */
    n = (size_t)(stpcpy((char *)buffer, "\x08\x01\x10\x01") - (char *)buffer);
    buffer[n++] = 0x1a;
    buffer[n++] = 100;
    memset(buffer + n, 'f', 100);
    n += 100;
    for (int i = 0; i < 19; i++) {
        memcpy(buffer + n, "\x1a\x01x", 3);
        n += 3;
    }
    ck_assert_int_eq(cr_wire_unpack_hello(buffer, n, &out, NULL), CR_OK);
    ck_assert_uint_eq(out.feature_count, CR_WIRE_MAX_FEATURES);
    ck_assert_str_eq(out.features[0], "x");
}
END_TEST

/* Strings end where their length says: a NUL within would cut them in silence. */
START_TEST(strings_have_no_nul) {
    /* reduce {dtype, ops, input {stream {bytes = 12}}, kernel = "v7\0x"} */
    refused((const uint8_t *)"\x1a\x11\x08\x0c\x12\x01\x01\x1a\x04\x0a\x02\x08\x0c\x5a\x04v7\0x", 19,
            "ReduceRequest.kernel has a NUL");
    refused((const uint8_t *)"\x32\x0a\x08\x01\x1a\x06\x0a\x04/a\0b", 12, "ShmRegion.name has a NUL");
    cr_error e;
    cr_wire_hello hello;
    ck_assert_int_eq(cr_wire_unpack_hello((const uint8_t *)"\x08\x01\x10\x01\x22\x03x\0y", 9, &hello, &e),
                     CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "Hello.client has a NUL"));
    ck_assert_int_eq(cr_wire_unpack_hello((const uint8_t *)"\x08\x01\x10\x01\x1a\x03x\0y", 9, &hello, &e),
                     CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "Hello.features has a NUL"));
    cr_wire_status status;
    ck_assert_int_eq(cr_wire_unpack_status((const uint8_t *)"\x08\x03\x12\x03n\0o", 7, &status, &e),
                     CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "Status.message has a NUL"));
}
END_TEST

/* reduce {dtype, ops, input {stream {bytes = 12}}} with one varint in place of the dtype or the op. */
static size_t call_with(uint8_t *out, uint64_t dtype, uint64_t op, bool packed) {
    uint8_t *start = out, number[10];
    size_t n = 0;
    *out++ = 0x1a;
    uint8_t *length = out++;
    *out++ = 0x08;
    for (; dtype >= 0x80; dtype >>= 7) *out++ = (uint8_t)(dtype | 0x80);
    *out++ = (uint8_t)dtype;
    for (; op >= 0x80; op >>= 7) number[n++] = (uint8_t)(op | 0x80);
    number[n++] = (uint8_t)op;
    *out++ = packed ? 0x12 : 0x10;
    if (packed) *out++ = (uint8_t)n;
    memcpy(out, number, n);
    out = (uint8_t *)memcpy(out + n, "\x1a\x04\x0a\x02\x08\x0c", 6) + 6;
    *length = (uint8_t)(out - length - 1);
    return (size_t)(out - start);
}

/* A number that a field has no bits for is another number, and never taken for what is left of it. */
START_TEST(numbers_are_not_cut) {
    static const uint64_t wrong[] = {UINT64_C(1) << 31,        UINT32_MAX,        (UINT64_C(1) << 32) + 1,
                                     (UINT64_C(1) << 35) + 12, UINT64_C(1) << 63, UINT64_MAX - INT32_MAX - 1};
    uint8_t in[64];
    cr_wire_call out;
    cr_error e;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        refused(in, call_with(in, wrong[i], 1, true), "ReduceRequest.dtype");
        refused(in, call_with(in, 12, wrong[i], true), "ReduceRequest.ops");
        refused(in, call_with(in, 12, wrong[i], false), "ReduceRequest.ops");
    }
    /* negative numbers are whole: the next room says that it knows none of them */
    ck_assert_int_eq(cr_wire_unpack_call(in, call_with(in, UINT64_MAX, 1, true), &out, &e), CR_OK);
    ck_assert_uint_eq(out.reduce.dtype, UINT32_MAX);
    /* timeout_ms and progress_ms have 32 bits too */
    refused((const uint8_t *)"\x08\x85\x80\x80\x80\x10\x22\x00", 8, "Call.timeout_ms is 4294967301");
    refused((const uint8_t *)"\x10\x85\x80\x80\x80\x10\x22\x00", 8, "Call.progress_ms is 4294967301");
    /* dtype = 12 and a bit beyond the 64 of a varint */
    refused((const uint8_t *)"\x1a\x14\x08\x8c\x80\x80\x80\x80\x80\x80\x80\x80\x02\x12\x01\x01\x1a\x04\x0a\x02\x08\x0c",
            22, "ReduceRequest is not a valid");
}
END_TEST

/* What a terminal could take for a command, and what is no UTF-8, is replaced byte by byte. */
START_TEST(text_is_printable) {
    static const struct {
        const char *in, *out;
    } texts[] = {
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\x80"},
        {"\xc2\x9b"
         "31m",
         "??31m"}, /* CSI as one character */
        {"\x9b"
         "31m",
         "?31m"},                          /* and as one byte */
        {"\xc0\x9b\xe0\x82\x9b", "?????"}, /* and longer than it need be */
        {"\xed\xa0\x80", "???"},           /* half of a pair of UTF-16 */
        {"\xf4\x90\x80\x80\xff", "?????"}, /* beyond the last character */
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_wire_status m = {.code = CR_INTERNAL}, out;
        strcpy(m.message, texts[i].in);
        size_t n = cr_wire_pack_status(&m, buffer, sizeof buffer);
        ck_assert_int_eq(cr_wire_unpack_status(buffer, n, &out, NULL), CR_OK);
        ck_assert_str_eq(out.message, texts[i].out);
    }
}
END_TEST

START_TEST(too_small_a_buffer) {
    cr_wire_call m = small_call();
    size_t n = cr_wire_pack_call(&m, buffer, sizeof buffer);
    for (size_t cap = 0; cap < n; cap++) {
        memset(buffer, 0xee, 64);
        ck_assert_uint_eq(cr_wire_pack_call(&m, buffer, cap), 0);
        ck_assert_uint_eq(buffer[cap], 0xee);
    }
}
END_TEST

CR_CHECK_MAIN("wire") {
    tcase_add_test(tc, numbers_agree_with_the_lists);
    tcase_add_test(tc, cut_anywhere);
    tcase_add_test(tc, every_byte_wrong);
    tcase_add_test(tc, call_limits);
    tcase_add_test(tc, many_entries);
    tcase_add_test(tc, largest_replies_fit);
    tcase_add_test(tc, result_bounds);
    tcase_add_test(tc, regions_are_checked);
    tcase_add_test(tc, longest_name);
    tcase_add_test(tc, text_is_cut_and_cleaned);
    tcase_add_test(tc, hello_bounds);
    tcase_add_test(tc, strings_have_no_nul);
    tcase_add_test(tc, numbers_are_not_cut);
    tcase_add_test(tc, text_is_printable);
    tcase_add_test(tc, too_small_a_buffer);
}
