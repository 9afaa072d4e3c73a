/* big: natural numbers, by identities that hold for any. */
#include <check.h>
#include <string.h>

#include "kernels/core/big.h"
#include "tests/unit/check_main.h"

static uint64_t state = 88172645463325252u;
static uint64_t next_word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void draw(cr_big *x, uint32_t digits) {
    x->n = 0;
    for (uint32_t i = 0; i < digits; i++) x->d[x->n++] = (uint32_t)next_word();
    while (x->n > 0 && x->d[x->n - 1] == 0) x->n--;
}

START_TEST(division_undoes_multiplication) {
    for (int i = 0; i < 2000; i++) {
        cr_big a, b, product;
        uint64_t divisor = next_word() >> (next_word() % 63) | 1, rest = next_word() % divisor;
        draw(&a, (uint32_t)(next_word() % 20));
        cr_big_set(&b, divisor);
        cr_big_multiply(&product, &a, &b);
        /* a·divisor + rest, by adding through subtraction: (p + divisor) − (divisor − rest) */
        cr_big more = product, less;
        cr_big_set(&less, divisor - rest);
        cr_big sum = a;
        uint64_t carry = 1; /* a + 1 */
        for (uint32_t d = 0; d < sum.n && carry; d++) {
            carry += sum.d[d];
            sum.d[d] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry) sum.d[sum.n++] = 1;
        cr_big_multiply(&more, &sum, &b);
        cr_big_subtract(&more, &less);
        ck_assert_uint_eq(cr_big_divide(&more, divisor), rest);
        ck_assert_int_eq(cr_big_compare(&more, &a), 0);
    }
}
END_TEST

/* Digits of which many are all ones or zeros, so that a digit of the quotient is guessed too high. */
static void draw_extreme(cr_big *x, uint32_t digits) {
    draw(x, digits);
    for (uint32_t i = 0; i < x->n; i++) {
        const uint64_t kind = next_word() % 4;
        if (kind < 2) x->d[i] = kind == 0 ? UINT32_MAX : i + 1 < x->n ? 0 : 1;
    }
}

START_TEST(long_division_undoes_multiplication) {
    for (int i = 0; i < 20000; i++) {
        cr_big divisor, quotient, rest, x, low;
        draw_extreme(&divisor, 2 + (uint32_t)(next_word() % 20));
        if (divisor.n < 2) continue;
        cr_big_shift_left(&divisor, -cr_big_bits(&divisor) % 32);
        draw_extreme(&quotient, (uint32_t)(next_word() % 5));
        draw_extreme(&rest, (uint32_t)(next_word() % (divisor.n + 1)));
        cr_big_set(&low, 1);
        if (i % 3 == 0) { /* as large as it may be */
            rest = divisor;
            cr_big_subtract(&rest, &low);
        }
        if (cr_big_compare(&rest, &divisor) >= 0) continue;
        cr_big_multiply(&x, &quotient, &divisor);
        cr_big_add(&x, &rest);
        ck_assert(cr_big_divide_long(&x, &divisor) == cr_big_low(&quotient));
        ck_assert_int_eq(cr_big_compare(&x, &rest), 0);
    }
}
END_TEST

START_TEST(shifts_undo_each_other) {
    for (int i = 0; i < 2000; i++) {
        cr_big a, b;
        unsigned by = (unsigned)(next_word() % 700);
        draw(&a, (uint32_t)(next_word() % 20));
        b = a;
        cr_big_shift_left(&b, by);
        ck_assert_uint_eq(cr_big_bits(&b), a.n ? cr_big_bits(&a) + by : 0);
        ck_assert(!cr_big_shift_right(&b, by));
        ck_assert_int_eq(cr_big_compare(&a, &b), 0);
        if (a.n) ck_assert(cr_big_shift_right(&b, cr_big_bits(&a)));
    }
}
END_TEST

START_TEST(root_is_between_squares) {
    for (int i = 0; i < 2000; i++) {
        cr_big x, root, square;
        draw(&x, (uint32_t)(next_word() % 5)); /* up to 128 bits */
        if (i % 2) {                           /* a square, or one beside it */
            const uint64_t side = next_word() >> next_word() % 64;
            cr_big_set(&x, (unsigned __int128)side * side + (unsigned)(next_word() % 3) - (side > 1));
        }
        if (i == 1) cr_big_set(&x, ~(unsigned __int128)0);
        root = x;
        bool rest = cr_big_root(&root);
        cr_big_multiply(&square, &root, &root);
        ck_assert_int_eq(cr_big_compare(&square, &x), rest ? -1 : 0);
        unsigned __int128 next = cr_big_low(&root) + 1;
        cr_big more, copy;
        cr_big_set(&more, next);
        copy = more;
        cr_big_multiply(&square, &more, &copy);
        ck_assert_int_eq(cr_big_compare(&square, &x), 1);
    }
}
END_TEST

START_TEST(limbs_of_both_signs) {
    int64_t limb[3] = {-1, 0, 0};
    cr_big x;
    ck_assert(cr_big_from_limbs(&x, limb, 3));
    ck_assert_uint_eq(x.n, 1);
    ck_assert_uint_eq(x.d[0], 1);
    int64_t wide[3] = {((int64_t)1 << 62) + 5, -((int64_t)1 << 62), (int64_t)1 << 40};
    ck_assert(!cr_big_from_limbs(&x, wide, 3));
    char text[64];
    cr_big_decimal(&x, false, text, sizeof text);
    /* 2^62 + 5 − 2^94 + 2^104 */
    ck_assert_str_eq(text, "20262602563027716025567292686341");
}
END_TEST

/* At any place, below limbs that are zero, as in most sums. */
START_TEST(limbs_among_zeros) {
    for (int i = 0; i < 2000; i++) {
        int64_t limb[CR_SUM_LIMBS] = {0};
        const unsigned at = (unsigned)(next_word() % (CR_SUM_LIMBS - 3));
        __int128 value = 0;
        for (unsigned k = 3; k-- > 0;) {
            limb[at + k] = next_word() % 4 != 0 ? (int64_t)next_word() >> (2 + next_word() % 61) : 0;
            value = value * ((__int128)1 << 32) + limb[at + k];
        }
        cr_big x, wanted;
        cr_big_set(&wanted, value < 0 ? -(unsigned __int128)value : (unsigned __int128)value);
        cr_big_shift_left(&wanted, 32 * at);
        ck_assert_int_eq(cr_big_from_limbs(&x, limb, at + 3 + (unsigned)(next_word() % (CR_SUM_LIMBS - 2 - at))),
                         value < 0);
        ck_assert_int_eq(cr_big_compare(&x, &wanted), 0);
    }
}
END_TEST

START_TEST(decimal_digits) {
    cr_big x;
    char text[8];
    cr_big_set(&x, 0);
    cr_big_decimal(&x, false, text, sizeof text);
    ck_assert_str_eq(text, "0");
    cr_big_set(&x, 1234567);
    cr_big_decimal(&x, true, text, sizeof text);
    ck_assert_str_eq(text, "-123456"); /* cut, and ended */
}
END_TEST

CR_CHECK_MAIN("kernels/big") {
    tcase_add_test(tc, division_undoes_multiplication);
    tcase_add_test(tc, long_division_undoes_multiplication);
    tcase_add_test(tc, shifts_undo_each_other);
    tcase_add_test(tc, root_is_between_squares);
    tcase_add_test(tc, limbs_of_both_signs);
    tcase_add_test(tc, limbs_among_zeros);
    tcase_add_test(tc, decimal_digits);
}
