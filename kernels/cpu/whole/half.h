/* half: Σx or Σ|x|, Σx², extrema and counts of float16 and bfloat16 in one reading of the data.
 *
 * Running anchors (fused.h) take a block's sums without beginning anew: of each element the multiple of the anchor's unit. A
 * float16 is a multiple of 2^-24 below 2^16, so fixed anchors take its sum, and its squares but for rests that plain lanes add up
 * exactly. A bfloat16 may lie anywhere. So its anchors are placed where blocks have been, a pass also looks at
 * the largest and the smallest magnitude, and a block counts only if its elements leave no rest, and their squares rests that
 * plain lanes hold. A block with NaNs or infinities, or one that lies too far apart, is left to the separate folds.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_WHOLE_HALF_H
#define CURED_KERNELS_CPU_WHOLE_HALF_H

#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/family/extrema.h"
#include "kernels/cpu/whole/fused.h"

enum {
    HALF_BLOCK = 16384, /* bytes */
    HALF_LOG_ADDS = VB == 64   ? 8
                    : VB == 32 ? 9
                               : 10, /* of a block's additions to each of four lanes */
    HALF_SUM_A = -24,                /* of float16: 2^10 below 2^16 are less than 2^51 units */
    HALF_SQUARE_A = -9,              /* of float16: 2^10 squares below 2^32 are less than 2^51 units */
    /* From the unit of the squares' anchor down to one of which all rests of a lane, half a unit each, are at most 2^53. */
    HALF_SQUARE_REST = 52 - HALF_LOG_ADDS
};
_Static_assert(HALF_BLOCK / VB == 1 << HALF_LOG_ADDS, "each vector adds once to each of four");

/* What a pass computes. */
enum { HALF_SUM = 1, HALF_ABSOLUTE = 2, HALF_SQUARE = 4, HALF_EXTREMA = 8, HALF_ZEROS = 16 };
enum { HALF_REST = HALF_EXTREMA | HALF_ZEROS };

struct half_run;
struct half_seen;
typedef void half_pass(struct half_seen *, const struct half_run *, const uint8_t *, size_t, struct ahead);

struct half_run {
    __int128 sum, square, square_rest; /* in units of 2^sum_a, 2^square_a, and 2^HALF_SQUARE_REST less */
    uint32_t families;                 /* that this file folds; 0: none */
    unsigned pass;
    half_pass *fold;      /* does it */
    unsigned fails, skip; /* tiles that failed in a row; to pass over */
    int sum_a, square_a;
    bool placed;          /* they are chosen */
    uint16_t least, most; /* bfloat16: magnitudes that they take, as bits; least 1: any */
};

/* What a block has. */
struct half_seen {
    vf64 square_rests;
    vu64 sums, squares; /* by what the bits of four running anchors in each lane grew */
    vu64 odd;           /* not zero: NaNs or infinities */
    uint64_t zeros;
    uint8_t low[VB], high[VB];  /* keys */
    uint8_t most[VB], less[VB]; /* as of half_state */
};

struct half_state {
    vf64 sums[4], squares[4], square_rests[4];
    /* Of the elements' bits: the largest as signed numbers; the largest and the smallest as unsigned ones. */
    vs16 positive;
    vu16 negative, nearest, zeros;
    vu16 most, less; /* bfloat16: of magnitudes, and of magnitudes less one */
};

/* One vector: `look` is what extrema are of, `x` what is added and counted. brain: bfloat16. */
ALWAYS void half_step(struct half_state *s, vu16 look, vu16 x, unsigned pass, bool brain) {
    if (pass & HALF_EXTREMA) {
        s->positive = max_vs16(s->positive, (vs16)look);
        s->negative = max_vu16(s->negative, look);
        s->nearest = min_vu16(s->nearest, look);
    }
    if (pass & HALF_ZEROS) s->zeros -= (vu16)((x & 0x7fff) == 0);
    if (!(pass & (HALF_SUM | HALF_SQUARE))) return;
    if (brain) {
        s->most = max_vu16(s->most, x & 0x7fff);
        s->less = min_vu16(s->less, (x & 0x7fff) - 1);
    }
    if (pass & HALF_ABSOLUTE) x &= 0x7fff;
    vf32 a = brain ? (vf32)((vu32)x << 16) : halves_a(x), b = brain ? (vf32)((vu32)x & 0xffff0000u) : halves_b(x);
    vf64 wide[4] = {widen_low(a), widen_high(a), widen_low(b), widen_high(b)};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        if (pass & HALF_SUM) s->sums[i] = i % 2 && !brain ? fused_plus(wide[i], s->sums[i]) : s->sums[i] + wide[i];
        if (pass & HALF_SQUARE) {
            vf64 q = product_plus(wide[i], wide[i], s->squares[i]);
            s->square_rests[i] = fused_plus(product_minus(wide[i], wide[i], q - s->squares[i]), s->square_rests[i]);
            s->squares[i] = q;
        }
    }
}

