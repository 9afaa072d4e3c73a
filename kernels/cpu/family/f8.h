/* f8: exact sums of floats of one byte.
 *
 * Such an element is one of 256 values, each an integer of its type's grid. Sums of values and magnitudes go by tables of 16 bytes,
 * which one instruction looks up for every byte of a vector. Twice a value is B^h·g: h are the upper bits of its exponent field (the
 * upper half of the byte, with the sign), g follows from the lower half, and B is 4 for E4M3 and 16 for E5M2. So 16 bits take ±g·B^h
 * of two neighbours for each pair of h that fits 7 bits, or four of them, and several of these before they are widened. What is not finite
 * is looked for by the largest magnitude of a block, which then is summed again without such elements. A square takes
 * 32 bits, so that neighbours are multiplied apart. All sums without such instructions go by how often each of the 256 bytes occurs.
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_FAMILY_F8_H
#define CURED_KERNELS_CPU_FAMILY_F8_H

#include "kernels/core/float.h"
#include "kernels/core/partial.h"
#include "kernels/cpu/vec.h"

enum {
    F8_BLOCK =
        16384, /* bytes: within the nearest cache, where those of a block with NaNs or infinities are counted afterwards */
    F8_ADDS = 8,                        /* vectors whose products 16 bits take */
    F8_SQUARES = VB > 16 ? 8192 : 4096, /* bytes, of which 32 bits take the squares */
    F8_FEW = 256,                       /* elements that are added one by one */
    F8_BYTES = 256
};

struct f8_run {
    __int128 sum; /* on the type's grid */
    cr_specials special;
    bool careful; /* the block before had NaNs or infinities: the next goes without them at once */
};

/* Magnitudes above this one are infinite or NaNs; infinity: above this one NaNs. */
ALWAYS uint8_t f8_largest(cr_dtype dtype) { return dtype == CR_F8_E4M3 ? 0x7e : 0x7b; }
ALWAYS uint8_t f8_infinity(cr_dtype dtype) {
    return dtype == CR_F8_E4M3 ? CR_INFINITY_OF(F8_E4M3) : CR_INFINITY_OF(F8_E5M2);
}

enum f8_sum { F8_SIGNED, F8_ABSOLUTE, F8_SQUARE };

#if defined(VEC_AVX512) || defined(VEC_AVX2) || defined(VEC_NEON)
#if defined(VEC_NEON) /* by the names that AVX2 has for these; g is never above 127 */
#define F8_ASK(name, ...) f8_##name(__VA_ARGS__)
typedef vu8 f8_vector;
ALWAYS vu8 f8_shuffle_epi8(vu8 table, vu8 at) { return (vu8)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)at); }
ALWAYS vu8 f8_maddubs_epi16(vu8 g, vu8 weights) {
    const int8x16_t a = (int8x16_t)g, b = (int8x16_t)weights;
    return (vu8)vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
}
ALWAYS vu8 f8_madd_epi16(vu8 a, vu8 b) { return (vu8)sum_pairs((vs16)a, (vs16)b); }
ALWAYS vu8 f8_set1_epi16(int16_t x) { return (vu8)ALL(vs16, x); }
#elif defined(VEC_AVX512)
#define F8_ASK(name, ...) _mm512_##name(__VA_ARGS__)
typedef __m512i f8_vector;
#else
#define F8_ASK(name, ...) _mm256_##name(__VA_ARGS__)
typedef __m256i f8_vector;
#endif

/* A table in every 16 bytes of a vector. */
ALWAYS vu8 f8_table(const int8_t table[16]) {
    vu8 v;
    for (size_t i = 0; i < VB; i += 16) memcpy((uint8_t *)&v + i, table, 16);
    return v;
}
ALWAYS vu8 f8_look_up(vu8 table, vu8 at) { return (vu8)F8_ASK(shuffle_epi8, (f8_vector)table, (f8_vector)at); }

/* The tables of a sum. */
struct f8_tables {
    vu8 low;     /* g by the lower half of the byte, where the exponent field is not 0 */
    vu8 high[4]; /* ±B^h by the upper half, for h of each pair or four */
};

