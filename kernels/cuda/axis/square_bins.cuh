/* square_bins: along an axis, the sums of squares of float64 that no window takes: each listed output again, a warp for up to so many of
 * its lines, by the bins of fold/bins.cuh, whose time hardly depends on the data. For a variance, which needs both sums, the warp
 * that finishes the squares folds the elements once more. Sums alone are lanes.cuh's.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_SQUARE_BINS_CUH
#define CURED_KERNELS_CUDA_AXIS_SQUARE_BINS_CUH

#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/axis/walk.cuh"
#include "kernels/cuda/fold/bins.cuh"

template <int KIND> struct cr_axis_hard_sum {
    typedef cr_f64 E;
    using Bins = cr_bins<E, KIND>;
    static constexpr int SIZE = E::SIZE, TOGETHER = 4;
    static constexpr int LIMBS = KIND == CR_SUM_SQUARE ? E::SQUARE_LIMBS : E::SUM_LIMBS,
                         GRID = KIND == CR_SUM_SQUARE ? E::SQUARE_GRID : E::GRID;

    struct Shared {
        typename Bins::Shared &bins;
        long long (*digit)[LIMBS]; /* of each warp */
    };
    Shared shared;
    const cr_axis_args &args;
    cr_sum_state *state;
    uint32_t splits, fill;
    unsigned long long special[3]; /* NaNs, +inf, −inf */

    CR_DEVICE void put(uint64_t bits) {
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
    /* No branch stands between the loads, and nothing waits for one of them. */
    CR_DEVICE void load(uint64_t (&bits)[TOGETHER], const uint8_t *p, uint64_t stride, uint64_t line, uint64_t high) const {
        if (args.at.odd || args.mask.kind != CR_MASK_NONE) {
            for (int i = 0; i < TOGETHER; i++, line += CR_WARP)
                bits[i] = line < high && cr_axis_counts<SIZE>(args, p + line * stride) ? cr_load_one<SIZE>(p + line * stride) : 0;
            return;
        }
        p += line * stride;
        const int count = line < high ? (int)min((high - line - 1) / CR_WARP + 1, (uint64_t)TOGETHER) : 0;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++, p += stride * CR_WARP) {
            bits[i] = 0;
            if (i < count) bits[i] = *reinterpret_cast<const uint64_t *>(p);
        }
    }
    /* Lines [low, high) of an output whose line 0 is at p. */
    CR_DEVICE void fold(const uint8_t *p, uint64_t stride, uint64_t low, uint64_t high) {
        const uint32_t lane = threadIdx.x % CR_WARP;
        fill = 0;
        special[0] = special[1] = special[2] = 0;
        Bins::clear(shared.bins);
        __syncwarp();
        const uint64_t mask = args.family == CR_FAM_SUMABS ? INT64_MAX : UINT64_MAX;
        uint64_t next[TOGETHER];
        load(next, p, stride, low + lane, high);
        for (uint64_t line = low; line < high; line += TOGETHER * CR_WARP) {
            uint64_t bits[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) bits[i] = next[i];
            load(next, p, stride, line + TOGETHER * CR_WARP + lane, high); /* while those are put */
            Bins::reserve(shared.bins, state, fill, Bins::adds(TOGETHER));
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) put(bits[i] & mask);
        }
        __syncwarp();
    }
    CR_DEVICE void put_limb(int limb, long long value, bool alone) {
        if (alone) shared.digit[threadIdx.x / CR_WARP][limb] = value;
        else cr_limb_add(state, limb, value);
    }
    /* The warp's bins to its state; alone: to its own digits. */
    CR_DEVICE void flush(bool alone) {
        const uint32_t lane = threadIdx.x % CR_WARP, warp = threadIdx.x / CR_WARP;
        if (alone) {
            for (int i = (int)lane; i < LIMBS; i += CR_WARP) shared.digit[warp][i] = 0;
            __syncwarp();
        }
        constexpr int COUNT = (int)(sizeof shared.bins.digit[0] / sizeof shared.bins.digit[0][0]);
        for (int limb = (int)lane; limb < COUNT / 2; limb += CR_WARP) {
            long long low = 0, high = 0;
            for (uint32_t copy = 0; copy < sizeof shared.bins.digit[0][0] / 4; copy++) {
                low += (int)shared.bins.digit[warp][2 * limb][copy];
                high += (int)shared.bins.digit[warp][2 * limb + 1][copy];
            }
            if (limb < LIMBS) put_limb(limb, low + high * 65536, alone);
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
    CR_DEVICE bool last() const {
        uint32_t before = 0;
        if (splits > 1 && threadIdx.x % CR_WARP == 0) before = (uint32_t)atomicAdd(&state->control, 1ull);
        before = __shfl_sync(CR_EVERYONE, before, 0);
        __threadfence();
        return before + 1 == splits;
    }
    /* From the state, which is left zero, or from the warp's own digits: digits of 32 bits, the number of the highest that is not zero
     * (−1: none), and what else there was; whether the sum was negative. All lanes; marks are lane 0's. */
    CR_DEVICE bool settle(bool alone, uint64_t &marks, int &top) {
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
            marks = special[0] & CR_MARK_NANS;
            if (special[1] != 0) marks |= CR_MARK_PLUS;
            if (special[2] != 0) marks |= KIND == CR_SUM_SQUARE ? CR_MARK_PLUS : CR_MARK_MINUS;
        }
        const bool negative = carry(digit, top);
        if (!alone) __threadfence();
        __syncwarp();
        return negative;
    }
    /* Each lane has EACH neighbouring limbs. What they carry goes up a lane a round, until none does: few rounds, but where many digits
     * are alike. */
    static CR_DEVICE bool carry(long long *digit, int &top) {
        constexpr int EACH = (LIMBS + CR_WARP - 1) / CR_WARP, LAST = (LIMBS - 1) / EACH; /* the lane of the highest */
        const int lane = (int)threadIdx.x % CR_WARP;
        long long own[EACH], over = 0, sign = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) own[i] = lane * EACH + i < LIMBS ? digit[lane * EACH + i] : 0;
        do {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                over += own[i];
                own[i] = over & 0xffffffff;
                over >>= 32;
            }
            if (lane == LAST) sign += over;
            const long long up = __shfl_sync(CR_EVERYONE, over, (lane + CR_WARP - 1) % CR_WARP);
            over = lane == 0 || lane > LAST ? 0 : up;
        } while (__any_sync(CR_EVERYONE, over != 0));
        const bool negative = __shfl_sync(CR_EVERYONE, (int)(sign < 0), LAST) != 0;
        bool some = false;
