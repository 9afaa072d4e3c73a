/* acc_extrema: minimum, maximum, their lowest indices, and the first NaN; or those of them that are wanted.
 *
 * A thread knows the best element of its tiles, as a rank, and where it came first: only a tile that is better than all before
 * it is looked through for the place. A NaN shows in a tile's best; a tile that has one is gone over again without it. Memory that
 * changes meanwhile gives some answer, and an index in the array.
 *
 * Between blocks: one value of 32 bits at most meets the others in a word that also counts the blocks. Anything longer is mailed to the
 * last block. What happens there is short: whoever comes last waits for each line of code to be fetched (docs/KERNELS.md).
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_ACC_EXTREMA_CUH
#define CURED_KERNELS_CUDA_ACC_EXTREMA_CUH

#include "kernels/cuda/acc_keys.cuh"

/* Places of a thread count from its block's first element: 2^26 at most, by CR_FOLD_MAX and CR_GPU_MAX_BLOCKS. */
enum { CR_PLACE_NONE = 0x3fffffff };
#define CR_NOWHERE UINT64_MAX

CR_DEVICE uint32_t cr_warp_rank(uint32_t rank) { return __reduce_min_sync(CR_EVERYONE, rank); }
CR_DEVICE uint64_t cr_warp_rank(uint64_t rank) { return cr_warp_min(rank); }

/* The best of a thread's tiles. */
template <class rank_type>
struct cr_best_seen {
    rank_type rank;
    uint32_t at;

    template <bool PLACES>
    CR_IN void take(rank_type other, uint32_t place) { /* places rise: the first one stays */
        const bool better = other < rank || (PLACES && at == CR_PLACE_NONE);
        rank = better ? other : rank;
        if (PLACES) at = better ? place : at;
    }
};

/* Words that another block writes or has written, two side by side, of which each may be there alone; and the upper half of a word,
 * of which the highest value stays. */
#if defined(__CUDA_ARCH__)
CR_DEVICE void cr_raise_upper(unsigned long long *word, uint32_t value) {
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"((uint32_t *)word + 1), "r"(value) : "memory");
}
CR_DEVICE void cr_mail_read(const unsigned long long *at, uint64_t &first, uint64_t &second) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(at) : "memory");
}
CR_DEVICE void cr_mail_write(unsigned long long *at, uint64_t first, uint64_t second) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(first), "l"(second) : "memory");
}
#else
CR_DEVICE void cr_raise_upper(unsigned long long *word, uint32_t value) {
    if (*word >> 32 < value) *word = cr_pair((uint32_t)*word, value);
}
CR_DEVICE void cr_mail_read(const unsigned long long *at, uint64_t &first, uint64_t &second) {
    first = at[0];
    second = at[1];
}
CR_DEVICE void cr_mail_write(unsigned long long *at, uint64_t first, uint64_t second) {
    at[0] = first;
    at[1] = second;
}
#endif

/* A block's best, of one side: a rank, and the input's index. As words with the lowest bit set, so that who reads them knows that
 * they are there and needs no fence: the rank's upper 32 bits and whether the block has a NaN, its lower 32, the index. */
template <class rank_type, bool PLACES>
struct cr_best_found {
    static constexpr int WORDS = sizeof(rank_type) / 4 + PLACES;
    rank_type rank;
    uint64_t index;

    CR_IN void take(const cr_best_found &other) {
        const bool better = other.rank < rank || (PLACES && other.rank == rank && other.index < index);
        rank = better ? other.rank : rank;
        if (PLACES) index = better ? other.index : index;
    }
    CR_IN void meet_warp() {
        const rank_type best = cr_warp_rank(rank);
        if (PLACES) index = cr_warp_min(best == rank ? index : CR_NOWHERE);
        rank = best;
    }
    CR_IN void write(uint64_t *word, bool nan) const {
        word[0] = cr_pair(nan ? 3 : 1, (uint32_t)(rank >> (8 * sizeof rank - 32)));
        if (sizeof rank == 8) word[1] = cr_pair(1, (uint32_t)rank);
        if (PLACES) word[WORDS - 1] = index << 1 | 1;
    }
    CR_IN void read(const uint64_t *word) {
        rank = (rank_type)(word[0] >> 32);
        if (sizeof rank == 8) rank = (rank_type)((word[0] >> 32 << 32) | word[1] >> 32);
        if (PLACES) index = word[WORDS - 1] >> 1;
    }
};

