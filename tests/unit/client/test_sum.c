/* test_sum: cured_sum.h, by what its comments promise: statuses, packs number by number, strides, merging, many packs, NaNs and
 * infinities, zeros, and the state of floats and of the stack that it leaves behind. What sums are is the property run's.
 *
 * Thread: main. */
#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cured_sum.h"
#include "tests/unit/check_main.h"

static double f64_sum(int op, const double *x, uint64_t n) {
    cured_sum s;
    double value = 0;
    ck_assert_int_eq(cured_sum_begin(&s, op, CURED_SUM_F64), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_f64(&s, n, x, 1), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_value(&s, &value), CURED_SUM_OK);
    return value;
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The example of docs/PARTIALS.md. */
START_TEST(packs_are_the_linear_form) {
    const float x[] = {1.5f, -2};
    const int64_t want[] = {2,          0,          0,          0,  0, 4293918720, 4294967295, 4294967295,
                            4294967295, 4294967295, 4294967295, -1, 0, 0,          0};
    int64_t pack[CURED_SUM_F32_NUMBERS];
    cured_sum s;
    double value;
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_VALUES, CURED_SUM_F32), CURED_SUM_F32_NUMBERS);
    ck_assert_int_eq(cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F32), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_f32(&s, 2, x, 1), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_pack(&s, pack), CURED_SUM_OK);
    ck_assert_mem_eq(pack, want, sizeof want);
    for (size_t i = 0; i < CURED_SUM_F32_NUMBERS; i++) pack[i] *= 2;
    ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F32, pack, &value), CURED_SUM_OK);
    ck_assert(value == -1.0);
}
END_TEST

START_TEST(packs_have_the_lengths_that_the_header_says) {
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_VALUES, CURED_SUM_F64), CURED_SUM_F64_NUMBERS);
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_SQUARES, CURED_SUM_F64), CURED_SUM_F64_PRODUCT_NUMBERS);
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_PRODUCTS, CURED_SUM_F64), CURED_SUM_F64_PRODUCT_NUMBERS);
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_SQUARES, CURED_SUM_F32), CURED_SUM_F32_PRODUCT_NUMBERS);
    ck_assert_uint_eq(cured_sum_numbers(0, CURED_SUM_F32), 0);
    ck_assert_uint_eq(cured_sum_numbers(CURED_SUM_VALUES, 11), 0);
}
END_TEST

/* Limbs lie in [0, 2^32), but for the last. */
START_TEST(limbs_are_digits) {
    double x[1000];
    int64_t pack[CURED_SUM_F64_NUMBERS];
    cured_sum s;
    for (int i = 0; i < 1000; i++) x[i] = (i % 3 ? -1 : 1) * ldexp(1 + i / 1000.0, i - 500);
    cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
    for (int k = 0; k < 50; k++) cured_sum_add_f64(&s, 1000, x, 1);
    cured_sum_pack(&s, pack);
    for (int i = 1; i < 68; i++) ck_assert(pack[i] >= 0 && pack[i] >> 32 == 0);
    ck_assert_int_eq(pack[0], 50000);
}
END_TEST

START_TEST(bad_arguments_have_a_status_each) {
    cured_sum s, other;
    int64_t pack[CURED_SUM_MOST_NUMBERS] = {0};
    double x = 1, value = 7;
    float y = 1;
    ck_assert_int_eq(cured_sum_begin(NULL, CURED_SUM_VALUES, CURED_SUM_F64), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_begin(&s, 4, CURED_SUM_F64), CURED_SUM_BAD_OP);
    ck_assert_int_eq(cured_sum_begin(&s, CURED_SUM_VALUES, 1), CURED_SUM_BAD_TYPE);
    ck_assert_int_eq(cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_f32(&s, 1, &y, 1), CURED_SUM_BAD_TYPE);
    ck_assert_int_eq(cured_sum_add_products_f64(&s, 1, &x, 1, &x, 1), CURED_SUM_BAD_OP);
    ck_assert_int_eq(cured_sum_add_f64(&s, 1, NULL, 1), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_add_f64(&s, 0, NULL, 1), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_f64(&s, ((uint64_t)1 << 62) + 1, &x, 0), CURED_SUM_TOO_MANY);
    ck_assert_int_eq(cured_sum_begin(&other, CURED_SUM_PRODUCTS, CURED_SUM_F64), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_f64(&other, 1, &x, 1), CURED_SUM_BAD_OP);
    ck_assert_int_eq(cured_sum_add_products_f64(&other, 1, &x, 1, NULL, 1), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_merge(&s, &other), CURED_SUM_BAD_OP);
    ck_assert_int_eq(cured_sum_begin(&other, CURED_SUM_VALUES, CURED_SUM_F32), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_merge(&s, &other), CURED_SUM_BAD_TYPE);
    ck_assert_int_eq(cured_sum_merge(&s, NULL), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_pack(&s, NULL), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_value(&s, NULL), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_finish(0, CURED_SUM_F64, pack, &value), CURED_SUM_BAD_OP);
    ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, 0, pack, &value), CURED_SUM_BAD_TYPE);
    ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, NULL, &value), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, pack, NULL), CURED_SUM_BAD_PLACE);
    ck_assert_int_eq(cured_sum_renormalise(CURED_SUM_VALUES, CURED_SUM_F64, NULL), CURED_SUM_BAD_PLACE);
    ck_assert(value == 7);
    for (int status = CURED_SUM_OK; status <= CURED_SUM_BAD_PACK + 1; status++) {
        ck_assert_uint_gt(strlen(cured_sum_text(status)), 5);
        for (int one = CURED_SUM_OK; one < status; one++) ck_assert_str_ne(cured_sum_text(status), cured_sum_text(one));
    }
}
END_TEST

