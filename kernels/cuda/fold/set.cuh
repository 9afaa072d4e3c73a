/* set: several families of floats in one pass: the sum, and with it the squares, or the extrema and the counts, or both.
 *
 * A warp glances at its part of a tile once: its largest, its smallest and its least magnitude. If these lie in the windows of the
 * sums and beyond no extremum so far, there is nothing left to do but to add: no element is zero or a NaN, so none needs to be
 * counted. If all but zeros lie in the windows, these are counted, and the rest is the same. Any other part goes to one family
 * after the other. What only that needs lies in shared memory meanwhile, for a warp shares all of it, and registers are what limits a
 * pass that does several things.
 *
 * Of 16-bit types, if a thread's part of a tile spans few enough binades, all of it is one float64, and so is all of its squares, before
 * they go to an anchor. Where nobody asks for places, each thread keeps its own extrema, and a tile that is in the windows is only
 * added, however its elements compare with those before.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_SET_CUH
#define CURED_KERNELS_CUDA_FOLD_SET_CUH

#include "kernels/cuda/fold/counts.cuh"
#include "kernels/cuda/fold/extrema.cuh"
#include "kernels/cuda/fold/extent.cuh"
#include "kernels/cuda/fold/float_sums.cuh"

/* What a sum knows beside its accumulators and their place; the same for a warp. */
struct cr_sum_kept : cr_sum_marks {
    cr_span bounds;
    uint32_t adds;
    int unit;

    template <class S> CR_DEVICE void recall(S &sum) const {
        sum.bounds = bounds;
        sum.adds = adds;
        sum.unit = unit;
        const uint32_t before = sum.loose;
        static_cast<cr_sum_marks &>(sum) = *this;
        sum.loose |= before;
    }
    template <class S> CR_DEVICE void keep(S &sum) {
        const bool any = __any_sync(CR_EVERYONE, sum.loose);
        sum.loose = false;
        __syncwarp();
        if (threadIdx.x % CR_WARP == 0) {
            bounds = sum.bounds;
            adds = sum.adds;
            unit = sum.unit;
            static_cast<cr_sum_marks &>(*this) = sum;
            loose = any;
        }
        __syncwarp();
    }
    CR_DEVICE void added(uint32_t more) {
        adds += more;
        streak = 0;
    }
    /* For so many tiles of `each` additions. */
    template <class S> CR_DEVICE uint32_t room(uint32_t each) const { return (S::MOST - min(adds, (uint32_t)S::MOST)) / each; }
};

/* Where there is no such family. */
struct cr_no_sum {
    struct Shared {};
    struct Sample {};
};

/* A warp's extrema and counts, and what an element alone adds to them. */
template <cr_dtype D>
struct cr_order_kept {
    typedef cr_fold_extrema<D> extrema;
    typedef typename extrema::rank rank;
    uint64_t index[2], nan, nonzero, nans;
    rank best[2]; /* the lowest, the highest */

