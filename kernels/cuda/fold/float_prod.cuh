/* float_prod: products of floats by the fixed tree of docs/NUMERICS.md. See kernels/core/prod.h.
 *
 * A warp takes a block of 4,096 elements; a lane takes eight of its 256 columns, 32 apart, so that three of the eight halvings
 * stay in the lane and five are shuffles. Blocks follow one another in a group that begins at a multiple of its size, so a whole
 * group is one node; the groups at the ends may leave several. The last block of threads joins the groups, level by level.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_FLOAT_PROD_CUH
#define CURED_KERNELS_CUDA_FOLD_FLOAT_PROD_CUH

#include "kernels/cuda/thread/simt.cuh"

#if !defined(CR_PROD_GROUPS)
#define CR_PROD_GROUPS 8192 /* at most; tests take few */
#endif

enum {
    CR_PROD_COLUMNS = 256,
    CR_PROD_ROWS = CR_PROD_BLOCK / CR_PROD_COLUMNS,
    CR_PROD_SHARE = CR_PROD_COLUMNS / CR_WARP, /* columns of a lane */
    CR_PROD_DEPTH = 64                         /* nodes that a group may leave */
};

/* Where the groups' nodes lie in the state: whole groups', then those of the first and of the last group. */
struct cr_prod_found {
    cr_prod_node nodes[CR_PROD_GROUPS + 8];
    cr_prod_node first[CR_PROD_DEPTH], last[CR_PROD_DEPTH];
    uint32_t firsts, lasts;
};
static_assert(sizeof(cr_prod_found) <= sizeof(((cr_gpu_state *)0)->blocks), "a state is too small for products");

CR_DEVICE double cr_double(uint64_t bits) { return __longlong_as_double((long long)bits); }
CR_DEVICE uint64_t cr_double_bits(double x) { return (uint64_t)__double_as_longlong(x); }

/* (h, l) times (g, k). */
CR_DEVICE void cr_prod_times(double &h, double &l, double g, double k) {
    double p = h * g, e = __fma_rn(h, g, -p);
    double u = e + (h * k + l * g), s = p + u;
    l = u - (s - p);
    h = s;
}

/* Brings h to [1, 2); gives the exponent that it had. */
CR_DEVICE int64_t cr_prod_scale(double &h, double &l) {
    uint64_t field = cr_double_bits(h) >> 52;
    double scale = cr_double((2046 - field) << 52);
    h *= scale;
    l *= scale;
    return (int64_t)field - 1023;
}

CR_DEVICE cr_prod_node cr_prod_parent(const cr_prod_node &a, const cr_prod_node &b) {
    cr_prod_node node;
    uint64_t lowest = a.place & (0 - a.place);
    node.place = (a.place ^ lowest) | lowest << 1;
    node.h = a.h;
    node.l = a.l;
    cr_prod_times(node.h, node.l, b.h, b.l);
    node.exponent = a.exponent + b.exponent + cr_prod_scale(node.h, node.l);
    return node;
}

/* An element as a double's bits. */
template <cr_dtype D>
CR_DEVICE uint64_t cr_prod_bits(uint64_t bits) {
    if (D == CR_F64) return bits;
    uint32_t wide = (uint32_t)bits;
    if (D == CR_BF16) wide <<= 16;
    if (D == CR_F8_E4M3) { /* 2^120 is the difference of the exponents' biases */
        const uint32_t magnitude = wide & 0x7fu;
        const uint32_t value = magnitude > cr_infinity(D) ? 0x7fc00000u : __float_as_uint(__uint_as_float(magnitude << 20) * 0x1p120f);
        wide = value | (wide & 0x80u) << 24;
    }
    if (D == CR_F8_E5M2) wide <<= 8; /* then it is a float16 */
    if (D == CR_F16 || D == CR_F8_E5M2) { /* 2^112 likewise */
        uint32_t magnitude = wide & 0x7fffu;
        uint32_t value = __float_as_uint(__uint_as_float(magnitude << 13) * 0x1p112f);
        if (magnitude >= 0x7c00u) value = 0x7f800000u | magnitude << 13;
        wide = value | (wide & 0x8000u) << 16;
    }
    return cr_double_bits((double)__uint_as_float(wide));
}

/* What a lane knows of its elements beside their product. */
struct cr_prod_lane {
    int64_t exponent;
    uint32_t signs, nans, zeros, infs;

    /* The mantissa, in [1, 2), of an element; of what is not a plain number, one. */
    CR_DEVICE double mantissa(uint64_t bits) {
        const uint64_t infinity = 0x7ff0000000000000u, one = 0x3ff0000000000000u;
        uint64_t magnitude = bits & 0x7fffffffffffffffu;
        uint32_t high = (uint32_t)(magnitude >> 32), sign = (uint32_t)(bits >> 63);
        if (high - 0x00100000u >= 0x7fe00000u) { /* a zero, a denormal, or not finite */
            const bool nan = magnitude > infinity, zero = magnitude == 0, inf = magnitude == infinity;
            nans += nan;
            zeros += zero;
            infs += inf;
            if (nan || zero) sign = 0;
            if (nan || zero || inf) {
                magnitude = one;
            } else { /* an integer below 2^52 in units of 2^-1074 */
                magnitude = cr_double_bits(cr_double(magnitude | 0x4330000000000000u) - 0x1p52);
                exponent -= 1074;
            }
        }
        signs ^= sign;
        exponent += (int64_t)(magnitude >> 52) - 1023;
        return cr_double((magnitude & ~infinity) | one);
    }
};

