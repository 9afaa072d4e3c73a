/* partial: the empty state, merging, and limbs near the end of their patience. */
#include <check.h>
#include <string.h>

#include "kernels/core/limbs.h"
#include "kernels/core/partial.h"
#include "tests/unit/check_main.h"

static cr_value finish(const cr_partial *p, cr_op op) {
    cr_finish_opts opts = {0};
    cr_value v;
    cr_partial_finish(p, op, &opts, &v);
    return v;
}

static uint64_t bits_of(const cr_value *v) {
    uint64_t bits = 0;
    memcpy(&bits, v->bytes, v->len < 8 ? v->len : 8);
    return bits;
}

START_TEST(nothing_folded_follows_the_empty_rule) {
    static const struct {
        cr_op op;
        uint64_t bits;
    } f64[] = {{CR_OP_SUM, 0},
               {CR_OP_MEAN, 0x7ff8000000000000},
               {CR_OP_VAR, 0x7ff8000000000000},
               {CR_OP_COUNT, 0},
               {CR_OP_ANY, 0},
               {CR_OP_ALL, 1},
               {CR_OP_NORM2, 0},
               {CR_OP_NORMINF, 0},
               {CR_OP_STD, 0x7ff8000000000000}},
      u16[] = {{CR_OP_PROD, 1}, {CR_OP_BIT_AND, 0xffff}, {CR_OP_BIT_OR, 0}, {CR_OP_BIT_XOR, 0}, {CR_OP_SUM, 0}};
    cr_partial p;
    cr_partial_init(&p, CR_F64, CR_FAM_SINGLE & ~CR_FAM_PROD);
    for (size_t i = 0; i < sizeof f64 / sizeof f64[0]; i++) {
        cr_value v = finish(&p, f64[i].op);
        ck_assert_int_eq(v.error.code, CR_OK);
        ck_assert_uint_eq(bits_of(&v), f64[i].bits);
    }
    cr_value v = finish(&p, CR_OP_ARGMIN);
    ck_assert_int_eq(v.error.code, CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(v.error.text, "argmin"));
    cr_partial_init(&p, CR_U16, CR_FAM_SINGLE);
    for (size_t i = 0; i < sizeof u16 / sizeof u16[0]; i++) {
        v = finish(&p, u16[i].op);
        ck_assert_int_eq(v.error.code, CR_OK);
        ck_assert_uint_eq(bits_of(&v), u16[i].bits);
    }
}
END_TEST

START_TEST(merging_never_overflows_a_limb) {
    /* Doubling 200 times passes any bound on raw additions; the sum is 2^200 times the first, modulo nothing. */
    cr_partial p, q;
    cr_partial_init(&p, CR_F64, CR_FAM_SUM);
    cr_sum *sum = &p.sums[CR_AT_SUM];
    cr_limbs_put(sum->limbs, cr_sum_limbs(CR_AT_SUM, CR_F64), &sum->pending, ~(unsigned __int128)0, true, 1074);
    for (int i = 0; i < 200; i++) {
        q = p;
        cr_partial_merge(&p, &q);
        ck_assert_uint_le(sum->pending, CR_PENDING_MAX);
    }
    cr_value v = finish(&p, CR_OP_SUM);
    double got;
    memcpy(&got, v.bytes, 8);
    ck_assert(got == -0x1p328);
}
END_TEST

/* A number may pass through digits above the top limb, as a sign does that was carried up: what they are with the others counts. */
START_TEST(digits_above_the_top_limb_count) {
    enum { LIMBS = 4, TOP = 32 * LIMBS };
    for (unsigned bit = TOP - 40; bit < TOP + 80; bit++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            int64_t limb[LIMBS] = {0};
            uint32_t pending = 0;
            cr_limbs_put(limb, LIMBS, &pending, 7, sign < 0, bit - 2);
            cr_limbs_put(limb, LIMBS, &pending, 7, sign > 0, 0); /* from here on it is 7·(2^(bit−2) − 1) */
            for (unsigned at = 0; at < bit - 2; at += 64) {      /* which is all ones, seven times */
                const unsigned width = bit - 2 - at < 64 ? bit - 2 - at : 64;
                const unsigned __int128 ones = ((unsigned __int128)1 << width) - 1;
                cr_limbs_put(limb, LIMBS, &pending, 7 * ones, sign > 0, at);
            }
            cr_limbs_put(limb, LIMBS, &pending, 5, sign < 0, 32);
            cr_limbs_carry(limb, LIMBS, &pending);
            ck_assert_int_eq(limb[0], 0);
            if (sign > 0) {
                ck_assert_int_eq(limb[1], 5);
                ck_assert_int_eq(limb[LIMBS - 1], 0);
            } else {
                ck_assert_int_eq(limb[1], UINT32_MAX - 4);
                ck_assert_int_eq(limb[LIMBS - 1], -1);
            }
        }
    }
}
END_TEST

START_TEST(extrema_take_the_lowest_index) {
    cr_partial a, b;
    cr_partial_init(&a, CR_I32, CR_FAM_EXTREMA);
    b = a;
    a.min = a.max = (cr_extremum){5, 70};
    b.min = b.max = (cr_extremum){5, 30};
    a.n = b.n = 1;
    cr_partial c = a;
    cr_partial_merge(&c, &b);
    ck_assert_uint_eq(c.min.index, 30);
    c = b;
    cr_partial_merge(&c, &a);
    ck_assert_uint_eq(c.max.index, 30);
    cr_partial empty;
    cr_partial_init(&empty, CR_I32, CR_FAM_EXTREMA);
    cr_partial_merge(&c, &empty);
    ck_assert_uint_eq(c.max.index, 30);
    cr_partial_merge(&empty, &a);
    ck_assert_uint_eq(empty.min.index, 70);
}
END_TEST

START_TEST(a_missing_family_is_said) {
    cr_partial p;
    cr_partial_init(&p, CR_F32, CR_FAM_EXTREMA);
    ck_assert_int_eq(finish(&p, CR_OP_SUM).error.code, CR_INTERNAL);
}
END_TEST

CR_CHECK_MAIN("kernels/partial") {
    tcase_add_test(tc, nothing_folded_follows_the_empty_rule);
    tcase_add_test(tc, merging_never_overflows_a_limb);
    tcase_add_test(tc, digits_above_the_top_limb_count);
    tcase_add_test(tc, extrema_take_the_lowest_index);
    tcase_add_test(tc, a_missing_family_is_said);
}
