/* ints: along an axis, of integers: Σx, Σ|x| and Σx².
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_INTS_CUH
#define CURED_KERNELS_CUDA_AXIS_INTS_CUH

#include "kernels/cuda/axis/walk.cuh"

/* Elements of all types. */
template <cr_dtype D> struct cr_axis_int {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 16, BLOCKS = SIZE == 8 ? 4 : 3;
    static constexpr bool FIRST = false, REDO = false, STOPS = false, TOGETHER = false, AHEAD = false, APART = SIZE == 8;
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef cr_words<SIZE == 8 ? 3 : 2> record;

    cr_i128 wide;      /* 32 and 64 bits */
    uint64_t third;    /* its third word, of squares of 64 bits */
    uint64_t total[C]; /* narrower ones */

    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) {
        wide = 0;
        third = 0;
#pragma unroll
        for (int e = 0; e < C; e++) total[e] = 0;
    }
    /* Element e, with its sign spread over 64 bits. */
    static CR_DEVICE int64_t value(unit v, int e) {
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
    static CR_DEVICE uint64_t magnitude(int64_t x) { return cr_is_signed(D) && x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }

    CR_DEVICE void add(uint32_t family, unit v, int e) {
        const int64_t x = value(v, e);
        if (SIZE <= 2) {
            total[e] += family == CR_FAM_SUMSQ ? (uint64_t)(x * x) : family == CR_FAM_SUMABS ? magnitude(x) : (uint64_t)x;
        } else if (family == CR_FAM_SUMSQ) {
            const uint64_t m = magnitude(x);
            const cr_u128 square = SIZE == 4 ? (cr_u128)(m * m) : (cr_u128)m * m;
            wide = (cr_i128)((cr_u128)wide + square);
            if (SIZE == 8) third += (cr_u128)wide < square;
        } else if (family == CR_FAM_SUMABS || !cr_is_signed(D)) {
            wide += (cr_i128)magnitude(x);
        } else {
            wide += x;
        }
    }
    /* The elements of units, to one output, by dot products. */
    CR_DEVICE void add_rows(const unit (&v)[U]) {
        if constexpr (cr_is_signed(D)) {
            int32_t part = 0;
#pragma unroll
            for (int i = 0; i < U; i++)
                part = SIZE == 1 ? __dp4a((int)v[i], 0x01010101, part) : __dp2a_lo((int)v[i], 0x0101, part);
            total[0] += (uint64_t)(int64_t)part;
        } else {
            uint32_t part = 0;
#pragma unroll
            for (int i = 0; i < U; i++) {
                const uint32_t w = D == CR_BOOL ? cr_nonzero_bytes((uint32_t)v[i]) >> 7 : (uint32_t)v[i];
                part = SIZE == 1 ? __dp4a(w, 0x01010101u, part) : __dp2a_lo(w, 0x0101u, part);
            }
            total[0] += part;
        }
    }
    /* Each to its own; bytes two at a time, in halves that take U of them. */
    CR_DEVICE void add_columns(const unit (&v)[U]) {
        if constexpr (SIZE == 1) {
            constexpr uint32_t turn = D == CR_I8 ? 0x80808080u : 0; /* to numbers without a sign */
            uint32_t even = 0, odd = 0;
#pragma unroll
            for (int i = 0; i < U; i++) {
                const uint32_t w = D == CR_BOOL ? cr_nonzero_bytes((uint32_t)v[i]) >> 7 : (uint32_t)v[i] ^ turn;
                even += w & 0x00ff00ffu;
                odd += w >> 8 & 0x00ff00ffu;
            }
            constexpr uint64_t beyond = D == CR_I8 ? 128 * U : 0;
            const uint32_t sums[4] = {even & 0xffff, odd & 0xffff, even >> 16, odd >> 16};
#pragma unroll
            for (int e = 0; e < C; e++) total[e] += sums[e % 4] - beyond;
        } else {
#pragma unroll
            for (int e = 0; e < C; e++) {
                int32_t part = 0;
#pragma unroll
                for (int i = 0; i < U; i++) part += (int32_t)value(v[i], e);
                total[e] += (uint64_t)(int64_t)part;
            }
        }
    }
    CR_DEVICE void tile(const cr_axis_args &args, const unit (&v)[U], uint32_t, int, const uint8_t *, uint64_t) {
        if constexpr (SIZE <= 2) {
            if (args.family == CR_FAM_SUM) {
                if (args.at.rows && args.at.wide) add_rows(v);
                else add_columns(v);
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
    CR_DEVICE void one(const cr_axis_args &args, uint32_t e, uint64_t bits, uint32_t) {
#pragma unroll
        for (int k = 0; k < C; k++) {
            if (k == (int)e) add(args.family, (unit)bits << (SIZE < 4 ? 8 * SIZE * k : 0), k);
        }
    }
    CR_DEVICE record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &) const {
        record r;
        if (SIZE >= 4) {
            r.set(wide);
            if (SIZE == 8 && args.family == CR_FAM_SUMSQ) r.word[SIZE == 8 ? 2 : 1] = third;
        } else {
            r.word[0] = total[e];
            r.word[1] = cr_is_signed(D) && args.family == CR_FAM_SUM ? (uint64_t)((int64_t)total[e] >> 63) : 0;
        }
        return r;
    }
    static CR_DEVICE record empty(const cr_axis_args &) {
        record r;
        r.clear();
        return r;
    }
    static CR_DEVICE void merge(record &r, const record &other) { r.add(other); }
    static CR_DEVICE bool quick(record &r, uint32_t first, uint32_t step) { return cr_words_quick(r, first, step); }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (!cr_is_variance(args.out[k])) cr_int_answer(args, args.out[k], output, r);
            else if (args.family == CR_FAM_SUM) *cr_axis_slot_of(args, output) = cr_axis_slot{r.word[0], r.word[1], 0, 0, {0, 0, 0, 0}};
            else cr_variance_answer<6, 2>(args, args.out[k], output, cr_count_of(args, output), r, 0);
        }
        return true;
    }
};

#endif