ALWAYS struct f8_tables f8_tables_of(cr_dtype dtype, bool absolute) {
    static const int8_t e4m3_low[16] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30},
                        e5m2_low[16] = {4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56};
    struct f8_tables t;
    const int per = dtype == CR_F8_E4M3 ? 4 : 2, base = dtype == CR_F8_E4M3 ? 4 : 16;
    t.low = f8_table(dtype == CR_F8_E4M3 ? e4m3_low : e5m2_low);
    for (int k = 0; k < 8 / per; k++) {
        int8_t high[16] = {0};
        for (int h = 0, weight = 1; h < per; h++, weight *= base) {
            high[k * per + h] = (int8_t)weight;
            high[8 + k * per + h] = (int8_t)(absolute ? weight : -weight);
        }
        t.high[k] = f8_table(high);
    }
    return t;
}

/* g of a vector; *most becomes the largest magnitude so far. Of what is not finite it is something. Magnitudes without an exponent field have
 * twice their fraction: of E4M3 that is the lesser of two, elsewhere above what the lower half gives. */
ALWAYS vu8 f8_lower(const struct f8_tables *t, cr_dtype dtype, vu8 x, vu8 *most) {
    const vu8 magnitude = x & 0x7f, low = x & 0x0f, found = f8_look_up(t->low, low);
    *most = max_vu8(*most, magnitude);
    if (dtype == CR_F8_E4M3) return min_vu8(found, magnitude + magnitude);
#if defined(VEC_AVX512)
    const __mmask64 least = _mm512_testn_epi8_mask((__m512i)x, _mm512_set1_epi8(0x7c));
    return (vu8)_mm512_mask_add_epi8((__m512i)found, least, (__m512i)low, (__m512i)low);
#else
    return SELECT(vu8, magnitude < 4, low + low, found);
#endif
}

/* Whether a magnitude is not finite. */
ALWAYS bool f8_is_odd(cr_dtype dtype, vu8 magnitudes) {
    return any_bit((vu64)((vs8)magnitudes > (int8_t)f8_largest(dtype)));
}

/* Adds ±g·B^h of a vector to one accumulator for each table. */
ALWAYS void f8_step(const struct f8_tables *t, cr_dtype dtype, vu8 x, vs16 acc[4], vu8 *most) {
    const vu8 g = f8_lower(t, dtype, x, most), high = (vu8)((vu16)x >> 4) & 0x0f;
    for (int k = 0; k < (dtype == CR_F8_E4M3 ? 2 : 4); k++)
        acc[k] += (vs16)F8_ASK(maddubs_epi16, (f8_vector)g, (f8_vector)f8_look_up(t->high[k], high));
}

/* Adds the squares of g·B^h, of the even bytes and of the odd ones, to one accumulator for each table. */
ALWAYS void f8_square_step(const struct f8_tables *t, cr_dtype dtype, vu8 x, vu32 sums[4], vu8 *most) {
    const vu8 g = f8_lower(t, dtype, x, most), high = (vu8)((vu16)x >> 4) & 0x0f;
    const f8_vector even = (f8_vector)((vu16)g & 0x00ff), uneven = (f8_vector)((vu16)g & 0xff00);
    for (int k = 0; k < (dtype == CR_F8_E4M3 ? 2 : 4); k++) {
        const f8_vector weights = (f8_vector)f8_look_up(t->high[k], high);
        const f8_vector a = F8_ASK(maddubs_epi16, even, weights), b = F8_ASK(maddubs_epi16, uneven, weights);
        sums[k] += (vu32)F8_ASK(madd_epi16, a, a) + (vu32)F8_ASK(madd_epi16, b, b);
    }
}

/* Four times the sum of the squares of up to F8_SQUARES bytes; *odd: there are elements that are not finite, and the sum is wrong. */
ALWAYS __int128 f8_square_block(const struct f8_tables *t, cr_dtype dtype, const uint8_t *p, size_t bytes,
                                struct ahead ahead, bool *odd) {
    vu32 sums[4] = {{0}, {0}, {0}, {0}};
    vu8 most = {0};
    size_t at = 0;
    for (; at + VB <= bytes; at += VB) {
        fetch(ahead, at, VB);
        f8_square_step(t, dtype, LOAD(vu8, p + at), sums, &most);
    }
    if (at < bytes) {
        vu8 x = {0};
        memcpy(&x, p + at, bytes - at);
        f8_square_step(t, dtype, x, sums, &most);
    }
    *odd = f8_is_odd(dtype, most);
    __int128 sum = 0;
    for (int k = (dtype == CR_F8_E4M3 ? 2 : 4) - 1; k >= 0; k--) {
        uint32_t lanes[VB / 4];
        uint64_t all = 0;
        memcpy(lanes, &sums[k], sizeof lanes);
        for (size_t i = 0; i < VB / 4; i++) all += lanes[i];
        sum = sum * 65536 + all;
    }
    return sum;
}