#pragma unroll
        for (int i = 0; i < EACH; i++) some |= own[i] != 0;
        const uint32_t lanes = __ballot_sync(CR_EVERYONE, some);
        top = -1;
        if (negative) { /* below the lowest digit that is not zero nothing changes */
            bool ones = (lanes & ((1u << lane) - 1)) != 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (ones) own[i] = 0xffffffff - own[i];
                else if (own[i] != 0) own[i] = 0x100000000 - own[i], ones = true;
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (lane * EACH + i >= LIMBS) continue;
            digit[lane * EACH + i] = own[i];
            if (own[i] != 0) top = lane * EACH + i;
        }
        const uint32_t lit = __ballot_sync(CR_EVERYONE, top >= 0);
        top = __shfl_sync(CR_EVERYONE, top, lit == 0 ? 0 : 31 - __clz((int)lit));
        return negative;
    }
    CR_DEVICE void words(cr_words<LIMBS / 2> &to) const { words(to, shared.digit[threadIdx.x / CR_WARP]); }
    static CR_DEVICE void words(cr_words<LIMBS / 2> &to, const long long *digit) {
#pragma unroll 1
        for (int i = 0; i < LIMBS / 2; i++) to.word[i] = (uint64_t)digit[2 * i] | (uint64_t)digit[2 * i + 1] << 32;
    }
    /* The highest 128 bits of the digits, the first of them a one, times 2^exponent. All lanes; top: as carry gives it. */
    static CR_DEVICE cr_u128 leading(const long long *digit, int top, int &exponent, bool &sticky) {
        bool below = false;
        for (int i = (int)threadIdx.x % CR_WARP; i < top - 4; i += CR_WARP) below |= digit[i] != 0;
        sticky = __any_sync(CR_EVERYONE, below);
        exponent = 0;
        if (top < 0) return 0;
        cr_u128 magnitude = 0;
        for (int i = top; i > top - 4; i--) magnitude = magnitude << 32 | (uint32_t)(i >= 0 ? digit[i] : 0);
        const int room = 128 - cr_bits_in(magnitude);
        const uint32_t next = top >= 4 ? (uint32_t)digit[top - 4] : 0;
        magnitude = magnitude << room | (room != 0 ? next >> (32 - room) : 0);
        sticky |= room != 0 ? next << room != 0 : next != 0;
        exponent = GRID + 32 * (top - 3) - room;
        return magnitude;
    }
    /* All but variances. All lanes; top: as settle gives it. */
    CR_DEVICE void answer(bool negative, uint64_t marks, int top, uint64_t output) const {
        int exponent;
        bool sticky;
        const cr_u128 magnitude = leading(shared.digit[threadIdx.x / CR_WARP], top, exponent, sticky);
        if (threadIdx.x % CR_WARP != 0) return;
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (!cr_is_variance(args.out[k]))
                cr_float_answer(args, args.out[k], output, negative, magnitude, exponent, sticky, marks);
        }
    }
};

/* Elements that no table of digits has to be emptied for on the way. */
enum { CR_HARD_ALONE = 65536 };


