/* axis_sum_row: the sums of axis_sum by row, for one element type. Included by axis_sum_type.h, whose names it uses.
 *
 * Thread: any. Owner: the caller owns strip and data. */

/* A stretch of a row: k sums of digits from slot up. The look is complete whatever the digits can take. */
ALWAYS void NAMED(stretch)(const uint8_t *p, size_t n, int base, int slot, int k, bool absolute, bool masked,
                           struct look *out, uint64_t *total) {
    enum { LANES = NAMED(LANES) };
    vf64 m[8];
    vu64 acc[2][8];
    uint64_t steps = (n + LANES - 1) / LANES;
    struct look look = {{0}, ~(vu32){0}};
#pragma GCC unroll 8
    for (int d = 0; d < k; d++) {
        m[d] = digit_anchor(GRID - base + CR_DIGIT_BITS * (slot + d));
        acc[0][d] = acc[1][d] = (vu64){0};
    }
    for (size_t at = 0; at < n; at += LANES) {
        uint8_t pad[VB];
        const uint8_t *from = p + at * BYTES;
        if (__builtin_expect(n - at < LANES, 0)) {
            memset(pad, 0, sizeof pad);
            memcpy(pad, from, (n - at) * BYTES);
            from = pad;
        }
        __builtin_prefetch((const void *)((uintptr_t)from + 8192));
        VU x = NAMED(sum_load)(from), magnitude = x & SIGN_OUT;
        NAMED(look_at)(&look, magnitude);
        if (absolute) x = magnitude;
        if (masked) x &= (VU)((VS)magnitude < INFINITE);
        NAMED(add)(acc, m, k, x);
    }
    *out = look;
#pragma GCC unroll 8
    for (int d = 0; d < k; d++) {
        vu64 lanes = acc[0][d];
        if (NAMED(HALVES) == 2) lanes += acc[1][d];
        total[d] = lanes_u64(lanes) - ((vu64)m[d])[0] * (steps * NAMED(HALVES) * (VB / 8));
    }
}

#define STRETCH(name, k, masked)                                                                             \
    NEVER void NAMED(name)(const uint8_t *p, size_t n, int base, int slot, bool absolute, struct look *look, \
                           uint64_t *total) {                                                                \
        if (absolute) {                                                                                      \
            NAMED(stretch)(p, n, base, slot, k, true, masked, look, total);                                  \
        } else {                                                                                             \
            NAMED(stretch)(p, n, base, slot, k, false, masked, look, total);                                 \
        }                                                                                                    \
    }
STRETCH(stretch_tried, TRIED, false)
#if WIDER
STRETCH(stretch_wider, WIDER, false)
#endif
#if FULL > 0
STRETCH(stretch_full, FULL, true)
#endif
#undef STRETCH

/* Adds k signed totals to a column, from digit slot up: at most three units to a digit. */
static void NAMED(put_totals)(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, int slot, int k,
                              const uint64_t *total) {
    cr_strip_sum *sum = &strip->sums[which];
    if (slot < (int)sum->low || slot + k + 1 > (int)sum->high) {
        cr_strip_extend(plan, strip, which, (unsigned)slot, (unsigned)(slot + k + 1));
    }
    uint64_t *digit = cr_strip_digit(plan, strip, which, (unsigned)slot) + column;
    for (int d = 0; d < k; d++) {
        uint64_t carry = cr_digit_carry(total[d]);
        digit[(size_t)d * plan->columns] += total[d] - (carry << CR_DIGIT_BITS);
        digit[(size_t)(d + 1) * plan->columns] += carry;
    }
}

#if FULL > 0
NEVER void NAMED(row_specials)(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, size_t n,
                               int which) {
    VU nans = {0}, pinfs = {0}, ninfs = {0};
    uint64_t nan = 0, pinf = 0, ninf = 0;
    for (size_t at = 0; at < n; at += NAMED(LANES)) {
        uint8_t pad[VB] = {0};
        const uint8_t *from = p + at * BYTES;
        if (n - at < NAMED(LANES)) from = memcpy(pad, from, (n - at) * BYTES);
        VU x = NAMED(sum_load)(from), magnitude = x & SIGN_OUT;
        nans -= (VU)((VS)magnitude > INFINITE);
        pinfs -= (VU)(x == INFINITE);
        ninfs -= (VU)(x == (INFINITE | ~(uint32_t)SIGN_OUT));
    }
    for (size_t i = 0; i < NAMED(LANES); i++) {
        nan += nans[i];
        pinf += pinfs[i];
        ninf += ninfs[i];
    }
    if ((nan | pinf | ninf) == 0) return;
    cr_strip_count_specials(plan, strip, which, column, nan, which == 1 ? pinf + ninf : pinf, which == 1 ? 0 : ninf);
}
#endif

