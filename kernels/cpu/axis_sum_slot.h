/* axis_sum_slot: a few lines into the slot's digits, for one element type. Included by axis_sum_type.h, whose names it uses.
 *
 * Lines of narrow floats are first added up from the anchor on: exactly, where as many of the largest fit the digit. f64 has two
 * digits, which each element enters by itself.
 * Thread: any. Owner: the caller owns strip and data. */

/* The slot's digits: their anchors, and what a few lines may hold. */
struct NAMED(slot) {
    vf64 m[TRIED];
    struct look window;
};

ALWAYS struct NAMED(slot) NAMED(slot_of)(const cr_strip_sum *sum, unsigned lines) {
    struct NAMED(slot) slot = {.window = NAMED(window)(sum->base, sum->slot, TRIED)};
#pragma GCC unroll 2
    for (int d = 0; d < TRIED; d++) slot.m[d] = digit_anchor(GRID - sum->base + CR_DIGIT_BITS * (sum->slot + d));
    if (NAMED(HALVES) == 2) slot.window.most -= (lines <= CR_LINES ? 3u : 5u) << NAMED(FIELD);
    return slot;
}

#if defined(FOR_F64)
struct NAMED(sums) {
    vu64 acc[TRIED];
};

ALWAYS void NAMED(sums_begin)(struct NAMED(sums) * sums, const vf64 *m, const uint64_t *digit, size_t columns,
                              unsigned lines) {
#pragma GCC unroll 2
    for (int d = 0; d < TRIED; d++) sums->acc[d] = LOAD(vu64, digit + (size_t)d * columns) - (vu64)m[d] * lines;
}

ALWAYS void NAMED(sums_add)(struct NAMED(sums) * sums, const vf64 *m, const uint8_t *p, VU x, bool absolute) {
    (void)p;
    digits_add(sums->acc, m, TRIED, (vf64)(absolute ? x & SIGN_OUT : x));
}

ALWAYS void NAMED(sums_store)(const struct NAMED(sums) * sums, const vf64 *m, uint64_t *digit, size_t columns) {
    (void)m;
#pragma GCC unroll 2
    for (int d = 0; d < TRIED; d++) memcpy(digit + (size_t)d * columns, &sums->acc[d], VB);
}
#else
struct NAMED(sums) {
    vf64 low, high;
};

ALWAYS void NAMED(sums_begin)(struct NAMED(sums) * sums, const vf64 *m, const uint64_t *digit, size_t columns,
                              unsigned lines) {
    (void)digit;
    (void)columns;
    (void)lines;
    sums->low = sums->high = m[0];
}

ALWAYS void NAMED(sums_add)(struct NAMED(sums) * sums, const vf64 *m, const uint8_t *p, VU x, bool absolute) {
    (void)m;
    (void)p;
#if defined(FOR_F32)
    if (!absolute) { /* widened as it is loaded: cheaper than taking the vector apart */
        sums->low += widen_at(p);
        sums->high += widen_at(p + VB / 2);
        return;
    }
#endif
    if (absolute) x &= SIGN_OUT;
    sums->low += widen_low((vf32)x);
    sums->high += widen_high((vf32)x);
}

ALWAYS void NAMED(sums_store)(const struct NAMED(sums) * sums, const vf64 *m, uint64_t *digit, size_t columns) {
    (void)columns;
    vu64 low = LOAD(vu64, digit) + ((vu64)sums->low - (vu64)m[0]);
    vu64 high = LOAD(vu64, digit + VB / 8) + ((vu64)sums->high - (vu64)m[0]);
    memcpy(digit, &low, VB);
    memcpy(digit + VB / 8, &high, VB);
}
#endif

/* Looks at the lines of one or two vectors of columns and adds them to the slot's digits, in one pass. What was added stays only if
 * all that was seen fits. */
ALWAYS bool NAMED(try_lines)(const cr_axis_plan *plan, uint64_t *digit, const struct part *part,
                             const struct NAMED(slot) * slot, unsigned lines, int vectors, bool absolute, bool fetch,
                             struct look *out) {
    enum { CACHE_LINE = 64, LANES = NAMED(LANES) };
    struct NAMED(sums) sums[2];
    struct look look = {{0}, ~(vu32){0}};
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) NAMED(sums_begin)(&sums[v], slot->m, digit + v * LANES, plan->columns, lines);
#pragma GCC unroll 8
    for (unsigned t = 0; t < lines; t++) {
        const uint8_t *p = part->p + t * part->stride;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++, p += LANES * BYTES) {
            if (fetch && (v == 0 || LANES * BYTES == CACHE_LINE)) part_fetch(part, p);
            VU x = NAMED(sum_load)(p);
            NAMED(look_at)(&look, x & SIGN_OUT);
            NAMED(sums_add)(&sums[v], slot->m, p, x, absolute);
        }
    }
    *out = look;
    if (__builtin_expect(!NAMED(within)(&look, slot->window), 0)) return false;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) NAMED(sums_store)(&sums[v], slot->m, digit + v * LANES, plan->columns);
    return true;
}

/* CR_LINES lines of two vectors of columns after the other, from column c of the part on, as long as they fit the slot. Returns the
 * first column that is left. */
ALWAYS unsigned NAMED(try_columns)(const cr_axis_plan *plan, const cr_strip *strip, const struct part *part,
                                   const cr_strip_sum *sum, int which, bool fetch, unsigned c) {
    enum { LANES = NAMED(LANES) };
    const struct NAMED(slot) slot = NAMED(slot_of)(sum, CR_LINES);
    uint64_t *digit = cr_strip_digit(plan, strip, which, (unsigned)sum->slot) + part->first;
    struct part now = *part;
    struct look look;
    for (; c + 2 * LANES <= part->columns; c += 2 * LANES) {
        now.p = part->p + c * BYTES;
        if (!NAMED(try_lines)(plan, digit + c, &now, &slot, CR_LINES, 2, which == 1, fetch, &look)) break;
    }
    return c;
}
