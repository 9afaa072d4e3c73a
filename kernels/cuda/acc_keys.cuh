/* acc_keys: order-preserving keys of a vector's elements, compared lane by lane (kernels/core/key.h says which order).
 *
 * Thread: GPU. Owner: the accumulator. */
#ifndef CURED_KERNELS_CUDA_ACC_KEYS_CUH
#define CURED_KERNELS_CUDA_ACC_KEYS_CUH

#include "kernels/cuda/simt.cuh"

/* Minima and maxima of lanes of 16 bits: one instruction from compute capability 9.0 on. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CR_HALVES(name, slow, instruction)                          \
    CR_DEVICE uint32_t name(uint32_t a, uint32_t b) {               \
        uint32_t c;                                                 \
        asm(instruction " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b)); \
        return c;                                                   \
    }
#else
#define CR_HALVES(name, slow, instruction) \
    CR_DEVICE uint32_t name(uint32_t a, uint32_t b) { return slow(a, b); }
#endif
CR_HALVES(cr_min_s16x2, __vmins2, "min.s16x2")
CR_HALVES(cr_max_s16x2, __vmaxs2, "max.s16x2")
CR_HALVES(cr_min_u16x2, __vminu2, "min.u16x2")
CR_HALVES(cr_max_u16x2, __vmaxu2, "max.u16x2")
#undef CR_HALVES

/* Keys of a word's lanes. Bytes are compared as the upper halves of lanes of 16 bits. Doubles: see cr_keys_64. */
template <cr_dtype D>
struct cr_keys {
    static constexpr unsigned WIDTH = cr_width(D), LANES = WIDTH == 1 ? 2 : 1; /* of registers */
    static constexpr bool FLOAT = cr_is_float(D), SIGNED = FLOAT || cr_is_signed(D);
    static constexpr uint32_t TOP = WIDTH == 4 ? 0x80000000u : 0x80008000u;
    static constexpr uint32_t INFINITE = FLOAT ? (uint32_t)cr_infinity(D) * (WIDTH == 2 ? 0x00010001u : 1u) : 0;

    uint32_t least[LANES], most[LANES];

    CR_IN void clear() {
#pragma unroll
        for (unsigned i = 0; i < LANES; i++) {
            least[i] = SIGNED ? ~TOP : 0xffffffffu;
            most[i] = ~least[i];
        }
    }
    static CR_IN uint32_t min_of(uint32_t a, uint32_t b) {
        if (WIDTH == 4) return SIGNED ? (uint32_t)min((int)a, (int)b) : min(a, b);
        return SIGNED ? cr_min_s16x2(a, b) : cr_min_u16x2(a, b);
    }
    static CR_IN uint32_t max_of(uint32_t a, uint32_t b) {
        if (WIDTH == 4) return SIGNED ? (uint32_t)max((int)a, (int)b) : max(a, b);
        return SIGNED ? cr_max_s16x2(a, b) : cr_max_u16x2(a, b);
    }
    static CR_IN uint32_t key(uint32_t w) {
        if (D == CR_BOOL) return cr_nonzero_bytes(w);
        if (!FLOAT) return w;
        uint32_t negative = WIDTH == 4 ? (uint32_t)((int32_t)w >> 31) : cr_sign_halves(w);
        return w ^ (negative & ~TOP);
    }
    CR_IN void word(uint32_t w) {
        uint32_t k = key(w);
        least[0] = min_of(least[0], k);
        most[0] = max_of(most[0], k);
        if (WIDTH != 1) return;
        least[LANES - 1] = min_of(least[LANES - 1], k << 8);
        most[LANES - 1] = max_of(most[LANES - 1], k << 8);
    }
    /* Lanes that hold a NaN, as ones. */
    static CR_IN uint32_t nan_lanes(uint32_t w) {
        uint32_t magnitude = w & ~TOP;
        if (WIDTH == 4) return magnitude > INFINITE ? 0xffffffffu : 0;
        return cr_sign_halves(magnitude + (0x7fff7fffu - INFINITE));
    }
    /* As word, but a NaN loses. */
    CR_IN void word_masked(uint32_t w, uint32_t &nans) {
        uint32_t nan = nan_lanes(w), k = key(w) & ~nan;
        nans |= nan;
        least[0] = min_of(least[0], k | (nan & ~TOP));
        most[0] = max_of(most[0], k | (nan & TOP));
    }
    CR_IN void vec(const uint4 &v) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) word(cr_word(v, i));
    }
    CR_IN void vec_masked(const uint4 &v, uint32_t &nans) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) word_masked(cr_word(v, i), nans);
    }
    /* The best of all lanes, as order-preserving unsigned keys. */
    static CR_IN uint32_t unsigned_key(uint32_t lane) {
        if (WIDTH == 4) return SIGNED ? lane ^ TOP : lane;
        if (WIDTH == 2) return (SIGNED ? lane ^ 0x8000u : lane) & 0xffffu;
        lane = lane >> 8 & 0xffu;
        return D == CR_BOOL ? lane >> 7 : SIGNED ? lane ^ 0x80u : lane;
    }
    CR_IN uint32_t best_least() const {
        if (WIDTH == 4) return unsigned_key(least[0]);
        uint32_t a = min(unsigned_key(least[0]), unsigned_key(least[0] >> 16));
        uint32_t b = min(unsigned_key(least[LANES - 1]), unsigned_key(least[LANES - 1] >> 16));
        return min(a, b);
    }
    CR_IN uint32_t best_most() const {
        if (WIDTH == 4) return unsigned_key(most[0]);
        uint32_t a = max(unsigned_key(most[0]), unsigned_key(most[0] >> 16));
        uint32_t b = max(unsigned_key(most[LANES - 1]), unsigned_key(most[LANES - 1] >> 16));
        return max(a, b);
    }
};

