/* fold_fused_type: the blocks of fold_fused for one element type. Included once each for f32 and f64.
 *
 * Thread: any. Owner: the caller owns run and data. */
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#if defined(FUSED_F64)
#define NAMED(name) GLUE(name, _f64)
#define VU vu64
#define VS vs64
#define UNSIGNED uint64_t
#define SIGNED int64_t
enum { NAMED(FUSED_BIAS) = 1023, NAMED(FUSED_MANTISSA) = 52, NAMED(FUSED_WIDTH) = 64, NAMED(FUSED_TOP) = 2047 };
/* Far from what float64 itself cannot hold: products exact as pairs, anchors finite and normal. */
enum { NAMED(FUSED_LOWEST) = 1023 - 430, NAMED(FUSED_HIGHEST) = 1023 + 430 };
enum { NAMED(FUSED_LOG_VECTORS) = VB > 16 };
#if !defined(VEC_AVX512)
#define BY_VALUE 1
#endif
#else
#define NAMED(name) GLUE(name, _f32)
#define VU vu32
#define VS vs32
#define UNSIGNED uint32_t
#define SIGNED int32_t
enum { NAMED(FUSED_BIAS) = 127, NAMED(FUSED_MANTISSA) = 23, NAMED(FUSED_WIDTH) = 32, NAMED(FUSED_TOP) = 255 };
enum { NAMED(FUSED_LOWEST) = 0, NAMED(FUSED_HIGHEST) = 254 };
enum { NAMED(FUSED_LOG_VECTORS) = VB == 64 };
#endif

/* Vectors of a step, its bytes, and steps of a block; halves: float64 vectors of a step, and running anchors. */
enum {
    NAMED(FUSED_VECTORS) = 1 << NAMED(FUSED_LOG_VECTORS),
    NAMED(FUSED_STEP) = NAMED(FUSED_VECTORS) * VB,
    NAMED(FUSED_LOG_STEPS) = (VB == 64   ? 8
                              : VB == 32 ? 9
                                         : 10) -
                             NAMED(FUSED_LOG_VECTORS),
    NAMED(FUSED_LOG_HALVES) = NAMED(FUSED_LOG_VECTORS) + (NAMED(FUSED_WIDTH) == 32),
    NAMED(FUSED_HALVES) = 1 << NAMED(FUSED_LOG_HALVES)
};
_Static_assert(NAMED(FUSED_STEP) << NAMED(FUSED_LOG_STEPS) == FUSED_BLOCK, "steps");

/* What a pass holds. */
struct NAMED(fused_state) {
#if defined(BY_VALUE)
    vs32 least;    /* of magnitudes' upper halves, in odd lanes; with zeros counted, of magnitudes less one */
    vf64 min, max; /* NaNs are passed over: the running anchors show them */
#else
    VS positive; /* largest as signed integers */
    VU negative; /* largest as unsigned integers */
    VU least;    /* smallest magnitude; with zeros counted, less one, which makes a zero the largest */
#endif
    VU zeros;
    uint64_t copies;                                                  /* of a zero, counted among zeros */
    vf64 high[NAMED(FUSED_HALVES)], square_high[NAMED(FUSED_HALVES)]; /* running anchors */
    vu64 rest, square_middle, square_rest;
    vf64 m_rest, m_middle, m_square_rest;
};

/* Guard, extrema and zeros: of nothing yet, of one vector, of all lanes. */
#if defined(BY_VALUE)
ALWAYS void NAMED(fused_look_begin)(struct NAMED(fused_state) * s) {
    s->least = ALL(vs32, INT32_MAX);
    s->min = ALL(vf64, __builtin_inf());
    s->max = -s->min;
}

ALWAYS void NAMED(fused_look)(struct NAMED(fused_state) * s, VU x, bool zeros) {
    const VU most = ALL(VU, INT64_MAX);
    VU magnitude = x & most;
    s->min = min_vf64((vf64)x, s->min);
    s->max = max_vf64((vf64)x, s->max);
    if (zeros) {
        magnitude -= 1;
        s->zeros += magnitude >> 63;
        magnitude &= most;
    }
    s->least = min_vs32(s->least, (vs32)magnitude);
}

