/* bins: exact sums of floats with any spread, in integers: where a tile goes whose magnitudes no anchor takes. The time
 * it takes hardly depends on the data.
 *
 * cr_rows, for float32 and bfloat16: each thread has sixteen float64 sums of its own in shared memory, one for every sixteen
 * exponents. What is added to one is a multiple of its unit and below 2^40 of them, so 8,191 additions are exact.
 * cr_digits, for float64, for squares and for terms of pairs: each warp has a table of 16-bit digits in 32 bits, COPIES of it side by side so that
 * equal exponents collide less, and adds by shared atomics; flushed before 2^15 additions to a digit.
 * They end in the warp's digits (fold/digits.cuh) or in the state's limbs (64-bit atomics), on the grid of kernels/core/limbs.h. The
 * elements are finite.
 * Thread: GPU. Owner: the block. */
#ifndef CURED_KERNELS_CUDA_FOLD_BINS_CUH
#define CURED_KERNELS_CUDA_FOLD_BINS_CUH

#include "kernels/cuda/fold/digits.cuh"
#include "kernels/cuda/thread/float.cuh"

/* An element as significand·2^place on the grid. False: a NaN or an infinity. */
template <class E> struct cr_parts {
    uint64_t significand;
    int place;
    bool negative;
    CR_DEVICE cr_parts() {}
    CR_DEVICE explicit cr_parts(uint64_t bits) { split(bits); }
    CR_DEVICE bool split(uint64_t bits) {
        int field = (int)(bits >> E::MANTISSA) & E::TOP;
        significand = (bits & ((1ull << E::MANTISSA) - 1)) | (uint64_t)(field != 0) << E::MANTISSA;
        place = max(field - 1, 0);
        negative = bits >> (8 * E::SIZE - 1) & 1;
        return (bits & ~(1ull << (8 * E::SIZE - 1))) < E::INFINITE;
    }
    /* 0: NaN, 1: +inf, 2: -inf */
    CR_DEVICE int special() const { return significand != 1ull << E::MANTISSA ? 0 : negative ? 2 : 1; }
};

/* Bfloat16 is folded on float32's grid: its significands lie 16 bits higher. */
template <class E> CR_DEVICE void cr_widen(cr_parts<E> &p) {
    if (E::MANTISSA == 7) p.significand <<= 16;
}

template <class E, bool ABSOLUTE> struct cr_rows {
    static constexpr int ROWS = 16;
    static constexpr bool IN_DIGITS = true; /* what they hold meets in the warp's digits, not in the state's limbs */
    struct Shared {
        double sum[ROWS][CR_GPU_THREADS];
    };

    CR_DEVICE static void clear(Shared &shared) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) shared.sum[i][threadIdx.x] = 0;
    }

    /* A row's last bit on the grid: 2^(16·row - 1), row 0's 2^0; and how many of them this thread has there. It is empty then. */
    CR_DEVICE static int bit_of(int row) { return max(16 * row - 1, 0); }
    CR_DEVICE static long long take(Shared &shared, int row) {
        const double sum = shared.sum[row][threadIdx.x];
        shared.sum[row][threadIdx.x] = 0;
        return (long long)__dmul_rn(sum, cr_power(149 - bit_of(row)));
    }

    /* What a warp's rows hold: as its digits, or to a state's limbs. */
    CR_DEVICE static long long digits(Shared &shared) {
        long long found = 0;
#pragma unroll 1
        for (int row = 0; row < ROWS; row++) found += cr_warp_total(take(shared, row)).share((unsigned)bit_of(row));
        return found;
    }
    CR_DEVICE static void settle(Shared &shared, cr_sum_state *state) {
#pragma unroll 1
        for (int row = 0; row < ROWS; row++) cr_warp_total(take(shared, row)).spill(state, bit_of(row));
    }

    /* Room for `adds` more, for those that settle; fill counts since the rows were empty. */
    CR_DEVICE static uint32_t reserve(Shared &shared, cr_sum_state *state, uint32_t fill, uint32_t adds) {
        if (fill + adds > 8191) {
            settle(shared, state);
            fill = 0;
        }
        return fill + adds;
    }
    static constexpr uint32_t adds(uint32_t elements) { return elements; }

    CR_DEVICE static void element(Shared &shared, uint64_t bits) {
        const uint32_t word = E::MANTISSA == 7 ? (uint32_t)bits << 16 : (uint32_t)bits;
        double *sum = &shared.sum[word >> 27 & (ROWS - 1)][threadIdx.x], x = (double)__uint_as_float(word);
        *sum = __dadd_rn(*sum, ABSOLUTE ? fabs(x) : x);
    }
};

