/* round: from digits to sums and means, rounded once, a vector of columns at a time.
 *
 * Carried digits are exact float64 numbers t_0, t_1, …. Adding them from the lowest up by TwoSum gives s and errors
 * e_1, e_2, … with s + Σe exact; the errors are added, rounding to odd, to v; then s + v, rounded to nearest, is the sum
 * rounded once. (TwoSum: Knuth, TAOCP 2, 4.2.2. Rounding to odd: Boldo and Melquiond, "Emulation of a FMA and Correctly
 * Rounded Sums: Proved Algorithms Using Rounding to Odd", IEEE Trans. Comput. 57, 2008.) A quotient is accepted when all
 * that it might be rounds alike (Ziv, ACM Trans. Math. Softw. 17, 1991).
 * Thread: any. Owner: the caller owns strip and results. */
#ifndef CURED_KERNELS_CPU_AXIS_ROUND_H
#define CURED_KERNELS_CPU_AXIS_ROUND_H

#include "kernels/core/float.h"
#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/rows/tree.h"

enum { ROUND_LANES = VB / 8, ROUND_DIGITS = 48, ROUND_UNIT_MOST = 960, LOWEST_UNIT = CR_F64_GRID };

/* s + e, rounded to odd, where s is already their sum rounded to nearest and e what that left. */
ALWAYS vf64 to_odd(vf64 s, vf64 e) {
    vu64 inexact_even = (vu64)(e != 0) & (vu64)(((vu64)s & 1) == 0);
    vu64 away = (vu64)((e > 0) == (s > 0));
    /* one step of the bits outwards (+1) or inwards (−1) */
    return (vf64)((vu64)s + (inexact_even & (away & 2)) - (inexact_even & 1));
}

/* A signed digit within ±2^51, as a number. */
ALWAYS vf64 digit_value(vu64 digit) {
    const vf64 magic = ALL(vf64, 0x1.8p52);
    return (vf64)(digit + (vu64)magic) - magic;
}

ALWAYS vu64 vector_carry(vu64 x) {
    const uint64_t half = (uint64_t)1 << 51, top = (uint64_t)1 << 63;
    return ((x + (half + top)) >> CR_DIGIT_BITS) - (top >> CR_DIGIT_BITS);
}

/* The numbers t of one vector's columns; returns how many (the first of digit *lowest), −1: beyond float64, above or
 * below. */
ALWAYS int digit_numbers(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, vf64 *t) {
    const cr_strip_sum *sum = &strip->sums[which];
    vu64 carry = {0};
    int count = 0;
    for (unsigned d = sum->low; d < sum->high || (d < plan->digits[which] && any_bit(carry)); d++) {
        vu64 x = carry;
        if (d < sum->high) x += LOAD(vu64, cr_strip_digit(plan, strip, which, d) + first);
        carry = vector_carry(x);
        x -= carry << CR_DIGIT_BITS;
        if (!any_bit(x)) continue;
        int unit = plan->grid[which] - sum->base + CR_DIGIT_BITS * (int)d;
        if (unit > ROUND_UNIT_MOST || (unit < LOWEST_UNIT && plan->grid[which] < LOWEST_UNIT)) return -1;
        /* Below the smallest float64 a digit is a multiple of 2^base: two exact products. */
        if (unit < LOWEST_UNIT) {
            t[count++] = digit_value(x) * power_of_two(unit + 64) * 0x1p-64;
        } else {
            t[count++] = digit_value(x) * power_of_two(unit);
        }
    }
    return any_bit(carry) ? -1 : count;
}

/* s + v: the numbers added up, v rounded to odd. Returns where v had to be rounded. */
ALWAYS vu64 add_numbers(const vf64 *t, int numbers, vf64 *s, vf64 *v) {
    vu64 rounded = {0};
    *s = *v = (vf64){0};
    for (int i = 0; i < numbers; i++) {
        vf64 e, rest;
        *s = two_sum(t[i], *s, &e);
        if (i == 0) continue;
        *v = two_sum(e, *v, &rest);
        rounded |= (vu64)(rest != 0);
        *v = to_odd(*v, rest);
    }
    return rounded;
}

