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
