/* quarters: along an axis, of float64: Σx and Σx² in one pass, for squares, variances and whatever else is asked of either. An element
 * is cut at fixed places into four quarters of 24 bits, whose products float64s add up exactly (Ozaki and others 2012, "Error-free
 * transformations of matrix multiplication by using fast routines"). So a window has 42 binades below its largest number, and an
 * element costs 20 additions and multiplications.
 *
 * The quarters are what running anchors keep of an element and its rests, so the anchors have Σx at the end. Where an element lies outside
 * the window, what there is goes to the thread's total, and the window moves. Outputs whose magnitudes are too far apart for a total, or
 * too large or small for squares, are listed (lanes.cuh, square_bins.cuh).
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_QUARTERS_CUH
#define CURED_KERNELS_CUDA_AXIS_QUARTERS_CUH

#include "kernels/cuda/axis/floats.cuh"

struct cr_axis_quarter_record {
    cr_words<4> sum;     /* times 2^unit */
    cr_words<6> squares; /* times 2^(2·unit) */
    uint64_t marks;
    int64_t unit;
};

struct cr_axis_quarters {
    typedef cr_axis_float<CR_F64, CR_SUM_PLAIN, 8> Sums;
    typedef Sums::E E;
    typedef Sums::Window Window;
    typedef cr_axis_quarter_record record;
    typedef uint64_t unit;
    static constexpr int SIZE = 8, C = 1, U = Sums::U, BLOCKS = 2, QUAD = Sums::QUAD;
    static constexpr bool FIRST = false, TOGETHER = true, AHEAD = true, APART = true, REDO = false, STOPS = true;
    static constexpr int QUARTERS = 4, BITS = 24, PLACES = 2 * QUARTERS - 1;
    static constexpr int SPAN = QUARTERS * BITS - 1; /* bits of a number; the sign is one */
    static constexpr int ABOVE = 9, BELOW = 4;       /* binades that a window has to spare where it is placed by an element above, or below */
    /* The least bit of a square is one of a float64, and so is the highest anchor's. */
    static constexpr int TOP_LEAST = SPAN - 537, TOP_MOST = 500;
    /* A product has 46 bits, a place two of them an element: those of U elements stay below an anchor's 51. Of a word, three such sums
     * are below 2^53. */
    static constexpr int ADDS = CR_SUM_ADDS < 1024 ? CR_SUM_ADDS : 1024;
    static_assert(2 * (BITS - 1) + 1 + 4 <= CR_ANCHOR_REACH && U <= 16, "a place overflows");

    static CR_DEVICE unsigned long long bits(double x) { return (unsigned long long)__double_as_longlong(x); }
    static CR_DEVICE constexpr bool mixed(int k) { return k > 0 && k + 1 < PLACES; } /* products of two quarters, twice each */
    /* What the window has. */
    struct cr_window_sums {
        double sum[QUARTERS];           /* running anchors */
        unsigned long long acc[PLACES]; /* of what the places' anchors came to; the first is of the highest quarter's square */
        int last;                       /* the exponent of a number's least bit */
        uint32_t adds;

        CR_DEVICE double anchor(int quarter) const { return cr_anchor(last + BITS * (QUARTERS - 1 - quarter)); }
        CR_DEVICE double place(int k) const { return cr_anchor(2 * last + BITS * (PLACES - 1 - k)); }
    };
    cr_window_sums own;
    record total; /* of what was before the window moved, if it did */
    cr_span bounds;
    uint64_t marks;
    bool moved;

    /* Numbers are below 2^top from now on, as far as there are squares of them. */
    CR_DEVICE void move(int top) {
        top = min(max(top, TOP_LEAST), TOP_MOST);
        own.last = top - SPAN;
        bounds.most = ((uint32_t)(top + E::BIAS) << E::FIELD) - 1;
        bounds.least = ((uint32_t)(own.last + E::DEPTH + E::BIAS) << E::FIELD) - 1;
        own.adds = 0;
#pragma unroll
        for (int i = 0; i < QUARTERS; i++) own.sum[i] = own.anchor(i);
#pragma unroll
        for (int k = 0; k < PLACES; k++) own.acc[k] = 0;
    }
    /* The window is the warp's: of many first elements some are large, and records meet without shifts. */
    CR_DEVICE void begin(const cr_axis_args &, const unit (&v)[U]) {
        const uint32_t field = __reduce_max_sync(CR_EVERYONE, Sums::finite_field(v, Sums::QUADS));
        move((field != 0 ? (int)field - E::BIAS : 0) + 1 + ABOVE);
        marks = 0;
        moved = false;
        total = record{};
    }

