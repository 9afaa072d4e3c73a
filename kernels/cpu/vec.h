/* vec: vectors of VB bytes and the few lane operations the folds are written in, for the instruction set of isa.h.
 *
 * Thread: any; pure functions. */
#ifndef CURED_KERNELS_CPU_VEC_H
#define CURED_KERNELS_CPU_VEC_H

#ifdef __FAST_MATH__
#error "exact sums need IEEE arithmetic: compile without -ffast-math"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/isa.h"

#if defined(VEC_AVX2) || defined(VEC_AVX512)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef uint8_t vu8 __attribute__((vector_size(VB)));
typedef int8_t vs8 __attribute__((vector_size(VB)));
typedef uint16_t vu16 __attribute__((vector_size(VB)));
typedef int16_t vs16 __attribute__((vector_size(VB)));
typedef uint32_t vu32 __attribute__((vector_size(VB)));
typedef int32_t vs32 __attribute__((vector_size(VB)));
typedef uint64_t vu64 __attribute__((vector_size(VB)));
typedef int64_t vs64 __attribute__((vector_size(VB)));
typedef float vf32 __attribute__((vector_size(VB)));
typedef double vf64 __attribute__((vector_size(VB)));

/* The words of these numbers: a's from 0, b's behind them. */
#ifdef __clang__
#define WORDS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define WORDS(a, b, ...) __builtin_shuffle(a, b, (vu64){__VA_ARGS__})
#endif

#define ALWAYS static inline __attribute__((always_inline))
#define NEVER static __attribute__((noinline))
/* An unaligned load of one vector. */
#define LOAD(type, p)                          \
    ({                                         \
        type loaded_;                          \
        memcpy(&loaded_, (p), sizeof loaded_); \
        loaded_;                               \
    })
/* The same in a register: a compiler may load what is used often at each use, and a vector that lies across two lines of the cache
 * costs twice each time. */
#if defined(__x86_64__)
#define LOAD_ONCE(type, p)          \
    ({                              \
        type once_ = LOAD(type, p); \
        __asm__("" : "+x"(once_));  \
        once_;                      \
    })
#else
#define LOAD_ONCE LOAD
#endif
/* float64 lanes as they were rounded: what is added to a product later is not fused with it. This tree is compiled so that nothing is
 * (-ffp-contract=off); cured_sum.c is compiled as others like. */
#ifndef CURED_SUM_ALONE
#define ROUNDED(x) (x)
#else
#if defined(__x86_64__)
#define ROUNDED_IN "+x"
#elif defined(__aarch64__)
#define ROUNDED_IN "+w"
#else
#define ROUNDED_IN "+m"
#endif
#define ROUNDED(x)                          \
    ({                                      \
        vf64 rounded_ = (x);                \
        __asm__("" : ROUNDED_IN(rounded_)); \
        rounded_;                           \
    })
#endif
/* A shift's distance in a register: such a shift takes one instruction where there is BMI2, one by a constant two, because it changes
 * its operand. */
#if defined(VEC_AVX2) || defined(VEC_AVX512)
#define DISTANCE(bits)                 \
    ({                                 \
        unsigned distance_ = (bits);   \
        __asm__("" : "+r"(distance_)); \
        distance_;                     \
    })
#else
#define DISTANCE(bits) ((unsigned)(bits))
#endif
/* Every lane holds x. */
#define ALL(type, x) ((type){0} + (x))
/* mask lanes are all ones or all zeros; all three are integer vectors of one type. */
#define SELECT(type, mask, a, b) (((type)(mask) & (a)) | (~(type)(mask) & (b)))

/* What to fetch while a pass reads: the byte `at` of the pass asks for base + (at >> shift) to come near, and for
 * soon + (at & every) to come nearest. The hardware's own prefetcher stops at page ends and starts anew with each block;
 * a few KiB of head start keep the memory busy. */
struct ahead {
    uintptr_t base;
    unsigned shift;
    uintptr_t soon, every;
};

/* What a long row asks for ahead of itself. */
ALWAYS struct ahead row_ahead(const uint8_t *p) {
    return (struct ahead){(uintptr_t)p + 8192, 0, (uintptr_t)p + 4096, UINTPTR_MAX};
}

/* A prefetch never faults, whatever the address. step is a compile-time constant. */
ALWAYS void fetch(struct ahead ahead, size_t at, size_t step) {
#pragma GCC unroll 4
    for (size_t i = 0; i < step; i += 64)
        __builtin_prefetch((const void *)(ahead.base + ((at + i) >> ahead.shift)), 0, 2);
#pragma GCC unroll 4
    for (size_t i = 0; i < step; i += 64)
        __builtin_prefetch((const void *)(ahead.soon + ((at + i) & ahead.every)), 0, 3);
}

