/* sum_bins: exact sums of floats with any spread, in integers: where a tile goes whose magnitudes no anchor takes. The time
 * it takes hardly depends on the data.
 *
 * cr_columns, for float32 and bfloat16: each thread has limbs of its own in shared memory, 32 bits apart in 64, so an element
 * is one shift and one addition; 255 additions between carry passes.
 * cr_digits, for float64 and for squares: each warp has a table of 16-bit digits in 32 bits, COPIES of it side by side so that
 * equal exponents collide less, and adds by shared atomics; flushed before 2^15 additions to a digit.
 * Both end in the state's limbs (64-bit atomics), on the grid of kernels/core/limbs.h. NaNs and infinities are counted.
 * Thread: GPU. Owner: the block. */
#ifndef CURED_KERNELS_CUDA_SUM_BINS_CUH
#define CURED_KERNELS_CUDA_SUM_BINS_CUH

#include "kernels/cuda/sum_type.cuh"

/* value·2^(32·limb), |value| < 2^63, into the state's limbs in two digits. */
CR_DEVICE void cr_limb_add(cr_sum_state *state, int limb, long long value) {
    if (value == 0) return;
    long long high = value >> 32;
    atomicAdd(&state->limbs[limb], (unsigned long long)value & 0xffffffffu);
    if (high != 0) atomicAdd(&state->limbs[limb + 1], (unsigned long long)high);
}

/* An element as significand·2^place on the grid. False: a NaN or an infinity. */
template <class E> struct cr_parts {
    uint64_t significand;
    int place;
    bool negative;
    CR_DEVICE bool split(uint64_t bits) {
        int field = (int)(bits >> E::MANTISSA) & E::TOP;
        significand = (bits & ((1ull << E::MANTISSA) - 1)) | (uint64_t)(field != 0) << E::MANTISSA;
        place = max(field - 1, 0);
        negative = bits >> (8 * E::SIZE - 1) & 1;
        return field != E::TOP;
    }
    /* 0: NaN, 1: +inf, 2: -inf */
    CR_DEVICE int special() const { return significand != 1ull << E::MANTISSA ? 0 : negative ? 2 : 1; }
};

/* Bfloat16 is folded on float32's grid: its significands lie 16 bits higher. */
template <class E> CR_DEVICE void cr_widen(cr_parts<E> &p) {
    if (E::MANTISSA == 7) p.significand <<= 16;
}

template <class E, bool ABSOLUTE> struct cr_columns {
    /* 254 + 23 bits (float16: 30 + 10), and a limb for carries and the sign. */
    static constexpr int LIMBS = E::TOP == 31 ? 3 : 9, MOST = 255;
    struct Shared {
        long long limb[LIMBS][CR_GPU_THREADS];
    };

    CR_DEVICE static void clear(Shared &shared) {
#pragma unroll
        for (int i = 0; i < LIMBS; i++) shared.limb[i][threadIdx.x] = 0;
    }

    CR_DEVICE static void carry(Shared &shared) {
        long long up = 0;
#pragma unroll
        for (int i = 0; i < LIMBS - 1; i++) {
            long long value = shared.limb[i][threadIdx.x] + up;
            up = value >> 32;
            shared.limb[i][threadIdx.x] = value & 0xffffffff;
        }
        shared.limb[LIMBS - 1][threadIdx.x] += up;
    }

    /* Room for `adds` more; fill counts since the last carry pass. */
    CR_DEVICE static void reserve(Shared &shared, cr_sum_state *, uint32_t &fill, uint32_t adds) {
        if (fill + adds > MOST) {
            carry(shared);
            fill = 1;
        }
        fill += adds;
    }

    CR_DEVICE static void put(Shared &shared, const cr_parts<E> &p) {
        int significand = (int)p.significand; /* of 24 bits */
        if (!ABSOLUTE && p.negative) significand = -significand;
        const long long value = (long long)significand * (1ll << (p.place & 31));
        shared.limb[p.place >> 5][threadIdx.x] += value;
    }

    static constexpr uint32_t adds(uint32_t elements) { return elements; }

    /* All threads; used: whether this thread's column holds anything. */
    CR_DEVICE static void flush(Shared &shared, cr_sum_state *state, bool used) {
        if (used) carry(shared);
        else clear(shared);
        __syncthreads();
        for (int limb = threadIdx.x / 32; limb < LIMBS; limb += CR_GPU_THREADS / 32) {
            long long sum = 0;
#pragma unroll
            for (int i = 0; i < CR_GPU_THREADS / 32; i++) sum += shared.limb[limb][threadIdx.x % 32 + 32 * i];
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            if (threadIdx.x % 32 == 0) cr_limb_add(state, limb, sum);
        }
    }
};

