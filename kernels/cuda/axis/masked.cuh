/* masked: along an axis, a masked view: what an array's mask leaves out is loaded as zeros, which change no sum; of extrema, as args.fill, to
 * which no element is worse. The mask has a byte an element and begins at a multiple of 16 bytes, the array at one of its elements' size; other masks go by swaths (kernels/cuda/swaths).
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_MASKED_CUH
#define CURED_KERNELS_CUDA_AXIS_MASKED_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/thread/keep.cuh"

/* Whether an accumulator's loads look at a mask: never, where args have one, always. */
enum cr_axis_masking { CR_MASKING_NEVER, CR_MASKING_ASKED, CR_MASKING_ALWAYS };
template <class A, class = void> struct cr_axis_masking_of { static constexpr cr_axis_masking value = CR_MASKING_NEVER; };
template <class A> struct cr_axis_masking_of<A, decltype((void)A::MASKING)> { static constexpr cr_axis_masking value = A::MASKING; };

/* Whether what is left out becomes args.fill. */
template <class A, class = void> struct cr_axis_fills { static constexpr bool value = false; };
template <class A> struct cr_axis_fills<A, decltype((void)A::FILLS)> { static constexpr bool value = A::FILLS; };
/* A unit, or the fill where `kept` has no bits. */
template <class A, class UNIT> CR_DEVICE UNIT cr_axis_kept(const cr_axis_args &args, UNIT unit, UNIT kept) {
    return cr_axis_fills<A>::value ? (unit & kept) | ((UNIT)args.fill & ~kept) : unit & kept;
}

/* The view of the walk over A's elements. Loads do not run ahead, since those of the mask do not. */
template <class A> struct cr_axis_masked : A {
    static constexpr cr_axis_masking MASKING = CR_MASKING_ALWAYS;
    static constexpr bool AHEAD = false;
    template <class UNIT, int U>
    CR_DEVICE void tile(const cr_axis_args &args, UNIT (&v)[U], uint32_t j, int left, const uint8_t *p, uint64_t stride) {
        if constexpr (A::AHEAD) A::tile(args, v, j, left, p, stride, [] {});
        else A::tile(args, v, j, left, p, stride);
    }
};

/* The byte of the element at p. */
template <int SIZE> CR_DEVICE const uint8_t *cr_axis_mask_at(const cr_axis_args &args, const uint8_t *p) {
    return args.mask.data + args.mask.first + (uint64_t)(p - args.data) / SIZE;
}
/* Whether the element at p counts, for whatever has no view. */
template <int SIZE> CR_DEVICE bool cr_axis_counts(const cr_axis_args &args, const uint8_t *p) {
    return args.mask.kind == CR_MASK_NONE || (*cr_axis_mask_at<SIZE>(args, p) != 0) != args.mask.leaves_out;
}

/* Units v from p on, of which the first `left` are elements: zeros, or the fill, where the mask says so. */
template <class A, class UNIT, int U>
CR_DEVICE void cr_axis_hide(UNIT (&v)[U], const cr_axis_args &args, const uint8_t *p, uint64_t stride, int left) {
    constexpr int V = CR_GPU_VECTOR / (int)sizeof(UNIT), LANES = CR_GPU_VECTOR / A::SIZE;
    const uint8_t *from = cr_axis_mask_at<A::SIZE>(args, p);
    const uint64_t step = stride / A::SIZE;
    if (args.at.vector > 1) {
        cr_keep<LANES> keep[(U + V - 1) / V];
#pragma unroll
        for (int i = 0; i < U; i += V, from += step) {
            if (i < left) keep[i / V].load(from);
            else keep[i / V] = {};
        }
#pragma unroll
        for (int i = 0; i < U; i += V) {
            keep[i / V].settle(args.mask);
            if (cr_axis_fills<A>::value && i >= left) keep[i / V] = {}; /* a mask that leaves out would keep extrema's first again */
#pragma unroll
            for (int k = 0; k < V && k < U; k++) {
                const uint32_t word = keep[i / V].word((unsigned)k * sizeof(UNIT) / 4);
                v[i + k] = cr_axis_kept<A, UNIT>(args, v[i + k], sizeof(UNIT) == 8 ? (UNIT)(int64_t)(int32_t)word : (UNIT)word);
            }
        }
        return;
    }
    cr_keep<A::C> keep[U];
    const bool apart = A::C > 1 && (args.at.rows || !args.at.wide); /* a row's units begin anywhere */
#pragma unroll
    for (int i = 0; i < U; i++, from += step) {
        keep[i] = {};
        if (i >= left) continue;
        if (!apart) {
            keep[i].load(from);
        } else {
#pragma unroll
            for (int e = 0; e < A::C; e++) {
                if (e == 0 || args.at.wide) keep[i].top[0] |= (uint32_t)from[e] << 8 * e;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < U; i++) {
        keep[i].settle(args.mask);
        if (cr_axis_fills<A>::value && i >= left) keep[i] = {}; /* likewise */
        if constexpr (A::C == 1) v[i] = keep[i].top[0] != 0 ? v[i] : cr_axis_kept<A, UNIT>(args, v[i], 0);
        else v[i] = cr_axis_kept<A, UNIT>(args, v[i], A::C == 2 ? cr_signs(keep[i].top[0], 0x9988) : cr_sign_bytes(keep[i].top[0]));
    }
}

#endif
