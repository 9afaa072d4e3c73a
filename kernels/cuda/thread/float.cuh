/* float: the float types as the exact sums see them: how an element becomes a float64, how its magnitude is compared, and
 * which window of exponents the anchors take. The arithmetic of the windows is that of kernels/cpu/family/anchor_type.inc.
 *
 * Thread: GPU. Owner: none; constants and pure functions. */
#ifndef CURED_KERNELS_CUDA_THREAD_FLOAT_CUH
#define CURED_KERNELS_CUDA_THREAD_FLOAT_CUH

#include "kernels/core/anchor.h"
#include "kernels/cuda/thread/array.cuh"

enum { CR_SUM_PLAIN, CR_SUM_ABSOLUTE, CR_SUM_SQUARE };
/* Sums of pairs, in the order of kernels/core/sum.def: which of a state's sums is whose. */
enum { CR_PAIR_DOT, CR_PAIR_SQDIST, CR_PAIR_WEIGHTS };

/* How far the magnitudes of what has been seen are apart. `most` is of |bits|; `least` of |bits| - 1, so that zero is the
 * largest: as 32-bit patterns (f64: the upper halves), or two 16-bit ones side by side. */
struct cr_span {
    uint32_t most, least;
};

/* 2^exponent, from 2^-1022 to 2^1023. */
CR_DEVICE double cr_power(int exponent) { return __hiloint2double((exponent + 1023) << 20, 0); }

/* What a type offers beside its numbers: glance, a quick look that takes zeros for too small (worst: the largest distance above
 * `low`, in units of half of the field's); look, a careful one; value and lane,
 * elements as float64; strip, takes NaNs and infinities out; scaled, an element times 2^SCALE: of the 16-bit types the same bits further right, denormals and all, where
 * a conversion would be the bottleneck. */

/* Counts a NaN, +inf or -inf in `found`, ten bits for each, and makes a zero of it. */
CR_DEVICE uint32_t cr_count_special(bool nan, bool negative) { return nan ? 1u : negative ? 1u << 20 : 1u << 10; }
CR_DEVICE void cr_strip_word(uint32_t &found, uint32_t &w) {
    const uint32_t magnitude = w & 0x7fffffffu;
    if (magnitude < 0x7f800000u) return;
    found += cr_count_special(magnitude != 0x7f800000u, w >> 31);
    w = 0;
}
CR_DEVICE void cr_strip_pair(uint32_t &found, uint32_t &low, uint32_t &high) {
    const uint32_t magnitude = high & 0x7fffffffu;
    if (magnitude < 0x7ff00000u) return;
    found += cr_count_special(magnitude != 0x7ff00000u || low != 0, high >> 31);
    low = high = 0;
}
/* Two halves of a type whose infinity is INFINITE. */
template <uint32_t INFINITE> CR_DEVICE void cr_strip_halves(uint32_t &found, uint32_t &w) {
#pragma unroll
    for (int shift = 0; shift < 32; shift += 16) {
        const uint32_t half = w >> shift & 0xffffu, magnitude = half & 0x7fffu;
        if (magnitude < INFINITE) continue;
        found += cr_count_special(magnitude != INFINITE, half >> 15);
        w &= 0xffff0000u >> shift;
    }
}

/* What follows from a type's format, see kernels/core/float.h and anchor.h. ONE_WINDOW: it takes every number. INFINITE: the least
 * magnitude that is no number. DEPTH: how far below an element's highest bit its lowest one may lie. SPLIT: an element is two float64s.
 * SPARE: binades above the largest element that anchors have to spare; SHARES: log2 of how many float64s of a split one they take.
 * number: what anchors are, and elements as they are added to them; thread/narrow.cuh has types that do with float32. */
#define CR_FORMAT_ALONE(SYMBOL)                                                                                              \
    typedef double number;                                                                                                   \
    static constexpr bool SPLIT = false;                                                                                     \
    static constexpr int DEPTH = CR_##SYMBOL##_MANTISSA, SPARE = 0, SHARES = 0;                                              \
    static constexpr int SIZE = CR_##SYMBOL##_BYTES, MANTISSA = CR_##SYMBOL##_MANTISSA, BIAS = CR_##SYMBOL##_BIAS,           \
                         TOP = CR_##SYMBOL##_TOP, GRID = CR_##SYMBOL##_GRID, SQUARE_GRID = CR_##SYMBOL##_SQUARE_GRID,        \
                         SUM_LIMBS = CR_##SYMBOL##_LIMBS, SQUARE_LIMBS = CR_##SYMBOL##_SQUARE_LIMBS;                         \
    static constexpr bool ONE_WINDOW = TOP <= 31, INFINITIES = !CR_##SYMBOL##_ONE_NAN;                                       \
    static constexpr uint64_t INFINITE = ((uint64_t)TOP << MANTISSA) + (INFINITIES ? 0 : (1 << MANTISSA) - 1)
