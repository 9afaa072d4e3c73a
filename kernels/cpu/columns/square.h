/* square: exact sums of squares of f32, bf16 and f16 by column: as sum.h, two digits for what fits them, three for what
 * is a little wider, and integer arithmetic for the rest.
 *
 * A square of a float32 is exact in float64. What is looked at is the magnitude of x: x² < 2^t where x < 2^⌊t/2⌋.
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_SQUARE_H
#define CURED_KERNELS_CPU_COLUMNS_SQUARE_H

#include "kernels/cpu/columns/sum.h"

enum { SQUARE_DIGITS = 2, SQUARE_WIDER = 3, SQUARE_BIAS = CR_F32_BIAS };

ALWAYS vu32 square_load(const uint8_t *p, cr_dtype dtype) {
    return dtype == CR_F32 ? sum_load_f32(p) : dtype == CR_BF16 ? sum_load_bf16(p) : sum_load_f16(p);
}

static int square_kept(cr_dtype dtype) { return dtype == CR_F32 ? 23 : dtype == CR_BF16 ? 7 : 10; }

static int square_top_slot(const cr_axis_plan *plan) { return (int)plan->digits[2] - 1 - SQUARE_DIGITS; }

static int half_down(int x) { return x >= 0 ? x / 2 : -((1 - x) / 2); }

/* Whether the squares of everything seen fit k digits from slot up. */
ALWAYS bool square_fits(const cr_axis_plan *plan, const struct look *look, int base, int slot, int k) {
    int unit = plan->grid[2] - base + CR_DIGIT_BITS * slot, top = unit + CR_DIGIT_BITS * (k - 1) + 51;
    int high = half_down(top) + SQUARE_BIAS, low = SQUARE_BIAS + square_kept(plan->dtype) - half_down(-unit);
    if (high < 0) high = 0;
    if (high > 0xff) high = 0xff; /* infinities and NaNs never fit */
    if (slot == 0 || low <= 1) low = 0;
    vu32 out = (vu32)(look->most >= ALL(vu32, (uint32_t)high << 23)) |
               (vu32)(look->least < ALL(vu32, low == 0 ? 0 : ((uint32_t)low << 23) - 1));
    return low <= 0xff && !any_bit((vu64)out);
}

/* The unit of the digit above which the largest square seen has a little room; false: nothing but zeros. */
static bool square_unit(const struct look *look, int *unit) {
    uint32_t most = 0;
    for (size_t i = 0; i < VB / 4; i++) {
        if (look->most[i] < CR_INFINITY_OF(F32) && look->most[i] > most) most = look->most[i];
    }
    enum { ROOM = 3 };
    *unit = 2 * ((int)(most >> 23) + 1 - SQUARE_BIAS) + ROOM - 51;
    return most != 0;
}