    CR_DEVICE void clear() {
        best[0] = best[1] = CR_NO_RANK(rank);
        index[0] = index[1] = nan = CR_NOWHERE;
        nonzero = nans = 0;
    }
    /* The warp together, but only its first lane keeps. */
    template <bool SIDE, bool NUMBERS, int N>
    CR_DEVICE void side(const uint4 (&v)[N], uint64_t first, uint32_t count) {
        rank mine = CR_NO_RANK(rank);
        if (count != 0) mine = extrema::template best_among<SIDE, NUMBERS>(v, count).rank();
        const rank found = cr_warp_rank(mine);
        if (found >= best[SIDE]) return;
        uint32_t number;
        cr_first<D, false, CR_GPU_THREADS>(v, cr_bits_of<D>(SIDE ? (rank)~found : found), number);
        const uint64_t at = cr_warp_min(mine == found ? first + number : CR_NOWHERE);
        __syncwarp();
        if (threadIdx.x % CR_WARP == 0) {
            best[SIDE] = found;
            index[SIDE] = at;
        }
        __syncwarp();
    }
    template <int N, bool NUMBERS>
    CR_DEVICE void sides(const uint4 (&v)[N], uint64_t first, uint32_t count) {
        side<false, NUMBERS>(v, first, count);
        side<true, NUMBERS>(v, first, count);
    }
    /* Of a tile without NaNs that is only added: those who add take every element for one that is not zero. */
    template <int N> CR_DEVICE void zeros(const uint4 (&v)[N], uint32_t count, const cr_fold_args &args) {
        cr_fold_counts<D> counts;
        counts.begin(args);
        counts.template tile<N>(v, 0, count);
        const uint32_t others = __reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nonzero);
        if (threadIdx.x % CR_WARP == 0) nonzero -= N * (CR_GPU_VECTOR / cr_width(D)) * CR_WARP - others;
    }
    /* first: the index of v[0]'s first element. */
    template <int N>
    CR_DEVICE void tile(const uint4 (&v)[N], uint64_t first, uint32_t count, const cr_fold_args &args) {
        cr_fold_counts<D> counts;
        counts.begin(args);
        counts.template tile<N>(v, 0, count);
        const uint32_t all = __reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nonzero | (uint32_t)counts.nans << 16);
        uint64_t at = CR_NOWHERE;
        if (all >> 16 == 0) {
            sides<N, false>(v, first, count);
        } else {
            uint32_t number;
            const bool here = cr_first<D, true, CR_GPU_THREADS>(v, 0, number);
            at = cr_warp_min(here ? first + number : CR_NOWHERE);
            sides<N, true>(v, first, count);
        }
        if (threadIdx.x % CR_WARP == 0) {
            nonzero += all & 0xffff;
            nans += all >> 16;
            if (nan == CR_NOWHERE) nan = at;
        }
    }
};

/* A thread's extrema of 16-bit elements, without their places. */
template <cr_dtype D> struct cr_ends {
    cr_best_of<D, false, true> low;
    cr_best_of<D, true, true> high;

    CR_DEVICE void clear() { low.best[0] = high.best[0] = 0x7fff7fffu; /* NaNs, to which every number is better */ }
    CR_DEVICE void also(const cr_glimpse<D, true> &seen) {
        low.also(cr_best_of<D, false, true>(seen.least));
        high.also(cr_best_of<D, true, true>(seen.most));
    }
    /* Of vectors without a NaN, of which the first `count` are there. */
    template <int N> CR_DEVICE void also(const uint4 (&v)[N], uint32_t count) {
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < (int)count) also(cr_glimpse<D, true>(v[j]));
    }
};
struct cr_no_ends {};

/* SQUARES: Σx² beside Σx. ORDER: extrema and counts. PLACES: of the extrema. */
template <class E, cr_dtype D, bool SQUARES, bool ORDER, bool PLACES = ORDER, int RESIDENT = 3, int U = 4>
struct cr_set {
    typedef cr_float_sum<E, CR_SUM_PLAIN> plain_sum;
    typedef std::conditional_t<SQUARES, cr_float_sum<E, CR_SUM_SQUARE>, cr_no_sum> square_sum;
    typedef cr_order_kept<D> order_kept;
    typedef typename order_kept::extrema extrema;
    typedef std::conditional_t<PLACES || !ORDER, typename extrema::wide_type,
                               cr_extrema_found<D, CR_WANTS_MIN | CR_WANTS_MAX, uint32_t>>
        wide_type;
    typedef typename wide_type::winner winner;
    typedef decltype(wide_type::nan) place_type;
    static constexpr int SIZE = E::SIZE, UNROLL = U, BLOCKS = RESIDENT, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr bool SELF = true, CHUNKED = true, LATE = true;
    static constexpr bool ENDS = ORDER && !PLACES; /* of 16-bit types */
    /* All that a thread has of a tile is one float64: its elements are multiples of 2^-APART and less of its largest, and 32 squares of
     * them fit 53 bits. MARGIN: binades that a window keeps for the sum of so many. */
    static constexpr bool WHOLE = SIZE == 2;
    static constexpr int APART = (53 - 7) / 2 - E::MANTISSA, MARGIN = !WHOLE || plain_sum::HALF ? 0 : 3;
    static_assert(!WHOLE || U * LANES == 32, "32 squares");
    static_assert(!ENDS || SIZE == 2, "a thread's own are of 16 bits");
    static constexpr uint32_t FRESH = ~0u; /* room before the first tile */
    struct Own { /* a warp's */
        cr_sum_kept sum, squares;
        uint32_t granted; /* the first lane's */
        order_kept order;
    };
    struct Shared {
        typename plain_sum::Shared sum;
        typename square_sum::Shared squares;
        Own own[CR_WARPS];
        uint32_t bar[2]; /* the block's extrema, as far as it knows */
        uint64_t room[ORDER ? extrema::ROOM : 1];
    };
    struct Sample {
        typename plain_sum::Sample sum;
        typename square_sum::Sample squares;
    };
    plain_sum sum;
    square_sum squares;
    cr_glimpse_limits limits; /* of what is only added */
    uint32_t room;            /* for so many tiles */
    /* What an element alone was. */
    winner alone[2];
    place_type alone_nan;
    bool alone_nonzero;
    std::conditional_t<ENDS, cr_ends<D>, cr_no_ends> ends;