#define CR_FORMAT(SYMBOL)                                                                                                    \
    CR_FORMAT_ALONE(SYMBOL);                                                                                                 \
    static constexpr int LEVELS = CR_##SYMBOL##_LEVELS, SQUARE_LEVELS = CR_##SYMBOL##_SQUARE_LEVELS,                         \
                         MOST = CR_##SYMBOL##_MOST, SQUARE_MOST = CR_##SYMBOL##_SQUARE_MOST,                                 \
                         SQUARE_LOWEST = CR_##SYMBOL##_SQUARE_LOWEST

struct cr_f32 {
    CR_FORMAT(F32);
    static constexpr int FIELD = MANTISSA; /* where the exponent begins in what is looked at */
    static constexpr bool PACKED = false;
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t low) {
#pragma unroll
        for (int i = 0; i < 4; i++) worst = max(worst, cr_word(v, i) + cr_word(v, i) - low);
    }
    CR_DEVICE static double value(uint64_t bits) { return (double)__uint_as_float((uint32_t)bits); }
    CR_DEVICE static void look(cr_span &span, const uint4 &v) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t magnitude = cr_word(v, i) & 0x7fffffffu;
            span.most = max(span.most, magnitude);
            span.least = min(span.least, magnitude - 1);
        }
    }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        cr_strip_word(found, v.x), cr_strip_word(found, v.y), cr_strip_word(found, v.z), cr_strip_word(found, v.w);
    }
    static constexpr int SCALE = 0;
    CR_DEVICE static double lane(const uint4 &v, int e) { return value(cr_word(v, e)); }
    CR_DEVICE static double scaled(const uint4 &v, int e) { return lane(v, e); }
};

struct cr_f64 {
    CR_FORMAT(F64);
    static constexpr int FIELD = MANTISSA - 32; /* of the upper half */
    static constexpr bool PACKED = false;
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t low) {
#pragma unroll
        for (int i = 1; i < 4; i += 2) worst = max(worst, cr_word(v, i) + cr_word(v, i) - low);
    }
    CR_DEVICE static double value(uint64_t bits) { return __longlong_as_double((long long)bits); }
    /* The lower half only tells zero from the smallest. */
    CR_DEVICE static void look(cr_span &span, const uint4 &v) {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            uint32_t magnitude = (cr_word(v, i + 1) & 0x7fffffffu) | min(cr_word(v, i), 1u);
            span.most = max(span.most, magnitude);
            span.least = min(span.least, magnitude - 1);
        }
    }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        cr_strip_pair(found, v.x, v.y);
        cr_strip_pair(found, v.z, v.w);
    }
    static constexpr int SCALE = 0;
    CR_DEVICE static double lane(const uint4 &v, int e) {
        return __hiloint2double((int)cr_word(v, 2 * e + 1), (int)cr_word(v, 2 * e));
    }
    CR_DEVICE static double scaled(const uint4 &v, int e) { return lane(v, e); }
};

/* Two 16-bit elements at once. |x| + 0x7fff with its top bit flipped is |x| - 1, modulo 2^16, without a borrow. */
CR_DEVICE void cr_look_halves(cr_span &span, const uint4 &v) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t magnitude = cr_word(v, i) & 0x7fff7fffu;
        span.most = __vmaxu2(span.most, magnitude);
        span.least = __vminu2(span.least, (magnitude + 0x7fff7fffu) ^ 0x80008000u);
    }
}

/* Half e of a word, at its upper end. */
CR_DEVICE int cr_upper(uint32_t word, int e) { return (int)(e % 2 ? word : word << 16); }

/* A borrow from the lower half comes only with a lower half that is out of bounds itself. */
CR_DEVICE void cr_glance_halves(uint32_t &worst, const uint4 &v, uint32_t low) {
#pragma unroll
    for (int i = 0; i < 4; i++) worst = __vmaxu2(worst, (cr_word(v, i) & 0x7fff7fffu) - low);
}