ALWAYS void half_end(const struct half_state *s, struct half_seen *seen, vf64 m, vf64 square_m, unsigned pass,
                     bool brain) {
    const vu64 field = ALL(vu64, (uint64_t)2047 << 52);
    const int16_t infinity = brain ? CR_INFINITY_OF(BF16) : CR_INFINITY_OF(F16);
    seen->square_rests = (s->square_rests[0] + s->square_rests[1]) + (s->square_rests[2] + s->square_rests[3]);
    seen->sums = seen->squares = seen->odd = (vu64){0};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        if (pass & HALF_SUM) seen->sums += (vu64)s->sums[i] - (vu64)m;
        if (pass & HALF_SUM) seen->odd |= ((vu64)s->sums[i] ^ (vu64)m) & field;
        if (pass & HALF_SQUARE) seen->squares += (vu64)s->squares[i] - (vu64)square_m;
        if (pass & HALF_SQUARE) seen->odd |= ((vu64)s->squares[i] ^ (vu64)square_m) & field;
    }
    /* Where all of a lane have one sign, the nearest to zero is the other extremum. The keys of NaNs lie beyond those of the
     * infinities. */
    vs16 nearest = (vs16)s->nearest, negative = (vs16)s->negative;
    vs16 low = keys_16((vu8)SELECT(vs16, negative < 0, negative, nearest), KEY_FLOAT);
    vs16 high = keys_16((vu8)SELECT(vs16, s->positive < 0, nearest, s->positive), KEY_FLOAT);
    if (pass == HALF_REST) seen->odd = (vu64)((vs16)(high > infinity) | (vs16)(low < (int16_t)~infinity));
    memcpy(seen->low, &low, VB);
    memcpy(seen->high, &high, VB);
    memcpy(seen->most, &s->most, VB);
    memcpy(seen->less, &s->less, VB);
}

ALWAYS void half_block(struct half_seen *seen, const struct half_run *run, const uint8_t *p, size_t bytes,
                       unsigned pass, bool brain, struct ahead ahead) {
    struct half_state s = {.positive = ALL(vs16, INT16_MIN), .nearest = ~(vu16){0}, .less = ~(vu16){0}};
    const vf64 m = ALL(vf64, anchor_of(run->sum_a)), square_m = ALL(vf64, anchor_of(run->square_a));
    size_t at = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        s.sums[i] = m;
        s.squares[i] = square_m;
    }
    EACH_LONG_STEP(at, bytes, VB, ahead, {
        vu16 x = LOAD_ONCE(vu16, p + at);
        fetch(ahead, at, VB);
        half_step(&s, x, x, pass, brain);
    })
    seen->zeros = 0;
    if (at < bytes) {
        vu16 x = {0};
        memcpy(&x, p + at, bytes - at);
        half_step(&s, (vu16)last_16(p + at, bytes - at), x, pass, brain);
        seen->zeros -= (at + VB - bytes) / 2;
    }
    if (pass & HALF_ZEROS) {
        vu64 pairs = (vu64)sum_pairs((vs16)s.zeros, ALL(vs16, 1));
        seen->zeros += lanes_u64((pairs & 0xffffffffu) + (pairs >> 32));
    }
    half_end(&s, seen, m, square_m, pass, brain);
}

#define INSTANCE(name, pass, brain)                                                                     \
    NEVER void name(struct half_seen *seen, const struct half_run *run, const uint8_t *p, size_t bytes, \
                    struct ahead ahead) {                                                               \
        half_block(seen, run, p, bytes, pass, brain, ahead);                                            \
    }
