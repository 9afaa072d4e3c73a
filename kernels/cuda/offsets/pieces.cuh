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

#include "kernels/cuda/offsets/sums.cuh"

template <cr_dtype D, int KIND, class OF> struct cr_pieces : cr_piece_sums<D, KIND, OF> {
    typedef cr_piece_sums<D, KIND, OF> Sums;
    typedef typename Sums::E E;
    typedef typename Sums::Window Window;
    typedef typename Sums::Running Running;
    typedef typename Sums::Bounds Bounds;
    typedef typename Sums::Shared Shared;
    static constexpr int SIZE = Sums::SIZE, VEC = Sums::VEC, EACH = Sums::EACH, PIECE = Sums::PIECE, COUNT = Sums::COUNT;
    static constexpr int SUMS = Sums::SUMS, SQUARES = Sums::SQUARES, LEVELS = Sums::LEVELS;
    using Sums::args, Sums::lane, Sums::skip, Sums::length, Sums::at_slot, Sums::mine, Sums::kept_of;
    using Sums::shared, Sums::at, Sums::window, Sums::few_bounds, Sums::head, Sums::own, Sums::next, Sums::later, Sums::begin, Sums::run, Sums::run_pieces;
    using Sums::is_running, Sums::recorded, Sums::reaches, Sums::hard, Sums::wide, Sums::run_few, Sums::run_alone, Sums::run_special, Sums::told;
    using Sums::fits, Sums::few, Sums::of_all, Sums::settle, Sums::ran_specials, Sums::move, Sums::answer_open;

    uint32_t taken; /* if asked */
    bool asked;

    CR_DEVICE cr_pieces(const cr_segments_args &of, Shared &room) : Sums(of, room), taken(0), asked(false) {}

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
            if (inside && !(first && open) && !this->template answer_simply<FEW>(own, own_value, own_specials)) this->template answer<FEW>(own, next - from, own_value, own_specials);
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

    /* Takes the next chunk's number, which comes while the last piece is added. */
    CR_DEVICE void take() {
        taken = cr_segments_take(args);
        asked = true;
    }
    CR_DEVICE uint32_t behind() {
        if (!asked) take();
        asked = false;
        return cr_segments_next(args, taken);
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
            if (k + 2 == pieces) take();
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
    Pieces pieces(args, shared[threadIdx.x / CR_WARP]);
    for (uint32_t chunk = cr_segments_first(); chunk < args.chunks; chunk = pieces.behind()) {
        if (!pieces.chunk(chunk) && pieces.lane == 0) cr_segments_list(args)[atomicAdd(&cr_segments_head(args)->hard, 1u)] = chunk;
    }
    cr_copies_wait<0>(); /* of a chunk that was given up */
}

template <cr_dtype D, int KIND, class E = typename cr_axis_floats<D>::E> int cr_segments_launch(const cr_segments_args *args, void *stream) {
    return CR_LAUNCH((cr_segments_by_pieces<D, KIND, E>), args->blocks, CR_SEGMENTS_WARPS * CR_WARP, stream, *args);
}

#endif
