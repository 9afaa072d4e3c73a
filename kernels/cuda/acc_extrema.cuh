/* acc_extrema: minimum, maximum, their lowest indices, and the first NaN.
 *
 * Elements become keys of their own width, ordered as the values are (−0 below +0), compared lane by lane. A thread only notes
 * in which of its tiles the best key came first; when the block's best is known, those who hold it look for the index there.
 *
 * A NaN's key lies beyond an infinity's, so a tile whose keys stay within the infinities has none, at no extra cost; one that
 * has is gone over again with the NaNs masked. Memory that changes meanwhile gives some answer, and an index in the array.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_ACC_EXTREMA_CUH
#define CURED_KERNELS_CUDA_ACC_EXTREMA_CUH

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

/* Whether any of a vector's elements is. */
template <cr_dtype D>
CR_DEVICE bool cr_vector_wanted(const uint4 &v, uint64_t bits, bool nan) {
    if constexpr (cr_width(D) == 8)
        return cr_wanted<D>(cr_word64(v, 0), bits, nan) || cr_wanted<D>(cr_word64(v, 1), bits, nan);
    bool found = false;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t w = cr_word(v, i), low = (uint32_t)bits;
        if (cr_width(D) == 4) found |= cr_wanted<D>(w, bits, nan);
        if (cr_width(D) == 2) {
            found |= cr_is_float(D) && nan ? cr_keys<D>::nan_lanes(w) != 0
                                           : cr_nonzero_halves(w ^ low * 0x00010001u) != 0x80008000u;
        }
        if (D == CR_BOOL) found |= cr_nonzero_bytes(w) != (low ? 0 : 0x80808080u);
        if (cr_width(D) == 1 && D != CR_BOOL) found |= cr_nonzero_bytes(w ^ low * 0x01010101u) != 0x80808080u;
    }
    return found;
}

#define CR_NOWHERE UINT64_MAX

/* The lowest index among U of this thread's vectors that holds these bits, or a NaN, or CR_NOWHERE. The vectors are loaded
 * together; which of them it is comes first, where in it second. */
template <cr_dtype D, int U>
CR_DEVICE uint64_t cr_search(const cr_fold_args &args, uint64_t vector, uint64_t bits, bool nan) {
    constexpr unsigned WIDTH = cr_width(D), LANES = CR_GPU_VECTOR / WIDTH;
    const uint64_t end = min((blockIdx.x + 1) * args.plan.per_block, args.plan.vectors);
    const uint4 *body = cr_body<(int)WIDTH>(args);
    uint4 v[U];
    const uint32_t count = cr_load<U>(v, body, args.plan.shift, vector, end);
    uint32_t which = 0;
#pragma unroll
    for (int j = 0; j < U; j++) {
        if (cr_vector_wanted<D>(v[j], bits, nan) && j < (int)count) which |= 1u << j;
    }
    if (which == 0) return CR_NOWHERE;
    vector += (uint64_t)(__ffs((int)which) - 1) * CR_GPU_THREADS;
    uint4 one[1];
    cr_load<1>(one, body, args.plan.shift, vector, end);
    uint64_t lane = CR_NOWHERE; /* it may be gone again */
#pragma unroll
    for (int e = LANES - 1; e >= 0; e--) {
        if (cr_wanted<D>(cr_element<WIDTH>(one[0], (unsigned)e), bits, nan)) lane = (uint64_t)e;
    }
    return lane == CR_NOWHERE ? lane : cr_index_of<(int)WIDTH>(args, vector) + lane;
}

/* What blocks leave. Keys of maxima are complemented, so that the least is the best of all five. */
struct cr_extrema_total {
    uint64_t min_key, max_key;
    uint64_t min_index, max_index, first_nan; /* CR_NOWHERE: none */
};

template <cr_dtype D>
struct cr_fold_extrema {
    static constexpr unsigned WIDTH = cr_width(D), ROOM = 5 * CR_WARPS;
    static constexpr int BLOCKS = 4;
    static constexpr bool FLOAT = cr_is_float(D);
    typedef typename cr_key_types<D, cr_width(D) == 8>::keys keys;
    typedef typename cr_key_types<D, cr_width(D) == 8>::key key;
    typedef cr_extrema_total total;
    static constexpr uint32_t NO_TILE = UINT32_MAX;
    static constexpr uint64_t TOP = 1ull << (8 * cr_width(D) - 1);
    /* Keys of the infinities: beyond them are only NaNs. */
    static constexpr key PLUS = FLOAT ? (key)(cr_infinity(D) | TOP) : 0,
                         MINUS = FLOAT ? (key)(TOP - 1 - cr_infinity(D)) : 0;

    key least, most;
    uint32_t least_tile, most_tile, nan_tile; /* in CR_GPU_THREADS vectors */
    const cr_fold_args *args;

