/* pieces: a chunk by windows of exponents, 4 KiB at a time. A warp loads a piece as it lies, while it works at the one before; each lane then
 * adds neighbouring elements to running anchors (fold/float_sums.cuh), and keeps what they were before every few vectors. What the lanes
 * below have gives the sum of the piece up to any place, as integers in units of the anchors; a segment's is the difference of two. So
 * the lengths of segments do not matter: an end costs what it costs.
 *
 * A window stays while pieces fit it, from chunk to chunk. Most pieces fit FEW of its anchors (running.cuh), which is tried at once. Where
 * one fits none, what is open goes to a record (axis/floats.cuh) and the window moves. NaNs and infinities are counted, and are zeros. What
 * no window takes puts the chunk on the list, before it has told a state anything; answers that were made are made again.
 * Thread: GPU; a chunk is a warp's. Owner: the kernel; `Shared` the warp. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_PIECES_CUH
#define CURED_KERNELS_CUDA_OFFSETS_PIECES_CUH

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

template <cr_dtype D, int KIND, class OF> struct cr_pieces : cr_piece_loads<D> {
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

    struct Shared {
        alignas(128) uint4 vector[CR_PIECE_STAGES][CR_PIECE_VECTORS];
        union {
            typename Running::kept prefix[Running::HAS_FEW && FEW_KEPT > ALL_KEPT ? FEW_KEPT : ALL_KEPT];
            cr_segments_digits digits; /* once the chunk is over */
        };
        long long base[LEVELS][CR_WARP];
        unsigned long long specials[CR_WARP], run_specials[CR_WARP];
        cr_piece_record open, left; /* of the open segment, from pieces before; of that which began before the chunk */
        uint64_t left_elements, left_length;
    };

    Shared &shared;
    cr_segments_chunk at;
    Window window;
    cr_span few_bounds;       /* of elements that FEW takes */
    /* Ends of segments: each lane has one, and loads the one a warp's lanes further beforehand; the first of them is lane `head`'s. */
    uint32_t head, own, next; /* own: the number of this lane's end; next: its place, or UINT32_MAX */
    uint64_t later;
    uint32_t begin;           /* where the open segment begins, or the chunk */
    long long run[LEVELS];    /* of this lane: the open segment, from pieces before, in the window's units */
    uint32_t run_pieces;
    bool is_running, recorded, reaches, hard; /* run has something; `open` has; the open segment began before the chunk; the chunk is hard */
    bool wide;                                /* a piece needed more than FEW, and no new window */
    bool run_few, run_alone, run_special;     /* run has levels of FEW only; lane 0 has it all; it has NaNs or infinities */
    bool told;                                /* `left` has something */
    bool simple;                              /* all that is asked for is a sum as float64, which is normal */

    CR_DEVICE cr_pieces(const cr_segments_args &of, Shared &room) : Loads(of, room.vector), shared(room) {
        hard = wide = false;
        window.unit = 0;
        window.most = -1;
        few_bounds = {0, ~0u}; /* zeros */
        simple = is_simple();
        if (Window::HALF) place(0, 0);
    }
    CR_DEVICE bool is_simple() const {
        return KIND == CR_SEGMENTS_SUM && args.out_count == 1 && args.out[0].divisor == CR_DIVISOR_ONE && args.out[0].result == CR_F64 &&
               window.unit >= -800 && window.unit <= 800;
    }
    CR_DEVICE void place(uint32_t field, int slack) {
        window.place(field, slack);
        simple = is_simple();
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
    template <int W> CR_DEVICE void make_sum(cr_axis_sum_record<W> &r, const long long (&value)[LEVELS], uint64_t specials) const {
        join(r, value, SUMS, unit(SUMS - 1), specials, false);
    }
    template <int W> CR_DEVICE void make_square(cr_axis_sum_record<W> &r, const long long (&value)[LEVELS], uint64_t specials) const {
        join(r, value + SUMS, SQUARES, unit(LEVELS - 1), specials, true);
    }
    /* Adds to the record of the open segment. One lane. */
    CR_DEVICE bool record(cr_piece_record &to, bool first, const long long (&value)[LEVELS], uint64_t specials) const {
        cr_piece_record one;
        if constexpr (SUMS != 0) make_sum(one.sum, value, specials);
        if constexpr (SQUARES != 0) make_square(one.square, value, specials);
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
        long long value[LEVELS];
        if (!is_running) return;
        __syncwarp(); /* another lane may have written the record */
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            value[k] = of_all(run[k]);
            run[k] = 0;
        }
        const uint64_t specials = ran_specials();
        bool good = true;
        if (lane == 0) good = record(shared.open, !recorded, value, specials);
        hard = hard || !__shfl_sync(CR_EVERYONE, (int)good, 0);
        recorded = run_few = true;
        is_running = run_special = false;
        run_pieces = 0;
    }
    CR_DEVICE uint64_t ran_specials() const { return run_special ? (uint64_t)of_all((long long)shared.run_specials[lane]) : 0; }
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
            if (!simple || specials != 0) return false;
            const int64_t part[2] = {value[0], value[1]};
            const double sum = FEW ? __ll2double_rn(value[0]) : cr_strip<D, false, E>::rounded(part);
            ((double *)args.out[0].to)[output] = __dmul_rn(sum, cr_power(unit(FEW ? 0 : SUMS - 1)));
            return true;
        }
        return false;
    }
    /* From FEW levels, by a few operations of float64. False: that is not certain to be right. */
    CR_DEVICE bool answer_quickly(const cr_segment_of &of, const cr_axis_out &out, uint64_t output, const long long (&value)[LEVELS]) const {
        if (of.at.n == 0 || window.unit < -400 || window.unit > 400) return false;
        if (SUMS != 0 && out.term != CR_TERM_SQUARE && !cr_is_variance(out)) return cr_axis_quick_answer(of, out, output, value[0], unit(0));
        if (SQUARES == 0 || out.result != CR_F64 || of.at.n >> 53 != 0) return false;
        const double n = __ll2double_rn((long long)of.at.n), inverse = __ddiv_rn(1, n);
        cr_twofold x = cr_twofold::of(value[SUMS], unit(SUMS)).plus(cr_twofold::of(value[SUMS + 1], unit(SUMS + 1)));
        if (cr_is_variance(out)) {
            if (SUMS == 0 || of.at.n <= of.ddof) return false;
            const double left = __ll2double_rn((long long)(of.at.n - of.ddof));
            x = x.plus(cr_twofold::of(value[0], unit(0)).squared().over(n, inverse).negative()).over(left, __ddiv_rn(1, left));
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
    template <bool FEW> CR_DEVICE void answer(uint64_t output, uint64_t n, const long long (&value)[LEVELS], uint64_t specials) {
        const cr_segment_of of = cr_segment_make(args, n);
        bool all = FEW && Running::AT_ONCE && specials == 0;
        for (uint32_t k = 0; k < args.out_count && all; k++) all = answer_quickly(of, args.out[k], output, value);
        if (all) return;
        cr_axis_sum_record<2> sum;
        cr_axis_sum_record<3> square;
        if constexpr (SUMS != 0) make_sum(sum, value, specials);
        if constexpr (SQUARES != 0) make_square(square, value, specials);
        put(of, output, sum, square);
    }
    template <int A, int B> CR_DEVICE void put(const cr_segment_of &of, uint64_t output, const cr_axis_sum_record<A> &sum, const cr_axis_sum_record<B> &square) {
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
                else if (!cr_variance_put<A == 2 ? 6 : 14>(of, out, output, of.at.n - nans, sum.value, (int)sum.unit, square.value, (int)square.unit)) hard = true;
            }
        }
    }
    /* The end of a segment that has more than this piece: its value here, and what is recorded. One lane, whose end it is. n: elements of
     * this chunk. */
    CR_DEVICE void answer_open(uint64_t n, const long long (&value)[LEVELS], uint64_t specials) {
        if (!record(shared.open, !recorded, value, specials)) {
            hard = true;
        } else if (reaches) {
            shared.left = shared.open;
            shared.left_elements = n;
            shared.left_length = n + (at.low - at.from);
        } else {
            put(cr_segment_make(args, n), own, shared.open.sum, shared.open.square);
        }
    }

    /* ---- Ends ---- */

    /* What end_of takes of end i, long before it does. */
    CR_DEVICE uint64_t load_end(bool some, uint32_t i) const { return some ? cr_offset_load(args, (uint64_t)i + 1) : 0; }
    /* An end's place from the origin on. A wrong one is told, and made one that does no harm. */
    CR_DEVICE uint32_t end_of(bool some, uint64_t loaded) {
        if (!some) return UINT32_MAX;
        const uint64_t place = cr_offset_of(args, loaded) - at.low;
        if (place <= (uint64_t)(length - skip)) return (uint32_t)place + skip;
        cr_segments_head(args)->wrong = 1;
        return skip;
    }
    /* The first ends of the chunk. */
    CR_DEVICE void open_ends() {
        const uint64_t count = at.last > at.first ? at.last - at.first : 0; /* where offsets are wrong, cuts may be, too */
        head = 0;
        own = (uint32_t)at.first + lane;
        next = end_of(lane < count, load_end(lane < count, own));
        later = load_end(lane + CR_WARP < count, own + CR_WARP);
    }
    /* The next end of this lane. */
    CR_DEVICE void go_on() {
        const uint32_t left = (uint32_t)at.last - own;
        next = end_of(left > CR_WARP, later);
        own += CR_WARP;
        later = load_end(left > 2 * CR_WARP, own + CR_WARP);
    }
    /* The piece's sum up to its element `place`: in units of the window. */
    template <bool FEW>
    CR_DEVICE void up_to(uint32_t place, const long long (&total)[LEVELS], uint64_t total_specials, bool special, long long (&value)[LEVELS], uint64_t &specials) {
        constexpr uint32_t G = Running::group(FEW);
        specials = 0;
        if (place >= (uint32_t)PIECE) {
#pragma unroll
            for (int k = 0; k < LEVELS; k++) value[k] = total[k];
            specials = total_specials;
            return;
        }
        const uint32_t owner = place / EACH, rest = place % EACH, group = rest / (G * VEC), within = rest % (G * VEC);
        Running running;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            if (Running::has(FEW, k)) running.s[k] = *kept<FEW>(k, group, owner);
        }
        uint32_t found = 0;
