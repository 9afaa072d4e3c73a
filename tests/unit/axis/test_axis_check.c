/* Axis: what may be asked, and the last step of an answer. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

static const cr_finish_opts defaults;

START_TEST(shapes) {
    static const struct {
        cr_shape shape;
        cr_dtype dtype;
        bool good;
    } cases[] = {
        {{1, 1, 1}, CR_F32, true},
        {{0, 0, 0}, CR_F32, true},
        {{UINT64_MAX, 0, 0}, CR_U8, true},
        {{0, UINT64_MAX, UINT64_MAX}, CR_F64, true},
        {{1, (uint64_t)1 << 62, 1}, CR_U8, true},
        {{1, ((uint64_t)1 << 62) + 1, 1}, CR_U8, false},
        {{1, (uint64_t)1 << 59, 1}, CR_F64, true},
        {{1, (uint64_t)1 << 59, 2}, CR_F64, false},
        {{(uint64_t)1 << 32, 1, (uint64_t)1 << 32}, CR_U8, false},
        {{(uint64_t)1 << 32, 0, (uint64_t)1 << 27}, CR_U8, false},
        {{(uint64_t)1 << 31, 0, (uint64_t)1 << 27}, CR_U8, true},
        {{1, 1, 1}, CR_I128, false},
        {{1, 1, 1}, CR_DTYPE_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_error e = {CR_OK, ""};
        cr_status status = cr_shape_check(&cases[i].shape, cases[i].dtype, &e);
        ck_assert_msg((status == CR_OK) == cases[i].good, "case %zu: %s", i, e.text);
        ck_assert_int_eq(e.code, status);
    }
}
END_TEST

START_TEST(empty_axis) {
    cr_shape none = {2, 0, 3}, no_outputs = {0, 0, 3};
    cr_error e;
    ck_assert_int_eq(cr_axis_check(CR_OP_MIN, CR_F32, &none, &defaults, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "min"));
    ck_assert_int_eq(cr_axis_check(CR_OP_ARGMAX, CR_U8, &none, &defaults, &e), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_axis_check(CR_OP_SUM, CR_F32, &none, &defaults, &e), CR_OK);
    ck_assert_int_eq(cr_axis_check(CR_OP_MIN, CR_F32, &no_outputs, &defaults, &e), CR_OK);
    ck_assert_int_eq(cr_axis_check(CR_OP_BIT_AND, CR_F32, &no_outputs, &defaults, &e), CR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(result_types) {
    static const struct {
        cr_op op;
        cr_dtype dtype, asked, result;
    } cases[] = {
        {CR_OP_SUM, CR_I8, 0, CR_I64},         {CR_OP_SUM, CR_BOOL, 0, CR_U64},     {CR_OP_SUM, CR_U16, 0, CR_U64},
        {CR_OP_SUM, CR_I64, CR_I128, CR_I128}, {CR_OP_SUM, CR_F16, 0, CR_F64},      {CR_OP_SUM, CR_F64, CR_F16, CR_F16},
        {CR_OP_MEAN, CR_U8, 0, CR_F64},        {CR_OP_MEAN, CR_U8, CR_F32, CR_F32}, {CR_OP_MIN, CR_BF16, 0, CR_BF16},
        {CR_OP_ARGMIN, CR_F32, 0, CR_U64},     {CR_OP_ANY, CR_F32, 0, CR_BOOL},     {CR_OP_COUNT_NAN, CR_I8, 0, CR_U64},
        {CR_OP_NORMINF, CR_I16, 0, CR_U16},    {CR_OP_NORMINF, CR_F32, 0, CR_F32},  {CR_OP_PROD, CR_I8, 0, CR_I64},
        {CR_OP_BIT_XOR, CR_I32, 0, CR_I32},    {CR_OP_STD, CR_I32, 0, CR_F64},      {CR_OP_SUMSQ, CR_U32, 0, CR_U64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_finish_opts opts = {.result_dtype = cases[i].asked};
        ck_assert_msg(cr_axis_dtype(cases[i].op, cases[i].dtype, &opts) == cases[i].result, "case %zu", i);
    }
}
END_TEST

START_TEST(out_of_range_names_the_output) {
    const int64_t data[] = {1, 2, INT64_MAX, 1, 5, 6};
    cr_axis_spec spec = {
        .dtype = CR_I64, .shape = {3, 2, 1}, .families = CR_FAM_SUM, .op_count = 1, .ops = {CR_OP_SUM}};
    void *scratch = aligned_alloc(64, (cr_axis_scratch(&spec) + 127) / 64 * 64);
    int64_t sums[3] = {0, 0, 0};
    void *out[] = {sums};
    cr_error e;
    ck_assert_int_eq(cr_cpu_axis_blocks(&spec, data, 40, 3, scratch, out, &e), CR_OUT_OF_RANGE);
    ck_assert_msg(strstr(e.text, "41") && strstr(e.text, "9223372036854775808"), "%s", e.text);
    spec.finish.result_dtype = CR_I128;
    __int128 wide[3];
    out[0] = wide;
    ck_assert_int_eq(cr_cpu_axis_blocks(&spec, data, 40, 3, scratch, out, &e), CR_OK);
    ck_assert(wide[0] == 3 && wide[1] == (__int128)INT64_MAX + 1 && wide[2] == 11);
    free(scratch);
}
END_TEST

START_TEST(rows_of_only_nans) {
    const float data[] = {-__builtin_nanf(""), __builtin_nanf(""), 1, __builtin_nanf("")};
    cr_axis_spec spec = {.dtype = CR_F32,
                         .shape = {2, 2, 1},
                         .families = CR_FAM_EXTREMA,
                         .op_count = 2,
                         .ops = {CR_OP_MIN, CR_OP_ARGMAX}};
    void *scratch = aligned_alloc(64, (cr_axis_scratch(&spec) + 127) / 64 * 64);
    uint32_t least[2];
    uint64_t at[2];
    void *out[] = {least, at};
    ck_assert_int_eq(cr_cpu_axis_blocks(&spec, data, 0, 2, scratch, out, NULL), CR_OK);
    ck_assert_uint_eq(least[0], 0x7fc00000);
    ck_assert_uint_eq(least[1], 0x7fc00000);
    ck_assert_uint_eq(at[0], 0);
    ck_assert_uint_eq(at[1], 1);
    spec.finish.nan = CR_NAN_SKIP;
    ck_assert_int_eq(cr_cpu_axis_blocks(&spec, data, 0, 2, scratch, out, NULL), CR_OK);
    ck_assert_uint_eq(least[0], 0x7fc00000);
    ck_assert_uint_eq(least[1], 0x3f800000);
    ck_assert_uint_eq(at[0], UINT64_MAX);
    ck_assert_uint_eq(at[1], 0);
    free(scratch);
}
END_TEST

CR_CHECK_MAIN("axis_check") {
    tcase_add_test(tc, shapes);
    tcase_add_test(tc, empty_axis);
    tcase_add_test(tc, result_types);
    tcase_add_test(tc, out_of_range_names_the_output);
    tcase_add_test(tc, rows_of_only_nans);
}