/* c − a·b, where that is a float64. */
ALWAYS vf64 negative_product(vf64 a, vf64 b, vf64 c) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(VEC_NEON)
    return (vf64)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    vf64 p = a * b;
    return (c - p) - product_error(a, b, p);
#endif
}

ALWAYS vf64 root_of(vf64 x) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_sqrt_pd((__m512d)x);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_sqrt_pd((__m256d)x);
#elif defined(VEC_NEON)
    return (vf64)vsqrtq_f64((float64x2_t)x);
#else
    for (size_t i = 0; i < VB / 8; i++) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

/* Of low and high, which are neighbours or the same, the one that (s + v) / divisor is nearer to; of two that are as near, the even one.
 * Quotients of sums of a few numbers often lie half way. All is exact for whole divisors up to 2^50: up to the last addition numbers are
 * multiples of half the neighbours' distance, and of that one only the sign counts. */
NEVER vf64 nearer(vf64 s, vf64 v, vf64 divisor, vf64 low, vf64 high) {
    const vf64 rest = (negative_product(low, divisor, s) - (high - low) * 0.5 * divisor) + v;
    const vu64 up = (vu64)(rest > 0) | ((vu64)(rest == 0) & (vu64)(((vu64)low & 1) != 0));
    return (vf64)SELECT(vu64, up, (vu64)high, (vu64)low);
}

/* (s + v) / divisor, where v is off by at most d; lanes of *hard are not certain. */
ALWAYS vf64 quotient(vf64 s, vf64 v, vf64 d, vf64 divisor, vu64 *hard) {
    vf64 q = s / divisor;
    vu64 inexact = ~(vu64)(v == 0) | ~(vu64)(d == 0);
    *hard = (vu64){0};
    if (!any_bit(inexact)) return q; /* one division, one rounding */
    vu64 usual = (vu64)(magnitude_of(s) > 0x1p-900) & (vu64)(magnitude_of(s) < 0x1p900);
    vf64 r = negative_product(q, divisor, s);
    vf64 c = (r + v) / divisor, doubt = (magnitude_of(r) + magnitude_of(v) + d * 0x1p51) / divisor * 0x1p-50;
    vf64 low = q + (c - doubt), high = q + (c + doubt);
    *hard = inexact & ~(usual & (vu64)(low == high));
    const vu64 decided = *hard & usual & (vu64)(d == 0) & (vu64)(divisor <= 0x1p50);
    if (any_bit(decided)) {
        low = nearer(s, v, divisor, low, high);
        *hard &= ~decided;
    }
    return (vf64)SELECT(vu64, inexact, (vu64)low, (vu64)q);
}

/* What float64 numbers round to as float32 when rounded to odd before. */
ALWAYS void store_floats(uint8_t *to, vf64 s, unsigned count) {
    typedef float floats __attribute__((vector_size(VB / 2)));
    floats single = __builtin_convertvector(s, floats);
    if (count == ROUND_LANES) {
        memcpy(to, &single, sizeof single);
    } else {
        memcpy(to, &single, count * sizeof(float));
    }
}

ALWAYS void store_doubles(uint8_t *to, vf64 s, unsigned count) {
    if (count == ROUND_LANES) {
        memcpy(to, &s, VB);
    } else {
        memcpy(to, &s, count * sizeof(double));
    }
}

