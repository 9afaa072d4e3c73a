/* extrema: minimum, maximum, their lowest indices, and the first NaN; or those of them that are wanted.
 *
 * A thread knows the best element of its tiles, as a rank, and where it came first: only a tile that is better than all before
 * it is looked through for the place. A NaN shows in a tile's best; a tile that has one is gone over again without it. Memory that
 * changes meanwhile gives some answer, and an index in the array.
 *
 * Between blocks: one value of 32 bits at most meets the others in a word that also counts the blocks. Anything longer is mailed to the
 * last block. What happens there is short: whoever comes last waits for each line of code to be fetched (docs/KERNELS.md).
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_EXTREMA_CUH
#define CURED_KERNELS_CUDA_FOLD_EXTREMA_CUH

#include "kernels/cuda/thread/keys.cuh"

/* No element. */
#define CR_NOWHERE UINT64_MAX

CR_DEVICE uint32_t cr_warp_rank(uint32_t x) { return __reduce_min_sync(CR_EVERYONE, x); }
CR_DEVICE uint64_t cr_warp_rank(uint64_t x) { return cr_warp_min(x); }

/* A letter between blocks, there as a whole or not at all; and the upper half of a word, of which the highest value stays. */
#if defined(__CUDA_ARCH__)
CR_DEVICE void cr_raise_upper(unsigned long long *word, uint32_t value) {
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"((uint32_t *)word + 1), "r"(value) : "memory");
}
CR_DEVICE void cr_letter_read(const unsigned long long *at, uint64_t &first, uint64_t &second) {
    asm volatile("{ .reg .b128 x; ld.relaxed.gpu.global.b128 x, [%2]; mov.b128 {%0, %1}, x; }"
                 : "=l"(first), "=l"(second)
                 : "l"(at)
                 : "memory");
}
CR_DEVICE void cr_letter_write(unsigned long long *at, uint64_t first, uint64_t second) {
    asm volatile("{ .reg .b128 x; mov.b128 x, {%1, %2}; st.relaxed.gpu.global.b128 [%0], x; }" ::"l"(at), "l"(first), "l"(second)
                 : "memory");
}
#else
CR_DEVICE void cr_raise_upper(unsigned long long *word, uint32_t value) {
    if (*word >> 32 < value) *word = cr_pair((uint32_t)*word, value);
}
CR_DEVICE void cr_letter_read(const unsigned long long *at, uint64_t &first, uint64_t &second) {
    first = at[0];
    second = at[1];
}
CR_DEVICE void cr_letter_write(unsigned long long *at, uint64_t first, uint64_t second) {
    at[0] = first;
    at[1] = second;
}
#endif

/* What is wanted, and how much of it there is. WANTED: CR_WANTS_... */
template <cr_dtype D, unsigned WANTED>
struct cr_extrema_wanted {
    static constexpr unsigned WIDTH = cr_width(D), LANES = CR_GPU_VECTOR / WIDTH;
    static constexpr bool FLOAT = cr_is_float(D), WIDE = WIDTH == 8, PLACES = (WANTED & (CR_WANTS_ARGMIN | CR_WANTS_ARGMAX)) != 0;
    static constexpr bool LEAST = (WANTED & CR_WANTS_MIN) != 0, MOST = (WANTED & CR_WANTS_MAX) != 0;
    /* extrema wanted, the first of them, the other one if there are two */
    static constexpr int SIDES = LEAST && MOST ? 2 : 1;
    static constexpr bool FIRST = !LEAST, SECOND = true;
    /* Values that share words with the number of blocks. */
    static constexpr bool COUNTED = !PLACES && !WIDE;
    typedef typename cr_best_types<D, false, false, WIDE>::rank rank;
};

/* A rank, and the number of the element in the array that holds it (without PLACES: anything). */
template <class rank_type, class place_type, bool PLACES>
struct cr_best_found {
    rank_type rank;
    place_type at;

    CR_DEVICE void take(const cr_best_found &other) {
        const bool better = other.rank < rank || (PLACES && other.rank == rank && other.at < at);
        rank = better ? other.rank : rank;
        if (PLACES) at = better ? other.at : at;
    }
    CR_DEVICE void meet_warp() {
        const rank_type best = cr_warp_rank(rank);
        if (PLACES) at = cr_warp_rank(best == rank ? at : (place_type)~(place_type)0);
        rank = best;
    }
};