/* WANTED: CR_WANTS_... */
template <cr_dtype D, unsigned WANTED = CR_WANTS_ALL>
struct cr_fold_extrema {
    static constexpr unsigned WIDTH = cr_width(D), LANES = CR_GPU_VECTOR / WIDTH;
    static constexpr int BLOCKS = CR_GPU_BLOCKS_PER_SM, UNROLL = CR_GPU_FEWER;
    static constexpr bool FLOAT = cr_is_float(D), WIDE = WIDTH == 8, PLACES = (WANTED & (CR_WANTS_ARGMIN | CR_WANTS_ARGMAX)) != 0;
    static constexpr bool LEAST = (WANTED & CR_WANTS_MIN) != 0, MOST = (WANTED & CR_WANTS_MAX) != 0;
    /* extrema wanted, the first of them, the other one if there are two */
    static constexpr int SIDES = LEAST && MOST ? 2 : 1;
    static constexpr bool FIRST = !LEAST, SECOND = true;
    template <bool SIDE, bool NUMBERS>
    using scanned = typename cr_best_types<D, SIDE, NUMBERS, WIDE>::best;
    typedef typename cr_best_types<D, false, false, WIDE>::rank rank;
    typedef cr_best_found<rank, PLACES> winner;
    /* One value that shares a word with the number of blocks. */
    static constexpr bool COUNTED = SIDES == 1 && !PLACES && !WIDE;
    /* Then it is all the same which elements a warp takes: see walk.cuh. */
    static constexpr bool CHUNKED = !PLACES;
    static constexpr int WORDS = SIDES * winner::WORDS, NAN_WORD = CR_MAIL_WORDS - 2;
    static_assert((WORDS + 1) / 2 * 2 <= NAN_WORD, "the mail has a word for each");
    static constexpr unsigned ROOM = (2 * SIDES + 1) * CR_WARPS;

    cr_best_seen<rank> seen[SIDES];
    uint32_t nan_at;
    const cr_fold_args *args;

    CR_IN void begin(const cr_fold_args &given) {
        args = &given;
#pragma unroll
        for (int k = 0; k < SIDES; k++) seen[k] = {CR_NO_RANK(rank), (uint32_t)CR_PLACE_NONE};
        nan_at = CR_PLACE_NONE;
        /* The single elements: the first block has the head, the last one the tail; its loads come back meanwhile. */
        if (blockIdx.x == 0 && threadIdx.x < args->plan.head) single(threadIdx.x, threadIdx.x);
        if (last() && threadIdx.x < args->plan.tail) cr_prefetch(args->data + tail() * WIDTH);
    }
    CR_IN bool last() const { return blockIdx.x == args->plan.blocks - 1; }
    CR_IN uint64_t tail() const { return args->plan.head + args->plan.vectors * LANES + threadIdx.x; }

