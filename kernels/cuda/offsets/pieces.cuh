/* pieces: a chunk by windows of exponents, 4 KiB at a time. A warp loads a piece as it lies, while it works at the one before; each lane then
 * adds neighbouring elements to running anchors (fold/float_sums.cuh), and keeps what they were before every few vectors. What the lanes
 * below have gives the sum of the piece up to any place, as integers in units of the anchors; a segment's is the difference of two. So
 * the lengths of segments do not matter: an end costs what it costs.
 *
 * A window stays while pieces fit it, from chunk to chunk. Most pieces fit FEW of its anchors (running.cuh), which is tried at once. Where
 * one fits none, what is open goes to a record (axis/floats.cuh) and the window moves. NaNs and infinities are counted, and are zeros. What
 * no window takes puts the chunk on the list, before it has told a state anything; answers that were made are made again. States are told
 * once the next chunk's elements are under way.
 *
 * What is long and rare is called, with values for arguments (sums.cuh): an instruction that has to be fetched, and a register that is kept
 * for it, cost every piece. A member that a call had a reference to would lie in memory.
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
    using Sums::shared, Sums::start, Sums::last, Sums::window, Sums::few_bounds, Sums::head, Sums::own, Sums::next, Sums::later, Sums::begin, Sums::run, Sums::run_pieces;
    using Sums::is, Sums::set, Sums::clear, Sums::fits, Sums::few, Sums::of_all, Sums::settle, Sums::move;
    using Sums::RUNS, Sums::ALONE, Sums::MANY, Sums::SPECIAL, Sums::RECORDED, Sums::REACHES, Sums::TOLD, Sums::WIDE, Sums::HARD, Sums::WRONG, Sums::ASKED;

    uint32_t taken; /* if ASKED */
    uint32_t tells; /* what tell_those_before has to tell: 1 of the segment that ended, 2 of the open one */

    CR_DEVICE cr_pieces(const cr_segments_args &of, Shared &room) : Sums(of, room), taken(0), tells(0) {}

    /* ---- Ends ---- */

    /* What go_on takes of end i, long before it does. */
    CR_DEVICE uint64_t load_end(bool some, uint32_t i) const { return some ? cr_offset_load(args, (uint64_t)i + 1) : 0; }
    /* An end's place from the origin on. A wrong one is told later, and made one that does no harm. */
    CR_DEVICE uint32_t end_of(bool some, uint64_t loaded) {
        const uint64_t place = cr_offset_of(args, loaded) - start;
        const bool good = place <= (uint64_t)(length - skip);
        set(WRONG, some && !good);
        return !some ? UINT32_MAX : good ? (uint32_t)place + skip : skip;
    }
    /* The first ends of the chunk. */
    CR_DEVICE void open_ends(uint32_t first) {
        const uint32_t count = last > first ? last - first : 0; /* where offsets are wrong, cuts may be, too */
        head = 0;
        own = first + lane;
        next = end_of(lane < count, load_end(lane < count, own));
        later = load_end(lane + CR_WARP < count, own + CR_WARP);
    }
    /* The next end of this lane. */
    CR_DEVICE void go_on() {
        const uint32_t left = last - own;
        next = end_of(left > CR_WARP, later);
        own += CR_WARP;
        later = load_end(left > 2 * CR_WARP, own + CR_WARP);
    }
    /* How many of the next ends, in their order, lie at `high` or before. */
    CR_DEVICE uint32_t ready(uint32_t high) const {
        const uint32_t within = __ballot_sync(CR_EVERYONE, next <= high), ordered = ~__funnelshift_r(within, within, head);
        return ordered == 0 ? (uint32_t)CR_WARP : (uint32_t)__ffs((int)ordered) - 1;
    }
    /* What the lanes below have of level k, for up_to; gives what all have. */
    CR_DEVICE long long base(int k, long long part) {
        const long long sum = scan(part);
        shared.base[k][lane] = sum - part;
        return __shfl_sync(CR_EVERYONE, sum, CR_WARP - 1);
    }
    /* The piece's sum up to its element `place`, in units of the window; total: all of it. special: it has some, which are left out. */
    template <bool FEW> CR_DEVICE void up_to(uint32_t place, const long long (&total)[LEVELS], bool special, long long (&value)[LEVELS]) {
        constexpr uint32_t G = Running::group(FEW);
        const uint32_t inside = place < (uint32_t)PIECE ? place : 0, owner = inside / EACH, rest = inside % EACH, group = rest / (G * VEC), within = rest % (G * VEC);
        Running running;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            if (Running::has(FEW, k)) running.s[k] = *kept<FEW>(k, group, owner);
        }
        uint32_t ignored = 0;
