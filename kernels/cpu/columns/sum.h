/* sum: exact sums of floats, by column and by row. Includes sum_type.inc once per element type.
 *
 * A sum is digits of 52 bits (axis/plan.h). For digit d with unit u, M_d = 1.5·2^52·u: adding x to M_d
 * in float64 rounds x to a multiple of the digit's unit, which appears as an integer in the low bits of the sum; what was
 * rounded off goes to the digit below. (The splitting of Demmel and Nguyen, "Fast Reproducible Floating-Point Summation",
 * ARITH 2013, and Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31, 2008.) K digits from `slot` up take every x that is a
 * multiple of the lowest one's unit and below 2^51 of the highest one's; a look at the largest and smallest magnitude
 * tells. Lines are looked at and added in one pass, and the sums stay in registers until the look has told; near arrays are added
 * without a look, and the processor tells whether that was exact. What does not
 * fit goes through all digits (narrow types) or into its two digits by integer arithmetic (f64). NaNs and infinities are
 * counted.
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_SUM_H
#define CURED_KERNELS_CPU_COLUMNS_SUM_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/int.h"
#include "kernels/cpu/columns/part.h"
#include "kernels/cpu/rows/int.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/rows/tree.h"

/* M of a digit whose unit is 2^unit; as a number and as its bits. */
ALWAYS vf64 digit_anchor(int unit) { return ALL(vf64, 1.5 * power_of_two(unit + CR_DIGIT_BITS)); }

/* Magnitudes seen, as bits: the largest, and the smallest after subtracting one (so that zero is the largest). f64: upper
 * halves, in odd lanes. */
struct look {
    vu32 most, least;
};

/* Adds the lanes x to k accumulators; m[0] and acc[0] are the lowest digit's. */
ALWAYS void digits_add(vu64 *acc, const vf64 *m, int k, vf64 x) {
#pragma GCC unroll 8
    for (int d = k - 1; d >= 0; d--) {
        vf64 q = x + m[d];
        acc[d] += (vu64)q;
        if (d > 0) x -= q - m[d];
    }
}

/* Room for more units in one column of a strip. */
ALWAYS void column_units(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, uint32_t *units,
                         uint32_t more) {
    if (*units + more > CR_DIGIT_UNITS) {
        cr_strip_carry_column(plan, strip, which, column);
        *units = 1;
    }
    *units += more;
}

static const uint64_t digit_mask = ((uint64_t)1 << CR_DIGIT_BITS) - 1;

enum { OWN_DIGITS = 96 /* more than any type's */ };

/* Digits of one vector's columns, beside the strip's. */
struct own_digits {
    unsigned low, high; /* those that were reached */
    _Alignas(VB) uint64_t digit[OWN_DIGITS][WORDS];
};

/* Digits [low, high), which are live in the strip: those will be wanted at the end. */
ALWAYS void own_begin(struct own_digits *own, const cr_axis_plan *plan, const cr_strip *strip, int which,
                      unsigned first, unsigned low, unsigned high) {
    const uint64_t *soon = cr_strip_digit(plan, strip, which, low) + first;
    own->low = low;
    own->high = high;
    for (unsigned d = 0; d < high; d++) memcpy(own->digit[d], &(vu64){0}, VB);
    for (unsigned d = low; d < high; d++, soon += plan->columns) __builtin_prefetch(soon, 1, 3);
}

/* Adds the lanes ±mantissa·2^bit: mantissa below 2^53, the sign all ones or all zeros. */
ALWAYS void own_add(struct own_digits *own, vu64 mantissa, vu64 negative, vu64 bit) {
    /* By 52, for what is below 2^13. */
    vu64 digit = (vu64)((vu32)bit * 20165) >> 20, shift = bit - (vu64)((vu32)digit * CR_DIGIT_BITS);
    vu64 low = ((mantissa << shift) & digit_mask), high = mantissa >> (CR_DIGIT_BITS - shift);
    _Alignas(VB) uint64_t at[WORDS], to[2][WORDS];
    low = (low ^ negative) - negative;
    high = (high ^ negative) - negative;
    digit *= VB;
    memcpy(at, &digit, sizeof at);
    memcpy(to[0], &low, sizeof to[0]);
    memcpy(to[1], &high, sizeof to[1]);
    /* By way of memory: taking lanes out of vectors one by one costs more. */
    __asm__("" : "+m"(at), "+m"(to));
#pragma GCC unroll 8
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t *word = (uint64_t *)(void *)((uint8_t *)&own->digit[0][i] + at[i]);
        word[0] += to[0][i];
        word[WORDS] += to[1][i];
    }
}