/* What no elements give is refused, and stays as it was. */
START_TEST(a_pack_that_none_gives_is_refused) {
    const double x[] = {1, 2};
    int64_t pack[CURED_SUM_F64_NUMBERS], bad[CURED_SUM_F64_NUMBERS];
    const struct {
        int at;
        int64_t number;
    } wrong[] = {{0, -1}, {69, 3}, {70, -1}, {71, 3}, {68, INT64_MAX}};
    cured_sum s;
    double value = 7;
    cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
    cured_sum_add_f64(&s, 2, x, 1);
    cured_sum_pack(&s, pack);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(bad, pack, sizeof pack);
        bad[wrong[i].at] = wrong[i].number;
        int64_t same[CURED_SUM_F64_NUMBERS];
        memcpy(same, bad, sizeof bad);
        ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, bad, &value), CURED_SUM_BAD_PACK);
        ck_assert_int_eq(cured_sum_renormalise(CURED_SUM_VALUES, CURED_SUM_F64, bad), CURED_SUM_BAD_PACK);
        ck_assert_mem_eq(bad, same, sizeof same);
    }
    ck_assert(value == 7);
}
END_TEST

/* 2^31 - 1 packs, as a sum kept over steps has them: digits near their limit, carried, and as many again. */
START_TEST(as_many_packs_as_the_header_says_add_up) {
    const double x = -0x1.8p-30; /* its digits above are all ones */
    const int64_t many = ((int64_t)1 << 31) - 1;
    int64_t pack[CURED_SUM_F64_NUMBERS], kept[CURED_SUM_F64_NUMBERS];
    cured_sum s;
    double value;
    cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
    cured_sum_add_f64(&s, 1, &x, 1);
    cured_sum_pack(&s, pack);
    for (int i = 0; i < CURED_SUM_F64_NUMBERS; i++) kept[i] = pack[i] * many;
    ck_assert_int_eq(cured_sum_renormalise(CURED_SUM_VALUES, CURED_SUM_F64, kept), CURED_SUM_OK);
    for (int i = 1; i < 68; i++) ck_assert(kept[i] >= 0 && kept[i] >> 32 == 0);
    for (int i = 0; i < CURED_SUM_F64_NUMBERS; i++) kept[i] += pack[i] * (many - 1);
    ck_assert_int_eq(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, kept, &value), CURED_SUM_OK);
    ck_assert(value == x * (double)(2 * many - 1));
    ck_assert_int_eq(kept[0], 2 * many - 1);
}
END_TEST

START_TEST(strides_name_the_elements) {
    double x[3000];
    float y[3000];
    cured_sum s, t;
    double a, b;
    for (int i = 0; i < 3000; i++) x[i] = i % 2 ? 1e300 : ldexp(i, -1000), y[i] = i % 2 ? 1e30f : (float)i;
    for (int sign = -1; sign <= 1; sign += 2) {
        cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
        ck_assert_int_eq(cured_sum_add_f64(&s, 1500, sign < 0 ? x + 2998 : x, 2 * sign), CURED_SUM_OK);
        cured_sum_value(&s, &a);
        ck_assert(a == ldexp(2998.0 * 1500 / 2, -1000));
        cured_sum_begin(&t, CURED_SUM_SQUARES, CURED_SUM_F32);
        ck_assert_int_eq(cured_sum_add_f32(&t, 1500, sign < 0 ? y + 2998 : y, 2 * sign), CURED_SUM_OK);
        cured_sum_value(&t, &b);
        ck_assert(b == 4.0 * 1499 * 1500 * 2999 / 6);
    }
    cured_sum_begin(&s, CURED_SUM_PRODUCTS, CURED_SUM_F32);
    ck_assert_int_eq(cured_sum_add_products_f32(&s, 2000, y + 4, 0, y + 2, 0), CURED_SUM_OK); /* one element, often */
    cured_sum_value(&s, &a);
    ck_assert(a == 16000);
}
END_TEST

