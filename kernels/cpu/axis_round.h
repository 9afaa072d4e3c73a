/* axis_round: from digits to sums and means, rounded once, a vector of columns at a time. Included once per instruction
 * set.
 *
 * Carried digits are exact float64 numbers t_0, t_1, …. Adding them from the lowest up by TwoSum gives s and errors
 * e_1, e_2, … with s + Σe exact; the errors are added, rounding to odd, to v; then s + v, rounded to nearest, is the sum
 * rounded once. (TwoSum: Knuth, TAOCP 2, 4.2.2. Rounding to odd: Boldo and Melquiond, "Emulation of a FMA and Correctly
 * Rounded Sums: Proved Algorithms Using Rounding to Odd", IEEE Trans. Comput. 57, 2008.) A quotient is accepted when all
 * that it might be rounds alike (Ziv, ACM Trans. Math. Softw. 17, 1991).
 * Thread: any. Owner: the caller owns strip and results. */

enum { ROUND_LANES = VB / 8, ROUND_DIGITS = 48, ROUND_UNIT_MOST = 960, LOWEST_UNIT = -1074 };

ALWAYS vf64 two_sum(vf64 a, vf64 b, vf64 *error) {
    vf64 s = a + b, bb = s - a;
    *error = (a - (s - bb)) + (b - bb);
    return s;
}

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

/* The numbers t of one vector's columns; returns how many (the first of digit *lowest), −1: beyond float64. */
ALWAYS int digit_numbers(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, vf64 *t) {
    const cr_strip_sum *sum = &strip->sums[which];
    vu64 carry = {0};
    int count = 0;
    for (unsigned d = sum->low; d < sum->high || (d < plan->digits && any_bit(carry)); d++) {
        vu64 x = carry;
        if (d < sum->high) x += LOAD(vu64, cr_strip_digit(plan, strip, which, d) + first);
        carry = vector_carry(x);
        x -= carry << CR_DIGIT_BITS;
        if (!any_bit(x)) continue;
        int unit = plan->grid - sum->base + CR_DIGIT_BITS * (int)d;
        if (unit > ROUND_UNIT_MOST) return -1;
        /* Below the smallest float64 a digit is a multiple of 2^base: two exact products. */
        if (unit < LOWEST_UNIT) {
            t[count++] = digit_value(x) * power_of_two(unit + 64) * 0x1p-64;
        } else {
            t[count++] = digit_value(x) * power_of_two(unit);
        }
    }
    return any_bit(carry) ? -1 : count;
}

ALWAYS vf64 magnitude_of(vf64 x) { return (vf64)((vu64)x & INT64_MAX); }

#if defined(VEC_AVX512)
ALWAYS vf64 negative_product(vf64 a, vf64 b, vf64 c) {
    return (vf64)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(VEC_AVX2)
ALWAYS vf64 negative_product(vf64 a, vf64 b, vf64 c) {
    return (vf64)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif

/* (s + v) / divisor; lanes of *hard are not certain. */
ALWAYS vf64 quotient(vf64 s, vf64 v, double divisor, vu64 *hard) {
    vf64 q = s / divisor;
    vu64 inexact = (vu64)(v != 0);
    *hard = (vu64){0};
    if (!any_bit(inexact)) return q; /* one division, one rounding */
    vu64 tiny = (vu64)(magnitude_of(s) < 0x1p-900) | (vu64)(magnitude_of(s) > 0x1p900);
#if defined(VEC_AVX512) || defined(VEC_AVX2)
    vf64 r = negative_product(q, ALL(vf64, divisor), s);
    vf64 c = (r + v) / divisor, doubt = (magnitude_of(r) + magnitude_of(v)) / divisor * 0x1p-50;
    vf64 low = q + (c - doubt), high = q + (c + doubt);
    *hard = inexact & (tiny | (vu64)(low != high));
    return (vf64)SELECT(vu64, inexact, (vu64)low, (vu64)q);
#else
    *hard = inexact;
    (void)tiny;
    return q;
#endif
}

static void round_sums(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                       uint64_t divisor, bool narrow, uint64_t *bits, uint8_t *hard) {
    /* A power of two divides exactly, away from the ends of the range: then the sum is rounded, not the quotient. */
    bool shifts = (divisor & (divisor - 1)) == 0;
    for (unsigned c = 0; c < count; c += ROUND_LANES) {
        vf64 t[ROUND_DIGITS], s = {0}, v = {0}, e;
        vu64 doubt = {0};
        int numbers = digit_numbers(plan, strip, which, first + c, t);
        for (int i = 0; i < numbers; i++) {
            s = two_sum(t[i], s, &e);
            if (i == 0) continue;
            vf64 rest;
            v = two_sum(e, v, &rest);
            v = to_odd(v, rest);
        }
        vf64 exact_s = s;
        s = two_sum(exact_s, v, &e); /* rounded once; e and s together are not the sum, but s is its nearest */
        if (divisor != 0 && !shifts) {
            s = quotient(exact_s, v, (double)divisor, &doubt);
        } else if (divisor != 0) {
            doubt = (vu64)(magnitude_of(s) < 0x1p-900) & (vu64)(s != 0);
            s *= 1.0 / (double)divisor;
        } else if (narrow) {
            s = to_odd(s, e);
        }
        for (unsigned i = 0; i < ROUND_LANES && c + i < count; i++) {
            hard[c + i] = numbers < 0 || doubt[i] != 0;
            if (narrow) {
                float single = (float)s[i];
                uint32_t narrow_bits;
                memcpy(&narrow_bits, &single, sizeof narrow_bits);
                bits[c + i] = narrow_bits;
            } else {
                double lane = s[i];
                memcpy(&bits[c + i], &lane, sizeof lane);
            }
        }
    }
}
