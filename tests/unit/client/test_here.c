/* cured_reduce_here: without a call the answers are the same as by one, and what is wrong is said. What the answers are the property
 * tests know. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/all_ops.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { MOST_BYTES = 1200 * 1000 };

static void assert_equal(const cured_value *a, const cured_value *b) {
    size_t a_bytes, b_bytes;
    const void *x = cured_value_bytes(a, &a_bytes), *y = cured_value_bytes(b, &b_bytes);
    ck_assert_int_eq(cured_value_op(a), cured_value_op(b));
    ck_assert_int_eq(cured_value_status(a, NULL), cured_value_status(b, NULL));
    ck_assert_int_eq(cured_value_dtype(a), cured_value_dtype(b));
    ck_assert_uint_eq(a_bytes, b_bytes);
    ck_assert_msg(a_bytes == 0 || memcmp(x, y, a_bytes) == 0, "op %s", cured_op_name(cured_value_op(a)));
}

/* Without a call: the same answers for every op, type and length, and the same sentences for what is wrong. */
START_TEST(here_is_as_by_a_call) {
    static const size_t lengths[] = {0, 4, 28, 4000, 20000, MOST_BYTES};
    cured_conn *conn;
    uint32_t *data = malloc(MOST_BYTES), x = 1;
    for (size_t i = 0; i < MOST_BYTES / sizeof *data; i++) data[i] = x = x * 1664525u + 1013904223u;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        for (unsigned t = CURED_BOOL; t <= CURED_F8_E5M2; t++) {
            if (t == CURED_I128 || t == CURED_BIGINT) continue;
            const size_t count = lengths[l] / cured_dtype_size((cured_dtype)t);
            cured_values *values;
            cured_call *call;
            OK(cured_reduce_buffer(conn, (cured_dtype)t, all_ops, ALL_OPS, data, count, NULL, &call, NULL));
            OK(cured_wait(call, NULL));
            OK(cured_reduce_here((cured_dtype)t, all_ops, ALL_OPS, data, count, NULL, &values, NULL));
            for (size_t i = 0; i < ALL_OPS; i++) assert_equal(cured_call_value(call, i), cured_values_get(values, i));
            ck_assert_ptr_null(cured_values_get(values, ALL_OPS));
            cured_values_free(values);
            cured_call_free(call);
        }
    }
    free(data);
    cured_close(conn);
}
END_TEST

START_TEST(here_says_what_is_wrong) {
    static const float data[2] = {1, 2};
    const cured_axis axis = {1, 2, 1};
    const cured_op sum = CURED_OP_SUM, bit_and = CURED_OP_BIT_AND;
    const cured_options plain = CURED_OPTIONS_INIT;
    cured_options axes = plain, parts = plain, places = plain, rounds = plain;
    axes.axis = &axis;
    parts.partial = true;
    places.first = 4096;
    rounds.result_dtype = CURED_F32;
    const struct {
        unsigned dtype;
        const cured_op *op;
        size_t op_count;
        const void *data;
        uint64_t count;
        const cured_options *options;
        const char *text;
    } wrong[] = {{CURED_F32, &sum, 1, data, 2, &axes,
                  "axis, offsets, keys, outputs, partial, first, layout, asked and kernel have no meaning here"},
                 {CURED_F32, &sum, 1, data, 2, &parts,
                  "axis, offsets, keys, outputs, partial, first, layout, asked and kernel have no meaning here"},
                 {CURED_F32, &sum, 1, data, 2, &places,
                  "axis, offsets, keys, outputs, partial, first, layout, asked and kernel have no meaning here"},
                 {CURED_F32, &sum, 0, data, 2, NULL, "op_count is 0"},
                 {CURED_F32, &bit_and, 1, data, 2, NULL, "bit_and"},
                 {CURED_BIGINT, &sum, 1, data, 2, NULL, "dtype is"},
                 {CURED_F32, &sum, 1, NULL, 2, NULL, "data is NULL"},
                 {CURED_F32, &sum, 1, data, UINT64_MAX, NULL, "count is"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cured_values *values = (cured_values *)&axis;
        cured_error error;
        ck_assert_int_eq(cured_reduce_here((cured_dtype)wrong[i].dtype, wrong[i].op, wrong[i].op_count, wrong[i].data,
                                           wrong[i].count, wrong[i].options, &values, &error),
                         CURED_INVALID_ARGUMENT);
        ck_assert_ptr_null(values);
        ck_assert_msg(strstr(error.text, wrong[i].text) != NULL, "%s", error.text);
    }
    cured_values *values;
    double rounded;
    OK(cured_reduce_here(CURED_F32, &sum, 1, data, 2, &rounds, &values, NULL));
    ck_assert_int_eq(cured_value_dtype(cured_values_get(values, 0)), CURED_F32);
    OK(cured_value_double(cured_values_get(values, 0), &rounded));
    ck_assert(rounded == 3);
    cured_values_free(values);
}
END_TEST

CR_CHECK_MAIN("client/here") {
    tcase_add_test(tc, here_is_as_by_a_call);
    tcase_add_test(tc, here_says_what_is_wrong);
}
