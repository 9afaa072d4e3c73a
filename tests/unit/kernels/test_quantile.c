/* quantile: places that are exact, methods, what lies between two elements, and reads that add up. The property run has the rest. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/key.h"
#include "kernels/core/round.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/order.h"
#include "tests/unit/check_main.h"

static cr_quantile_place place_of(double share, cr_quantile_method method, uint64_t n) {
    return cr_quantile_place_of(&(cr_quantile_item){share, method}, n);
}

static double between(double low, double high, const cr_quantile_place *place) {
    uint64_t bits[2], keys[2];
    const double pair[2] = {low, high};
    memcpy(bits, pair, sizeof bits);
    for (int i = 0; i < 2; i++) keys[i] = bits[i] >> 63 ? ~bits[i] : bits[i] | (uint64_t)1 << 63;
    bits[0] = cr_quantile_between(CR_F64, CR_F64, keys[0], keys[1], place);
    double x;
    memcpy(&x, bits, sizeof x);
    return x;
}

START_TEST(methods_have_numpys_names) {
    static const char *const names[] = {"linear", "lower", "higher", "nearest", "midpoint"};
    cr_error error;
    for (uint32_t i = 0; i < 5; i++) {
        cr_quantile_method method;
        ck_assert_str_eq(cr_quantile_method_name(i), names[i]);
        ck_assert_int_eq(cr_quantile_method_parse(names[i], &method, NULL), CR_OK);
        ck_assert_uint_eq((uint32_t)method, i);
    }
    cr_quantile_method none;
    ck_assert_ptr_null(cr_quantile_method_name(5));
    ck_assert_int_eq(cr_quantile_method_parse("hazen", &none, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "midpoint"));
}
END_TEST

/* 0.3 as f64 is a little less than 3/10, so its place among 11 elements is a little less than 3. */
START_TEST(places_are_exact) {
    cr_quantile_place p = place_of(0.3, CR_QUANTILE_LOWER, 11);
    ck_assert_uint_eq(p.low, 2);
    ck_assert_uint_eq(p.high, 2);
    p = place_of(0.3, CR_QUANTILE_LINEAR, 11);
    ck_assert_uint_eq(p.low, 2);
    ck_assert_uint_eq(p.high, 3);
    ck_assert(ldexp((double)p.weight, -(int)p.scale) > 1 - 1e-15);
    p = place_of(0.5, CR_QUANTILE_LINEAR, UINT64_MAX);
    ck_assert_uint_eq(p.low, (UINT64_MAX - 1) / 2);
    ck_assert_uint_eq((uint64_t)p.weight, 0);
    p = place_of(1, CR_QUANTILE_LINEAR, UINT64_MAX);
    ck_assert_uint_eq(p.low, UINT64_MAX - 1);
    ck_assert_uint_eq(p.high, UINT64_MAX - 1);
    p = place_of(5e-324, CR_QUANTILE_HIGHER, 2);
    ck_assert_uint_eq(p.low, 1);
    p = place_of(5e-324, CR_QUANTILE_NEAREST, UINT64_MAX);
    ck_assert_uint_eq(p.low, 0);
    for (uint64_t n = 2; n < 20; n += 2) { /* halfway the even rank is the nearer one */
        const uint64_t low = (n - 1) / 2;
        ck_assert_uint_eq(place_of(0.5, CR_QUANTILE_NEAREST, n).low, low % 2 == 0 ? low : low + 1);
    }
}
END_TEST

START_TEST(what_lies_between_is_rounded_once) {
    const cr_quantile_place half = place_of(0.5, CR_QUANTILE_LINEAR, 2),
                            third = place_of(1.0 / 3, CR_QUANTILE_LINEAR, 2);
    ck_assert_double_eq(between(1, 2, &half), 1.5);
    ck_assert_double_eq(between(1.7e308, 1.7e308, &half), 1.7e308); /* their sum would be an infinity */
    ck_assert_double_eq(between(-1.7e308, 1.7e308, &half), 0);
    ck_assert_double_eq(between(5e-324, 1e-323, &half), 1e-323); /* 1.5 units: to even */
    ck_assert_double_eq(between(0, 3, &third), 1);
    ck_assert(isinf(between(1, INFINITY, &half)) && between(1, INFINITY, &half) > 0);
    ck_assert(isinf(between(-INFINITY, 1, &third)) && between(-INFINITY, 1, &third) < 0);
    ck_assert(isnan(between(-INFINITY, INFINITY, &half)));
    ck_assert(isinf(between(INFINITY, INFINITY, &half)));
    ck_assert(signbit(between(-0.0, -0.0, &half)));
    ck_assert(!signbit(between(-0.0, 0.0, &half)));
}
END_TEST

