/* round: ties, denormals and overflow of each float type, at the places where they turn. */
#include <check.h>

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

CR_CHECK_MAIN("kernels/round") {
    tcase_add_test(tc, ties_go_to_even);
    tcase_add_test(tc, overflow_begins_half_a_unit_above_the_largest);
    tcase_add_test(tc, denormals_are_values_like_any_other);
    tcase_add_test(tc, sticky_breaks_a_tie);
}