    template <int N> CR_DEVICE void put(const unit (&v)[N]) {
        double square[QUARTERS], mix[PLACES];
#pragma unroll
        for (int i = 0; i < QUARTERS; i++) square[i] = own.place(2 * i);
#pragma unroll
        for (int k = 0; k < PLACES; k++) mix[k] = own.place(k);
#pragma unroll
        for (int e = 0; e < N; e++) {
            double quarter[QUARTERS], x = E::value(v[e]);
#pragma unroll
            for (int i = 0; i + 1 < QUARTERS; i++) {
                const double next = __dadd_rn(own.sum[i], x);
                quarter[i] = __dsub_rn(next, own.sum[i]);
                x = __dsub_rn(x, quarter[i]);
                own.sum[i] = next;
            }
            quarter[QUARTERS - 1] = x;
            own.sum[QUARTERS - 1] = __dadd_rn(own.sum[QUARTERS - 1], x);
#pragma unroll
            for (int i = 0; i < QUARTERS; i++) {
                square[i] = __fma_rn(quarter[i], quarter[i], square[i]);
#pragma unroll
                for (int j = i + 1; j < QUARTERS; j++) mix[i + j] = __fma_rn(quarter[i], quarter[j], mix[i + j]);
            }
        }
#pragma unroll
        for (int k = 0; k < PLACES; k++) {
            if (mixed(k)) own.acc[k] += 2 * bits(mix[k]);
            if (k % 2 == 0) own.acc[k] += bits(square[k / 2]);
        }
        own.adds++;
    }
    /* What the window has goes to the total, and it moves. */
    CR_DEVICE void settle(int top) {
        const cr_window_sums copy = own; /* the copies alone have addresses, so that what the loop has stays in registers */
        record all = total;
        add(all, copy);
        total = all;
        moved = true;
        marks |= total.marks; /* whether it is hard */
        move(top);
    }
    static CR_CALLED void add(record &total, const cr_window_sums &of) { merge(total, record_of(of)); }
    static CR_DEVICE record record_of(const cr_window_sums &of) {
        cr_words<2> plain;
        cr_words<4> squares;
        plain.clear();
        squares.clear();
#pragma unroll
        for (int i = 0; i < QUARTERS; i++) {
            cr_words<2> digits;
            digits.set((long long)(bits(of.sum[i]) - bits(of.anchor(i))));
            plain.up(BITS);
            plain.add(digits);
        }
#pragma unroll
        for (int k = 0; k < PLACES; k++) {
            const unsigned passes = (mixed(k) ? 2 : 0) + (k % 2 == 0 ? 1 : 0);
            cr_words<4> digits;
            digits.set((long long)(of.acc[k] - bits(of.place(k)) * (of.adds * passes)));
            squares.up(BITS);
            squares.add(digits);
        }
        record r;
        r.sum.widen(plain);
        r.squares.widen(squares);
        r.marks = 0;
        r.unit = of.last;
        return r;
    }
    CR_DEVICE void reserve(int more) {
        if (own.adds + more > (uint32_t)ADDS) settle(own.last + SPAN);
    }

    /* An element that a look at all of a tile could not vouch for. */
    CR_DEVICE void careful(uint64_t element) {
        const uint64_t magnitude = element & INT64_MAX;
        if (magnitude >= E::INFINITE) {
            if (magnitude > E::INFINITE) marks++;
            else marks |= element >> 63 ? CR_MARK_MINUS : CR_MARK_PLUS;
            return;
        }
        if (!Window::inside_one(element, bounds)) {
            const int exponent = (int)(magnitude >> E::MANTISSA) - E::BIAS;
            settle(magnitude >> 32 > bounds.most ? exponent + 1 + ABOVE : exponent - E::DEPTH + SPAN - BELOW);
            if (!Window::inside_one(element, bounds)) marks |= CR_MARK_HARD;
        }
        const unit v[1] = {element};
        put(v);
    }
    template <class THEN> CR_DEVICE void tile(const cr_axis_args &args, unit (&v)[U], uint32_t, int left, const uint8_t *p, uint64_t stride, THEN then) {
        reserve(U);
        const bool inside = Sums::inside(v, bounds);
        then();
        if (inside) {
            put(v);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < U && i < left; i += QUAD) { /* they are loaded once more, so that all need not be kept for this */
            unit some[QUAD];
            cr_axis_load<cr_axis_quarters, QUAD, CR_MASKING_ASKED>(some, args, p, stride, left - i);
#pragma unroll 1
            for (int k = 0; k < QUAD; k++) {
                careful(some[0]);
                some[0] = some[QUAD - 1];
            }
            p += args.at.vector > 1 ? stride : stride * QUAD;
        }
    }
    CR_DEVICE void one(const cr_axis_args &, uint32_t, uint64_t element, uint32_t) {
        reserve(1);
        careful(element);
    }
    CR_DEVICE bool stop() const { return (marks & CR_MARK_HARD) != 0; }
    CR_DEVICE record take(const cr_axis_args &, uint32_t, const cr_axis_spot<SIZE> &) {
        if (moved) settle(0);
        record r = moved ? total : record_of(own);
        r.marks = marks;
        return r;
    }