/* Whole numbers of 128 bits and of any length say the same of what lies between any two elements of any type. */
START_TEST(short_numbers_change_no_bit) {
    uint64_t state = 88172645463325252u + (uint64_t)check_seed(1);
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t draw[4], bits[2];
        for (unsigned k = 0; k < 4; k++) { /* xorshift64 (Marsaglia, J. Stat. Softw. 8, 2003) */
            state ^= state << 13;
            state ^= state >> 7;
            draw[k] = state ^= state << 17;
        }
        const cr_dtype dtype = (cr_dtype)(1 + draw[0] % CR_DTYPE_INPUTS);
        if (!cr_dtype_is_input(dtype)) continue;
        static const cr_dtype results[] = {CR_F64, CR_F32, CR_F16, CR_BF16};
        const cr_dtype result = results[draw[0] >> 32 & 3];
        const unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
        uint64_t low = draw[1] >> (64 - width), high = draw[2] >> (64 - width);
        if (draw[0] >> 40 & 1) high = low ^ (draw[2] >> (64 - width / 2)); /* of one sign, and near each other */
        if (draw[0] >> 41 & 1 && draw[0] >> 42 & 1) low = cr_key_of_bits(dtype, 0);
        if (dtype == CR_BOOL) low &= 1, high &= 1;
        if (cr_dtype_kind(dtype) == CR_KIND_FLOAT &&
            (cr_float_is_nan(dtype, cr_bits_of_key(dtype, low)) || cr_float_is_nan(dtype, cr_bits_of_key(dtype, high))))
            continue;
        const double share = draw[0] >> 43 & 1 ? (double)(draw[3] >> 11) * 0x1p-53 : (double)(draw[3] % 9) / 8;
        const cr_quantile_place place =
            place_of(share, (cr_quantile_method)((draw[0] >> 48) % 5), 2 + (draw[3] & 1023));
        for (int off = 0; off < 2; off++) {
            cr_fast_switch_off(off ? UINT64_C(1) << CR_FAST_SHORT_RANKS : 0);
            bits[off] = cr_quantile_between(dtype, result, low, high, &place);
        }
        cr_fast_switch_off(0);
        ck_assert_msg(bits[0] == bits[1], "%s, keys %#llx and %#llx, share %a: %#llx, and %#llx without short_ranks",
                      cr_dtype_name(dtype), (unsigned long long)low, (unsigned long long)high, share,
                      (unsigned long long)bits[0], (unsigned long long)bits[1]);
    }
}
END_TEST

START_TEST(reads_are_as_few_as_bits_allow) {
    ck_assert_uint_eq(cr_quantile_reads(CR_BOOL), 1);
    ck_assert_uint_eq(cr_quantile_reads(CR_F8_E4M3), 1);
    ck_assert_uint_eq(cr_quantile_reads(CR_BF16), 2);
    ck_assert_uint_eq(cr_quantile_reads(CR_F32), 3);
    ck_assert_uint_eq(cr_quantile_reads(CR_I64), 5);
}
END_TEST

START_TEST(shares_are_checked) {
    cr_error error;
    ck_assert_int_eq(cr_quantile_check(0, 0, NULL), CR_OK);
    ck_assert_int_eq(cr_quantile_check(1, 0, NULL), CR_OK);
    const double wrong[] = {-1e-300, 1.0000000000000002, INFINITY, NAN};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(cr_quantile_check(wrong[i], 7, &error), CR_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.text, "parameters[7]"));
    }
}
END_TEST

/* Memory that changes between two reads gives some answer, and nothing is read outside. */
START_TEST(changing_memory_gives_some_answer) {
    enum { N = 5000 };
    static float data[N];
    const cr_quantile_item items[] = {{0, CR_QUANTILE_LINEAR}, {0.5, CR_QUANTILE_LINEAR}, {1, CR_QUANTILE_HIGHER}};
    const cr_view view = cr_view_plain(data);
    for (uint32_t changed = 1; changed < 3; changed++) {
        cr_quantile s;
        uint64_t *counts = NULL;
        for (size_t i = 0; i < N; i++) data[i] = (float)i;
        cr_quantile_begin(&s, CR_F32, items, 3, false);
        do {
            if (s.read == changed)
                for (size_t i = 0; i < N; i++) data[i] = -1e30f * (float)(i % 7);
            free(counts);
            counts = calloc(cr_quantile_words(&s), sizeof *counts);
            cr_cpu_quantile_fold(&s, counts, &view, N);
        } while (cr_quantile_next(&s, counts));
        free(counts);
        for (uint32_t i = 0; i < 3; i++) cr_quantile_finish(&s, i, CR_F64);
    }
}
END_TEST

CR_CHECK_MAIN("kernels/quantile") {
    tcase_add_test(tc, methods_have_numpys_names);
    tcase_add_test(tc, places_are_exact);
    tcase_add_test(tc, what_lies_between_is_rounded_once);
    tcase_add_test(tc, short_numbers_change_no_bit);
    tcase_add_test(tc, reads_are_as_few_as_bits_allow);
    tcase_add_test(tc, shares_are_checked);
    tcase_add_test(tc, changing_memory_gives_some_answer);
}
