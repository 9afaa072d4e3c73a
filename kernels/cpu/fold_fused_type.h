/* fold_fused_type: the blocks of fold_fused for one element type. A template (instance.h).
 *
 * Thread: any. Owner: the caller owns run and data. */
#if defined(FOR_F64)
enum {
    NAMED(FUSED_BIAS) = CR_F64_BIAS,
    NAMED(FUSED_MANTISSA) = CR_F64_MANTISSA,
    NAMED(FUSED_WIDTH) = 64,
    NAMED(FUSED_TOP) = CR_F64_TOP
};
/* Far from what float64 itself cannot hold: products exact as pairs, anchors finite and normal. */
enum { NAMED(FUSED_LOWEST) = CR_F64_SQUARE_LOWEST, NAMED(FUSED_HIGHEST) = 2 * CR_F64_BIAS - CR_F64_SQUARE_LOWEST };
enum { NAMED(FUSED_VECTORS) = VB > 16 ? 2 : 1, NAMED(FUSED_HALVES) = NAMED(FUSED_VECTORS) };
#if !defined(VEC_AVX512)
#define BY_VALUE 1
#endif
#else
enum {
    NAMED(FUSED_BIAS) = CR_F32_BIAS,
    NAMED(FUSED_MANTISSA) = CR_F32_MANTISSA,
    NAMED(FUSED_WIDTH) = 32,
    NAMED(FUSED_TOP) = CR_F32_TOP
};
enum { NAMED(FUSED_LOWEST) = 0, NAMED(FUSED_HIGHEST) = CR_F32_TOP - 1 };
enum { NAMED(FUSED_VECTORS) = VB == 64 ? 2 : 1, NAMED(FUSED_HALVES) = 2 * NAMED(FUSED_VECTORS) };
#endif

/* A step takes a few vectors, each half of it (a float64 vector) adding to running anchors of its own; so many steps, and they
 * begin anew. */
enum {
    NAMED(FUSED_STEP) = NAMED(FUSED_VECTORS) * VB,
    NAMED(FUSED_LOG_STEPS) = 4,
    NAMED(FUSED_ROUND) = NAMED(FUSED_STEP) << NAMED(FUSED_LOG_STEPS),
    NAMED(FUSED_LANES) = VB * 8 / NAMED(FUSED_WIDTH)
};
_Static_assert(FUSED_BLOCK % NAMED(FUSED_ROUND) == 0, "whole rounds");
_Static_assert(2 * FUSED_BLOCK / NAMED(FUSED_ROUND) * NAMED(FUSED_HALVES) <= FUSED_ADDS, "blocks between flushes");

#include "kernels/cpu/fold_fused_look.h"

/* Adds half a vector to running anchors: x to s, exactly; or the multiple of s's unit nearest to x, and the rest to r. */
#if defined(FOR_F64)
ALWAYS void fused_square_f64(struct fused_state_f64 *s, int i, vf64 x) {
    vf64 h = x * x, l = square_rest(x, h); /* x² = h + l exactly */
    vf64 q = square_add(x, s->square_high[i]);
    /* h less q's change is few bits long, all of them the middle anchor's business. */
    vf64 middle = s->square_middle[i] + (h - fused_minus(q, s->square_high[i])), p = fused_plus(middle, l);
    s->square_high[i] = q;
    s->square_rest[i] += l - fused_minus(p, middle);
    s->square_middle[i] = p;
}