/* What threads have found, from there to the answer. Places are numbers of elements in the array, as place_type holds them; NONE:
 * there is no such element. */
template <cr_dtype D, unsigned WANTED, class place_type>
struct cr_extrema_found : cr_extrema_wanted<D, WANTED> {
    typedef cr_extrema_wanted<D, WANTED> is;
    typedef typename is::rank rank;
    typedef cr_best_found<rank, place_type, is::PLACES> winner;
    static constexpr place_type NONE = (place_type) ~(place_type)0;
    static constexpr int SIDES = is::SIDES, NAN_LETTER = CR_MAIL_LETTERS - 1;
    static constexpr unsigned room_for(unsigned warps) { return (2 * SIDES + 1) * warps; }

    winner best[SIDES];
    place_type nan;

    CR_DEVICE void clear() {
#pragma unroll
        for (int k = 0; k < SIDES; k++) best[k] = {CR_NO_RANK(rank), NONE};
        nan = NONE;
    }
    /* A single element. */
    CR_DEVICE void single(uint64_t bits, place_type place) {
        if (cr_is_nan<D>(bits)) {
            nan = min(nan, place);
            return;
        }
        const rank key = (rank)cr_key_of<D>(bits);
        if (is::LEAST) best[0].take({key, place});
        if (is::MOST) best[SIDES - 1].take({(rank)~key, place});
    }
    /* All threads of the block; room: room_for(WARPS) words of shared memory. */
    template <int WARPS>
    CR_DEVICE void leave(const cr_fold_args &args, uint64_t *room) {
        collect<WARPS>(args);
#pragma unroll
        for (int k = 0; k < SIDES; k++) best[k].meet_warp();
        leave_warps<WARPS>(args, room);
    }
    /* Likewise, when `best` is the warp's already. */
    template <int WARPS>
    CR_DEVICE void leave_warps(const cr_fold_args &args, uint64_t *room) {
        show<WARPS>(room);
        __syncthreads();
        if (threadIdx.x < CR_WARP) tell<WARPS>(args, room);
    }
    static CR_DEVICE bool is_last(const cr_fold_args &args) { return blockIdx.x == args.plan.blocks - 1; }
    static CR_DEVICE place_type least_nan(place_type x) {
        if (!__any_sync(CR_EVERYONE, x != NONE)) return NONE;
        return is::PLACES ? cr_warp_rank(x) : 0;
    }
    /* A warp's best, to the block's first warp: which tells it behind a barrier. */
    template <int WARPS>
    CR_DEVICE void show(uint64_t *room) {
        const uint32_t warp = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
        if (is::FLOAT) nan = least_nan(nan);
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            if (lane == 0) {
                room[2 * k * WARPS + warp] = best[k].rank;
                if (is::PLACES) room[(2 * k + 1) * WARPS + warp] = best[k].at;
            }
        }
        if (is::FLOAT && lane == 0) room[2 * SIDES * WARPS + warp] = nan;
    }
    template <int WARPS>
    CR_DEVICE void tell(const cr_fold_args &args, const uint64_t *room) {
        const uint32_t other = threadIdx.x % WARPS;
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            best[k] = {(rank)room[2 * k * WARPS + other], is::PLACES ? (place_type)room[(2 * k + 1) * WARPS + other] : 0};
            best[k].meet_warp();
        }
        if (is::FLOAT) nan = least_nan((place_type)room[2 * SIDES * WARPS + other]);
        if (is::COUNTED ? threadIdx.x >= SIDES : threadIdx.x != 0) return;
        if constexpr (is::COUNTED) {
            const int k = SIDES == 1 ? 0 : (int)threadIdx.x; /* a thread a side, so that their ways to memory are one */
            if (SIDES == 2 && k == 1) best[0] = best[SIDES - 1];
            if (count(args, k)) put(args, k);
        } else if (is_last(args)) {
#pragma unroll
            for (int k = 0; k < SIDES; k++) put(args, k);
        } else {
            send(args);
        }
    }
    /* Adds a block's rank to the word: its complement in the upper half, of which the highest stays; in the lower half the blocks
     * and, 16 bits up, those with NaNs. A thread's operations on one word stay in order, so the addition that finds all other
     * blocks counted finds their ranks as well. Whether this is that one: then rank and nan are those of all. */
    CR_DEVICE bool count(const cr_fold_args &args, int k) {
        if (args.plan.blocks == 1) return true;
        unsigned long long *word = &args.state->counted[k];
        cr_raise_upper(word, ~(uint32_t)best[0].rank);
        const uint64_t here = nan == NONE ? 1 : 0x10001, all = atomicAdd(word, (unsigned long long)here) + here;
        if ((all & 0xffff) != args.plan.blocks) return false;
        *word = 0;
        best[0].rank = (rank)~(uint32_t)(all >> 32);
        nan = (all & 0xffff0000) != 0 ? 0 : NONE;
        return true;
    }
    CR_DEVICE void send(const cr_fold_args &args) const {
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            const uint64_t at = is::PLACES ? (uint64_t)best[k].at << 2 : 0;
            cr_letter_write(args.state->mail[k][blockIdx.x], best[k].rank, at | (nan != NONE ? 3 : 1));
        }
        if (is::FLOAT && is::PLACES && nan != NONE) cr_letter_write(args.state->mail[NAN_LETTER][blockIdx.x], nan, 1);
    }
    static CR_DEVICE uint64_t open(unsigned long long *mail, uint64_t &first) {
        uint64_t second;
        do {
            cr_letter_read(mail, first, second);
        } while (second == 0);
        cr_letter_write(mail, 0, 0);
        return second;
    }
    /* In the last block each thread takes the mail of some of the others, before they meet, and leaves zero behind. */
    template <int WARPS>
    CR_DEVICE void collect(const cr_fold_args &args) {
        if constexpr (!is::COUNTED) {
            if (!is_last(args)) return;
#pragma unroll 1
            for (uint32_t block = threadIdx.x; block < blockIdx.x; block += WARPS * CR_WARP) take_mail(args, block);
        }
    }
    CR_DEVICE void take_mail(const cr_fold_args &args, uint32_t block) {
        uint64_t first, second = 0;
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            second = open(args.state->mail[k][block], first);
            best[k].take({(rank)first, (place_type)(second >> 2)});
        }
        if (!is::FLOAT || !(second & 2)) return;
        first = 0;
        if (is::PLACES) open(args.state->mail[NAN_LETTER][block], first);
        nan = min(nan, (place_type)first);
    }
    /* Side k, which lies in best[0] where sides are counted. Without places an index only says that there is such an element: 0. No
     * element but NaNs: as cr_partial_init left it. */
    CR_DEVICE void put(const cr_fold_args &args, int k) const {
        cr_partial *out = &args.slot->partial;
        const winner &mine = best[is::COUNTED ? 0 : k];
        if (k == 0) out->first_nan = nan == NONE ? UINT64_MAX : is::PLACES ? args.index + nan : 0;
        if (is::FLOAT && mine.rank == CR_NO_RANK(rank)) return;
        const uint64_t index = is::PLACES ? args.index + mine.at : 0;
        if (is::LEAST && k == 0) {
            out->min.key = mine.rank;
            out->min.index = index;
        }
        if (is::MOST && k == SIDES - 1) {
            out->max.key = (rank)~mine.rank;
            out->max.index = index;
        }
    }
};