/* One digit, as sums of like numbers have: a float64 as it is. False where a column's is larger. */
static bool round_digit(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                        uint64_t divisor, bool narrow, uint8_t *to) {
    const cr_strip_sum *sum = &strip->sums[which];
    int unit = plan->grid[which] - sum->base + CR_DIGIT_BITS * (int)sum->low;
    if (sum->high != sum->low + 1 || unit > ROUND_UNIT_MOST || unit < LOWEST_UNIT) return false;
    const uint64_t *digit = cr_strip_digit(plan, strip, which, sum->low) + first;
    const double scale = power_of_two(unit), by = (double)divisor;
    vu64 larger = {0};
    for (unsigned c = 0; c < count; c += ROUND_LANES) {
        vu64 x = LOAD(vu64, digit + c);
        larger |= vector_carry(x);
        vf64 s = digit_value(x) * scale;
        if (divisor != 0) s /= by;
        unsigned now = count - c < ROUND_LANES ? count - c : ROUND_LANES;
        if (narrow) {
            store_floats(to + c * sizeof(float), s, now);
        } else {
            store_doubles(to + c * sizeof(double), s, now);
        }
    }
    return !any_bit(larger);
}

static unsigned round_sums(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                           uint64_t divisor, bool narrow, uint8_t *to, uint8_t *hard) {
    if (round_digit(plan, strip, which, first, count, divisor, narrow, to)) {
        memset(hard, 0, count);
        return 0;
    }
    /* A power of two divides exactly, away from the ends of the range: then the sum is rounded, not the quotient. */
    bool shifts = (divisor & (divisor - 1)) == 0;
    unsigned left = 0;
    memset(hard, 0, count);
    for (unsigned c = 0; c < count; c += ROUND_LANES) {
        vf64 t[ROUND_DIGITS], s, v, e;
        vu64 doubt = {0};
        int numbers = digit_numbers(plan, strip, which, first + c, t);
        add_numbers(t, numbers, &s, &v);
        vf64 exact_s = s;
        s = two_sum(exact_s, v, &e); /* rounded once; e and s together are not the sum, but s is its nearest */
        if (divisor != 0 && !shifts) {
            s = quotient(exact_s, v, (vf64){0}, ALL(vf64, (double)divisor), &doubt);
        } else if (divisor != 0) {
            doubt = (vu64)(magnitude_of(s) < 0x1p-900) & (vu64)(s != 0);
            s *= 1.0 / (double)divisor;
        } else if (narrow) {
            s = to_odd(s, e);
        }
        unsigned now = count - c < ROUND_LANES ? count - c : ROUND_LANES;
        if (narrow) {
            store_floats(to + c * sizeof(float), s, now);
        } else {
            store_doubles(to + c * sizeof(double), s, now);
        }
        if (__builtin_expect(numbers >= 0 && !any_bit(doubt), 1)) continue;
        for (unsigned i = 0; i < now; i++) {
            hard[c + i] = numbers < 0 || doubt[i] != 0;
            left += hard[c + i];
        }
    }
    return left;
}

/* hi + lo, off by at most d, to odd; lanes of *hard are not certain. */
ALWAYS vf64 row_to_odd(vf64 hi, vf64 lo, vf64 d, vu64 *hard) {
    vf64 e, low = two_sum(hi, lo - d, &e);
    low = to_odd(low, e);
    vf64 high = two_sum(hi, lo + d, &e);
    high = to_odd(high, e);
    *hard = ~(vu64)(low == high);
    return low;
}

/* hi / divisor, exact before, to odd. */
ALWAYS vf64 quotient_to_odd(vf64 hi, vf64 divisor, vu64 *hard) {
    vf64 q = hi / divisor, r = negative_product(q, divisor, hi);
    *hard = ~((vu64)(magnitude_of(hi) > 0x1p-900) & (vu64)(magnitude_of(hi) < 0x1p900)) & ~(vu64)(hi == 0);
    return to_odd(q, r);
}

