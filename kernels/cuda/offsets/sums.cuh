/* sums: what a warp knows of its chunk (pieces.cuh): the window of exponents, what is open from piece to piece, and how that becomes
 * records and answers.
 *
 * Thread: GPU; a chunk is a warp's. Owner: the kernel; `Shared` the warp. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_SUMS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_SUMS_CUH

#include "kernels/cuda/axis/twofold.cuh"
#include "kernels/cuda/offsets/close.cuh"
#include "kernels/cuda/offsets/loads.cuh"
#include "kernels/cuda/offsets/running.cuh"

enum {
    CR_PIECE_RUN = 64,                        /* pieces in turn without an end, until what is open goes to its record */
    CR_PIECE_WORDS = 5,                       /* of a record that windows share */
};

/* What is known of a segment's part. */
struct cr_piece_record {
    cr_axis_sum_record<CR_PIECE_WORDS> sum, square;
};

template <cr_dtype D, int KIND, class OF> struct cr_piece_sums : cr_piece_loads<D> {
    typedef cr_piece_loads<D> Loads;
    typedef OF E;
    typedef cr_strip_sum<E> Window;
    typedef cr_running<E, KIND> Running;
    using Bounds = cr_window<E, CR_SUM_PLAIN>;
    static constexpr int SIZE = Loads::SIZE, VEC = Loads::VEC, EACH = Loads::EACH, PIECE = Loads::PIECE;
    using Loads::args, Loads::lane, Loads::skip, Loads::length, Loads::at_slot, Loads::mine;
    static constexpr int SUMS = Running::SUMS, SQUARES = Running::SQUARES, LEVELS = Running::LEVELS;
    static constexpr int STEP = Window::STEP;
    static_assert(1 << Window::LOG == EACH, "a lane's elements are those that a strip's lane has");
    static_assert(SQUARES == 0 || SIZE < 8, "float64 holds their squares");
    /* Bits for each kind of special among the elements of a run. */
    static constexpr int COUNT = 21;
    static_assert(PIECE * CR_PIECE_RUN < 1 << COUNT, "no count overflows");
    /* A lane has less than 2^50 units of a piece, of each level. What is open may begin in a piece. */
    static_assert((CR_PIECE_RUN + 1) * (uint64_t)CR_WARP <= 1u << 12, "no run has more than 2^62 units");

    static CR_DEVICE constexpr int levels_of(bool few) {
        int count = 0;
        for (int k = 0; k < LEVELS; k++) count += Running::has(few, k);
        return count;
    }
    /* What lanes keep of a level, and of all. */
    static CR_DEVICE constexpr int kept_of(bool few) { return CR_PIECE_VECTORS / Running::group(few); }
    static constexpr int FEW_KEPT = levels_of(true) * kept_of(true), ALL_KEPT = levels_of(false) * kept_of(false);

    /* What a chunk has of a segment that a cut parts: elements of it, and how many lie before the chunk, if it ends there. */
    struct Part {
        uint64_t segment, from, elements, before;
    };
    struct Shared {
        alignas(128) uint4 vector[CR_PIECE_STAGES][CR_PIECE_VECTORS];
        union {
            typename Running::kept prefix[Running::HAS_FEW && FEW_KEPT > ALL_KEPT ? FEW_KEPT : ALL_KEPT];
            cr_segments_digits digits; /* once the chunk is over */
        };
        long long base[LEVELS][CR_WARP];
        unsigned long long specials[CR_WARP], run_specials[CR_WARP];
        cr_piece_record open, left; /* of the open segment, from pieces before; of that which began before the chunk */
        Part open_part, left_part;
        cr_segments_chunk at;
    };

    /* What is so of a chunk, a bit each, because registers are dear. */
    enum {
        RUNS = 1,      /* run has something */
        ALONE = 2,     /* lane 0 has all of it */
        MANY = 4,      /* it has more levels than FEW */
        SPECIAL = 8,   /* it has NaNs or infinities */
        RECORDED = 16, /* shared.open has something of the open segment */
        REACHES = 32,  /* which began before the chunk */
        TOLD = 64,     /* shared.left has something */
        WIDE = 128,    /* a piece needed more than FEW, and no new window */
        HARD = 256,    /* the chunk is */
        WRONG = 512,   /* this lane has seen an offset that is */
        ASKED = 1024,  /* for the next chunk's number */
        SIMPLE = 2048, /* all that is asked for is a sum as float64, which is normal */
    };
    Shared &shared;
    uint64_t start; /* the chunk's first element; what else is known of the chunk lies in shared.at */
    uint32_t last;  /* behind the number of its last end */
    uint32_t flags;
    Window window;
    cr_span few_bounds; /* of elements that FEW takes */
    /* Ends of segments: each lane has one, and loads the one a warp's lanes further beforehand; the first of them is lane `head`'s. */
    uint32_t head, own, next; /* own: the number of this lane's end; next: its place, or UINT32_MAX */
    uint64_t later;
    uint32_t begin;        /* where the open segment begins, or the chunk */
    long long run[LEVELS]; /* of this lane: the open segment, from pieces before, in the window's units */
    uint32_t run_pieces;

    CR_DEVICE cr_piece_sums(const cr_segments_args &of, Shared &room) : Loads(of, room.vector), shared(room), flags(0) {
        window.unit = 0;
        unplace();
        if (Window::HALF) place(0, 0);
    }
    CR_DEVICE bool is(uint32_t some) const { return (flags & some) != 0; }
    CR_DEVICE void set(uint32_t some, bool yes = true) { flags |= yes ? some : 0; }
    CR_DEVICE void clear(uint32_t some) { flags &= ~some; }
    CR_DEVICE void unplace() {
        window.most = -1;
        few_bounds = {0, ~0u}; /* zeros */
    }
    CR_DEVICE void place(uint32_t field, int slack) {
        window.place(field, slack);
        clear(SIMPLE);
        set(SIMPLE, KIND == CR_SEGMENTS_SUM && args.out_count == 1 && args.out[0].divisor == CR_DIVISOR_ONE && args.out[0].result == CR_F64 && window.unit >= -800 &&
                        window.unit <= 800);
        if constexpr (Running::AT_ONCE) few_bounds = Running::few_bounds(window);
    }

    /* ---- Sums ---- */

    CR_DEVICE int unit(int level) const { return Running::unit(window, level); }
    CR_DEVICE bool fits(const cr_span &seen) const {
        const int high = (int)(Bounds::largest(seen.most) >> E::FIELD), low = (int)(Bounds::smallest(seen.least) >> E::FIELD);
        return window.fits(high, low, !Window::HALF) && (SQUARES == 0 || window.fits_squares(low));
    }
    CR_DEVICE bool few(const cr_span &seen) const {
        if constexpr (Running::AT_ONCE) return Bounds::inside(seen, few_bounds);
        else if constexpr (Running::HAS_FEW) return window.fits_few((int)(Bounds::largest(seen.most) >> E::FIELD), (int)(Bounds::smallest(seen.least) >> E::FIELD));
        return false;
    }
    CR_DEVICE static long long of_all(long long x) {
#pragma unroll
        for (uint32_t step = CR_WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(CR_EVERYONE, x, step);
        return x;
    }
    struct Values { /* of each level, in the window's units */
        long long of[LEVELS];
    };
    CR_DEVICE static Values values_of(const long long (&value)[LEVELS]) {
        Values found;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) found.of[k] = value[k];
        return found;
    }
    /* Of integers in the window's units. */
    template <int W> CR_DEVICE static void join(cr_axis_sum_record<W> &r, const long long *value, int levels, int lowest, uint64_t specials, bool squared) {
        constexpr uint64_t all = (1u << COUNT) - 1;
        r.value.set(value[0]);
#pragma unroll
        for (int k = 1; k < levels; k++) {
            cr_words<W> finer;
            finer.set(value[k]);
            r.value.up(STEP);
            r.value.add(finer);
        }
        r.unit = lowest;
        const bool plus = (specials >> COUNT & all) != 0, minus = specials >> 2 * COUNT != 0;
        r.marks = (specials & all) | (plus || (squared && minus) ? (uint64_t)CR_MARK_PLUS : 0) | (minus && !squared ? (uint64_t)CR_MARK_MINUS : 0);
    }
    template <int W> CR_DEVICE static void make_sum(cr_axis_sum_record<W> &r, const Window &window, const Values &value, uint64_t specials) {
        join(r, value.of, SUMS, Running::unit(window, SUMS - 1), specials, false);
    }
    template <int W> CR_DEVICE static void make_square(cr_axis_sum_record<W> &r, const Window &window, const Values &value, uint64_t specials) {
        join(r, value.of + SUMS, SQUARES, Running::unit(window, LEVELS - 1), specials, true);
    }
    /* Adds to the record of the open segment. One lane. */
    CR_DEVICE static bool record(cr_piece_record &to, bool first, const Window &window, const Values &value, uint64_t specials) {
        cr_piece_record one;
        if constexpr (SUMS != 0) make_sum(one.sum, window, value, specials);
        if constexpr (SQUARES != 0) make_square(one.square, window, value, specials);
        bool good = true;
        if constexpr (SUMS != 0) {
            if (!first) cr_axis_sum_merge(one.sum, to.sum);
            to.sum = one.sum;
            good = good && !(one.sum.marks & CR_MARK_HARD);
        }
        if constexpr (SQUARES != 0) {
            if (!first) cr_axis_sum_merge(one.square, to.square);
            to.square = one.square;
            good = good && !(one.square.marks & CR_MARK_HARD);
        }
        return good;
    }
    /* What is running goes to the record. The warp together. */
    CR_DEVICE void settle() {
        if (!is(RUNS)) return;
        set(HARD, !settled(shared, window, values_of(run), !is(RECORDED), is(SPECIAL)));
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = 0;
        clear(RUNS | MANY | SPECIAL);
        set(RECORDED);
        run_pieces = 0;
    }
    /* False: no record takes it. value: of this lane. */
    static CR_CALLED bool settled(Shared &shared, Window window, Values value, bool first, bool special) {
        bool good = true;
        __syncwarp(); /* another lane may have written the record */
#pragma unroll
        for (int k = 0; k < LEVELS; k++) value.of[k] = of_all(value.of[k]);
        const uint64_t specials = ran_specials(shared, special);
        if (threadIdx.x % CR_WARP == 0) good = record(shared.open, first, window, value, specials);
        return __shfl_sync(CR_EVERYONE, (int)good, 0) != 0;
    }
    CR_DEVICE static uint64_t ran_specials(const Shared &shared, bool special) {
        return special ? (uint64_t)of_all((long long)shared.run_specials[threadIdx.x % CR_WARP]) : 0;
    }
    /* For a piece that does not fit: without its specials, or by another window. False: by none. found: the lane's specials. */
    CR_DEVICE bool move(cr_span &seen, uint32_t &found) {
        found = 0;
        if (__any_sync(CR_EVERYONE, Bounds::special(seen.most))) {
            seen = {0, ~0u};
#pragma unroll 1
            for (uint32_t v = 0; v < CR_PIECE_EACH; v++) {
                uint4 x = mine(v);
                E::strip(found, x);
                E::look(seen, x);
            }
        }
        if (__all_sync(CR_EVERYONE, fits(seen))) return true;
        settle();
        place(__reduce_max_sync(CR_EVERYONE, Bounds::largest(seen.most)) >> E::FIELD, 2);
        return __all_sync(CR_EVERYONE, fits(seen));
    }

    /* ---- Answers ---- */

    /* A sum, if that is all that is asked for. False: it takes more. */
    template <bool FEW> CR_DEVICE bool answer_simply(uint64_t output, const long long (&value)[LEVELS], uint64_t specials) const {
        if constexpr (KIND == CR_SEGMENTS_SUM) {
            if (!is(SIMPLE) || specials != 0) return false;
            const int64_t part[2] = {value[0], value[1]};
            const double sum = FEW ? __ll2double_rn(value[0]) : cr_strip<D, false, E>::rounded(part);
            ((double *)args.out[0].to)[output] = __dmul_rn(sum, cr_power(unit(FEW ? 0 : SUMS - 1)));
            return true;
        }
        return false;
    }
    /* From FEW levels, by a few operations of float64. False: that is not certain to be right. */
    CR_DEVICE static bool answer_quickly(const cr_segment_of &of, const cr_axis_out &out, uint64_t output, const Window &window, const long long (&value)[LEVELS]) {
        if (of.at.n == 0 || window.unit < -400 || window.unit > 400) return false;
        if (SUMS != 0 && out.term != CR_TERM_SQUARE && !cr_is_variance(out)) return cr_axis_quick_answer(of, out, output, value[0], Running::unit(window, 0));
        if (SQUARES == 0 || out.result != CR_F64 || of.at.n >> 53 != 0) return false;
        const double n = __ll2double_rn((long long)of.at.n), inverse = __ddiv_rn(1, n);
        cr_twofold x = cr_twofold::of(value[SUMS], Running::unit(window, SUMS)).plus(cr_twofold::of(value[SUMS + 1], Running::unit(window, SUMS + 1)));
        if (cr_is_variance(out)) {
            if (SUMS == 0 || of.at.n <= of.ddof) return false;
            const double left = __ll2double_rn((long long)(of.at.n - of.ddof));
            x = x.plus(cr_twofold::of(value[0], Running::unit(window, 0)).squared().over(n, inverse).negative()).over(left, __ddiv_rn(1, left));
        } else if (out.divisor == CR_DIVISOR_COUNT) {
            x = x.over(n, inverse);
        } else if (out.divisor != CR_DIVISOR_ONE) {
            return false;
        }
        if (!(x.high > 0)) return false;
        if (out.root) x = x.root();
        double result;
        if (!x.rounded(result)) return false;
        ((double *)out.to)[output] = result;
        return true;
    }
    /* False: it is hard; likewise below. */
    static CR_CALLED bool answer(const cr_segments_args &args, uint64_t output, uint64_t n, Window window, Values value, uint64_t specials) {
        const cr_segment_of of = cr_segment_make(args, n);
        cr_axis_sum_record<2> sum;
        cr_axis_sum_record<3> square;
        if constexpr (SUMS != 0) make_sum(sum, window, value, specials);
        if constexpr (SQUARES != 0) make_square(square, window, value, specials);
        return put(args, of, output, sum, square);
    }
    template <int A, int B> CR_DEVICE static bool put(const cr_segments_args &args, const cr_segment_of &of, uint64_t output, const cr_axis_sum_record<A> &sum, const cr_axis_sum_record<B> &square) {
        bool good = true;
        const uint64_t marks = SUMS != 0 ? sum.marks : square.marks, nans = marks & CR_MARK_NANS;
        const bool none = (nans != 0 && !of.skip) || (marks & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0;
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            if (SQUARES != 0 && out.term == CR_TERM_SQUARE) {
                cr_axis_put_sum(of, out, output, square);
            } else if (SUMS != 0 && !cr_is_variance(out)) {
                if (of.at.n != 0) cr_axis_put_sum(of, out, output, sum);
                else cr_axis_sum_answer(of, out, output, sum);
            } else if constexpr (KIND == CR_SEGMENTS_MOMENTS) {
                if (none) cr_put_bits(out.to, output, out.result, cr_nan_bits(out.result));
                else if (!cr_variance_put<A == 2 ? 6 : 14>(of, out, output, of.at.n - nans, sum.value, (int)sum.unit, square.value, (int)square.unit)) good = false;
            }
        }
        return good;
    }
    /* The end of a segment that has more than this piece: its value here, and what is recorded. One lane, whose end it is. n: elements of
     * this chunk; reaches: it began before. */
    static CR_CALLED bool answer_open(Shared &shared, const cr_segments_args &args, uint64_t output, uint64_t n, bool reaches, Window window, Values value,
                                      uint64_t specials, bool first) {
        if (!record(shared.open, first, window, value, specials)) return false;
        if (!reaches) return put(args, cr_segment_make(args, n), output, shared.open.sum, shared.open.square);
        shared.left = shared.open;
        shared.left_part = {output, shared.at.from, n, shared.at.low - shared.at.from};
        return true;
    }
};

#endif
