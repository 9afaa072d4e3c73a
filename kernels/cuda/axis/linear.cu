/* linear: see linear.h. A warp for each sum: its lanes move words, and one of them carries, since a carry goes through all digits.
 *
 * Thread: GPU; the launchers are called by the stream's thread. Owner: the kernel, of the digits. */
#include "kernels/core/linear.h"
#include "kernels/cuda/axis/answer.cuh"
#include "kernels/cuda/axis/linear.h"

enum { LINEAR_ROOM = CR_F64_SQUARE_LIMBS + 2, LINEAR_BITS = 32 };

/* A slot of no elements. */
__global__ void __launch_bounds__(CR_WARP) cr_linear_begin_kernel(cr_fold_slot *slot) {
    cr_after_the_last();
    cr_partial *p = &slot->partial;
    for (int at = 0; at < CR_KNOWN_SUMS; at++)
        for (int i = (int)threadIdx.x; i < CR_SUM_LIMBS; i += CR_WARP) p->sums[at].limbs[i] = 0;
    if (threadIdx.x != 0) return;
    p->nans = p->nonzero = 0;
    p->min.index = p->max.index = p->first_nan = UINT64_MAX;
}

/* Adds value·2^bit: each digit gets less than 2^33, the last one what is left, with its sign. */
CR_DEVICE void cr_linear_put(int64_t *digit, int last, int64_t value, int bit) {
    const int by = bit % LINEAR_BITS;
    int at = bit / LINEAR_BITS;
    if (value == 0) return;
    if (at < last) {
        digit[at++] += (uint32_t)((uint64_t)value << by);
        value = by == 0 ? value >> LINEAR_BITS : value >> (LINEAR_BITS - by);
    } else {
        value = (int64_t)((uint64_t)value << (bit - LINEAR_BITS * last));
    }
    if (at < last) {
        digit[at++] += (uint32_t)value;
        value >>= LINEAR_BITS;
    }
    digit[at < last ? at : last] += value;
}

CR_DEVICE void cr_linear_carry(int64_t *digit, int last) {
    int64_t carry = 0;
#pragma unroll 1
    for (int i = 0; i < last; i++) {
        const int64_t sum = digit[i] + carry;
        digit[i] = (uint32_t)sum;
        carry = sum >> LINEAR_BITS;
    }
    digit[last] += carry;
}

/* By one lane: what the fold has left of a sum, as digits of the vector's grid. */
CR_DEVICE void cr_linear_take(int64_t *digit, const cr_sum_found &found, const cr_linear_sum &of) {
    const int last = of.limbs - 1, digits = (int)cr_sum_digits(&found), width = cr_sum_digit_bits(&found);
    const bool all = cr_sum_in_limbs(&found);
#pragma unroll 1
    for (int i = 0; i < digits; i++)
        cr_linear_put(digit, last, cr_sum_digit(&found, (uint32_t)i), found.unit - of.grid + of.shift + width * i);
#pragma unroll 1
    for (int i = 0; all && i < of.found; i++) cr_linear_put(digit, last, found.limbs[i], LINEAR_BITS * i + of.shift);
    cr_linear_carry(digit, last);
}

CR_DEVICE int64_t cr_linear_key(uint64_t key) { return (int64_t)(key ^ (uint64_t)1 << 63); }

CR_DEVICE void cr_linear_maxima_of(const cr_partial &p, uint64_t n, int64_t *to) {
    const bool some = n != 0 && p.min.index != UINT64_MAX;
    to[0] = some;
    to[1] = n != 0 && p.first_nan != UINT64_MAX;
    to[2] = cr_linear_key(some ? p.max.key : 0);
    to[3] = cr_linear_key(some ? ~p.min.key : 0);
}

