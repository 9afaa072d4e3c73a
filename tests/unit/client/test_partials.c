/* libcured's partials: over the wire against a fake daemon, and merged and finished here, against values known by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cured/by_key.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

/* The partial of the u8 elements a, b at base and base + 1, for max and sum: by hand, from docs/PARTIALS.md. */
static size_t two(uint8_t *out, uint8_t a, uint8_t b, uint8_t base) {
    const uint8_t head[] = {'C', 'P', 1, CURED_U8, 1 + 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    uint8_t sum = (uint8_t)(a + b), low = a < b ? a : b, high = a < b ? b : a;
    size_t n = sizeof head;
    memset(out, 0, 256);
    memcpy(out, head, sizeof head);
    out[n] = base;
    out[n + 8] = 2;
    n += 16;
    out[n + 2] = sum != 0; /* positive, from digit 0 on, one digit */
    n += 4;
    if (sum != 0) out[n] = sum, n += 4;
    out[n] = low;
    out[n + 8] = (uint8_t)(base + (low == a ? 0 : 1));
    out[n + 16] = high;
    out[n + 24] = (uint8_t)(base + (high == a ? 0 : 1));
    memset(out + n + 32, 0xff, 8); /* no NaN */
    return n + 40;
}

START_TEST(merged_here) {
    uint8_t a[256], b[256], c[256], ab[CURED_PARTIAL_BYTES], all[CURED_PARTIAL_BYTES], other[CURED_PARTIAL_BYTES];
    cured_bytes parts[] = {{a, two(a, 1, 2, 0)}, {b, two(b, 9, 4, 2)}, {c, two(c, 7, 9, 4)}};
    cured_bytes backwards[] = {parts[2], parts[1], parts[0]};
    size_t n = sizeof all, m = sizeof ab, k = sizeof other;
    ck_assert_msg(cured_partial_merge(parts, 3, all, &n, &error) == CURED_OK, "%s", error.text);
    ck_assert_int_eq(cured_partial_merge(backwards, 3, other, &k, &error), CURED_OK);
    ck_assert(k == n && memcmp(all, other, n) == 0);
    ck_assert_int_eq(cured_partial_merge(parts, 2, ab, &m, &error), CURED_OK);
    cured_bytes steps[] = {parts[2], {ab, m}};
    m = sizeof ab; /* into one of them */
    ck_assert_int_eq(cured_partial_merge(steps, 2, ab, &m, &error), CURED_OK);
    ck_assert(m == n && memcmp(all, ab, n) == 0);
    cured_dtype dtype;
    uint64_t count;
    ck_assert_int_eq(cured_partial_check(all, n, &dtype, &count, &error), CURED_OK);
    ck_assert(dtype == CURED_U8 && count == 6);
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMAX, CURED_OP_MIN, CURED_OP_COUNT, CURED_OP_MEAN};
    cured_values *values;
    char text[CURED_TEXT_BYTES];
    const char *want[] = {"32", "2", "1", "6", "5.333333333333333"};
    ck_assert_msg(cured_partial_finish(all, n, ops, 5, NULL, &values, &error) == CURED_OK, "%s", error.text);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(cured_value_op(cured_values_get(values, i)), ops[i]);
        ck_assert_int_eq(cured_value_text(cured_values_get(values, i), text, sizeof text), CURED_OK);
        ck_assert_str_eq(text, want[i]);
    }
    size_t at_bytes;
    const uint8_t *at = cured_value_at(cured_values_get(values, 1), &dtype, &at_bytes);
    ck_assert(dtype == CURED_U8 && at_bytes == 1 && *at == 9);
    ck_assert_ptr_null(cured_values_get(values, 5));
    cured_values_free(values);
    cured_values_free(NULL);
}
END_TEST