/* A stretch that does not fit the slot: another slot, or the slow way. */
NEVER void NAMED(stretch_hard)(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, size_t n,
                               int which, struct look *look, uint32_t *units) {
    cr_strip_sum *sum = &strip->sums[which];
    uint64_t total[8];
    int slot = NAMED(slot_for)(look, sum->base);
    sum->misses++;
    if (slot >= 0 && slot != sum->slot && NAMED(fits_in)(look, sum->base, slot, TRIED)) {
        /* fits is of what was there a moment ago; what is there now is looked at again. */
        sum->slot = slot;
        NAMED(stretch_tried)(p, n, sum->base, slot, which == 1, look, total);
        if (NAMED(fits)(look, sum)) {
            NAMED(put_totals)(plan, strip, which, column, slot, TRIED, total);
            return;
        }
    }
#if WIDER
    if (NAMED(fits_wider)(look, sum)) {
        slot = NAMED(wider_slot)(sum);
        NAMED(stretch_wider)(p, n, sum->base, slot, which == 1, look, total);
        if (NAMED(fits_in)(look, sum->base, slot, WIDER)) {
            NAMED(put_totals)(plan, strip, which, column, slot, WIDER, total);
            return;
        }
    }
#endif
#if FULL > 0
    (void)units;
    NAMED(stretch_full)(p, n, sum->base, 0, which == 1, look, total);
    NAMED(put_totals)(plan, strip, which, column, 0, FULL, total);
    NAMED(row_specials)(plan, strip, column, p, n, which);
#else
    /* An outlier costs its neighbours; what is all wide goes the slow way at once. */
    slot = NAMED(slot_for)(look, sum->base);
    if (slot >= 0) sum->slot = slot;
    unsigned base = (unsigned)sum->base;
    enum { SHORT = 16 * NAMED(LANES) };
    bool wide = false;
    for (size_t at = 0; at < n; at += SHORT) {
        size_t now = n - at < SHORT ? n - at : SHORT;
        column_units(plan, strip, which, column, units, 4 * SHORT);
        if (!wide) {
            struct look here;
            NAMED(stretch_tried)(p + at * BYTES, now, sum->base, sum->slot, which == 1, &here, total);
            if (NAMED(fits)(&here, sum)) {
                NAMED(put_totals)(plan, strip, which, column, sum->slot, TRIED, total);
                continue;
            }
            wide = at == 0;
        }
        NAMED(reach)(plan, strip, which, look);
        uint64_t *digits = cr_strip_digit(plan, strip, which, 0) + column;
        for (size_t i = 0; i < now; i++) {
            NAMED(put)(plan, strip, digits, base, which, column, p + (at + i) * BYTES);
        }
    }
#endif
}

static void NAMED(sum_row)(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n,
                           int which) {
    enum { STEPS = 224, LONGEST = STEPS * NAMED(LANES) }; /* lanes of both halves together stay below 2^63 */
    cr_strip_sum *sum = &strip->sums[which];
    uint32_t units = 0; /* of this column */
    for (uint64_t done = 0; done < n;) {
        size_t now = n - done < LONGEST ? (size_t)(n - done) : LONGEST;
        uint64_t total[8];
        struct look look;
        column_units(plan, strip, which, column, &units, 4);
        if (__builtin_expect(sum->slot < 0, 0)) {
            NAMED(stretch_tried)(p + done * BYTES, now, 0, 0, which == 1, &look, total);
            NAMED(settle)(&look, sum);
            if (sum->slot < 0) sum->slot = 0;
        }
        NAMED(stretch_tried)(p + done * BYTES, now, sum->base, sum->slot, which == 1, &look, total);
        if (__builtin_expect(NAMED(fits)(&look, sum), 1)) {
            NAMED(put_totals)(plan, strip, which, column, sum->slot, TRIED, total);
        } else {
            NAMED(stretch_hard)(plan, strip, column, p + done * BYTES, now, which, &look, &units);
        }
        done += now;
    }
    if (units > sum->units) sum->units = units;
}