/* Extrema on the walk. */
template <cr_dtype D, unsigned WANTED = CR_WANTS_ALL>
struct cr_fold_extrema {
    typedef cr_extrema_wanted<D, WANTED> is;
    static constexpr unsigned WIDTH = is::WIDTH, LANES = is::LANES;
    static constexpr int BLOCKS = CR_GPU_BLOCKS_PER_SM, UNROLL = CR_GPU_FEWER, SIDES = is::SIDES;
    static constexpr bool FLOAT = is::FLOAT, PLACES = is::PLACES, FIRST = is::FIRST, SECOND = is::SECOND;
    /* What a block takes comes in the array's order, so places rise in a thread. Together with others runs were faster. */
    static constexpr bool CHUNKED = SIDES == 1;
    /* Runs are short enough for places that count from the block's first element. */
    typedef std::conditional_t<PLACES && CHUNKED, uint64_t, uint32_t> place_type;
    typedef cr_extrema_found<D, WANTED, place_type> found_type;
    typedef cr_extrema_found<D, WANTED, std::conditional_t<PLACES, uint64_t, uint32_t>> wide_type;
    typedef typename is::rank rank;
    template <bool SIDE, bool NUMBERS>
    using scanned = typename cr_best_types<D, SIDE, NUMBERS, is::WIDE, SIDES == 1>::best;
    static constexpr unsigned ROOM = wide_type::room_for(CR_WARPS);

