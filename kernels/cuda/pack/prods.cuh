/* prods: products of one warp's elements: of integers as fold/int_prod.cuh, of floats one block of the tree as fold/float_prod.cuh.
 *
 * A product of integers: each lane multiplies into 64 bits; a number that no longer fits goes to the warp's list. Two neighbours in
 * a lane's line of numbers have a product of 2^64 and more, so with A numbers listed the whole is 2^(32·A) at least: 33 of them are
 * beyond the 1,024 bits that any result needs. So at most 32 are listed, and 32 more lie in the lanes.
 *
 * A product of floats: a lane's eight columns one after the other, in the order in which the tree joins them, so that few are held
 * at a time; the operations are the tree's own.
 * Thread: GPU; the warp is together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_PACK_PRODS_CUH
#define CURED_KERNELS_CUDA_PACK_PRODS_CUH

#include "kernels/cuda/fold/float_prod.cuh"
#include "kernels/cuda/pack/sums.cuh"

enum { CR_PACK_LISTED = 32 };

template <unsigned WIDTH>
CR_DEVICE void cr_pack_int_prod() {
    constexpr unsigned LANES = CR_GPU_VECTOR / WIDTH, SPARE = 64 - 8 * WIDTH;
    const cr_dtype dtype = (cr_dtype)cr_pack_mine().dtype;
    const bool bools = dtype == CR_BOOL, has_sign = cr_is_signed(dtype);
    uint64_t *mine = (uint64_t *)cr_pack_room[threadIdx.x / CR_WARP];
    uint32_t *listed = &cr_pack_room[threadIdx.x / CR_WARP][2 * CR_PACK_LISTED];
    if (cr_lane() == 0) *listed = 0;
    __syncwarp();
    uint4 v[CR_PACK_VECTORS];
    cr_pack_load<WIDTH>(v, 1, false);
    uint64_t wrap = 1, magnitude = 1;
    uint32_t zeros = 0, signs = 0;
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) {
#pragma unroll 1
        for (unsigned e = 0; e < LANES; e++) {
            /* The element is shifted out of the vector: an index would put it into memory. */
            uint64_t x = cr_element<WIDTH>(v[j], 0);
            if (has_sign) x = (uint64_t)((int64_t)(x << SPARE) >> SPARE);
            const bool negative = has_sign && (int64_t)x < 0;
            const uint64_t factor = negative ? 0 - x : x;
            if (WIDTH == 8) v[j] = make_uint4(v[j].z, v[j].w, 0, 0);
            if (WIDTH == 4) v[j] = make_uint4(v[j].y, v[j].z, v[j].w, 0);
            if (WIDTH < 4) {
                v[j].x = __funnelshift_r(v[j].x, v[j].y, 8 * (WIDTH % 4));
                v[j].y = __funnelshift_r(v[j].y, v[j].z, 8 * (WIDTH % 4));
                v[j].z = __funnelshift_r(v[j].z, v[j].w, 8 * (WIDTH % 4));
                v[j].w >>= 8 * (WIDTH % 4);
            }
            wrap *= x;
            zeros += x == 0;
            signs ^= (uint32_t)negative;
            if (bools || factor <= 1) continue;
            if (__umul64hi(magnitude, factor) == 0) {
                magnitude *= factor;
                continue;
            }
            const uint32_t at = atomicAdd(listed, 1u);
            if (at < CR_PACK_LISTED) mine[at] = magnitude;
            magnitude = factor;
        }
    }
    __syncwarp();
