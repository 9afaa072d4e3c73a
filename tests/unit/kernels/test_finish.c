/* finish: options, narrowing, and the sentences of what does not fit. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "kernels/core/number.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

static cr_value answer(cr_dtype dtype, const void *data, uint64_t n, cr_op op, cr_finish_opts opts) {
    cr_partial p;
    cr_value v;
    cr_partial_init(&p, dtype, cr_op_needs(op, dtype));
    cr_cpu_fold(&p, data, n, 0);
    cr_partial_finish(&p, op, &opts, &v);
    return v;
}

START_TEST(an_integer_that_does_not_fit_is_told_exactly) {
    static const uint64_t x[] = {UINT64_MAX, UINT64_MAX, 2};
    cr_value v = answer(CR_U64, x, 3, CR_OP_SUM, (cr_finish_opts){.result_dtype = CR_U64});
    ck_assert_int_eq(v.error.code, CR_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(v.error.text, "36893488147419103232"));
    v = answer(CR_U64, x, 3, CR_OP_SUM, (cr_finish_opts){0});
    ck_assert_int_eq(v.error.code, CR_OK);
    ck_assert_int_eq(v.dtype, CR_BIGINT);
    ck_assert_uint_eq(v.len, 9);
    ck_assert_uint_eq(v.bytes[8], 2);
    v = answer(CR_U64, x, 3, CR_OP_SUM, (cr_finish_opts){.result_dtype = CR_I128});
    ck_assert_uint_eq(v.len, 16);
    v = answer(CR_U64, x, 3, CR_OP_SUM, (cr_finish_opts){.result_dtype = CR_F16});
    ck_assert_int_eq(v.error.code, CR_OK);
    ck_assert(v.bytes[0] == 0 && v.bytes[1] == 0x7c);
}
END_TEST

START_TEST(the_least_value_of_a_signed_type_fits) {
    static const int64_t x[] = {INT64_MIN + 1, -1};
    cr_value v = answer(CR_I64, x, 2, CR_OP_SUM, (cr_finish_opts){0});
    ck_assert_int_eq(v.dtype, CR_I64);
    ck_assert_uint_eq(v.bytes[7], 0x80);
    v = answer(CR_I64, x, 2, CR_OP_NORM1, (cr_finish_opts){0});
    ck_assert_int_eq(v.dtype, CR_BIGINT);
    ck_assert_uint_eq(v.len, 9);
    static const int64_t y[] = {INT64_MIN, -1};
    v = answer(CR_I64, y, 2, CR_OP_SUM, (cr_finish_opts){0});
    ck_assert_int_eq(v.dtype, CR_BIGINT);
    ck_assert_uint_eq(v.bytes[8], 0xff);
}
END_TEST

START_TEST(options_belong_to_ops) {
    static const struct {
        cr_op op;
        cr_dtype dtype;
        cr_finish_opts opts;
        cr_status status;
    } cases[] = {
        {CR_OP_MIN, CR_F32, {.result_dtype = CR_F64}, CR_INVALID_ARGUMENT},
        {CR_OP_SUM, CR_F32, {.result_dtype = CR_I64}, CR_INVALID_ARGUMENT},
        {CR_OP_SUM, CR_I32, {.result_dtype = CR_I64}, CR_OK},
        {CR_OP_SUM, CR_I32, {.result_dtype = CR_BIGINT}, CR_INVALID_ARGUMENT},
        {CR_OP_SUM, CR_I32, {.result_dtype = (cr_dtype)200}, CR_INVALID_ARGUMENT},
        {CR_OP_MEAN, CR_I32, {.result_dtype = CR_I64}, CR_INVALID_ARGUMENT},
        {CR_OP_MEAN, CR_I32, {.result_dtype = CR_BF16}, CR_OK},
        {CR_OP_MEAN, CR_F32, {.ddof = 1}, CR_INVALID_ARGUMENT},
        {CR_OP_VAR, CR_F32, {.ddof = 1}, CR_OK},
        {CR_OP_SUM, CR_I32, {.overflow = CR_OVERFLOW_WRAP}, CR_INVALID_ARGUMENT},
        {CR_OP_PROD, CR_I32, {.overflow = CR_OVERFLOW_WRAP}, CR_OK},
        {CR_OP_SUM, CR_F32, {.nan = (cr_nan_policy)9}, CR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_error error = {0};
        ck_assert_int_eq(cr_finish_check(cases[i].op, cases[i].dtype, &cases[i].opts, &error), cases[i].status);
        ck_assert((cases[i].status == CR_OK) == (error.text[0] == '\0'));
    }
    cr_finish_opts all = {.ddof = 1, .result_dtype = CR_F32, .overflow = CR_OVERFLOW_WRAP};
    uint32_t taken;
    cr_finish_opts share = cr_finish_share(CR_OP_STD, CR_I32, &all, &taken);
    ck_assert_uint_eq(taken, CR_OPT_DDOF | CR_OPT_RESULT_DTYPE);
    ck_assert(share.ddof == 1 && share.result_dtype == CR_F32 && share.overflow == CR_OVERFLOW_ERROR);
    cr_finish_share(CR_OP_MAX, CR_I32, &all, &taken);
    ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(a_zero_wins_over_an_overflow) {
    static const int64_t x[] = {INT64_MAX, INT64_MAX, -3, 0};
    cr_value v = answer(CR_I64, x, 3, CR_OP_PROD, (cr_finish_opts){0});
    ck_assert_int_eq(v.error.code, CR_OUT_OF_RANGE);
    v = answer(CR_I64, x, 4, CR_OP_PROD, (cr_finish_opts){0});
    ck_assert_int_eq(v.error.code, CR_OK);
    ck_assert_uint_eq(v.bytes[0], 0);
    v = answer(CR_I64, x, 3, CR_OP_PROD, (cr_finish_opts){.overflow = CR_OVERFLOW_WRAP});
    int64_t wrapped;
    memcpy(&wrapped, v.bytes, 8);
    ck_assert(wrapped == -3);
}
END_TEST

START_TEST(norm2_does_not_overflow_on_the_way) {
    static const double x[] = {1e200, 1e200};
    cr_value v = answer(CR_F64, x, 2, CR_OP_NORM2, (cr_finish_opts){0});
    double got;
    memcpy(&got, v.bytes, 8);
    ck_assert(got == 1.414213562373095e200 || got == 1.4142135623730951e200);
    v = answer(CR_F64, x, 2, CR_OP_SUMSQ, (cr_finish_opts){0});
    memcpy(&got, v.bytes, 8);
    ck_assert(isinf(got));
}
END_TEST

/* What op.def says of no elements is what is answered, of every op and type. */
START_TEST(nothing_has_the_answer_of_its_row) {
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        for (int d = CR_BOOL; d <= CR_DTYPE_INPUTS; d++) {
            if (cr_op_supports(op, (cr_dtype)d, NULL) != CR_OK) continue;
            static const uint8_t zeros[32];
            const cr_value v = answer((cr_dtype)d, NULL, 0, op, (cr_finish_opts){0});
            const cr_empty empty = cr_op_empty(op);
            const bool is_float = cr_dtype_kind(v.dtype) == CR_KIND_FLOAT;
            double number = 0;
            ck_assert_int_eq(v.error.code, empty == CR_EMPTY_NONE ? CR_INVALID_ARGUMENT : CR_OK);
            if (v.dtype == CR_F64) memcpy(&number, v.bytes, sizeof number);
            switch (empty) {
                case CR_EMPTY_ZERO:
                    ck_assert_mem_eq(v.bytes, zeros, sizeof zeros);
                    break;
                case CR_EMPTY_ONE:
                    ck_assert(v.dtype == CR_F64 ? number == 1 : !is_float && v.bytes[0] == 1);
                    break;
                case CR_EMPTY_BITS:
                    for (unsigned i = 0; i < v.len; i++) ck_assert_uint_eq(v.bytes[i], d == CR_BOOL ? 1 : 0xff);
                    break;
                case CR_EMPTY_NAN:
                    ck_assert(v.dtype == CR_F64 && isnan(number));
                    break;
                case CR_EMPTY_NONE:
                    ck_assert_uint_eq(v.len, 0);
                    break;
            }
        }
    }
}
END_TEST

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t drawn(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Of all lengths up to 127 bits; some are close to a tie, some are squares. */
static unsigned __int128 drawn_magnitude(uint64_t *state) {
    const uint64_t kind = drawn(state) % 4, a = drawn(state), b = drawn(state);
    unsigned __int128 x = (unsigned __int128)a << 64 | b;
    if (kind == 0) x = (unsigned __int128)(a >> 1) * (a >> 1);
    if (kind == 1) x = ((unsigned __int128)(a >> 10 | 1) << 63) + (b % 3) - 1;
    if (kind == 2) x = (unsigned __int128)((a >> 40) * (a >> 40));
    return x >> (1 + (kind == 3 ? drawn(state) % 127 : 0));
}

/* Answers from a sum as a number are those from the same sum as a partial: ops x results x numbers x counts x exponents. */
START_TEST(a_number_finishes_as_its_partial_does) {
    static const cr_dtype results[] = {CR_DTYPE_NONE, CR_F16, CR_BF16, CR_F32, CR_F64};
    static const uint64_t counts[] = {1, 3, 1023, 4096};
    uint64_t state = 20;
    for (int i = 0; i < 20000; i++) {
        const int exponent = (int)(drawn(&state) % 2100) - 1074;
        cr_number x = {drawn_magnitude(&state), exponent, drawn(&state) % 2 != 0};
        const uint64_t n = counts[drawn(&state) % 4];
        const cr_finish_opts opts = {.result_dtype = results[i % 5]};
        for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
            cr_number_rule rule;
            cr_value wanted;
            cr_partial p;
            if (!cr_number_rule_make(&rule, op, CR_F64, &opts)) continue;
            const uint32_t needs = cr_op_needs(op, CR_F64);
            const cr_sum_at at = cr_sum_of(needs);
            const int bit = exponent - cr_sum_grid(at, CR_F64);
            if ((unsigned)bit / 32 + 5 > cr_sum_limbs(at, CR_F64)) continue;
            cr_number own = x;
            own.negative &= (needs & CR_FAM_SIGNED) != 0 && x.magnitude != 0;
            cr_partial_init(&p, CR_F64, needs);
            p.n = n;
            cr_partial_put(&p, at, own.negative ? -(__int128)own.magnitude : (__int128)own.magnitude, (unsigned)bit);
            cr_partial_finish(&p, op, &opts, &wanted);
            ck_assert_int_eq(wanted.error.code, CR_OK);
            const uint64_t got = cr_number_answer(&rule, &own, n);
            ck_assert_int_eq(rule.result, wanted.dtype);
            ck_assert_msg(memcmp(&got, wanted.bytes, sizeof got) == 0, "%s of %d, exponent %d, n %llu", cr_op_name(op),
                          i, exponent, (unsigned long long)n);
        }
    }
}
END_TEST

CR_CHECK_MAIN("kernels/finish") {
    tcase_add_test(tc, a_number_finishes_as_its_partial_does);
    tcase_add_test(tc, nothing_has_the_answer_of_its_row);
    tcase_add_test(tc, an_integer_that_does_not_fit_is_told_exactly);
    tcase_add_test(tc, the_least_value_of_a_signed_type_fits);
    tcase_add_test(tc, options_belong_to_ops);
    tcase_add_test(tc, a_zero_wins_over_an_overflow);
    tcase_add_test(tc, norm2_does_not_overflow_on_the_way);
}
