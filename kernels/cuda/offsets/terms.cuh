/* terms: what a lane of a team (teams.cuh) makes of vectors of a segment's elements, by their width: sums of integers and of their squares,
 * counts, bits, extrema. What types of one width differ in is told at run time, so that a kernel serves all of them.
 *
 * Each has `words` of 32 bits that lanes exchange, which hold what a chunk may have; `wide` makes of them the words of a part, which holds
 * any segment.
 * Thread: GPU. Owner: the lane. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_TERMS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_TERMS_CUH

#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/offsets/offsets.h"
#include "kernels/cuda/thread/simt.cuh"

/* Words that lanes exchange, N of them. */
template <int N> struct cr_team_words {
    uint32_t word[N];

    CR_DEVICE uint64_t pair(int i) const { return cr_pair(word[i], word[i + 1]); }
    CR_DEVICE void set_pair(int i, uint64_t x) {
        word[i] = (uint32_t)x;
        word[i + 1] = (uint32_t)(x >> 32);
    }
};

/* What lane `lane` has, of a kind of whose words not all are needed. */
template <class T> CR_DEVICE typename T::words cr_team_from(const cr_segments_args &args, const typename T::words &w, uint32_t lane) {
    typename T::words found = w;
#pragma unroll
    for (int i = 0; i < T::WORDS; i++) {
        if (T::has(args, i)) found.word[i] = __shfl_sync(CR_EVERYONE, w.word[i], lane);
    }
    return found;
}

/* Bytes of a word that are nonzero as ones, of a bool. */
CR_DEVICE uint32_t cr_team_truth(const cr_segments_args &args, uint32_t w) {
    return args.elements & CR_ELEMENTS_BOOL ? cr_nonzero_bytes(w) >> 7 : w;
}
/* Of elements of one byte with a sign, their magnitudes. */
CR_DEVICE uint32_t cr_team_magnitudes(uint32_t w) {
    const uint32_t signs = cr_sign_bytes(w);
    return (w ^ signs) + (signs & 0x01010101u);
}
CR_DEVICE void cr_team_keep(uint4 &x, const uint32_t (&keep)[4]) { x = make_uint4(x.x & keep[0], x.y & keep[1], x.z & keep[2], x.w & keep[3]); }