static int square_slot(const cr_axis_plan *plan, const struct look *look, int base) {
    int unit, top = square_top_slot(plan);
    if (!square_unit(look, &unit)) return -1;
    int above = unit - plan->grid[2] + base;
    int slot = (above <= 0 ? 0 : (above + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS) - (SQUARE_DIGITS - 1);
    return slot < 0 ? 0 : slot > top ? top : slot;
}

/* Chooses base and slot for a sum without digits. */
static void square_settle(const cr_axis_plan *plan, const struct look *look, cr_strip_sum *sum) {
    enum { STEP = 4 }; /* so that strips with like data agree, and merge without shifting */
    int unit;
    if (!square_unit(look, &unit)) return;
    int above = (unit - plan->grid[2] + 400 * STEP + STEP - 1) / STEP * STEP - 400 * STEP;
    int digit = above <= 0 ? 0 : (above + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS;
    sum->slot = digit - (SQUARE_DIGITS - 1);
    sum->base = digit * CR_DIGIT_BITS - above;
    if (digit < SQUARE_DIGITS || sum->base >= CR_DIGIT_BITS || sum->slot > square_top_slot(plan)) {
        sum->base = 0;
        sum->slot = square_slot(plan, look, 0);
    }
}

/* Adds the squares of one vector of columns to k digits from slot up. */
ALWAYS void square_vector(const cr_axis_plan *plan, uint64_t *digit, const struct part *part, int base, int slot, int k,
                          cr_dtype dtype) {
    vf64 m[SQUARE_WIDER];
    vu64 acc[2][SQUARE_WIDER];
#pragma GCC unroll 3
    for (int d = 0; d < k; d++) {
        m[d] = digit_anchor(plan->grid[2] - base + CR_DIGIT_BITS * (slot + d));
        vu64 anchors = ALL(vu64, ((vu64)m[d])[0] * part->lines);
        acc[0][d] = LOAD(vu64, digit + (size_t)d * plan->columns) - anchors;
        acc[1][d] = LOAD(vu64, digit + (size_t)d * plan->columns + VB / 8) - anchors;
    }
    for (unsigned t = 0; t < part->lines; t++) {
        vf32 x = (vf32)square_load(part->p + t * part->stride, dtype);
        vf64 a = widen_low(x), b = widen_high(x);
        digits_add(acc[0], m, k, a * a);
        digits_add(acc[1], m, k, b * b);
    }
#pragma GCC unroll 3
    for (int d = 0; d < k; d++) {
        memcpy(digit + (size_t)d * plan->columns, &acc[0][d], VB);
        memcpy(digit + (size_t)d * plan->columns + VB / 8, &acc[1][d], VB);
    }
}

/* One element's square into its two digits, at most four units each. */
ALWAYS void square_put(const cr_axis_plan *plan, cr_strip *strip, unsigned column, uint32_t x) {
    uint32_t magnitude = x & INT32_MAX, field = magnitude >> 23;
    if (field == 0xff) {
        cr_strip_add_special(plan, strip, 2, column, magnitude > CR_INFINITY_OF(F32), false);
        return;
    }
    uint64_t mantissa = (magnitude & 0x7fffff) | (uint64_t)(field != 0) << 23, square = mantissa * mantissa;
    int bit = 2 * ((int)(field ? field : 1) - SQUARE_BIAS - 23) - plan->grid[2] + strip->sums[2].base;
    if (bit < 0) { /* a multiple of the grid all the same */
        square = bit <= -64 ? 0 : square >> -bit;
        bit = 0;
    }
    unsigned __int128 wide = (unsigned __int128)square << (bit % CR_DIGIT_BITS);
    uint64_t *to = cr_strip_digit(plan, strip, 2, (unsigned)bit / CR_DIGIT_BITS) + column;
    to[0] += (uint64_t)wide & (((uint64_t)1 << CR_DIGIT_BITS) - 1);
    to[plan->columns] += (uint64_t)(wide >> CR_DIGIT_BITS);
}

NEVER void square_slowly(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, cr_dtype dtype) {
    cr_strip_extend(plan, strip, 2, 0, plan->digits[2]);
    for (unsigned t = 0; t < part->lines; t++) {
        vu32 x = square_load(part->p + t * part->stride, dtype);
        for (unsigned i = 0; i < VB / 4 && i < part->columns; i++) square_put(plan, strip, part->first + i, x[i]);
    }
}

/* One vector of columns; false: it went the slow way. */
ALWAYS bool square_columns(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, struct look *look,
                           cr_dtype dtype) {
    cr_strip_sum *sum = &strip->sums[2];
    if (__builtin_expect(sum->slot < 0, 0)) {
        struct look seen = *look;
        square_settle(plan, &seen, sum);
        if (sum->slot < 0 && square_fits(plan, look, 0, 0, 1)) return true; /* all zeros */
        if (sum->slot < 0) sum->slot = 0;
    }
    int wider = sum->slot > 0 ? sum->slot - 1 : 0, k = SQUARE_DIGITS, slot = sum->slot;
    if (__builtin_expect(!square_fits(plan, look, sum->base, slot, k), 0)) {
        sum->misses++;
        slot = wider;
        k = SQUARE_WIDER;
        if (slot + k > (int)plan->digits[2] - 1 || !square_fits(plan, look, sum->base, slot, k)) {
            square_slowly(plan, strip, part, dtype);
            return false;
        }
    }
    cr_strip_extend(plan, strip, 2, (unsigned)slot, (unsigned)(slot + k));
    uint64_t *digit = cr_strip_digit(plan, strip, 2, (unsigned)slot) + part->first;
    if (k == SQUARE_DIGITS) {
        square_vector(plan, digit, part, sum->base, slot, SQUARE_DIGITS, dtype);
    } else {
        square_vector(plan, digit, part, sum->base, slot, SQUARE_WIDER, dtype);
    }
    return true;
}

ALWAYS void square_all_columns(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, cr_dtype dtype) {
    enum { LANES = VB / 4 };
    size_t bytes = dtype == CR_F32 ? 4 : 2;
    struct look hard = {{0}, {0}};
    unsigned hard_vectors = 0, vectors = 0;
    for (unsigned c = 0; c < part->columns; c += LANES, vectors++) {
        uint8_t pad[CR_LINES * VB];
        const struct part now = part_vector(part, c, LANES, bytes, pad, 0);
        struct look look = {{0}, ~(vu32){0}};
        for (unsigned t = 0; t < now.lines; t++) {
            part_fetch(&now, now.p + t * now.stride);
            look_at_f32(&look, square_load(now.p + t * now.stride, dtype) & INT32_MAX);
        }
        if (square_columns(plan, strip, &now, &look, dtype)) continue;
        hard.most = max_vu32(hard.most, look.most);
        hard_vectors++;
    }
    if (hard_vectors * 2 <= vectors) return;
    int slot = square_slot(plan, &hard, strip->sums[2].base); /* what has moved is followed */
    if (slot >= 0) strip->sums[2].slot = slot;
}

NEVER void square_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) {
    cr_strip_sum *sum = &strip->sums[2];
    unsigned units = 4 * part->lines;
    if (sum->units + units > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, 2);
    sum->units += units;
    if (plan->dtype == CR_F32) {
        square_all_columns(plan, strip, part, CR_F32);
    } else if (plan->dtype == CR_BF16) {
        square_all_columns(plan, strip, part, CR_BF16);
    } else {
        square_all_columns(plan, strip, part, CR_F16);
    }
}

#endif
