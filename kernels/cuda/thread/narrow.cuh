/* narrow: float16 and bfloat16 by float32, for chips whose float64 is slow: what anchors and elements are then (thread/float.cuh).
 * Whoever sums such a type adds float32s, and knows no more of it than that: a walk, a reduction along an axis, segments.
 *
 * An anchor takes four elements below 2^20 of its last bits each, so it keeps its exponent. What it rounds off is at most half of such a
 * bit, and the anchor 21 binades below takes that exactly. Squares have 16 bits (float16 22), and are exact as float32.
 * All float16 fit two anchors, their squares four. Bfloat16 have a window of 34 binades, and for squares of 23.
 * Thread: GPU. Owner: none; constants and pure functions. */
#ifndef CURED_KERNELS_CUDA_THREAD_NARROW_CUH
#define CURED_KERNELS_CUDA_THREAD_NARROW_CUH

#include <cuda_fp16.h>

#include "kernels/cuda/thread/float.cuh"

template <> struct cr_anchors<float> {
    typedef uint32_t word;
    typedef int32_t signed_word;
    static constexpr int BITS = 23, LEAST = CR_F32_LEAST, ADDS = CR_SUM_ADDS < 510 ? CR_SUM_ADDS : 510; /* of at most 2^22 */
    CR_DEVICE static float make(int a) { return __uint_as_float((uint32_t)(a + 23 + 127) << 23 | 1u << 22); } /* 1.5·2^(a + 23) */
    CR_DEVICE static word bits(float x) { return __float_as_uint(x); }
    CR_DEVICE static float plus(float x, float y) { return __fadd_rn(x, y); }
    CR_DEVICE static float minus(float x, float y) { return __fsub_rn(x, y); }
    CR_DEVICE static float fused(float x, float y, float z) { return __fmaf_rn(x, y, z); }
};

CR_DEVICE float cr_number(cr_f16, uint32_t word, int e) { return __half2float(__ushort_as_half((unsigned short)(word >> 16 * (e % 2)))); }
CR_DEVICE float cr_number(cr_bf16, uint32_t word, int e) { return __uint_as_float((uint32_t)cr_upper(word, e) & 0xffff0000u); }

template <class T> struct cr_narrow : T {
    typedef float number;
    static constexpr int SCALE = 0, LEVELS = 2, SQUARE_LEVELS = T::ONE_WINDOW ? 4 : 3, SQUARE_LOWEST = 0;
    static constexpr int MOST = 127 - cr_anchors<float>::BITS, SQUARE_MOST = MOST; /* so that no anchor is infinite */
    CR_DEVICE static float lane(const uint4 &v, int e) { return cr_number(T(), cr_word(v, (unsigned)e / 2), e); }
    CR_DEVICE static float scaled(const uint4 &v, int e) { return lane(v, e); }
    CR_DEVICE static float value(uint64_t bits) { return cr_number(T(), (uint32_t)bits, 0); }
};

#endif