/* Before a block of bytes at p: has the translations of the pages of the block after it looked up. A prefetch into a page
 * whose translation is not at hand waits for it, and holds up those behind it: with pages of 4 KiB, 5 to 7 % of a sum. */
ALWAYS void fetch_pages(struct ahead ahead, const uint8_t *p, size_t bytes) {
    enum { PAGE = 4096, FAR = 16384 };
    if (ahead.shift == 63) return; /* nothing is fetched ahead */
    for (size_t at = 0; at < bytes; at += PAGE) __builtin_prefetch((const void *)((uintptr_t)p + FAR + at), 0, 2);
}

ALWAYS struct ahead ahead_by(struct ahead ahead, size_t bytes) {
    ahead.base += bytes >> ahead.shift;
    ahead.soon += bytes & ahead.every;
    return ahead;
}

/* Calls once(v) for each vector of [p, p+bytes), the last one padded with zeros. */
#define EACH_VECTOR(p, bytes, ahead, v, ...)     \
    do {                                         \
        size_t at_ = 0;                          \
        for (; at_ + VB <= (bytes); at_ += VB) { \
            vu8 v = LOAD(vu8, (p) + at_);        \
            fetch(ahead, at_, VB);               \
            __VA_ARGS__                          \
        }                                        \
        if (at_ < (bytes)) {                     \
            vu8 v = {0};                         \
            memcpy(&v, (p) + at_, (bytes)-at_);  \
            __VA_ARGS__                          \
        }                                        \
    } while (0)

/* A bit for each byte of a mask. */
ALWAYS uint64_t byte_bits(vu8 mask) {
#if defined(VEC_AVX512)
    return _mm512_movepi8_mask((__m512i)mask);
#elif defined(VEC_AVX2)
    return (uint32_t)_mm256_movemask_epi8((__m256i)mask);
#elif defined(__SSE2__) && VB == 16
    return (uint32_t)_mm_movemask_epi8((__m128i)mask);
#else
    uint64_t bits = 0;
    for (size_t i = 0; i < VB; i++) bits |= (uint64_t)(mask[i] >> 7) << i;
    return bits;
#endif
}

/* Whether any bit of v is set. */
ALWAYS bool any_bit(vu64 v) {
#if defined(VEC_AVX512)
    return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
#elif defined(VEC_AVX2)
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
    uint64_t bits = 0;
    for (size_t i = 0; i < VB / 8; i++) bits |= v[i];
    return bits != 0;
#endif
}

#if defined(VEC_AVX512)
#define MINMAX(type, suffix)                                                                             \
    ALWAYS type min_##type(type a, type b) { return (type)_mm512_min_##suffix((__m512i)a, (__m512i)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)_mm512_max_##suffix((__m512i)a, (__m512i)b); }
MINMAX(vs8, epi8)
MINMAX(vu8, epu8)
MINMAX(vs16, epi16)
MINMAX(vu16, epu16)
MINMAX(vs32, epi32)
MINMAX(vu32, epu32)
MINMAX(vs64, epi64)
MINMAX(vu64, epu64)
#undef MINMAX
#elif defined(VEC_AVX2)
#define MINMAX(type, suffix)                                                                             \
    ALWAYS type min_##type(type a, type b) { return (type)_mm256_min_##suffix((__m256i)a, (__m256i)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)_mm256_max_##suffix((__m256i)a, (__m256i)b); }
MINMAX(vs8, epi8)
MINMAX(vu8, epu8)
MINMAX(vs16, epi16)
MINMAX(vu16, epu16)
MINMAX(vs32, epi32)
MINMAX(vu32, epu32)
#undef MINMAX
ALWAYS vs64 min_vs64(vs64 a, vs64 b) {
    __m256i greater = _mm256_cmpgt_epi64((__m256i)a, (__m256i)b);
    return (vs64)_mm256_blendv_epi8((__m256i)a, (__m256i)b, greater);
}
ALWAYS vs64 max_vs64(vs64 a, vs64 b) {
    __m256i greater = _mm256_cmpgt_epi64((__m256i)a, (__m256i)b);
    return (vs64)_mm256_blendv_epi8((__m256i)b, (__m256i)a, greater);
}
#else
#define MINMAX(type)                                                             \
    ALWAYS type min_##type(type a, type b) { return SELECT(type, a < b, a, b); } \
    ALWAYS type max_##type(type a, type b) { return SELECT(type, a > b, a, b); }