struct cr_bf16 {
    CR_FORMAT(BF16);
    static constexpr int FIELD = MANTISSA;
    static constexpr bool PACKED = true;
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t low) { cr_glance_halves(worst, v, low); }
    CR_DEVICE static double value(uint64_t bits) { return (double)__uint_as_float((uint32_t)bits << 16); }
    CR_DEVICE static void look(cr_span &span, const uint4 &v) { cr_look_halves(span, v); }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        cr_strip_halves<0x7f80>(found, v.x), cr_strip_halves<0x7f80>(found, v.y);
        cr_strip_halves<0x7f80>(found, v.z), cr_strip_halves<0x7f80>(found, v.w);
    }
    CR_DEVICE static double lane(const uint4 &v, int e) {
        uint32_t word = cr_word(v, e / 2);
        return (double)__uint_as_float(e % 2 ? word & 0xffff0000u : word << 16);
    }
    static constexpr int SCALE = 127 - 1023;
    CR_DEVICE static double scaled(const uint4 &v, int e) {
        return __hiloint2double((int)(cr_upper(cr_word(v, e / 2), e) >> 3 & 0x8fffe000), 0);
    }
};

struct cr_f16 {
    CR_FORMAT(F16);
    static constexpr int FIELD = MANTISSA;
    static constexpr bool PACKED = true;
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t low) { cr_glance_halves(worst, v, low); }
    CR_DEVICE static double value(uint64_t bits) { /* scaled, and scaled back */
        return __dmul_rn(__hiloint2double((int)((uint32_t)bits << 16) >> 6 & (int)0x81fffc00, 0), 0x1p1008);
    }
    CR_DEVICE static void look(cr_span &span, const uint4 &v) { cr_look_halves(span, v); }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        cr_strip_halves<0x7c00>(found, v.x), cr_strip_halves<0x7c00>(found, v.y);
        cr_strip_halves<0x7c00>(found, v.z), cr_strip_halves<0x7c00>(found, v.w);
    }
    CR_DEVICE static double lane(const uint4 &v, int e) { return value(cr_word(v, e / 2) >> (16 * (e % 2)) & 0xffff); }
    static constexpr int SCALE = 15 - 1023;
    CR_DEVICE static double scaled(const uint4 &v, int e) {
        return __hiloint2double((int)(cr_upper(cr_word(v, e / 2), e) >> 6 & 0x81fffc00), 0);
    }
};

/* Floats of one byte. All that is to be seen of them is whether there is a NaN or an infinity: then a byte's top bit is set. */
template <class E> struct cr_bytes {
    static constexpr bool PACKED = false;
    CR_DEVICE static uint32_t special(uint32_t w) { return ((w & 0x7f7f7f7fu) + (0x80u - (uint32_t)E::INFINITE) * 0x01010101u) & 0x80808080u; }
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t) {
        worst |= special(v.x) | special(v.y) | special(v.z) | special(v.w);
    }
    CR_DEVICE static void look(cr_span &span, const uint4 &v) { glance(span.most, v, 0); }
    CR_DEVICE static void strip_word(uint32_t &found, uint32_t &w) {
        for (uint32_t left = special(w); left != 0; left &= left - 1) {
            const uint32_t at = (uint32_t)__ffs((int)left) - 8, byte = w >> at & 0xffu;
            found += cr_count_special(!E::INFINITIES || (byte & 0x7fu) != E::INFINITE, byte >> 7);
            w &= ~(0xffu << at);
        }
    }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        strip_word(found, v.x), strip_word(found, v.y), strip_word(found, v.z), strip_word(found, v.w);
    }
    CR_DEVICE static double scaled(const uint4 &v, int e) {
        const uint32_t word = cr_word(v, (unsigned)e / 4);
        const int upper = (int)(e % 4 == 3 ? word : word << (24 - 8 * (e % 4)));
        return __hiloint2double(upper >> (4 + E::MANTISSA) & (int)(0x80000000u | 0x7fu << (20 - E::MANTISSA)), 0);
    }
    CR_DEVICE static double lane(const uint4 &v, int e) { return __dmul_rn(scaled(v, e), cr_power(-E::SCALE)); }
    CR_DEVICE static double value(uint64_t bits) { return lane(make_uint4((uint32_t)bits, 0, 0, 0), 0); }
};
struct cr_f8_e4m3 : cr_bytes<cr_f8_e4m3> {
    CR_FORMAT_ALONE(F8_E4M3);
    static constexpr int FIELD = MANTISSA, SCALE = BIAS - 1023, LEVELS = 1, SQUARE_LEVELS = 1, MOST = 0, SQUARE_MOST = 0, SQUARE_LOWEST = 0;
};
struct cr_f8_e5m2 : cr_bytes<cr_f8_e5m2> {
    CR_FORMAT_ALONE(F8_E5M2);
    static constexpr int FIELD = MANTISSA, SCALE = BIAS - 1023, LEVELS = 1, SQUARE_LEVELS = 2, MOST = 0, SQUARE_MOST = 0, SQUARE_LOWEST = 0;
};