    CR_IN void begin(const cr_fold_args &given) {
        args = &given;
        least = ~(key)0;
        most = 0;
        least_tile = most_tile = nan_tile = NO_TILE;
    }
    template <int U>
    CR_IN void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        if (count == 0) return;
        const uint32_t place = (uint32_t)(vector / CR_GPU_THREADS);
        keys best;
        best.clear();
        if (count == U) {
#pragma unroll
            for (int j = 0; j < U; j++) best.vec(v[j]);
        } else { /* the same element twice changes nothing */
#pragma unroll
            for (int j = 0; j < U; j++) best.vec(cr_choose(j < (int)count, v[j], v[0]));
        }
        key low = best.best_least(), high = best.best_most();
        if (FLOAT && (high > PLUS || low < MINUS)) {
            /* Loaded once more, so that the vectors need not be kept for this. */
            const uint4 *body = cr_body<(int)WIDTH>(*args);
            const uint64_t end = vector + (uint64_t)count * CR_GPU_THREADS;
            uint32_t nans = 0;
            best.clear();
#pragma unroll 1
            for (uint64_t at = vector; at < end; at += CR_GPU_THREADS) {
                uint4 again[1];
                cr_load<1>(again, body, args->plan.shift, at, end);
                best.vec_masked(again[0], nans);
            }
            low = best.best_least();
            high = best.best_most();
            if (nans && nan_tile == NO_TILE) nan_tile = place;
            if (low > PLUS) return; /* nothing but NaNs */
        }
        if (low < least || least_tile == NO_TILE) {
            least = low;
            least_tile = place;
        }
        if (high > most || most_tile == NO_TILE) {
            most = high;
            most_tile = place;
        }
    }
    CR_IN void one(uint64_t) {} /* see edge */

    /* The single element that this thread has had, if any: it is read again, since it would take registers from everyone. */
    CR_IN bool edge(uint64_t &bits, uint64_t &index) {
        const cr_fold_plan &plan = args->plan;
        if (blockIdx.x != 0 || threadIdx.x >= plan.head + plan.tail) return false;
        uint64_t at = threadIdx.x;
        if (at >= plan.head) at += plan.vectors * (CR_GPU_VECTOR / WIDTH);
        bits = cr_load_one<WIDTH>(args->data + at * WIDTH);
        index = args->index + at;
        return true;
    }
    CR_IN void close(uint64_t *room, total &t) {
        uint64_t edge_bits = 0, edge_index = 0;
        const bool has_edge = edge(edge_bits, edge_index), edge_nan = has_edge && cr_is_nan<D>(edge_bits);
        const uint64_t edge_key = cr_key_of<D>(edge_bits);
        const bool some = least_tile != NO_TILE; /* most_tile too */
        uint64_t best[3] = {some ? (uint64_t)least : UINT64_MAX, some ? ~(uint64_t)most : UINT64_MAX, nan_tile};
        if (has_edge && !edge_nan) {
            best[0] = min(best[0], edge_key);
            best[1] = min(best[1], ~edge_key);
        }
        cr_block_min(best, room);
        t.min_key = best[0];
        t.max_key = best[1];
        t.min_index = t.max_index = t.first_nan = CR_NOWHERE;
#pragma unroll 1
        for (int k = 0; k < (FLOAT ? 3 : 2); k++) {
            const uint32_t tile = k == 0 ? least_tile : k == 1 ? most_tile : nan_tile;
            const bool holds = k == 0 ? least == best[0] : k == 1 ? most == ~best[1] : tile == best[2];
            if (tile == NO_TILE || !holds) continue;
            const uint64_t vector = (uint64_t)tile * CR_GPU_THREADS + threadIdx.x;
            const uint64_t bits = cr_bits_of<D>(k == 0 ? best[0] : ~best[1]);
            const uint64_t index = args->plan.shift == 0 ? cr_search<D, CR_GPU_UNROLL>(*args, vector, bits, k == 2)
                                                         : cr_search<D, CR_GPU_SHIFTED>(*args, vector, bits, k == 2);
            if (k == 0) t.min_index = index;
            if (k == 1) t.max_index = index;
            if (k == 2) t.first_nan = index;
        }
        if (!has_edge) return;
        if (edge_nan) {
            t.first_nan = min(t.first_nan, edge_index);
        } else {
            if (edge_key == best[0]) t.min_index = min(t.min_index, edge_index);
            if (edge_key == ~best[1]) t.max_index = min(t.max_index, edge_index);
        }
    }
    static CR_IN void empty(total &t) { t.min_key = t.max_key = t.min_index = t.max_index = t.first_nan = CR_NOWHERE; }
    static CR_IN void merge(total &t, const total &other) {
        if (other.min_key < t.min_key || (other.min_key == t.min_key && other.min_index < t.min_index)) {
            t.min_key = other.min_key;
            t.min_index = other.min_index;
        }
        if (other.max_key < t.max_key || (other.max_key == t.max_key && other.max_index < t.max_index)) {
            t.max_key = other.max_key;
            t.max_index = other.max_index;
        }
        t.first_nan = min(t.first_nan, other.first_nan);
    }
    static CR_IN void reduce(total &t, uint64_t *room) {
        uint64_t key_of[2] = {t.min_key, t.max_key};
        cr_block_min(key_of, room);
        uint64_t at[3] = {t.min_key == key_of[0] ? t.min_index : CR_NOWHERE,
                          t.max_key == key_of[1] ? t.max_index : CR_NOWHERE, t.first_nan};
        cr_block_min(at, room);
        t.min_key = key_of[0];
        t.max_key = key_of[1];
        t.min_index = at[0];
        t.max_index = at[1];
        t.first_nan = at[2];
    }
    /* No element but NaNs: no index. An element that is gone when it is looked for: the first index. */
    static CR_IN void put(const total &t, const cr_fold_args &args) {
        cr_partial *out = &args.slot->partial;
        const bool none = t.min_key == UINT64_MAX && t.max_key == UINT64_MAX;
        out->min.key = t.min_key;
        out->max.key = none ? 0 : ~t.max_key;
        out->min.index = none || t.min_index != CR_NOWHERE ? t.min_index : args.index;
        out->max.index = none || t.max_index != CR_NOWHERE ? t.max_index : args.index;
        out->first_nan = t.first_nan;
    }
};

#endif