/* Σx (or Σ|x|), in 64 bits with a sign, of eight bytes in 128; then Σx², in 64, 128 and 192. Elements of no segment are zeros. */
template <int BYTES> struct cr_team_whole {
    static constexpr int SIZE = BYTES, SUM = SIZE == 8 ? 4 : 2, SQUARE = SIZE == 8 ? 6 : SIZE == 4 ? 4 : 2, WORDS = SUM + SQUARE;
    static constexpr int BLOCKS = CR_SEGMENTS_TEAM_BLOCKS;
    static constexpr cr_segments_kind KIND = CR_SEGMENTS_INTEGERS;
    typedef cr_team_words<WORDS> words;
    cr_wide<SUM / 2> sum;
    cr_wide<SQUARE / 2> square;
    uint32_t lower, upper; /* of four bytes: of elements' halves, which a chunk's do not overflow */

    CR_DEVICE void begin(int, uint32_t) {
        sum.clear();
        square.clear();
        lower = upper = 0;
    }
    static CR_DEVICE void hide(const cr_segments_args &, uint4 &x, const uint32_t (&keep)[4], uint32_t) { cr_team_keep(x, keep); }
    CR_DEVICE void bytes(const cr_segments_args &args, const uint4 &x, bool is_signed) {
        int32_t plain = 0;
        uint32_t magnitudes = 0, squares = 0;
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const uint32_t w = cr_team_truth(args, cr_word(x, k)), m = is_signed ? cr_team_magnitudes(w) : w;
            if (is_signed && !args.absolute) plain = __dp4a((int)w, 0x01010101, plain);
            else magnitudes = __dp4a(m, 0x01010101u, magnitudes);
            if (args.wants & CR_WANTS_SQUARE) squares = __dp4a(m, m, squares);
        }
        sum.add_i64((int64_t)plain + magnitudes);
        square.add_u64(squares);
    }
    CR_DEVICE void one(const cr_segments_args &args, int64_t x, bool is_signed) { /* of two and four bytes */
        const uint64_t m = is_signed && x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
        sum.add_i64(args.absolute ? (int64_t)m : x);
        if (args.wants & CR_WANTS_SQUARE) square.add_u64(m * m);
    }
    CR_DEVICE void long_one(const cr_segments_args &args, uint64_t x, bool is_signed) {
        const bool negative = is_signed && x >> 63;
        const uint64_t m = negative ? 0 - x : x;
        if (negative && !args.absolute) sum.add_i64((int64_t)x);
        else sum.add_u64(m);
        if (!(args.wants & CR_WANTS_SQUARE)) return;
        const cr_u128 product = (cr_u128)m * m;
        cr_wide<SQUARE / 2> more;
        more.clear();
        more.word[0] = (uint64_t)product;
        if (SQUARE > 2) more.word[SQUARE / 2 > 1 ? 1 : 0] = (uint64_t)(product >> 64);
        square.add(more);
    }
    /* Σx of two or four bytes. */
    CR_DEVICE void plain(const uint4 &x, bool is_signed) {
        int32_t part = 0;
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const uint32_t w = cr_word(x, k);
            if constexpr (SIZE == 4) {
                lower += w & 0xffff;
                upper += cr_signs(w, is_signed ? 0xbb32 : 0x4432);
            } else {
                part = is_signed ? __dp2a_lo((int)w, 0x0101, part) : (int)__dp2a_lo(w, 0x0101u, (uint32_t)part);
            }
        }
        if (SIZE == 2) sum.add_i64(part);
    }
    CR_DEVICE void add(const cr_segments_args &args, const uint4 &x, const uint32_t (&)[4], uint32_t) {
        const bool is_signed = (args.elements & CR_ELEMENTS_SIGNED) != 0;
        if constexpr (SIZE == 1) {
            bytes(args, x, is_signed);
        } else if constexpr (SIZE == 8) {
            long_one(args, cr_word64(x, 0), is_signed);
            long_one(args, cr_word64(x, 1), is_signed);
        } else if (args.wants == CR_WANTS_SUM && !args.absolute) {
            plain(x, is_signed);
        } else {
#pragma unroll
            for (unsigned k = 0; k < 4; k++) {
                const uint32_t w = cr_word(x, k);
                if constexpr (SIZE == 4) {
                    one(args, is_signed ? (int64_t)(int32_t)w : (int64_t)w, is_signed);
                } else {
                    one(args, is_signed ? (int64_t)(int16_t)w : (int64_t)(w & 0xffff), is_signed);
                    one(args, is_signed ? (int64_t)((int32_t)w >> 16) : (int64_t)(w >> 16), is_signed);
                }
            }
        }
    }
    CR_DEVICE static words from(const cr_segments_args &args, const words &w, uint32_t lane) { return cr_team_from<cr_team_whole>(args, w, lane); }
    CR_DEVICE words take(const cr_segments_args &args) {
        words w;
        const bool is_signed = (args.elements & CR_ELEMENTS_SIGNED) != 0;
        if (SIZE == 4) sum.add_i64((is_signed ? (int64_t)(int32_t)upper : (int64_t)upper) * 65536 + lower);
#pragma unroll
        for (int i = 0; i < SUM; i += 2) w.set_pair(i, sum.word[i / 2]);
#pragma unroll
        for (int i = 0; i < SQUARE; i += 2) w.set_pair(SUM + i, square.word[i / 2]);
        return w;
    }
    static CR_DEVICE words empty() {
        words w;
#pragma unroll
        for (int i = 0; i < WORDS; i++) w.word[i] = 0;
        return w;
    }
    /* Whether word i is needed. */
    static CR_DEVICE bool has(const cr_segments_args &args, int i) { return (args.wants & (i < SUM ? CR_WANTS_SUM : CR_WANTS_SQUARE)) != 0; }
    static CR_DEVICE void merge(const cr_segments_args &, words &own, const words &other) {
        cr_wide<SUM / 2> a, b;
        cr_wide<SQUARE / 2> c, d;
#pragma unroll
        for (int i = 0; i < SUM; i += 2) a.word[i / 2] = own.pair(i), b.word[i / 2] = other.pair(i);
#pragma unroll
        for (int i = 0; i < SQUARE; i += 2) c.word[i / 2] = own.pair(SUM + i), d.word[i / 2] = other.pair(SUM + i);
        a.add(b);
        c.add(d);
#pragma unroll
        for (int i = 0; i < SUM; i += 2) own.set_pair(i, a.word[i / 2]);
#pragma unroll
        for (int i = 0; i < SQUARE; i += 2) own.set_pair(SUM + i, c.word[i / 2]);
    }
    /* Where a sum of integers is asked for alone, as 64 bits that hold it. False: it takes more. */
    static CR_DEVICE bool quick(const cr_segments_args &args, const words &w, uint64_t segment) {
        const cr_axis_out &out = args.out[0];
        if (SIZE == 8 || args.out_count != 1 || out.term == CR_TERM_SQUARE || cr_is_variance(out) || out.divisor != CR_DIVISOR_ONE || out.root) return false;
        if (out.result != CR_I64 && out.result != CR_U64) return false;
        if (out.result == CR_U64 && (int64_t)w.pair(0) < 0) return false;
        ((uint64_t *)out.to)[segment] = w.pair(0);
        return true;
    }
    static CR_DEVICE void wide(const cr_segments_args &args, const words &w, cr_segments_part &part) {
        const bool is_signed = (args.elements & CR_ELEMENTS_SIGNED) != 0 && !args.absolute;
        part.word[0] = w.pair(0);
        part.word[1] = SUM == 4 ? w.pair(SUM == 4 ? 2 : 0) : is_signed ? (uint64_t)((int64_t)w.pair(0) >> 63) : 0;
#pragma unroll
        for (int i = 0; i < 3; i++) part.word[2 + i] = 2 * i < SQUARE ? w.pair(SUM + (2 * i < SQUARE ? 2 * i : 0)) : 0;
    }
};

