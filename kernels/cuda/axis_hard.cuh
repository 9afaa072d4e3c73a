/* axis_hard: along an axis, the float sums whose elements no window takes: each listed output again, a warp for up to so many of
 * its lines, by the bins of sum_bins.cuh, whose time hardly depends on the data.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_HARD_CUH
#define CURED_KERNELS_CUDA_AXIS_HARD_CUH

#include "kernels/cuda/axis_round.cuh"
#include "kernels/cuda/simt.cuh"
#include "kernels/cuda/sum_bins.cuh"

/* E: the element's own type; f16 has no hard sums. */
template <class E, int KIND> struct cr_axis_hard_sum {
    using Bins = cr_bins<E, KIND>;
    static constexpr int SIZE = E::SIZE, TOGETHER = 4;
    static constexpr int LIMBS = KIND == CR_SUM_SQUARE ? 20 : SIZE == 8 ? 68 : 11;
    static constexpr int GRID = (SIZE == 8 ? -1074 : -149) * (KIND == CR_SUM_SQUARE ? 2 : 1);
    static constexpr bool TABLES = SIZE == 8 || KIND == CR_SUM_SQUARE; /* cr_digits rather than cr_rows */

    struct Shared {
        typename Bins::Shared bins;
        long long digit[CR_WARPS][LIMBS];
    };
    Shared &shared;
    const cr_axis_args &args;
    cr_sum_state *state;
    uint32_t splits, fill;
    unsigned long long special[3]; /* NaNs, +inf, −inf */

    CR_IN void put(uint64_t bits) {
        cr_parts<E> parts;
        if (parts.split(bits)) {
            Bins::element(shared.bins, bits);
        } else {
            const int which = parts.special();
            special[0] += which == 0;
            special[1] += which == 1;
            special[2] += which == 2;
        }
    }
    CR_IN uint64_t element(const uint8_t *p) const {
        uint64_t bits;
        if (args.at.odd) bits = cr_load_one<SIZE>(p);
        else if (SIZE == 8) bits = *reinterpret_cast<const uint64_t *>(p);
        else if (SIZE == 4) bits = *reinterpret_cast<const uint32_t *>(p);
        else bits = *reinterpret_cast<const uint16_t *>(p);
        return args.family == CR_FAM_SUMABS ? bits & (~0ull >> (65 - 8 * SIZE)) : bits;
    }
    /* Lines [low, high) of an output whose line 0 is at p. */
    CR_IN void fold(const uint8_t *p, uint64_t stride, uint64_t low, uint64_t high) {
        const uint32_t lane = threadIdx.x % CR_WARP;
        fill = 0;
        special[0] = special[1] = special[2] = 0;
        Bins::clear(shared.bins);
        __syncwarp();
        for (uint64_t line = low; line < high; line += TOGETHER * CR_WARP) {
            uint64_t bits[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const uint64_t at = line + lane + (uint64_t)i * CR_WARP;
                bits[i] = at < high ? element(p + at * stride) : 0;
            }
            Bins::reserve(shared.bins, state, fill, Bins::adds(TOGETHER));
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) put(bits[i]);
        }
        __syncwarp();
    }
    CR_IN void put_limb(int limb, long long value, bool alone) {
        if (alone) shared.digit[threadIdx.x / CR_WARP][limb] = value;
        else cr_limb_add(state, limb, value);
    }
    /* All lanes' values, at a bit, to the warp's own digits. */
    CR_IN void put_row(long long value, int bit) {
        for (uint32_t step = 16; step > 0; step /= 2) value += __shfl_xor_sync(CR_EVERYONE, value, step);
        if (threadIdx.x % CR_WARP != 0 || value == 0) return;
        long long *digit = &shared.digit[threadIdx.x / CR_WARP][bit / 32];
        const uint64_t low = (uint64_t)(uint32_t)value << bit % 32;
        digit[0] += (long long)(uint32_t)low;
        digit[1] += (long long)(low >> 32) + (value >> 32) * (1ll << bit % 32);
    }
    /* The warp's bins to its state; alone: to its own digits. */
    CR_IN void flush(bool alone) {
        const uint32_t lane = threadIdx.x % CR_WARP, warp = threadIdx.x / CR_WARP;
        if (alone) {
            for (int i = (int)lane; i < LIMBS; i += CR_WARP) shared.digit[warp][i] = 0;
            __syncwarp();
        }
        if constexpr (TABLES) {
            constexpr int COUNT = (int)(sizeof shared.bins.digit[0] / sizeof shared.bins.digit[0][0]);
            for (int limb = (int)lane; limb < COUNT / 2; limb += CR_WARP) {
                long long low = 0, high = 0;
                for (uint32_t copy = 0; copy < sizeof shared.bins.digit[0][0] / 4; copy++) {
                    low += (int)shared.bins.digit[warp][2 * limb][copy];
                    high += (int)shared.bins.digit[warp][2 * limb + 1][copy];
                }
                if (limb < LIMBS) put_limb(limb, low + high * 65536, alone);
            }
        } else if (alone) {
#pragma unroll 1
            for (int row = 0; row < Bins::ROWS; row++) put_row(Bins::take(shared.bins, row), Bins::bit_of(row));
        } else {
            Bins::settle(shared.bins, state);
        }
#pragma unroll
        for (int i = 0; i < 3; i++) {
            if (alone) {
                for (uint32_t step = 16; step > 0; step /= 2) special[i] += __shfl_xor_sync(CR_EVERYONE, special[i], step);
            } else if (special[i] != 0) {
                atomicAdd(&state->special[i], special[i]);
            }
        }
        if (!alone) __threadfence();
        __syncwarp();
    }
    /* Whether this warp is the last of an output's. */
    CR_IN bool last() const {
        uint32_t before = 0;
        if (splits > 1 && threadIdx.x % CR_WARP == 0) before = (uint32_t)atomicAdd(&state->control, 1ull);
        before = __shfl_sync(CR_EVERYONE, before, 0);
        __threadfence();
        return before + 1 == splits;
    }
    /* To the answers; from the state, which is left zero, or from the warp's own digits. */
    CR_IN void finish(uint64_t output, bool alone) {
        const uint32_t lane = threadIdx.x % CR_WARP;
        long long *digit = shared.digit[threadIdx.x / CR_WARP];
        for (int i = (int)lane; !alone && i < LIMBS; i += CR_WARP) {
            digit[i] = (long long)__ldcg(&state->limbs[i]);
            state->limbs[i] = 0;
        }
        __syncwarp();
        if (lane == 0) {
            if (!alone) {
                for (int i = 0; i < 3; i++) {
                    special[i] = __ldcg(&state->special[i]);
                    state->special[i] = 0;
                }
                state->control = 0;
            }
            uint64_t marks = special[0] & CR_MARK_NANS;
            if (special[1] != 0) marks |= CR_MARK_PLUS;
            if (special[2] != 0) marks |= CR_MARK_MINUS;
            answer(digit, marks, output);
        }
        if (!alone) __threadfence();
        __syncwarp();
    }
    CR_IN void answer(long long *digit, uint64_t marks, uint64_t output) {
        long long carry = 0;
#pragma unroll 1
        for (int i = 0; i < LIMBS; i++) {
            carry += digit[i];
            digit[i] = carry & 0xffffffff;
            carry >>= 32;
        }
        const bool negative = carry < 0;
        int top = -1;
        bool ones = false; /* below the lowest digit that is not zero nothing changes */
#pragma unroll 1
        for (int i = 0; i < LIMBS; i++) {
            if (negative && digit[i] != 0) {
                digit[i] = (ones ? 0xffffffff : 0x100000000) - digit[i];
                ones = true;
            } else if (negative && ones) {
                digit[i] = 0xffffffff;
            }
            if (digit[i] != 0) top = i;
        }
        /* The highest 128 bits, the first of them a one. */
        cr_u128 magnitude = 0;
        bool sticky = false;
        int exponent = 0;
        if (top >= 0) {
            for (int i = top; i > top - 4; i--) magnitude = magnitude << 32 | (uint32_t)(i >= 0 ? digit[i] : 0);
            const int room = 128 - cr_bits_in(magnitude);
            const uint32_t next = top >= 4 ? (uint32_t)digit[top - 4] : 0;
            magnitude = magnitude << room | (room != 0 ? next >> (32 - room) : 0);
            sticky = room != 0 ? next << room != 0 : next != 0;
            exponent = GRID + 32 * (top - 3) - room;
            for (int i = 0; i < top - 4; i++) sticky |= digit[i] != 0;
        }
        for (uint32_t k = 0; k < args.out_count; k++)
            cr_float_answer(args, args.out[k], output, negative, magnitude, exponent, sticky, marks);
    }
};