START_TEST(refused_here) {
    uint8_t a[256], b[256], out[CURED_PARTIAL_BYTES], untouched[4] = {1, 2, 3, 4};
    size_t an = two(a, 1, 2, 0), bn = two(b, 9, 4, 1), n = sizeof out;
    cured_bytes parts[] = {{a, an}, {b, bn}};
    cured_values *values = (cured_values *)&f;
    const cured_op var = CURED_OP_VAR, sum = CURED_OP_SUM;
    ck_assert_int_eq(cured_partial_merge(parts, 2, out, &n, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "partials[1]: elements from 1 on are in two of them");
    ck_assert_int_eq(cured_partial_merge(parts, 0, out, &n, &error), CURED_INVALID_ARGUMENT);
    n = sizeof untouched;
    ck_assert_int_eq(cured_partial_merge(parts, 1, untouched, &n, &error), CURED_INVALID_ARGUMENT);
    ck_assert_uint_eq(n, an);
    ck_assert(untouched[0] == 1 && untouched[3] == 4);
    for (size_t cut = 0; cut < an; cut++) {
        ck_assert_int_eq(cured_partial_check(a, cut, NULL, NULL, &error), CURED_INVALID_ARGUMENT);
        ck_assert_str_ne(error.text, "");
    }
    a[2] = 4;
    ck_assert_int_eq(cured_partial_check(a, an, NULL, NULL, &error), CURED_UNIMPLEMENTED);
    a[2] = 1;
    ck_assert_int_eq(cured_partial_finish(a, an, &var, 1, NULL, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(values);
    ck_assert_msg(strstr(error.text, "not made for var") != NULL, "%s", error.text);
    const cured_op both[] = {CURED_OP_MAX, CURED_OP_SUM};
    cured_options o = CURED_OPTIONS_INIT;
    o.ddof = 1;
    ck_assert_int_eq(cured_partial_finish(a, an, both, 2, &o, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "ddof: none of the ops takes it");
    o.ddof = 0;
    o.result_dtype = CURED_F32; /* the sum's; a maximum has its own */
    ck_assert_int_eq(cured_partial_finish(a, an, both, 1, &o, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_partial_finish(a, an, both, 2, &o, &values, &error), CURED_OK);
    ck_assert_int_eq(cured_value_dtype(cured_values_get(values, 0)), CURED_U8);
    ck_assert_int_eq(cured_value_dtype(cured_values_get(values, 1)), CURED_F32);
    cured_values_free(values);
    ck_assert_int_eq(cured_partial_finish(a, an, &sum, 0, NULL, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_partial_finish(a, 3, &sum, 1, NULL, &values, &error), CURED_INVALID_ARGUMENT);
}
END_TEST

/* What a caller speaks of, and has not. */
START_TEST(no_memory_given) {
    static const char data[] = "data is NULL";
    const cured_bytes none = {NULL, 9};
    const cured_op sum = CURED_OP_SUM, max_too[] = {CURED_OP_SUM, CURED_OP_MAX};
    uint8_t out[CURED_PARTIAL_BYTES];
    size_t n = sizeof out;
    void *merged;
    cured_values *values;
    cured_conn *here = NULL;
    cured_call *call = NULL;
    ck_assert_int_eq(cured_connect("embedded:", NULL, &here, &error), CURED_OK);
    for (int k = 0; k < 8; k++) {
        const cured_bytes *partials = k < 3 ? NULL : &none;
        const cured_status status = k % 3 == 0   ? cured_partial_merge(partials, 1, out, &n, &error)
                                    : k % 3 == 1 ? cured_by_key_merge(partials, 1, &merged, &n, &error)
                                                 : cured_merge(here, partials, 1, &sum, 1, NULL, &call, &error);
        ck_assert_int_eq(status, CURED_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, k < 3 ? "partials is NULL" : data) != NULL, "%s", error.text);
        n = sizeof out;
    }
    ck_assert_int_eq(cured_partial_check(NULL, 9, NULL, NULL, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_partial_finish(NULL, 9, &sum, 1, NULL, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_partial_linear(NULL, 9, NULL, &n, NULL, &n, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, data) != NULL, "%s", error.text);
    size_t adds, compares;
    const int64_t most = 0;
    ck_assert_int_eq(cured_linear_size(CURED_U8, max_too, 2, &adds, &compares, &error), CURED_OK);
    ck_assert(adds != 0 && compares != 0);
    ck_assert_int_eq(cured_linear_partial(CURED_U8, max_too, 2, NULL, adds, &most, compares, out, &n, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "sums is NULL with a count above 0") != NULL, "%s", error.text);
    ck_assert_int_eq(cured_by_key_check(NULL, 9, NULL, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_by_key_finish(NULL, 9, &sum, 1, NULL, NULL, NULL, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, data) != NULL, "%s", error.text);
    ck_assert_int_eq(cured_reduce_buffer(here, CURED_U8, NULL, 1, out, 1, NULL, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "ops is NULL") != NULL, "%s", error.text);
    ck_assert_int_eq(cured_reduce_buffer(here, CURED_U8, &sum, 1, out, CURED_TO_END, NULL, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "limit is 9223372036854775807 elements of u8 in memory") != NULL, "%s",
                  error.text);
    ck_assert_int_eq(cured_reduce_stream_begin(here, CURED_U8, &sum, 1, CURED_UNKNOWN_LENGTH, NULL, &call, &error),
                     CURED_OK);
    ck_assert_int_eq(cured_stream_write(call, NULL, 7, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_stream_write(call, NULL, 0, &error), CURED_OK);
    ck_assert_int_eq(cured_stream_end(call, &error), CURED_OK);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    cured_call_free(call);
    cured_close(here);
}
END_TEST

/* An op without a value keeps its reason; the others stand. */
START_TEST(nothing_to_finish) {
    uint8_t a[256] = {'C', 'P', 1, CURED_U8, 1 + 8};
    memset(a + 24 + 4 + 8, 0xff, 8);
    memset(a + 24 + 4 + 24, 0xff, 16);
    const cured_op ops[] = {CURED_OP_MIN, CURED_OP_SUM};
    cured_values *values;
    uint64_t sum = 1;
    ck_assert_msg(cured_partial_finish(a, 24 + 4 + 40, ops, 2, NULL, &values, &error) == CURED_OK, "%s", error.text);
    ck_assert_int_eq(cured_value_status(cured_values_get(values, 0), &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_ne(error.text, "");
    ck_assert_int_eq(cured_value_uint64(cured_values_get(values, 1), &sum), CURED_OK);
    ck_assert_uint_eq(sum, 0);
    cured_values_free(values);
}
END_TEST

static void send_partial(uint32_t stream, const void *partial, size_t bytes) {
    static cr_wire_result r;
    static uint8_t p[CR_HEAD_MAX_BYTES];
    r = (cr_wire_result){.count = 2, .partial = partial, .partial_len = bytes};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(&r, p, sizeof p));
}

START_TEST(asked_of_the_daemon) {
    static const uint8_t data[] = {1, 2};
    static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MAX};
    uint8_t a[256];
    size_t n = two(a, 1, 2, 200), got;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    cr_frame h;
    o.first = 200;
    o.partial = true;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_U8, ops, 2, data, 2, &o, &call, &error), CURED_OK);
    cr_wire_call m = expect_call(&h);
    ck_assert(m.reduce.want_partial && m.reduce.first == 200);
    ck_assert_ptr_null(cured_call_partial(call, &got));
    send_partial(h.stream, a, n);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    const void *bytes = cured_call_partial(call, &got);
    ck_assert_uint_eq(got, n);
    ck_assert_mem_eq(bytes, a, n);
    ck_assert_ptr_null(cured_call_value(call, 0));
    cured_call_free(call);
    /* without the bytes it is no answer */
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_U8, ops, 2, data, 2, &o, &call, &error), CURED_OK);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, (const uint8_t *[]){NULL});
    expect_call(&h);
    send_partial(h.stream, NULL, 0);
    ck_assert_int_eq(cured_wait(call, &error), CURED_INTERNAL);
    cured_call_free(call);
}
END_TEST

/* The records go out as documented, from the library's own copy, and again with another try. */
START_TEST(merged_by_the_daemon) {
    static const cured_op sum = CURED_OP_SUM;
    uint8_t a[256], b[256], want[1024];
    cured_bytes parts[] = {{a, two(a, 1, 2, 0)}, {b, two(b, 9, 4, 2)}};
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(want + n, (uint8_t[]){(uint8_t)parts[i].bytes, 0, 0, 0}, 4);
        memcpy(want + n + 4, parts[i].data, parts[i].bytes);
        n += 4 + parts[i].bytes;
    }
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    cured_options o = CURED_OPTIONS_INIT;
    o.nan = CURED_NAN_SKIP;
    o.result_dtype = CURED_F64;
    ck_assert_int_eq(cured_merge(conn, parts, 2, &sum, 1, &o, &call, &error), CURED_OK);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    for (int turn = 0; turn < 2; turn++) {
        cr_wire_call m = expect_call(&h);
        ck_assert(m.kind == CR_CALL_MERGE && m.reduce.nan == 1 && m.reduce.op_count == 1);
        ck_assert(m.reduce.length_known && m.reduce.length == n);
        fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
        ck_assert(h.length == n && h.flags == CR_FLAG_END);
        ck_assert_mem_eq(p, want, n);
        if (turn == 0) fake_status(&f, h.stream, CR_RESOURCE_EXHAUSTED, 0, "later");
    }
    fake_sum(&f, h.stream, 16);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    cured_call_free(call);
    o.first = 4;
    ck_assert_int_eq(cured_merge(conn, parts, 2, &sum, 1, &o, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_merge(conn, parts, 2, &sum, 0, NULL, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(call);
}
END_TEST

CR_CHECK_MAIN("partials") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, merged_here);
    tcase_add_test(tc, refused_here);
    tcase_add_test(tc, no_memory_given);
    tcase_add_test(tc, nothing_to_finish);
    tcase_add_test(tc, asked_of_the_daemon);
    tcase_add_test(tc, merged_by_the_daemon);
}