    found_type found;
    const cr_fold_args *args;

    CR_DEVICE void begin(const cr_fold_args &given) {
        args = &given;
        found.clear();
        /* The single elements: the first block has the head, the last one the tail; its loads come back meanwhile. */
        if (blockIdx.x == 0 && threadIdx.x < args->plan.head) single(threadIdx.x);
        if (last() && threadIdx.x < args->plan.tail) cr_prefetch(args->data + tail() * WIDTH);
    }
    CR_DEVICE bool last() const { return blockIdx.x == args->plan.blocks - 1; }
    CR_DEVICE uint64_t tail() const { return args->plan.head + args->plan.vectors * LANES + threadIdx.x; }
    /* The number of the element where this block's places begin. */
    CR_DEVICE uint64_t first() const { return CHUNKED ? 0 : blockIdx.x * args->plan.per_block * LANES; }
    typedef decltype(wide_type::nan) wide_place;
    CR_DEVICE wide_place widened(place_type at) const {
        if (at == found_type::NONE) return wide_type::NONE;
        return PLACES ? (wide_place)(first() + at) : 0;
    }
    CR_DEVICE void single(uint64_t element) {
        found.single(cr_load_one<WIDTH>(args->data + element * WIDTH), PLACES ? (place_type)(element - first()) : 0);
    }
    /* Of the first such element of a tile that has one: then what lies beyond its vectors is not it. */
    CR_DEVICE place_type place(uint64_t vector, uint32_t number) const {
        if (!PLACES) return 0;
        if (CHUNKED) return (place_type)(args->plan.head + vector * LANES + number);
        return args->plan.head + (uint32_t)(vector - blockIdx.x * args->plan.per_block) * LANES + number;
    }
    template <bool SIDE, bool NUMBERS, int U>
    static CR_DEVICE scanned<SIDE, NUMBERS> best_among(const uint4 (&v)[U], uint32_t count) {
        scanned<SIDE, NUMBERS> best(v[0]);
#pragma unroll
        for (int j = 1; j < U; j++) {
            scanned<SIDE, NUMBERS> more = best;
            more.also(scanned<SIDE, NUMBERS>(v[j]));
            best.choose(j < (int)count, more);
        }
        return best;
    }
    template <bool SIDE, int U>
    CR_DEVICE void take(typename found_type::winner &side, rank now, const uint4 (&v)[U], uint64_t vector) {
        if (!PLACES) {
            side.rank = now < side.rank ? now : side.rank;
        } else if (now < side.rank || side.at == found_type::NONE) {
            uint32_t number;
            cr_first<D, false, CR_GPU_THREADS>(v, cr_bits_of<D>(SIDE ? (rank)~now : now), number);
            side = {now, place(vector, number)};
        }
    }
    /* A tile with a NaN in it; or, if there is none, with zeros. */
    template <int U>
    CR_DEVICE void take_numbers(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        uint32_t number;
        if (found.nan == found_type::NONE && cr_first<D, true, CR_GPU_THREADS>(v, 0, number)) found.nan = place(vector, number);
        const rank first = best_among<FIRST, true>(v, count).rank();
        if (first == CR_NO_RANK(rank)) return;
        take<FIRST>(found.best[0], first, v, vector);
        if (SIDES == 2) take<SECOND>(found.best[SIDES - 1], best_among<SECOND, true>(v, count).rank(), v, vector);
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        if (count == 0) return;
        const scanned<FIRST, false> first = best_among<FIRST, false>(v, count);
        if (FLOAT && first.nan()) {
            take_numbers(v, vector, count);
            return;
        }
        take<FIRST>(found.best[0], first.rank(), v, vector);
        if (SIDES == 2) take<SECOND>(found.best[SIDES - 1], best_among<SECOND, false>(v, count).rank(), v, vector);
    }
    CR_DEVICE void one(uint64_t) {} /* see begin */

    CR_DEVICE void leave(const cr_fold_args &, uint64_t *room) {
        if (last() && threadIdx.x < args->plan.tail) single(tail());
        wide_type wide;
        wide.nan = widened(found.nan);
#pragma unroll
        for (int k = 0; k < SIDES; k++) wide.best[k] = {found.best[k].rank, widened(found.best[k].at)};
        wide.template leave<CR_WARPS>(*args, room);
    }
};

#endif