/* A dtype's elements. */
template <cr_dtype D> struct cr_float_type;
template <> struct cr_float_type<CR_F8_E4M3> { typedef cr_f8_e4m3 E; };
template <> struct cr_float_type<CR_F8_E5M2> { typedef cr_f8_e5m2 E; };
template <> struct cr_float_type<CR_F16> { typedef cr_f16 E; };
template <> struct cr_float_type<CR_BF16> { typedef cr_bf16 E; };
template <> struct cr_float_type<CR_F32> { typedef cr_f32 E; };
template <> struct cr_float_type<CR_F64> { typedef cr_f64 E; };
template <cr_dtype D> using cr_float_of = typename cr_float_type<D>::E;

/* A term of a pair of T's elements, as a float64; or, where 53 bits do not hold it, as the float64 next to it and what that leaves, which
 * is another: then a vector is one term. GRID: of the window, SUM_GRID: of the limbs. */
template <class T, int OF> struct cr_term_of {
    static constexpr int AT = OF;
    typedef double number;
    static constexpr bool WIDE = T::SIZE == 8, SPLIT = WIDE, PACKED = false, ONE_WINDOW = false, INFINITIES = true;
    static constexpr int SIZE = SPLIT ? 16 : 8, MANTISSA = cr_f64::MANTISSA, BIAS = cr_f64::BIAS, TOP = cr_f64::TOP,
                         FIELD = cr_f64::FIELD, SCALE = 0;
    static constexpr int DEPTH = 2 * T::MANTISSA + 1;
    static constexpr int SUM_GRID = T::SQUARE_GRID, SUM_LIMBS = T::SQUARE_LIMBS;
    static constexpr int GRID = SUM_GRID > CR_F64_GRID ? SUM_GRID : CR_F64_GRID;
    static constexpr int LEVELS = SPLIT ? CR_F64_SQUARE_LEVELS : DEPTH < 20 && AT != CR_PAIR_SQDIST ? 1 : 2;
    static constexpr int MOST = SPLIT ? CR_F64_SQUARE_MOST : CR_F64_MOST;
    static constexpr int SPARE = AT != CR_PAIR_SQDIST ? 0 : SPLIT ? 1 : 3, SHARES = AT == CR_PAIR_SQDIST && SPLIT ? 2 : 0; /* see fold/pair_quick.cuh */
    static constexpr int SQUARE_GRID = 0, SQUARE_LIMBS = 0, SQUARE_LEVELS = 0, SQUARE_MOST = 0, SQUARE_LOWEST = 0; /* nobody squares it */
    static constexpr uint64_t INFINITE = cr_f64::INFINITE;
    CR_DEVICE static double lane(const uint4 &v, int e) { return cr_f64::lane(v, e); }
    CR_DEVICE static double scaled(const uint4 &v, int e) { return lane(v, e); }
    CR_DEVICE static void glance(uint32_t &worst, const uint4 &v, uint32_t low) {
        worst = max(worst, v.y + v.y - low);
        if (!SPLIT) worst = max(worst, v.w + v.w - low);
    }
    CR_DEVICE static void look(cr_span &span, const uint4 &v) { cr_f64::look(span, SPLIT ? make_uint4(v.x, v.y, v.x, v.y) : v); }
    CR_DEVICE static void strip(uint32_t &found, uint4 &v) {
        if (!SPLIT) {
            cr_f64::strip(found, v);
            return;
        }
        const uint32_t before = found;
        cr_strip_pair(found, v.x, v.y);
        if (found != before) v.z = v.w = 0;
    }
};

