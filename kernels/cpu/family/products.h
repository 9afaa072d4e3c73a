/* products: exact sums of pairs of floats. A block's products are float64s, and their sums are those of float64 (anchor.h): narrower
 * types' products are exact, and a float64's is h + l, of which h is the product rounded and l the rest.
 *
 * A product that overflows, or whose rest is lost below the range, is told by the processor's flags, or by a look at all exponents
 * where it has none. A block with such a one goes the generic way (pair.h), and so does one of infinities, where they would mislead.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PRODUCTS_H
#define CURED_KERNELS_CPU_FAMILY_PRODUCTS_H

#include "kernels/core/big.h"
#include "kernels/cpu/family/pair_chain.h"

/* A sum of float64s, on their own grid. */
struct pair_stream {
    struct anchor_run run;
    struct spill spill;
    int64_t limb[CR_F64_LIMBS];
    uint32_t pending;
    bool begun;
};

struct pair_run {
    struct pair_stream products, rests;
    struct pair_chain chain; /* of products, too */
    bool flags;              /* the processor tells what was lost */
    double high[PAIR_TERMS * PAIR_BLOCK] __attribute__((aligned(VB))),
        low[PAIR_TERMS * PAIR_BLOCK] __attribute__((aligned(VB)));
#ifndef CURED_SUM_ALONE
    uint16_t halves[2][PAIR_BLOCK]; /* of float8s */
#endif
};

static void pair_begin(struct pair_run *run) {
    run->products.begun = run->rests.begun = false;
    chain_reset(&run->chain);
#if defined(VEC_TELLS_INEXACT)
    run->flags = cr_fast_tells_inexact();
#else
    run->flags = false;
#endif
}

/* Nothing is fetched. */
static struct ahead no_ahead(const void *p) { return (struct ahead){(uintptr_t)p, 63, (uintptr_t)p, 0}; }

static void pair_stream_begin(struct pair_stream *stream) {
    if (stream->begun) return;
    memset(stream->limb, 0, sizeof stream->limb);
    stream->pending = 0;
    stream->begun = true;
    anchor_begin(&stream->run, stream->limb, CR_F64_LIMBS, &stream->pending, CR_F64_GRID, false, &stream->spill);
}

/* Adds n float64s of a block. */
static void pair_add(struct pair_stream *stream, const double *x, size_t n) {
    pair_stream_begin(stream);
    const uint8_t *p = (const uint8_t *)x;
    anchor_tile_f64(&stream->run, p, n * 8, false, no_ahead(p));
}

/* What a stream has come to, times 2^scale, to limbs on a grid; and, unless special is NULL, its NaNs and infinities. */
static void pair_end(struct pair_stream *stream, int64_t *limb, unsigned limbs, uint32_t *pending, int grid, int scale,
                     cr_specials *special) {
    if (!stream->begun) return;
    anchor_flush(&stream->run);
    deep_flush(&stream->run);
    bins_flush(&stream->run, CR_F64);
    cr_big total;
    const bool negative = cr_big_from_limbs(&total, stream->limb, CR_F64_LIMBS);
    const int above = CR_F64_GRID + scale - grid;
    for (unsigned i = 0; i < total.n; i++) {
        if (total.d[i] == 0) continue; /* as most are, of a short array */
        const int bit = 32 * (int)i + above, below = bit < 0 ? (bit < -31 ? 31 : -bit) : 0; /* where all bits are 0 */
        cr_limbs_put(limb, limbs, pending, total.d[i] >> below, negative, bit < 0 ? 0 : (unsigned)bit);
    }
    if (special == NULL) return;
    special->nans += stream->run.special.nans;
    special->pinfs += stream->run.special.pinfs;
    special->ninfs += stream->run.special.ninfs;
}

/* The chain's sum goes to the stream of products. */
static struct chain_to pair_chain_to(struct pair_run *run) {
    return (struct chain_to){run->products.limb, CR_F64_LIMBS, &run->products.pending, CR_F64_GRID};
}

/* Ends the chain, before the stream of products ends. */
static void pair_end_chain(struct pair_run *run) {
    const struct chain_to to = pair_chain_to(run);
    chain_flush(&run->chain, &to);
}

/* How many of a stream's elements were no numbers. */
static uint64_t pair_specials(const struct pair_stream *stream) {
    const cr_specials *special = &stream->run.special;
    return stream->begun ? special->nans + special->pinfs + special->ninfs : 0;
}

