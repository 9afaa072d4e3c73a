/* fold_fused_look: what a pass of fold_fused_type looks for beside the sums: the window, extrema, zeros. Included by it once per
 * element type.
 *
 * Thread: any. Owner: the caller owns the state. */
/* What a pass holds. */
struct NAMED(fused_state) {
    /* By vector of a step. Magnitudes and values; NaNs are passed over: the running anchors show them. */
    VF least[NAMED(FUSED_VECTORS)], most[NAMED(FUSED_VECTORS)], min[NAMED(FUSED_VECTORS)], max[NAMED(FUSED_VECTORS)];
    VS positive;     /* where zeros are counted: largest as signed integers, */
    VU negative;     /* as unsigned integers, */
    VU less;         /* smallest magnitude less one, which makes a zero the largest, */
    vs32 upper_less; /* or its upper half, in odd lanes */
    VU zeros;
    uint64_t copies;                                           /* of a zero, counted among zeros */
    vf64 high[NAMED(FUSED_HALVES)], rest[NAMED(FUSED_HALVES)]; /* running anchors, as their names in fold_fused.h */
    vf64 square_high[NAMED(FUSED_HALVES)], square_middle[NAMED(FUSED_HALVES)], square_rest[NAMED(FUSED_HALVES)];
    vf64 m[FUSED_SUMS]; /* where they begin */
    vu64 acc[FUSED_SUMS];
    vu64 moved; /* bits of a running anchor that were not its first's */
    uint32_t adds;
};

ALWAYS void NAMED(fused_look_begin)(struct NAMED(fused_state) * s) {
    const UNSIGNED infinity = (UNSIGNED)NAMED(FUSED_TOP) << NAMED(FUSED_MANTISSA);
#pragma GCC unroll 2
    for (int i = 0; i < NAMED(FUSED_VECTORS); i++) {
        s->least[i] = s->min[i] = (VF)ALL(VU, infinity);
        s->most[i] = (VF){0};
        s->max[i] = -s->min[i];
    }
    s->positive = ALL(VS, (SIGNED)((UNSIGNED)1 << (NAMED(FUSED_WIDTH) - 1)));
    s->negative = s->zeros = (VU){0};
    s->less = ~(VU){0};
    s->upper_less = ALL(vs32, INT32_MAX);
    s->copies = 0;
}

ALWAYS void NAMED(fused_look)(struct NAMED(fused_state) * s, int i, VU x, enum fused_look look) {
    const VU most = ALL(VU, (UNSIGNED)-1 >> 1);
    if (look == FUSED_ZEROS) {
        VU less = (x & most) - 1;
        s->zeros += less >> (NAMED(FUSED_WIDTH) - 1);
#if defined(BY_VALUE)
        s->upper_less = min_vs32(s->upper_less, (vs32)(less & most));
#else
        s->less = GLUE(min_, VU)(s->less, less);
        s->positive = GLUE(max_, VS)(s->positive, (VS)x);
        s->negative = GLUE(max_, VU)(s->negative, x);
        return;
#endif
    } else {
        s->least[i] = LEAST((VF)x, s->least[i]);
    }
    if (look == FUSED_WINDOW) {
        s->most[i] = MOST((VF)x, s->most[i]);
    } else {
        s->min[i] = MIN((VF)x, s->min[i]);
        s->max[i] = MAX((VF)x, s->max[i]);
    }
}

/* Of all lanes: by value, and where zeros are counted. */
ALWAYS void NAMED(fused_values_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen,
                                    enum fused_look look) {
    enum { LANES = NAMED(FUSED_LANES) };
    const UNSIGNED magnitude = (UNSIGNED)-1 >> 1;
    UNSIGNED leasts[LANES], mosts[LANES], least, most;
    const int last = NAMED(FUSED_VECTORS) - 1;
    VF least_lanes = MIN(s->least[0], s->least[last]), most_lanes = MAX(s->most[0], s->most[last]);
    memcpy(leasts, &least_lanes, VB);
    memcpy(mosts, &most_lanes, VB);
    least = leasts[0];
    most = mosts[0];
    for (int i = 1; i < LANES; i++) {
        least = leasts[i] < least ? leasts[i] : least;
        most = mosts[i] > most ? mosts[i] : most;
    }
    if (look != FUSED_WINDOW) {
        FLOAT mins[LANES], maxs[LANES], min, max;
        UNSIGNED min_bits, max_bits;
        VF min_lanes = MIN(s->min[0], s->min[last]), max_lanes = MAX(s->max[0], s->max[last]);
        memcpy(mins, &min_lanes, VB);
        memcpy(maxs, &max_lanes, VB);
        min = mins[0];
        max = maxs[0];
        for (int i = 1; i < LANES; i++) {
            min = mins[i] < min ? mins[i] : min;
            max = maxs[i] > max ? maxs[i] : max;
        }
        memcpy(&min_bits, &min, sizeof min);
        memcpy(&max_bits, &max, sizeof max);
        seen->min = min_bits;
        seen->max = max_bits;
        most = (min_bits & magnitude) > (max_bits & magnitude) ? min_bits & magnitude : max_bits & magnitude;
        seen->unsure = min == 0 || max == 0;
    }
    seen->low = least;
    seen->high = most;
    seen->zero = least == 0;
}