/* Additions to an anchor before it is drained: 4,094 at most, and half as many of a float64's squares. Tests have fewer. */
#if !defined(CR_SUM_ADDS)
#define CR_SUM_ADDS 4094
#endif

/* What anchors are made of. BITS: of the significand; LEAST: the exponent of the least last bit; ADDS: how many additions the bits of
 * one word hold. */
template <class NUMBER> struct cr_anchors;
template <> struct cr_anchors<double> {
    typedef unsigned long long word;
    typedef long long signed_word;
    static constexpr int BITS = CR_ANCHOR_STEP, LEAST = CR_F64_LEAST, ADDS = CR_SUM_ADDS;
    CR_DEVICE static double make(int a) { return __hiloint2double((a + 52 + 1023) << 20 | 1 << 19, 0); } /* 1.5·2^(a + 52), whose last bit is 2^a */
    CR_DEVICE static word bits(double x) { return (unsigned long long)__double_as_longlong(x); }
    CR_DEVICE static double plus(double x, double y) { return __dadd_rn(x, y); }
    CR_DEVICE static double minus(double x, double y) { return __dsub_rn(x, y); }
    CR_DEVICE static double fused(double x, double y, double z) { return __fma_rn(x, y, z); } /* x·y + z */
};

/* Anchors of type E for sums, or for squares. GROUP elements are added to an anchor before its bits go to the accumulator: that
 * takes log2(GROUP) binades from the window's top and from the step between anchors, and most of the instructions. */