/* PARTS digits of 16 bits an element; DIGITS of them in all (even). */
template <class E, bool ABSOLUTE, int PARTS, int DIGITS, int COPIES> struct cr_digits {
    static constexpr int WARPS = CR_GPU_THREADS / 32, MOST = 32767;
    static constexpr bool IN_DIGITS = false;
    struct Shared {
        uint32_t digit[WARPS][DIGITS][COPIES];
    };

    CR_DEVICE static void clear(Shared &shared) {
        uint32_t *digit = &shared.digit[threadIdx.x / 32][0][0];
        for (int i = threadIdx.x % 32; i < DIGITS * COPIES; i += 32) digit[i] = 0;
        __syncwarp();
    }

    /* Room for `adds` more; fill counts since the table was cleared. */
    CR_DEVICE static uint32_t reserve(Shared &shared, cr_sum_state *state, uint32_t fill, uint32_t adds) {
        if (fill + adds > MOST) {
            __syncwarp();
            merge(shared, state, threadIdx.x / 32, 1, threadIdx.x % 32, 32);
            __syncwarp();
            clear(shared);
            fill = 0;
        }
        return fill + adds;
    }

    /* low + high·2^64, at a multiple of 16 bits, of so many digits. */
    template <int OF = PARTS> CR_DEVICE static void add(Shared &shared, int digit, uint64_t low, uint64_t high, bool negative) {
        uint32_t *to = &shared.digit[threadIdx.x / 32][digit][threadIdx.x % COPIES];
#pragma unroll
        for (int i = 0; i < OF; i++) {
            uint32_t part = (uint32_t)(i < 4 ? low >> (16 * i) : high >> (16 * (i - 4))) & 0xffff;
            atomicAdd(to + i * COPIES, negative ? 0u - part : part);
        }
    }

    template <int OF = PARTS> CR_DEVICE static void put(Shared &shared, const cr_parts<E> &p) {
        int shift = p.place & 15;
        uint64_t low = p.significand << shift, high = shift ? p.significand >> (64 - shift) : 0;
        add<OF>(shared, p.place >> 4, low, high, !ABSOLUTE && p.negative);
    }

    /* Of a float64 product, 106 bits at the sum of the places and `more`. */
    CR_DEVICE static void put_product(Shared &shared, const cr_parts<E> &p, const cr_parts<E> &q, int more, bool negative) {
        int place = p.place + q.place + more, shift = place & 15;
        uint64_t low = p.significand * q.significand, high = __umul64hi(p.significand, q.significand);
        high = high << shift | (shift ? low >> (64 - shift) : 0);
        add(shared, place >> 4, low << shift, high, negative);
    }
    CR_DEVICE static void put_square(Shared &shared, const cr_parts<E> &p) { put_product(shared, p, p, 0, false); }

    /* Additions to one digit at most, of so many elements in each lane. */
    static constexpr uint32_t adds(uint32_t elements) { return elements * (32 / COPIES); }

    CR_DEVICE static void merge(const Shared &shared, cr_sum_state *state, int warp, int warps, int first, int step) {
        for (int limb = first; limb < DIGITS / 2; limb += step) {
            long long low = 0, high = 0;
#pragma unroll 1
            for (int w = warp; w < warp + warps; w++) {
#pragma unroll
                for (int c = 0; c < COPIES; c++) {
                    low += (int)shared.digit[w][2 * limb][c];
                    high += (int)shared.digit[w][2 * limb + 1][c];
                }
            }
            cr_limb_add(state, limb, low + high * 65536);
        }
    }

    CR_DEVICE static void flush(Shared &shared, cr_sum_state *state, bool used) {
        if (!used) clear(shared);
        __syncthreads();
        merge(shared, state, 0, WARPS, threadIdx.x, CR_GPU_THREADS);
    }
};

