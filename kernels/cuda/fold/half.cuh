/* half: f16 and bf16 for several families in one pass. An element becomes a float64 once, by instructions that convert; a
 * sum alone does without.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#ifndef CURED_KERNELS_CUDA_FOLD_HALF_CUH
#define CURED_KERNELS_CUDA_FOLD_HALF_CUH

#include "kernels/cuda/fold/set.cuh"

struct cr_f16_once : cr_f16 {
    template <int UPPER> CR_DEVICE static float number(uint32_t word) {
#if defined(__CUDA_ARCH__)
        float x;
        if (UPPER) asm("{ .reg .f16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(word));
        else asm("{ .reg .f16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(x) : "r"(word));
        return x;
#else
        const uint32_t half = UPPER ? word >> 16 : word & 0xffffu;
        return __uint_as_float((half & 0x8000u) << 16 | (half & 0x7fffu) << 13) * 0x1p112f;
#endif
    }
    static constexpr int SCALE = 0;
    CR_DEVICE static double value(uint64_t bits) { return (double)number<0>((uint32_t)bits); }
    CR_DEVICE static double lane(const uint4 &v, int e) {
        const uint32_t word = cr_word(v, (unsigned)e / 2);
        return (double)(e % 2 ? number<1>(word) : number<0>(word));
    }
    CR_DEVICE static double scaled(const uint4 &v, int e) { return lane(v, e); }
};
struct cr_bf16_once : cr_bf16 {
    static constexpr int SCALE = 0;
    CR_DEVICE static double scaled(const uint4 &v, int e) { return lane(v, e); }
};
/* A type's elements for several families: each is converted once. */
template <class E> struct cr_once {
    typedef E type;
};
template <> struct cr_once<cr_f16> {
    typedef cr_f16_once type;
};
template <> struct cr_once<cr_bf16> {
    typedef cr_bf16_once type;
};
template <cr_dtype D> using cr_once_of = typename cr_once<cr_float_of<D>>::type;

template <int KIND> struct cr_bins<cr_f16_once, KIND> : cr_bins<cr_f16, KIND> {};
template <> struct cr_bins<cr_bf16_once, CR_SUM_SQUARE> : cr_bins<cr_bf16, CR_SUM_SQUARE> {};

#endif
