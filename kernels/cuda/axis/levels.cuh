/* levels: along an axis, of bfloat16 and of squares of float32, of any magnitudes: as many levels of anchors as their exponents need, each at
 * its own place, so nothing depends on the data. The tiles with outputs that floats.cuh could not take come here.
 *
 * Six levels take every element, twelve every square; an element costs three additions a level. What a thread knows is a number of
 * 384 bits (of squares: 704).
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_LEVELS_CUH
#define CURED_KERNELS_CUDA_AXIS_LEVELS_CUH

#include "kernels/cuda/axis/floats.cuh"

/* What is known of an output. */
template <int W> struct cr_axis_level_record {
    cr_words<W> value; /* times 2^LOWEST */
    uint64_t marks;

    static CR_DEVICE cr_axis_level_record none() {
        cr_axis_level_record r;
        r.value.clear();
        r.marks = 0;
        return r;
    }
    CR_DEVICE void merge(const cr_axis_level_record &other) {
        value.add(other.value);
        marks = (((marks & CR_MARK_NANS) + (other.marks & CR_MARK_NANS)) | ((marks | other.marks) & ~CR_MARK_NANS));
    }
};

template <int W, int LOWEST, bool SQUARE>
CR_DEVICE bool cr_axis_level_finish(const cr_axis_args &args, const cr_axis_level_record<W> &r, uint64_t output) {
    const uint64_t nans = r.marks & CR_MARK_NANS;
    const bool nan = nans != 0 && !args.skip, infinite = (r.marks & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0;
    cr_words<W> positive = r.value;
    const bool negative = positive.strip_sign();
    int exponent = LOWEST;
    bool sticky = false;
    const cr_u128 magnitude = cr_leading(positive, exponent, sticky);
    for (uint32_t k = 0; k < args.out_count; k++) {
        const cr_axis_out &out = args.out[k];
        if (!cr_is_variance(out)) {
            cr_float_answer(args, out, output, negative, magnitude, exponent, sticky, r.marks);
        } else if constexpr (!SQUARE) {
            *cr_axis_slot_of(args, output) =
                cr_axis_slot{r.value.word[0], r.value.word[1], LOWEST, CR_SLOT_WIDE,
                             {r.value.word[2], r.value.word[3], r.value.word[4], r.value.word[5]}};
        } else if (nan || infinite) {
            cr_put_bits(out.to, output, out.result, cr_nan_bits(out.result));
        } else {
            cr_variance_answer<12, 6>(args, out, output, cr_count_of(args, output) - nans, positive, LOWEST);
        }
    }
    return true;
}

template <cr_dtype D, int KIND> struct cr_axis_level {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = 8, QUAD = 4, BLOCKS = C == 1 ? 2 : 1, STEP = CR_ANCHOR_STEP - 2; /* of four elements */
    static constexpr bool SQUARE = KIND == CR_SUM_SQUARE, FIRST = false, REDO = false, STOPS = false, TOGETHER = true, AHEAD = false, APART = SIZE == 4 && !SQUARE;
    static constexpr cr_axis_masking MASKING = CR_MASKING_ASKED;
    static constexpr int GRID = SQUARE ? CR_F32_SQUARE_GRID : CR_F32_GRID, TOP = (SQUARE ? CR_F32_SQUARE_MOST : CR_F32_MOST) + 2;
    static constexpr int LEVELS = (TOP - GRID + STEP - 1) / STEP + 1, LOWEST = TOP - STEP * (LEVELS - 1), W = SQUARE ? 11 : 6;
    static constexpr uint32_t ADDS = 4094;
    static_assert(LEVELS == (SQUARE ? 12 : 6) && LOWEST <= GRID, "as above; the lowest anchor takes everything");
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef cr_axis_level_record<W> record;
    struct column {
        unsigned long long acc[LEVELS];
        uint64_t marks;
        cr_words<W> total; /* of a thread with many elements */
    };
    column col[C];
    uint32_t adds;
    bool drained;

    static CR_DEVICE double anchor(int level) { return cr_anchor(TOP - STEP * level); }
    static CR_DEVICE unsigned long long bits(double x) { return (unsigned long long)__double_as_longlong(x); }

    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) {
        adds = 0;
        drained = false;
#pragma unroll
        for (int e = 0; e < C; e++) {
#pragma unroll
            for (int level = 0; level < LEVELS; level++) col[e].acc[level] = 0;
            col[e].marks = 0;
        }
    }
    /* Column e's half of a unit, as float32. */
    static CR_DEVICE uint32_t word(unit v, int e) { return SIZE == 4 ? (uint32_t)v : e ? v & 0xffff0000u : v << 16; }

    CR_DEVICE void add(const cr_axis_args &args, const unit (&v)[QUAD], int e) {
        column &c = col[e];
        double x[QUAD];
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < QUAD; i++) most = max(most, word(v[i], e) & 0x7fffffffu);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            uint32_t w = word(v[i], e);
            if (!SQUARE && args.family == CR_FAM_SUMABS) w &= 0x7fffffffu;
            if (most >= 0x7f800000u && (w & 0x7fffffffu) >= 0x7f800000u) {
                if ((w & 0x7fffffffu) > 0x7f800000u) c.marks++;
                else c.marks |= !SQUARE && w >> 31 ? CR_MARK_MINUS : CR_MARK_PLUS;
                w = 0;
            }
            x[i] = (double)__uint_as_float(w);
            if (SQUARE) x[i] = __dmul_rn(x[i], x[i]);
        }
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            double s = anchor(level);
#pragma unroll
            for (int i = 0; i < QUAD; i++) {
                const double next = __dadd_rn(s, x[i]);
                if (level + 1 < LEVELS) x[i] = __dsub_rn(x[i], __dsub_rn(next, s));
                s = next;
            }
            c.acc[level] += bits(s);
        }
    }
    CR_DEVICE void tile(const cr_axis_args &args, const unit (&v)[U], uint32_t, int, const uint8_t *, uint64_t) {
        if (adds + U / QUAD > ADDS) drain();
        adds += U / QUAD;
#pragma unroll
        for (int i = 0; i < U; i += QUAD) {
            const unit some[QUAD] = {v[i], v[i + 1], v[i + 2], v[i + 3]};
#pragma unroll
            for (int e = 0; e < C; e++) add(args, some, e);
        }
    }
    CR_DEVICE void one(const cr_axis_args &args, uint32_t e, uint64_t element, uint32_t) {
        const unit some[QUAD] = {(unit)element << (SIZE < 4 ? 8 * SIZE * e : 0), 0, 0, 0};
        if (adds + 1 > ADDS) drain();
        adds++;
#pragma unroll
        for (int k = 0; k < C; k++) add(args, some, k);
    }
    /* What column e's anchors hold. */
    CR_DEVICE void gather(int e, cr_words<W> &value) {
        value.clear();
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            cr_words<W> part;
            part.set((long long)(col[e].acc[level] - bits(anchor(level)) * adds));
            col[e].acc[level] = 0;
            value.up(STEP);
            value.add(part);
        }
    }
    CR_DEVICE void drain() {
#pragma unroll
        for (int e = 0; e < C; e++) {
            cr_words<W> value;
            gather(e, value);
            if (drained) value.add(col[e].total);
            col[e].total = value;
        }
        drained = true;
        adds = 0;
    }
    CR_DEVICE record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &) {
        if (e == 0) drain();
        record r;
        r.value = col[e].total;
        r.marks = col[e].marks;
        if (C > 1 && args.at.rows) {
            const record other = {col[C - 1].total, col[C - 1].marks};
            merge(r, other);
        }
        return r;
    }
    static CR_DEVICE record empty(const cr_axis_args &) { return record::none(); }
    static CR_DEVICE void merge(record &r, const record &other) { r.merge(other); }
    static CR_DEVICE bool quick(record &, uint32_t, uint32_t) { return false; }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        return cr_axis_level_finish<W, LOWEST, SQUARE>(args, r, output);
    }
};

#endif
