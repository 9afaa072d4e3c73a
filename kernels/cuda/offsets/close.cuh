/* close: segments that chunks bring together: each adds to the limbs of the segment's state what it has, and how many elements that were.
 * Whoever makes the elements all answers the segment, and leaves the state zero. All types meet on the grid of float64.
 *
 * The scratch counts the states that are not zero, because wrong offsets may leave some: the slow kernel then clears them.
 * Thread: GPU; a warp together. Owner: the warp, of its digits. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_CLOSE_CUH
#define CURED_KERNELS_CUDA_OFFSETS_CLOSE_CUH

#include "kernels/cuda/axis/square_bins.cuh"
#include "kernels/cuda/offsets/cut.cuh"

/* Of a segment: what round.cuh asks for. */
struct cr_segment_of {
    struct {
        uint64_t n;
    } at;
    uint64_t ddof;
    bool skip;
};
CR_DEVICE cr_segment_of cr_segment_make(const cr_segments_args &args, uint64_t n) { return {{n}, args.ddof, args.skip != 0}; }

typedef cr_axis_hard_sum<CR_SUM_PLAIN> cr_segments_sums;
typedef cr_axis_hard_sum<CR_SUM_SQUARE> cr_segments_squares;

/* A warp's place for the digits of both sums. */
struct cr_segments_digits {
    long long sum[cr_segments_sums::LIMBS], square[cr_segments_squares::LIMBS];
};

/* The control of a state counts elements, and in this bit that the segment's end has come. */
static constexpr unsigned long long CR_SEGMENTS_ENDED = 1ull << 62;

CR_DEVICE cr_sum_state *cr_segments_state(const cr_segments_args &args, uint32_t owner, bool square) {
    return &cr_segments_head(args)->states[owner + (square ? CR_AXIS_STATES : 0)];
}

CR_DEVICE void cr_put_variance(const cr_segment_of &of, const cr_axis_out &out, uint64_t output, const cr_segments_digits &digits, uint64_t marks) {
    const uint64_t nans = marks & CR_MARK_NANS, n = of.at.n - (of.skip ? nans : 0);
    const bool nan = (marks & ~CR_MARK_NANS) != 0 || (nans != 0 && !of.skip) || n <= of.ddof;
    cr_u128 magnitude = 0;
    int exponent = 0;
    bool sticky = false;
    if (!nan) {
        cr_words<cr_segments_sums::LIMBS / 2> sum;
        cr_words<cr_segments_squares::LIMBS / 2> squares;
        cr_segments_sums::words(sum, digits.sum);
        cr_segments_squares::words(squares, digits.square);
        cr_variance<72>(sum, CR_F64_GRID, squares, CR_F64_SQUARE_GRID, n, of.ddof, out.root, magnitude, exponent, sticky);
    }
    cr_put_bits(out.to, output, out.result, nan ? cr_nan_bits(out.result) : cr_rounded(out.result, false, magnitude, exponent, sticky));
}

/* Answers a segment of n elements from its digits; marks are lane 0's. */
CR_CALLED void cr_segments_close(const cr_segments_args &args, uint64_t output, uint64_t n, cr_segments_digits &digits, uint64_t marks) {
    const cr_segment_of of = cr_segment_make(args, n);
    int top = -1, exponent = 0;
    bool sticky = false, negative = false;
    cr_u128 magnitude = 0;
    __syncwarp();
    if (args.kind != CR_SEGMENTS_SQUARE) {
        negative = cr_segments_sums::carry(digits.sum, top);
        __syncwarp();
        magnitude = cr_segments_sums::leading(digits.sum, top, exponent, sticky);
    }
    const bool leads = threadIdx.x % CR_WARP == 0;
    for (uint32_t k = 0; k < args.out_count && leads; k++) {
        if (args.out[k].term != CR_TERM_SQUARE && !cr_is_variance(args.out[k]))
            cr_float_answer(of, args.out[k], output, negative, magnitude, exponent, sticky, marks);
    }
    __syncwarp();
    if (args.kind == CR_SEGMENTS_SUM) return;
    cr_segments_squares::carry(digits.square, top);
    __syncwarp();
    magnitude = cr_segments_squares::leading(digits.square, top, exponent, sticky);
    for (uint32_t k = 0; k < args.out_count && leads; k++) {
        if (args.out[k].term == CR_TERM_SQUARE) cr_float_answer(of, args.out[k], output, false, magnitude, exponent, sticky, marks);
        else if (cr_is_variance(args.out[k])) cr_put_variance(of, args.out[k], output, digits, marks);
    }
    __syncwarp();
}

