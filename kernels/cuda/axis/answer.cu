/* answer: see answer.h. A warp makes each answer, by one of its threads: it is one number, and some thousand instructions. An average is
 * the quotient of two.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/axis/answer.cuh"

__global__ void __launch_bounds__(CR_AXIS_OUTS *CR_WARP) cr_answer_kernel(const __grid_constant__ cr_answer_args args) {
    const uint32_t k = threadIdx.x / CR_WARP;
    cr_after_the_last();
    if (k >= args.axis.out_count) return;
    __shared__ cr_sum_found found[CR_AXIS_OUTS];
    cr_answer_fetch(found[k], args.slot->sums[args.sum[k].at], threadIdx.x % CR_WARP, CR_WARP);
    __syncwarp();
    if (threadIdx.x % CR_WARP != 0) return;
    cr_answer_number number;
    cr_answer_make(args, k, found[k], number);
}

__global__ void __launch_bounds__(CR_WARP) cr_average_kernel(const __grid_constant__ cr_average_args args) {
    __shared__ cr_sum_found found[2];
    __shared__ cr_answer_number products, weights;
    cr_after_the_last();
    cr_answer_fetch(found[0], args.slot->sums[CR_PAIR_DOT], threadIdx.x, CR_WARP);
    cr_answer_fetch(found[1], args.slot->sums[CR_PAIR_WEIGHTS], threadIdx.x, CR_WARP);
    __syncwarp();
    if (threadIdx.x != 0) return;
    const uint64_t marks = cr_answer_take(products, found[0], args.products.limbs, args.products.grid);
    const uint64_t others = cr_answer_take(weights, found[1], args.weights.limbs, args.weights.grid);
    const bool nan = (marks & CR_MARK_NANS) != 0 && !args.skip, plus = (marks & CR_MARK_PLUS) != 0, minus = (marks & CR_MARK_MINUS) != 0;
    uint64_t bits;
    int exponent = args.products.grid - args.weights.grid;
    bool sticky = false;
    const int length = weights.length();
    if (nan || (others & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0 || length == 0 || (plus && minus)) {
        bits = cr_nan_bits(args.out.result);
    } else if (plus || minus) {
        bits = cr_infinite_bits(args.out.result, minus != weights.negative);
    } else {
        const cr_u128 quotient = cr_answer_ratio(products, weights, length, exponent, sticky);
        bits = cr_rounded(args.out.result, products.negative != weights.negative, quotient, exponent, sticky);
    }
    cr_put_bits(args.out.to, 0, args.out.result, bits);
}

extern "C" int cr_average_launch(const cr_average_args *args, void *stream) {
    return cr_launch(cr_average_kernel, 1, CR_WARP, stream, true, *args);
}

extern "C" int cr_answer_launch(const cr_answer_args *args, void *stream) {
    return cr_launch(cr_answer_kernel, 1, args->axis.out_count * CR_WARP, stream, true, *args);
}