__global__ void __launch_bounds__(CR_KNOWN_SUMS *CR_WARP) cr_linear_write_kernel(const __grid_constant__ cr_linear_args args) {
    __shared__ int64_t digits[CR_KNOWN_SUMS][LINEAR_ROOM];
    __shared__ cr_sum_found found[CR_KNOWN_SUMS];
    const uint32_t k = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
    cr_after_the_last();
    if (threadIdx.x == 0) {
        args.sums[0] = (int64_t)args.n;
        if (args.counts != 0) args.sums[args.counts] = args.n != 0 ? (int64_t)args.slot->partial.nans : 0;
        if (args.counts != 0) args.sums[args.counts + 1] = args.n != 0 ? (int64_t)args.slot->partial.nonzero : 0;
        if (args.maxima != nullptr) cr_linear_maxima_of(args.slot->partial, args.n, args.maxima);
    }
    if (k >= args.sum_count) return;
    const cr_linear_sum &of = args.sum[k];
    const bool floats = args.floats && args.n != 0, ints = !args.floats && args.n != 0;
    const cr_sum &whole = args.slot->partial.sums[of.at];
    if (floats) cr_answer_fetch(found[k], args.slot->sums[of.at], lane, CR_WARP);
    for (uint32_t i = lane; i < of.limbs; i += CR_WARP) digits[k][i] = ints && i < of.found ? whole.limbs[i] : 0;
    __syncwarp();
    if (lane == 0 && floats) cr_linear_take(digits[k], found[k], of);
    if (lane == 0 && ints) cr_linear_carry(digits[k], of.limbs - 1);
    __syncwarp();
    for (uint32_t i = lane; i < of.limbs; i += CR_WARP) args.sums[of.first + i] = digits[k][i];
    if (lane < CR_LINEAR_SPECIALS && args.floats)
        args.sums[of.first + of.limbs + lane] = floats && cr_sum_in_limbs(&found[k]) ? (int64_t)found[k].special[lane] : 0;
}

/* By one lane: digits that were added up, as the digits of one number and its sign. False: no elements give them. */
CR_DEVICE bool cr_linear_settle(cr_answer_number &number, int limbs) {
    int64_t carry = 0;
    number.first = 0;
    number.count = limbs + 1;
#pragma unroll 1
    for (int i = 0; i < limbs; i++) {
        const int64_t sum = number.digit[i] + carry;
        number.digit[i] = (uint32_t)sum;
        carry = sum >> LINEAR_BITS;
    }
    number.digit[limbs] = carry;
    number.settle();
    return carry == 0 || carry == -1;
}

CR_DEVICE uint64_t cr_linear_marks(const int64_t *special, int64_t n, bool &wrong) {
    for (int i = 0; i < CR_LINEAR_SPECIALS; i++) wrong |= special[i] < 0 || special[i] > n;
    return ((uint64_t)special[0] & CR_MARK_NANS) | (special[1] != 0 ? (uint64_t)CR_MARK_PLUS : 0) |
           (special[2] != 0 ? (uint64_t)CR_MARK_MINUS : 0);
}

__global__ void __launch_bounds__(CR_AXIS_OUTS *CR_WARP) cr_linear_read_kernel(const __grid_constant__ cr_linear_read_args given) {
    __shared__ cr_answer_number numbers[CR_AXIS_OUTS];
    const uint32_t k = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
    cr_after_the_last();
    if (k >= given.axis.out_count) return;
    const cr_linear_sum &of = given.sum[k];
    cr_answer_number &number = numbers[k];
    for (uint32_t i = lane; i < of.limbs; i += CR_WARP) number.digit[i] = given.sums[of.first + i];
    __syncwarp();
    if (lane != 0) return;
    cr_axis_args args = given.axis;
    const int64_t n = given.sums[0];
    bool wrong = n < 0, sticky = false;
    int exponent = of.grid;
    args.at.n = (uint64_t)n;
    const uint64_t marks = cr_linear_marks(given.sums + of.first + of.limbs, n, wrong);
    wrong |= !cr_linear_settle(number, of.limbs);
    const cr_u128 magnitude = number.leading(exponent, sticky);
    if (!wrong) cr_float_answer(args, args.out[k], 0, number.negative, magnitude, exponent, sticky, marks);
    if (wrong && given.wrong != nullptr) *given.wrong = 1;
}

extern "C" int cr_linear_begin_launch(cr_fold_slot *slot, void *stream) {
    return cr_launch(cr_linear_begin_kernel, 1, CR_WARP, stream, false, slot);
}

extern "C" int cr_linear_write_launch(const cr_linear_args *args, void *stream) {
    return cr_launch(cr_linear_write_kernel, 1, CR_KNOWN_SUMS * CR_WARP, stream, true, *args);
}

extern "C" int cr_linear_read_launch(const cr_linear_read_args *args, void *stream) {
    return cr_launch(cr_linear_read_kernel, 1, args->axis.out_count * CR_WARP, stream, false, *args);
}