template <cr_dtype D>
CR_DEVICE uint64_t cr_prod_load(const uint8_t *p, bool aligned) {
    constexpr unsigned WIDTH = cr_width(D);
    if (!aligned) return cr_load_one<(int)WIDTH>(p);
    if (WIDTH == 8) return *(const uint64_t *)p;
    if (WIDTH == 4) return *(const uint32_t *)p;
    return WIDTH == 2 ? *(const uint16_t *)p : *p;
}

/* The block at data, of which n elements are there, `stride` bytes apart: its node (but for the place) in lane 0. All lanes together. */
template <cr_dtype D>
CR_DEVICE cr_prod_node cr_prod_block(const uint8_t *data, uint32_t n, cr_prod_lane &lane, uint64_t stride = cr_width(D)) {
    constexpr unsigned WIDTH = cr_width(D);
    const bool aligned = (uintptr_t)data % WIDTH == 0;
    double h[CR_PROD_SHARE], l[CR_PROD_SHARE];
#pragma unroll
    for (int k = 0; k < CR_PROD_SHARE; k++) {
        h[k] = 1;
        l[k] = 0;
    }
    const uint32_t first = threadIdx.x % CR_WARP;
#pragma unroll 2
    for (uint32_t row = 0; row < CR_PROD_ROWS; row++) {
        if (row * CR_PROD_COLUMNS >= n) break;
        uint64_t bits[CR_PROD_SHARE];
#pragma unroll
        for (uint32_t k = 0; k < CR_PROD_SHARE; k++) {
            const uint32_t at = row * CR_PROD_COLUMNS + k * CR_WARP + first;
            bits[k] = at < n ? cr_prod_load<D>(data + at * stride, aligned) : 0;
        }
#pragma unroll
        for (uint32_t k = 0; k < CR_PROD_SHARE; k++) {
            if (row * CR_PROD_COLUMNS + k * CR_WARP + first >= n) continue;
            const double m = lane.mantissa(cr_prod_bits<D>(bits[k]));
            const double p = h[k] * m, e = __fma_rn(h[k], m, -p), u = e + l[k] * m, s = p + u;
            l[k] = u - (s - p);
            h[k] = s;
        }
    }
    cr_prod_node node;
    node.exponent = 0;
#pragma unroll
    for (int k = 0; k < CR_PROD_SHARE; k++) node.exponent += cr_prod_scale(h[k], l[k]);
#pragma unroll
    for (int half = CR_PROD_SHARE / 2; half > 0; half /= 2) {
#pragma unroll
        for (int k = 0; k < half; k++) cr_prod_times(h[k], l[k], h[k + half], l[k + half]);
    }
#pragma unroll
    for (unsigned step = CR_WARP / 2; step > 0; step /= 2) {
        const double g = __shfl_down_sync(CR_EVERYONE, h[0], step), k = __shfl_down_sync(CR_EVERYONE, l[0], step);
        cr_prod_times(h[0], l[0], g, k); /* beyond the lanes that count, it may overflow: nobody reads that */
    }
    node.exponent += lane.exponent;
    lane.exponent = 0;
#pragma unroll
    for (unsigned step = CR_WARP / 2; step > 0; step /= 2) {
        node.exponent += __shfl_xor_sync(CR_EVERYONE, node.exponent, step);
    }
    node.h = h[0];
    node.l = l[0];
    node.place = 0;
    if (first == 0) node.exponent += cr_prod_scale(node.h, node.l);
    return node;
}

/* Nodes of one group, by rising place; a new one is the rightmost. */
struct cr_prod_stack {
    cr_prod_node nodes[CR_PROD_DEPTH];

    /* count: before; gives that after. */
    CR_DEVICE uint32_t push(cr_prod_node node, uint32_t count) {
        while (count != 0) {
            const cr_prod_node &top = nodes[count - 1];
            const uint64_t lowest = node.place & (0 - node.place);
            if (top.place != node.place - 2 * lowest || (top.place & 2 * lowest) != 0) break;
            node = cr_prod_parent(top, node);
            count--;
        }
        if (count < CR_PROD_DEPTH) nodes[count++] = node;
        return count;
    }
};

/* A launch's blocks of elements [first, end), and their groups of 2^level. */
struct cr_prod_plan {
    uint64_t first, end;
    uint32_t level, groups;
};

static inline cr_prod_plan cr_prod_plan_make(uint64_t n, uint64_t index) {
    cr_prod_plan plan;
    plan.first = index / CR_PROD_BLOCK;
    plan.end = plan.first + (n + CR_PROD_BLOCK - 1) / CR_PROD_BLOCK;
    plan.level = 0;
    while ((((plan.end - 1) >> plan.level) - (plan.first >> plan.level)) >= CR_PROD_GROUPS) plan.level++;
    plan.groups = (uint32_t)(((plan.end - 1) >> plan.level) - (plan.first >> plan.level) + 1);
    return plan;
}

#endif
