/* quarters: Σx and Σx² of float64 in segments, by teams (teams.cuh), as axis/quarters.cuh does along an axis. A warp's lanes begin with one
 * window, placed by elements where the chunk begins; so what they have mostly meets without shifts. What no window takes makes the
 * segment hard, and it is left to slow.cuh.
 *
 * Thread: GPU. Owner: the lane. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_QUARTERS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_QUARTERS_CUH

#include "kernels/cuda/axis/extreme.cuh"
#include "kernels/cuda/axis/quarters.cuh"
#include "kernels/cuda/offsets/terms.cuh"

struct cr_team_quarters {
    typedef cr_axis_quarters Quarters;
    typedef cr_axis_quarter_record record;
    static constexpr int SIZE = 8, BLOCKS = CR_SEGMENTS_BLOCKS, NARROW = 12, MARKS = 20, UNIT = 22, WORDS = 23;
    static constexpr cr_segments_kind KIND = CR_SEGMENTS_QUARTERS;
    /* Two words of a sum, four of squares, unit: what mostly is all; then the upper words, marks. */
    typedef cr_team_words<WORDS> words;
    Quarters own;

    /* Of a chunk: where windows begin. x: of each lane, an element of it. */
    CR_DEVICE static int hint(uint64_t x) {
        const uint32_t field = (uint32_t)(x >> 52) & 0x7ff, most = __reduce_max_sync(CR_EVERYONE, field == 0x7ff ? 0 : field);
        return (most != 0 ? (int)most - Quarters::E::BIAS : 0) + 1 + Quarters::ABOVE;
    }
    CR_DEVICE void begin(int hint, uint32_t) {
        own.move(hint);
        own.marks = 0;
        own.moved = false;
        own.total = record{};
    }
    static CR_DEVICE void hide(const cr_segments_args &, uint4 &x, const uint32_t (&keep)[4], uint32_t) { cr_team_keep(x, keep); }
    CR_DEVICE void add(const cr_segments_args &, const uint4 &x, const uint32_t (&)[4], uint32_t) {
        const uint64_t v[2] = {cr_word64(x, 0), cr_word64(x, 1)};
        own.reserve(2);
        if (Quarters::Window::inside_one(v[0], own.bounds) && Quarters::Window::inside_one(v[1], own.bounds)) {
            own.put(v);
            return;
        }
#pragma unroll 1
        for (int e = 0; e < 2; e++) own.careful(e == 0 ? v[0] : v[1]);
    }
    CR_DEVICE words take(const cr_segments_args &) {
        if (own.moved) own.settle(0);
        record r = own.moved ? own.total : Quarters::record_of(own.own);
        r.marks = own.marks;
        return of(r);
    }
    static CR_DEVICE words empty() { return of(record{}); }
    static CR_DEVICE words of(const record &r) {
        words w;
#pragma unroll
        for (int i = 0; i < 4; i++) w.set_pair(i < 2 ? 2 * i : 8 + 2 * i, r.sum.word[i]);
#pragma unroll
        for (int i = 0; i < 6; i++) w.set_pair(i < 4 ? 4 + 2 * i : 8 + 2 * i, r.squares.word[i]);
        w.set_pair(MARKS, r.marks);
        w.word[UNIT] = (uint32_t)r.unit;
        return w;
    }
    static CR_DEVICE record record_of(const words &w) {
        record r;
#pragma unroll
        for (int i = 0; i < 4; i++) r.sum.word[i] = w.pair(i < 2 ? 2 * i : 8 + 2 * i);
#pragma unroll
        for (int i = 0; i < 6; i++) r.squares.word[i] = w.pair(i < 4 ? 4 + 2 * i : 8 + 2 * i);
        r.marks = w.pair(MARKS);
        r.unit = (int32_t)w.word[UNIT];
        return r;
    }
    /* Whether the upper words only repeat a sign. */
    static CR_DEVICE bool is_narrow(const words &w) {
        const uint32_t sign = (uint32_t)((int32_t)w.word[3] >> 31);
        uint32_t more = w.word[MARKS] | w.word[MARKS + 1];
#pragma unroll
        for (int i = 12; i < 16; i++) more |= w.word[i] ^ sign;
#pragma unroll
        for (int i = 16; i < 20; i++) more |= w.word[i];
        return more == 0 && w.word[NARROW - 1] >> 31 == 0;
    }
    static CR_DEVICE words from(const cr_segments_args &, const words &w, uint32_t lane) {
        words found;
        const bool narrow = __all_sync(CR_EVERYONE, is_narrow(w));
#pragma unroll
        for (int i = 0; i < NARROW; i++) found.word[i] = __shfl_sync(CR_EVERYONE, w.word[i], lane);
        found.word[UNIT] = __shfl_sync(CR_EVERYONE, w.word[UNIT], lane);
        const uint32_t sign = (uint32_t)((int32_t)found.word[3] >> 31);
#pragma unroll
        for (int i = NARROW; i < UNIT; i++) found.word[i] = i < 16 ? sign : 0;
        if (narrow) return found;
#pragma unroll
        for (int i = NARROW; i < UNIT; i++) found.word[i] = __shfl_sync(CR_EVERYONE, w.word[i], lane);
        return found;
    }
    static CR_CALLED void merge_slowly(words &own, const words &other) {
        record r = record_of(own);
        Quarters::merge(r, record_of(other));
        own = of(r);
    }
    static CR_DEVICE void merge(const cr_segments_args &, words &own, const words &other) {
        const uint32_t top = (own.word[3] ^ own.word[3] << 1) | (other.word[3] ^ other.word[3] << 1); /* the sign's neighbours */
        if (own.word[UNIT] != other.word[UNIT] || !is_narrow(own) || !is_narrow(other) || top >> 31 != 0 || (own.word[NARROW - 1] | other.word[NARROW - 1]) >> 30 != 0) {
            words copy = own;
            merge_slowly(copy, other);
            own = copy;
            return;
        }
        cr_words<2> a = {{own.pair(0), own.pair(2)}};
        cr_words<4> b = {{own.pair(4), own.pair(6), own.pair(8), own.pair(10)}};
        a.add({{other.pair(0), other.pair(2)}});
        b.add({{other.pair(4), other.pair(6), other.pair(8), other.pair(10)}});
#pragma unroll
        for (int i = 0; i < 2; i++) own.set_pair(2 * i, a.word[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) own.set_pair(4 + 2 * i, b.word[i]);
        const uint32_t sign = (uint32_t)((int32_t)own.word[3] >> 31);
#pragma unroll
        for (int i = 12; i < 16; i++) own.word[i] = sign;
    }
    static CR_DEVICE bool quick(const cr_segments_args &, const words &, uint64_t) { return false; }
    static CR_DEVICE void wide(const cr_segments_args &, const words &w, cr_segments_part &part) { part_of(record_of(w), part); }

    /* A part's words: the sum's, the squares', marks, unit. */
    static CR_DEVICE void part_of(const record &r, cr_segments_part &part) {
        for (int i = 0; i < 4; i++) part.word[i] = r.sum.word[i];
        for (int i = 0; i < 6; i++) part.word[4 + i] = r.squares.word[i];
        part.word[10] = r.marks;
        part.word[11] = (uint64_t)r.unit;
    }
    static CR_DEVICE record record_of(const cr_segments_part &part) {
        record r;
        for (int i = 0; i < 4; i++) r.sum.word[i] = part.word[i];
        for (int i = 0; i < 6; i++) r.squares.word[i] = part.word[4 + i];
        r.marks = part.word[10];
        r.unit = (int64_t)part.word[11];
        return r;
    }
    static CR_CALLED void join(cr_segments_part &own, const cr_segments_part &other) {
        record r = record_of(own);
        Quarters::merge(r, record_of(other));
        part_of(r, own);
    }
    /* False: it is hard. */
    static CR_CALLED bool answer(const cr_closed &of, const cr_segments_args &args, uint64_t segment, const cr_segments_part &part) {
        return Quarters::answers(of, args, record_of(part), segment);
    }
};

#endif
