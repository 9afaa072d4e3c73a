/* number: a column's sum or mean as a float of any type, by integers, one column at a time: what the vectors leave
 * (NaNs, infinities, the ends of the range, doubtful quotients, half types).
 *
 * Thread: any. Owner: the caller owns the strip. */
#include "kernels/core/big.h"
#include "kernels/core/round.h"
#include "kernels/cpu/axis/plan.h"

enum { MOST_DIGITS = 44, EXTRA = 22 }; /* bits of the third digit taken along: two digits and these fit 127 bits */

/* |sum| as leading·2^exponent, and whether more follows; false for zero. leading has at least 73 bits. */
static bool leading_bits(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned column,
                         unsigned __int128 *leading, int *exponent, bool *negative, bool *sticky) {
    const cr_strip_sum *sum = &strip->sums[which];
    int64_t room[MOST_DIGITS + 2] = {0}, *t = room + 2; /* two zeros below */
    uint64_t carry = 0;
    int top = -1, n = 0;
    for (unsigned d = sum->low; d < sum->high || carry != 0; d++, n++) {
        if (n == MOST_DIGITS) break; /* the array changed meanwhile: any answer does */
        uint64_t x = carry;
        if (d < sum->high) x += cr_strip_digit(plan, strip, which, d)[column];
        carry = cr_digit_carry(x);
        t[n] = (int64_t)(x - (carry << CR_DIGIT_BITS));
        if (t[n] != 0) top = n;
    }
    if (top < 0) return false;
    /* What lies below a digit is less than one of its units, so the top digit has the sign. */
    *negative = t[top] < 0;
    if (*negative) {
        for (int d = 0; d <= top; d++) t[d] = -t[d];
    }
    int64_t third = t[top - 2], rest = third & (((int64_t)1 << (CR_DIGIT_BITS - EXTRA)) - 1);
    __int128 value = ((__int128)t[top] * ((int64_t)1 << CR_DIGIT_BITS) + t[top - 1]) * ((int64_t)1 << EXTRA);
    value += third >> (CR_DIGIT_BITS - EXTRA);
    int below = top - 3;
    while (below >= 0 && t[below] == 0) below--;
    *sticky = rest != 0 || below >= 0;
    if (rest == 0 && below >= 0 && t[below] < 0) value--;
    *leading = (unsigned __int128)value;
    *exponent = plan->grid[which] - sum->base + CR_DIGIT_BITS * ((int)sum->low + top - 1) - EXTRA;
    return true;
}

uint64_t cr_strip_number(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned column, bool mean,
                         cr_dtype result) {
    uint64_t n = cr_strip_n(plan, strip, column);
    if (strip->sums[which].special) {
        uint64_t nans = cr_strip_special(plan, strip, which, 0)[column];
        bool pinf = cr_strip_special(plan, strip, which, 1)[column] != 0;
        bool ninf = cr_strip_special(plan, strip, which, 2)[column] != 0;
        bool skip = plan->spec->finish.nan == CR_NAN_SKIP;
        if ((nans != 0 && !skip) || (pinf && ninf)) return cr_float_nan(result);
        if (pinf || ninf) return cr_float_infinity(result, ninf);
        if (skip) n -= nans;
    }
    if (mean && n == 0) return cr_float_nan(result);
    unsigned __int128 leading;
    int exponent;
    bool negative, sticky;
    if (!leading_bits(plan, strip, which, column, &leading, &exponent, &negative, &sticky)) return 0;
    cr_big x;
    cr_big_set(&x, leading);
    if (mean) {
        cr_big_shift_left(&x, 64);
        exponent -= 64;
        if (cr_big_divide(&x, n) != 0) sticky = true;
    }
    return cr_round(result, negative, &x, exponent, sticky);
}