    CR_DEVICE static Own &own(Shared &shared) { return shared.own[threadIdx.x / CR_WARP]; }

    CR_DEVICE Sample sample(const cr_fold_args &args) {
        Sample found;
        found.sum = sum.sample(args);
        if constexpr (SQUARES) found.squares = squares.sample(args);
        return found;
    }
    CR_DEVICE void begin(const cr_fold_args &args, Shared &shared, const Sample &sample) {
        sum.begin(args, shared.sum, sample.sum);
        if constexpr (SQUARES) squares.begin(args, shared.squares, sample.squares);
        Own &mine = own(shared);
        if (ORDER && threadIdx.x % CR_WARP == 0) mine.order.clear();
        if (threadIdx.x % CR_WARP == 0) mine.granted = FRESH;
        mine.sum.keep(sum);
        if constexpr (SQUARES) mine.squares.keep(squares);
        room = FRESH;
        limits.nothing();
        if (ORDER && threadIdx.x < 2) shared.bar[threadIdx.x] = ~0u;
        if (ORDER) __syncthreads();
#pragma unroll
        for (int k = 0; k < 2; k++) alone[k] = {CR_NO_RANK(typename extrema::rank), wide_type::NONE};
        alone_nan = wide_type::NONE;
        alone_nonzero = false;
        if constexpr (ENDS) ends.clear();
    }

    template <class S, int N> CR_DEVICE static constexpr uint32_t adds() { return N * LANES / S::GROUP; }