/* Elements other than zero, NaNs, infinities. Elements of no segment are zeros. */
template <int BYTES> struct cr_team_counts {
    static constexpr int SIZE = BYTES, WORDS = 3;
    static constexpr int BLOCKS = CR_SEGMENTS_TEAM_BLOCKS;
    static constexpr cr_segments_kind KIND = CR_SEGMENTS_COUNTS;
    typedef cr_team_words<WORDS> words;
    words found;

    CR_DEVICE void begin(int, uint32_t) { found = empty(); }
    static CR_DEVICE void hide(const cr_segments_args &, uint4 &x, const uint32_t (&keep)[4], uint32_t) { cr_team_keep(x, keep); }
    /* Of a word of narrow elements. */
    CR_DEVICE void narrow(const cr_segments_args &args, uint32_t w) {
        constexpr uint32_t ONES = SIZE == 1 ? 0x01010101u : 0x00010001u, TOPS = ONES << (8 * SIZE - 1);
        const bool is_float = (args.elements & CR_ELEMENTS_FLOAT) != 0;
        const uint32_t m = is_float ? w & ~TOPS : w, infinite = (uint32_t)args.infinite;
        found.word[0] += (uint32_t)__popc(SIZE == 1 ? cr_nonzero_bytes(m) : cr_nonzero_halves(m));
        if (!is_float) return;
        const uint32_t others = m ^ infinite * ONES;
        found.word[1] += (uint32_t)__popc((m + (TOPS - ONES - infinite * ONES)) & TOPS);
        if (args.wants) found.word[2] += CR_GPU_VECTOR / SIZE / 4 - (uint32_t)__popc(SIZE == 1 ? cr_nonzero_bytes(others) : cr_nonzero_halves(others));
    }
    CR_DEVICE void one(const cr_segments_args &args, uint64_t bits) {
        const bool is_float = (args.elements & CR_ELEMENTS_FLOAT) != 0;
        const uint64_t m = is_float ? bits & ((1ull << (8 * SIZE - 1)) - 1) : bits;
        found.word[0] += m != 0;
        if (!is_float) return;
        found.word[1] += m > args.infinite;
        found.word[2] += m == args.infinite;
    }
    CR_DEVICE void add(const cr_segments_args &args, const uint4 &x, const uint32_t (&)[4], uint32_t) {
        if constexpr (SIZE <= 2) {
#pragma unroll
            for (unsigned k = 0; k < 4; k++) narrow(args, cr_word(x, k));
        } else if constexpr (SIZE == 4) {
#pragma unroll
            for (unsigned k = 0; k < 4; k++) one(args, cr_word(x, k));
        } else {
            one(args, cr_word64(x, 0));
            one(args, cr_word64(x, 1));
        }
    }
    CR_DEVICE static words from(const cr_segments_args &args, const words &w, uint32_t lane) { return cr_team_from<cr_team_counts>(args, w, lane); }
    CR_DEVICE words take(const cr_segments_args &) const { return found; }
    static CR_DEVICE words empty() { return {{0, 0, 0}}; }
    static CR_DEVICE bool has(const cr_segments_args &args, int i) { return i == 0 || (args.elements & CR_ELEMENTS_FLOAT) != 0; }
    static CR_DEVICE void merge(const cr_segments_args &, words &own, const words &other) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) own.word[i] += other.word[i];
    }
    static CR_DEVICE bool quick(const cr_segments_args &, const words &, uint64_t) { return false; }
    static CR_DEVICE void wide(const cr_segments_args &, const words &w, cr_segments_part &part) {
#pragma unroll
        for (int i = 0; i < 5; i++) part.word[i] = i < WORDS ? w.word[i < WORDS ? i : 0] : 0;
    }
};