START_TEST(nan_and_infinities_are_as_ieee_sums_have_them) {
    const double inf = INFINITY, nan = NAN, plus[] = {1, inf, 2}, minus[] = {-inf, 1}, both[] = {inf, -inf},
                 none[] = {nan, inf};
    const double big[] = {0x1.fffffffffffffp1023, 0x1p970, -0x1p1023, 0x1p970};
    const uint64_t the_nan = (uint64_t)0x7ff8 << 48;
    cured_sum s;
    double value;
    ck_assert(f64_sum(CURED_SUM_VALUES, plus, 3) == inf);
    ck_assert(f64_sum(CURED_SUM_VALUES, minus, 2) == -inf);
    ck_assert(f64_sum(CURED_SUM_SQUARES, minus, 2) == inf);
    ck_assert(f64_sum(CURED_SUM_SQUARES, both, 2) == inf);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, both, 2)), the_nan);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, none, 2)), the_nan);
    ck_assert(f64_sum(CURED_SUM_VALUES, big, 2) == inf);      /* rounded once, to infinity */
    ck_assert(f64_sum(CURED_SUM_VALUES, big, 4) == 0x1p1023); /* and not on the way */
    const double zero[] = {0, inf}, infinite[] = {inf, 1};
    cured_sum_begin(&s, CURED_SUM_PRODUCTS, CURED_SUM_F64);
    cured_sum_add_products_f64(&s, 2, zero, 1, infinite, 1);
    cured_sum_value(&s, &value);
    ck_assert_uint_eq(bits_of(value), the_nan);
}
END_TEST

START_TEST(nothing_and_zeros_are_plus_zero) {
    const double zeros[] = {-0.0, -0.0}, cancel[] = {3, -3}, tiny[] = {-4.9e-324, 0};
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, NULL, 0)), 0);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, zeros, 2)), 0);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, cancel, 2)), 0);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_VALUES, tiny, 2)), (uint64_t)1 << 63 | 1);
    ck_assert_uint_eq(bits_of(f64_sum(CURED_SUM_SQUARES, tiny, 2)),
                      0); /* exact, and rounded once: far below the least number */
}
END_TEST

START_TEST(the_state_of_floats_is_as_it_was) {
    double x[5000];
    for (int i = 0; i < 5000; i++) x[i] = ldexp(1.0 / (i + 1), i % 700 - 350);
    const double want = f64_sum(CURED_SUM_VALUES, x, 5000);
    for (int mode = 0; mode < 4; mode++) {
        static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
        fesetround(modes[mode]);
        const double got = f64_sum(CURED_SUM_VALUES, x, 5000);
        ck_assert_int_eq(fegetround(), modes[mode]);
        fesetround(FE_TONEAREST);
        ck_assert_uint_eq(bits_of(got), bits_of(want));
    }
}
END_TEST

/* What was raised before stays raised, and what a sum meets on its way raises nothing. */
START_TEST(exception_flags_are_as_they_were) {
#if defined(__x86_64__) || defined(__aarch64__)
    static double large[2000], x[2000];
    cured_sum s;
    for (int i = 0; i < 2000; i++) x[i] = 1 + i / 7.0, large[i] = 1e200;
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_INVALID);
    ck_assert_int_eq(cured_sum_begin(&s, CURED_SUM_PRODUCTS, CURED_SUM_F64), CURED_SUM_OK);
    ck_assert_int_eq(cured_sum_add_products_f64(&s, 2000, x, 1, x, 1), CURED_SUM_OK);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), FE_INVALID);
    feclearexcept(FE_ALL_EXCEPT);
    ck_assert_int_eq(cured_sum_add_products_f64(&s, 2000, large, 1, large, 1), CURED_SUM_OK);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), 0);
#endif
}
END_TEST

CR_CHECK_MAIN("client/sum") {
    tcase_add_test(tc, packs_are_the_linear_form);
    tcase_add_test(tc, packs_have_the_lengths_that_the_header_says);
    tcase_add_test(tc, limbs_are_digits);
    tcase_add_test(tc, bad_arguments_have_a_status_each);
    tcase_add_test(tc, a_pack_that_none_gives_is_refused);
    tcase_add_test(tc, as_many_packs_as_the_header_says_add_up);
    tcase_add_test(tc, strides_name_the_elements);
    tcase_add_test(tc, nan_and_infinities_are_as_ieee_sums_have_them);
    tcase_add_test(tc, nothing_and_zeros_are_plus_zero);
    tcase_add_test(tc, the_state_of_floats_is_as_it_was);
    tcase_add_test(tc, exception_flags_are_as_they_were);
}
