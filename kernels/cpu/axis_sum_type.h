/* axis_sum_type: the sums of axis_sum for one element type. A template (instance.h).
 *
 * Narrow types are looked at, and taken apart, as float32 lanes.
 * Thread: any. Owner: the caller owns strip and data. */
/* GRID: of digit 0. TRIED: digits tried first. WIDER: digits tried next (0: none). FULL: digits that take every finite value (0: too many).
 * KEPT: mantissa bits. */
#if defined(FOR_F32)
#define GRID CR_F32_GRID
#define TRIED 1
#define WIDER 3
#define FULL 7
#define KEPT CR_F32_MANTISSA
#elif defined(FOR_BF16)
#define GRID CR_BF16_GRID
#define TRIED 1
#define WIDER 3
#define FULL 7
#define KEPT CR_BF16_MANTISSA
#elif defined(FOR_F16)
#define GRID CR_F16_GRID
#define TRIED 1
#define WIDER 0
#define FULL 1
#define KEPT CR_F16_MANTISSA
#else
#define GRID CR_F64_GRID
#define TRIED 2
#define WIDER 3
#define FULL 0
#define KEPT CR_F64_MANTISSA
#endif

#if defined(FOR_F64)
#define SIGN_OUT INT64_MAX
#define INFINITE 0x7ff0000000000000
enum {
    NAMED(LANES) = VB / 8,
    NAMED(SIZE) = 8,
    NAMED(BIAS) = CR_F64_BIAS,
    NAMED(MANTISSA) = CR_F64_MANTISSA,
    NAMED(FIELD) = 20
};
enum { NAMED(TOP_SLOT) = 39 - (TRIED - 1) }; /* the highest anchor stays finite */
#else
#define SIGN_OUT INT32_MAX
#define INFINITE 0x7f800000
enum {
    NAMED(LANES) = VB / 4,
    NAMED(SIZE) = sizeof(float),
    NAMED(BIAS) = CR_F32_BIAS,
    NAMED(MANTISSA) = CR_F32_MANTISSA,
    NAMED(FIELD) = 23
};
enum { NAMED(TOP_SLOT) = FULL - TRIED };
#endif
#if defined(FOR_BF16) || defined(FOR_F16)
#define BYTES 2
#else
#define BYTES NAMED(SIZE)
#endif

/* One vector of lanes from LANES elements. */
ALWAYS VU NAMED(sum_load)(const uint8_t *p) {
#if defined(FOR_BF16)
    typedef uint16_t halves __attribute__((vector_size(VB / 2)));
    return __builtin_convertvector(LOAD(halves, p), vu32) << 16;
#elif defined(FOR_F16)
    return (vu32)load_halves(p);
#else
    return LOAD(VU, p);
#endif
}

ALWAYS void NAMED(look_at)(struct look *look, VU magnitude) {
    look->most = max_vu32(look->most, (vu32)magnitude);
    look->least = min_vu32(look->least, (vu32)(magnitude - 1));
}

/* Magnitudes as bits that k digits from slot up take: below high, and from least on. */
ALWAYS struct look NAMED(window)(int base, int slot, int k) {
    /* |x| < 2^(unit of the top digit + 51), and a multiple of the lowest unit. */
    int top = GRID - base + CR_DIGIT_BITS * (slot + k - 1) + 51 + NAMED(BIAS);
    int low = slot == 0 ? 0 : GRID - base + CR_DIGIT_BITS * slot + NAMED(BIAS) + NAMED(MANTISSA);
    uint32_t high = (uint32_t)INFINITE;
    if (NAMED(FIELD) == 20) high = 0x7ff00000;
    if (top < 2 * NAMED(BIAS) + 1) high = (uint32_t)top << NAMED(FIELD);
    /* least is of |bits| − 1. Where only upper halves are seen, a power of two looks smaller than it is. */
    uint32_t least = low <= 0 ? 0 : ((uint32_t)low << NAMED(FIELD)) - (NAMED(FIELD) == 20 ? 0 : 1);
    return (struct look){ALL(vu32, high), ALL(vu32, least)};
}

ALWAYS bool NAMED(within)(const struct look *look, struct look window) {
    vu64 out = (vu64)((vu32)(look->most >= window.most) | (vu32)(look->least < window.least));
    if (NAMED(FIELD) == 20) out &= 0xffffffff00000000u;
    return !any_bit(out);
}

/* Whether everything seen fits k digits from slot up. */
ALWAYS bool NAMED(fits_in)(const struct look *look, int base, int slot, int k) {
    return NAMED(within)(look, NAMED(window)(base, slot, k));
}