ALWAYS int64_t f8_lanes(vs32 x) {
    int32_t lanes[VB / 4];
    int64_t sum = 0;
    memcpy(lanes, &x, sizeof lanes);
    for (size_t i = 0; i < VB / 4; i++) sum += lanes[i];
    return sum;
}

/* Twice the sum of a block; *odd likewise. */
ALWAYS int64_t f8_block(const struct f8_tables *t, cr_dtype dtype, const uint8_t *p, size_t bytes, struct ahead ahead,
                        bool *odd) {
    const f8_vector ones = F8_ASK(set1_epi16, 1);
    const int tables = dtype == CR_F8_E4M3 ? 2 : 4;
    vs32 sums[4] = {{0}, {0}, {0}, {0}};
    vu8 most = {0};
    for (size_t at = 0; at < bytes;) {
        vs16 acc[4] = {{0}, {0}, {0}, {0}};
        if (at + F8_ADDS * VB <= bytes) {
            fetch(ahead, at, F8_ADDS * VB);
#pragma GCC unroll 8
            for (int i = 0; i < F8_ADDS; i++, at += VB) f8_step(t, dtype, LOAD(vu8, p + at), acc, &most);
        } else {
            vu8 x = {0};
            const size_t now = bytes - at < VB ? bytes - at : VB;
            memcpy(&x, p + at, now);
            f8_step(t, dtype, x, acc, &most);
            at += now;
        }
#pragma GCC unroll 4
        for (int k = 0; k < tables; k++) sums[k] += (vs32)F8_ASK(madd_epi16, (f8_vector)acc[k], ones);
    }
    *odd = f8_is_odd(dtype, most);
    int64_t sum = 0;
    for (int k = tables - 1; k >= 0; k--) sum = sum * 256 + f8_lanes(sums[k]);
    return sum;
}

#define INSTANCE(name, dtype, absolute)                                                 \
    NEVER int64_t name(const uint8_t *p, size_t bytes, struct ahead ahead, bool *odd) { \
        const struct f8_tables tables = f8_tables_of(dtype, absolute);                  \
        return f8_block(&tables, dtype, p, bytes, ahead, odd);                          \
    }
INSTANCE(f8_e4m3_signed, CR_F8_E4M3, false)
INSTANCE(f8_e4m3_absolute, CR_F8_E4M3, true)
INSTANCE(f8_e5m2_signed, CR_F8_E5M2, false)
INSTANCE(f8_e5m2_absolute, CR_F8_E5M2, true)
#undef INSTANCE

#define INSTANCE(name, dtype)                                                            \
    NEVER __int128 name(const uint8_t *p, size_t bytes, struct ahead ahead, bool *odd) { \
        const struct f8_tables tables = f8_tables_of(dtype, true);                       \
        return f8_square_block(&tables, dtype, p, bytes, ahead, odd);                    \
    }
INSTANCE(f8_e4m3_square, CR_F8_E4M3)
INSTANCE(f8_e5m2_square, CR_F8_E5M2)
#undef INSTANCE

/* How many elements of a block are NaNs and infinities. */
NEVER void f8_count(struct f8_run *run, cr_dtype dtype, const uint8_t *p, size_t bytes) {
    const uint8_t infinity = f8_infinity(dtype), minus = infinity | 0x80;
    const uint8_t has = infinity != f8_largest(dtype) ? 0xff : 0;
    const struct ahead here = {(uintptr_t)p, 63, (uintptr_t)p, 0};
    while (bytes > 0) {
        const size_t now = bytes < (size_t)255 * VB ? bytes : (size_t)255 * VB;
        vu8 nans = {0}, pinfs = {0}, ninfs = {0};
        EACH_VECTOR(p, now, here, v, {
            nans -= (vu8)((vs8)(v & 0x7f) > (int8_t)infinity);
            pinfs -= (vu8)(v == infinity) & has;
            ninfs -= (vu8)(v == minus) & has;
        });
        run->special.nans += lanes_u64(sum_bytes(nans));
        run->special.pinfs += lanes_u64(sum_bytes(pinfs));
        run->special.ninfs += lanes_u64(sum_bytes(ninfs));
        p += now;
        bytes -= now;
    }
}