/* Into columns `first` and on of the strip, where these digits are live. */
ALWAYS void own_flush(const struct own_digits *own, const cr_axis_plan *plan, const cr_strip *strip, int which,
                      unsigned first) {
    uint64_t *to = cr_strip_digit(plan, strip, which, own->low) + first;
    for (unsigned d = own->low; d < own->high; d++, to += plan->columns) {
        vu64 sum = LOAD(vu64, to) + LOAD(vu64, own->digit[d]);
        memcpy(to, &sum, VB);
    }
}

/* float16 lanes as float32, in order. */
ALWAYS vf32 load_halves(const uint8_t *p) {
#if defined(VEC_AVX512)
    return (vf32)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif defined(VEC_AVX2)
    return (vf32)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#elif defined(VEC_NEON)
    return (vf32)vcvt_f32_f16((float16x4_t)vld1_u8(p));
#else
    typedef uint16_t halves __attribute__((vector_size(VB / 2)));
    return half_lanes(__builtin_convertvector(LOAD(halves, p), vu32) << 16);
#endif
}

#define TEMPLATE "kernels/cpu/columns/sum_type.inc"
#define FOR_F32 1
#include "kernels/cpu/instance.inc"
#define FOR_BF16 1
#include "kernels/cpu/instance.inc"
#define FOR_F16 1
#include "kernels/cpu/instance.inc"
#define FOR_F64 1
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

static void sum_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    switch (cr_dtype_format(plan->dtype)) {
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2: /* not in strips */
            break;
        case CR_FORMAT_F16:
            sum_lines_f16(plan, strip, part, which);
            break;
        case CR_FORMAT_BF16:
            sum_lines_bf16(plan, strip, part, which);
            break;
        case CR_FORMAT_F32:
            sum_lines_f32(plan, strip, part, which);
            break;
        case CR_FORMAT_F64:
            sum_lines_f64(plan, strip, part, which);
            break;
        case CR_FORMAT_INT:
            int_lines(plan, strip, part, which);
            break;
    }
}

static void sum_row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n,
                    int which) {
    switch (cr_dtype_format(plan->dtype)) {
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2: /* not in strips */
            break;
        case CR_FORMAT_F16:
            sum_row_f16(plan, strip, column, p, n, which);
            break;
        case CR_FORMAT_BF16:
            sum_row_bf16(plan, strip, column, p, n, which);
            break;
        case CR_FORMAT_F32:
            sum_row_f32(plan, strip, column, p, n, which);
            break;
        case CR_FORMAT_F64:
            sum_row_f64(plan, strip, column, p, n, which);
            break;
        case CR_FORMAT_INT:
            int_row(plan, strip, column, p, n, which);
            break;
    }
}

/* borders: of rows that differ in length, which floats may; n is not asked then. NULL: each has n elements. */
static void sum_rows(cr_dtype dtype, cr_row_sums *sums, const uint8_t *p, const uint64_t *borders, uint64_t n,
                     unsigned count, int which) {
    sums->special = false;
    sums->plain = dtype != CR_F64;
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2: /* not in strips */
            break;
        case CR_FORMAT_F16:
            sum_rows_f16(sums, p, borders, n, count, (enum row_sum)which);
            break;
        case CR_FORMAT_BF16:
            sum_rows_bf16(sums, p, borders, n, count, (enum row_sum)which);
            break;
        case CR_FORMAT_F32:
            sum_rows_f32(sums, p, borders, n, count, (enum row_sum)which);
            break;
        case CR_FORMAT_F64:
            sum_rows_f64(sums, p, borders, n, count, (enum row_sum)which);
            break;
        case CR_FORMAT_INT:
            sum_rows_int(dtype, sums, p, n, count, which);
            break;
    }
}

#endif
