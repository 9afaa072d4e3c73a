/* burst: folds of arrays so short that all their loads are in flight at once: a block is one tile, and there is no loop. What such a
 * fold takes is the way to memory and back, and the fetching of its program; so there is as little of that as can be, and the walk
 * (walk.cuh) has everything longer or laid out oddly.
 *
 * An accumulator A:
 *   A::SIZE, A::Shared            bytes of an element; what a block shares
 *   A::THREADS                    threads of a block
 *   before(args)                  what needs no element
 *   A::FEW                        true: one block on a multiprocessor, as long as that is enough: then fewer have to meet
 *   A::REPEAT                     true: what is not there is the last vector once more; false: zeros
 *   A::Walk, A::RUN               the accumulator for the walk, see cr_walk_runs
 *   vector<J>(v)                  a thread's vector J
 *   finish(args, tile, shared)    all threads together: the end, the single element of this thread among it
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_WALK_BURST_CUH
#define CURED_KERNELS_CUDA_WALK_BURST_CUH

#include "kernels/cuda/fold/extrema.cuh"
#include "kernels/cuda/fold/int_sums.cuh"
#include "kernels/cuda/walk/families.cuh"

/* What a thread has before it: vectors first, first + T, …, `loads` of them, and perhaps a single element. */
struct cr_burst_tile {
    const uint4 *body;
    uint32_t vectors, first, loads;
    bool single;
    uint32_t at; /* the element's number in the array */
    uint64_t bits;
};

template <int SIZE> CR_DEVICE uint64_t cr_load_aligned(const uint8_t *p) {
    if (SIZE == 1) return *p;
    if (SIZE == 2) return *(const uint16_t *)p;
    if (SIZE == 4) return *(const uint32_t *)p;
    return *(const uint64_t *)p;
}

/* Of a block that has fewer vectors than its threads have room for. */
template <bool REPEAT, int T> CR_DEVICE void cr_burst_load_some(uint4 (&v)[CR_GPU_UNROLL], const cr_burst_tile &tile) {
#pragma unroll
    for (int j = 0; j < CR_GPU_UNROLL; j++) {
        const uint32_t i = tile.first + (uint32_t)j * T;
        if (REPEAT) {
            if (j < (int)tile.loads) v[j] = tile.body[min(i, tile.vectors - 1)];
        } else {
            v[j] = make_uint4(0, 0, 0, 0);
            if (j < (int)tile.loads && i < tile.vectors) v[j] = tile.body[i];
        }
    }
}

template <class A>
__global__ void __launch_bounds__(A::THREADS, 1024 / A::THREADS) cr_burst(const __grid_constant__ cr_burst_args args) {
    constexpr int T = A::THREADS;
    __shared__ typename A::Shared shared;
    cr_let_the_next_begin();
    const uint32_t from = blockIdx.x * args.per;
    cr_burst_tile tile = {args.body, args.vectors, from + threadIdx.x, args.per / T, false, 0, 0};
    uint4 v[CR_GPU_UNROLL];
    if (from + args.per <= tile.vectors) {
        const uint4 *mine = tile.body + tile.first;
        v[0] = mine[0];
        if (tile.loads > 1) v[1] = mine[T];
        if (tile.loads > 2) v[2] = mine[2 * T], v[3] = mine[3 * T];
        if (tile.loads > 4) v[4] = mine[4 * T], v[5] = mine[5 * T], v[6] = mine[6 * T], v[7] = mine[7 * T];
    } else {
        cr_burst_load_some<A::REPEAT, T>(v, tile);
    }
    if (blockIdx.x == 0 && threadIdx.x < args.singles) {
        tile.single = true;
        tile.at = threadIdx.x;
        if (tile.at >= args.fold.plan.head) tile.at += tile.vectors * (CR_GPU_VECTOR / A::SIZE);
        tile.bits = cr_load_aligned<A::SIZE>(args.fold.data + (uint64_t)tile.at * A::SIZE);
    }
    cr_after_the_last();
    A acc;
    acc.before(args.fold);
    acc.template vector<0>(v[0]);
    if (tile.loads > 1) acc.template vector<1>(v[1]);
    if (tile.loads > 2) acc.template vector<2>(v[2]), acc.template vector<3>(v[3]);
    if (tile.loads > 4) {
        acc.template vector<4>(v[4]), acc.template vector<5>(v[5]);
        acc.template vector<6>(v[6]), acc.template vector<7>(v[7]);
    }
    acc.finish(args.fold, tile, shared);
}

