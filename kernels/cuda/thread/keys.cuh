/* keys: the best element of vectors, lane by lane, in the order of kernels/core/key.h (−0 below +0), and where it is.
 *
 * Floats of 16 and 32 bits are compared as what they are: the instructions keep that order and give NaN where one is, so a NaN
 * costs nothing until there is one; then the other kind of instruction, to which a NaN loses, goes over the tile again.
 * Thread: GPU. Owner: the accumulator. */
#ifndef CURED_KERNELS_CUDA_THREAD_KEYS_CUH
#define CURED_KERNELS_CUDA_THREAD_KEYS_CUH

#include "kernels/cuda/thread/simt.cuh"

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

/* What cr_pick does, slowly: for the host, and for lanes of 16 bits before compute capability 9.0. */
template <cr_dtype D, bool MOST, bool NUMBERS>
CR_DEVICE uint32_t cr_pick_slowly(uint32_t a, uint32_t b) {
    const unsigned bits = cr_width(D) == 4 ? 32 : 16;
    uint32_t found = 0;
    for (unsigned at = 0; at < 32; at += bits) {
        const uint32_t x = a >> at & (0xffffffffu >> (32 - bits)), y = b >> at & (0xffffffffu >> (32 - bits));
        uint32_t best;
        if (cr_is_nan<D>(x) || cr_is_nan<D>(y)) {
            best = NUMBERS ? (cr_is_nan<D>(x) ? y : x) : 0xffffffffu >> (33 - bits);
        } else if (cr_is_float(D)) {
            best = (cr_key_of<D>(x) < cr_key_of<D>(y)) == MOST ? y : x;
        } else {
            const uint32_t sign = cr_is_signed(D) ? 1u << (bits - 1) : 0;
            best = ((x ^ sign) < (y ^ sign)) == MOST ? y : x;
        }
        found |= best << at;
    }
    return found;
}

/* The better of each lane of two words, MOST the larger. Bytes lie in the upper halves of lanes of 16 bits; what is below them
 * decides nothing. NUMBERS: of floats, a NaN loses; otherwise it wins. */
#if defined(__CUDA_ARCH__)
#define CR_PICK(instruction) asm(instruction " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b))
#define CR_PICK_FLOAT(type)                                        \
    do {                                                           \
        if (MOST && NUMBERS) CR_PICK("max." type);                 \
        if (MOST && !NUMBERS) CR_PICK("max.NaN." type);            \
        if (!MOST && NUMBERS) CR_PICK("min." type);                \
        if (!MOST && !NUMBERS) CR_PICK("min.NaN." type);           \
    } while (0)