#pragma unroll(G > 2 ? 1 : G)
        for (uint32_t g = 0; g < G; g++) {
            if (within <= g * VEC) break;
            uint4 v = at_slot(owner * CR_PIECE_EACH + group * G + g);
            if (special) E::strip(found, v);
            running.template add_some<FEW>(window, v, g * VEC, within);
        }
#pragma unroll
        for (int k = 0; k < LEVELS; k++) value[k] = Running::has(FEW, k) ? shared.base[k][owner] + running.template found<FEW>(window, k) : 0;
        if (special) specials = shared.specials[owner] + specials_of(owner, rest);
    }
    /* Where a lane keeps what level k is before a group of its vectors. */
    template <bool FEW> CR_DEVICE typename Running::kept *kept(int k, uint32_t group, uint32_t owner) const {
        int before = 0;
#pragma unroll
        for (int level = 0; level < k; level++) before += Running::has(FEW, level);
        return &shared.prefix[before * kept_of(FEW) + group * CR_WARP + owner];
    }
    CR_DEVICE static uint64_t packed(uint32_t found) { return (found & 1023) | (uint64_t)(found >> 10 & 1023) << COUNT | (uint64_t)(found >> 20) << 2 * COUNT; }
    /* Of the first `count` elements of a lane. */
    CR_DEVICE uint64_t specials_of(uint32_t owner, uint32_t count) const {
        uint32_t found = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *element = reinterpret_cast<const uint8_t *>(&at_slot(owner * CR_PIECE_EACH + i / VEC)) + i % VEC * SIZE;
            const uint64_t all = cr_load_one<SIZE>(element);
            uint4 v = cr_alone(all);
            E::strip(found, v);
        }
        return packed(found);
    }
    /* All ends up to `high`, of a piece whose first element is `low`; total: of the piece. */
    template <bool FEW> CR_DEVICE void answer_ends(uint32_t low, uint32_t high, const long long (&total)[LEVELS], uint64_t total_specials, bool special) {
        long long before[LEVELS]; /* of the first lane's end; of no matter in the others */
        const bool odd = special || run_special;
        uint64_t before_specials = 0 - ran_specials();
#pragma unroll
        for (int k = 0; k < LEVELS; k++) before[k] = !Running::has(FEW, k) ? 0 : 0 - (run_alone ? __shfl_sync(CR_EVERYONE, run[k], 0) : of_all(run[k]));
        for (;;) {
            const uint32_t within = __ballot_sync(CR_EVERYONE, next <= high), ordered = ~__funnelshift_r(within, within, head);
            const uint32_t count = ordered == 0 ? (uint32_t)CR_WARP : (uint32_t)__ffs((int)ordered) - 1, order = (lane - head) % CR_WARP;
            if (count == 0) break;
            const bool inside = order < count, first = order == 0, open = recorded || reaches;
            const uint32_t under = (lane + CR_WARP - 1) % CR_WARP, last = (head + count - 1) % CR_WARP;
            long long value[LEVELS], own_value[LEVELS];
            uint64_t specials, own_specials = 0;
            up_to<FEW>(inside && next >= low ? next - low : 0, total, total_specials, special, value, specials);
            const uint32_t previous = __shfl_sync(CR_EVERYONE, next, under), from = first ? begin : previous;
            if (inside && (next < low || next < from)) cr_segments_head(args)->wrong = 1;
#pragma unroll
            for (int k = 0; k < LEVELS; k++) {
                own_value[k] = 0;
                if (!Running::has(FEW, k)) continue;
                const long long below = __shfl_sync(CR_EVERYONE, value[k], under);
                own_value[k] = value[k] - (first ? before[k] : below);
                before[k] = __shfl_sync(CR_EVERYONE, value[k], last);
            }
            if (odd) {
                const uint64_t below = __shfl_sync(CR_EVERYONE, specials, under);
                own_specials = specials - (first ? before_specials : below);
                before_specials = __shfl_sync(CR_EVERYONE, specials, last);
            }
            if (inside && !(first && open) && !answer_simply<FEW>(own, own_value, own_specials)) answer<FEW>(own, next - from, own_value, own_specials);
            if (open && first) answer_open(next - from, own_value, own_specials);
            told = told || reaches;
            recorded = reaches = false;
            begin = __shfl_sync(CR_EVERYONE, next, last);
            if (inside) go_on();
            head = (head + count) % CR_WARP;
            if (count < CR_WARP) break;
        }
        /* What is left of the piece is the open segment's. */
        const uint64_t rest = total_specials - before_specials;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = lane == 0 && Running::has(FEW, k) ? total[k] - before[k] : 0;
        run_special = rest != 0;
        if (run_special) shared.run_specials[lane] = lane == 0 ? rest : 0;
        is_running = run_alone = true;
        run_few = FEW;
        run_pieces = 0;
    }

    /* ---- Pieces ---- */

    /* Adds this lane's vectors; ends: keeps what they were before each group. */
    template <bool FEW, int UNROLL> CR_DEVICE void add(Running &running, bool ends, bool special) {
        uint32_t ignored = 0;
        running.template begin<FEW>(window);
#pragma unroll UNROLL
        for (uint32_t v = 0; v < CR_PIECE_EACH; v++) {
            if (ends && v % Running::group(FEW) == 0) keep<FEW>(running, v / Running::group(FEW));
            uint4 x = mine(v);
            if (special) E::strip(ignored, x);
            running.template add<FEW>(window, x);
        }
    }
    template <bool FEW> CR_DEVICE void keep(const Running &running, uint32_t group) const {
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            if (Running::has(FEW, k)) *kept<FEW>(k, group, lane) = running.s[k];
        }
    }
    /* By FEW, and whether that does: its elements are looked at meanwhile. */
    CR_DEVICE bool try_few(Running &running, bool ends) {
        const uint32_t low = Bounds::low(few_bounds);
        uint32_t worst = 0;
        uint4 x[CR_PIECE_EACH]; /* all at once: a load would wait for what is kept before it */
#pragma unroll
        for (uint32_t v = 0; v < CR_PIECE_EACH; v++) x[v] = mine(v);
        running.template begin<true>(window);
#pragma unroll
        for (uint32_t v = 0; v < CR_PIECE_EACH; v++) {
            if (ends && v % Running::group(true) == 0) keep<true>(running, v / Running::group(true));
            E::glance(worst, x[v], low);
            running.template add<true>(window, x[v]);
        }
        const bool near = Bounds::near(worst, few_bounds);
        return __all_sync(CR_EVERYONE, near) || __all_sync(CR_EVERYONE, few(looked_at())); /* a glance takes zeros for too small */
    }
    CR_DEVICE cr_span looked_at() const {
        cr_span seen = {0, ~0u};
#pragma unroll
        for (uint32_t v = 0; v < CR_PIECE_EACH; v++) E::look(seen, mine(v));
        return seen;
    }
    /* False: the chunk is hard. */
    CR_DEVICE bool piece(uint32_t number, uint32_t pieces) {
        const uint32_t low = number * PIECE, high = number + 1 == pieces ? UINT32_MAX - 1 : low + PIECE;
        const bool ends = __any_sync(CR_EVERYONE, next <= high);
        Running running;
        this->turn_over(number, pieces);
        if constexpr (Running::AT_ONCE) {
            if (window.most >= 0 && try_few(running, ends)) return close<true>(running, 0, false, ends, low, high);
        }
        uint32_t found = 0;
        cr_span seen = looked_at();
        if (!__all_sync(CR_EVERYONE, fits(seen))) {
            if (!move(seen, found)) return false;
        }
        const bool special = __any_sync(CR_EVERYONE, found != 0);
        if (Running::HAS_FEW && __all_sync(CR_EVERYONE, few(seen))) {
            add<true, Running::AT_ONCE ? 1 : CR_PIECE_EACH>(running, ends, special);
            return close<true>(running, found, special, ends, low, high);
        }
        wide = true;
        add<false, Running::HAS_FEW ? 1 : CR_PIECE_EACH>(running, ends, special);
        return close<false>(running, found, special, ends, low, high);
    }
    /* With what the lanes have of the piece. found: of this lane. */
    template <bool FEW> CR_DEVICE bool close(const Running &running, uint32_t found, bool special, bool ends, uint32_t low, uint32_t high) {
        long long part[LEVELS];
#pragma unroll
        for (int k = 0; k < LEVELS; k++) part[k] = Running::has(FEW, k) ? running.template found<FEW>(window, k) : 0;
        if (!ends) {
#pragma unroll
            for (int k = 0; k < LEVELS; k++) run[k] += part[k];
            if (special) {
                shared.run_specials[lane] = (run_special ? shared.run_specials[lane] : 0) + packed(found);
                run_special = true;
            }
            is_running = true;
            run_few = run_few && FEW;
            run_alone = false;
            if (++run_pieces == CR_PIECE_RUN) settle();
            return !hard;
        }
        if (FEW && !run_few) settle();
        long long total[LEVELS];
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            total[k] = 0;
            if (!Running::has(FEW, k)) continue;
            const long long sum = scan(part[k]);
            shared.base[k][lane] = sum - part[k];
            total[k] = __shfl_sync(CR_EVERYONE, sum, CR_WARP - 1);
        }
        uint64_t total_specials = 0;
        if (special) {
            const uint64_t sum = (uint64_t)scan((long long)packed(found));
            shared.specials[lane] = sum - packed(found);
            total_specials = cr_from_lane(sum, CR_WARP - 1);
        }
        __syncwarp();
        answer_ends<FEW>(low, high, total, total_specials, special);
        hard = __any_sync(CR_EVERYONE, hard);
        return !hard;
    }
    /* The lanes' numbers up to this one's. */
    CR_DEVICE long long scan(long long x) const {
#pragma unroll
        for (uint32_t step = 1; step < CR_WARP; step *= 2) {
            const long long below = __shfl_up_sync(CR_EVERYONE, x, step);
            if (lane >= step) x += below;
        }
        return x;
    }

    /* Tells a state what this chunk has of a segment that a cut parts. */
    CR_DEVICE void tell(const cr_piece_record &r, uint64_t segment, uint64_t from, uint64_t n, uint64_t elements, bool ended) {
        const uint32_t owner = cr_segments_owner<SIZE>(args, segment, from);
        cr_sum_state *state = cr_segments_state(args, owner, false);
        uint64_t marks = 0;
        if constexpr (SUMS != 0) {
            cr_segments_add(state, r.sum.value, (int)r.sum.unit, CR_F64_GRID);
            marks = r.sum.marks;
        }
        if constexpr (SQUARES != 0) {
            cr_segments_add(cr_segments_state(args, owner, true), r.square.value, (int)r.square.unit, CR_F64_SQUARE_GRID);
            if (SUMS == 0) marks = r.square.marks;
        }
        cr_segments_add_marks(state, marks & CR_MARK_NANS, (marks & CR_MARK_PLUS) != 0, (marks & CR_MARK_MINUS) != 0);
        cr_segments_arrive(args, owner, segment, n, elements, ended, shared.digits);
    }

    /* Chunk `number`; false: it is hard. */
    CR_DEVICE bool chunk(uint32_t number) {
        at = cr_segments_cut<SIZE>(args, number);
        if (number == 0 && lane == 0 && cr_offset_at(args, 0) > args.n) cr_segments_head(args)->wrong = 1;
        if (at.first == at.last && at.low == at.high) return true;
        const uint32_t pieces = this->open(at.low, at.high);
        open_ends();
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = 0;
        begin = skip;
        run_pieces = 0;
        if (wide && Running::AT_ONCE && !Window::HALF) { /* an element may have been far above the others: a lower window may do better */
            window.most = -1;
            few_bounds = {0, ~0u};
        }
        wide = false;
        is_running = recorded = hard = told = run_special = false;
        run_few = run_alone = true;
        reaches = at.from < at.low;
        for (uint32_t k = 0; k < pieces; k++) {
            if (!piece(k, pieces)) return false;
        }
        settle();
        if (hard) return false;
        __syncwarp();
        if (told) tell(shared.left, at.first, at.from, shared.left_length, shared.left_elements, true);
        const uint64_t from = reaches ? at.from : at.low + (begin - skip), elements = at.high - max(from, at.low);
        if (at.last < args.count && elements != 0) {
            const uint64_t end = cr_offset_within(args, at.last + 1);
            tell(shared.open, at.last, from, end - from, elements, false);
        }
        __syncwarp();
        return true;
    }
};