/* How many products n elements give: whole vectors of them, in any order, with zeros for those that are missing. */
ALWAYS size_t pair_padded(cr_dtype dtype, size_t n) {
    const size_t lanes = VB / (cr_dtype_size(dtype) == 1 ? 2 : cr_dtype_size(dtype));
    return (n + lanes - 1) / lanes * lanes;
}

/* The vector at p, of which there are so many bytes; what is missing is 0. */
#define PAIR_LOAD(type, p, bytes)                                 \
    ({                                                            \
        type part_ = {0};                                         \
        memcpy(&part_, (p), (bytes) < VB ? (bytes) : (size_t)VB); \
        part_;                                                    \
    })
/* Calls once(a, b, at) for the vectors of two blocks. */
#define EACH_PAIR(type, x, y, bytes, ax, ay, a, b, at, ...)                                                  \
    do {                                                                                                     \
        size_t at = 0;                                                                                       \
        for (; at + VB <= (bytes); at += VB) {                                                               \
            const type a = LOAD(type, (x) + at), b = LOAD(type, (y) + at);                                   \
            fetch(ax, at, VB);                                                                               \
            fetch(ay, at, VB);                                                                               \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
        if (at < (bytes)) {                                                                                  \
            const type a = PAIR_LOAD(type, (x) + at, (bytes)-at), b = PAIR_LOAD(type, (y) + at, (bytes)-at); \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    } while (0)

/* Products of float64s, of the second times scale, and their rests. Not inlined: the flags are read around it. */
NEVER void products_f64(const uint8_t *x, const uint8_t *y, double scale, size_t n, struct pair_ahead ahead,
                        double *high, double *low) {
    const vf64 times = ALL(vf64, scale);
    EACH_PAIR(vf64, x, y, n * 8, ahead.x, ahead.y, a, b, at, {
        const vf64 scaled = b * times, h = ROUNDED(a * scaled), l = product_error(a, scaled, h);
        memcpy((uint8_t *)high + at, &h, sizeof h);
        memcpy((uint8_t *)low + at, &l, sizeof l);
    });
}

ALWAYS void products_store(double *to, vf32 a, vf32 b, double scale) {
    const vf64 times = ALL(vf64, scale), low = widen_low(a) * widen_low(b), high = widen_high(a) * widen_high(b);
    const vf64 both[2] = {low * times, high * times};
    memcpy(to, both, sizeof both);
}

NEVER void products_f32(const uint8_t *x, const uint8_t *y, double scale, size_t n, struct pair_ahead ahead,
                        double *high) {
    EACH_PAIR(vf32, x, y, n * 4, ahead.x, ahead.y, a, b, at, { products_store(high + at / 4, a, b, scale); });
}

#ifndef CURED_SUM_ALONE
NEVER void products_bf16(const uint8_t *x, const uint8_t *y, double scale, size_t n, struct pair_ahead ahead,
                         double *high) {
    EACH_PAIR(vu32, x, y, n * 2, ahead.x, ahead.y, a, b, at, {
        products_store(high + at / 2, (vf32)(a << 16), (vf32)(b << 16), scale);
        products_store(high + at / 2 + VB / 4, (vf32)(a & 0xffff0000u), (vf32)(b & 0xffff0000u), scale);
    });
}

NEVER void products_f16(const uint8_t *x, const uint8_t *y, double scale, size_t n, struct pair_ahead ahead,
                        double *high) {
    EACH_PAIR(vu16, x, y, n * 2, ahead.x, ahead.y, a, b, at, {
        products_store(high + at / 2, halves_a(a), halves_a(b), scale);
        products_store(high + at / 2 + VB / 4, halves_b(a), halves_b(b), scale);
    });
}

/* Float8s as float16s: those of E4M3 times 2^-8. */
enum { PAIR_E4M3_SCALE = 8 };
static const uint8_t *pair_widen(cr_dtype dtype, const uint8_t *p, size_t n, uint16_t *to) {
    for (size_t i = 0; i < n; i++) {
        const uint16_t byte = p[i], magnitude = byte & 0x7f, sign = (uint16_t)((byte & 0x80) << 8);
        const uint16_t e4m3 = magnitude == 0x7f ? 0x7e00 : (uint16_t)(magnitude << 7);
        to[i] = dtype == CR_F8_E5M2 ? (uint16_t)(byte << 8) : (uint16_t)(sign | e4m3);
    }
    return (const uint8_t *)to;
}
#endif

/* Whether all of n float64s are zeros, or so far inside the range that products of any two of them lose nothing. */
NEVER bool pair_inside(const uint8_t *p, size_t n) {
    const uint64_t least = (uint64_t)(CR_F64_BIAS - 480) << 52, most = (uint64_t)(CR_F64_BIAS + 500) << 52;
    bool inside = true;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, p + 8 * i, sizeof bits);
        bits &= INT64_MAX;
        inside &= bits == 0 || bits - least < most - least;
    }
    return inside;
}