ALWAYS bool NAMED(fits)(const struct look *look, const cr_strip_sum *sum) {
    return NAMED(fits_in)(look, sum->base, sum->slot, TRIED);
}

#if WIDER
/* WIDER digits: TRIED and those below, as far as there are; at the bottom, those above. */
ALWAYS int NAMED(wider_slot)(const cr_strip_sum *sum) {
    int lowest = GRID == CR_F64_GRID && sum->base != 0,
        slot = sum->slot - (WIDER == 3 && TRIED == 1 ? 1 : WIDER - TRIED);
    return slot < lowest ? lowest : slot;
}
ALWAYS bool NAMED(fits_wider)(const struct look *look, const cr_strip_sum *sum) {
    int slot = NAMED(wider_slot)(sum);
    return slot + WIDER - TRIED <= NAMED(TOP_SLOT) && NAMED(fits_in)(look, sum->base, slot, WIDER);
}
#endif

/* The unit of the digit above which the largest finite magnitude seen has a little room; false: nothing but zeros. */
static bool NAMED(top_unit)(const struct look *look, int *unit) {
    uint32_t most = 0;
    for (size_t i = NAMED(FIELD) == 20; i < VB / 4; i += NAMED(FIELD) == 20 ? 2 : 1) {
        uint32_t x = look->most[i];
        /* Infinities and NaNs say nothing about the others. */
        if (x < (NAMED(FIELD) == 20 ? 0x7ff00000 : (uint32_t)INFINITE) && x > most) most = x;
    }
    enum { ROOM = TRIED == 1 ? 5 : 3 };
    *unit = (int)(most >> NAMED(FIELD)) + 1 - NAMED(BIAS) + ROOM - 51;
    return most != 0;
}