    CR_IN void single(uint64_t element, uint32_t place) {
        const uint64_t bits = cr_load_one<WIDTH>(args->data + element * WIDTH);
        if (cr_is_nan<D>(bits)) {
            nan_at = min(nan_at, place);
            return;
        }
        const rank key = (rank)cr_key_of<D>(bits);
        if (LEAST) seen[0].template take<PLACES>(key, place);
        if (MOST) seen[SIDES - 1].template take<PLACES>((rank)~key, place);
    }
    /* Of the first such element of a tile that has one: then what lies beyond its vectors is not it. */
    template <bool NAN_WANTED, int U>
    CR_IN uint32_t place(const uint4 (&v)[U], uint64_t vector, uint64_t bits) const {
        uint32_t number;
        cr_first<D, NAN_WANTED, CR_GPU_THREADS>(v, bits, number);
        return args->plan.head + (uint32_t)(vector - blockIdx.x * args->plan.per_block) * LANES + number;
    }
    template <bool SIDE, bool NUMBERS, int U>
    static CR_IN scanned<SIDE, NUMBERS> best_among(const uint4 (&v)[U], uint32_t count) {
        scanned<SIDE, NUMBERS> found(v[0]);
#pragma unroll
        for (int j = 1; j < U; j++) {
            scanned<SIDE, NUMBERS> more = found;
            more.also(scanned<SIDE, NUMBERS>(v[j]));
            found.choose(j < (int)count, more);
        }
        return found;
    }
    template <bool SIDE, int U>
    CR_IN void take(cr_best_seen<rank> &side, rank found, const uint4 (&v)[U], uint64_t vector) {
        if (!PLACES) {
            side.rank = found < side.rank ? found : side.rank;
        } else if (found < side.rank || side.at == CR_PLACE_NONE) {
            side.rank = found;
            const uint64_t bits = cr_bits_of<D>(SIDE ? (rank)~found : found);
            side.at = place<false>(v, vector, bits);
        }
    }
    /* A tile with a NaN in it. */
    template <int U>
    CR_IN void take_numbers(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        if (nan_at == CR_PLACE_NONE) nan_at = PLACES ? place<true>(v, vector, 0) : 0;
        const rank first = best_among<FIRST, true>(v, count).rank();
        if (first == CR_NO_RANK(rank)) return;
        take<FIRST>(seen[0], first, v, vector);
        if (SIDES == 2) take<SECOND>(seen[SIDES - 1], best_among<SECOND, true>(v, count).rank(), v, vector);
    }
    template <int U>
    CR_IN void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        if (count == 0) return;
        const scanned<FIRST, false> first = best_among<FIRST, false>(v, count);
        if (FLOAT && first.nan()) {
            take_numbers(v, vector, count);
            return;
        }
        take<FIRST>(seen[0], first.rank(), v, vector);
        if (SIDES == 2) take<SECOND>(seen[SIDES - 1], best_among<SECOND, false>(v, count).rank(), v, vector);
    }
    CR_IN void one(uint64_t) {} /* see begin */

    CR_IN void leave(const cr_fold_args &, uint64_t *room) {
        if (last() && threadIdx.x < args->plan.tail) {
            const uint64_t at = tail();
            single(at, (uint32_t)(at - blockIdx.x * args->plan.per_block * LANES));
        }
        const uint64_t first = args->index + blockIdx.x * args->plan.per_block * LANES;
        uint64_t nan = nan_at == CR_PLACE_NONE ? CR_NOWHERE : PLACES ? first + nan_at : 0;
        winner best[SIDES];
#pragma unroll
        for (int k = 0; k < SIDES; k++) best[k] = {seen[k].rank, PLACES ? first + seen[k].at : 0};
        if (!COUNTED && last()) collect(best, nan);
        meet(best, nan, room);
        if (threadIdx.x != 0) return;
        if (COUNTED) {
            if (count(best[0].rank, nan)) put(best, nan);
        } else if (last()) {
            put(best, nan);
        } else {
            send(best, nan);
        }
    }
    /* The block's best, in its first warp. */
    CR_IN void meet(winner (&best)[SIDES], uint64_t &nan, uint64_t *room) const {
        const uint32_t warp = threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP, other = lane % CR_WARPS;
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            best[k].meet_warp();
            if (lane == 0) {
                room[2 * k * CR_WARPS + warp] = best[k].rank;
                if (PLACES) room[(2 * k + 1) * CR_WARPS + warp] = best[k].index;
            }
        }
        if (FLOAT && __syncthreads_or(nan != CR_NOWHERE)) {
            nan = cr_warp_min(nan);
            if (lane == 0) room[2 * SIDES * CR_WARPS + warp] = nan;
            __syncthreads();
            nan = cr_warp_min(room[2 * SIDES * CR_WARPS + other]);
        }
        if (!FLOAT) __syncthreads();
        if (warp != 0) return;