#if defined(BY_VALUE)
ALWAYS void NAMED(fused_zeros_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen) {
    int32_t less = INT32_MAX, lesses[VB / 4];
    memcpy(lesses, &s->upper_less, VB);
    for (int i = 1; i < VB / 4; i += 2) less = lesses[i] < less ? lesses[i] : less;
    NAMED(fused_values_end)(s, seen, FUSED_ZEROS);
    seen->low = (uint64_t)(uint32_t)less << 32;
}
#else
ALWAYS void NAMED(fused_zeros_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen) {
    enum { LANES = NAMED(FUSED_LANES) };
    const UNSIGNED most = (UNSIGNED)-1 >> 1, top = ~most;
    SIGNED positives[LANES], positive;
    UNSIGNED negatives[LANES], lesses[LANES], negative, less;
    memcpy(positives, &s->positive, VB);
    memcpy(negatives, &s->negative, VB);
    memcpy(lesses, &s->less, VB);
    positive = positives[0];
    negative = negatives[0];
    less = lesses[0];
    for (int i = 1; i < LANES; i++) {
        positive = positives[i] > positive ? positives[i] : positive;
        negative = negatives[i] > negative ? negatives[i] : negative;
        less = lesses[i] < less ? lesses[i] : less;
    }
    /* All zeros: low is more than any magnitude. */
    seen->low = less == (UNSIGNED)-1 ? UINT64_MAX : (uint64_t)less + 1;
    seen->high = negative & most;
    if (positive > 0 && (UNSIGNED)positive > seen->high) seen->high = (UNSIGNED)positive;
    /* Where all signs are alike, the value nearest to zero is the other extremum. */
    UNSIGNED nearest = seen->zeros ? 0 : (UNSIGNED)seen->low;
    seen->min = (negative & top) ? negative : nearest;
    seen->max = positive >= 0 ? (UNSIGNED)positive : nearest | top;
}
#endif

ALWAYS void NAMED(fused_look_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen, enum fused_look look) {
    *seen = (struct fused_seen){0};
    if (look == FUSED_ZEROS) {
        UNSIGNED counts[NAMED(FUSED_LANES)];
        memcpy(counts, &s->zeros, VB);
        for (int i = 0; i < NAMED(FUSED_LANES); i++) seen->zeros += counts[i];
        seen->zeros -= s->copies;
        NAMED(fused_zeros_end)(s, seen);
    } else {
        NAMED(fused_values_end)(s, seen, look);
    }
    if (any_bit(s->moved & ((uint64_t)2047 << 52))) seen->high = UINT64_MAX;
}

/* Whether every lane fits the window and none has a new extremum, or one that equals the old: what most blocks end with, so
 * it is asked before anything is sought across lanes. */
ALWAYS bool NAMED(fused_quiet)(const struct fused_run *run, const struct NAMED(fused_state) * s, enum fused_look look) {
    const int last = NAMED(FUSED_VECTORS) - 1;
    const VS magnitude = ALL(VS, (SIGNED)((UNSIGNED)-1 >> 1)), most = ALL(VS, (SIGNED)run->most);
    if (look == FUSED_ZEROS) return false;
    VS out = (VS)MIN(s->least[0], s->least[last]) < ALL(VS, (SIGNED)run->least);
    if (look == FUSED_WINDOW) {
        out |= (VS)MAX(s->most[0], s->most[last]) > most;
    } else {
        VF min = MIN(s->min[0], s->min[last]), max = MAX(s->max[0], s->max[last]);
        out |= (((VS)min & magnitude) > most) | (((VS)max & magnitude) > most);
        out |= (VS)(min <= (VF)ALL(VU, (UNSIGNED)run->min)) | (VS)(max >= (VF)ALL(VU, (UNSIGNED)run->max));
    }
    return !any_bit((vu64)out | (s->moved & ((uint64_t)2047 << 52)));
}
