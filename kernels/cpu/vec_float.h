/* vec_float: lane operations of floats, for vec.h, which includes it.
 *
 * Thread: any; pure functions, but for the flags that tell what was rounded, which are the thread's. */
#ifndef CURED_KERNELS_CPU_VEC_FLOAT_H
#define CURED_KERNELS_CPU_VEC_FLOAT_H

#include "kernels/core/fast.h"
#include "kernels/cpu/vec.h"

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
#elif defined(VEC_NEON)
/* Of a signalling NaN they make a quiet one, and b is lost: whoever folds NaNs sees them otherwise, and folds again. */
#define FLOATS(type, suffix, reg)                                                             \
    ALWAYS type min_##type(type a, type b) { return (type)vminnmq_##suffix((reg)a, (reg)b); } \
    ALWAYS type max_##type(type a, type b) { return (type)vmaxnmq_##suffix((reg)a, (reg)b); }
FLOATS(vf32, f32, float32x4_t)
FLOATS(vf64, f64, float64x2_t)
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
#elif defined(VEC_NEON) /* whose maximum of a NaN and anything is a NaN */
typedef vf32 nans_vf32;
typedef vf64 nans_vf64;
ALWAYS vf32 note_vf32(vf32 seen, vf32 a, vf32 b) {
    return (vf32)vmaxq_f32((float32x4_t)seen, vmaxq_f32((float32x4_t)a, (float32x4_t)b));
}
ALWAYS vf64 note_vf64(vf64 seen, vf64 a, vf64 b) {
    return (vf64)vmaxq_f64((float64x2_t)seen, vmaxq_f64((float64x2_t)a, (float64x2_t)b));
}
ALWAYS bool noted_vf32(vf32 seen) { return any_bit((vu64)(seen != seen)); }
ALWAYS bool noted_vf64(vf64 seen) { return any_bit((vu64)(seen != seen)); }
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

/* VB / 8 float32 at p, widened. */
ALWAYS vf64 widen_at(const uint8_t *p) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_cvtps_pd(_mm256_loadu_ps((const float *)p));
#elif defined(VEC_AVX2)
    return (vf64)_mm256_cvtps_pd(_mm_loadu_ps((const float *)p));
#elif defined(VEC_NEON)
    return (vf64)vcvt_f64_f32((float32x2_t)vld1_u8(p));
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
#elif defined(VEC_NEON)
ALWAYS vf64 widen_low(vf32 x) { return (vf64)vcvt_f64_f32(vget_low_f32((float32x4_t)x)); }
ALWAYS vf64 widen_high(vf32 x) { return (vf64)vcvt_high_f64_f32((float32x4_t)x); }
#else
ALWAYS vf64 widen_low(vf32 x) { return widen_at((const uint8_t *)&x); }
ALWAYS vf64 widen_high(vf32 x) { return widen_at((const uint8_t *)&x + VB / 2); }
#endif
/* Half number i of the float32 vectors from p on, widened: on NEON of a vector that is loaded whole. */
ALWAYS vf64 widen_half(const uint8_t *p, int i) {
#if defined(VEC_NEON)
    const vf32 both = LOAD(vf32, p + i / 2 * VB);
    return i % 2 == 0 ? widen_low(both) : widen_high(both);
#else
    return widen_at(p + i * (VB / 2));
#endif
}

#ifndef CURED_SUM_ALONE
/* float16 lanes to float32, exactly: the even-numbered half of the lanes and the other (which is which does not matter
 * to a sum). Infinities and NaNs stay what they are. */
#if defined(VEC_AVX512)
ALWAYS vf32 halves_a(vu16 h) { return (vf32)_mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)h)); }
ALWAYS vf32 halves_b(vu16 h) { return (vf32)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)h, 1)); }
#elif defined(VEC_AVX2)
ALWAYS vf32 halves_a(vu16 h) { return (vf32)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)h)); }
ALWAYS vf32 halves_b(vu16 h) { return (vf32)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)h, 1)); }
#elif defined(VEC_NEON)
ALWAYS vf32 halves_a(vu16 h) { return (vf32)vcvt_f32_f16(vget_low_f16((float16x8_t)h)); }
ALWAYS vf32 halves_b(vu16 h) { return (vf32)vcvt_high_f32_f16((float16x8_t)h); }
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
#elif defined(VEC_NEON)
    return -(vf64)vfmsq_f64((float64x2_t)p, (float64x2_t)a, (float64x2_t)b);
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
#elif defined(VEC_NEON)
#define VEC_TELLS_INEXACT 1
ALWAYS bool inexact_seen(void) { return (cr_flags() & CR_FLAG_INEXACT) != 0; }
ALWAYS void inexact_clear(void) { cr_flags_set(cr_flags() & ~(uint64_t)CR_FLAG_INEXACT); }
#endif

#endif