/* The slot for what was seen, base being given; −1: nothing but zeros. */
static int NAMED(slot_for)(const struct look *look, int base) {
    int unit, lowest = GRID == CR_F64_GRID && base != 0; /* a unit below 2^-1074 has no anchor */
    if (!NAMED(top_unit)(look, &unit)) return -1;
    int above = unit - GRID + base;
    int slot = (above <= 0 ? 0 : (above + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS) - (TRIED - 1);
    return slot < lowest ? lowest : slot > NAMED(TOP_SLOT) ? NAMED(TOP_SLOT) : slot;
}

/* Chooses base and slot for a sum without digits, so that the top digit has its room; unchanged where all is zero. */
static void NAMED(settle)(const struct look *look, cr_strip_sum *sum) {
    enum { STEP = 4 }; /* so that strips with like data agree, and merge without shifting */
    int unit;
    if (!NAMED(top_unit)(look, &unit)) return;
    int above = unit - GRID + 1200 * STEP;
    above = (above + STEP - 1) / STEP * STEP - 1200 * STEP;
    int digit = above <= 0 ? 0 : (above + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS;
    sum->slot = digit - (TRIED - 1);
    sum->base = digit * CR_DIGIT_BITS - above;
    if (FULL == 1 || digit < TRIED || sum->base >= CR_DIGIT_BITS || sum->slot > NAMED(TOP_SLOT)) {
        sum->base = 0;
        sum->slot = NAMED(slot_for)(look, 0);
    }
}

/* k digits' accumulators of one vector of lanes: for the lanes' lower and upper half (f64: one). */
#if defined(FOR_F64)
enum { NAMED(HALVES) = 1 };
#else
enum { NAMED(HALVES) = 2 };
#endif

ALWAYS void NAMED(add)(vu64 acc[][8], const vf64 *m, int k, VU x) {
#if defined(FOR_F64)
    digits_add(acc[0], m, k, (vf64)x);
#else
    digits_add(acc[0], m, k, widen_low((vf32)x));
    digits_add(acc[1], m, k, widen_high((vf32)x));
#endif
}

/* Adds the lines of one vector of columns to k digits from slot up. masked: NaNs and infinities become zeros. */
ALWAYS void NAMED(vector)(const cr_axis_plan *plan, uint64_t *digit, const struct part *part, int base, int slot, int k,
                          bool absolute, bool masked) {
    vf64 m[8];
    vu64 acc[2][8];
#pragma GCC unroll 8
    for (int d = 0; d < k; d++) {
        m[d] = digit_anchor(GRID - base + CR_DIGIT_BITS * (slot + d));
        vu64 anchors = ALL(vu64, ((vu64)m[d])[0] * part->lines);
#pragma GCC unroll 2
        for (int h = 0; h < NAMED(HALVES); h++) {
            acc[h][d] = LOAD(vu64, digit + (size_t)d * plan->columns + h * (VB / 8)) - anchors;
        }
    }
    for (unsigned t = 0; t < part->lines; t++) {
        VU x = NAMED(sum_load)(part->p + t * part->stride);
        if (absolute) x &= SIGN_OUT;
        if (masked) x &= (VU)((VS)(x & SIGN_OUT) < INFINITE);
        NAMED(add)(acc, m, k, x);
    }
#pragma GCC unroll 8
    for (int d = 0; d < k; d++) {
#pragma GCC unroll 2
        for (int h = 0; h < NAMED(HALVES); h++) {
            memcpy(digit + (size_t)d * plan->columns + h * (VB / 8), &acc[h][d], VB);
        }
    }
}

#include "kernels/cpu/axis_sum_slot.h"

#if FULL > 0
/* Up to here the top digit but one takes the largest finite value: 2^128 is at most 2^51 of its units. */
#define FEWER_BASE (GRID + CR_DIGIT_BITS * (FULL - 2) + 51 - (NAMED(BIAS) + 1))

ALWAYS bool NAMED(finite)(const struct look *look) {
    return !any_bit((vu64)(look->most >= ALL(vu32, (uint32_t)INFINITE)));
}

static void NAMED(few_specials)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    for (unsigned t = 0; t < part->lines; t++) {
        VU x = NAMED(sum_load)(part->p + t * part->stride), magnitude = x & SIGN_OUT;
        if (__builtin_expect(!any_bit((vu64)((VS)magnitude >= INFINITE)), 1)) continue;
        for (unsigned i = 0; i < NAMED(LANES) && i < part->columns; i++) {
            if (magnitude[i] >= INFINITE)
                cr_strip_add_special(plan, strip, which, part->first + i, magnitude[i] > INFINITE,
                                     which == 0 && x[i] >> 31);
        }
    }
}

/* Counts the NaNs and infinities of one vector's columns. */
NEVER void NAMED(specials)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    unsigned lines = 0;
    for (unsigned t = 0; t < part->lines; t++) {
        VU magnitude = NAMED(sum_load)(part->p + t * part->stride) & SIGN_OUT;
        lines += any_bit((vu64)((VS)magnitude >= INFINITE));
    }
    if (lines * 4 <= part->lines) { /* few: one by one */
        NAMED(few_specials)(plan, strip, part, which);
        return;
    }
    VU nans = {0}, pinfs = {0}, ninfs = {0};
    for (unsigned t = 0; t < part->lines; t++) {
        VU x = NAMED(sum_load)(part->p + t * part->stride), magnitude = x & SIGN_OUT;
        nans -= (VU)((VS)magnitude > INFINITE);
        pinfs -= (VU)(x == INFINITE);
        ninfs -= (VU)(x == (INFINITE | ~(uint32_t)SIGN_OUT));
    }
    VU any = nans | pinfs | ninfs;
    if (!any_bit((vu64)any)) return;
    for (unsigned i = 0; i < NAMED(LANES) && i < part->columns; i++) {
        if (!any[i]) continue;
        uint64_t up = pinfs[i] + (which == 1 ? ninfs[i] : 0);
        cr_strip_count_specials(plan, strip, which, part->first + i, nans[i], up, which == 1 ? 0 : ninfs[i]);
    }
}

/* One vector's columns through all digits. */
NEVER void NAMED(full)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which,
                       const struct look *look) {
    bool special = !NAMED(finite)(look);
    int base = strip->sums[which].base;
    cr_strip_extend(plan, strip, which, 0, FULL);
    uint64_t *digit = cr_strip_digit(plan, strip, which, 0) + part->first;
    if (FULL < 2 || base > FEWER_BASE) {
        NAMED(vector)(plan, digit, part, base, 0, FULL, which == 1, true);
    } else if (special) {
        NAMED(vector)(plan, digit, part, base, 0, FULL - (FULL > 1), which == 1, true);
    } else {
        NAMED(vector)(plan, digit, part, base, 0, FULL - (FULL > 1), which == 1, false);
    }
    if (special) NAMED(specials)(plan, strip, part, which);
}
#else
/* The digits that finite values within what was seen reach. */
static void NAMED(range)(const struct look *look, unsigned base, unsigned *low, unsigned *high) {
    uint32_t most = 0, least = UINT32_MAX;
    for (size_t i = 1; i < VB / 4; i += 2) {
        uint32_t x = look->most[i] >> NAMED(FIELD), y = look->least[i] >> NAMED(FIELD);
        if (x > most) most = x;
        if (y < least) least = y;
    }
    if (most > 0x7fe) most = 0x7fe;
    if (least > most) least = most;
    *low = (least == 0 ? base : least - 1 + base) / CR_DIGIT_BITS;
    *high = (most == 0 ? base : most - 1 + base) / CR_DIGIT_BITS + 2;
}