ALWAYS void fused_add_f64(struct fused_state_f64 *s, const uint8_t *p, enum fused_sums sums, bool squares) {
#pragma GCC unroll 4
    for (int i = 0; i < FUSED_HALVES_f64; i++) {
        vf64 x = LOAD(vf64, p + i * VB);
        if (sums) {
            vf64 y = fused_summand(x, sums), q = s->high[i] + y;
            s->rest[i] = fused_plus(y - fused_minus(q, s->high[i]), s->rest[i]);
            s->high[i] = q;
        }
        if (squares) fused_square_f64(s, i, x);
    }
}
#else
ALWAYS void fused_add_f32(struct fused_state_f32 *s, const uint8_t *p, enum fused_sums sums, bool squares) {
#pragma GCC unroll 4
    for (int i = 0; i < FUSED_HALVES_f32; i++) {
        vf64 x = widen_at(p + i * (VB / 2));
        if (sums) s->high[i] += fused_summand(x, sums);
        if (squares) { /* two float32 significands fit a float64 */
            vf64 q = square_add(x, s->square_high[i]);
            s->square_rest[i] = fused_plus(square_less(x, q - s->square_high[i]), s->square_rest[i]);
            s->square_high[i] = q;
        }
    }
}
#endif

/* Whether a pass adds to what stands at i; a constant of each instance. */
ALWAYS bool NAMED(fused_uses)(int i, enum fused_sums sums, bool squares) {
    if ((i == FUSED_REST || i == FUSED_SQUARE_MIDDLE) && NAMED(FUSED_WIDTH) == 32) return false;
    return i >= FUSED_SQUARE_HIGH ? squares : sums;
}

/* Begins a round. */
ALWAYS void NAMED(fused_round)(struct NAMED(fused_state) * s) {
#pragma GCC unroll 4
    for (int i = 0; i < NAMED(FUSED_HALVES); i++) {
        s->high[i] = s->m[FUSED_HIGH];
        s->rest[i] = s->m[FUSED_REST];
        s->square_high[i] = s->m[FUSED_SQUARE_HIGH];
        s->square_middle[i] = s->m[FUSED_SQUARE_MIDDLE];
        s->square_rest[i] = s->m[FUSED_SQUARE_REST];
    }
}

/* Ends it: the running anchors' bits are added up. */
ALWAYS void NAMED(fused_gather)(struct NAMED(fused_state) * s, enum fused_sums sums, bool squares) {
    const bool wide = NAMED(FUSED_WIDTH) == 64;
#pragma GCC unroll 4
    for (int i = 0; i < NAMED(FUSED_HALVES); i++) {
        if (sums) s->acc[FUSED_HIGH] += (vu64)s->high[i];
        if (sums && wide) s->acc[FUSED_REST] += (vu64)s->rest[i];
        if (squares) s->acc[FUSED_SQUARE_HIGH] += (vu64)s->square_high[i];
        if (squares && wide) s->acc[FUSED_SQUARE_MIDDLE] += (vu64)s->square_middle[i];
        if (squares) s->acc[FUSED_SQUARE_REST] += (vu64)s->square_rest[i];
        s->moved |=
            sums ? (vu64)s->high[i] ^ (vu64)s->m[FUSED_HIGH] : (vu64)s->square_high[i] ^ (vu64)s->m[FUSED_SQUARE_HIGH];
    }
    s->adds += NAMED(FUSED_HALVES);
}

ALWAYS void NAMED(fused_step)(struct NAMED(fused_state) * s, const uint8_t *look_at, const uint8_t *add,
                              enum fused_sums sums, bool squares, enum fused_look look) {
#pragma GCC unroll 2
    for (int i = 0; i < NAMED(FUSED_VECTORS); i++) NAMED(fused_look)(s, i, LOAD(VU, look_at + i * VB), look);
    NAMED(fused_add)(s, add, sums, squares);
}

/* The last, incomplete step: zeros to the sums, and to what looks at values, copies of an element that is there. */
ALWAYS void NAMED(fused_last)(struct NAMED(fused_state) * s, const uint8_t *p, size_t bytes, enum fused_sums sums,
                              bool squares, enum fused_look look) {
    uint8_t looked[NAMED(FUSED_STEP)], added[NAMED(FUSED_STEP)] = {0};
    UNSIGNED first;
    memcpy(&first, p, sizeof first);
    for (size_t at = 0; at < NAMED(FUSED_STEP); at += sizeof first) memcpy(looked + at, &first, sizeof first);
    memcpy(looked, p, bytes);
    memcpy(added, p, bytes);
    memcpy(&first, looked, sizeof first);
    if ((UNSIGNED)(first << 1) == 0) s->copies = (NAMED(FUSED_STEP) - bytes) / sizeof first;
    NAMED(fused_step)(s, looked, added, sums, squares, look);
}