/* Answers that need Σx too: `squares` is settled in its digits. All lanes of a warp; state: nobody else's. */
CR_DEVICE void cr_axis_hard_variance(const cr_axis_hard_sum<CR_SUM_SQUARE> &squares, cr_axis_hard_sum<CR_SUM_PLAIN> &sum, const uint8_t *p,
                                     uint64_t marks, uint64_t output) {
    const cr_axis_args &args = squares.args;
    uint64_t none = 0;
    int top = 0;
    bool asked = false;
    for (uint32_t k = 0; k < args.out_count; k++) asked |= cr_is_variance(args.out[k]);
    if (!asked) return;
    const bool alone = args.at.n <= CR_HARD_ALONE;
    sum.fold(p, args.at.inner * 8, 0, args.at.n);
    sum.flush(alone);
    sum.settle(alone, none, top);
    if (threadIdx.x % CR_WARP != 0) return;
    cr_words<34> total;
    cr_words<67> of_squares;
    sum.words(total);
    squares.words(of_squares);
    const uint64_t nans = marks & CR_MARK_NANS, n = cr_count_of(args, output) - (args.skip ? nans : 0);
    const bool nan = (marks & ~CR_MARK_NANS) != 0 || (nans != 0 && !args.skip) || n <= args.ddof;
    for (uint32_t k = 0; k < args.out_count; k++) {
        const cr_axis_out &out = args.out[k];
        if (!cr_is_variance(out)) continue;
        cr_u128 magnitude = 0;
        int exponent = 0;
        bool sticky = false;
        if (!nan) cr_variance<72>(total, CR_F64_GRID, of_squares, CR_F64_SQUARE_GRID, n, args.ddof, out.root, magnitude, exponent, sticky);
        cr_put_bits(out.to, output, out.result,
                    nan ? cr_nan_bits(out.result) : cr_rounded(out.result, false, magnitude, exponent, sticky));
    }
}

/* A warp's part of both tables is equally large, and squares' is no longer needed when sums' comes. */
static_assert(sizeof(cr_bins<cr_f64, CR_SUM_SQUARE>::Shared) == sizeof(cr_bins<cr_f64, CR_SUM_PLAIN>::Shared), "tables differ");
template <int KIND> union cr_axis_hard_bins {
    typename cr_bins<cr_f64, KIND>::Shared own;
    cr_bins<cr_f64, CR_SUM_PLAIN>::Shared plain;
};

template <int KIND>
__global__ void __launch_bounds__(CR_GPU_THREADS, KIND == CR_SUM_SQUARE ? 2 : 3) cr_axis_hard(const __grid_constant__ cr_axis_args args) {
    typedef cr_axis_hard_sum<KIND> sum;
    __shared__ cr_axis_hard_bins<KIND> bins;
    __shared__ long long digits[CR_WARPS][sum::LIMBS], others[KIND == CR_SUM_SQUARE ? CR_WARPS : 1][CR_F64_LIMBS];
    cr_after_the_last();
    cr_axis_head *head = cr_axis_head_of(args);
    const uint32_t *list = cr_axis_list(args);
    const uint64_t inner = args.at.inner;
    const uint32_t warp = blockIdx.x * CR_WARPS + threadIdx.x / CR_WARP, warps = gridDim.x * CR_WARPS, hard = __ldcg(&head->hard);
    /* Few are cut among more warps. */
    const uint64_t pieces = (args.at.n + CR_AXIS_HARD_LINES - 1) / CR_AXIS_HARD_LINES;
    const uint32_t splits = hard == 0 ? 1 : (uint32_t)max((uint64_t)1, min(pieces, (uint64_t)(warps / hard)));
    const uint64_t lines = (args.at.n + splits - 1) / splits;
    const bool alone = splits == 1 && args.at.n <= CR_HARD_ALONE;
    const uint64_t items = (uint64_t)hard * splits;
    for (;;) { /* as warps come */
        uint32_t taken = 0;
        if (items != 0 && threadIdx.x % CR_WARP == 0) taken = atomicAdd(&head->taken, 1u);
        const uint64_t item = __shfl_sync(CR_EVERYONE, taken, 0);
        if (item >= items) break;
        const uint64_t position = item / splits, low = item % splits * lines;
        const uint64_t output = list[position];
        sum s = {{bins.own, digits}, args, &head->states[splits > 1 ? position : warp], splits, 0, {0, 0, 0}};
        const uint8_t *p = args.data + (output / inner * args.at.n * inner + output % inner) * 8;
        s.fold(p, inner * 8, low, min(low + lines, args.at.n));
        s.flush(alone);
        if (!s.last()) continue;
        uint64_t marks = 0;
        int top = 0;
        const bool negative = s.settle(alone, marks, top);
        s.answer(negative, marks, top, output);
        if constexpr (KIND == CR_SUM_SQUARE) {
            cr_axis_hard_sum<CR_SUM_PLAIN> plain = {
                {bins.plain, others},
                args, &head->states[CR_AXIS_STATES + warp], 1, 0, {0, 0, 0}};
            cr_axis_hard_variance(s, plain, p, marks, output);
        }
        __syncwarp();
    }
    cr_axis_leave_list(args);
}

template <int KIND> int cr_axis_launch_hard(const cr_axis_args *args, void *stream) {
    return cr_launch(cr_axis_hard<KIND>, args->at.hard_blocks, CR_GPU_THREADS, stream, true, *args);
}

#endif