#pragma unroll(G > 2 ? 1 : G)
        for (uint32_t g = 0; g < G; g++) {
            if (G > 1 && within <= g * VEC) break;
            uint4 v = at_slot(owner * CR_PIECE_EACH + group * G + g);
            if (special) E::strip(ignored, v);
            running.template add_some<FEW>(window, v, g * VEC, within);
        }
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            const long long found = Running::has(FEW, k) ? shared.base[k][owner] + running.template found<FEW>(window, k) : 0;
            value[k] = place < (uint32_t)PIECE ? found : total[k];
        }
    }
    /* Where a lane keeps what level k is before a group of its vectors. */
    template <bool FEW> CR_DEVICE typename Running::kept *kept(int k, uint32_t group, uint32_t owner) const {
        int before = 0;
#pragma unroll
        for (int level = 0; level < k; level++) before += Running::has(FEW, level);
        return &shared.prefix[before * kept_of(FEW) + group * CR_WARP + owner];
    }
    CR_DEVICE static uint64_t packed(uint32_t found) { return (found & 1023) | (uint64_t)(found >> 10 & 1023) << COUNT | (uint64_t)(found >> 20) << 2 * COUNT; }
    /* The piece's specials up to its element `place`; total: all of them. */
    CR_DEVICE uint64_t specials_up_to(uint32_t place, uint64_t total) const {
        if (place >= (uint32_t)PIECE) return total;
        const uint32_t owner = place / EACH, count = place % EACH;
        uint32_t found = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *element = reinterpret_cast<const uint8_t *>(&at_slot(owner * CR_PIECE_EACH + i / VEC)) + i % VEC * SIZE;
            const uint64_t all = cr_load_one<SIZE>(element);
            uint4 v = cr_alone(all);
            E::strip(found, v);
        }
        return shared.specials[owner] + packed(found);
    }
    /* Answers the ends of a piece of elements from `low` to `high`, of which `count` are ready, by what its lanes have. special: the piece has
     * NaNs or infinities, of which this lane found `found`, or the open segment may have some. Without them the code branches little: in a
     * piece with an end most of the time goes into branches. */
    template <bool FEW> CR_DEVICE bool answer_ends(const Running &running, uint32_t count, uint32_t low, uint32_t high, bool special, uint32_t found) {
        long long total[LEVELS], before[LEVELS]; /* before: of the first lane's end; of no matter in the others */
        uint64_t total_specials = 0, before_specials = 0;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            total[k] = before[k] = 0;
            if (!Running::has(FEW, k)) continue;
            total[k] = base(k, running.template found<FEW>(window, k));
            before[k] = 0 - (is(ALONE) ? __shfl_sync(CR_EVERYONE, run[k], 0) : of_all(run[k]));
        }
        if (special) {
            const uint64_t sum = (uint64_t)scan((long long)packed(found));
            shared.specials[lane] = sum - packed(found);
            total_specials = cr_from_lane(sum, CR_WARP - 1);
            before_specials = 0 - Sums::ran_specials(shared, is(SPECIAL));
        }
        __syncwarp();
        do {
            const uint32_t order = (lane - head) % CR_WARP, under = (lane + CR_WARP - 1) % CR_WARP, final = (head + count - 1) % CR_WARP;
            const bool inside = order < count, first = order == 0;
            const uint32_t place = inside && next >= low ? next - low : 0;
            long long value[LEVELS], own_value[LEVELS];
            uint64_t own_specials = 0;
            up_to<FEW>(place, total, special, value);
            const uint32_t previous = __shfl_sync(CR_EVERYONE, next, under), from = first ? begin : previous;
            set(WRONG, inside && (next < low || next < from));
            begin = __shfl_sync(CR_EVERYONE, next, final);
#pragma unroll
            for (int k = 0; k < LEVELS; k++) {
                own_value[k] = 0;
                if (!Running::has(FEW, k)) continue;
                const long long below = __shfl_sync(CR_EVERYONE, value[k], under);
                own_value[k] = value[k] - (first ? before[k] : below);
                before[k] = __shfl_sync(CR_EVERYONE, value[k], final);
            }
            if (special) {
                const uint64_t specials = specials_up_to(place, total_specials), below = __shfl_sync(CR_EVERYONE, specials, under);
                own_specials = specials - (first ? before_specials : below);
                before_specials = __shfl_sync(CR_EVERYONE, specials, final);
            }
            bool answers = inside;
            if (is(RECORDED | REACHES)) {
                if (first) set(HARD, !Sums::answer_open(shared, args, own, next - from, is(REACHES), window, Sums::values_of(own_value), own_specials, !is(RECORDED)));
                answers = inside && !first;
                set(TOLD, is(REACHES));
                clear(RECORDED | REACHES);
            }
            if (answers && !this->template answer_simply<FEW>(own, own_value, own_specials) && !answer_quickly<FEW>(own, next - from, own_value))
                set(HARD, !Sums::answer(args, own, next - from, window, Sums::values_of(own_value), own_specials));
            if (inside) go_on();
            head = (head + count) % CR_WARP;
            count = count < CR_WARP ? 0 : ready(high);
        } while (count != 0);
        /* What is left of the piece is the open segment's. */
        const uint64_t rest = total_specials - before_specials;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = lane == 0 && Running::has(FEW, k) ? total[k] - before[k] : 0;
        clear(MANY | SPECIAL);
        set(RUNS | ALONE);
        set(MANY, !FEW);
        if (special && rest != 0) {
            shared.run_specials[lane] = lane == 0 ? rest : 0;
            set(SPECIAL);
        }
        run_pieces = 0;
        set(HARD, __any_sync(CR_EVERYONE, is(HARD)));
        return !is(HARD);
    }
    /* All answers, by what FEW levels have, where there are no specials. False: that does not do. */
    template <bool FEW> CR_DEVICE bool answer_quickly(uint64_t output, uint64_t n, const long long (&value)[LEVELS]) const {
        if constexpr (!FEW || !Running::AT_ONCE) return false;
        const cr_segment_of of = cr_segment_make(args, n);
        bool all = true;
        for (uint32_t k = 0; k < args.out_count && all; k++) all = Sums::answer_quickly(of, args.out[k], output, window, value);
        return all;
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
        if (window.most < 0) return false; /* it has no place yet */
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
        this->turn_over(number, pieces);
        const uint32_t count = ready(high); /* of an end that is out of its turn, a later piece finds that it is wrong */
        const bool ends = count != 0;
        uint32_t found = 0;
        bool special = false, done = false;
        Running running;
        if constexpr (Running::AT_ONCE) done = try_few(running, ends);
        if (!done) {
            cr_span seen = looked_at();
            if (!__all_sync(CR_EVERYONE, fits(seen)) && !move(seen, found)) return false;
            special = __any_sync(CR_EVERYONE, found != 0);
            if (Running::HAS_FEW && !special && __all_sync(CR_EVERYONE, few(seen))) {
                add<true, Running::AT_ONCE ? 1 : CR_PIECE_EACH>(running, ends, false);
                done = true;
            }
        }
        if (Running::HAS_FEW && done) {
            if (!ends) return go_over<true>(running);
            if (is(MANY | SPECIAL)) settle();
            return answer_ends<true>(running, count, low, high, false, 0);
        }
        set(WIDE);
        add<false, Running::HAS_FEW ? 1 : CR_PIECE_EACH>(running, ends, special);
        if (ends) return answer_ends<false>(running, count, low, high, special || is(SPECIAL), found);
        if (special) {
            shared.run_specials[lane] = (is(SPECIAL) ? shared.run_specials[lane] : 0) + packed(found);
            set(SPECIAL);
        }
        set(MANY);
        return go_over<false>(running);
    }
    /* Of a piece without an end. */
    template <bool FEW> CR_DEVICE bool go_over(const Running &running) {
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] += Running::has(FEW, k) ? running.template found<FEW>(window, k) : 0;
        set(RUNS);
        clear(ALONE);
        if (++run_pieces == CR_PIECE_RUN) settle();
        return !is(HARD);
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

    static CR_CALLED void tell(const cr_segments_args &args, Shared &shared, bool ended) {
        const cr_piece_record &r = ended ? shared.left : shared.open;
        const typename Sums::Part part = ended ? shared.left_part : shared.open_part;
        const uint32_t owner = cr_segments_owner<SIZE>(args, part.segment, part.from);
        const uint64_t n = ended ? part.elements + part.before : cr_offset_within(args, part.segment + 1) - part.from;
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
        cr_segments_arrive(args, owner, part.segment, n, part.elements, ended, shared.digits);
    }
    /* Tells states what the chunk before has of segments that cuts part: late, so that the next chunk's elements are under way meanwhile. */
    CR_DEVICE void tell_those_before() {
        __syncwarp();
        if (tells & 1) tell(args, shared, true);
        if (tells & 2) tell(args, shared, false);
        tells = 0;
        __syncwarp();
    }

    /* Takes the next chunk's number, which comes while the last piece is added. */
    CR_DEVICE void take() {
        taken = cr_segments_take(args);
        set(ASKED);
    }
    CR_DEVICE uint32_t behind() {
        if (!is(ASKED)) take();
        clear(ASKED);
        return cr_segments_next(args, taken);
    }
    /* Chunk `number`; false: it is hard. */
    CR_DEVICE bool chunk(uint32_t number) {
        const cr_segments_chunk at = cr_segments_cut<SIZE>(args, number);
        if (number == 0 && lane == 0 && cr_offset_at(args, 0) > args.n) cr_segments_head(args)->wrong = 1;
        if (at.first == at.last && at.low == at.high) return true;
        const uint32_t pieces = this->open(at.low, at.high);
        tell_those_before();
        start = at.low;
        last = (uint32_t)at.last;
        open_ends((uint32_t)at.first);
        if (lane == 0) shared.at = at;
#pragma unroll
        for (int k = 0; k < LEVELS; k++) run[k] = 0;
        begin = skip;
        run_pieces = 0;
        if (is(WIDE) && Running::AT_ONCE && !Window::HALF) this->unplace(); /* an element may have been far above the others: a lower window may do better */
        clear(RUNS | MANY | SPECIAL | RECORDED | REACHES | TOLD | WIDE | HARD);
        set(ALONE);
        set(REACHES, at.from < at.low);
        for (uint32_t k = 0; k < pieces; k++) {
            if (k + 2 == pieces) take();
            if (!piece(k, pieces)) return false;
        }
        settle();
        if (is(HARD)) return false;
        if (is(WRONG)) cr_segments_head(args)->wrong = 1;
        const uint64_t from = is(REACHES) ? shared.at.from : start + (begin - skip), elements = shared.at.high - max(from, start);
        const bool goes_on = shared.at.last < args.count && elements != 0;
        if (lane == 0 && goes_on) shared.open_part = {shared.at.last, from, elements, 0};
        tells = (is(TOLD) ? 1 : 0) | (goes_on ? 2 : 0);
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
    pieces.tell_those_before();
    cr_copies_wait<0>(); /* of a chunk that was given up */
}

template <cr_dtype D, int KIND, class E = cr_float_of<D>> int cr_segments_launch(const cr_segments_args *args, void *stream) {
    return CR_LAUNCH((cr_segments_by_pieces<D, KIND, E>), args->blocks, CR_SEGMENTS_WARPS * CR_WARP, stream, *args);
}

#endif
