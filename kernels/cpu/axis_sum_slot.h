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

#if defined(VEC_TELLS_INEXACT) && defined(FOR_F32)
/* CR_LINES lines, added up from the anchor on: a float64 for each column. False if one left the anchor's binade. */
NEVER bool NAMED(add_up)(const struct part *part, vf64 m, unsigned columns, double *to) {
    enum { LANES = NAMED(LANES) };
    vu64 other = {0};
    for (unsigned c = 0; c < columns; c += 2 * LANES) {
        struct NAMED(sums) sums[2] = {{m, m}, {m, m}};
#pragma GCC unroll 8
        for (unsigned t = 0; t < CR_LINES; t++) {
            const uint8_t *p = part->p + c * BYTES + t * part->stride;
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++, p += LANES * BYTES) {
                sums[v].low += widen_at(p);
                sums[v].high += widen_at(p + VB / 2);
            }
        }
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            other |= ((vu64)sums[v].low ^ (vu64)m) | ((vu64)sums[v].high ^ (vu64)m);
            memcpy(to + c + v * LANES, &sums[v].low, VB);
            memcpy(to + c + v * LANES + VB / 8, &sums[v].high, VB);
        }
    }
    return !any_bit(other & ~digit_mask);
}

/* As try_columns, but looks at no element: that no addition was rounded says as much. What left the anchor's binade does not count
 * as its digit, and shows by the exponent. For arrays in a near cache: asking for the flag waits for all that is under way. */
ALWAYS unsigned NAMED(try_exact)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part,
                                 const cr_strip_sum *sum, unsigned c) {
    enum { LANES = NAMED(LANES), PATIENCE = 15 };
    _Alignas(VB) double sums[CR_STRIP];
    const vf64 m = digit_anchor(GRID - sum->base + CR_DIGIT_BITS * sum->slot);
    uint64_t *digit = cr_strip_digit(plan, strip, 0, (unsigned)sum->slot) + part->first + c;
    unsigned count = (part->columns - c) / (2 * LANES) * (2 * LANES);
    struct part now = *part;
    now.p += c * BYTES;
    for (int tries = 0;; tries++) { /* at first the flag may be of something else */
        bool within = NAMED(add_up)(&now, m, count, sums);
        bool exact = !inexact_seen();
        if (within && exact) break;
        if (!exact) inexact_clear();
        if (within && tries == 0) continue;
        strip->rounded = PATIENCE;
        return c;
    }
    for (unsigned i = 0; i < count; i += VB / 8) {
        vu64 more = LOAD(vu64, digit + i) + (LOAD(vu64, sums + i) - (vu64)m);
        memcpy(digit + i, &more, VB);
    }
    return c + count;
}
#endif

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
