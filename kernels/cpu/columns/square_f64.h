/* square_f64: exact sums of squares of f64 by column.
 *
 * A square is p + e: its product rounded to float64, and the error of that (vec.h). Where all magnitudes seen fit k digits from a slot up,
 * p is a multiple of the second lowest digit's unit and e below the highest one's, so that each enters but k − 1 of them, as in sum.h.
 * What fits neither three digits nor five goes into its three digits by integer arithmetic.
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_SQUARE_F64_H
#define CURED_KERNELS_CPU_COLUMNS_SQUARE_F64_H

#include "kernels/cpu/columns/square.h"

enum {
    WIDE_TRIED = 3,
    WIDE_WIDER = 5,
    WIDE_GRID = 2 * CR_F64_GRID,
    WIDE_FIELD = 20,       /* of upper halves */
    WIDE_INFINITE = 0x7ff, /* as a field */
    WIDE_TOP = 970         /* unit of the highest digit that has a finite anchor */
};

/* Units lie between that of the smallest float64, below which e is not exact, and WIDE_TOP. */
ALWAYS int wide_lowest(int base) { return (CR_F64_GRID - WIDE_GRID + base + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS; }
ALWAYS int wide_highest(int base, int k) { return (WIDE_TOP - WIDE_GRID + base) / CR_DIGIT_BITS - (k - 1); }

/* The upper halves of magnitudes whose squares fit k digits from slot up. */
ALWAYS struct look wide_window(int base, int slot, int k) {
    int unit = WIDE_GRID - base + CR_DIGIT_BITS * slot, top = unit + CR_DIGIT_BITS * (k - 1) + 51;
    uint32_t high = (uint32_t)(half_down(top) + CR_F64_BIAS);
    uint32_t low = (uint32_t)(CR_F64_BIAS + CR_F64_MANTISSA - half_down(-unit));
    return (struct look){ALL(vu32, high << WIDE_FIELD), ALL(vu32, low << WIDE_FIELD)};
}

/* The slot whose highest digit has a little room above the largest square seen, for a base that is given or, where none is, chosen; false:
 * nothing but zeros was seen. */
static bool wide_settle(const struct look *look, cr_strip_sum *sum, bool choose) {
    enum { ROOM = 3, STEP = 4 /* so that strips with like data agree, and merge without shifting */ };
    uint32_t most = 0;
    for (size_t i = 1; i < VB / 4; i += 2) {
        uint32_t x = look->most[i];
        if (x >> WIDE_FIELD < WIDE_INFINITE && x > most) most = x;
    }
    if (most == 0) return false;
    int above = 2 * ((int)(most >> WIDE_FIELD) + 1 - CR_F64_BIAS) + ROOM - 51 - WIDE_GRID;
    if (above < 0) above = 0;
    if (choose) {
        above = (above + STEP - 1) / STEP * STEP;
        sum->base = (CR_DIGIT_BITS - above % CR_DIGIT_BITS) % CR_DIGIT_BITS;
    }
    int slot = (above + sum->base + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS - (WIDE_TRIED - 1);
    int lowest = wide_lowest(sum->base), highest = wide_highest(sum->base, WIDE_TRIED);
    sum->slot = slot < lowest ? lowest : slot > highest ? highest : slot;
    return true;
}

/* Adds the squares of one vector of columns to k digits from slot up. */
ALWAYS void wide_vector(const cr_axis_plan *plan, uint64_t *digit, const struct part *part, int base, int slot, int k) {
    vf64 m[WIDE_WIDER];
    vu64 acc[WIDE_WIDER];
#pragma GCC unroll 5
    for (int d = 0; d < k; d++) {
        m[d] = digit_anchor(WIDE_GRID - base + CR_DIGIT_BITS * (slot + d));
        acc[d] = LOAD(vu64, digit + (size_t)d * plan->columns) -
                 (vu64)m[d] * (d == 0 || d == k - 1 ? part->lines : 2 * part->lines);
    }
    for (unsigned t = 0; t < part->lines; t++) {
        vf64 x = LOAD(vf64, part->p + t * part->stride), p = x * x;
        digits_add(acc + 1, m + 1, k - 1, p);
        digits_add(acc, m, k - 1, product_error(x, x, p));
    }
#pragma GCC unroll 5
    for (int d = 0; d < k; d++) memcpy(digit + (size_t)d * plan->columns, &acc[d], VB);
}

/* One element's square into its three digits, at most four units each. */
ALWAYS void wide_put(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    const unsigned field = (unsigned)(x >> CR_F64_MANTISSA) & WIDE_INFINITE;
    uint64_t mantissa = x & digit_mask;
    if (__builtin_expect(field == WIDE_INFINITE, 0)) {
        cr_strip_add_special(plan, strip, CR_AT_SUMSQ, column, mantissa != 0, false);
        return;
    }
    mantissa |= (uint64_t)(field != 0) << CR_F64_MANTISSA;
    const unsigned bit = 2 * (field - (field != 0)) + (unsigned)strip->sums[CR_AT_SUMSQ].base;
    const unsigned shift = bit % CR_DIGIT_BITS;
    const unsigned __int128 square = (unsigned __int128)mantissa * mantissa, rest = square >> (CR_DIGIT_BITS - shift);
    uint64_t *to = cr_strip_digit(plan, strip, CR_AT_SUMSQ, bit / CR_DIGIT_BITS) + column;
    to[0] += ((uint64_t)square << shift) & digit_mask;
    to[plan->columns] += (uint64_t)rest & digit_mask;
    to[2 * (size_t)plan->columns] += (uint64_t)(rest >> CR_DIGIT_BITS);
}

/* One vector of columns, element by element. The digits are live before; if the array has changed since it was looked at, they are at
 * least there. */
NEVER void wide_slowly(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, const struct look *look) {
    const unsigned base = (unsigned)strip->sums[CR_AT_SUMSQ].base;
    uint32_t most = 0, least = WIDE_INFINITE - 1;
    for (size_t i = 1; i < VB / 4; i += 2) {
        uint32_t x = look->most[i] >> WIDE_FIELD, y = look->least[i] >> WIDE_FIELD;
        if (x > most) most = x;
        if (y < least) least = y;
    }
    if (most > WIDE_INFINITE - 1) most = WIDE_INFINITE - 1;
    if (least > most) least = most;
    cr_strip_extend(plan, strip, CR_AT_SUMSQ, (2 * (least - (least != 0)) + base) / CR_DIGIT_BITS,
                    (2 * (most - (most != 0)) + base) / CR_DIGIT_BITS + 3);
    for (unsigned t = 0; t < part->lines; t++) {
        const uint8_t *p = part->p + t * part->stride;
        for (unsigned i = 0; i < VB / 8 && i < part->columns; i++)
            wide_put(plan, strip, part->first + i, p + i * sizeof(double));
    }
}

ALWAYS bool wide_within(const struct look *look, struct look window) {
    const vu64 out = (vu64)((vu32)(look->most >= window.most) | (vu32)(look->least < window.least));
    return !any_bit(out & 0xffffffff00000000u);
}

ALWAYS uint64_t *wide_digits(const cr_axis_plan *plan, cr_strip *strip, unsigned slot, unsigned k, unsigned first) {
    const cr_strip_sum *sum = &strip->sums[CR_AT_SUMSQ];
    if (slot < sum->low || slot + k > sum->high) cr_strip_extend(plan, strip, CR_AT_SUMSQ, slot, slot + k);
    return cr_strip_digit(plan, strip, CR_AT_SUMSQ, slot) + first;
}

/* One vector of columns that does not fit the slot; false: nor the digits around it. */
NEVER bool wide_wider(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, const struct look *look) {
    const cr_strip_sum *sum = &strip->sums[CR_AT_SUMSQ];
    const int lowest = wide_lowest(sum->base), highest = wide_highest(sum->base, WIDE_WIDER);
    int slot = sum->slot - (WIDE_WIDER - WIDE_TRIED);
    slot = slot < lowest ? lowest : slot > highest ? highest : slot;
    if (!wide_within(look, wide_window(sum->base, slot, WIDE_WIDER))) return false;
    uint64_t *digit = wide_digits(plan, strip, (unsigned)slot, WIDE_WIDER, part->first);
    wide_vector(plan, digit, part, sum->base, slot, WIDE_WIDER);
    return true;
}

NEVER void square_f64_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) {
    enum { LANES = VB / 8 };
    cr_strip_sum *sum = &strip->sums[CR_AT_SUMSQ];
    struct look hard = {{0}, {0}};
    unsigned hard_vectors = 0, vectors = 0;
    const unsigned units = 4 * part->lines;
    if (sum->units + units > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, CR_AT_SUMSQ);
    sum->units += units;
    for (unsigned c = 0; c < part->columns; c += LANES, vectors++) {
        uint8_t pad[CR_LINES * VB];
        const struct part now = part_vector(part, c, LANES, 8, pad, 0);
        struct look look = {{0}, ~(vu32){0}};
        for (unsigned t = 0; t < now.lines; t++) {
            part_fetch(&now, now.p + t * now.stride);
            look_at_f64(&look, LOAD(vu64, now.p + t * now.stride) & INT64_MAX);
        }
        if (__builtin_expect(sum->slot < 0, 0)) {
            struct look seen = look;
            if (!wide_settle(&seen, sum, true)) {
                if (wide_within(&look, wide_window(0, wide_lowest(0), 1))) continue; /* all zeros */
                sum->slot = wide_lowest(sum->base = 0);
            }
        }
        if (__builtin_expect(wide_within(&look, wide_window(sum->base, sum->slot, WIDE_TRIED)), 1)) {
            uint64_t *digit = wide_digits(plan, strip, (unsigned)sum->slot, WIDE_TRIED, now.first);
            wide_vector(plan, digit, &now, sum->base, sum->slot, WIDE_TRIED);
            continue;
        }
        struct look seen = look;
        sum->misses++;
        if (wide_wider(plan, strip, &now, &seen)) continue;
        wide_slowly(plan, strip, &now, &seen);
        hard.most = max_vu32(hard.most, look.most);
        hard_vectors++;
    }
    if (hard_vectors * 2 > vectors) wide_settle(&hard, sum, false); /* what has moved is followed */
}

#endif
