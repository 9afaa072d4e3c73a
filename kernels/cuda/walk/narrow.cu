/* narrow: Σx of float16 without float64, for chips whose float64 is slow. Folds take it where the fast way gpu_float64 is off,
 * which it is for tests and benches alone: no GPU has measured it.
 *
 * Four elements go over two float32 anchors, whose last bits are 2^-4 and 2^-24. The first stays below 2^20, because four elements are
 * below 2^18; what it rounds off is at most 2^-5, a multiple of 2^-24, and so the second takes it exactly. The anchors' bits, less those
 * they began with, are integers of these units. Elements that are no numbers leave the first with another exponent.
 * Thread: GPU. Owner: the kernel. */
#include <cuda_fp16.h>

#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/walk/walk.cuh"

struct cr_narrow_sum : cr_float_sum<cr_f16, CR_SUM_PLAIN> {
    typedef cr_float_sum<cr_f16, CR_SUM_PLAIN> Wide;
    static constexpr int FINE = -24, COARSE = -4, GROUP = 4;
    static constexpr uint32_t FIRST = ((uint32_t)(COARSE + 23 + 127) << 23) | 1u << 22, SECOND = ((uint32_t)(FINE + 23 + 127) << 23) | 1u << 22;
    static_assert(FINE == cr_f16::GRID && Wide::GROUP == GROUP, "sums are in the unit of the accumulator");

    /* Half e of a vector. */
    CR_DEVICE static float element(const uint4 &v, int e) {
        return __half2float(__ushort_as_half((unsigned short)(cr_word(v, (unsigned)e / 2) >> 16 * (e % 2))));
    }

    /* A vector's sum to `high`·2^COARSE and `low`·2^FINE. `odd` gets a bit above the 23rd if an element is no number. */
    CR_DEVICE static void add_vector(const uint4 &v, uint32_t &high, uint32_t &low, uint32_t &odd) {
#pragma unroll
        for (int e = 0; e < LANES; e += GROUP) {
            float first = __uint_as_float(FIRST), second = __uint_as_float(SECOND);
#pragma unroll
            for (int i = 0; i < GROUP; i++) {
                const float x = element(v, e + i), next = first + x;
                second += x - (next - first);
                first = next;
            }
            high += __float_as_uint(first) - FIRST;
            low += __float_as_uint(second) - SECOND;
            odd |= __float_as_uint(first) ^ FIRST;
        }
    }

    /* NaNs and infinities are counted, and made zeros. The warp together. */
    template <int N> CR_DEVICE void odd_tile(const uint4 (&given)[N], Shared &shared, uint32_t &high, uint32_t &low) {
        uint32_t odd = high = low = 0;
        uint4 v[N];
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = given[j];
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            uint4 one[1] = {v[0]};
            strip(one, shared);
            add_vector(one[0], high, low, odd);
            rotate<1>(v);
        }
    }

    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &shared) {
        static_assert(N * LANES / GROUP < 1 << 9, "32 bits hold a tile's sums");
        constexpr uint32_t GROUPS = N * LANES / GROUP;
        uint32_t high = 0, low = 0, odd = 0;
#pragma unroll
        for (int j = 0; j < N; j++) add_vector(v[j], high, low, odd);
        if (__any_sync(~0u, odd >> 23)) odd_tile(v, shared, high, low);
        if (adds + GROUPS > (uint32_t)MOST) drain(shared);
        adds += GROUPS;
        acc[0] += base(0) * GROUPS + (unsigned long long)((long long)(int32_t)high * (1 << (COARSE - FINE)) + (int32_t)low);
    }
};

extern "C" int cr_launch_narrow_sum_f16(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_narrow_sum>(args, stream); }
