/* axis_ints: along an axis, of integers: Σx, Σ|x| and Σx².
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_INTS_CUH
#define CURED_KERNELS_CUDA_AXIS_INTS_CUH

#include "kernels/cuda/axis_walk.cuh"

struct cr_axis_number {
    uint64_t low, high; /* of 128 bits, two's complement */
};

/* Elements of all types but those of 64 bits; these have only Σx and Σ|x|. */
template <cr_dtype D> struct cr_axis_int {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 8, BLOCKS = SIZE <= 2 ? 3 : 4;
    static constexpr bool FIRST = false;
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef cr_axis_number record;

    cr_i128 wide;        /* 32 and 64 bits */
    uint64_t total[C]; /* narrower ones */

    CR_IN void begin(const cr_axis_args &, const unit (&)[U]) {
        wide = 0;
#pragma unroll
        for (int e = 0; e < C; e++) total[e] = 0;
    }
    /* Element e, with its sign spread over 64 bits. */
    static CR_IN int64_t value(unit v, int e) {
        if constexpr (D == CR_BOOL) {
            return (v >> 8 * e & 0xff) != 0;
        } else if constexpr (SIZE == 8) {
            return (int64_t)v;
        } else {
            const int up = 32 - 8 * SIZE;
            const uint32_t top = v << (up - 8 * SIZE * e);
            return cr_is_signed(D) ? (int64_t)((int32_t)top >> up) : (int64_t)(uint64_t)(top >> up);
        }
    }
    static CR_IN uint64_t magnitude(int64_t x) { return cr_is_signed(D) && x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }

    CR_IN void add(uint32_t family, unit v, int e) {
        const int64_t x = value(v, e);
        if (SIZE <= 2) {
            total[e] += family == CR_FAM_SUMSQ ? (uint64_t)(x * x) : family == CR_FAM_SUMABS ? magnitude(x) : (uint64_t)x;
        } else if (SIZE == 4 && family == CR_FAM_SUMSQ) {
            const uint64_t m = magnitude(x);
            wide += (cr_i128)(m * m);
        } else if (family == CR_FAM_SUMABS || !cr_is_signed(D)) {
            wide += (cr_i128)magnitude(x);
        } else {
            wide += x;
        }
    }
    CR_IN void tile(const cr_axis_args &args, const unit (&v)[U], uint32_t, int, const uint8_t *, uint64_t) {
        if constexpr (SIZE <= 2) {
            if (args.family == CR_FAM_SUM) { /* in 32 bits, which eight of them fit */
#pragma unroll
                for (int e = 0; e < C; e++) {
                    int32_t part = 0;
#pragma unroll
                    for (int i = 0; i < U; i++) part += (int32_t)value(v[i], e);
                    total[e] += (uint64_t)(int64_t)part;
                }
                return;
            }
        }
        if constexpr (SIZE == 4) {
            if (args.family == CR_FAM_SUM) {
                int64_t part = 0;
#pragma unroll
                for (int i = 0; i < U; i++) part += value(v[i], 0);
                wide += part;
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < U; i++) {
#pragma unroll
            for (int e = 0; e < C; e++) add(args.family, v[i], e);
        }
    }
    CR_IN void one(const cr_axis_args &args, uint32_t e, uint64_t bits, uint32_t) {
#pragma unroll
        for (int k = 0; k < C; k++) {
            if (k == (int)e) add(args.family, (unit)bits << (SIZE < 4 ? 8 * SIZE * k : 0), k);
        }
    }
    CR_IN record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &) const {
        if (SIZE >= 4) return {(uint64_t)wide, (uint64_t)((cr_u128)wide >> 64)};
        const bool negative = cr_is_signed(D) && args.family == CR_FAM_SUM;
        return {total[e], negative ? (uint64_t)((int64_t)total[e] >> 63) : 0};
    }
    static CR_IN record empty(const cr_axis_args &) { return {0, 0}; }
    static CR_IN void merge(record &r, const record &other) {
        r.low += other.low;
        r.high += other.high + (r.low < other.low);
    }
    static CR_IN bool quick(record &r, uint32_t first, uint32_t step) {
        if (!__all_sync(CR_EVERYONE, cr_axis_is_narrow(r.low, r.high))) return false;
        const int64_t sum = cr_axis_lanes_sum((int64_t)r.low, first, step);
        r = {(uint64_t)sum, (uint64_t)(sum >> 63)};
        return true;
    }
    static CR_IN void finish(const cr_axis_args &args, const record &r, uint64_t output) {
        for (uint32_t k = 0; k < args.out_count; k++)
            cr_int_answer(args, args.out[k], output, (cr_i128)((cr_u128)r.high << 64 | r.low));
    }
};

#endif