/* One minimum or maximum, by blocks of 512 threads; of 256 it is 0.1 µs less up to 16 KiB (fold.def has a few of those). */
template <cr_dtype D, unsigned WANTED, int T = 512>
struct cr_burst_extrema {
    typedef cr_extrema_wanted<D, WANTED> is;
    typedef cr_extrema_found<D, WANTED, uint32_t> found_type;
    typedef typename is::rank rank;
    template <bool NUMBERS>
    using scanned = typename cr_best_types<D, is::FIRST, NUMBERS, is::WIDE, true>::best;
    typedef cr_self<cr_fold_extrema<D, WANTED>> Walk;
    static constexpr int SIZE = (int)is::WIDTH, THREADS = T, WARPS = T / CR_WARP;
    static constexpr bool REPEAT = true, FEW = true;
    static constexpr uint32_t RUN = 0;
    static_assert(is::SIDES == 1, "the walk has the others");
    struct Shared {
        uint64_t room[found_type::room_for(WARPS)];
    };
    scanned<false> of[CR_GPU_UNROLL]; /* the best of each vector */
    scanned<false> best;

    CR_DEVICE void before(const cr_fold_args &) {}
    template <int J>
    CR_DEVICE void vector(const uint4 &v) {
        of[J] = scanned<false>(v);
        if (J == 0) best = of[0];
        else best.also(of[J]);
    }
    static CR_DEVICE uint32_t number(const cr_burst_tile &tile, uint32_t j) { return min(tile.first + j * T, tile.vectors - 1); }
    static CR_DEVICE uint32_t place(const cr_fold_args &args, uint32_t vector, uint32_t element) {
        return is::PLACES ? args.plan.head + vector * is::LANES + element : 0;
    }
    /* Once more, slowly, for a thread that has met a NaN (or, of doubles, whose best is a zero). */
    CR_DEVICE rank look_closely(const cr_fold_args &args, const cr_burst_tile &tile, uint32_t &which, uint32_t &nan) const {
        rank least = CR_NO_RANK(rank);
#pragma unroll 1
        for (uint32_t j = 0; j < tile.loads; j++) {
            const uint4 v[1] = {tile.body[number(tile, j)]};
            const rank now = scanned<true>(v[0]).rank();
            if (now < least) least = now, which = j;
            uint32_t element;
            if (cr_first<D, true, T>(v, 0, element)) nan = min(nan, place(args, number(tile, j), element));
        }
        return least;
    }
    CR_DEVICE void finish(const cr_fold_args &args, const cr_burst_tile &tile, Shared &shared) const {
        found_type found;
        uint32_t which = 0;
        found.clear();
        rank mine = best.rank();
        const bool closely = is::FLOAT && best.nan();
        if (closely) mine = look_closely(args, tile, which, found.nan);
        found.best[0].rank = is::PLACES ? cr_warp_rank(mine) : mine;
        if (is::PLACES && mine == found.best[0].rank) found.best[0].at = where(args, tile, closely, which, mine);
        /* What comes from elsewhere: single elements, and the mail of other blocks, which has had time to arrive. */
        const bool more = blockIdx.x == 0 ? args.plan.head + args.plan.tail != 0 : found_type::is_last(args);
        if (is::PLACES && !more) {
            found.best[0].at = cr_warp_rank(found.best[0].at);
        } else {
            if (tile.single) found.single(tile.bits, is::PLACES ? tile.at : 0);
            found.template collect<WARPS>(args);
            found.best[0].meet_warp();
        }
        found.template leave_warps<WARPS>(args, shared.room);
    }
    /* The first element of this thread's vectors that has its best rank; closely: it is in vector `which`. */
    CR_DEVICE uint32_t where(const cr_fold_args &args, const cr_burst_tile &tile, bool closely, uint32_t which, rank mine) const {
#pragma unroll
        for (int j = CR_GPU_UNROLL - 1; j >= 0; j--) {
            if (!closely && j < (int)tile.loads && of[j].holds(best)) which = (uint32_t)j;
        }
        const uint4 v[1] = {tile.body[number(tile, which)]};
        uint32_t element;
        cr_first<D, false, T>(v, cr_bits_of<D>(is::MOST ? (rank)~mine : mine), element);
        return place(args, number(tile, which), element);
    }
};

/* Of long arrays the GPU hands out runs faster than blocks take chunks for themselves, as long as five find room at once. */
enum { CR_LONE_RUN = 8192 }; /* vectors of a run */
template <class R> struct cr_lone_sum : cr_fold_sum<R> {
    static constexpr int BLOCKS = 5;
    static constexpr bool CHUNKED = false;
};

