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
#elif defined(VEC_NEON)
#include <arm_neon.h>
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
#elif defined(VEC_NEON)
#define LOAD_ONCE(type, p)          \
    ({                              \
        type once_ = LOAD(type, p); \
        __asm__("" : "+w"(once_));  \
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

enum { VEC_LINE = 64 }; /* of the cache */
/* A prefetch never faults, whatever the address. step is a compile-time constant. */
ALWAYS void fetch(struct ahead ahead, size_t at, size_t step) {
#if defined(VEC_NEON)
    if (step < VEC_LINE)
        return; /* EACH_STEP does so for a whole line, because this takes as many instructions as a vector */
#endif
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

/* Does something for each step of bytes from `at` on, to the last whole one. On NEON a line of the cache at a time, which is fetched as one:
 * fetch() of less does nothing there. The pass is at from + at. */
#if defined(VEC_NEON)
#define EACH_STEP_BY(unroll, from, at, end, step, ahead, ...)                                             \
    for (; VEC_LINE % (step) == 0 && at + VEC_LINE <= (end);) {                                           \
        fetch(ahead, (from) + at, VEC_LINE);                                                              \
        _Pragma(unroll) for (size_t in_ = 0; in_ < VEC_LINE; in_ += (step), at += (step)) { __VA_ARGS__ } \
    }                                                                                                     \
    for (; at + (step) <= (end); at += (step)) {                                                          \
        __VA_ARGS__                                                                                       \
    }
#else
#define EACH_STEP_BY(unroll, from, at, end, step, ahead, ...) \
    for (; at + (step) <= (end); at += (step)) {              \
        __VA_ARGS__                                           \
    }
#endif
#define EACH_STEP(at, end, step, ahead, ...) EACH_STEP_BY("GCC unroll 4", 0, at, end, step, ahead, __VA_ARGS__)
/* The same for steps of many instructions, of which one fills the registers. */
#define EACH_LONG_STEP(at, end, step, ahead, ...) EACH_STEP_BY("GCC unroll 1", 0, at, end, step, ahead, __VA_ARGS__)

/* Calls once(v) for each vector of [p, p+bytes), the last one padded with zeros. */
#define EACH_VECTOR(p, bytes, ahead, v, ...)    \
    do {                                        \
        size_t at_ = 0;                         \
        EACH_STEP(at_, bytes, VB, ahead, {      \
            vu8 v = LOAD(vu8, (p) + at_);       \
            fetch(ahead, at_, VB);              \
            __VA_ARGS__                         \
        })                                      \
        if (at_ < (bytes)) {                    \
            vu8 v = {0};                        \
            memcpy(&v, (p) + at_, (bytes)-at_); \
            __VA_ARGS__                         \
        }                                       \
    } while (0)

/* A bit for each byte of a mask. */
ALWAYS uint64_t byte_bits(vu8 mask) {
#if defined(VEC_AVX512)
    return _mm512_movepi8_mask((__m512i)mask);
#elif defined(VEC_AVX2)
    return (uint32_t)_mm256_movemask_epi8((__m256i)mask);
#elif defined(__SSE2__) && VB == 16
    return (uint32_t)_mm_movemask_epi8((__m128i)mask);
#elif defined(VEC_NEON)
    const vu8 places = (vu8)ALL(vu64, 0x8040201008040201);
    const uint8x16_t here = (uint8x16_t)(mask & places);
    return vaddv_u8(vget_low_u8(here)) | (uint64_t)vaddv_u8(vget_high_u8(here)) << 8;
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
#elif defined(VEC_NEON)
    return vmaxvq_u32((uint32x4_t)v) != 0;
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
#elif defined(VEC_NEON)
#define MINMAX(type, suffix, reg)                                                           \
    ALWAYS type min_##type(type a, type b) { return (type)vminq_##suffix((reg)a, (reg)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)vmaxq_##suffix((reg)a, (reg)b); }
MINMAX(vs8, s8, int8x16_t)
MINMAX(vu8, u8, uint8x16_t)
MINMAX(vs16, s16, int16x8_t)
MINMAX(vu16, u16, uint16x8_t)
MINMAX(vs32, s32, int32x4_t)
MINMAX(vu32, u32, uint32x4_t)
#undef MINMAX
ALWAYS vs64 min_vs64(vs64 a, vs64 b) { return SELECT(vs64, a < b, a, b); }
ALWAYS vs64 max_vs64(vs64 a, vs64 b) { return SELECT(vs64, a > b, a, b); }
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
#elif defined(VEC_NEON) /* suffix: epi8 … */
#define NEON_epi8(x) vabsq_s8((int8x16_t)(x))
#define NEON_epi16(x) vabsq_s16((int16x8_t)(x))
#define NEON_epi32(x) vabsq_s32((int32x4_t)(x))
#define NEON_epi64(x) vabsq_s64((int64x2_t)(x))
#define MAGNITUDE_OF(vu, vs, suffix) \
    ALWAYS vu magnitude_##vs(vs x) { return (vu)NEON_##suffix(x); }
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

#ifndef CURED_SUM_ALONE
/* The lower 32 bits of each 64-bit lane, multiplied. */
ALWAYS vu64 multiply_low(vu64 a, vu64 b) {
#if defined(VEC_AVX512)
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(VEC_AVX2)
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(VEC_NEON)
    return (vu64)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
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
#elif defined(VEC_NEON)
    return (vu64)vmull_s32(vmovn_s64((int64x2_t)a), vmovn_s64((int64x2_t)b));
#else
    return (vu64)(((vs64)(a << 32) >> 32) * ((vs64)(b << 32) >> 32));
#endif
}

#endif

/* The sum of each 8 bytes, in 64-bit lanes. */
ALWAYS vu64 sum_bytes(vu8 v) {
#if defined(VEC_AVX512)
    return (vu64)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif defined(VEC_AVX2)
    return (vu64)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#elif defined(VEC_NEON)
    return (vu64)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8((uint8x16_t)v)));
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
#elif defined(VEC_NEON)
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    return (vu32)vpaddq_s32(low, vmull_high_s16((int16x8_t)a, (int16x8_t)b));
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

#include "kernels/cpu/vec_float.h"

#endif