MINMAX(vs8)
MINMAX(vu8)
MINMAX(vs16)
MINMAX(vu16)
MINMAX(vs32)
MINMAX(vu32)
MINMAX(vs64)
#undef MINMAX
#endif

/* |x| of lanes, as unsigned numbers. */
#if defined(VEC_AVX512)
#define MAGNITUDE_OF(vu, vs, suffix) \
    ALWAYS vu magnitude_##vs(vs x) { return (vu)_mm512_abs_##suffix((__m512i)x); }
#else
#define MAGNITUDE_OF(vu, vs, suffix)          \
    ALWAYS vu magnitude_##vs(vs x) {          \
        vu negative = (vu)(x < 0);            \
        return ((vu)x ^ negative) - negative; \
    }
#endif
MAGNITUDE_OF(vu8, vs8, epi8)
MAGNITUDE_OF(vu16, vs16, epi16)
MAGNITUDE_OF(vu32, vs32, epi32)
MAGNITUDE_OF(vu64, vs64, epi64)
#undef MAGNITUDE_OF

/* Floating-point lanes: b where a is a NaN; either zero where both are zeros. least and most: of magnitudes, b being one. */
#if defined(VEC_AVX512)
#define FLOATS(type, suffix, reg)                                                                     \
    ALWAYS type min_##type(type a, type b) { return (type)_mm512_min_##suffix((reg)a, (reg)b); }      \
    ALWAYS type max_##type(type a, type b) { return (type)_mm512_max_##suffix((reg)a, (reg)b); }      \
    ALWAYS type least_##type(type a, type b) {                                                        \
        return (type)_mm512_range_##suffix((reg)a, (reg)b, 2 /* of magnitudes */ | 8 /* positive */); \
    }                                                                                                 \
    ALWAYS type most_##type(type a, type b) { return (type)_mm512_range_##suffix((reg)a, (reg)b, 3 | 8); }
FLOATS(vf32, ps, __m512)
FLOATS(vf64, pd, __m512d)
#undef FLOATS
#else
#if defined(VEC_AVX2)
#define FLOATS(type, suffix, reg)                                                                \
    ALWAYS type min_##type(type a, type b) { return (type)_mm256_min_##suffix((reg)a, (reg)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)_mm256_max_##suffix((reg)a, (reg)b); }
FLOATS(vf32, ps, __m256)
FLOATS(vf64, pd, __m256d)
#undef FLOATS
#elif defined(__SSE2__)
#define FLOATS(type, suffix, reg)                                                             \
    ALWAYS type min_##type(type a, type b) { return (type)_mm_min_##suffix((reg)a, (reg)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)_mm_max_##suffix((reg)a, (reg)b); }
FLOATS(vf32, ps, __m128)
FLOATS(vf64, pd, __m128d)
#undef FLOATS
#else
ALWAYS vf32 min_vf32(vf32 a, vf32 b) { return (vf32)SELECT(vu32, a < b, (vu32)a, (vu32)b); }
ALWAYS vf32 max_vf32(vf32 a, vf32 b) { return (vf32)SELECT(vu32, a > b, (vu32)a, (vu32)b); }
ALWAYS vf64 min_vf64(vf64 a, vf64 b) { return (vf64)SELECT(vu64, a < b, (vu64)a, (vu64)b); }
ALWAYS vf64 max_vf64(vf64 a, vf64 b) { return (vf64)SELECT(vu64, a > b, (vu64)a, (vu64)b); }
#endif
ALWAYS vf32 least_vf32(vf32 a, vf32 b) { return min_vf32((vf32)((vu32)a & INT32_MAX), b); }
ALWAYS vf32 most_vf32(vf32 a, vf32 b) { return max_vf32((vf32)((vu32)a & INT32_MAX), b); }
ALWAYS vf64 least_vf64(vf64 a, vf64 b) { return min_vf64((vf64)((vu64)a & INT64_MAX), b); }
ALWAYS vf64 most_vf64(vf64 a, vf64 b) { return max_vf64((vf64)((vu64)a & INT64_MAX), b); }
#endif