/* Bits that some element lacks, that some has, that an odd number of them has. Elements of no segment are zeros, and lack nothing. */
template <int BYTES> struct cr_team_bits {
    static constexpr int SIZE = BYTES, EACH = SIZE == 8 ? 2 : 1, WORDS = 3 * EACH;
    static constexpr int BLOCKS = CR_SEGMENTS_TEAM_BLOCKS;
    static constexpr cr_segments_kind KIND = CR_SEGMENTS_BITS;
    typedef cr_team_words<WORDS> words;
    words found; /* of neighbours of a word, side by side */

    CR_DEVICE void begin(int, uint32_t) { found = empty(); }
    static CR_DEVICE void hide(const cr_segments_args &, uint4 &x, const uint32_t (&keep)[4], uint32_t) { cr_team_keep(x, keep); }
    CR_DEVICE void add(const cr_segments_args &args, const uint4 &x, const uint32_t (&keep)[4], uint32_t) {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const uint32_t w = SIZE == 1 ? cr_team_truth(args, cr_word(x, k)) : cr_word(x, k);
            found.word[k % EACH] |= ~w & keep[k];
            found.word[EACH + k % EACH] |= w;
            found.word[2 * EACH + k % EACH] ^= w;
        }
    }
    CR_DEVICE static words from(const cr_segments_args &args, const words &w, uint32_t lane) { return cr_team_from<cr_team_bits>(args, w, lane); }
    CR_DEVICE words take(const cr_segments_args &) const {
        words w = found;
        if constexpr (SIZE <= 2) {
            for (int i = 0; i < WORDS; i++) {
                for (int shift = 16; shift >= 8 * SIZE; shift /= 2) w.word[i] = i < 2 ? w.word[i] | w.word[i] >> shift : w.word[i] ^ w.word[i] >> shift;
                w.word[i] &= (1u << 8 * SIZE % 32) - 1;
            }
        }
        return w;
    }
    static CR_DEVICE words empty() {
        words w;
#pragma unroll
        for (int i = 0; i < WORDS; i++) w.word[i] = 0;
        return w;
    }
    static CR_DEVICE bool has(const cr_segments_args &, int) { return true; }
    static CR_DEVICE void merge(const cr_segments_args &, words &own, const words &other) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) own.word[i] = i < 2 * EACH ? own.word[i] | other.word[i] : own.word[i] ^ other.word[i];
    }
    static CR_DEVICE bool quick(const cr_segments_args &, const words &, uint64_t) { return false; }
    static CR_DEVICE void wide(const cr_segments_args &, const words &w, cr_segments_part &part) {
#pragma unroll
        for (int i = 0; i < 5; i++) part.word[i] = i >= 3 ? 0 : EACH == 2 ? w.pair(EACH == 2 ? 2 * (i % 3) : 0) : w.word[i % 3];
    }
};