ALWAYS vf64 round_row(const cr_row_sums *sums, unsigned i, bool plain, bool divided, vf64 divisor, bool narrow,
                      vu64 *hard) {
    vf64 hi = LOAD(vf64, &sums->hi[i]), lo = {0}, d = {0}, v;
    *hard = (vu64){0};
    if (!plain) {
        lo = LOAD(vf64, &sums->lo[i]);
        d = LOAD(vf64, &sums->doubt[i]);
    }
    if (!divided && plain) return hi;
    if (!divided && narrow) return row_to_odd(hi, lo, d, hard);
    if (!divided) {
        vf64 low = hi + (lo - d), high = hi + (lo + d);
        *hard = ~(vu64)(low == high);
        return low;
    }
    if (narrow) {
        vf64 s = quotient_to_odd(hi, divisor, hard);
        *hard |= ~((vu64)(lo == 0) & (vu64)(d == 0));
        return s;
    }
    if (plain) return hi / divisor;
    vf64 s = two_sum(hi, lo, &v);
    s = quotient(s, v, d, divisor, hard);
    *hard |= ~(vu64)(s == s);
    return s;
}

ALWAYS unsigned round_all_rows(const cr_row_sums *sums, unsigned count, bool plain, bool divided, double divisor,
                               const double *counts, bool narrow, uint8_t *to, uint8_t *hard) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i += ROUND_LANES) {
        vu64 doubtful;
        const vf64 by = counts ? LOAD(vf64, counts + i) : ALL(vf64, divisor);
        vf64 s = round_row(sums, i, plain, divided, by, narrow, &doubtful);
        unsigned now = count - i < ROUND_LANES ? count - i : ROUND_LANES;
        if (narrow) {
            store_floats(to + i * sizeof(float), s, now);
        } else {
            store_doubles(to + i * sizeof(double), s, now);
        }
        memset(hard + i, 0, now);
        if (plain && !(narrow && divided)) continue;
        if (!any_bit(doubtful)) continue;
        for (unsigned k = 0; k < now; k++) {
            if (!doubtful[k]) continue;
            hard[i + k] = 1;
            left++;
        }
    }
    return left;
}

static unsigned round_rows(const cr_row_sums *sums, unsigned count, uint64_t divisor, const double *counts, bool narrow,
                           uint8_t *to, uint8_t *hard) {
    const bool divided = divisor != 0;
    const double by = (double)divisor;
    if (narrow) return round_all_rows(sums, count, sums->plain, divided, by, counts, true, to, hard);
    if (!sums->plain) return round_all_rows(sums, count, false, divided, by, counts, false, to, hard);
    if (!divided) return round_all_rows(sums, count, true, false, 0, NULL, false, to, hard);
    return round_all_rows(sums, count, true, true, by, counts, false, to, hard);
}

/* The root of s + v, where v is off by at most d and far smaller than s. */
ALWAYS vf64 rounded_root(vf64 s, vf64 v, vf64 d, vu64 *hard) {
    vf64 r = root_of(s), rest = negative_product(r, r, s) + v, twice = r + r;
    vu64 usual = (vu64)(s > 0x1p-900) & (vu64)(s < 0x1p900), exact = (vu64)(v == 0) & (vu64)(d == 0);
    vf64 c = rest / twice, doubt = (magnitude_of(rest) + magnitude_of(v) + d * 0x1p50) / twice * 0x1p-48;
    vf64 low = r + (c - doubt), high = r + (c + doubt);
    *hard = ~exact & ~(usual & (vu64)(low == high));
    return (vf64)SELECT(vu64, exact, (vu64)r, (vu64)low);
}

/* Σ of one vector of rows as s + v, off by d. */
ALWAYS void load_row_sum(const cr_row_sums *sums, unsigned i, vf64 *s, vf64 *v, vf64 *d) {
    *s = LOAD(vf64, &sums->hi[i]);
    *v = *d = (vf64){0};
    if (sums->plain) return;
    *s = two_sum(*s, LOAD(vf64, &sums->lo[i]), v);
    *d = LOAD(vf64, &sums->doubt[i]);
}