#pragma unroll
    for (unsigned step = CR_WARP / 2; step > 0; step /= 2) wrap *= __shfl_xor_sync(CR_EVERYONE, wrap, step);
    const uint32_t count = *(volatile uint32_t *)listed, rest = __ballot_sync(CR_EVERYONE, magnitude > 1);
    const bool over = count > CR_PACK_LISTED;
    const uint32_t factors = over ? 0 : count + (uint32_t)__popc(rest);
    if (factors != 0) {
        uint64_t *const more = cr_pack_mine().more;
        if (cr_lane() < count) more[cr_lane()] = mine[cr_lane()];
        if (magnitude > 1) more[count + (uint32_t)__popc(rest & ((1u << cr_lane()) - 1))] = magnitude;
        cr_pack_more();
    }
    const uint64_t said = __reduce_add_sync(CR_EVERYONE, zeros) |
                          (uint64_t)__reduce_xor_sync(CR_EVERYONE, signs) << 13 | (uint64_t)over << 14 |
                          (uint64_t)factors << 15;
    cr_pack_leave(wrap, 0, 0, said | (factors != 0 ? CR_PACK_MORE : 0));
}

/* A column of the block: elements 256 apart. */
template <cr_dtype D>
CR_DEVICE void cr_pack_column(uint32_t column, bool aligned, cr_prod_lane &lane, double &h,
                               double &l) {
    const uint8_t *const data = cr_pack_mine().data;
    const uint32_t n = cr_pack_mine().n;
    h = 1;
    l = 0;
#pragma unroll 4
    for (uint32_t row = 0; row < CR_PROD_ROWS; row++) {
        const uint32_t at = row * CR_PROD_COLUMNS + column;
        if (at >= n) break;
        const double m = lane.mantissa(cr_prod_bits<D>(cr_prod_load<D>(data + at * cr_width(D), aligned)));
        const double p = h * m, e = __fma_rn(h, m, -p), u = e + l * m, s = p + u;
        l = u - (s - p);
        h = s;
    }
    lane.exponent += cr_prod_scale(h, l);
}

template <cr_dtype D>
CR_DEVICE void cr_pack_float_prod() {
    const bool aligned = (uintptr_t)cr_pack_mine().data % cr_width(D) == 0;
    cr_prod_lane lane = {0, 0, 0, 0, 0};
    double h = 1, l = 0, held_h[3] = {1, 1, 1}, held_l[3] = {0, 0, 0};
    /* Columns 0, 4, 2, 6, 1, 5, 3, 7 of the lane: neighbours join, then pairs, then fours. */
#pragma unroll 1
    for (uint32_t i = 0; i < CR_PROD_SHARE; i++) {
        const uint32_t k = (i & 1) << 2 | (i & 2) | (i & 4) >> 2;
        cr_pack_column<D>(k * CR_WARP + cr_lane(), aligned, lane, h, l);
        bool joined = true;
#pragma unroll
        for (int level = 0; level < 3; level++) {
            if (!joined) continue;
            if (i >> level & 1) { /* the first operand is the left one */
                double g = held_h[level], k_l = held_l[level];
                cr_prod_times(g, k_l, h, l);
                h = g;
                l = k_l;
            } else {
                held_h[level] = h;
                held_l[level] = l;
                joined = false;
            }
        }
    }
#pragma unroll
    for (unsigned step = CR_WARP / 2; step > 0; step /= 2) {
        const double g = __shfl_down_sync(CR_EVERYONE, h, step), k = __shfl_down_sync(CR_EVERYONE, l, step);
        cr_prod_times(h, l, g, k); /* beyond the lanes that count, it may overflow: nobody reads that */
    }
    int64_t exponent = lane.exponent;
#pragma unroll
    for (unsigned step = CR_WARP / 2; step > 0; step /= 2) exponent += __shfl_xor_sync(CR_EVERYONE, exponent, step);
    h = __shfl_sync(CR_EVERYONE, h, 0);
    l = __shfl_sync(CR_EVERYONE, l, 0);
    exponent += cr_prod_scale(h, l);
    const uint64_t said = (uint64_t)__reduce_add_sync(CR_EVERYONE, lane.nans) |
                          (uint64_t)__reduce_add_sync(CR_EVERYONE, lane.zeros) << 13 |
                          (uint64_t)__reduce_add_sync(CR_EVERYONE, lane.infs) << 26 |
                          (uint64_t)__reduce_xor_sync(CR_EVERYONE, lane.signs) << 39;
    cr_pack_leave(cr_double_bits(h), cr_double_bits(l), (uint64_t)exponent, said);
}

#endif