ALWAYS void NAMED(fused_look_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen, bool zeros) {
    int32_t least = INT32_MAX, leasts[VB / 4];
    double min = s->min[0], max = s->max[0], anchors = 0;
    memcpy(leasts, &s->least, VB);
    for (int i = 0; i < VB / 8; i++) {
        if (leasts[2 * i + 1] < least) least = leasts[2 * i + 1];
        if (s->min[i] < min) min = s->min[i];
        if (s->max[i] > max) max = s->max[i];
        for (int half = 0; half < NAMED(FUSED_HALVES); half++) anchors += s->high[half][i];
    }
    memcpy(&seen->min, &min, sizeof min);
    memcpy(&seen->max, &max, sizeof max);
    uint64_t below = seen->min & INT64_MAX, above = seen->max & INT64_MAX;
    seen->high = anchors != anchors ? UINT64_MAX : below > above ? below : above;
    seen->low = (uint64_t)(uint32_t)least << 32;
    seen->zero = !zeros && least == 0;
    seen->zeros = zeros ? lanes_u64(s->zeros) - s->copies : 0;
    seen->unsure = min == 0 || max == 0;
}
#else
#if defined(FUSED_F64)
#define VU_MAX max_vu64
#define VS_MAX max_vs64
#define VU_MIN min_vu64
#else
#define VU_MAX max_vu32
#define VS_MAX max_vs32
#define VU_MIN min_vu32
#endif
ALWAYS void NAMED(fused_look_begin)(struct NAMED(fused_state) * s) {
    s->positive = ALL(VS, (SIGNED)((UNSIGNED)1 << (NAMED(FUSED_WIDTH) - 1)));
    s->negative = (VU){0};
    s->least = ~(VU){0};
}

ALWAYS void NAMED(fused_look)(struct NAMED(fused_state) * s, VU x, bool zeros) {
    VU magnitude = x & ((UNSIGNED)-1 >> 1);
    s->positive = VS_MAX(s->positive, (VS)x);
    s->negative = VU_MAX(s->negative, x);
    if (zeros) {
        magnitude -= 1;
        s->zeros += magnitude >> (NAMED(FUSED_WIDTH) - 1);
    }
    s->least = VU_MIN(s->least, magnitude);
}

ALWAYS void NAMED(fused_look_end)(const struct NAMED(fused_state) * s, struct fused_seen *seen, bool zeros) {
    enum { LANES = VB * 8 / NAMED(FUSED_WIDTH) };
    const UNSIGNED most = (UNSIGNED)-1 >> 1, top = ~most;
    SIGNED positives[LANES], positive;
    UNSIGNED negatives[LANES], leasts[LANES], counts[LANES], negative, least;
    memcpy(positives, &s->positive, VB);
    memcpy(negatives, &s->negative, VB);
    memcpy(leasts, &s->least, VB);
    memcpy(counts, &s->zeros, VB);
    positive = positives[0];
    negative = negatives[0];
    least = leasts[0];
    uint64_t count = 0;
    for (int i = 0; i < LANES; i++) {
        if (positives[i] > positive) positive = positives[i];
        if (negatives[i] > negative) negative = negatives[i];
        if (leasts[i] < least) least = leasts[i];
        count += counts[i];
    }
    seen->zero = !zeros && least == 0;
    seen->zeros = zeros ? count - s->copies : 0;
    /* All zeros: low is more than any magnitude. */
    seen->low = zeros && least == (UNSIGNED)-1 ? UINT64_MAX : (uint64_t)least + zeros;
    seen->high = negative & most;
    if (positive > 0 && (UNSIGNED)positive > seen->high) seen->high = (UNSIGNED)positive;
    /* Where all signs are alike, the value nearest to zero is the other extremum. */
    UNSIGNED nearest = seen->zeros || seen->zero ? 0 : (UNSIGNED)seen->low;
    seen->min = (negative & top) ? negative : nearest;
    seen->max = positive >= 0 ? (UNSIGNED)positive : nearest | top;
    seen->unsure = false;
}
#undef VU_MAX
#undef VS_MAX
#undef VU_MIN
#endif

ALWAYS vf64 NAMED(fused_tree)(vf64 *x, int n) {
    for (; n > 1; n /= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < n / 2; i++) x[i] = fused_plus(x[2 * i], x[2 * i + 1]);
    }
    return x[0];
}

#if defined(FUSED_F64)
/* Moves x's part that is a multiple of the middle anchor's unit there; the rest. */
ALWAYS vf64 fused_middle(struct NAMED(fused_state) * s, vf64 x) {
    vf64 q = x + s->m_middle;
    s->square_middle += (vu64)q;
    return x - fused_minus(q, s->m_middle);
}