#define INSTANCES(type, brain)                                                         \
    INSTANCE(half_squares_##type, HALF_SQUARE, brain)                                  \
    INSTANCE(half_keys_##type, HALF_REST, brain)                                       \
    INSTANCE(half_square_rest_##type, HALF_SQUARE | HALF_REST, brain)                  \
    INSTANCE(half_both_##type, HALF_SUM | HALF_SQUARE, brain)                          \
    INSTANCE(half_rest_##type, HALF_SUM | HALF_REST, brain)                            \
    INSTANCE(half_all_##type, HALF_SUM | HALF_SQUARE | HALF_REST, brain)               \
    INSTANCE(half_absolute_both_##type, HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE, brain) \
    INSTANCE(half_absolute_rest_##type, HALF_SUM | HALF_ABSOLUTE | HALF_REST, brain)   \
    INSTANCE(half_absolute_all_##type, HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE | HALF_REST, brain)
INSTANCES(f16, false)
INSTANCES(bf16, true)
#if defined(VEC_AVX512)
INSTANCE(half_square_extrema_f16, HALF_SQUARE | HALF_EXTREMA, false)
INSTANCE(half_extrema_f16, HALF_SUM | HALF_EXTREMA, false)
INSTANCE(half_all_extrema_f16, HALF_SUM | HALF_SQUARE | HALF_EXTREMA, false)
#endif
#undef INSTANCES
#undef INSTANCE

/* By pass; those that are never asked for are missing. Zeros are counted with the extrema, unasked too, but not in `quick` ones. */
enum { HALF_PLACES = 16 };
#define HALF_PASSES(type)                                                                                        \
    {                                                                                                            \
        [HALF_SQUARE] = half_squares_##type, [HALF_EXTREMA] = half_keys_##type,                                  \
        [HALF_SQUARE | HALF_EXTREMA] = half_square_rest_##type, [HALF_SUM | HALF_SQUARE] = half_both_##type,     \
        [HALF_SUM | HALF_EXTREMA] = half_rest_##type, [HALF_SUM | HALF_SQUARE | HALF_EXTREMA] = half_all_##type, \
        [HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE] = half_absolute_both_##type,                                    \
        [HALF_SUM | HALF_ABSOLUTE | HALF_EXTREMA] = half_absolute_rest_##type,                                   \
        [HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE | HALF_EXTREMA] = half_absolute_all_##type                       \
    }
static half_pass *const half_passes[2][HALF_PLACES] = {HALF_PASSES(f16), HALF_PASSES(bf16)};
/* By a function, because a table of addresses is filled in when the library is loaded. */
static half_pass *half_quick(unsigned pass) {
#if defined(VEC_AVX512)
    if (pass == (HALF_SQUARE | HALF_REST)) return half_square_extrema_f16;
    if (pass == (HALF_SUM | HALF_REST)) return half_extrema_f16;
    if (pass == (HALF_SUM | HALF_SQUARE | HALF_REST)) return half_all_extrema_f16;
#else
    (void)pass;
#endif
    return NULL;
}
#undef HALF_PASSES

static void half_begin(struct half_run *run, const cr_partial *part) {
    const uint32_t sums = CR_FAM_SUM | CR_FAM_SUMABS, rest = CR_FAM_EXTREMA | CR_FAM_COUNTS;
    uint32_t families = part->families & (sums | CR_FAM_SUMSQ | rest);
    run->families = 0;
    run->fails = run->skip = 0;
    if (!cr_fast_on(CR_FAST_HALF)) return;
    if ((part->dtype != CR_F16 && part->dtype != CR_BF16) || (part->families & CR_FAM_PROD)) return;
    if (families & CR_FAM_SUM) families &= ~(uint32_t)CR_FAM_SUMABS; /* one of the two goes alone */
    if ((families & (families - 1)) == 0 && families != CR_FAM_SUMSQ) return;
    run->families = families;
    run->pass = (families & sums ? HALF_SUM : 0) | (families & CR_FAM_SUMABS ? HALF_ABSOLUTE : 0) |
                (families & CR_FAM_SUMSQ ? HALF_SQUARE : 0) | (families & rest ? HALF_REST : 0);
    run->fold = half_passes[part->dtype == CR_BF16][run->pass % HALF_PLACES];
    half_pass *quick = half_quick(run->pass);
    if (quick != NULL && part->dtype == CR_F16 && !(families & CR_FAM_COUNTS)) run->fold = quick;
    run->sum = run->square = run->square_rest = 0;
    run->sum_a = HALF_SUM_A;
    run->square_a = HALF_SQUARE_A;
    run->placed = part->dtype == CR_F16;
}

/* 2^exponent, well inside float64's range. */
static double half_power(int exponent) {
    uint64_t bits = (uint64_t)(exponent + CR_F64_BIAS) << CR_F64_MANTISSA;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* value · 2^a, which is a multiple of the grid's unit. */
static void half_put(cr_partial *part, cr_sum_at at, __int128 value, int a) {
    const int grid = cr_sum_grid(at, (cr_dtype)part->dtype);
    if (a < grid) {
        value >>= grid - a;
        a = grid;
    }
    cr_partial_put(part, at, value, (unsigned)(a - grid));
}

static void half_flush(struct half_run *run, cr_partial *part) {
    if (run->families & CR_FAM_SUM) half_put(part, CR_AT_SUM, run->sum, run->sum_a);
    if (run->families & CR_FAM_SUMABS) half_put(part, CR_AT_SUMABS, run->sum, run->sum_a);
    if (run->families & CR_FAM_SUMSQ) {
        half_put(part, CR_AT_SUMSQ, run->square, run->square_a);
        half_put(part, CR_AT_SUMSQ, run->square_rest, run->square_a - HALF_SQUARE_REST);
    }
    run->sum = run->square = run->square_rest = 0;
}

/* Chooses anchors for bfloat16 of exponents low … high, and notes what they take. False: they lie too far apart. */
static bool half_place(struct half_run *run, cr_partial *part, int low, int high) {
    enum { L = HALF_LOG_ADDS, BIAS = CR_F32_BIAS, MANTISSA = CR_BF16_MANTISSA };
    const bool sums = run->pass & HALF_SUM, squares = run->pass & HALF_SQUARE;
    /* A block's sum is at most 2^51 units, and its rests are at most 2^53 of HALF_SQUARE_REST's. */
    int a = high + 1 + L - 51, most = low - MANTISSA;
    int square_a = 2 * (high + 1) + L - 51, square_most = 2 * (low - MANTISSA) + HALF_SQUARE_REST;
    if ((sums && a > most) || (squares && square_a > square_most)) return false;
    half_flush(run, part);
    a += (most - a) / 3 < 4 ? (most - a) / 3 : 4; /* data runs out downwards more often */
    square_a += (square_most - square_a) / 3 < 8 ? (square_most - square_a) / 3 : 8;
    int top = a + 50 - L, bottom = a + MANTISSA;
    int square_top = ((square_a + 51 - L) >> 1) - 1,
        square_bottom = ((square_a - HALF_SQUARE_REST + 1) >> 1) + MANTISSA;
    if (!sums || (squares && square_top < top)) top = square_top;
    if (!sums || (squares && square_bottom > bottom)) bottom = square_bottom;
    top = top + BIAS < CR_F32_TOP ? top + BIAS : CR_F32_TOP - 1;
    run->most = (uint16_t)(((top + 1) << MANTISSA) - 1);
    run->least = bottom + BIAS <= 1 ? 1 : (uint16_t)((bottom + BIAS) << MANTISSA);
    run->sum_a = a;
    run->square_a = square_a;
    return run->placed = true;
}

/* Whether the anchors took all that the pass saw; if not, whether others will. */
static bool half_inside(struct half_run *run, cr_partial *part, const struct half_seen *seen, bool *again) {
    uint16_t most = 0, less = UINT16_MAX;
    for (size_t i = 0; i < VB; i += 2) {
        uint16_t x, y;
        memcpy(&x, seen->most + i, 2);
        memcpy(&y, seen->less + i, 2);
        most = x > most ? x : most;
        less = y < less ? y : less;
    }
    *again = false;
    if (run->placed && most <= run->most && less >= run->least - 1) return !any_bit(seen->odd);
    int high = most >> CR_BF16_MANTISSA, low = less == UINT16_MAX ? high : (less + 1) >> CR_BF16_MANTISSA;
    if (high == CR_F32_TOP) return false;
    *again = half_place(run, part, (low < 1 ? 1 : low) - CR_F32_BIAS, (high < 1 ? 1 : high) - CR_F32_BIAS);
    return false;
}

/* Folds one block, or leaves everything as it was and returns false. */
static bool half_tile(struct half_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p, size_t n,
                      uint64_t index, struct ahead ahead) {
    const bool brain = part->dtype == CR_BF16, certain = !brain || run->pass == HALF_REST;
    struct half_seen seen;
    bool again;
    fetch_pages(ahead, p, n * 2);
    run->fold(&seen, run, p, n * 2, ahead);
    if (!certain && !half_inside(run, part, &seen, &again)) {
        if (!again) return false;
        run->fold(&seen, run, p, n * 2, ahead);
        if (!half_inside(run, part, &seen, &again)) return false;
    } else if (certain && any_bit(seen.odd)) {
        return false;
    }
    const double scale = half_power(HALF_SQUARE_REST - run->square_a);
    for (size_t i = 0; i < VB / 8; i++) {
        run->sum += (int64_t)seen.sums[i];
        run->square += (int64_t)seen.squares[i];
        run->square_rest += (int64_t)(seen.square_rests[i] * scale);
    }
    if ((run->families & CR_FAM_EXTREMA) && part->wants != 0)
        extrema_take_16(extrema, part->wants, seen.low, seen.high, p, n, index);
    if (run->families & CR_FAM_COUNTS) part->nonzero += n - seen.zeros;
    return true;
}

#endif
