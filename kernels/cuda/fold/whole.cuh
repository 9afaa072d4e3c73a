/* whole: Σx² of 16-bit floats in a long fold. Where the elements that a thread has of a tile are near enough each other, all of their squares
 * are one float64 before they go to the anchors: an addition an element instead of four. Zeros are near everything. Other tiles
 * go the way of fold/float_sums.cuh.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_WHOLE_CUH
#define CURED_KERNELS_CUDA_FOLD_WHOLE_CUH

#include "kernels/cuda/fold/half.cuh"

/* The largest magnitudes of both halves, and the least ones less 1, so that zero is the largest. */
CR_DEVICE void cr_whole_look(uint32_t &most, uint32_t &least, uint32_t magnitudes) {
    most = __vmaxu2(most, magnitudes);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    least = __viaddmin_u16x2(magnitudes, ~0u, least);
#else
    least = __vminu2(least, (magnitudes + 0x7fff7fffu) ^ 0x80008000u);
#endif
}

/* ONCE: E whose lanes are converted. BY_BITS: of four elements so many become float64s by shifts, because conversions are slower than all
 * else that an element takes. */
template <class E, class ONCE, int BY_BITS = 0, int U = 4, int RESIDENT = CR_GPU_BLOCKS_PER_SM>
struct cr_whole_squares : cr_float_sum<E, CR_SUM_SQUARE, U, RESIDENT> {
    typedef cr_float_sum<E, CR_SUM_SQUARE, U, RESIDENT> Plain;
    typedef typename Plain::Window Window;
    typedef typename Plain::Shared Shared;
    static constexpr int LANES = Plain::LANES, ELEMENTS = U * LANES, BITS = ELEMENTS == 32 ? 5 : 6;
    static_assert(E::SIZE == 2 && ELEMENTS == 1 << BITS && Plain::LEVELS == 2, "as it is below");
    /* Binades that the elements may be apart: 2·(apart + 1 + bits of a significand) + BITS ≤ 53. */
    static constexpr int APART = (53 - 2 - BITS) / 2 - E::MANTISSA;
    /* What an anchor takes at once is the sum of GROUP squares: so many binades are left for more. */
    static constexpr int MARGIN = E::ONE_WINDOW ? 0 : (BITS - Window::BITS + 1) / 2;

    /* x² from the magnitude's bits, as if their field were a float64's: x·2^SCALE, times x·2^-SCALE. Of no denormal. */
    CR_DEVICE static double by_bits(uint32_t word, int e, double sum) {
        constexpr int LEFT = 20 - E::MANTISSA;
        const uint32_t upper = (e % 2 ? word >> (16 - LEFT) : word << LEFT) & 0x7fffu << LEFT;
        const double down = __hiloint2double((int)upper, 0), up = __hiloint2double((int)(upper + (uint32_t)(-2 * E::SCALE << 20)), 0);
        return __fma_rn(down, up, sum);
    }

    template <int N> CR_DEVICE void add_whole(const uint4 (&v)[N]) {
        double sum[2] = {0, 0};
#pragma unroll
        for (int j = 0; j < N; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e++) {
                if (e % 4 < BY_BITS) {
                    sum[e % 2] = by_bits(cr_word(v[j], (unsigned)e / 2), e, sum[e % 2]);
                } else {
                    const double x = ONCE::lane(v[j], e);
                    sum[e % 2] = __fma_rn(x, x, sum[e % 2]);
                }
            }
        }
        const double all = __dadd_rn(sum[0], sum[1]), first = this->anchor(0), next = __dadd_rn(first, all);
        const double rest = __dadd_rn(this->anchor(1), __dsub_rn(all, __dsub_rn(next, first)));
        this->acc[0] += Plain::bits(next);
        this->acc[1] += Plain::bits(rest);
    }

    /* Whether all squares of the warp's tile go by one float64 a thread. */
    template <int N> CR_DEVICE bool is_near(const uint4 (&v)[N]) const {
        uint32_t most = 0, least = ~0u;
#pragma unroll
        for (int j = 0; j < N; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) cr_whole_look(most, least, cr_word(v[j], (unsigned)i) & 0x7fff7fffu);
        }
        const uint32_t high = max(most >> 16, most & 0xffffu), low = min(least >> 16, least & 0xffffu);
        const uint32_t floor = max(this->bounds.least, BY_BITS ? (1u << E::FIELD) - 1 : 0u);
        return __all_sync(CR_EVERYONE, high + ((uint32_t)MARGIN << E::FIELD) <= this->bounds.most && low >= floor &&
                                           (int)(high - low) <= (int)((uint32_t)APART << E::FIELD));
    }

    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t vector, uint32_t count, Shared &shared) {
        if constexpr (N == U) {
            if (this->placed && this->streak < 2 && this->adds < (uint32_t)Plain::MOST && is_near(v)) {
                this->adds++;
                this->streak = 0;
                add_whole(v);
                return;
            }
        }
        Plain::template tile<N>(v, vector, count, shared);
    }
};

/* Σx² of a type, by what is for it. */
template <class E> struct cr_squares {
    typedef cr_float_sum<E, CR_SUM_SQUARE> type;
};
template <> struct cr_squares<cr_f16> {
    typedef cr_whole_squares<cr_f16, cr_f16_once> type;
};
template <> struct cr_squares<cr_bf16> {
    typedef cr_whole_squares<cr_bf16, cr_bf16_once> type;
};
template <cr_dtype D> using cr_squares_of = typename cr_squares<cr_float_of<D>>::type;

#endif