ALWAYS void NAMED(fused_add)(struct NAMED(fused_state) * s, const VU *x, bool squares) {
    vf64 rest[NAMED(FUSED_VECTORS)], square_rests[2 * NAMED(FUSED_VECTORS)];
#pragma GCC unroll 2
    for (int i = 0; i < NAMED(FUSED_VECTORS); i++) {
        vf64 value = (vf64)x[i], q = s->high[i] + value;
        rest[i] = value - fused_minus(q, s->high[i]);
        s->high[i] = q;
        if (squares) {
            vf64 h = value * value, l = square_rest(value, h); /* x² = h + l exactly */
            q = square_add(value, s->square_high[i]);
            square_rests[2 * i] = fused_middle(s, h - (q - s->square_high[i]));
            s->square_high[i] = q;
            square_rests[2 * i + 1] = fused_middle(s, l);
        }
    }
    s->rest += (vu64)(NAMED(fused_tree)(rest, NAMED(FUSED_VECTORS)) + s->m_rest);
    if (squares) s->square_rest += (vu64)(NAMED(fused_tree)(square_rests, 2 * NAMED(FUSED_VECTORS)) + s->m_square_rest);
}
#else
ALWAYS void NAMED(fused_add)(struct NAMED(fused_state) * s, const VU *x, bool squares) {
    enum { HALVES = NAMED(FUSED_HALVES) };
    vf64 value[HALVES], square_rests[HALVES];
#pragma GCC unroll 4
    for (int i = 0; i < HALVES; i++) {
        vf32 narrow = (vf32)x[i / 2];
        value[i] = i % 2 ? widen_high(narrow) : widen_low(narrow);
        if (squares) {
            vf64 q = square_add(value[i], s->square_high[i]); /* two float32 significands fit a float64 */
            square_rests[i] = square_less(value[i], q - s->square_high[i]);
            s->square_high[i] = q;
        }
    }
    s->rest += (vu64)(NAMED(fused_tree)(value, HALVES) + s->m_rest);
    if (squares) s->square_rest += (vu64)(NAMED(fused_tree)(square_rests, HALVES) + s->m_square_rest);
}
#endif

/* The last, incomplete step: zeros to the sums, and to what looks at values, copies of an element that is there. */
ALWAYS void NAMED(fused_last)(struct NAMED(fused_state) * s, const uint8_t *p, size_t bytes, bool squares, bool zeros) {
    uint8_t looked[NAMED(FUSED_STEP)], added[NAMED(FUSED_STEP)] = {0};
    VU look[NAMED(FUSED_VECTORS)], add[NAMED(FUSED_VECTORS)];
    UNSIGNED first;
    memcpy(&first, p, sizeof first);
    for (size_t at = 0; at < NAMED(FUSED_STEP); at += sizeof first) memcpy(looked + at, &first, sizeof first);
    memcpy(looked, p, bytes);
    memcpy(added, p, bytes);
    memcpy(look, looked, sizeof look);
    memcpy(add, added, sizeof add);
    for (int i = 0; i < NAMED(FUSED_VECTORS); i++) NAMED(fused_look)(s, look[i], zeros);
    if ((UNSIGNED)(first << 1) == 0) s->copies = (NAMED(FUSED_STEP) - bytes) / sizeof first;
    NAMED(fused_add)(s, add, squares);
}

/* Folds a block on top of run into t. */
ALWAYS void NAMED(fused_block)(const struct fused_run *run, struct fused_try *t, const uint8_t *p, size_t bytes,
                               bool squares, bool zeros, struct ahead ahead) {
    enum { HALVES = NAMED(FUSED_HALVES) };
    struct NAMED(fused_state) s;
    NAMED(fused_look_begin)(&s);
    s.zeros = (VU){0};
    s.copies = 0;
    s.rest = run->acc[FUSED_REST];
    s.square_middle = run->acc[FUSED_SQUARE_MIDDLE];
    s.square_rest = run->acc[FUSED_SQUARE_REST];
    s.m_rest = ALL(vf64, anchor_of(run->a[FUSED_REST]));
    if (squares) s.m_square_rest = ALL(vf64, anchor_of(run->a[FUSED_SQUARE_REST]));
#if defined(FUSED_F64)
    const vf64 high = ALL(vf64, anchor_of(run->a[FUSED_HIGH]));
    if (squares) s.m_middle = ALL(vf64, anchor_of(run->a[FUSED_SQUARE_MIDDLE]));
#else
    const vf64 high = {0};
#endif
    const vf64 square_high = squares ? ALL(vf64, anchor_of(run->a[FUSED_SQUARE_HIGH])) : high;
#pragma GCC unroll 4
    for (int i = 0; i < HALVES; i++) {
        s.high[i] = high;
        s.square_high[i] = square_high;
    }
    size_t at = 0;
    for (; at + NAMED(FUSED_STEP) <= bytes; at += NAMED(FUSED_STEP)) {
        VU x[NAMED(FUSED_VECTORS)];
        fetch(ahead, at, NAMED(FUSED_STEP));
#pragma GCC unroll 2
        for (int i = 0; i < NAMED(FUSED_VECTORS); i++) {
            x[i] = LOAD(VU, p + at + i * VB);
            NAMED(fused_look)(&s, x[i], zeros);
        }
        NAMED(fused_add)(&s, x, squares);
    }
    if (at < bytes) NAMED(fused_last)(&s, p + at, bytes - at, squares, zeros);
    vu64 highs = run->acc[FUSED_HIGH], square_highs = run->acc[FUSED_SQUARE_HIGH];
#pragma GCC unroll 4
    for (int i = 0; i < HALVES; i++) {
        highs += (vu64)s.high[i];
        square_highs += (vu64)s.square_high[i];
    }
    t->acc[FUSED_HIGH] = highs;
    t->acc[FUSED_REST] = s.rest;
    t->acc[FUSED_SQUARE_HIGH] = square_highs;
    t->acc[FUSED_SQUARE_MIDDLE] = s.square_middle;
    t->acc[FUSED_SQUARE_REST] = s.square_rest;
    NAMED(fused_look_end)(&s, &t->seen, zeros);
}