/* Lanes that are NaNs: noted from two vectors at once. */
#if defined(VEC_AVX512)
typedef __mmask16 nans_vf32;
typedef __mmask8 nans_vf64;
ALWAYS nans_vf32 note_vf32(nans_vf32 seen, vf32 a, vf32 b) {
    return _kor_mask16(seen, _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q));
}
ALWAYS nans_vf64 note_vf64(nans_vf64 seen, vf64 a, vf64 b) {
    return _kor_mask8(seen, _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q));
}
ALWAYS bool noted_vf32(nans_vf32 seen) { return seen != 0; }
ALWAYS bool noted_vf64(nans_vf64 seen) { return seen != 0; }
#else
typedef vu32 nans_vf32;
typedef vu64 nans_vf64;
#if defined(VEC_AVX2)
ALWAYS vu32 note_vf32(vu32 seen, vf32 a, vf32 b) {
    return seen | (vu32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
}
ALWAYS vu64 note_vf64(vu64 seen, vf64 a, vf64 b) {
    return seen | (vu64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
}
#elif defined(__SSE2__)
ALWAYS vu32 note_vf32(vu32 seen, vf32 a, vf32 b) { return seen | (vu32)_mm_cmpunord_ps((__m128)a, (__m128)b); }
ALWAYS vu64 note_vf64(vu64 seen, vf64 a, vf64 b) { return seen | (vu64)_mm_cmpunord_pd((__m128d)a, (__m128d)b); }
#else
ALWAYS vu32 note_vf32(vu32 seen, vf32 a, vf32 b) { return seen | (vu32)(a != a) | (vu32)(b != b); }
ALWAYS vu64 note_vf64(vu64 seen, vf64 a, vf64 b) { return seen | (vu64)(a != a) | (vu64)(b != b); }
#endif
ALWAYS bool noted_vf32(vu32 seen) { return any_bit((vu64)seen); }
ALWAYS bool noted_vf64(vu64 seen) { return any_bit(seen); }
#endif

/* 2^exponent, for −1074 … 1023. */
ALWAYS double power_of_two(int exponent) {
    uint64_t bits = exponent >= -1022 ? (uint64_t)(exponent + 1023) << 52 : (uint64_t)1 << (exponent + 1074);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a op b op c of bits: one instruction where there is one. */
#if defined(VEC_AVX512)
#define THREE(name, op, table)                                                             \
    ALWAYS vu64 name(vu64 a, vu64 b, vu64 c) {                                             \
        return (vu64)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, table); \
    }
#else
#define THREE(name, op, table) \
    ALWAYS vu64 name(vu64 a, vu64 b, vu64 c) { return a op b op c; }
#endif
THREE(and_three, &, 0x80)
THREE(or_three, |, 0xfe)
THREE(xor_three, ^, 0x96)
#undef THREE

/* VB / 8 float32 at p, widened. */
ALWAYS vf64 widen_at(const uint8_t *p) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_cvtps_pd(_mm256_loadu_ps((const float *)p));
#elif defined(VEC_AVX2)
    return (vf64)_mm256_cvtps_pd(_mm_loadu_ps((const float *)p));
#else
    float narrow[VB / 8];
    vf64 wide = {0}; /* or gcc 12 warns at -O1 */
    memcpy(narrow, p, sizeof narrow);
    for (size_t i = 0; i < VB / 8; i++) wide[i] = (double)narrow[i];
    return wide;
#endif
}

/* The lower and the upper half of a float32 vector, widened. */
#if defined(VEC_AVX512)
ALWAYS vf64 widen_low(vf32 x) { return (vf64)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x)); }
ALWAYS vf64 widen_high(vf32 x) { return (vf64)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1)); }
#elif defined(VEC_AVX2)
ALWAYS vf64 widen_low(vf32 x) { return (vf64)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)); }
ALWAYS vf64 widen_high(vf32 x) { return (vf64)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1)); }
#else
ALWAYS vf64 widen_low(vf32 x) { return widen_at((const uint8_t *)&x); }
ALWAYS vf64 widen_high(vf32 x) { return widen_at((const uint8_t *)&x + VB / 2); }
#endif

