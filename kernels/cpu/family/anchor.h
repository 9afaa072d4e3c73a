/* anchor: exact sums of f32, bf16 and f64 by anchors. Includes anchor_type.inc once per element type.
 *
 * M_i = 1.5·2^(a_i + 52), a_1 = a, a_(i+1) = a_i − 52 (CR_ANCHOR_STEP). Adding x to M_1 in float64 rounds it to a multiple of 2^a, whose
 * integer value appears in the low bits of the sum; adding those bits as wrapping integers is exact, and what was rounded
 * off goes to the next anchor. K anchors take exactly every x with |x| < 2^(a+51) that is a multiple of 2^(a_K). (The
 * splitting is that of Demmel and Nguyen, "Fast Reproducible Floating-Point Summation", ARITH 2013, and Rump, Ogita and
 * Oishi, "Accurate Floating-Point Summation", SIAM J. Sci. Comput. 31, 2008; here it decides exactness, not just order.)
 *
 * A block is folded while its largest and smallest magnitudes are taken. When they leave the window, the accumulators
 * saved before the block come back and the block is folded again by what its span needs: another anchor, more anchors,
 * a chain of running ones, or bins by exponent. NaNs and infinities are counted, never added.
 * Thread: any. Owner: the caller owns state and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_ANCHOR_H
#define CURED_KERNELS_CPU_FAMILY_ANCHOR_H

#include "kernels/cpu/family/anchor_run.h"
#include "kernels/cpu/family/bins.h"
#include "kernels/cpu/family/bins_square.h"
#include "kernels/cpu/family/mixed.h"

/* x² − h, exactly, for h = x² rounded: by a fused multiply-add, or by Dekker's and Veltkamp's splitting (Dekker, "A
 * floating-point technique for extending the available precision", Numer. Math. 18, 1971). */
ALWAYS vf64 square_rest(vf64 x, vf64 h) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmsub_pd((__m512d)x, (__m512d)x, (__m512d)h);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmsub_pd((__m256d)x, (__m256d)x, (__m256d)h);
#elif defined(VEC_NEON)
    return product_error(x, x, h);
#else
    vf64 c = ROUNDED(x * 134217729.0), high = c - (c - x), low = x - high;
    return ((high * high - h) + 2.0 * high * low) + low * low;
#endif
}

/* a·b + s and a·b − t, rounded once; the rounding of a·b itself does not matter where it is exact. */
ALWAYS vf64 product_plus(vf64 a, vf64 b, vf64 s) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)s);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)s);
#elif defined(VEC_NEON)
    return (vf64)vfmaq_f64((float64x2_t)s, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + s;
#endif
}
ALWAYS vf64 product_minus(vf64 a, vf64 b, vf64 t) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)t);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)t);
#elif defined(VEC_NEON)
    return -(vf64)vfmsq_f64((float64x2_t)t, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b - t;
#endif
}

#define TEMPLATE "kernels/cpu/family/anchor_type.inc"
#define FOR_F32 1
#include "kernels/cpu/instance.inc"
#ifndef CURED_SUM_ALONE
#define FOR_BF16 1
#include "kernels/cpu/instance.inc"
#endif
#define FOR_F64 1
#include "kernels/cpu/instance.inc"
#define FOR_SQUARE 1
#define FOR_F32 1
#include "kernels/cpu/instance.inc"
#ifndef CURED_SUM_ALONE
#define FOR_BF16 1
#include "kernels/cpu/instance.inc"
#endif
#define FOR_F64 1
#include "kernels/cpu/instance.inc"
#undef FOR_SQUARE
#undef TEMPLATE

#endif