#define INSTANCE(name, squares, zeros)                                                                       \
    NEVER void NAMED(name)(const struct fused_run *run, struct fused_try *t, const uint8_t *p, size_t bytes, \
                           struct ahead ahead) {                                                             \
        NAMED(fused_block)(run, t, p, bytes, squares, zeros, ahead);                                         \
    }
INSTANCE(fused_plain, false, false)
INSTANCE(fused_zeros, false, true)
INSTANCE(fused_squares, true, false)
INSTANCE(fused_squares_zeros, true, true)
#undef INSTANCE

static void NAMED(fused_commit)(struct fused_run *run, const struct fused_try *t, size_t bytes) {
    uint32_t steps = (uint32_t)((bytes + NAMED(FUSED_STEP) - 1) / NAMED(FUSED_STEP));
    bool squares = (run->families & CR_FAM_SUMSQ) != 0, wide = NAMED(FUSED_WIDTH) == 64;
    uint32_t adds[FUSED_SUMS] = {wide ? NAMED(FUSED_HALVES) : 0, steps, squares ? NAMED(FUSED_HALVES) : 0,
                                 squares && wide ? 2 * NAMED(FUSED_VECTORS) * steps : 0, squares ? steps : 0};
    for (int i = 0; i < FUSED_SUMS; i++) {
        if (adds[i] == 0) continue;
        run->acc[i] = t->acc[i];
        run->adds[i] += adds[i];
    }
}

/* Chooses anchors for magnitudes from 2^low to below 2^(high+1), and notes what they take. With room, some of what is
 * left over goes above. False: they lie too far apart. */
static bool NAMED(fused_place)(struct fused_run *run, int low, int high, bool room) {
    /* Σx: |x| < 2^(top+1), a multiple of 2^bottom. Σx²: of its square. T: what the sums of rests grow by. */
    enum { MANTISSA = NAMED(FUSED_MANTISSA), BIAS = NAMED(FUSED_BIAS), T = NAMED(FUSED_LOG_HALVES) };
    const bool wide = NAMED(FUSED_WIDTH) == 64, squares = (run->families & CR_FAM_SUMSQ) != 0;
    /* How far 2^a may lie below 2^(top+1), or its square; and the lowest unit below a. */
    const int above = wide ? 51 - NAMED(FUSED_LOG_STEPS) : 51 - T, below = wide ? 52 - T : 0;
    const int square_above = 51 - NAMED(FUSED_LOG_STEPS), square_below = wide ? 104 - (T + 1) : 52 - T;
    int least = high + 1 - above, most = low - MANTISSA + below;
    int square_least = 2 * (high + 1) - square_above, square_most = 2 * (low - MANTISSA) + square_below;
    if (least > most || (squares && square_least > square_most)) return false;
    int a = least, square_a = square_least;
    if (room) {
        a += (most - least) / 2 < 4 ? (most - least) / 2 : 4;
        square_a += (square_most - square_least) / 2 < 8 ? (square_most - square_least) / 2 : 8;
    }
    run->a[FUSED_HIGH] = a;
    run->a[FUSED_REST] = a - below;
    run->a[FUSED_SQUARE_HIGH] = square_a;
    run->a[FUSED_SQUARE_MIDDLE] = square_a - 52;
    run->a[FUSED_SQUARE_REST] = square_a - square_below;
    int top = a + above - 1, bottom = a - below + MANTISSA;
    if (squares) {
        int square_top = ((square_a + square_above) >> 1) - 1; /* rounded down, and up: inwards */
        int square_bottom = ((square_a - square_below + 1) >> 1) + MANTISSA;
        top = square_top < top ? square_top : top;
        bottom = square_bottom > bottom ? square_bottom : bottom;
    }
    top = top + BIAS < NAMED(FUSED_HIGHEST) ? top + BIAS : NAMED(FUSED_HIGHEST);
    bottom = bottom + BIAS > NAMED(FUSED_LOWEST) ? bottom + BIAS : NAMED(FUSED_LOWEST);
    run->most = ((uint64_t)(top + 1) << MANTISSA) - 1;
    run->least = bottom <= 1 ? 1 : (uint64_t)bottom << MANTISSA;
    run->placed = true;
    return true;
}