template <cr_dtype D, bool MOST, bool NUMBERS>
CR_DEVICE uint32_t cr_pick(uint32_t a, uint32_t b) {
    uint32_t c = 0;
    if constexpr (D == CR_F32) {
        const float x = __uint_as_float(a), y = __uint_as_float(b);
        float z = 0;
        if (MOST && NUMBERS) asm("max.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
        if (!MOST && NUMBERS) asm("min.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
        if (MOST && !NUMBERS) asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
        if (!MOST && !NUMBERS) asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
        return __float_as_uint(z);
    } else if constexpr (D == CR_F16) {
        CR_PICK_FLOAT("f16x2");
    } else if constexpr (D == CR_BF16) {
        CR_PICK_FLOAT("bf16x2");
    } else if constexpr (cr_width(D) == 4) {
        if (cr_is_signed(D)) return (uint32_t)(MOST ? max((int)a, (int)b) : min((int)a, (int)b));
        return MOST ? max(a, b) : min(a, b);
    } else {
#if __CUDA_ARCH__ >= 900
        if (cr_is_signed(D) && MOST) CR_PICK("max.s16x2");
        if (cr_is_signed(D) && !MOST) CR_PICK("min.s16x2");
        if (!cr_is_signed(D) && MOST) CR_PICK("max.u16x2");
        if (!cr_is_signed(D) && !MOST) CR_PICK("min.u16x2");
#else
        c = cr_is_signed(D) ? (MOST ? __vmaxs2(a, b) : __vmins2(a, b)) : MOST ? __vmaxu2(a, b) : __vminu2(a, b);
#endif
    }
    return c;
}
#undef CR_PICK
#undef CR_PICK_FLOAT
#else
template <cr_dtype D, bool MOST, bool NUMBERS>
CR_DEVICE uint32_t cr_pick(uint32_t a, uint32_t b) {
    return cr_pick_slowly<D, MOST, NUMBERS>(a, b);
}
#endif

/* The best of vectors, as a rank: the key for the least, its complement for the most, so that the lowest rank is the best.
 * CR_NO_RANK where there are only NaNs; of floats no number has that rank. */
#define CR_NO_RANK(rank) ((rank) ~(rank)0)

template <cr_dtype D, bool MOST, bool NUMBERS>
struct cr_best_of {
    static constexpr unsigned WIDTH = cr_width(D), LANES = WIDTH == 1 ? 2 : 1; /* of registers */
    static constexpr uint32_t TOP = WIDTH == 4 ? 0x80000000u : 0x80008000u;
    static constexpr bool FLOAT = cr_is_float(D);
    uint32_t best[LANES];

    cr_best_of() = default;
    CR_DEVICE explicit cr_best_of(uint32_t w) {
        best[0] = D == CR_BOOL ? cr_nonzero_bytes(w) : w;
        if (WIDTH == 1) best[LANES - 1] = best[0] << 8;
    }
    CR_DEVICE explicit cr_best_of(const uint4 &v) : cr_best_of(v.x) {
        cr_best_of other(v.z);
        also(cr_best_of(v.y));
        other.also(cr_best_of(v.w));
        also(other);
    }
    CR_DEVICE void also(const cr_best_of &x) {
#pragma unroll
        for (unsigned i = 0; i < LANES; i++) best[i] = cr_pick<D, MOST, NUMBERS>(best[i], x.best[i]);
    }
    CR_DEVICE void choose(bool other, const cr_best_of &x) {
#pragma unroll
        for (unsigned i = 0; i < LANES; i++) best[i] = other ? x.best[i] : best[i];
    }
    /* Whether a NaN has won. */
    CR_DEVICE bool nan() const {
        const uint32_t magnitude = best[0] & ~TOP;
        if (!FLOAT) return false;
        if (WIDTH == 4) return magnitude > (uint32_t)cr_infinity(D);
        return ((magnitude + (0x7fffu - (uint32_t)cr_infinity(D)) * 0x00010001u) & TOP) != 0;
    }
    /* Whether the best of all is among these; x: the best of all. */
    CR_DEVICE bool holds(const cr_best_of &x) const { return WIDTH == 4 ? best[0] == x.best[0] : rank() == x.rank(); }
    static CR_DEVICE uint32_t rank_of(uint32_t lane) {
        if (WIDTH == 2) lane &= 0xffffu;
        if (WIDTH == 1) lane = lane >> 8 & 0xffu;
        if (D == CR_BOOL) lane >>= 7;
        if (NUMBERS && cr_is_nan<D>(lane)) return CR_NO_RANK(uint32_t);
        const uint32_t key = (uint32_t)cr_key_of<D>(lane);
        return MOST ? ~key : key;
    }
    CR_DEVICE uint32_t rank() const {
        uint32_t found = rank_of(best[0]);
        if (WIDTH <= 2) found = min(found, rank_of(best[0] >> 16));
        if (WIDTH == 1) found = min(min(found, rank_of(best[LANES - 1])), rank_of(best[LANES - 1] >> 16));
        return found;
    }
};

/* The same for 64 bits: compared as keys. */
template <cr_dtype D, bool MOST, bool NUMBERS>
struct cr_best_of_64 {
    static constexpr bool FLOAT = cr_is_float(D);
    static constexpr uint64_t TOP = 1ull << 63;
    int64_t best; /* signed keys */
    bool met, numbers;

    cr_best_of_64() = default;
    CR_DEVICE explicit cr_best_of_64(uint64_t w) {
        best = (int64_t)(FLOAT ? w ^ ((uint64_t)((int64_t)w >> 63) & ~TOP) : cr_is_signed(D) ? w : w ^ TOP);
        const double x = __longlong_as_double((long long)w);
        met = FLOAT && x != x;
        numbers = !met;
    }
    CR_DEVICE explicit cr_best_of_64(const uint4 &v) : cr_best_of_64(cr_word64(v, 0)) { also(cr_best_of_64(cr_word64(v, 1))); }
    CR_DEVICE void also(const cr_best_of_64 &x) {
        bool better = MOST ? x.best > best : x.best < best;
        if (NUMBERS) better = (better && x.numbers) || !numbers;
        best = better ? x.best : best;
        met = met || x.met;
        numbers = numbers || x.numbers;
    }
    CR_DEVICE void choose(bool other, const cr_best_of_64 &x) {
        best = other ? x.best : best;
        met = other ? x.met : met;
        numbers = other ? x.numbers : numbers;
    }
    CR_DEVICE bool nan() const { return met; }
    CR_DEVICE bool holds(const cr_best_of_64 &x) const { return best == x.best; }
    CR_DEVICE uint64_t rank() const {
        if (NUMBERS && !numbers) return CR_NO_RANK(uint64_t);
        const uint64_t key = (uint64_t)best ^ TOP;
        return MOST ? ~key : key;
    }
};

/* The same for doubles, compared as doubles: three instructions an element. `nan` also when the best is a zero, of either sign. */
template <bool MOST>
struct cr_best_of_doubles {
    double best;
    bool met;

    cr_best_of_doubles() = default;
    static CR_DEVICE double of(uint64_t w) { return __longlong_as_double((long long)w); }
    CR_DEVICE explicit cr_best_of_doubles(const uint4 &v) {
        const double x = of(cr_word64(v, 0)), y = of(cr_word64(v, 1));
        best = better(y, x) ? y : x;
        met = x != x || y != y;
    }
    static CR_DEVICE bool better(double a, double b) { return MOST ? a > b : a < b; }
    CR_DEVICE void also(const cr_best_of_doubles &x) {
        best = better(x.best, best) ? x.best : best;
        met = met || x.met;
    }
    CR_DEVICE void choose(bool other, const cr_best_of_doubles &x) {
        best = other ? x.best : best;
        met = other ? x.met : met;
    }
    CR_DEVICE bool nan() const { return met || best == 0; }
    CR_DEVICE bool holds(const cr_best_of_doubles &x) const { return best == x.best; }
    CR_DEVICE uint64_t rank() const {
        const uint64_t key = cr_key_of<CR_F64>((uint64_t)__double_as_longlong(best));
        return MOST ? ~key : key;
    }
};

/* The same for floats of one byte, for which there are no instructions: as keys that are signed bytes, and so as cr_best_of has these.
 * A NaN is seen apart. NUMBERS: it becomes a key that no number has, to which every number is better. */
template <cr_dtype D, bool MOST, bool NUMBERS>
struct cr_best_of_bytes {
    static constexpr uint32_t NONE = MOST ? 0x80u : 0x7fu;
    cr_best_of<CR_I8, MOST, false> keys;
    uint32_t met;

    cr_best_of_bytes() = default;
    CR_DEVICE explicit cr_best_of_bytes(const uint4 &v) : cr_best_of_bytes(v.x) {
        cr_best_of_bytes other(v.z);
        also(cr_best_of_bytes(v.y));
        other.also(cr_best_of_bytes(v.w));
        also(other);
    }
    CR_DEVICE explicit cr_best_of_bytes(uint32_t w) : keys(key_of(w)), met(cr_nan_bytes<D>(w)) {}
    static CR_DEVICE uint32_t key_of(uint32_t w) {
        const uint32_t key = w ^ (cr_sign_bytes(w) & 0x7f7f7f7fu);
        if (!NUMBERS) return key;
        const uint32_t nan = cr_sign_bytes(cr_nan_bytes<D>(w));
        return (key & ~nan) | (nan & NONE * 0x01010101u);
    }
    CR_DEVICE void also(const cr_best_of_bytes &x) {
        keys.also(x.keys);
        met |= x.met;
    }
    CR_DEVICE void choose(bool other, const cr_best_of_bytes &x) {
        keys.choose(other, x.keys);
        met = other ? x.met : met;
    }
    CR_DEVICE bool nan() const { return met != 0; }
    CR_DEVICE bool holds(const cr_best_of_bytes &x) const { return rank() == x.rank(); }
    CR_DEVICE uint32_t rank() const {
        const uint32_t found = keys.rank(), none = MOST ? ~(NONE ^ 0x80u) : NONE ^ 0x80u;
        return NUMBERS && found == none ? CR_NO_RANK(uint32_t) : found;
    }
};

/* ALONE: what is sought is either the least or the most, not both. */
template <cr_dtype D, bool MOST, bool NUMBERS, bool WIDE, bool ALONE = false>
struct cr_best_types {
    typedef std::conditional_t<cr_is_float(D) && cr_width(D) == 1, cr_best_of_bytes<D, MOST, NUMBERS>, cr_best_of<D, MOST, NUMBERS>> best;
    typedef uint32_t rank;
};
template <cr_dtype D, bool MOST, bool NUMBERS, bool ALONE>
struct cr_best_types<D, MOST, NUMBERS, true, ALONE> {
    typedef std::conditional_t<D == CR_F64 && ALONE && !NUMBERS, cr_best_of_doubles<MOST>, cr_best_of_64<D, MOST, NUMBERS>> best;
    typedef uint64_t rank;
};

/* Lanes of a word that hold these bits (NAN: a NaN): the lowest bit of what is given lies in the first of them; 0: none. */
template <cr_dtype D, bool NAN_WANTED>
CR_DEVICE uint32_t cr_hits(uint32_t w, uint32_t bits) {
    if (cr_width(D) == 4) return NAN_WANTED ? cr_is_nan<D>(w) : w == bits;
    if (cr_width(D) == 2) {
        if (!NAN_WANTED) return cr_nonzero_halves(w ^ bits * 0x00010001u) ^ 0x80008000u;
        return ((w & 0x7fff7fffu) + (0x7fffu - (uint32_t)cr_infinity(D)) * 0x00010001u) & 0x80008000u;
    }
    if (cr_is_float(D) && NAN_WANTED) return cr_nan_bytes<D>(w);
    if (D == CR_BOOL) return cr_nonzero_bytes(w) ^ (bits ? 0 : 0x80808080u);
    return cr_nonzero_bytes(w ^ bits * 0x01010101u) ^ 0x80808080u;
}

/* Whether one of a thread's vectors, STRIDE apart, holds these bits, or a NaN; then number is that of the first such element,
 * counted from the first vector. */
template <cr_dtype D, bool NAN_WANTED, int STRIDE, int U>
CR_DEVICE bool cr_first(const uint4 (&v)[U], uint64_t bits, uint32_t &number) {
    constexpr unsigned LANES = CR_GPU_VECTOR / cr_width(D);
    uint32_t hits = 0;
    number = 0;
#pragma unroll
    for (int j = U - 1; j >= 0; j--) {
        uint32_t at = 0, there = 0; /* of this vector alone, so that the vectors need not wait for each other */
        if constexpr (cr_width(D) == 8) {
            const uint64_t x = cr_word64(v[j], 0), y = cr_word64(v[j], 1);
            const bool low = NAN_WANTED ? cr_is_nan<D>(x) : x == bits, high = NAN_WANTED ? cr_is_nan<D>(y) : y == bits;
            at = !low;
            there = low || high;
        } else {
#pragma unroll
            for (int i = 3; i >= 0; i--) {
                const uint32_t word = cr_hits<D, NAN_WANTED>(cr_word(v[j], (unsigned)i), (uint32_t)bits);
                at = word ? (uint32_t)i * (LANES / 4) : at;
                there = word ? word : there;
            }
        }
        number = there ? (uint32_t)j * STRIDE * LANES + at : number;
        hits = there ? there : hits;
    }
    if (cr_width(D) < 4 && hits != 0) number += (uint32_t)(__ffs((int)hits) - 1) / (8 * cr_width(D));
    return hits != 0;
}

#endif
