/* acc_extrema: minimum, maximum, their lowest indices, and the first NaN.
 *
 * Elements become keys of their own width, ordered as the values are (−0 below +0), compared lane by lane. A thread only notes
 * in which of its tiles the best key came first; when the array's best is known, the last block looks for the index there.
 *
 * A NaN's key lies beyond an infinity's, so a tile whose keys stay within the infinities has none, at no extra cost; one that
 * has is gone over again with the NaNs masked. Memory that changes meanwhile gives some answer, and an index in the array.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_ACC_EXTREMA_CUH
#define CURED_KERNELS_CUDA_ACC_EXTREMA_CUH

#include "kernels/cuda/acc_keys.cuh"

/* Whether any of a vector's elements is. */
template <cr_dtype D>
CR_DEVICE bool cr_vector_wanted(const uint4 &v, uint64_t bits, bool nan) {
    if constexpr (cr_width(D) == 8)
        return cr_wanted<D>(cr_word64(v, 0), bits, nan) || cr_wanted<D>(cr_word64(v, 1), bits, nan);
    bool found = false;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t w = cr_word(v, i), low = (uint32_t)bits;
        if (cr_width(D) == 4) found |= cr_wanted<D>(w, bits, nan);
        if (cr_width(D) == 2) {
            found |= cr_is_float(D) && nan ? cr_keys<D>::nan_lanes(w) != 0
                                           : cr_nonzero_halves(w ^ low * 0x00010001u) != 0x80008000u;
        }
        if (D == CR_BOOL) found |= cr_nonzero_bytes(w) != (low ? 0 : 0x80808080u);
        if (cr_width(D) == 1 && D != CR_BOOL) found |= cr_nonzero_bytes(w ^ low * 0x01010101u) != 0x80808080u;
    }
    return found;
}

#define CR_NOWHERE UINT64_MAX

/* The lowest index among U of this thread's vectors that holds these bits, or a NaN, or CR_NOWHERE. The vectors are loaded
 * together; which of them it is comes first, where in it second. */
template <cr_dtype D, int U>
CR_DEVICE uint64_t cr_search(const cr_fold_args &args, uint64_t vector, uint64_t bits, bool nan) {
    constexpr unsigned WIDTH = cr_width(D), LANES = CR_GPU_VECTOR / WIDTH;
    const uint64_t end = args.plan.vectors;
    const uint4 *body = cr_body<(int)WIDTH>(args);
    uint4 v[U];
    const int64_t left = min((int64_t)(end - vector), (int64_t)(U * CR_GPU_THREADS));
    const uint32_t count = cr_load<U, U <= CR_GPU_SHIFTED>(v, body + vector, args.plan.shift, (int)left);
    uint32_t which = 0;
#pragma unroll
    for (int j = 0; j < U; j++) {
        if (cr_vector_wanted<D>(v[j], bits, nan) && j < (int)count) which |= 1u << j;
    }
    if (which == 0) return CR_NOWHERE;
    vector += (uint64_t)(__ffs((int)which) - 1) * CR_GPU_THREADS;
    uint4 one[1];
    cr_load<1>(one, body, args.plan.shift, vector, end);
    uint64_t lane = CR_NOWHERE; /* it may be gone again */
#pragma unroll
    for (int e = LANES - 1; e >= 0; e--) {
        if (cr_wanted<D>(cr_element<WIDTH>(one[0], (unsigned)e), bits, nan)) lane = (uint64_t)e;
    }
    return lane == CR_NOWHERE ? lane : cr_index_of<(int)WIDTH>(args, vector) + lane;
}

/* Where a best key was first seen: a tile, by its first vector, in CR_GPU_THREADS; or only among the single elements. */
enum { CR_PLACE_EDGE = 0x7ffffffe, CR_PLACE_NONE = 0x7fffffff };
#define CR_MAILED 0x80000000u

/* Best keys and their places. most is complemented, so that the least is the best. */
template <class key>
struct cr_best {
    key least, most;
    uint32_t least_at, most_at, nan_at;