/* The exponent of a magnitude, subnormals' being that of their unit's binade. */
static int NAMED(fused_exponent)(uint64_t magnitude) {
    int field = (int)(magnitude >> NAMED(FUSED_MANTISSA));
    return (field < 1 ? 1 : field) - NAMED(FUSED_BIAS);
}

/* A first guess, from a few elements. */
static void NAMED(fused_guess)(struct fused_run *run, const uint8_t *p, size_t n) {
    const UNSIGNED most = (UNSIGNED)-1 >> 1, infinity = (UNSIGNED)NAMED(FUSED_TOP) << NAMED(FUSED_MANTISSA);
    UNSIGNED high = 0;
    for (size_t i = 0; i < n; i += 1 + n / 32) {
        UNSIGNED x;
        memcpy(&x, p + i * sizeof x, sizeof x);
        x &= most;
        if (x < infinity && x > high) high = x;
    }
    int top = NAMED(fused_exponent)(high) + 3;
    if (top < NAMED(FUSED_LOWEST) - NAMED(FUSED_BIAS)) top = NAMED(FUSED_LOWEST) - NAMED(FUSED_BIAS);
    if (top > NAMED(FUSED_HIGHEST) - NAMED(FUSED_BIAS)) top = NAMED(FUSED_HIGHEST) - NAMED(FUSED_BIAS);
    NAMED(fused_place)(run, top, top, false);
}

/* Folds one block, or leaves everything as it was and returns false. */
static bool NAMED(fused_tile)(struct fused_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p,
                              size_t n, uint64_t index, struct ahead ahead) {
    const bool squares = (run->families & CR_FAM_SUMSQ) != 0;
    const size_t bytes = n * sizeof(UNSIGNED);
    if (run->skip > 0) {
        run->skip--;
        return false;
    }
    if (!run->placed) NAMED(fused_guess)(run, p, n);
    for (int turn = 0; turn < 3; turn++) {
        struct fused_try t;
        const bool zeros = run->zeros;
        if (fused_full(run)) fused_flush(run, part);
        (squares ? zeros ? NAMED(fused_squares_zeros) : NAMED(fused_squares)
         : zeros ? NAMED(fused_zeros)
                 : NAMED(fused_plain))(run, &t, p, bytes, ahead);
        const struct fused_seen *seen = &t.seen;
        if (seen->zero) {
            run->zeros = true;
            run->calm = 0;
            continue;
        }
        if (seen->high <= run->most && seen->low >= run->least) {
            NAMED(fused_commit)(run, &t, bytes);
            if ((run->families & CR_FAM_EXTREMA) && seen->unsure) {
                extrema_tile(extrema, (cr_dtype)part->dtype, p, n, index, ahead);
            } else if (run->families & CR_FAM_EXTREMA) {
                fused_extrema(extrema, seen, p, n, index, NAMED(FUSED_WIDTH));
            }
            if (run->families & CR_FAM_COUNTS) part->nonzero += n - seen->zeros;
            run->calm = seen->zeros ? 0 : run->calm + 1;
            if (run->calm >= FUSED_PATIENCE) run->zeros = false;
            run->fails = 0;
            return true;
        }
        int low = NAMED(fused_exponent)(seen->low), high = NAMED(fused_exponent)(seen->high);
        if (low + NAMED(FUSED_BIAS) < NAMED(FUSED_LOWEST) || high + NAMED(FUSED_BIAS) > NAMED(FUSED_HIGHEST)) break;
        fused_flush(run, part);
        if (!NAMED(fused_place)(run, low, high, true)) break;
    }
    /* The more in a row, the more go by before the next trial. */
    if (run->fails < 6) run->fails++;
    run->skip = (1u << run->fails) - 2;
    return false;
}

#undef GLUE_
#undef GLUE
#undef NAMED
#undef VU
#undef VS
#undef BY_VALUE
#undef UNSIGNED
#undef SIGNED