/* Folds a block on top of run into t. */
ALWAYS void NAMED(fused_block)(const struct fused_run *run, struct fused_try *t, const uint8_t *p, size_t bytes,
                               enum fused_sums sums, bool squares, enum fused_look look, struct ahead ahead) {
    enum { STEP = NAMED(FUSED_STEP), ROUND = NAMED(FUSED_ROUND) };
    struct NAMED(fused_state) s;
    NAMED(fused_look_begin)(&s);
#pragma GCC unroll 5
    for (int i = 0; i < FUSED_SUMS; i++) {
        const bool used = NAMED(fused_uses)(i, sums, squares);
        s.acc[i] = used ? run->acc[i] : (vu64){0};
        s.m[i] = used ? ALL(vf64, anchor_of(run->a[i])) : (vf64){0};
    }
    s.moved = (vu64){0};
    s.adds = 0;
    size_t at = 0;
    for (; at + ROUND <= bytes; at += ROUND) {
        NAMED(fused_round)(&s);
        for (size_t i = 0; i < ROUND; i += STEP) {
            fetch(ahead, at + i, STEP);
            NAMED(fused_step)(&s, p + at + i, p + at + i, sums, squares, look);
        }
        NAMED(fused_gather)(&s, sums, squares);
    }
    if (at < bytes) {
        NAMED(fused_round)(&s);
        for (; at + STEP <= bytes; at += STEP) NAMED(fused_step)(&s, p + at, p + at, sums, squares, look);
        if (at < bytes) NAMED(fused_last)(&s, p + at, bytes - at, sums, squares, look);
        NAMED(fused_gather)(&s, sums, squares);
    }
#pragma GCC unroll 5
    for (int i = 0; i < FUSED_SUMS; i++) {
        if (NAMED(fused_uses)(i, sums, squares)) t->acc[i] = s.acc[i];
    }
    t->adds = s.adds;
    t->quiet = NAMED(fused_quiet)(run, &s, look);
    if (!t->quiet) NAMED(fused_look_end)(&s, &t->seen, look);
}

#define INSTANCE(name, sums, squares, look)                                                                  \
    NEVER void NAMED(name)(const struct fused_run *run, struct fused_try *t, const uint8_t *p, size_t bytes, \
                           struct ahead ahead) {                                                             \
        NAMED(fused_block)(run, t, p, bytes, sums, squares, look, ahead);                                    \
    }