#if defined(VEC_TELLS_INEXACT)
/* Whether a product was too large, lost a part of its rest, or was none, since this was last cleared. Only functions that are not inlined
 * compute between the two. */
#if defined(VEC_NEON)
enum { PAIR_LOST = CR_FLAG_UNDERFLOW | CR_FLAG_OVERFLOW | CR_FLAG_INVALID };
ALWAYS bool lost_seen(void) { return (cr_flags() & PAIR_LOST) != 0; }
ALWAYS void lost_clear(void) { cr_flags_set(cr_flags() & ~(uint64_t)PAIR_LOST); }
#else
enum { PAIR_LOST = _MM_EXCEPT_UNDERFLOW | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_INVALID };
ALWAYS bool lost_seen(void) { return (_mm_getcsr() & PAIR_LOST) != 0; }
ALWAYS void lost_clear(void) {
    if (lost_seen()) _mm_setcsr(_mm_getcsr() & ~(unsigned)PAIR_LOST);
}
#endif
#endif

/* Products and rests of float64s; false: some are not exact. */
static bool pair_products_f64(struct pair_run *run, const uint8_t *x, const uint8_t *y, double scale, size_t n,
                              struct pair_ahead ahead, size_t at) {
#if defined(VEC_TELLS_INEXACT)
    if (run->flags) {
        lost_clear();
        products_f64(x, y, scale, n, ahead, run->high + at, run->low + at);
        return !lost_seen();
    }
#endif
    if (!pair_inside(x, n) || !pair_inside(y, n)) return false;
    products_f64(x, y, scale, n, ahead, run->high + at, run->low + at);
    return true;
}

/* Products of a block of x and y times scale, from place `at` of the run's on; false: some are not exact. */
static bool pair_products(struct pair_run *run, cr_dtype dtype, const uint8_t *x, const uint8_t *y, double scale,
                          size_t n, struct pair_ahead ahead, size_t at) {
    double *high = run->high + at;
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F64:
            return pair_products_f64(run, x, y, scale, n, ahead, at);
        case CR_FORMAT_F32:
            products_f32(x, y, scale, n, ahead, high);
            break;
        case CR_FORMAT_BF16:
#ifndef CURED_SUM_ALONE
            products_bf16(x, y, scale, n, ahead, high);
            break;
#endif
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2:
        case CR_FORMAT_F16:
#ifndef CURED_SUM_ALONE
            products_f16(x, y, scale, n, ahead, high);
            break;
#endif
        case CR_FORMAT_INT:
            return false;
    }
    return true;
}

#if defined(VEC_TELLS_INEXACT)
/* Whole blocks whose products are likely to fit the anchors that the last ones did are never stored. */

/* What two anchors take of a block. */
struct pair_try {
    struct anchor_try t;
    struct anchor_sums s;
    struct guard g;
};

ALWAYS void pair_try_begin(struct pair_try *p, const struct anchor_run *run) {
    p->g = (struct guard){{0}, ~(vu32){0}};
#pragma GCC unroll 2
    for (int level = 0; level < 2; level++) {
        p->s.acc[level][0] = run->acc[level][0];
        p->s.acc[level][1] = run->acc[level][1];
        p->s.m[level] = ALL(vf64, anchor_of(run->a - CR_ANCHOR_STEP * level));
    }
}

ALWAYS void pair_try_add(struct pair_try *p, int which, vf64 x) {
    const vu64 magnitude = (vu64)x & ALL(vu64, INT64_MAX);
    p->g.most = max_vu32(p->g.most, (vu32)magnitude);
    p->g.least = min_vu32(p->g.least, (vu32)(magnitude - 1));
    chain_f64(p->s.acc, p->s.m, 0, 2, which, x);
}