/* Least keys, and least complements of keys (kernels/core/key.h), and the numbers of the vectors in which they came first; the first vector
 * that has a NaN. `wide` is told of places after the vectors were looked at again (teams.cuh). Elements of no segment are like one of it. */
template <int BYTES> struct cr_team_extrema {
    static constexpr int SIZE = BYTES, EACH = SIZE == 8 ? 2 : 1, AT = 2 * EACH, WORDS = AT + 3, VEC = CR_GPU_VECTOR / SIZE;
    static constexpr int BLOCKS = CR_SEGMENTS_TEAM_BLOCKS;
    static constexpr cr_segments_kind KIND = CR_SEGMENTS_EXTREMA;
    static constexpr uint32_t NONE = UINT32_MAX;
    typedef typename std::conditional<SIZE == 8, uint64_t, uint32_t>::type key;
    static constexpr key TOP = (key)1 << (8 * SIZE - 1), ALL = TOP | (TOP - 1);
    typedef cr_team_words<WORDS> words;
    key best[2];
    uint32_t at[2], nan_at;

    /* first: the lane's first vector. No number has the greatest key, nor the least; integers may, which all are numbers. */
    CR_DEVICE void begin(int, uint32_t first) {
        best[0] = best[1] = ALL;
        at[0] = at[1] = first;
        nan_at = NONE;
    }
    static CR_DEVICE key element(const uint4 &x, int e) { return (key)cr_element<SIZE>(x, e); }
    /* The vector's first element `lo` that is kept stands for those that are not. */
    static CR_DEVICE void hide(const cr_segments_args &, uint4 &x, const uint32_t (&keep)[4], uint32_t lo) {
        uint64_t bits = 0;
#pragma unroll
        for (int e = 0; e < VEC; e++) bits = e == (int)lo ? (uint64_t)element(x, e) : bits;
        const uint32_t low = SIZE == 1 ? (uint32_t)bits * 0x01010101u : SIZE == 2 ? (uint32_t)bits * 0x00010001u : (uint32_t)bits, high = SIZE == 8 ? (uint32_t)(bits >> 32) : low;
        x = make_uint4((x.x & keep[0]) | (low & ~keep[0]), (x.y & keep[1]) | (high & ~keep[1]), (x.z & keep[2]) | (low & ~keep[2]), (x.w & keep[3]) | (high & ~keep[3]));
    }
    /* Keys of a word's elements; of eight bytes an element's. */
    static CR_DEVICE uint32_t key_of(const cr_segments_args &args, uint32_t w) {
        w = SIZE == 1 ? cr_team_truth(args, w) : w;
        const uint32_t signs = SIZE == 1 ? cr_sign_bytes(w) : SIZE == 2 ? cr_sign_halves(w) : (uint32_t)((int32_t)w >> 31);
        return w ^ ((signs & args.spread) | args.flip);
    }
    static CR_DEVICE uint64_t key_of(const cr_segments_args &args, uint64_t x) {
        const uint32_t upper = (uint32_t)(x >> 32), signs = (uint32_t)((int32_t)upper >> 31) & args.spread;
        return cr_pair((uint32_t)x ^ signs, upper ^ (signs | args.flip));
    }
    /* The key of one element alone. */
    static CR_DEVICE key key_alone(const cr_segments_args &args, key bits) { return key_of(args, bits) & ALL; }
    /* Of a vector. */
    static CR_DEVICE void ends(const cr_segments_args &args, const uint4 &x, key &low, key &high) {
        if constexpr (SIZE == 8) {
            const uint64_t a = key_of(args, cr_word64(x, 0)), b = key_of(args, cr_word64(x, 1));
            low = min(a, b);
            high = max(a, b);
            return;
        }
        const uint32_t a = key_of(args, x.x), b = key_of(args, x.y), c = key_of(args, x.z), d = key_of(args, x.w);
        if constexpr (SIZE == 4) {
            low = min(min(a, b), min(c, d));
            high = max(max(a, b), max(c, d));
        } else if constexpr (SIZE <= 2) {
            uint32_t least = __vminu2(__vminu2(a, b), __vminu2(c, d)), most = __vmaxu2(__vmaxu2(a, b), __vmaxu2(c, d));
            if constexpr (SIZE == 1) { /* a byte decides a half if it is its upper one: of those below, which are moved up, likewise */
                const uint32_t p = a << 8, q = b << 8, r = c << 8, s = d << 8;
                constexpr uint32_t UPPER = 0xff00ff00u;
                least = __vminu2(least & UPPER, __vminu2(__vminu2(p & UPPER, q & UPPER), __vminu2(r & UPPER, s & UPPER))) >> 8;
                most = __vmaxu2(most & UPPER, __vmaxu2(__vmaxu2(p & UPPER, q & UPPER), __vmaxu2(r & UPPER, s & UPPER))) >> 8;
            }
            low = min(least & 0xffff, least >> 16);
            high = max(most & 0xffff, most >> 16);
        }
    }
    CR_DEVICE void better(int which, key k, uint32_t v) {
        at[which] = k < best[which] ? v : at[which];
        best[which] = min(k, best[which]);
    }
    CR_DEVICE void add(const cr_segments_args &args, const uint4 &x, const uint32_t (&keep)[4], uint32_t v) {
        key low = 0, high = 0;
        ends(args, x, low, high);
        if ((args.elements & CR_ELEMENTS_FLOAT) && (high > (key)(args.infinite | TOP) || low < (key)(TOP - 1 - (key)args.infinite))) {
            add_each(args, x, keep, v);
            return;
        }
        better(0, low, v);
        better(1, ALL - high, v);
    }
    /* Of a vector that has NaNs. */
    CR_DEVICE void add_each(const cr_segments_args &args, const uint4 &x, const uint32_t (&keep)[4], uint32_t v) {
        const uint4 kept = make_uint4(keep[0], keep[1], keep[2], keep[3]);
#pragma unroll 1
        for (int e = 0; e < VEC; e++) {
            const key bits = element(x, e);
            if (element(kept, e) == 0) continue;
            if ((bits & (TOP - 1)) > (key)args.infinite) {
                nan_at = min(nan_at, v);
                continue;
            }
            const key k = key_alone(args, bits);
            better(0, k, v);
            better(1, ALL - k, v);
        }
    }
    static CR_DEVICE void set_key(words &w, int which, key k) {
        w.word[which * EACH] = (uint32_t)k;
        if (EACH == 2) w.word[which * EACH + EACH - 1] = (uint32_t)((uint64_t)k >> 32);
    }
    static CR_DEVICE key get_key(const words &w, int which) { return EACH == 2 ? (key)cr_pair(w.word[which * EACH], w.word[which * EACH + EACH - 1]) : (key)w.word[which]; }
    CR_DEVICE static words from(const cr_segments_args &args, const words &w, uint32_t lane) { return cr_team_from<cr_team_extrema>(args, w, lane); }
    CR_DEVICE words take(const cr_segments_args &) const {
        words w;
        set_key(w, 0, best[0]);
        set_key(w, 1, best[1]);
        w.word[AT] = at[0];
        w.word[AT + 1] = at[1];
        w.word[AT + 2] = nan_at;
        return w;
    }
    static CR_DEVICE words empty() {
        cr_team_extrema none;
        none.begin(0, NONE);
        words w;
        set_key(w, 0, none.best[0]);
        set_key(w, 1, none.best[1]);
        w.word[AT] = w.word[AT + 1] = w.word[AT + 2] = NONE;
        return w;
    }
    static CR_DEVICE bool has(const cr_segments_args &args, int i) {
        return i < AT || (i < AT + 2 ? (args.wants & CR_WANTS_PLACES) != 0 : (args.elements & CR_ELEMENTS_FLOAT) != 0);
    }
    static CR_DEVICE void merge(const cr_segments_args &args, words &own, const words &other) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const key a = get_key(own, i), b = get_key(other, i);
            if (args.wants & CR_WANTS_PLACES) {
                const bool take = b < a || (b == a && other.word[AT + i] < own.word[AT + i]);
                own.word[AT + i] = take ? other.word[AT + i] : own.word[AT + i];
            }
            set_key(own, i, min(a, b));
        }
        own.word[AT + 2] = min(own.word[AT + 2], other.word[AT + 2]);
    }
    /* Whether there is no number; i = 2: no NaN. Of no elements of integers the vector says so. */
    static CR_DEVICE bool lacks(const cr_segments_args &args, const words &w, int i) {
        if (i == 2) return w.word[AT + 2] == NONE;
        return args.elements & CR_ELEMENTS_FLOAT ? get_key(w, i) == ALL : (args.wants & CR_WANTS_PLACES) != 0 && w.word[AT + i] == NONE;
    }
    /* Where a segment that has elements is asked for its minimum or maximum alone, and has no NaN. False: it takes more. */
    static CR_DEVICE bool quick(const cr_segments_args &args, const words &w, uint64_t segment) {
        const cr_axis_out &out = args.out[0];
        if (args.out_count != 1 || (out.term != CR_TERM_LEAST && out.term != CR_TERM_GREATEST) || w.word[AT + 2] != NONE) return false;
        const key k = out.term == CR_TERM_LEAST ? get_key(w, 0) : ALL - get_key(w, 1);
        const key bits = args.elements & CR_ELEMENTS_FLOAT ? (k & TOP ? k ^ TOP : ~k & ALL) : k ^ (args.elements & CR_ELEMENTS_SIGNED ? TOP : 0);
        if (SIZE == 8) ((uint64_t *)out.to)[segment] = bits;
        else if (SIZE == 4) ((uint32_t *)out.to)[segment] = (uint32_t)bits;
        else if (SIZE == 2) ((uint16_t *)out.to)[segment] = (uint16_t)bits;
        else ((uint8_t *)out.to)[segment] = (uint8_t)bits;
        return true;
    }
    /* place[i]: of what word[AT + i] has the vector of; UINT64_MAX: it has none. */
    static CR_DEVICE void wide(const cr_segments_args &, const words &w, const uint64_t (&place)[3], cr_segments_part &part) {
        part.word[0] = get_key(w, 0);
        part.word[1] = place[0];
        part.word[2] = get_key(w, 1);
        part.word[3] = place[1];
        part.word[4] = place[2];
    }
};

#endif