#define INSTANCES(name, sums, squares)                     \
    INSTANCE(name##_window, sums, squares, FUSED_WINDOW)   \
    INSTANCE(name##_extrema, sums, squares, FUSED_EXTREMA) \
    INSTANCE(name##_zeros, sums, squares, FUSED_ZEROS)
INSTANCES(fused_sums, FUSED_SUM, false)
INSTANCES(fused_squares, FUSED_NO_SUM, true)
INSTANCES(fused_both, FUSED_SUM, true)
INSTANCES(fused_absolute, FUSED_SUM_ABSOLUTE, false)
INSTANCES(fused_absolute_both, FUSED_SUM_ABSOLUTE, true)
#undef INSTANCES
#undef INSTANCE

static void NAMED(fused_try)(const struct fused_run *run, struct fused_try *t, const uint8_t *p, size_t bytes,
                             enum fused_look look, struct ahead ahead) {
    typedef void pass(const struct fused_run *, struct fused_try *, const uint8_t *, size_t, struct ahead);
#define PASSES(name) \
    { NAMED(name##_window), NAMED(name##_extrema), NAMED(name##_zeros) }
    static pass *const passes[3][2][3] = {{{NULL}, PASSES(fused_squares)},
                                          {PASSES(fused_sums), PASSES(fused_both)},
                                          {PASSES(fused_absolute), PASSES(fused_absolute_both)}};
#undef PASSES
    passes[run->sums][run->squares][look](run, t, p, bytes, ahead);
}

/* Chooses anchors for magnitudes from 2^low to below 2^(high+1), and notes what they take. With room, some of what is
 * left over goes above. False: they lie too far apart. */
static bool NAMED(fused_place)(struct fused_run *run, int low, int high, bool room) {
    /* L: what the sums of a round grow by. */
    enum { MANTISSA = NAMED(FUSED_MANTISSA), BIAS = NAMED(FUSED_BIAS), L = NAMED(FUSED_LOG_STEPS) };
    const bool wide = NAMED(FUSED_WIDTH) == 64, sums = run->sums != FUSED_NO_SUM, squares = run->squares;
    /* The first anchor's 2^a may lie 2^above below any x, or its square: a round's sum is at most 2^(a+51). The last one's
     * unit lies 2^below further down: a rest is at most half of the unit above. Between the two for float64's squares, the
     * middle anchor's unit may be 2^(51-L) below a; two parts of each square meet there, one at most 2^(a-1), the other less than
     * half of that; and the square of 2^low, rounded, is a multiple of that unit, since the rest's lies 2^(52+L) below. */
    const int above = 51 - L, below = wide ? 52 - L : 0, square_below = wide ? 103 - 2 * L : 52 - L;
    int least = high + 1 - above, most = low - MANTISSA + below;
    int square_least = 2 * (high + 1) - above, square_most = 2 * (low - MANTISSA) + square_below;
    if ((sums && least > most) || (squares && square_least > square_most)) return false;
    int a = least, square_a = square_least;
    if (room) {
        a += (most - least) / 3 < 4 ? (most - least) / 3 : 4; /* data runs out downwards more often */
        square_a += (square_most - square_least) / 3 < 8 ? (square_most - square_least) / 3 : 8;
    }
    run->a[FUSED_HIGH] = a;
    run->a[FUSED_REST] = a - below;
    run->a[FUSED_SQUARE_HIGH] = square_a;
    run->a[FUSED_SQUARE_MIDDLE] = square_a - (51 - L);
    run->a[FUSED_SQUARE_REST] = square_a - square_below;
    int top = a + above - 1, bottom = a - below + MANTISSA;
    if (squares) {
        int square_top = ((square_a + above) >> 1) - 1; /* rounded down, and up: inwards */
        int square_bottom = ((square_a - square_below + 1) >> 1) + MANTISSA;
        top = !sums || square_top < top ? square_top : top;
        bottom = !sums || square_bottom > bottom ? square_bottom : bottom;
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

/* A first guess, from a few elements. False: they tell that the block is none for this file. */
static bool NAMED(fused_guess)(struct fused_run *run, const uint8_t *p, size_t n) {
    const UNSIGNED most = (UNSIGNED)-1 >> 1, infinity = (UNSIGNED)NAMED(FUSED_TOP) << NAMED(FUSED_MANTISSA);
    const int bias = NAMED(FUSED_BIAS);
    UNSIGNED high = 0, low = infinity;
    for (size_t i = 0; i < n; i += 1 + n / 32) {
        UNSIGNED x;
        memcpy(&x, p + i * sizeof x, sizeof x);
        x &= most;
        if (x >= infinity) return false;
        if (x > high) high = x;
        if (x != 0 && x < low) low = x;
    }
    int top = NAMED(fused_exponent)(high) + 2;
    if (high != 0 && (top - 2 + bias < NAMED(FUSED_LOWEST) || top - 2 + bias > NAMED(FUSED_HIGHEST))) return false;
    if (high != 0 && !run->blind && !NAMED(fused_place)(run, NAMED(fused_exponent)(low), top - 2, false)) return false;
    if (top < NAMED(FUSED_LOWEST) - bias) top = NAMED(FUSED_LOWEST) - bias;
    if (top > NAMED(FUSED_HIGHEST) - bias) top = NAMED(FUSED_HIGHEST) - bias;
    return NAMED(fused_place)(run, top, top, false);
}

/* A block that fits has been folded: it counts. */
static void NAMED(fused_commit)(struct fused_run *run, const struct fused_try *t, struct extremum_run *extrema,
                                cr_partial *part, const uint8_t *p, size_t n, uint64_t index, struct ahead ahead) {
    const struct fused_seen *seen = &t->seen;
    const uint64_t zeros = t->quiet ? 0 : seen->zeros;
    for (int i = 0; i < FUSED_SUMS; i++) {
        if (run->live[i]) run->acc[i] = t->acc[i];
    }
    run->adds += t->adds;
    if (t->quiet) {
        /* no new extremum */
    } else if ((run->families & CR_FAM_EXTREMA) && seen->unsure) {
        extrema_tile(extrema, (cr_dtype)part->dtype, part->wants, p, n, index, ahead);
    } else if (run->families & CR_FAM_EXTREMA) {
        fused_extrema(extrema, seen, p, n, index, NAMED(FUSED_WIDTH));
    }
    if (run->families & CR_FAM_COUNTS) part->nonzero += n - zeros;
    run->calm = zeros ? 0 : run->calm + 1;
    if (run->calm >= FUSED_PATIENCE) run->zeros = false;
    run->fails = 0;
}

/* Folds one block, or leaves everything as it was and returns false. */
static bool NAMED(fused_tile)(struct fused_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p,
                              size_t n, uint64_t index, struct ahead ahead) {
    enum { MOST_ADDS = FUSED_BLOCK / NAMED(FUSED_ROUND) * NAMED(FUSED_HALVES) };
    if (run->skip > 0) {
        run->skip--;
        return false;
    }
    const uint64_t infinity = (uint64_t)NAMED(FUSED_TOP) << NAMED(FUSED_MANTISSA);
    if (run->families & CR_FAM_EXTREMA) {
        run->min = fused_bits(extrema->min.block ? extrema->min.key : (int64_t)infinity, NAMED(FUSED_WIDTH));
        run->max = fused_bits(extrema->max.block ? extrema->max.key : ~(int64_t)infinity, NAMED(FUSED_WIDTH));
    }
    fetch_pages(ahead, p, n * sizeof(UNSIGNED));
    bool possible = run->placed || NAMED(fused_guess)(run, p, n);
    for (int turn = 0; possible && turn < 3; turn++) {
        struct fused_try t;
        enum fused_look look = run->zeros ? FUSED_ZEROS : run->families & CR_FAM_EXTREMA ? FUSED_EXTREMA : FUSED_WINDOW;
        if (run->adds + MOST_ADDS > FUSED_ADDS) fused_flush(run, part);
        NAMED(fused_try)(run, &t, p, n * sizeof(UNSIGNED), look, ahead);
        if (!t.quiet && t.seen.zero) {
            run->zeros = true;
            run->calm = 0;
            continue;
        }
        bool fits = t.seen.high <= run->most && t.seen.low >= run->least;
        if (t.quiet || fits || (run->blind && t.seen.high <= infinity)) {
            NAMED(fused_commit)(run, &t, extrema, part, p, n, index, ahead);
            return true;
        }
        int low = NAMED(fused_exponent)(t.seen.low), high = NAMED(fused_exponent)(t.seen.high);
        if (low + NAMED(FUSED_BIAS) < NAMED(FUSED_LOWEST) || high + NAMED(FUSED_BIAS) > NAMED(FUSED_HIGHEST)) break;
        fused_flush(run, part);
        if (!NAMED(fused_place)(run, low, high, true)) break;
    }
    /* The more in a row, the more go by before the next trial. */
    if (run->fails < 6) run->fails += run->blind ? 6 - run->fails : 1;
    run->skip = (1u << run->fails) - 2;
    return false;
}

#undef BY_VALUE