ALWAYS void pair_try_end(struct pair_try *p, struct anchor_try *to) {
#pragma GCC unroll 2
    for (int level = 0; level < 2; level++) {
        to->acc[level][0] = p->s.acc[level][0];
        to->acc[level][1] = p->s.acc[level][1];
    }
    to->guard = p->g;
    to->special = (cr_specials){0};
}

NEVER void pair_block_f64(const struct anchor_run *run, struct anchor_try *to, const struct anchor_run *rests,
                          struct anchor_try *to_rests, const uint8_t *x, const uint8_t *y, struct pair_ahead ahead) {
    struct pair_try high, low;
    pair_try_begin(&high, run);
    pair_try_begin(&low, rests);
    for (size_t at = 0; at < PAIR_BLOCK * 8; at += 2 * VB) {
        fetch(ahead.x, at, 2 * VB);
        fetch(ahead.y, at, 2 * VB);
#pragma GCC unroll 2
        for (int which = 0; which < 2; which++) {
            const vf64 a = LOAD(vf64, x + at + which * VB), b = LOAD(vf64, y + at + which * VB), h = ROUNDED(a * b);
            pair_try_add(&high, which, h);
            pair_try_add(&low, which, product_error(a, b, h));
        }
    }
    pair_try_end(&high, to);
    pair_try_end(&low, to_rests);
}

/* Whether a stream's anchors are where a block may be tried. Makes room for one. */
static bool pair_ready(struct pair_stream *stream) {
    struct anchor_run *run = &stream->run;
    if (!stream->begun || run->tier != TIER_NARROW || !run->placed || run->masked) return false;
    reserve_f64(run, TIER_NARROW, PAIR_BLOCK * 8);
    return true;
}

static void pair_take(struct pair_stream *stream, const struct anchor_try *t) {
    commit_f64(&stream->run, t, TIER_NARROW, PAIR_BLOCK * 8);
    stream->run.calm = stream->run.rough = 0;
}

/* A whole block of float64; false: it is to be added otherwise. */
static bool pair_fused_f64(struct pair_run *run, const uint8_t *x, const uint8_t *y, struct pair_ahead ahead) {
    struct pair_stream *products = &run->products, *rests = &run->rests;
    struct anchor_try t, u;
    if (!run->flags || !pair_ready(products) || !pair_ready(rests)) return false;
    lost_clear();
    pair_block_f64(&products->run, &t, &rests->run, &u, x, y, ahead);
    if (lost_seen() || !inside_f64(&products->run, &t.guard, TIER_NARROW) ||
        !inside_f64(&rests->run, &u.guard, TIER_NARROW))
        return false;
    pair_take(products, &t);
    pair_take(rests, &u);
    return true;
}
#endif

/* Whole blocks, without storing their products: n is a multiple of PAIR_BLOCK, up to CHAIN_STRETCH. False: they are to be added
 * otherwise. */
static bool pair_fused(struct pair_run *run, cr_dtype dtype, enum chain_terms terms, const uint8_t *x, const uint8_t *y,
                       size_t n, struct pair_ahead ahead) {
    const cr_format coded =
        cr_dtype_size(dtype) == 1 ? CR_FORMAT_F16 : cr_dtype_format(dtype); /* float8s are float16s here */
#if defined(VEC_TELLS_INEXACT)
    if (dtype == CR_F64 && terms == CHAIN_PRODUCT && n == PAIR_BLOCK) return pair_fused_f64(run, x, y, ahead);
#endif
    if (dtype == CR_F64) return false;
    pair_stream_begin(&run->products);
    const struct chain_to to = pair_chain_to(run);
    return chain_take(&run->chain, &to, coded, terms, x, y, n, ahead);
}

/* Adds the products of a block of at most PAIR_BLOCK. False: some are not exact, and nothing was added. *odd: some are no finite
 * numbers. */
static bool pair_take_block(struct pair_run *run, cr_dtype dtype, const uint8_t *x, const uint8_t *y, size_t n,
                            struct pair_ahead ahead, bool *odd) {
    const uint64_t before = pair_specials(&run->products);
    const size_t wide = pair_padded(dtype, n);
    if (n == PAIR_BLOCK && pair_fused(run, dtype, CHAIN_PRODUCT, x, y, n, ahead)) return true;
    if (!pair_products(run, dtype, x, y, 1, n, ahead, 0)) return false;
    pair_add(&run->products, run->high, wide);
    if (dtype == CR_F64) pair_add(&run->rests, run->low, wide);
    *odd = pair_specials(&run->products) != before;
    return true;
}

#endif