/* Σx of integers. Threads meet in pieces of which a block's fit 32 bits. */
template <cr_dtype D, int T = 256>
struct cr_burst_sum {
    typedef cr_sum_int<D, false> run_type;
    typedef cr_self<cr_lone_sum<run_type>> Walk;
    static constexpr uint32_t RUN = CR_LONE_RUN;
    static constexpr int SIZE = (int)cr_width(D), THREADS = T, WARPS = T / CR_WARP;
    static constexpr bool REPEAT = false, FEW = false, SIGNED = cr_is_signed(D);
    static constexpr unsigned PIECES = SIZE <= 2 ? 1 : SIZE == 4 ? 2 : 3, BITS = 24;
    static_assert(T <= 256, "or the pieces are others");
    struct Shared {
        uint32_t room[PIECES][WARPS];
    };
    run_type run[2];

    CR_DEVICE void before(const cr_fold_args &args) {
        run[0].begin(), run[1].begin();
        run_type::announce(args);
    }
    template <int J>
    CR_DEVICE void vector(const uint4 &v) {
        run[J % 2].vec(v);
    }
    CR_DEVICE void pieces(uint32_t (&piece)[PIECES]) {
        const uint32_t mask = (1u << BITS) - 1;
        if constexpr (SIZE <= 2) {
            piece[0] = run[0].lanes + run[1].lanes;
            if (D == CR_BOOL) piece[0] >>= 7;
        } else if constexpr (SIZE == 4) {
            const uint64_t all = run[0].words + run[1].words;
            piece[0] = (uint32_t)all & mask;
            piece[1] = (uint32_t)(all >> BITS);
        } else {
            run[0].total.add(run[1].total);
            const uint64_t *word = run[0].total.word;
            piece[0] = (uint32_t)word[0] & mask;
            piece[1] = (uint32_t)(word[0] >> BITS) & mask;
            piece[2] = (uint32_t)(word[0] >> 2 * BITS) | (uint32_t)word[1] << (64 - 2 * BITS);
        }
    }
    static CR_DEVICE uint64_t extended(uint32_t x) { return SIGNED ? (uint64_t)(int64_t)(int32_t)x : (uint64_t)x; }
    CR_DEVICE void finish(const cr_fold_args &args, const cr_burst_tile &tile, Shared &shared) {
        const uint32_t warp = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
        if (tile.single) run[0].vec(cr_alone(tile.bits));
        uint32_t piece[PIECES];
        pieces(piece);
#pragma unroll
        for (unsigned i = 0; i < PIECES; i++) {
            piece[i] = __reduce_add_sync(CR_EVERYONE, piece[i]);
            if (lane == 0) shared.room[i][warp] = piece[i];
        }
        __syncthreads();
        if (warp != 0) return;
#pragma unroll
        for (unsigned i = 0; i < PIECES; i++) piece[i] = __reduce_add_sync(CR_EVERYONE, lane < WARPS ? shared.room[i][lane % WARPS] : 0);
        typename run_type::sum_type sum;
        sum.word[0] = PIECES == 1 ? extended(piece[0]) : piece[0];
        if (PIECES == 2) sum.word[0] += extended(piece[1]) << BITS;
        if constexpr (PIECES == 3) {
            const uint64_t top = extended(piece[2]), low = sum.word[0] + ((uint64_t)piece[1] << BITS);
            sum.word[0] = low + (top << 2 * BITS);
            sum.word[1] = (uint64_t)((SIGNED ? (uint64_t)((int64_t)top >> (64 - 2 * BITS)) : top >> (64 - 2 * BITS)) + (sum.word[0] < low));
        }
        if (args.plan.blocks == 1) run_type::leave_alone(sum, args);
        else run_type::leave_digits(sum, args);
    }
};

template <class A> int cr_burst_launch(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    cr_fold_plan &plan = mine.plan;
    const uint32_t few = A::FEW ? args->multiprocessors * A::THREADS / 1024 : 0;
    if ((few == 0 || !cr_fold_plan_burst(&plan, few, A::THREADS)) && !cr_fold_plan_burst(&plan, args->multiprocessors, A::THREADS))
        return cr_walk_runs<typename A::Walk, A::RUN>(args, stream);
    return cr_launch(cr_burst<A>, plan.blocks, A::THREADS, stream, args->follows, cr_burst_told<A::SIZE>(mine));
}

/* Few threads for what one block has in flight, more for what is longer. */
template <class FEW, class MORE> int cr_burst_launch(const cr_fold_args *args, void *stream) {
    if (cr_fold_takes_few_threads(&args->plan, FEW::THREADS)) return cr_burst_launch<FEW>(args, stream);
    return cr_burst_launch<MORE>(args, stream);
}

#endif