template <class E, int KIND> struct cr_window {
    static constexpr bool SQUARE = KIND == CR_SUM_SQUARE, WIDE = E::SIZE >= 8, HALF = E::ONE_WINDOW, SPLIT = E::SPLIT || (SQUARE && WIDE);
    /* A float64's square is two numbers: it starts at two levels, ends at two, and passes twice through those between. */
    static constexpr int LEVELS = SQUARE ? E::SQUARE_LEVELS : E::LEVELS;
    static constexpr int GROUP = SPLIT ? 1 : WIDE ? 2 : 4, BITS = GROUP == 4 ? 2 : GROUP == 2 ? 1 : E::SHARES;
    typedef cr_anchors<typename E::number> Anchors;
    static constexpr int MOST_BIT = Anchors::BITS - 2 - E::SPARE; /* of what one addition puts on an anchor */
    static constexpr int STEP = Anchors::BITS - BITS, BELOW = STEP * (LEVELS - 1);
    static constexpr int LOWEST = SQUARE ? E::SQUARE_LOWEST : 0;
    static constexpr int GRID = SQUARE ? E::SQUARE_GRID : E::GRID;
    static constexpr int A_LEAST = LOWEST ? 2 * (LOWEST - E::BIAS) : (GRID > Anchors::LEAST ? GRID : Anchors::LEAST) + BELOW;
    static constexpr int A_MOST = SQUARE ? E::SQUARE_MOST : E::MOST;
    static constexpr int SCALE = SQUARE ? 0 : E::SCALE;
    static constexpr int SLACK = 3; /* binades above the largest magnitude that they are placed by */
    static constexpr int ADDS = SPLIT ? Anchors::ADDS / 2 - 1 : Anchors::ADDS;

    /* The exponent of the first anchor's unit, for a largest exponent field. Types with few exponents have one for all. */
    CR_DEVICE static int place(int top_field) {
        if (HALF) return GRID + BELOW;
        int top = max(top_field, 1) - E::BIAS + SLACK;
        return min(max(SQUARE ? 2 * top - (MOST_BIT - 1) + BITS : top - MOST_BIT + BITS, A_LEAST), A_MOST);
    }

    /* The bounds of cr_span that these anchors take, with `more` levels. */
    CR_DEVICE static cr_span bounds(int a, int more) {
        int last = a - BELOW - STEP * more;
        int most = min(E::BIAS + (SQUARE ? (a + MOST_BIT - 1 - BITS) >> 1 : a + MOST_BIT - BITS), E::TOP - 1);
        int least = max(E::BIAS + E::DEPTH + (SQUARE ? (last + 1) >> 1 : last), LOWEST);
        if (E::DEPTH != E::MANTISSA && !SPLIT && last <= E::GRID) least = 0; /* every term is a multiple of that anchor's unit */
        cr_span found;
        found.most = HALF ? (uint32_t)E::INFINITE - 1 : ((uint32_t)(most + 1) << E::FIELD) - 1;
        found.least = HALF || least <= 1 ? 0 : ((uint32_t)least << E::FIELD) - 1;
        if (more && last + SCALE < Anchors::LEAST) found.most = 0, found.least = ~0u; /* that anchor would be denormal */
        return found;
    }

    /* What glance wants, and the largest `worst` that it may find. */
    CR_DEVICE static uint32_t low(const cr_span &bounds) {
        uint32_t least = bounds.least == 0 ? 0 : bounds.least + 1;
        return E::PACKED ? least * 0x10001u : 2 * least;
    }
    CR_DEVICE static bool near(uint32_t worst, const cr_span &bounds) {
        if (E::SIZE == 1) return worst == 0;
        if (!E::PACKED) return worst <= 2 * bounds.most + 1 - low(bounds);
        uint32_t reach = bounds.most - (low(bounds) & 0xffff);
        return (worst & 0xffff) <= reach && worst >> 16 <= reach;
    }

    /* Where one window takes all: whether what glance has found needs no level above the second. FEW: that is worth a look. */
    static constexpr bool FEW = HALF && LEVELS > 3;
    CR_DEVICE static bool few(uint32_t worst) {
        constexpr uint32_t most = ((uint32_t)(E::BIAS + ((A_LEAST - STEP + MOST_BIT + 1 - BITS) >> 1)) << E::FIELD) - 1;
        return (worst & 0xffff) <= most && worst >> 16 <= most;
    }

    /* The most and the least of a lane's halves, and whether what is seen has a NaN or an infinity, or is inside. */
    CR_DEVICE static uint32_t largest(uint32_t most) { return E::PACKED ? max(most >> 16, most & 0xffff) : most; }
    CR_DEVICE static uint32_t smallest(uint32_t least) { return E::PACKED ? min(least >> 16, least & 0xffff) : least; }
    CR_DEVICE static bool special(uint32_t most) { return E::SIZE == 1 ? most != 0 : largest(most) >> E::FIELD >= (uint32_t)E::TOP; }
    CR_DEVICE static bool within(const cr_span &seen, const cr_span &bounds) {
        return seen.most <= bounds.most && seen.least >= bounds.least;
    }
    CR_DEVICE static bool inside(const cr_span &seen, const cr_span &bounds) {
        return largest(seen.most) <= bounds.most && smallest(seen.least) >= bounds.least;
    }

    /* Of one element. */
    CR_DEVICE static bool inside_one(uint64_t bits, const cr_span &bounds) {
        uint64_t magnitude = bits & (~0ull >> (WIDE ? 1 : 65 - 8 * E::SIZE));
        uint32_t upper = WIDE ? (uint32_t)(magnitude >> 32) | ((uint32_t)magnitude != 0) : (uint32_t)magnitude;
        uint32_t less = E::PACKED ? (upper - 1) & 0xffff : upper - 1;
        return upper <= bounds.most && less >= bounds.least;
    }
};

CR_DEVICE double cr_anchor(int a) { return cr_anchors<double>::make(a); }

/* Adds x to the running anchors s of levels FROM … TO - 1; what one rounds off goes to the next. */
template <int FROM, int TO, class NUMBER, int N> CR_DEVICE void cr_chain(NUMBER (&s)[N], NUMBER x) {
    typedef cr_anchors<NUMBER> Anchors;
#pragma unroll
    for (int level = FROM; level < TO; level++) {
        const NUMBER next = Anchors::plus(s[level], x);
        if (level + 1 < TO) x = Anchors::minus(x, Anchors::minus(next, s[level]));
        s[level] = next;
    }
}

/* Adds what is two numbers: the greater to levels 0 … TO - 2 of s, the rest to levels 1 … TO - 1 of t, which begins as s did. */
template <int TO, int N> CR_DEVICE void cr_chain_two(double (&s)[N], double (&t)[N], double h, double l) {
#pragma unroll
    for (int level = 0; level < TO; level++) t[level] = s[level];
    cr_chain<0, TO - 1>(s, h);
    cr_chain<1, TO>(t, l);
}
/* Adds x². */
template <int TO, int N> CR_DEVICE void cr_chain_square(double (&s)[N], double (&t)[N], double x) {
    const double h = __dmul_rn(x, x);
    cr_chain_two<TO>(s, t, h, __fma_rn(x, x, -h));
}

#endif
