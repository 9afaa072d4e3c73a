/* round: ties, denormals and overflow of each float type, at the places where they turn. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "kernels/core/round.h"
#include "tests/unit/check_main.h"

static uint64_t rounded(cr_dtype dtype, uint64_t magnitude, int exponent, bool negative) {
    cr_big x;
    cr_big_set(&x, magnitude);
    return cr_round(dtype, negative, &x, exponent, false);
}

START_TEST(ties_go_to_even) {
    ck_assert_uint_eq(rounded(CR_F64, ((uint64_t)1 << 53) + 1, 0, false), 0x4340000000000000u);
    ck_assert_uint_eq(rounded(CR_F64, ((uint64_t)1 << 53) + 3, 0, false), 0x4340000000000002u);
    ck_assert_uint_eq(rounded(CR_F32, (1 << 24) + 1, 0, true), 0xcb800000u);
    ck_assert_uint_eq(rounded(CR_F16, 2049, 0, false), 0x6800u);
    ck_assert_uint_eq(rounded(CR_F16, 2051, 0, false), 0x6802u);
    ck_assert_uint_eq(rounded(CR_BF16, 257, 0, false), 0x4380u);
}
END_TEST

START_TEST(overflow_begins_half_a_unit_above_the_largest) {
    ck_assert_uint_eq(rounded(CR_F16, 65519, 0, false), 0x7bffu);
    ck_assert_uint_eq(rounded(CR_F16, 65520, 0, false), 0x7c00u);
    ck_assert_uint_eq(rounded(CR_F16, 65520, 0, true), 0xfc00u);
    ck_assert_uint_eq(rounded(CR_BF16, 0x1ff, 119, false), 0x7f80u); /* 0x1.FFp127 */
    ck_assert_uint_eq(rounded(CR_F32, 0x1ffffff, 103, false), 0x7f800000u);
    ck_assert_uint_eq(rounded(CR_F32, 0x3fffffd, 102, false), 0x7f7fffffu);
    ck_assert_uint_eq(rounded(CR_F64, 1, 5000, false), 0x7ff0000000000000u);
}
END_TEST

START_TEST(denormals_are_values_like_any_other) {
    ck_assert_uint_eq(rounded(CR_F64, 1, -1074, false), 1);
    ck_assert_uint_eq(rounded(CR_F64, 1, -1075, false), 0); /* a tie: even */
    ck_assert_uint_eq(rounded(CR_F64, 3, -1076, false), 1);
    ck_assert_uint_eq(rounded(CR_F64, 1, -9000, true), 0x8000000000000000u); /* keeps its sign */
    ck_assert_uint_eq(rounded(CR_F32, 0xffffff, -150, false), 0x00800000u);  /* up into the normal ones */
    ck_assert_uint_eq(rounded(CR_F16, 3, -25, false), 2);
    ck_assert_uint_eq(rounded(CR_F64, 0, 0, true), 0);
}
END_TEST

START_TEST(sticky_breaks_a_tie) {
    cr_big x;
    cr_big_set(&x, (((unsigned __int128)1 << 53) + 1) << 40);
    ck_assert_uint_eq(cr_round(CR_F64, false, &x, -40, true), 0x4340000000000001u);
}
END_TEST

/* Every element of the 16-bit types, and some of the others, is its value's nearest; a NaN is one again. */
START_TEST(elements_and_values_go_both_ways) {
    static const cr_dtype types[] = {CR_F16, CR_BF16, CR_F32, CR_F64};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const unsigned width = 8 * (unsigned)cr_dtype_size(types[t]);
        for (uint64_t i = 0; i < 65536; i++) {
            /* The high half of an element has its exponent; the low half of wide ones is spread. */
            const uint64_t bits = width == 16 ? i : i << (width - 16) | (i * 0x9e3779b97f4a7c15 >> (80 - width));
            const double value = cr_float_value(types[t], bits);
            const uint64_t back = cr_float_nearest(types[t], value);
            if (back == (isnan(value) ? cr_float_nan(types[t]) : bits)) continue; /* Check takes long to count */
            ck_abort_msg("%s %llx", cr_dtype_name(types[t]), (unsigned long long)bits);
        }
    }
}
END_TEST

/* float and double are C's own; the compiler's conversions know what is right. */
START_TEST(values_are_what_c_says) {
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t bits = i * 0x9e3779b97f4a7c15 + i;
        uint64_t wide = (bits & 0x800fffffffffffff) | (uint64_t)(850 + i % 330) << 52; /* around float's whole range */
        double x, value;
        float narrow, element;
        uint32_t word;
        memcpy(&x, &wide, sizeof x);
        narrow = (float)x;
        memcpy(&word, &narrow, sizeof word);
        ck_assert_uint_eq(cr_float_nearest(CR_F32, x), word);
        word = (uint32_t)(bits >> 32);
        memcpy(&element, &word, sizeof element);
        value = cr_float_value(CR_F32, word);
        ck_assert(value == (double)element || (isnan(value) && isnan(element)));
    }
    ck_assert_uint_eq(cr_float_nearest(CR_F16, 65520), 0x7c00); /* half a unit beyond the largest */
    ck_assert_uint_eq(cr_float_nearest(CR_F16, 65519.99), 0x7bff);
    ck_assert_uint_eq(cr_float_nearest(CR_BF16, -0.0), 0x8000);
    ck_assert(cr_float_value(CR_F16, 1) == 0x1p-24 && cr_float_value(CR_BF16, 0x8001) == -0x1p-133);
}
END_TEST

CR_CHECK_MAIN("kernels/round") {
    tcase_add_test(tc, elements_and_values_go_both_ways);
    tcase_add_test(tc, values_are_what_c_says);
    tcase_add_test(tc, ties_go_to_even);
    tcase_add_test(tc, overflow_begins_half_a_unit_above_the_largest);
    tcase_add_test(tc, denormals_are_values_like_any_other);
    tcase_add_test(tc, sticky_breaks_a_tie);
}