#ifndef CURED_SUM_ALONE
/* The lower 32 bits of each 64-bit lane, multiplied. */
ALWAYS vu64 multiply_low(vu64 a, vu64 b) {
#if defined(VEC_AVX512)
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(VEC_AVX2)
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

/* The same as signed numbers. */
ALWAYS vu64 multiply_signed(vu64 a, vu64 b) {
#if defined(VEC_AVX512)
    return (vu64)_mm512_mul_epi32((__m512i)a, (__m512i)b);
#elif defined(VEC_AVX2)
    return (vu64)_mm256_mul_epi32((__m256i)a, (__m256i)b);
#else
    return (vu64)(((vs64)(a << 32) >> 32) * ((vs64)(b << 32) >> 32));
#endif
}

/* float16 lanes to float32, exactly: the even-numbered half of the lanes and the other (which is which does not matter
 * to a sum). Infinities and NaNs stay what they are. */
#if defined(VEC_AVX512)
ALWAYS vf32 halves_a(vu16 h) { return (vf32)_mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)h)); }
ALWAYS vf32 halves_b(vu16 h) { return (vf32)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)h, 1)); }
#elif defined(VEC_AVX2)
ALWAYS vf32 halves_a(vu16 h) { return (vf32)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)h)); }
ALWAYS vf32 halves_b(vu16 h) { return (vf32)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)h, 1)); }
#else
/* x: float16 bits in the upper half of each 32-bit lane, zeros below. */
ALWAYS vf32 half_lanes(vu32 x) {
    vu32 magnitude = (x & 0x7fff0000u) >> 3;
    vf32 scaled = (vf32)magnitude * 0x1p112f; /* moves the exponent's bias; denormals come out right too */
    vu32 special = (vu32)(magnitude >= 0x0f800000u) & 0x7f800000u;
    return (vf32)((vu32)scaled | special | (x & 0x80000000u));
}
ALWAYS vf32 halves_a(vu16 h) { return half_lanes((vu32)h << 16); }
ALWAYS vf32 halves_b(vu16 h) { return half_lanes((vu32)h & 0xffff0000u); }
#endif
#endif

/* The error of a·b, whose float64 product is p. */
ALWAYS vf64 product_error(vf64 a, vf64 b, vf64 p) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)p);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p);
#else /* by Dekker's split (Numer. Math. 18, 1971), for numbers well within the range */
    const double split = 134217729.0; /* 2^27 + 1 */
    vf64 ta = ROUNDED(a * split), tb = ROUNDED(b * split), a1 = ta - (ta - a), b1 = tb - (tb - b), a2 = a - a1,
         b2 = b - b1;
    return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

/* a + b and a − b by the multipliers, where there are some: the adders have more to do. */
ALWAYS vf64 fused_plus(vf64 a, vf64 b) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)ALL(vf64, 1.0), (__m512d)b);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)ALL(vf64, 1.0), (__m256d)b);
#else
    return a + b;
#endif
}
ALWAYS vf64 fused_minus(vf64 a, vf64 b) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmsub_pd((__m512d)a, (__m512d)ALL(vf64, 1.0), (__m512d)b);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmsub_pd((__m256d)a, (__m256d)ALL(vf64, 1.0), (__m256d)b);
#else
    return a - b;
#endif
}

/* In lanes, all bits: x is an infinity or a NaN. */
ALWAYS vu64 not_finite(vf64 x) {
    const vu64 infinity = ALL(vu64, (uint64_t)2047 << 52);
    return (vu64)(((vu64)x & infinity) == infinity);
}

/* Whether an operation on floats was rounded since the flag was last cleared. Only functions that are not inlined compute between
 * the two: for the compiler the flag depends on nothing. */
#if defined(VEC_AVX512) || defined(VEC_AVX2)
#define VEC_TELLS_INEXACT 1
ALWAYS bool inexact_seen(void) { return (_mm_getcsr() & _MM_EXCEPT_INEXACT) != 0; }
/* To clear takes longer than to look. */
ALWAYS void inexact_clear(void) {
    if (inexact_seen()) _mm_setcsr(_mm_getcsr() & ~(unsigned)_MM_EXCEPT_INEXACT);
}
#endif

/* The sum of each 8 bytes, in 64-bit lanes. */
ALWAYS vu64 sum_bytes(vu8 v) {
#if defined(VEC_AVX512)
    return (vu64)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif defined(VEC_AVX2)
    return (vu64)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#else
    vu64 x = (vu64)v;
    x = (x & 0x00ff00ff00ff00ffu) + ((x >> 8) & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) + ((x >> 16) & 0x0000ffff0000ffffu);
    return (x & 0xffffffffu) + (x >> 32);
#endif
}

/* a0·b0 + a1·b1 of each pair of lanes; wraps only for four times −32768, whose bits are 2^31. */
ALWAYS vu32 sum_pairs(vs16 a, vs16 b) {
#if defined(VEC_AVX512)
    return (vu32)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(VEC_AVX2)
    return (vu32)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
    vs32 a_even = ((vs32)((vu32)a << 16)) >> 16, b_even = ((vs32)((vu32)b << 16)) >> 16;
    vs32 a_odd = (vs32)a >> 16, b_odd = (vs32)b >> 16;
    return (vu32)(a_even * b_even) + (vu32)(a_odd * b_odd);
#endif
}

ALWAYS uint64_t lanes_u64(vu64 v) {
    uint64_t sum = 0;
    for (size_t i = 0; i < VB / 8; i++) sum += v[i];
    return sum;
}

#endif