/* Elements that no table of digits has to be emptied for on the way. */
enum { CR_HARD_ALONE = 65536 };

template <class E, int KIND>
__global__ void __launch_bounds__(CR_GPU_THREADS, 2) cr_axis_hard(const __grid_constant__ cr_axis_args args) {
    typedef cr_axis_hard_sum<E, KIND> sum;
    __shared__ typename sum::Shared shared;
    cr_axis_head *head = reinterpret_cast<cr_axis_head *>(args.scratch);
    const uint32_t *list = reinterpret_cast<const uint32_t *>(head + 1);
    const uint64_t inner = args.at.inner;
    const uint32_t warp = blockIdx.x * CR_WARPS + threadIdx.x / CR_WARP, warps = gridDim.x * CR_WARPS, hard = __ldcg(&head->hard);
    /* Few are cut among more warps. */
    const uint64_t pieces = (args.at.n + CR_AXIS_HARD_LINES - 1) / CR_AXIS_HARD_LINES;
    const uint32_t splits = hard == 0 ? 1 : (uint32_t)max((uint64_t)1, min(pieces, (uint64_t)(warps / hard)));
    const uint64_t lines = (args.at.n + splits - 1) / splits;
    const bool alone = splits == 1 && args.at.n <= CR_HARD_ALONE;
    for (uint64_t item = warp; item < (uint64_t)hard * splits; item += warps) {
        const uint64_t position = item / splits, low = item % splits * lines;
        const uint64_t output = list[position];
        sum s = {shared, args, &head->states[splits > 1 ? position : warp], splits, 0, {0, 0, 0}};
        const uint8_t *p = args.data + (output / inner * args.at.n * inner + output % inner) * E::SIZE;
        s.fold(p, inner * E::SIZE, low, min(low + lines, args.at.n));
        s.flush(alone);
        if (s.last()) s.finish(output, alone);
    }
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&head->hard_blocks, 1u) + 1 == gridDim.x) head->hard = head->hard_blocks = 0;
}

template <class E, int KIND> int cr_axis_launch_hard(const cr_axis_args *args, void *stream) {
    return CR_LAUNCH((cr_axis_hard<E, KIND>), args->at.hard_blocks, CR_GPU_THREADS, stream, *args);
}

#endif
