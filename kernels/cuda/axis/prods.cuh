/* prods: products along an axis. Of integers by the walk: signs, zeros, the product modulo 2^64, and the magnitude as long as it
 * has 64 bits. Of floats by the fixed tree of docs/NUMERICS.md: a warp takes an output, block by block; neighbouring warps take
 * neighbouring columns, so that what one loads is near for the others.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_PRODS_CUH
#define CURED_KERNELS_CUDA_AXIS_PRODS_CUH

#include "kernels/cuda/fold/float_prod.cuh"
#include "kernels/cuda/axis/walk.cuh"

template <cr_dtype D> struct cr_axis_int_prod {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 8, BLOCKS = 3;
    static constexpr bool FIRST = false, REDO = false, STOPS = false, TOGETHER = false, AHEAD = false, APART = false;
    typedef typename cr_axis_unit<SIZE>::type unit;
    enum { ZERO = 1, OVER = 2, NEGATIVE = 4 };
    struct record {
        uint64_t wrap, magnitude, flags; /* modulo 2^64; of what is not zero, unless OVER */

        CR_DEVICE void times(const record &x) {
            const bool over = __umul64hi(magnitude, x.magnitude) != 0;
            wrap *= x.wrap;
            magnitude *= x.magnitude;
            flags = ((flags | x.flags) & (ZERO | OVER)) | ((flags ^ x.flags) & NEGATIVE) | (over ? OVER : 0);
        }
    };
    record found[C];

    CR_DEVICE void begin(const cr_axis_args &args, const unit (&)[U]) {
#pragma unroll
        for (int e = 0; e < C; e++) found[e] = empty(args);
    }
    static CR_DEVICE int64_t value(unit v, int e) { /* with its sign spread over 64 bits */
        if (D == CR_BOOL) return (v >> 8 * e & 0xff) != 0;
        const uint64_t bits = SIZE == 8 ? (uint64_t)v : (uint64_t)v >> (SIZE < 4 ? 8 * SIZE * e : 0);
        constexpr int spare = 64 - 8 * SIZE;
        return cr_is_signed(D) ? (int64_t)(bits << spare) >> spare : (int64_t)(bits << spare >> spare);
    }
    CR_DEVICE void add(unit v, int e) {
        const int64_t x = value(v, e);
        const bool negative = cr_is_signed(D) && x < 0;
        found[e].times({(uint64_t)x, x == 0 ? 1 : negative ? 0 - (uint64_t)x : (uint64_t)x,
                        (x == 0 ? (uint64_t)ZERO : 0) | (negative ? (uint64_t)NEGATIVE : 0)});
    }
    CR_DEVICE void tile(const cr_axis_args &, const unit (&v)[U], uint32_t, int left, const uint8_t *, uint64_t) {
#pragma unroll
        for (int i = 0; i < U; i++) {
            if (i >= left) continue;
#pragma unroll
            for (int e = 0; e < C; e++) add(v[i], e);
        }
    }
    CR_DEVICE void one(const cr_axis_args &, uint32_t e, uint64_t bits, uint32_t) {
#pragma unroll
        for (int k = 0; k < C; k++) {
            if (k == (int)e) add((unit)bits << (SIZE < 4 ? 8 * SIZE * k : 0), k);
        }
    }
    CR_DEVICE record take(const cr_axis_args &, uint32_t e, const cr_axis_spot<SIZE> &) const { return found[e]; }
    static CR_DEVICE record empty(const cr_axis_args &) { return {1, 1, 0}; }
    static CR_DEVICE bool quick(record &, uint32_t, uint32_t) { return false; }
    static CR_DEVICE void merge(record &r, const record &other) { r.times(other); }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const bool negative = (r.flags & NEGATIVE) != 0;
        const uint64_t value = r.flags & ZERO ? 0 : negative ? 0 - r.magnitude : r.magnitude, top = 1ull << 63;
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            bool fits = (r.flags & OVER) == 0;
            if (out.result == CR_I64) fits &= r.magnitude < top || (negative && r.magnitude == top);
            else fits &= !negative;
            if (!args.wrap && !fits && (r.flags & ZERO) == 0) cr_axis_fail(args, out, output);
            ((uint64_t *)out.to)[output] = args.wrap ? r.wrap : value;
        }
        return true;
    }
};