/* Adds value·2^unit to the limbs; all lanes have the same value. */
template <int W> CR_DEVICE void cr_segments_add(cr_sum_state *state, cr_words<W> value, int unit, int grid) {
    const bool negative = value.strip_sign();
    const uint32_t lane = threadIdx.x % CR_WARP, bit = (uint32_t)(unit - grid), shift = bit % 32;
    uint32_t below = 0, digit = 0;
#pragma unroll
    for (uint32_t i = 0; i <= 2 * W; i++) {
        const uint32_t own = i < 2 * W ? (uint32_t)(value.word[i / 2 % W] >> i % 2 * 32) : 0;
        if (i == lane) digit = __funnelshift_r(below, own, 32 - shift);
        if (i == lane && shift == 0) digit = own;
        below = own;
    }
    if (digit != 0) atomicAdd(&state->limbs[bit / 32 + lane], negative ? 0 - (unsigned long long)digit : (unsigned long long)digit);
}

CR_DEVICE void cr_segments_add_marks(cr_sum_state *state, uint64_t nans, bool plus, bool minus) {
    if (threadIdx.x % CR_WARP != 0) return;
    if (nans != 0) atomicAdd(&state->special[0], (unsigned long long)nans);
    if (plus) atomicAdd(&state->special[1], 1ull);
    if (minus) atomicAdd(&state->special[2], 1ull);
}

/* After what was added: tells that `elements` of the n have come, and maybe the end; whoever is the last answers. */
template <int LIMBS> CR_DEVICE void cr_segments_take(cr_sum_state *state, long long *digit) {
    for (int i = (int)(threadIdx.x % CR_WARP); i < LIMBS; i += CR_WARP) {
        digit[i] = (long long)__ldcg(&state->limbs[i]);
        state->limbs[i] = 0;
    }
}
CR_CALLED void cr_segments_arrive(const cr_segments_args &args, uint32_t owner, uint64_t output, uint64_t n, uint64_t elements, bool ended,
                                  cr_segments_digits &digits) {
    cr_sum_state *state = cr_segments_state(args, owner, false);
    const bool leads = threadIdx.x % CR_WARP == 0;
    const unsigned long long mine = elements | (ended ? CR_SEGMENTS_ENDED : 0);
    unsigned long long before = 0;
    __threadfence();
    __syncwarp();
    if (leads) {
        before = atomicAdd(&state->control, mine);
        if (before == 0) atomicAdd(&cr_segments_head(args)->open, 1u);
    }
    before = __shfl_sync(CR_EVERYONE, before, 0);
    if (before + mine != (n | CR_SEGMENTS_ENDED)) return;
    __threadfence();
    uint64_t marks = 0;
    if (leads) {
        marks = __ldcg(&state->special[0]) & CR_MARK_NANS;
        if (__ldcg(&state->special[1]) != 0) marks |= CR_MARK_PLUS;
        if (__ldcg(&state->special[2]) != 0) marks |= CR_MARK_MINUS;
        state->special[0] = state->special[1] = state->special[2] = 0;
        state->control = 0;
        atomicAdd(&cr_segments_head(args)->open, ~0u);
    }
    if (args.kind != CR_SEGMENTS_SQUARE) cr_segments_take<cr_segments_sums::LIMBS>(state, digits.sum);
    if (args.kind != CR_SEGMENTS_SUM) cr_segments_take<cr_segments_squares::LIMBS>(cr_segments_state(args, owner, true), digits.square);
    cr_segments_close(args, output, n, digits, marks);
}

#endif
