/* widen: elements that lie together, each in a wider lane. gcc 12 takes __builtin_convertvector apart, element by element, where a lane is
 * four or eight times as wide.
 *
 * Thread: any; pure functions. */
#ifndef CURED_KERNELS_CPU_WIDEN_H
#define CURED_KERNELS_CPU_WIDEN_H

#include "kernels/cpu/vec.h"

#if defined(VEC_AVX512)
#define HALF _mm256_loadu_si256((const __m256i *)p)
#define QUARTER _mm_loadu_si128((const __m128i *)p)
#define EIGHTH _mm_loadl_epi64((const __m128i *)p)
#define WIDEN(from, to, bytes, suffix, element) \
    ALWAYS vs##to widen_##from##_##to(const uint8_t *p) { return (vs##to)_mm512_cvt##suffix(bytes); }
#elif defined(VEC_AVX2)
#define HALF _mm_loadu_si128((const __m128i *)p)
#define QUARTER _mm_loadl_epi64((const __m128i *)p)
#define EIGHTH _mm_loadu_si32(p)
#define WIDEN(from, to, bytes, suffix, element) \
    ALWAYS vs##to widen_##from##_##to(const uint8_t *p) { return (vs##to)_mm256_cvt##suffix(bytes); }
#elif defined(VEC_NEON)
#define HALF vld1_u8(p)
#define QUARTER (uint8x8_t) vdup_n_u32(LOAD(uint32_t, p))
#define EIGHTH (uint8x8_t) vdup_n_u16(LOAD(uint16_t, p))
#define NEON_epi8_epi16(x) vmovl_s8((int8x8_t)(x))
#define NEON_epi8_epi32(x) vmovl_s16(vget_low_s16(NEON_epi8_epi16(x)))
#define NEON_epi8_epi64(x) vmovl_s32(vget_low_s32(NEON_epi8_epi32(x)))
#define NEON_epu8_epi16(x) vmovl_u8(x)
#define NEON_epu8_epi32(x) vmovl_u16(vget_low_u16(NEON_epu8_epi16(x)))
#define NEON_epu8_epi64(x) vmovl_u32(vget_low_u32(NEON_epu8_epi32(x)))
#define NEON_epi16_epi64(x) vmovl_s32(vget_low_s32(vmovl_s16((int16x4_t)(x))))
#define NEON_epu16_epi64(x) vmovl_u32(vget_low_u32(vmovl_u16((uint16x4_t)(x))))
#define NEON_epi32_epi64(x) vmovl_s32((int32x2_t)(x))
#define NEON_epu32_epi64(x) vmovl_u32((uint32x2_t)(x))
#define WIDEN(from, to, bytes, suffix, element) \
    ALWAYS vs##to widen_##from##_##to(const uint8_t *p) { return (vs##to)NEON_##suffix(bytes); }
#else
#define WIDEN(from, to, bytes, suffix, element)                                                 \
    ALWAYS vs##to widen_##from##_##to(const uint8_t *p) {                                       \
        typedef element elements __attribute__((vector_size(VB / (to / 8) * sizeof(element)))); \
        return __builtin_convertvector(LOAD(elements, p), vs##to);                              \
    }
#endif
WIDEN(s8, 16, HALF, epi8_epi16, int8_t)
WIDEN(s8, 32, QUARTER, epi8_epi32, int8_t)
WIDEN(s8, 64, EIGHTH, epi8_epi64, int8_t)
WIDEN(u8, 16, HALF, epu8_epi16, uint8_t)
WIDEN(u8, 32, QUARTER, epu8_epi32, uint8_t)
WIDEN(u8, 64, EIGHTH, epu8_epi64, uint8_t)
WIDEN(s16, 64, QUARTER, epi16_epi64, int16_t)
WIDEN(u16, 64, QUARTER, epu16_epi64, uint16_t)
WIDEN(s32, 64, HALF, epi32_epi64, int32_t)
WIDEN(u32, 64, HALF, epu32_epi64, uint32_t)
ALWAYS vs8 widen_s8_8(const uint8_t *p) { return LOAD(vs8, p); }
ALWAYS vs64 widen_s64_64(const uint8_t *p) { return LOAD(vs64, p); }
#define widen_u64_64 widen_s64_64
#undef HALF
#undef QUARTER
#undef EIGHTH
#undef WIDEN

#endif