/* Which bins a type and a kind take, and how an element goes there. */
template <class E, int KIND> struct cr_bins : cr_rows<E, KIND == CR_SUM_ABSOLUTE> {};
template <int KIND> struct cr_bins<cr_f64, KIND> : cr_digits<cr_f64, KIND == CR_SUM_ABSOLUTE, 5, 132, 4> {
    using Base = cr_digits<cr_f64, KIND == CR_SUM_ABSOLUTE, 5, 132, 4>;
    CR_DEVICE static void element(typename Base::Shared &shared, uint64_t bits) { Base::put(shared, cr_parts<cr_f64>(bits)); }
};
template <> struct cr_bins<cr_f64, CR_SUM_SQUARE> : cr_digits<cr_f64, true, 8, 264, 2> {
    CR_DEVICE static void element(Shared &shared, uint64_t bits) { put_square(shared, cr_parts<cr_f64>(bits)); }
};
/* Squares of narrower significands have 48 bits at most: a float64's digits take them. */
template <class E> struct cr_bins_narrow_square : cr_digits<E, true, 4, 36, 4> {
    using Base = cr_digits<E, true, 4, 36, 4>;
    CR_DEVICE static void element(typename Base::Shared &shared, uint64_t bits) {
        cr_parts<E> p(bits);
        cr_widen(p);
        p.significand *= p.significand;
        p.place *= 2;
        Base::put(shared, p);
    }
};
template <> struct cr_bins<cr_f32, CR_SUM_SQUARE> : cr_bins_narrow_square<cr_f32> {};
template <> struct cr_bins<cr_bf16, CR_SUM_SQUARE> : cr_bins_narrow_square<cr_bf16> {};
/* Terms: a vector of them at a time. A term that is two float64s goes as these two, and one that is not exact so as a product. */
template <class E> CR_DEVICE void cr_place_term(cr_parts<cr_f64> &p) {
    p.place += CR_F64_GRID - E::SUM_GRID;
    if (p.place >= 0) return;
    p.significand >>= min(-p.place, 63); /* zeros, because a term is a multiple of the grid's unit */
    p.place = 0;
}
template <class T, int AT, bool SPLIT> struct cr_term_bins : cr_digits<cr_f64, false, 5, 2 * cr_term_of<T, AT>::SUM_LIMBS, 4> {
    using Base = cr_digits<cr_f64, false, 5, 2 * cr_term_of<T, AT>::SUM_LIMBS, 4>;
    static constexpr int PUTS = 1; /* of a term */
    CR_DEVICE static void vector(typename Base::Shared &shared, const uint4 &v) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            cr_parts<cr_f64> p(e == 0 ? cr_pair(v.x, v.y) : cr_pair(v.z, v.w));
            cr_place_term<cr_term_of<T, AT>>(p);
            Base::put(shared, p);
        }
    }
};
template <class T, int AT> struct cr_term_bins<T, AT, true> : cr_digits<cr_f64, false, 8, 264, 2> {
    using Base = cr_digits<cr_f64, false, 8, 264, 2>;
    static constexpr int PUTS = 2;
    CR_DEVICE static void vector(typename Base::Shared &shared, const uint4 &v) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            cr_parts<cr_f64> p(e == 0 ? cr_pair(v.x, v.y) : cr_pair(v.z, v.w));
            cr_place_term<cr_term_of<T, AT>>(p);
            Base::template put<5>(shared, p);
        }
    }
};
template <class T, int AT, int KIND> struct cr_bins<cr_term_of<T, AT>, KIND> : cr_term_bins<T, AT, cr_term_of<T, AT>::SPLIT> {};
/* Types whose numbers all lie in one window need none. */
struct cr_no_bins {
    static constexpr bool IN_DIGITS = true;
    struct Shared {};
    CR_DEVICE static long long digits(Shared &) { return 0; }
};
template <int KIND> struct cr_bins<cr_f16, KIND> : cr_no_bins {};
template <int KIND> struct cr_bins<cr_f8_e4m3, KIND> : cr_no_bins {};
template <int KIND> struct cr_bins<cr_f8_e5m2, KIND> : cr_no_bins {};

#endif