/* PARTS digits of 16 bits an element; DIGITS of them in all (even). */
template <class E, bool ABSOLUTE, int PARTS, int DIGITS, int COPIES> struct cr_digits {
    static constexpr int WARPS = CR_GPU_THREADS / 32, MOST = 32767;
    struct Shared {
        uint32_t digit[WARPS][DIGITS][COPIES];
    };

    CR_DEVICE static void clear(Shared &shared) {
        uint32_t *digit = &shared.digit[threadIdx.x / 32][0][0];
        for (int i = threadIdx.x % 32; i < DIGITS * COPIES; i += 32) digit[i] = 0;
        __syncwarp();
    }

    CR_DEVICE static void reserve(Shared &shared, cr_sum_state *state, uint32_t &fill, uint32_t adds) {
        if (fill + adds > MOST) {
            __syncwarp();
            merge(shared, state, threadIdx.x / 32, 1, threadIdx.x % 32, 32);
            __syncwarp();
            clear(shared);
            fill = 0;
        }
        fill += adds;
    }

    /* low + high·2^64, at a multiple of 16 bits. */
    CR_DEVICE static void add(Shared &shared, int digit, uint64_t low, uint64_t high, bool negative) {
        uint32_t *to = &shared.digit[threadIdx.x / 32][digit][threadIdx.x % COPIES];
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            uint32_t part = (uint32_t)(i < 4 ? low >> (16 * i) : high >> (16 * (i - 4))) & 0xffff;
            atomicAdd(to + i * COPIES, negative ? 0u - part : part);
        }
    }

    CR_DEVICE static void put(Shared &shared, const cr_parts<E> &p) {
        int shift = p.place & 15;
        uint64_t low = p.significand << shift, high = shift ? p.significand >> (64 - shift) : 0;
        add(shared, p.place >> 4, low, high, !ABSOLUTE && p.negative);
    }

    /* Of a float64 square, 106 bits at twice the place. */
    CR_DEVICE static void put_square(Shared &shared, const cr_parts<E> &p) {
        int place = 2 * p.place, shift = place & 15;
        uint64_t low = p.significand * p.significand, high = __umul64hi(p.significand, p.significand);
        high = high << shift | (shift ? low >> (64 - shift) : 0);
        add(shared, place >> 4, low << shift, high, false);
    }

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
template <class E, int KIND> struct cr_bins : cr_columns<E, KIND == CR_SUM_ABSOLUTE> {
    using Base = cr_columns<E, KIND == CR_SUM_ABSOLUTE>;
    CR_DEVICE static void element(typename Base::Shared &shared, cr_parts<E> p) {
        cr_widen(p);
        Base::put(shared, p);
    }
};
template <int KIND> struct cr_bins<cr_f64, KIND> : cr_digits<cr_f64, KIND == CR_SUM_ABSOLUTE, 5, 132, 4> {
    using Base = cr_digits<cr_f64, KIND == CR_SUM_ABSOLUTE, 5, 132, 4>;
    CR_DEVICE static void element(typename Base::Shared &shared, const cr_parts<cr_f64> &p) { Base::put(shared, p); }
};
template <> struct cr_bins<cr_f64, CR_SUM_SQUARE> : cr_digits<cr_f64, true, 8, 264, 2> {
    CR_DEVICE static void element(Shared &shared, const cr_parts<cr_f64> &p) { put_square(shared, p); }
};
/* Squares of narrower significands have 48 bits at most: a float64's digits take them. */
template <class E> struct cr_bins_narrow_square : cr_digits<E, true, 4, 36, 8> {
    using Base = cr_digits<E, true, 4, 36, 8>;
    CR_DEVICE static void element(typename Base::Shared &shared, cr_parts<E> p) {
        cr_widen(p);
        p.significand *= p.significand;
        p.place *= 2;
        Base::put(shared, p);
    }
};
template <> struct cr_bins<cr_f32, CR_SUM_SQUARE> : cr_bins_narrow_square<cr_f32> {};
template <> struct cr_bins<cr_bf16, CR_SUM_SQUARE> : cr_bins_narrow_square<cr_bf16> {};
template <> struct cr_bins<cr_f16, CR_SUM_SQUARE> : cr_bins_narrow_square<cr_f16> {};

#endif
