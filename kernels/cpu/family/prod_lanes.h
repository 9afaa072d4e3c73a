/* prod_lanes: what products of floats are made of: elements as doubles, their magnitudes and exponents apart, products with
 * their error.
 *
 * A product's error (product_error) is the same bits by fused multiply-add and by Dekker's split: see kernels/core/prod.h.
 * Thread: any; pure functions. */
#ifndef CURED_KERNELS_CPU_FAMILY_PROD_LANES_H
#define CURED_KERNELS_CPU_FAMILY_PROD_LANES_H

#include "kernels/core/round.h"
#include "kernels/cpu/vec.h"

enum { PROD_LANES = VB / 8 };

/* As many elements as a vector has doubles, in order. */
typedef float prod_f32 __attribute__((vector_size(VB / 2)));
typedef uint32_t prod_u32 __attribute__((vector_size(VB / 2)));
typedef uint16_t prod_u16 __attribute__((vector_size(VB / 4)));

/* Elements of a byte, one at a time. */
NEVER vf64 prod_load_bytes(const uint8_t *p, cr_dtype dtype) {
    vf64 x = {0};
    for (size_t i = 0; i < PROD_LANES; i++) x[i] = cr_float_value(dtype, p[i]);
    return x;
}

ALWAYS vf64 prod_load(const uint8_t *p, cr_dtype dtype) {
    if (dtype == CR_F64) return LOAD(vf64, p);
    if (dtype == CR_F8_E4M3 || dtype == CR_F8_E5M2) return prod_load_bytes(p, dtype);
    if (dtype == CR_F32) return __builtin_convertvector(LOAD(prod_f32, p), vf64);
    prod_u16 x = LOAD(prod_u16, p);
    prod_u32 wide = __builtin_convertvector(x, prod_u32);
    if (dtype == CR_BF16) return __builtin_convertvector((prod_f32)(wide << 16), vf64);
#if defined(VEC_AVX512)
    return (vf64)_mm512_cvtps_pd(_mm256_cvtph_ps((__m128i)x));
#elif defined(VEC_AVX2)
    return (vf64)_mm256_cvtps_pd(_mm_cvtph_ps(_mm_set_epi64x(0, (int64_t)x)));
#elif defined(VEC_NEON)
    uint32_t two;
    memcpy(&two, p, sizeof two);
    return widen_low((vf32)vcvt_f32_f16((float16x4_t)vdup_n_u32(two)));
#else
    vu32 halves = {0};
    for (size_t i = 0; i < PROD_LANES; i++) halves[i] = wide[i] << 16;
    return widen_low(half_lanes(halves));
#endif
}

static const uint64_t prod_infinity = 0x7ff0000000000000u, prod_one = 0x3ff0000000000000u;

/* Counts what is not a plain number; gives the magnitude's bits, of a normal double, or of one. */
ALWAYS vu64 prod_clean(vu64 bits, vu64 counts[3], vu64 *signs, vu64 *exponents) {
    vu64 magnitude = bits & INT64_MAX;
    vu64 nan = (vu64)((vs64)magnitude > (vs64)ALL(vs64, (int64_t)prod_infinity));
    vu64 zero = (vu64)(magnitude == 0), inf = (vu64)(magnitude == prod_infinity);
    counts[0] -= nan;
    counts[1] -= zero;
    counts[2] -= inf;
    *signs ^= bits & ~(nan | zero);
    /* A denormal is an integer below 2^52 in units of 2^-1074. */
    vu64 small = (vu64)((vs64)magnitude < (vs64)ALL(vs64, (int64_t)1 << 52)) & ~zero;
    vf64 units = (vf64)(magnitude | 0x4330000000000000u) - 0x1p52;
    *exponents -= small & 1074;
    magnitude = SELECT(vu64, small, (vu64)units, magnitude);
    return SELECT(vu64, nan | inf | zero, ALL(vu64, prod_one), magnitude);
}

/* One, in each type. */
static void prod_ones(uint8_t *to, size_t n, cr_dtype dtype) {
    const uint64_t one = cr_dtype_one(dtype);
    const size_t size = cr_dtype_size(dtype), bytes = n * size;
    if (n == 0) return;
    memcpy(to, &one, size);
    for (size_t done = size; done < bytes; done *= 2) memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

#endif