    /* Tells the sums of the tiles that were only added. The warp together. */
    template <int N> CR_DEVICE void settle(Own &mine) {
        __syncwarp();
        if (threadIdx.x % CR_WARP == 0 && mine.granted != room) {
            const uint32_t tiles = mine.granted - room;
            mine.sum.added(tiles * adds<plain_sum, N>());
            if constexpr (SQUARES) mine.squares.added(tiles * adds<square_sum, N>());
            if (ORDER) mine.order.nonzero += (uint64_t)tiles * (N * LANES * CR_WARP);
        }
        __syncwarp();
    }
    /* What both sums take; before they are placed, zeros alone. */
    CR_DEVICE static cr_span window(const Own &mine) {
        cr_span both = mine.sum.bounds;
        bool placed = mine.sum.placed;
        if constexpr (SQUARES) {
            const cr_span bounds = mine.squares.bounds;
            both = {min(both.most, bounds.most), max(both.least, bounds.least)};
            placed = placed && mine.squares.placed;
        }
        if (placed && both.most > both.least) return both;
        return {0, ~0u};
    }
    CR_DEVICE void windows(const Own &mine) {
        cr_span both = window(mine);
        both.most -= min((uint32_t)MARGIN << E::FIELD, both.most);
        limits.nothing();
        if (both.most > both.least) limits.template window<E>(both);
    }
    /* Not beyond the extrema of the warp, or of the block, which learns of the warp's. */
    CR_DEVICE void extremes(const Own &mine, Shared &shared) {
        if constexpr (PLACES) {
            const uint32_t low = cr_glimpse_limits::bar<D>(false, mine.order.best[0]);
            const uint32_t high = cr_glimpse_limits::bar<D>(true, mine.order.best[1]), lane = threadIdx.x % CR_WARP;
            uint32_t others = 0;
            if (lane < 2) others = atomicMin(&shared.bar[lane], lane == 0 ? low : high);
            limits.template beyond<D>(low, high, __shfl_sync(CR_EVERYONE, others, 0), __shfl_sync(CR_EVERYONE, others, 1));
        }
    }
    /* What may only be added from here on, and how often. */
    template <int N> CR_DEVICE void grant(Own &mine, Shared &shared) {
        room = mine.sum.template room<plain_sum>(adds<plain_sum, N>());
        if constexpr (SQUARES) room = min(room, mine.squares.template room<square_sum>(adds<square_sum, N>()));
        windows(mine);
        extremes(mine, shared);
        __syncwarp();
        if (threadIdx.x % CR_WARP == 0) mine.granted = room;
    }
    /* The first tile, if it fits around its own largest element: the windows are placed so. */
    template <int N> CR_DEVICE void place(const cr_glimpse<D, ORDER> &glimpse, Own &mine, Shared &shared) {
        const cr_span seen = glimpse.template meet<E>();
        const int top = (int)(seen.most >> E::FIELD) + MARGIN;
        int at = plain_sum::Window::place(top), squares_at = 0;
        const cr_span bounds = plain_sum::Window::bounds(at, 0);
        cr_span squares_bounds = bounds;
        bool fits = seen.least != ~0u && plain_sum::Window::within(seen, bounds);
        if constexpr (SQUARES) {
            squares_at = square_sum::Window::place(top);
            squares_bounds = square_sum::Window::bounds(squares_at, 0);
            fits = fits && square_sum::Window::within(seen, squares_bounds);
        }
        if (!fits) return;
        sum.a = at;
        if constexpr (SQUARES) squares.a = squares_at;
        __syncwarp();
        if (threadIdx.x % CR_WARP == 0) {
            mine.sum.bounds = bounds;
            mine.sum.placed = true;
            mine.squares.bounds = squares_bounds;
            mine.squares.placed = true;
        }
        __syncwarp();
        grant<N>(mine, shared);
    }
    /* Whether a tile that is not within the limits may only be added nevertheless, once its extrema and its zeros are known. */
    template <int N>
    CR_DEVICE bool usual(const cr_glimpse<D, ORDER> &glimpse, const uint4 (&v)[N], uint64_t vector, uint32_t count, Own &mine,
                     Shared &shared) {
        if (room == FRESH) place<N>(glimpse, mine, shared);
        if (PLACES) windows(mine);
        const bool full = __all_sync(CR_EVERYONE, room != 0 && glimpse.within(limits)); /* of elements that are not zero */
        if (!full && (room == 0 || room == FRESH || !plain_sum::Window::within(plain_sum::template spread<N>(v), window(mine))))
            return false;
        if constexpr (ENDS) {
            if (full) {
                ends.also(glimpse);
            } else {
                mine.order.template zeros<N>(v, count, *sum.args);
                ends.template also<N>(v, count);
            }
        }
        if constexpr (PLACES) {
            const cr_glimpse_limits around = limits;
            extremes(mine, shared);
            cr_glimpse_limits known = limits;
            known.least = around.least;
            if (!full) mine.order.template zeros<N>(v, count, *sum.args);
            if (__all_sync(CR_EVERYONE, full ? glimpse.within(known) : glimpse.around_zero(known))) return true;
            mine.order.template sides<N, false>(v, cr_index_of<SIZE>(*sum.args, vector), count);
            limits = around;
            extremes(mine, shared);
        }
        return true;
    }
    template <class S, int N>
    CR_DEVICE static void add(S &of, cr_sum_kept &kept, const uint4 (&v)[N], typename S::Shared &shared) {
        kept.recall(of);
        of.template tile<N>(v, 0, N, shared);
        kept.keep(of);
    }
    template <int N> CR_DEVICE void careful(const uint4 (&v)[N], uint64_t vector, uint32_t count, Shared &shared) {
        Own &mine = own(shared);
        settle<N>(mine);
        cr_after_the_last(); /* bins may go to the state's limbs */
        /* Two vectors at a time, and code for no more: that leaves registers for what matters. */
        uint4 rest[N];
#pragma unroll
        for (int j = 0; j < N; j++) rest[j] = v[j];
#pragma unroll 1
        for (int j = 0; j < N; j += 2) {
            const uint4 two[2] = {rest[0], rest[1]};
            if constexpr (ORDER) {
                const uint64_t first = cr_index_of<SIZE>(*sum.args, vector + (uint32_t)j * CR_GPU_THREADS);
                mine.order.template tile<2>(two, first, (uint32_t)min(max((int)count - j, 0), 2), *sum.args);
            }
            add(sum, mine.sum, two, shared.sum);
            if constexpr (SQUARES) add(squares, mine.squares, two, shared.squares);
            plain_sum::template rotate<2>(rest);
        }
        grant<N>(mine, shared);
    }
    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t vector, uint32_t count, Shared &shared) {
        const cr_glimpse<D, ORDER> seen(v);
        const bool within = __all_sync(CR_EVERYONE, room != 0 && seen.within(limits));
        if (!within && !usual<N>(seen, v, vector, count, own(shared), shared)) {
            careful<N>(v, vector, count, shared);
            return;
        }
        room--;
        if constexpr (ENDS) {
            if (within) ends.also(seen);
        }
        if constexpr (WHOLE) {
            if (within && __all_sync(CR_EVERYONE, seen.template spans<APART>())) {
                add_whole<N>(v);
                return;
            }
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum.add_one(v[j]);
            if constexpr (SQUARES) squares.add_one(v[j]);
        }
    }
    /* To an anchor, as if it were the groups that `adds` counts. */
    template <class S, int N> CR_DEVICE static void count_once(S &of, int level, double anchor) {
        of.acc[level] += S::bits(anchor) + of.base(level) * (adds<S, N>() - 1);
    }
    template <int N> CR_DEVICE void add_whole(const uint4 (&v)[N]) {
        double one[2] = {0, 0}, two[2] = {0, 0};
#pragma unroll
        for (int j = 0; j < N; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e++) {
                const double x = E::lane(v[j], e);
                one[e % 2] = __dadd_rn(one[e % 2], x);
                if (SQUARES) two[e % 2] = __fma_rn(x, x, two[e % 2]);
            }
        }
        count_once<plain_sum, N>(sum, 0, __dadd_rn(sum.anchor(0), __dadd_rn(one[0], one[1])));
        if constexpr (SQUARES) {
            static_assert(square_sum::LEVELS == 2, "as it is below");
            const double all = __dadd_rn(two[0], two[1]), first = squares.anchor(0), next = __dadd_rn(first, all);
            count_once<square_sum, N>(squares, 0, next);
            count_once<square_sum, N>(squares, 1, __dadd_rn(squares.anchor(1), __dsub_rn(all, __dsub_rn(next, first))));
        }
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        Own &mine = own(shared);
        sum.bounds = mine.sum.bounds;
        sum.one(bits, index, shared.sum);
        if constexpr (SQUARES) {
            squares.bounds = mine.squares.bounds;
            squares.one(bits, index, shared.squares);
        }
        if (!ORDER) return;
        if (cr_is_nan<D>(bits)) {
            alone_nan = PLACES ? (place_type)index : 0;
        } else {
            typedef typename extrema::rank rank;
            const rank key = (rank)cr_key_of<D>(bits);
            alone[0] = {key, PLACES ? (place_type)index : 0};
            alone[1] = {(rank)~key, PLACES ? (place_type)index : 0};
        }
        alone_nonzero = (bits & ~(1ull << (8 * SIZE - 1))) != 0;
    }
    /* A warp each ends a family, side by side behind one barrier, because each end waits for memory once. */
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        Own &mine = own(shared);
        const uint32_t warp = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
        bool sum_dirty = false, squares_dirty = false;
        wide_type found;
        settle<U>(mine);
        mine.sum.recall(sum);
        sum.drain(shared.sum);
        bool dirty = sum.is_dirty();
        if constexpr (SQUARES) {
            mine.squares.recall(squares);
            squares.drain(shared.squares);
            dirty = dirty || squares.is_dirty();
        }
        if constexpr (ORDER) show_order(args, shared, found);
        if (__syncthreads_or(dirty)) {
            sum_dirty = __syncthreads_or(sum.is_dirty()) != 0;
            if (sum_dirty) sum.settle(shared.sum);
            if constexpr (SQUARES) {
                squares_dirty = __syncthreads_or(squares.is_dirty()) != 0;
                if (squares_dirty) squares.settle(shared.squares);
            }
        }
        if (warp == CR_WARPS - 1) sum.tell(shared.sum, sum_dirty, lane);
        if constexpr (SQUARES) {
            if (warp == CR_WARPS - 2) squares.tell(shared.squares, squares_dirty, lane);
        }
        if constexpr (ORDER) {
            if (warp == 0) found.template tell<CR_WARPS>(args, shared.room);
            if (warp == 1 && lane < 2) count(args, shared, lane == 1);
        }
    }
    CR_DEVICE void show_order(const cr_fold_args &args, Shared &shared, wide_type &all) {
        order_kept &mine = own(shared).order;
        const uint32_t lane = threadIdx.x % CR_WARP;
        const uint32_t more = __reduce_add_sync(CR_EVERYONE, (uint32_t)alone_nonzero | (alone_nan != wide_type::NONE ? 1u << 16 : 0));
        if (lane == 0) {
            mine.nonzero += more & 0xffff;
            mine.nans += more >> 16;
#pragma unroll
            for (int k = 0; k < 2; k++) alone[k].take({mine.best[k], (place_type)mine.index[k]});
            alone_nan = min(alone_nan, PLACES || mine.nan == CR_NOWHERE ? (place_type)mine.nan : 0);
        }
        if constexpr (PLACES) { /* which count from the array's first element */
#pragma unroll
            for (int k = 0; k < 2; k++) all.best[k] = {alone[k].rank, alone[k].at == CR_NOWHERE ? CR_NOWHERE : alone[k].at - args.index};
            all.nan = alone_nan == CR_NOWHERE ? CR_NOWHERE : alone_nan - args.index;
        } else {
            all.best[0] = {min(alone[0].rank, ends.low.rank()), 0};
            all.best[1] = {min(alone[1].rank, ends.high.rank()), 0};
            all.nan = alone_nan;
        }
        all.template collect<CR_WARPS>(args);
#pragma unroll
        for (int k = 0; k < 2; k++) all.best[k].meet_warp();
        all.template show<CR_WARPS>(shared.room);
    }
    /* Adds what the block has counted to the state: NaNs, or elements that are not zero. */
    CR_DEVICE static void count(const cr_fold_args &args, const Shared &shared, bool nans) {
        uint64_t value = 0;
        for (int w = 0; w < CR_WARPS; w++) value += nans ? shared.own[w].order.nans : shared.own[w].order.nonzero;
        if (!cr_leave_word(&args.state->prod.special[nans], value, args.plan.blocks)) return;
        *(nans ? &args.slot->partial.nans : &args.slot->partial.nonzero) = value;
    }
};

#endif