    CR_IN void take_least(key k, uint32_t at) {
        if (k < least || (k == least && at < least_at)) {
            least = k;
            least_at = at;
        }
    }
    CR_IN void take_most(key k, uint32_t at) {
        if (k < most || (k == most && at < most_at)) {
            most = k;
            most_at = at;
        }
    }
    /* The block's best, in every thread. room: 5·CR_WARPS words. */
    CR_IN void meet(uint64_t *room) {
        if (sizeof(key) == 4) {
            uint64_t x[3] = {cr_pair(least_at, (uint32_t)least), cr_pair(most_at, (uint32_t)most), nan_at};
            cr_block_min(x, room);
            least = (key)(x[0] >> 32);
            most = (key)(x[1] >> 32);
            least_at = (uint32_t)x[0];
            most_at = (uint32_t)x[1];
            nan_at = (uint32_t)x[2];
            return;
        }
        uint64_t keys[2] = {least, most};
        cr_block_min(keys, room);
        const uint32_t none = CR_PLACE_NONE;
        uint64_t at[3] = {least == keys[0] ? least_at : none, most == keys[1] ? most_at : none, nan_at};
        cr_block_min(at, room + 2 * CR_WARPS);
        least = (key)keys[0];
        most = (key)keys[1];
        least_at = (uint32_t)at[0];
        most_at = (uint32_t)at[1];
        nan_at = (uint32_t)at[2];
    }
    /* Words that say themselves that they are there, so that who reads them needs no fence: see cr_mail. */
    static constexpr int WORDS = sizeof(key) == 4 ? 3 : 5;
    CR_IN void send(cr_mail *to) const {
        volatile unsigned long long *word = to->word;
        const unsigned high = 8 * sizeof(key) - 32; /* of a key, the upper 32 bits */
        word[0] = cr_pair(least_at | CR_MAILED, (uint32_t)(least >> high));
        word[1] = cr_pair(most_at | CR_MAILED, (uint32_t)(most >> high));
        word[2] = nan_at | CR_MAILED;
        if (WORDS == 3) return;
        word[3] = cr_pair(CR_MAILED, (uint32_t)least);
        word[4] = cr_pair(CR_MAILED, (uint32_t)most);
    }
    static CR_IN bool peek(const cr_mail *from, uint64_t (&word)[WORDS]) {
        uint32_t there = CR_MAILED;
#pragma unroll
        for (int i = 0; i < WORDS; i++) word[i] = ((const volatile unsigned long long *)from->word)[i];
#pragma unroll
        for (int i = 0; i < WORDS; i++) there &= (uint32_t)word[i];
        return there != 0;
    }
    CR_IN void receive(const uint64_t (&word)[WORDS]) {
        key a = (key)(word[0] >> 32), b = (key)(word[1] >> 32);
        if (WORDS != 3) {
            a = (key)((uint64_t)a << 32 | word[WORDS - 2] >> 32);
            b = (key)((uint64_t)b << 32 | word[WORDS - 1] >> 32);
        }
        take_least(a, (uint32_t)word[0] & CR_PLACE_NONE);
        take_most(b, (uint32_t)word[1] & CR_PLACE_NONE);
        nan_at = min(nan_at, (uint32_t)word[2] & CR_PLACE_NONE);
    }
};

/* Takes the mail of blocks threadIdx.x, threadIdx.x + CR_GPU_THREADS, … below `blocks`, and leaves zero behind. */
template <class key>
CR_DEVICE void cr_receive_all(cr_best<key> &best, cr_mail *mail, uint32_t blocks) {
    constexpr int WORDS = cr_best<key>::WORDS, TOGETHER = 4;
    for (uint32_t first = threadIdx.x; first < blocks; first += TOGETHER * CR_GPU_THREADS) {
        uint64_t word[TOGETHER][WORDS];
        uint32_t there = 0;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const uint32_t block = first + (uint32_t)i * CR_GPU_THREADS;
            if (block < blocks && cr_best<key>::peek(&mail[block], word[i])) there |= 1u << i;
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const uint32_t block = first + (uint32_t)i * CR_GPU_THREADS;
            if (block >= blocks) continue;
            if (!(there >> i & 1)) {
                while (!cr_best<key>::peek(&mail[block], word[i])) {
                }
            }
            best.receive(word[i]);
#pragma unroll
            for (int k = 0; k < WORDS; k++) mail[block].word[k] = 0;
        }
    }
}