static __int128 f8_block_sum(cr_dtype dtype, enum f8_sum kind, const uint8_t *p, size_t bytes, struct ahead ahead,
                             bool *odd) {
    const bool e4m3 = dtype == CR_F8_E4M3;
    switch (kind) {
        case F8_SIGNED:
            return (e4m3 ? f8_e4m3_signed : f8_e5m2_signed)(p, bytes, ahead, odd) / 2;
        case F8_ABSOLUTE:
            return (e4m3 ? f8_e4m3_absolute : f8_e5m2_absolute)(p, bytes, ahead, odd) / 2;
        case F8_SQUARE:
            return (e4m3 ? f8_e4m3_square : f8_e5m2_square)(p, bytes, ahead, odd) / 4;
    }
    __builtin_unreachable();
}

/* Copies a block, with zeros for what is not finite. Whether there was such an element. */
NEVER bool f8_finite(cr_dtype dtype, const uint8_t *p, size_t bytes, uint8_t *to) {
    const struct ahead here = {(uintptr_t)p, 63, (uintptr_t)p, 0};
    vu8 most = {0};
    EACH_VECTOR(p, bytes, here, v, {
        const vu8 magnitude = v & 0x7f, kept = v & (vu8)((vs8)magnitude <= (int8_t)f8_largest(dtype));
        most = max_vu8(most, magnitude);
        memcpy(to, &kept, VB);
        to += VB;
    });
    return f8_is_odd(dtype, most);
}

static void f8_tile(struct f8_run *run, cr_dtype dtype, enum f8_sum kind, const uint8_t *p, size_t bytes,
                    struct ahead ahead) {
    const size_t most = kind == F8_SQUARE ? F8_SQUARES : F8_BLOCK;
    uint8_t finite[F8_BLOCK + VB]; /* the last vector is whole */
    while (bytes > 0) {
        const size_t now = bytes < most ? bytes : most;
        bool odd = run->careful;
        __int128 sum = 0;
        if (!odd) sum = f8_block_sum(dtype, kind, p, now, ahead, &odd);
        if (odd) {
            run->careful = f8_finite(dtype, p, now, finite);
            if (run->careful) f8_count(run, dtype, p, now);
            sum = f8_block_sum(dtype, kind, finite, now, ahead, &odd);
        }
        run->sum += sum;
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
}
#undef F8_ASK
#else
/* A finite magnitude on the grid. */
ALWAYS uint64_t f8_units(cr_dtype dtype, uint8_t magnitude) {
    const unsigned mantissa = dtype == CR_F8_E4M3 ? CR_F8_E4M3_MANTISSA : CR_F8_E5M2_MANTISSA;
    const unsigned field = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
    return field == 0 ? fraction : (uint64_t)(fraction | 1u << mantissa) << (field - 1);
}

/* `times` elements of these bits. */
ALWAYS void f8_add(struct f8_run *run, cr_dtype dtype, enum f8_sum kind, uint8_t bits, uint64_t times) {
    const uint8_t magnitude = bits & 0x7f;
    if (magnitude > f8_infinity(dtype)) {
        run->special.nans += times;
    } else if (magnitude > f8_largest(dtype)) {
        *(bits & 0x80 ? &run->special.ninfs : &run->special.pinfs) += times;
    } else {
        const uint64_t units = f8_units(dtype, magnitude);
        const __int128 all = (__int128)(kind == F8_SQUARE ? units * units : units) * (__int128)times;
        run->sum += bits & 0x80 && kind == F8_SIGNED ? -all : all;
    }
}

/* How often each byte occurs, in four tables, so that neighbours that are alike do not wait for each other. */
NEVER void f8_by_bytes(struct f8_run *run, cr_dtype dtype, enum f8_sum kind, const uint8_t *p, size_t n,
                       struct ahead ahead) {
    uint32_t counts[4][F8_BYTES];
    size_t at = 0;
    memset(counts, 0, sizeof counts);
    for (; at + 8 <= n; at += 8) {
        uint64_t word;
        memcpy(&word, p + at, sizeof word);
        if (at % 64 == 0) fetch(ahead, at, 64);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) counts[i % 4][word >> 8 * i & 0xff]++;
    }
    for (; at < n; at++) counts[0][p[at]]++;
    for (unsigned i = 0; i < F8_BYTES; i++) {
        const uint64_t times = (uint64_t)counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];
        if (times != 0) f8_add(run, dtype, kind, (uint8_t)i, times);
    }
}

static void f8_tile(struct f8_run *run, cr_dtype dtype, enum f8_sum kind, const uint8_t *p, size_t n,
                    struct ahead ahead) {
    if (n > F8_FEW) {
        f8_by_bytes(run, dtype, kind, p, n, ahead);
        return;
    }
    for (size_t i = 0; i < n; i++) f8_add(run, dtype, kind, p[i], 1);
}
#endif

#endif