/* Makes them live. */
static void NAMED(reach)(const cr_axis_plan *plan, cr_strip *strip, int which, const struct look *look) {
    unsigned low, high;
    NAMED(range)(look, (unsigned)strip->sums[which].base, &low, &high);
    cr_strip_extend(plan, strip, which, low, high);
}

/* One element into its two digits, at most four units each. The digits are live already; if the array has changed since
 * it was looked at, they are at least there. */
ALWAYS void NAMED(put)(const cr_axis_plan *plan, cr_strip *strip, uint64_t *digits, unsigned base, int which,
                       unsigned column, const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    uint64_t negative = which == 0 ? -(x >> 63) : 0;
    unsigned field = (unsigned)(x >> 52) & 0x7ff;
    uint64_t mantissa = x & digit_mask;
    if (__builtin_expect(field == 0x7ff, 0)) {
        cr_strip_add_special(plan, strip, which, column, mantissa != 0, negative != 0);
        return;
    }
    mantissa |= (uint64_t)(field != 0) << 52;
    unsigned bit = field - (field != 0) + base, digit = bit / CR_DIGIT_BITS;
    unsigned __int128 wide = (unsigned __int128)mantissa << (bit % CR_DIGIT_BITS);
    uint64_t *to = digits + (size_t)digit * plan->columns;
    to[0] += (((uint64_t)wide & digit_mask) ^ negative) - negative;
    to[plan->columns] += ((uint64_t)(wide >> CR_DIGIT_BITS) ^ negative) - negative;
}

/* One vector's columns, each element into its two digits (at most four units), by integers: first into digits of the vector's own,
 * which stay in the nearest cache and do not wait for each other, then those that were reached into the strip's. If the array has
 * changed since it was looked at, what lies beyond is lost. */
NEVER void NAMED(full)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which,
                       const struct look *look) {
    enum { LANES = NAMED(LANES) };
    struct own_digits own;
    unsigned low, high, base = (unsigned)strip->sums[which].base;
    NAMED(range)(look, base, &low, &high);
    cr_strip_extend(plan, strip, which, low, high);
    own_begin(&own, plan, strip, which, part->first, low, high);
    for (unsigned t = 0; t < part->lines; t++) {
        vu64 x = LOAD(vu64, part->p + t * part->stride), field = x >> 52 & 0x7ff, normal = (vu64)(field != 0);
        vu64 special = (vu64)(field == 0x7ff), negative = which == 0 ? (vu64)((vs64)x >> 63) : (vu64){0};
        vu64 mantissa = ((x & digit_mask) | (normal & (uint64_t)1 << 52)) & ~special;
        own_add(&own, mantissa, negative, field + normal + base);
        if (__builtin_expect(!any_bit(special), 1)) continue;
        for (unsigned i = 0; i < LANES && i < part->columns; i++) {
            if (special[i])
                cr_strip_add_special(plan, strip, which, part->first + i, (x[i] & digit_mask) != 0, negative[i] != 0);
        }
    }
    own_flush(&own, plan, strip, which, part->first);
}
#endif

#if WIDER
/* One vector's columns through one digit more, below the slot. */
NEVER void NAMED(wider)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    int slot = NAMED(wider_slot)(&strip->sums[which]);
    cr_strip_extend(plan, strip, which, (unsigned)slot, (unsigned)(slot + WIDER));
    uint64_t *digit = cr_strip_digit(plan, strip, which, (unsigned)slot) + part->first;
    NAMED(vector)(plan, digit, part, strip->sums[which].base, slot, WIDER, which == 1, false);
}
#endif

/* Whether the digits of the slot are live. */
ALWAYS bool NAMED(is_ready)(const cr_strip_sum *sum) {
    return sum->slot >= (int)sum->low && sum->slot + TRIED <= (int)sum->high;
}

/* Makes them live. */
ALWAYS void NAMED(ready)(const cr_axis_plan *plan, cr_strip *strip, int which) {
    cr_strip_sum *sum = &strip->sums[which];
    if (!NAMED(is_ready)(sum)) cr_strip_extend(plan, strip, which, (unsigned)sum->slot, (unsigned)sum->slot + TRIED);
}