#pragma unroll
        for (int k = 0; k < SIDES; k++) {
            best[k] = {(rank)room[2 * k * CR_WARPS + other], PLACES ? room[(2 * k + 1) * CR_WARPS + other] : 0};
            best[k].meet_warp();
        }
    }
    /* Adds a block's rank to the word: its complement in the upper half, of which the highest stays; in the lower half the blocks
     * and, 16 bits up, those with NaNs. A thread's operations on one word stay in order, so the addition that finds all other
     * blocks counted finds their ranks as well. Whether this is that one: then rank and nan are those of all. */
    CR_IN bool count(rank &best, uint64_t &nan) const {
        if (args->plan.blocks == 1) return true;
        unsigned long long *word = args->state->mail[0];
        cr_raise_upper(word, ~(uint32_t)best);
        const uint64_t here = nan == CR_NOWHERE ? 1 : 0x10001, all = atomicAdd(word, (unsigned long long)here) + here;
        if ((all & 0xffff) != args->plan.blocks) return false;
        *word = 0;
        best = (rank)~(uint32_t)(all >> 32);
        nan = (all & 0xffff0000) != 0 ? 0 : CR_NOWHERE;
        return true;
    }
    CR_IN void send(const winner (&best)[SIDES], uint64_t nan) const {
        unsigned long long *mail = args->state->mail[blockIdx.x];
        uint64_t word[WORDS + 1] = {};
#pragma unroll
        for (int k = 0; k < SIDES; k++) best[k].write(word + k * winner::WORDS, nan != CR_NOWHERE);
#pragma unroll
        for (int i = 0; i < WORDS; i += 2) cr_mail_write(mail + i, word[i], word[i + 1]);
        if (FLOAT && PLACES && nan != CR_NOWHERE) cr_mail_write(mail + NAN_WORD, nan << 1 | 1, 0);
    }
    /* The last block: each thread takes the mail of some of the others, and leaves zero behind. */
    CR_IN void collect(winner (&best)[SIDES], uint64_t &nan) const {
#pragma unroll 1
        for (uint32_t block = threadIdx.x; block < blockIdx.x; block += CR_GPU_THREADS) {
            unsigned long long *mail = args->state->mail[block];
            uint64_t word[WORDS + 1];
            bool there;
            do {
                there = true;
#pragma unroll
                for (int i = 0; i < WORDS; i += 2) cr_mail_read(mail + i, word[i], word[i + 1]);
#pragma unroll
                for (int i = 0; i < WORDS; i++) there = there && (word[i] & 1);
            } while (!there);
#pragma unroll
            for (int i = 0; i < WORDS; i += 2) cr_mail_write(mail + i, 0, 0);
#pragma unroll
            for (int k = 0; k < SIDES; k++) {
                winner other = {0, 0};
                other.read(word + k * winner::WORDS);
                best[k].take(other);
            }
            if (FLOAT && word[0] & 2) nan = min(nan, PLACES ? nan_of(mail + NAN_WORD) : 0);
        }
    }
    static CR_IN uint64_t nan_of(unsigned long long *mail) {
        uint64_t word, unused;
        do {
            cr_mail_read(mail, word, unused);
        } while (word == 0);
        cr_mail_write(mail, 0, 0);
        return word >> 1;
    }
    /* Without places an index only says that there is such an element: 0. No element but NaNs: as cr_partial_init left it. */
    CR_IN void put(const winner (&best)[SIDES], uint64_t nan) const {
        cr_partial *out = &args->slot->partial;
        out->first_nan = nan;
        if (FLOAT && best[0].rank == CR_NO_RANK(rank)) return;
        if (LEAST) out->min.key = best[0].rank;
        if (LEAST) out->min.index = best[0].index;
        if (MOST) out->max.key = (rank)~best[SIDES - 1].rank;
        if (MOST) out->max.index = best[SIDES - 1].index;
    }
};

#endif