/* ±(h + l)·2^exponent, rounded once, as kernels/core/finish_prod.c does it. */
CR_DEVICE uint64_t cr_prod_rounded(int dtype, bool negative, const cr_prod_node &root) {
    enum { UNIT = -127, BEYOND = 4000 }; /* h takes 128 bits of 2^-127 each, l at most 75 of them */
    const uint64_t hidden = 1ull << 52, high = cr_double_bits(root.h), low = cr_double_bits(root.l);
    const int field = (int)(low >> 52 & 2047), shift = max(field, 1) - 1075 - UNIT;
    const uint64_t m = (low & (hidden - 1)) | (field ? hidden : 0);
    cr_u128 sum = (cr_u128)((high & (hidden - 1)) | hidden) << 75;
    const cr_u128 part = shift >= 0 ? (cr_u128)m << shift : shift > -64 ? m >> -shift : 0;
    const bool sticky = shift < 0 && (shift > -64 ? (m & ((1ull << -shift) - 1)) != 0 : m != 0);
    if (low >> 63) sum -= part + sticky; /* what is then too much lies above the sum again */
    else sum += part;
    const int64_t exponent = min(max(root.exponent, (int64_t)-BEYOND), (int64_t)BEYOND);
    return cr_rounded(dtype, negative, sum, (int)exponent + UNIT, sticky);
}

template <cr_dtype D> __global__ void __launch_bounds__(CR_GPU_THREADS, 2) cr_axis_float_prod(const __grid_constant__ cr_axis_args args) {
    __shared__ cr_prod_stack stacks[CR_WARPS];
    constexpr uint32_t WIDTH = cr_width(D);
    const uint64_t outputs = args.at.outer * args.at.inner, inner = args.at.inner, stride = inner * WIDTH;
    cr_prod_stack &stack = stacks[threadIdx.x / CR_WARP];
    for (uint64_t output = blockIdx.x * CR_WARPS + threadIdx.x / CR_WARP; output < outputs; output += (uint64_t)gridDim.x * CR_WARPS) {
        const uint8_t *data = args.data + (output / inner * args.at.n * inner + output % inner) * WIDTH;
        cr_prod_lane lane = {0, 0, 0, 0, 0};
        uint32_t nodes = 0;
        bool nan = false, zero = false, infinite = false;
        for (uint64_t at = 0; at < args.at.n; at += CR_PROD_BLOCK) {
            cr_prod_node node =
                cr_prod_block<D>(data + at * stride, (uint32_t)min(args.at.n - at, (uint64_t)CR_PROD_BLOCK), lane, stride);
            node.place = 2 * (at / CR_PROD_BLOCK) + 1;
            if (threadIdx.x % CR_WARP == 0) nodes = stack.push(node, nodes);
            nan |= lane.nans != 0;
            zero |= lane.zeros != 0;
            infinite |= lane.infs != 0;
            lane.nans = lane.zeros = lane.infs = 0;
        }
        const bool negative = __reduce_xor_sync(CR_EVERYONE, lane.signs) != 0;
        nan = __any_sync(CR_EVERYONE, nan) && !args.skip;
        zero = __any_sync(CR_EVERYONE, zero);
        infinite = __any_sync(CR_EVERYONE, infinite);
        if (threadIdx.x % CR_WARP == 0) {
            cr_prod_node root = stack.nodes[nodes - 1];
            while (--nodes != 0) root = cr_prod_parent(stack.nodes[nodes - 1], root); /* what is missing is ones */
            for (uint32_t k = 0; k < args.out_count; k++) {
                const int result = args.out[k].result;
                cr_put_bits(args.out[k].to, output, result,
                            nan || (zero && infinite) ? cr_nan_bits(result)
                            : infinite                ? cr_infinite_bits(result, negative)
                            : zero                    ? 0
                                                      : cr_prod_rounded(result, negative, root));
            }
        }
        __syncwarp();
    }
}

template <cr_dtype D> int cr_axis_launch_prod(const cr_axis_args *args, void *stream) {
    const uint64_t outputs = args->at.outer * args->at.inner, blocks = (outputs + CR_WARPS - 1) / CR_WARPS;
    return CR_LAUNCH(cr_axis_float_prod<D>, (uint32_t)(blocks < 4096 ? blocks : 4096), CR_GPU_THREADS, stream, *args);
}

#endif
