/* pieces: a chunk by windows of exponents, 4 KiB at a time. A warp loads a piece as it lies, while it works at the one before; each lane then
 * adds neighbouring elements to running anchors (fold/float_sums.cuh), and keeps what they were before every G vectors. What the lanes
 * below have gives the sum of the piece up to any place, as integers in units of the anchors; a segment's is the difference of two. So
 * the lengths of segments do not matter: an end costs what it costs.
 *
 * A window stays while pieces fit it. Where one does not, what is open goes to a record (axis/floats.cuh) and the window moves. NaNs and
 * infinities are counted, and are zeros. What no window takes puts the chunk on the list, before it has told a state anything; answers
 * that were made are made again.
 * Thread: GPU; a chunk is a warp's. Owner: the kernel; `Shared` the warp. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_PIECES_CUH
#define CURED_KERNELS_CUDA_OFFSETS_PIECES_CUH

#include "kernels/cuda/offsets/close.cuh"
#include "kernels/cuda/offsets/loads.cuh"
#include "kernels/cuda/offsets/running.cuh"

enum {
    CR_PIECE_RUN = 256,                       /* pieces in turn without an end, until what is open goes to its record */
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
    using Loads::args, Loads::lane, Loads::skip, Loads::length, Loads::slot;
    static constexpr int SUMS = Running::SUMS, SQUARES = Running::SQUARES, LEVELS = Running::LEVELS;
    static constexpr int STEP = Window::STEP, G = KIND == CR_SEGMENTS_SUM ? 1 : 2;
    static_assert(1 << Window::LOG == EACH, "a lane's elements are those that a strip's lane has");
    static_assert(SQUARES == 0 || SIZE < 8, "float64 holds their squares");
    /* Bits for each kind of special among the elements of a run. */
    static constexpr int COUNT = 21;
    static_assert(PIECE * CR_PIECE_RUN < 1 << COUNT, "no count overflows");

    struct Shared {
        uint4 vector[CR_PIECE_VECTORS];
        union {
            typename Running::kept prefix[LEVELS][CR_PIECE_VECTORS / G];
            cr_segments_digits digits; /* once the chunk is over */
        };
        long long base[LEVELS][CR_WARP];
        unsigned long long specials[CR_WARP];
        cr_piece_record open, left; /* of the open segment, from pieces before; of that which began before the chunk */
    };

    Shared &shared;
    cr_segments_chunk at;
    Window window;
    long long run[LEVELS];    /* of this lane: the open segment, from pieces before, in the window's units */
    uint64_t run_specials;
    uint32_t run_pieces;
    bool is_running, recorded, reaches, hard; /* run has something; `open` has; the open segment began before the chunk; the chunk is hard */
    bool told;                                /* `left` has something */
    uint64_t left_elements, left_length;

    CR_DEVICE cr_pieces(const cr_segments_args &of, Shared &room) : Loads(of, room.vector), shared(room) {}

    /* ---- Sums ---- */

    CR_DEVICE int unit(int level) const { return Running::unit(window, level); }
    CR_DEVICE bool fits(const cr_span &seen) const {
        const int high = (int)(Bounds::largest(seen.most) >> E::FIELD), low = (int)(Bounds::smallest(seen.least) >> E::FIELD);
        return window.fits(high, low, !Window::HALF) && (SQUARES == 0 || window.fits_squares(low));
    }
    CR_DEVICE bool few(const cr_span &seen) const {
        if constexpr (Running::HAS_FEW) return window.fits_few((int)(Bounds::largest(seen.most) >> E::FIELD), (int)(Bounds::smallest(seen.least) >> E::FIELD));
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
        cr_piece_record own;
        if constexpr (SUMS != 0) make_sum(own.sum, value, specials);
        if constexpr (SQUARES != 0) make_square(own.square, value, specials);
        bool good = true;
        if constexpr (SUMS != 0) {
            if (!first) cr_axis_sum_merge(own.sum, to.sum);
            to.sum = own.sum;
            good = good && !(own.sum.marks & CR_MARK_HARD);
        }
        if constexpr (SQUARES != 0) {
            if (!first) cr_axis_sum_merge(own.square, to.square);
            to.square = own.square;
            good = good && !(own.square.marks & CR_MARK_HARD);
        }
        return good;
    }
    /* What is running goes to the record. The warp together. */
    CR_DEVICE void settle() {
        long long value[LEVELS];
        if (!is_running) return;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            value[k] = of_all(run[k]);
            run[k] = 0;
        }
        const uint64_t specials = (uint64_t)of_all((long long)run_specials);
        bool good = true;
        if (lane == 0) good = record(shared.open, !recorded, value, specials);
        hard = hard || !__shfl_sync(CR_EVERYONE, (int)good, 0);
        recorded = true;
        is_running = false;
        run_specials = run_pieces = 0;
    }
    /* For a piece that does not fit: without its specials, or by another window. False: by none. found: the lane's specials. */
    CR_DEVICE bool move(cr_span &seen, uint32_t &found) {
        found = 0;
        if (__any_sync(CR_EVERYONE, Bounds::special(seen.most))) {
            seen = {0, ~0u};
#pragma unroll 1
            for (uint32_t v = 0; v < CR_PIECE_EACH; v++) {
                uint4 *mine = &shared.vector[slot(lane * CR_PIECE_EACH + v)];
                uint4 x = *mine;
                E::strip(found, x);
                E::look(seen, x);
            }
        }
        if (__all_sync(CR_EVERYONE, fits(seen))) return true;
        settle();
        window.place(__reduce_max_sync(CR_EVERYONE, Bounds::largest(seen.most)) >> E::FIELD, 2);
        return __all_sync(CR_EVERYONE, fits(seen));
    }

    /* ---- Answers ---- */

    CR_DEVICE void answer(uint64_t output, uint64_t n, const long long (&value)[LEVELS], uint64_t specials) {
        const cr_segment_of of = cr_segment_make(args, n);
        if constexpr (KIND == CR_SEGMENTS_SUM) {
            const int64_t part[2] = {value[0], value[1]};
            const bool simple = args.out_count == 1 && args.out[0].divisor == CR_DIVISOR_ONE && args.out[0].result == CR_F64;
            if (simple && specials == 0 && window.unit >= -800 && window.unit <= 800) {
                ((double *)args.out[0].to)[output] = __dmul_rn(cr_strip<D, false, E>::rounded(part), __hiloint2double((unit(SUMS - 1) + 1023) << 20, 0));
                return;
            }
        }
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
    /* The end of a segment that has more than this piece: its value here, and what is recorded. One lane. */
    CR_DEVICE void answer_open(uint64_t output, uint64_t n, const long long (&value)[LEVELS], uint64_t specials) {
        if (!record(shared.open, !recorded, value, specials)) hard = true;
        else if (reaches) shared.left = shared.open;
        else put(cr_segment_make(args, n), output, shared.open.sum, shared.open.square);
    }

    /* ---- Ends ---- */

    /* What end_of takes of end i, long before it does. */
    CR_DEVICE uint64_t load_end(uint64_t i) const { return i < at.last ? cr_offset_load(args, i + 1) : 0; }
    /* End i's place from the origin on, if the chunk has it. A wrong one is told, and made one that does no harm. */
    CR_DEVICE uint32_t end_of(uint64_t i, uint64_t loaded) {
        if (i >= at.last) return UINT32_MAX;
        uint64_t end = cr_offset_of(args, loaded);
        if (end < at.low || end > at.high) {
            cr_segments_head(args)->wrong = 1;
            end = at.low;
        }
        return (uint32_t)(end - at.low) + skip;
    }
    /* The piece's sum up to its element `place`: in units of the window. */
    CR_DEVICE void up_to(uint32_t place, const long long (&total)[LEVELS], uint64_t total_specials, bool special, long long (&value)[LEVELS], uint64_t &specials) {
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
        for (int k = 0; k < LEVELS; k++) running.s[k] = shared.prefix[k][group * CR_WARP + owner];
        uint32_t found = 0;
#pragma unroll
        for (uint32_t g = 0; g < (uint32_t)G; g++) {
            if (within <= g * VEC) break;
            uint4 v = shared.vector[slot(owner * CR_PIECE_EACH + group * G + g)];
            if (special) E::strip(found, v);
            running.add_some(window, v, g * VEC, within);
        }
#pragma unroll
        for (int k = 0; k < LEVELS; k++) value[k] = shared.base[k][owner] + running.found(window, k);
        if (special) specials = shared.specials[owner] + specials_of(owner, rest);
    }
    CR_DEVICE static uint64_t packed(uint32_t found) { return (found & 1023) | (uint64_t)(found >> 10 & 1023) << COUNT | (uint64_t)(found >> 20) << 2 * COUNT; }
    /* Of the first `count` elements of a lane. */
    CR_DEVICE uint64_t specials_of(uint32_t owner, uint32_t count) const {
        uint32_t found = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *element = reinterpret_cast<const uint8_t *>(&shared.vector[slot(owner * CR_PIECE_EACH + i / VEC)]) + i % VEC * SIZE;
            const uint64_t all = cr_load_one<SIZE>(element);
            uint4 v = cr_alone(all);
            E::strip(found, v);
        }
        return packed(found);
    }
    /* All ends up to `high`, of a piece whose first element is `low`; total: of the piece. next: this lane's end, of those from i on; later: as
     * loaded, the one a warp's lanes further. */
    CR_DEVICE void answer_ends(uint32_t low, uint32_t high, const long long (&total)[LEVELS], uint64_t total_specials, bool special, uint64_t &i, uint32_t &next,
                               uint64_t &later) {
        long long before[LEVELS];
        uint64_t before_specials = 0;
        uint32_t begin = at.from > at.low ? 0 : skip; /* where the open segment begins; of one that reaches, of no matter */
        (void)begin;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) before[k] = is_running ? 0 - of_all(run[k]) : 0;
        if (is_running && __any_sync(CR_EVERYONE, run_specials != 0)) before_specials = 0 - (uint64_t)of_all((long long)run_specials);
        for (;;) {
            const bool inside = next <= high;
            const uint32_t count = (uint32_t)__popc(__ballot_sync(CR_EVERYONE, inside));
            if (count == 0) break;
            long long value[LEVELS], own[LEVELS];
            uint64_t specials, own_specials;
            up_to(inside && next >= low ? next - low : 0, total, total_specials, special, value, specials);
            const uint32_t mine = max(next, low);
            const uint32_t previous = __shfl_sync(CR_EVERYONE, next, lane + CR_WARP - 1);
            const uint64_t begins = lane == 0 ? at.from : at.low + (previous - skip);
            const uint64_t n = at.low + (mine - skip) - begins;
            if (inside && (next < low || (lane != 0 && next < previous))) cr_segments_head(args)->wrong = 1;
#pragma unroll
            for (int k = 0; k < LEVELS; k++) {
                const long long below = __shfl_sync(CR_EVERYONE, value[k], lane + CR_WARP - 1);
                own[k] = value[k] - (lane == 0 ? before[k] : below);
            }
            own_specials = 0;
            if (special || before_specials != 0) {
                const uint64_t below = __shfl_sync(CR_EVERYONE, specials, lane + CR_WARP - 1);
                own_specials = specials - (lane == 0 ? before_specials : below);
            }
            const bool whole = lane != 0 || !(recorded || reaches);
            if (inside && whole && lane < count) answer(i + lane, n, own, own_specials);
            if (recorded || reaches) {
                if (lane == 0) answer_open(i, n, own, own_specials);
                if (reaches) {
                    told = true;
                    left_length = cr_from_lane(n, 0);
                    left_elements = cr_from_lane(at.low + (mine - skip), 0) - at.low;
                }
                recorded = reaches = false;
            }
#pragma unroll
            for (int k = 0; k < LEVELS; k++) before[k] = __shfl_sync(CR_EVERYONE, value[k], count - 1);
            before_specials = special ? cr_from_lane(specials, count - 1) : 0;
            at.from = at.low + (__shfl_sync(CR_EVERYONE, mine, count - 1) - skip);
            i += count;
            const uint32_t moved = __shfl_sync(CR_EVERYONE, next, lane + count);
            const uint64_t far = __shfl_sync(CR_EVERYONE, later, lane + count);
            next = lane + count < CR_WARP ? moved : end_of(i + lane, far);
            later = load_end(i + CR_WARP + lane);
            if (count < CR_WARP) break;
        }
        /* What is left of the piece is the open segment's. */
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = lane == 0 ? total[k] - before[k] : 0;
        run_specials = lane == 0 ? total_specials - before_specials : 0;
        is_running = true;
        run_pieces = 0;
    }

    /* ---- Pieces ---- */

    /* This lane's vector v. */
    template <bool FEW> CR_DEVICE void add(Running &running, uint32_t v, bool ends, bool special) {
        uint32_t ignored = 0;
        if (ends && v % G == 0) {
#pragma unroll
            for (int k = 0; k < LEVELS; k++) shared.prefix[k][v / G * CR_WARP + lane] = running.s[k];
        }
        uint4 x = shared.vector[slot(lane * CR_PIECE_EACH + v)];
        if (special) E::strip(ignored, x);
        running.template add<FEW>(window, x);
    }
    /* False: the chunk is hard. */
    CR_DEVICE bool piece(uint32_t number, uint32_t pieces, uint64_t &i, uint32_t &next, uint64_t &later) {
        const uint32_t low = number * PIECE, high = number + 1 == pieces ? UINT32_MAX - 1 : low + PIECE;
        cr_span seen;
        this->turn_over(number, pieces, seen);
        uint32_t found = 0;
        if (!__all_sync(CR_EVERYONE, fits(seen))) {
            if (!move(seen, found)) return false;
        }
        const bool special = __any_sync(CR_EVERYONE, found != 0);
        const bool ends = __any_sync(CR_EVERYONE, next <= high);
        Running running;
        running.begin(window);
        if (Running::HAS_FEW && __all_sync(CR_EVERYONE, few(seen))) {
#pragma unroll
            for (uint32_t v = 0; v < CR_PIECE_EACH; v++) add<true>(running, v, ends, special);
        } else {
#pragma unroll(Running::HAS_FEW ? 1 : CR_PIECE_EACH)
            for (uint32_t v = 0; v < CR_PIECE_EACH; v++) add<false>(running, v, ends, special);
        }
        long long part[LEVELS];
#pragma unroll
        for (int k = 0; k < LEVELS; k++) part[k] = running.found(window, k);
        if (!ends) {
#pragma unroll
            for (int k = 0; k < LEVELS; k++) run[k] += part[k];
            run_specials += packed(found);
            is_running = true;
            if (++run_pieces == CR_PIECE_RUN) settle();
            return !hard;
        }
        long long total[LEVELS];
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
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
        answer_ends(low, high, total, total_specials, special, i, next, later);
        hard = __any_sync(CR_EVERYONE, hard);
        return !hard;
    }
    /* The lanes' numbers up to this one's. */
    CR_DEVICE long long scan(long long x) const {
#pragma unroll
        for (uint32_t step = 1; step < CR_WARP; step *= 2) {
            const long long below = __shfl_sync(CR_EVERYONE, x, lane + CR_WARP - step);
            if (lane >= step) x += below;
        }
        return x;
    }

    /* Tells a state what this chunk has of a segment that a cut parts. */
    CR_DEVICE void tell(const cr_piece_record &r, bool some, uint64_t segment, uint64_t from, uint64_t n, uint64_t elements, bool ended) {
        const uint32_t owner = cr_segments_owner<SIZE>(args, segment, from);
        cr_sum_state *state = cr_segments_state(args, owner, false);
        if (some) {
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
        }
        cr_segments_arrive(args, owner, segment, n, elements, ended, shared.digits);
    }

    /* Chunk `number`; false: it is hard. */
    CR_DEVICE bool chunk(uint32_t number) {
        at = cr_segments_cut<SIZE>(args, number);
        if (number == 0 && lane == 0 && cr_offset_at(args, 0) > args.n) cr_segments_head(args)->wrong = 1;
        if (at.first == at.last && at.low == at.high) return true;
        const uint32_t pieces = this->open(at.low, at.high);
        const uint64_t first_from = at.from;
        uint64_t i = at.first;
        uint64_t later = load_end(i + lane);
        uint32_t next = end_of(i + lane, later);
        later = load_end(i + CR_WARP + lane);
        window.unit = 0;
        window.most = -1;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = 0;
        run_specials = run_pieces = 0;
        is_running = recorded = hard = told = false;
        reaches = at.from < at.low;
        if (Window::HALF) window.place(0, 0);
        for (uint32_t k = 0; k < pieces; k++) {
            if (!piece(k, pieces, i, next, later)) return false;
        }
        settle();
        if (hard) return false;
        __syncwarp();
        if (told) tell(shared.left, true, at.first, first_from, left_length, left_elements, true);
        const uint64_t elements = at.high - max(at.from, at.low);
        if (at.last < args.count && elements != 0) {
            const uint64_t end = cr_offset_within(args, at.last + 1);
            tell(shared.open, true, at.last, at.from, end - at.from, elements, false);
        }
        __syncwarp();
        return true;
    }
};

template <cr_dtype D, int KIND, class E>
static __global__ void __launch_bounds__(CR_SEGMENTS_WARPS *CR_WARP, CR_SEGMENTS_BLOCKS) cr_segments_by_pieces(const __grid_constant__ cr_segments_args args) {
    typedef cr_pieces<D, KIND, E> Pieces;
    __shared__ typename Pieces::Shared shared[CR_SEGMENTS_WARPS];
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
}

template <cr_dtype D, int KIND, class E = typename cr_axis_floats<D>::E> int cr_segments_launch(const cr_segments_args *args, void *stream) {
    return CR_LAUNCH((cr_segments_by_pieces<D, KIND, E>), args->blocks, CR_SEGMENTS_WARPS * CR_WARP, stream, *args);
}

#endif