/* n·Σx² − (Σx)² as s + v, off by at most *d; exact where nothing was rounded. */
ALWAYS vf64 spread(const cr_row_sums *sum, const cr_row_sums *square, unsigned i, vf64 n, vf64 *v, vf64 *d) {
    vf64 a, al, ad, q, ql, qd, rest;
    load_row_sum(sum, i, &a, &al, &ad);
    load_row_sum(square, i, &q, &ql, &qd);
    vf64 p = q * n, pe = product_error(q, n, p), t = a * a, te = product_error(a, a, t);
    vf64 s = two_sum(p, -t, &rest);
    vf64 low = (rest + (pe - te)) + (ql * n - 2 * a * al);
    /* What is rounded or left out is below a few units in 2^-106 of either product. */
    vf64 off = (p + t) * 0x1p-98 + qd * (2 * n) + magnitude_of(a) * ad * 4;
    vu64 exact =
        (vu64)(pe == 0) & (vu64)(te == 0) & (vu64)(ql == 0) & (vu64)(al == 0) & (vu64)(qd == 0) & (vu64)(ad == 0);
    *d = (vf64)((vu64)off & ~exact);
    return two_sum(s, low, v);
}

static unsigned round_squares(const cr_row_sums *sum, const cr_row_sums *square, unsigned count, uint64_t n,
                              const double *counts, uint64_t ddof, bool root, uint8_t *to, uint8_t *hard) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i += ROUND_LANES) {
        vf64 s, v, d;
        vu64 doubtful;
        unsigned now = count - i < ROUND_LANES ? count - i : ROUND_LANES;
        if (sum == NULL) {
            load_row_sum(square, i, &s, &v, &d);
            s = rounded_root(s, v, d, &doubtful);
        } else {
            const vf64 many = counts ? LOAD(vf64, counts + i) : ALL(vf64, (double)n);
            const vf64 divisor = many * (many - (double)ddof); /* exact: rows are short */
            s = spread(sum, square, i, many, &v, &d);
            doubtful = (vu64)(magnitude_of(s) > 0x1p800) | (vu64)(magnitude_of(s) < d * 0x1p20);
            if (root) {
                /* The quotient as q + c, then its root. */
                vf64 q = s / divisor, r = negative_product(q, divisor, s) + v, c = r / divisor;
                vu64 more, exact = (vu64)(r == 0) & (vu64)(v == 0) & (vu64)(d == 0);
                vf64 off = (magnitude_of(c) + magnitude_of(v) / divisor) * 0x1p-50 + d / divisor * 2;
                s = rounded_root(q, c, (vf64)((vu64)off & ~exact), &more);
                doubtful |= more | ((vu64)(q != 0) & ~(vu64)(q > 0x1p-900));
            } else {
                vu64 more;
                s = quotient(s, v, d, divisor, &more);
                doubtful |= more;
            }
        }
        doubtful |= ~(vu64)(s == s);
        store_doubles(to + i * sizeof(double), s, now);
        for (unsigned k = 0; k < now; k++) {
            hard[i + k] = doubtful[k] != 0;
            left += doubtful[k] != 0;
        }
    }
    return left;
}

static void column_sums(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                        cr_row_sums *sums) {
    sums->plain = false;
    for (unsigned c = 0; c < count; c += ROUND_LANES) {
        vf64 t[ROUND_DIGITS], s, v;
        int numbers = digit_numbers(plan, strip, which, first + c, t);
        vu64 rounded = add_numbers(t, numbers, &s, &v);
        vf64 doubt = (vf64)((vu64)(magnitude_of(v) * 0x1p-50) & rounded);
        if (numbers < 0) doubt = ALL(vf64, __builtin_nan(""));
        memcpy(&sums->hi[c], &s, VB);
        memcpy(&sums->lo[c], &v, VB);
        memcpy(&sums->doubt[c], &doubt, VB);
    }
}

#endif