template <cr_dtype D, int KIND, class E>
static __global__ void __launch_bounds__(CR_SEGMENTS_WARPS *CR_WARP, CR_SEGMENTS_BLOCKS) cr_segments_by_pieces(const __grid_constant__ cr_segments_args args) {
    typedef cr_pieces<D, KIND, E> Pieces;
    __shared__ typename Pieces::Shared shared[CR_SEGMENTS_WARPS];
    static_assert(sizeof shared <= 48 << 10, "a block has no more");
    cr_let_the_next_begin();
    cr_axis_head *head = cr_segments_head(args);
    const uint32_t lane = threadIdx.x % CR_WARP, warps = min(gridDim.x * CR_SEGMENTS_WARPS, args.chunks);
    Pieces pieces(args, shared[threadIdx.x / CR_WARP]);
    uint32_t chunk = blockIdx.x * CR_SEGMENTS_WARPS + threadIdx.x / CR_WARP;
    while (chunk < args.chunks) { /* the first as they lie, then as warps come */
        uint32_t taken = 0;
        if (lane == 0) taken = atomicAdd(&head->next, 1u);
        if (!pieces.chunk(chunk) && lane == 0) cr_segments_list(args)[atomicAdd(&head->hard, 1u)] = chunk;
        taken = __shfl_sync(CR_EVERYONE, taken, 0);
        if (taken + 1 == args.chunks && lane == 0) head->next = 0; /* whoever is given the last number of all */
        chunk = warps + taken;
    }
    cr_copies_wait<0>(); /* of a chunk that was given up */
}

template <cr_dtype D, int KIND, class E = typename cr_axis_floats<D>::E> int cr_segments_launch(const cr_segments_args *args, void *stream) {
    return CR_LAUNCH((cr_segments_by_pieces<D, KIND, E>), args->blocks, CR_SEGMENTS_WARPS * CR_WARP, stream, *args);
}

#endif