    static CR_DEVICE record empty(const cr_axis_args &) { return record{}; }
    static CR_DEVICE bool is_hard(const record &r) { return (r.marks & CR_MARK_HARD) != 0; }
    static CR_DEVICE uint64_t marks_of(uint64_t one, uint64_t other) {
        return ((one & CR_MARK_NANS) + (other & CR_MARK_NANS)) | ((one | other) & ~CR_MARK_NANS);
    }
    /* x·2^up, where that leaves room for a sum. */
    template <int W> static CR_DEVICE bool lift(cr_words<W> &x, int64_t up) {
        cr_words<W> magnitude = x;
        magnitude.strip_sign();
        if (magnitude.bits() + up > 64 * W - 3) return false;
        x.up((unsigned)up);
        return true;
    }
    template <int W> static CR_DEVICE bool full(const cr_words<W> &x) {
        const int64_t top = (int64_t)x.word[W - 1] >> 61;
        return top != 0 && top != -1;
    }
    static CR_CALLED void merge(record &r, const record &other) {
        const uint64_t marks = marks_of(r.marks, other.marks);
        record b = other;
        bool fits = true;
        if (r.squares.zero()) r.unit = b.unit;
        if (r.unit != b.unit && !b.squares.zero()) {
            if (b.unit < r.unit) { /* b is to be the coarser one */
                const record fine = b;
                b = r;
                r = fine;
            }
            const int64_t up = b.unit - r.unit;
            fits = lift(b.sum, up) && lift(b.squares, 2 * up);
        }
        r.sum.add(b.sum);
        r.squares.add(b.squares);
        r.marks = marks | (!fits || full(r.sum) || full(r.squares) ? (uint64_t)CR_MARK_HARD : 0);
    }
    /* All in the same units, nothing special, and two words and four do; or all hard, where only marks still matter. */
    static CR_DEVICE bool quick(record &r, uint32_t first, uint32_t step) {
        if (__all_sync(CR_EVERYONE, is_hard(r))) {
            for (; step >= first; step /= 2) r.marks |= __shfl_xor_sync(CR_EVERYONE, r.marks, step);
            return true;
        }
        const uint32_t lane = threadIdx.x % CR_WARP, leader = lane & ~((2 * step - 1) & ~(first - 1));
        const int unit = __shfl_sync(CR_EVERYONE, (int)r.unit, leader);
        const uint64_t sign = (uint64_t)((int64_t)r.sum.word[1] >> 55); /* of all bits from there on, which leaves room for 32 of them */
        const bool small = sign + 1 < 2 && r.sum.word[2] == sign && r.sum.word[3] == sign && (r.squares.word[3] >> 55 | r.squares.word[4] | r.squares.word[5]) == 0;
        if (!__all_sync(CR_EVERYONE, unit == (int)r.unit && r.marks == 0 && small)) return false;
        cr_words<2> sum;
        cr_words<4> squares;
#pragma unroll
        for (int i = 0; i < 4; i++) squares.word[i] = r.squares.word[i];
        sum.word[0] = r.sum.word[0];
        sum.word[1] = r.sum.word[1];
        for (; step >= first; step /= 2) {
            sum.add(cr_axis_from_lane(sum, step));
            squares.add(cr_axis_from_lane(squares, step));
        }
        r.sum.widen(sum);
        r.squares.widen(squares);
        return true;
    }

    /* The answers of asked.out; of: of their output. False: it is hard. */
    template <class OF, class ASKED> static CR_DEVICE bool answers(const OF &of, const ASKED &asked, const record &r, uint64_t output) {
        const uint64_t nans = r.marks & CR_MARK_NANS;
        const bool nan = nans != 0 && !of.skip, infinite = (r.marks & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0;
        bool done = !is_hard(r) || nan;
        for (uint32_t k = 0; done && k < asked.out_count; k++) {
            const cr_axis_out &out = asked.out[k];
            if (out.term == CR_TERM_SQUARE) {
                cr_axis_put_sum(of, out, output, cr_axis_sum_record<6>{r.squares, nans | (infinite ? (uint64_t)CR_MARK_PLUS : 0), 2 * r.unit});
            } else if (!cr_is_variance(out)) {
                cr_axis_put_sum(of, out, output, cr_axis_sum_record<4>{r.sum, r.marks, r.unit});
            } else if (nan || infinite) {
                cr_put_bits(out.to, output, out.result, cr_nan_bits(out.result));
            } else {
                done = cr_variance_put<6>(of, out, output, cr_count_of(of, output) - nans, r.sum, (int)r.unit, r.squares, 2 * (int)r.unit);
            }
        }
        return done;
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        if (!answers(args, args, r, output)) cr_axis_list(args)[atomicAdd(&cr_axis_head_of(args)->hard, 1u)] = (uint32_t)output;
        return true;
    }
};

#endif