/* CR_LINES lines from column c on, as far as they fit the slot. Returns the first column that is left. */
ALWAYS unsigned NAMED(fast_columns)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part,
                                    const cr_strip_sum *sum, int which, unsigned c) {
#if defined(VEC_TELLS_INEXACT) && defined(FOR_F32)
    if (plan->unseen && which == 0 && strip->rounded == 0 && part->columns - c >= 2 * NAMED(LANES)) {
        c = NAMED(try_exact)(plan, strip, part, sum, c);
        if (c >= part->columns) return c;
    }
#endif
    bool fetch = part->ahead != 0 || which == 1; /* absolute values are rarely asked: one instance is enough */
    return fetch ? NAMED(try_columns)(plan, strip, part, sum, which, true, c)
                 : NAMED(try_columns)(plan, strip, part, sum, which, false, c);
}

ALWAYS void NAMED(sum_columns)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    enum { LANES = NAMED(LANES) };
    cr_strip_sum *sum = &strip->sums[which];
    struct look hard = {{0}, {0}};
    unsigned hard_vectors = 0, vectors = 0;
    bool careful = strip->careful || strip->hard; /* look before anything is added */
    unsigned misses = 0;
    for (unsigned c = 0; c < part->columns; c += LANES, vectors++) {
        uint8_t pad[CR_LINES_HARD * VB];
        if (!careful && part->lines == CR_LINES && NAMED(is_ready)(sum)) {
            unsigned next = NAMED(fast_columns)(plan, strip, part, sum, which, c);
            vectors += (next - c) / LANES;
            c = next;
            if (c >= part->columns) break;
        }
        struct part now = {part->p + c * BYTES, part->stride, part->lines, part->first + c, LANES, part->ahead};
        struct look look = {{0}, ~(vu32){0}};
        if (c + LANES > part->columns)
            now = part_rest(part, c, BYTES, pad, 0);
        else if (part->lines > CR_LINES)
            now = part_copy(part, c, LANES, LANES * BYTES, pad);
        if (__builtin_expect(sum->slot < 0 || careful, 0)) {
            look = (struct look){{0}, ~(vu32){0}};
            for (unsigned t = 0; t < now.lines; t++) {
                part_fetch(&now, now.p + t * now.stride);
                NAMED(look_at)(&look, NAMED(sum_load)(now.p + t * now.stride) & SIGN_OUT);
            }
            if (sum->slot < 0) NAMED(settle)(&look, sum);
            if (sum->slot < 0 && NAMED(fits_in)(&look, 0, 0, 1)) continue; /* all zeros */
            if (sum->slot < 0) sum->slot = 0;
        }
        NAMED(ready)(plan, strip, which);
        uint64_t *digit = cr_strip_digit(plan, strip, which, (unsigned)sum->slot) + now.first;
        const struct NAMED(slot) slot = NAMED(slot_of)(sum, now.lines);
        bool worth = !careful || NAMED(within)(&look, slot.window);
        if (__builtin_expect(
                !worth || !NAMED(try_lines)(plan, digit, &now, &slot, now.lines, 1, which == 1, true, &look), 0)) {
            sum->misses++;
            misses++;
            careful = true;
#if WIDER
            if (NAMED(fits_wider)(&look, sum)) {
                NAMED(wider)(plan, strip, &now, which);
                continue;
            }
#endif
            NAMED(full)(plan, strip, &now, which, &look);
            hard.most = max_vu32(hard.most, look.most);
            hard_vectors++;
        }
    }
    /* What fits nowhere stays hard; what has moved is followed. */
    strip->hard = hard_vectors * 2 > vectors;
    strip->careful = misses * 4 > vectors;
    if (strip->hard && FULL != 1) {
        int slot = NAMED(slot_for)(&hard, sum->base);
        if (slot >= 0) sum->slot = slot;
    }
}

NEVER void NAMED(sum_lines)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    cr_strip_sum *sum = &strip->sums[which];
    /* The slow way adds up to four units an element; a column gets one way or the other. */
    unsigned units = (FULL == 0 ? 4 : 1) * part->lines;
    if (sum->units + units > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, which);
    sum->units += units;
    if (strip->rounded > 0) strip->rounded--;
    if (which == 0) {
        NAMED(sum_columns)(plan, strip, part, 0);
    } else {
        NAMED(sum_columns)(plan, strip, part, 1);
    }
}

#include "kernels/cpu/axis_rows_sum.h"
#include "kernels/cpu/axis_sum_row.h"

#undef GRID
#undef TRIED
#undef FULL
#undef FEWER_BASE
#undef KEPT
#undef WIDER
#undef SIGN_OUT
#undef INFINITE
#undef BYTES