/* The same for 64 bits. */
template <cr_dtype D>
struct cr_keys_64 {
    static constexpr bool FLOAT = cr_is_float(D), SIGNED = FLOAT || cr_is_signed(D);
    static constexpr uint64_t TOP = 1ull << 63;
    int64_t least, most; /* signed keys */

    CR_IN void clear() {
        least = (int64_t)~TOP;
        most = (int64_t)TOP;
    }
    static CR_IN int64_t key(uint64_t w) {
        if (FLOAT) return (int64_t)(w ^ ((uint64_t)((int64_t)w >> 63) & ~TOP));
        return (int64_t)(SIGNED ? w : w ^ TOP);
    }
    CR_IN void vec(const uint4 &v) {
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            int64_t k = key(cr_word64(v, i));
            least = k < least ? k : least;
            most = k > most ? k : most;
        }
    }
    CR_IN void vec_masked(const uint4 &v, uint32_t &nans) {
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            uint64_t w = cr_word64(v, i);
            int64_t k = key(w);
            if ((w & ~TOP) > cr_infinity(D)) {
                nans = 1;
                continue;
            }
            least = k < least ? k : least;
            most = k > most ? k : most;
        }
    }
    CR_IN uint64_t best_least() const { return (uint64_t)least ^ TOP; }
    CR_IN uint64_t best_most() const { return (uint64_t)most ^ TOP; }
};

template <cr_dtype D, bool WIDE>
struct cr_key_types {
    typedef cr_keys<D> keys;
    typedef uint32_t key;
};
template <cr_dtype D>
struct cr_key_types<D, true> {
    typedef cr_keys_64<D> keys;
    typedef uint64_t key;
};

/* The bits of an element from its order-preserving key, and back. */
template <cr_dtype D>
CR_DEVICE uint64_t cr_bits_of(uint64_t key) {
    const uint64_t top = 1ull << (8 * cr_width(D) - 1), all = top | (top - 1);
    if (cr_is_signed(D)) return key ^ top;
    if (cr_is_float(D)) return key & top ? key ^ top : ~key & all;
    return key;
}
template <cr_dtype D>
CR_DEVICE uint64_t cr_key_of(uint64_t bits) {
    const uint64_t top = 1ull << (8 * cr_width(D) - 1), all = top | (top - 1);
    if (D == CR_BOOL) return bits != 0;
    if (cr_is_signed(D)) return bits ^ top;
    if (cr_is_float(D)) return bits & top ? ~bits & all : bits | top;
    return bits;
}

template <cr_dtype D>
CR_DEVICE bool cr_is_nan(uint64_t bits) {
    return cr_is_float(D) && (bits & ~(1ull << (8 * cr_width(D) - 1))) > cr_infinity(D);
}
template <cr_dtype D>
CR_DEVICE bool cr_wanted(uint64_t x, uint64_t bits, bool nan) {
    if (D == CR_BOOL) return (x != 0) == (bits != 0);
    return cr_is_float(D) && nan ? cr_is_nan<D>(x) : x == bits;
}

#endif