template <cr_dtype D>
struct cr_fold_extrema {
    static constexpr unsigned WIDTH = cr_width(D), ROOM = 8 * CR_WARPS;
    static constexpr int BLOCKS = CR_GPU_BLOCKS_PER_SM, UNROLL = CR_GPU_FEWER;
    static constexpr bool FLOAT = cr_is_float(D);
    typedef typename cr_key_types<D, cr_width(D) == 8>::keys keys;
    typedef typename cr_key_types<D, cr_width(D) == 8>::key key;
    static constexpr uint64_t TOP = 1ull << (8 * cr_width(D) - 1);
    /* Keys of the infinities: beyond them are only NaNs. */
    static constexpr key PLUS = FLOAT ? (key)(cr_infinity(D) | TOP) : 0,
                         MINUS = FLOAT ? (key)(TOP - 1 - cr_infinity(D)) : 0;

    cr_best<key> found;
    const cr_fold_args *args;

    CR_IN void begin(const cr_fold_args &given) {
        args = &given;
        found.least = found.most = ~(key)0;
        found.least_at = found.most_at = found.nan_at = CR_PLACE_NONE;
    }
    /* In short arrays a place is the element's own number: nothing is left to look for. */
    CR_IN bool exact() const { return args->plan.blocks == 1 || args->plan.per_block <= 2 * CR_GPU_SMALL; }
    /* Of the first such element of a tile that has one. */
    template <int U>
    CR_IN uint32_t place_of(const uint4 (&v)[U], uint64_t vector, uint32_t count, uint64_t bits, bool nan) const {
        if (!exact()) return (uint32_t)(vector / CR_GPU_THREADS);
        constexpr uint32_t LANES = CR_GPU_VECTOR / WIDTH;
        uint32_t number = 0;
#pragma unroll
        for (int j = U - 1; j >= 0; j--) {
            if (j >= (int)count) continue;
#pragma unroll
            for (int e = (int)LANES - 1; e >= 0; e--) {
                if (cr_wanted<D>(cr_element<WIDTH>(v[j], (unsigned)e), bits, nan)) {
                    number = (uint32_t)j * CR_GPU_THREADS * LANES + (uint32_t)e;
                }
            }
        }
        return args->plan.head + (uint32_t)vector * LANES + number;
    }
    template <int U>
    CR_IN void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        if (count == 0) return;
        keys best;
        best.clear();
        if (count == U) {
#pragma unroll
            for (int j = 0; j < U; j++) best.vec(v[j]);
        } else { /* the same element twice changes nothing */
#pragma unroll
            for (int j = 0; j < U; j++) best.vec(cr_choose(j < (int)count, v[j], v[0]));
        }
        key low = best.best_least(), high = best.best_most();
        if (FLOAT && (high > PLUS || low < MINUS)) {
            /* Loaded once more, so that the vectors need not be kept for this. */
            const uint4 *body = cr_body<(int)WIDTH>(*args);
            const uint64_t end = vector + (uint64_t)count * CR_GPU_THREADS;
            uint32_t nans = 0;
            best.clear();
#pragma unroll 1
            for (uint64_t at = vector; at < end; at += CR_GPU_THREADS) {
                uint4 again[1];
                cr_load<1>(again, body, args->plan.shift, at, end);
                best.vec_masked(again[0], nans);
            }
            low = best.best_least();
            high = best.best_most();
            if (nans && found.nan_at == CR_PLACE_NONE) found.nan_at = place_of<U>(v, vector, count, 0, true);
            if (low > PLUS) return; /* nothing but NaNs */
        }
        /* Places rise: the first one stays. */
        if (low < found.least || found.least_at == CR_PLACE_NONE) {
            found.least = low;
            found.least_at = place_of<U>(v, vector, count, cr_bits_of<D>(low), false);
        }
        if ((key)~high < found.most || found.most_at == CR_PLACE_NONE) {
            found.most = (key)~high;
            found.most_at = place_of<U>(v, vector, count, cr_bits_of<D>(high), false);
        }
    }
    CR_IN void one(uint64_t) {} /* see edge */

    /* A single element, if this thread has one. */
    CR_IN bool edge(uint64_t &bits, uint64_t &index) {
        const cr_fold_plan &plan = args->plan;
        if (threadIdx.x >= plan.head + plan.tail) return false;
        uint64_t at = threadIdx.x;
        if (at >= plan.head) at += plan.vectors * (CR_GPU_VECTOR / WIDTH);
        bits = cr_load_one<WIDTH>(args->data + at * WIDTH);
        index = args->index + at;
        return true;
    }
    /* Each block mails what it has found to the last one, which takes the single elements too and looks for the indices
     * where they are not known yet. */
    CR_IN void leave(const cr_fold_args &, uint64_t *room) {
        const uint32_t last = gridDim.x - 1;
        if (blockIdx.x != last) {
            found.meet(room);
            if (threadIdx.x == 0) found.send(&args->state->mail[blockIdx.x]);
            return;
        }
        uint64_t bits = 0, index = 0;
        const bool has_edge = edge(bits, index), edge_nan = has_edge && cr_is_nan<D>(bits);
        const key edge_key = (key)cr_key_of<D>(bits);
        const uint32_t edge_at = exact() ? (uint32_t)(index - args->index) : (uint32_t)CR_PLACE_EDGE;
        if (has_edge && !edge_nan) {
            found.take_least(edge_key, edge_at);
            found.take_most((key)~edge_key, edge_at);
        }
        if (edge_nan && exact()) found.nan_at = min(found.nan_at, edge_at);
        cr_receive_all(found, args->state->mail, last);
        found.meet(room);
        if (exact()) {
            const uint64_t numbers[3] = {args->index + found.least_at, args->index + found.most_at,
                                         found.nan_at == CR_PLACE_NONE ? CR_NOWHERE : args->index + found.nan_at};
            if (threadIdx.x == 0) put(numbers);
            return;
        }
        uint64_t at[3] = {CR_NOWHERE, CR_NOWHERE, CR_NOWHERE};
        if (has_edge && !edge_nan && edge_key == found.least) at[0] = index;
        if (has_edge && !edge_nan && (key)~edge_key == found.most) at[1] = index;
        if (edge_nan) at[2] = index;
        look(at);
        cr_block_min(at, room + 5 * CR_WARPS);
        if (threadIdx.x == 0) put(at);
    }
    /* The indices among this thread's vectors of the tiles. */
    CR_IN void look(uint64_t (&at)[3]) const {
        if (found.most_at != found.least_at &&
            found.most_at < CR_PLACE_EDGE) { /* on its way while the other one is searched */
            const uint4 *body = cr_body<(int)WIDTH>(*args);
            for (uint64_t j = 0; j < CR_GPU_UNROLL; j++) {
                const uint64_t vector = ((uint64_t)found.most_at + j) * CR_GPU_THREADS + threadIdx.x;
                if (vector < args->plan.vectors) cr_prefetch(body + vector);
            }
        }
#pragma unroll 1
        for (int k = 0; k < (FLOAT ? 3 : 2); k++) {
            const uint32_t place = k == 0 ? found.least_at : k == 1 ? found.most_at : found.nan_at;
            if (place >= CR_PLACE_EDGE) continue;
            const uint64_t vector = (uint64_t)place * CR_GPU_THREADS + threadIdx.x;
            const uint64_t bits = cr_bits_of<D>(k == 0 ? found.least : (key)~found.most);
            const uint64_t index = args->plan.shift == 0 ? cr_search<D, CR_GPU_UNROLL>(*args, vector, bits, k == 2)
                                                         : cr_search<D, CR_GPU_SHIFTED>(*args, vector, bits, k == 2);
            if (k == 0) at[0] = min(at[0], index);
            if (k == 1) at[1] = min(at[1], index);
            if (k == 2) at[2] = min(at[2], index);
        }
    }
    /* No element but NaNs: as cr_partial_init left it. An element that is gone when it is looked for: the first index. */
    CR_IN void put(const uint64_t (&at)[3]) const {
        cr_partial *out = &args->slot->partial;
        out->first_nan = at[2];
        if (found.least_at == CR_PLACE_NONE) return;
        out->min.key = found.least;
        out->max.key = (key)~found.most;
        out->min.index = at[0] != CR_NOWHERE ? at[0] : args->index;
        out->max.index = at[1] != CR_NOWHERE ? at[1] : args->index;
    }
};

#endif
