/* burst_float: Σx of float arrays of up to 32 vectors for each resident thread, V at once, by a program that is short; for a fold of that
 * length is one chain of instructions that nothing hides. What is unusual lies at the end, and loads again what it needs.
 *
 * All blocks place their window of exponents by the same sample of the array, so their sums are integers of one unit (fold/window.cuh) and
 * meet in three to five words, which also count the blocks: whoever is the last on a word knows its value. A block with an element
 * outside the window goes over all again: zeros are welcome then, and other vectors outside are added by integer bins into the state's
 * limbs, which the first word tells. Where threads have more than CR_BURST_FLOAT_AGAIN vectors that would take too long: a thread with such
 * an element looks at its V vectors again while it has them.
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_BURST_FLOAT_CUH
#define CURED_KERNELS_CUDA_WALK_BURST_FLOAT_CUH

#include <type_traits>

#include "kernels/cuda/plan/burst_float.h"
#include "kernels/cuda/fold/window.cuh"
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* Bins of 16 bits for every exponent of a type. */
template <class E> struct cr_burst_float_bins : cr_digits<E, false, 3, 20, 8> {};
template <> struct cr_burst_float_bins<cr_f64> : cr_digits<cr_f64, false, 5, 132, 4> {};

/* A whole element; at a multiple of its size. */
template <class E> CR_DEVICE uint64_t cr_burst_float_load(const uint8_t *from) {
    if (E::SIZE == 8) return *reinterpret_cast<const uint64_t *>(from);
    if (E::SIZE == 1) return *from;
    return E::SIZE == 4 ? *reinterpret_cast<const uint32_t *>(from) : *reinterpret_cast<const uint16_t *>(from);
}
/* Element i of those before and after the vectors. */
template <class E> CR_DEVICE uint64_t cr_burst_float_edge(const cr_fold_args &args, uint32_t i) {
    const uint64_t at = i < args.plan.head ? i : i + args.plan.vectors * (CR_GPU_VECTOR / E::SIZE);
    return cr_burst_float_load<E>(args.data + at * E::SIZE);
}
/* The same element in every place. */
template <class E> CR_DEVICE uint4 cr_burst_float_copies(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    if (E::SIZE <= 2) low *= E::SIZE == 1 ? 0x01010101u : 0x10001u;
    const uint32_t high = E::SIZE == 8 ? (uint32_t)(bits >> 32) : low;
    return make_uint4(low, high, low, high);
}

/* A word for each warp, of each digit. */
template <class E> using cr_burst_float_part = uint4[3 + cr_burst_float<E>::WIDE][CR_GPU_THREADS / 128];

/* The warp's sum, to its place in `part`. */
template <class E> CR_DEVICE void cr_burst_float_reduce(cr_burst_float<E> &sum, cr_burst_float_part<E> &part) {
    constexpr int DIGITS = 3 + cr_burst_float<E>::WIDE, BITS = CR_BURST_FLOAT_BITS;
    uint32_t digit[DIGITS];
    sum.template digits<BITS>(digit);
    digit[DIGITS - 3] = (uint32_t)sum.total & ((1u << BITS) - 1);
    digit[DIGITS - 2] = (uint32_t)(sum.total >> BITS) & ((1u << BITS) - 1);
    digit[DIGITS - 1] = (uint32_t)(sum.total >> 2 * BITS);
#pragma unroll
    for (int i = 0; i < DIGITS; i++) {
        digit[i] = __reduce_add_sync(~0u, digit[i]);
        if (threadIdx.x % 32 == 0) reinterpret_cast<uint32_t *>(part[i])[threadIdx.x / 32] = digit[i];
    }
}

/* One element to the bins; or it is counted in `special`, ten bits for each kind. */
template <class E> CR_DEVICE void cr_burst_float_hard(typename cr_burst_float_bins<E>::Shared &bins, uint32_t &special, uint64_t bits) {
    cr_parts<E> p;
    if (!p.split(bits)) {
        special += 1u << 10 * p.special();
        return;
    }
    cr_widen(p);
    cr_burst_float_bins<E>::put(bins, p);
}

/* A vector to the bins; gives what of it is counted instead. */
template <class E> CR_CALLED uint32_t cr_burst_float_odd(typename cr_burst_float_bins<E>::Shared &bins, uint4 v) {
    constexpr unsigned LANES = CR_GPU_VECTOR / E::SIZE;
    uint32_t special = 0;
#pragma unroll 1
    for (unsigned i = 0; i < LANES; i++) cr_burst_float_hard<E>(bins, special, cr_element<E::SIZE>(v, i));
    return special;
}

/* What the block has put into the bins, to the state's limbs. The block together. */
template <class E>
CR_CALLED void cr_burst_float_flush(const cr_fold_args &args, typename cr_burst_float_bins<E>::Shared &bins, uint32_t special) {
    cr_sum_state *to = &args.state->sums[CR_SUM_PLAIN];
    cr_after_the_last();
#pragma unroll 1
    for (uint32_t kind = 0; kind < 3; kind++) {
        const uint32_t found = __reduce_add_sync(~0u, special >> 10 * kind & 1023);
        if (found != 0 && threadIdx.x % 32 == 0) atomicAdd(&to->special[kind], (unsigned long long)found);
    }
    cr_burst_float_bins<E>::flush(bins, to, true);
    __threadfence();
    __syncthreads();
}

/* The block's elements once more, by vectors that lie in the window, zeros welcome, and others, which go to the state's limbs by bins.
 * Gives whether there are others. The block together; `first`: this thread's first vector, of `each` at most. */
template <class E>
CR_CALLED bool cr_burst_float_again(const cr_fold_args &args, uint32_t first, uint32_t each, cr_burst_float_part<E> &part) {
    using Bins = cr_burst_float_bins<E>;
    constexpr int LANES = CR_GPU_VECTOR / E::SIZE;
    __shared__ typename Bins::Shared bins;
    const uint4 *body = cr_body<E::SIZE>(args);
    const uint32_t vectors = (uint32_t)args.plan.vectors;
    uint32_t special = 0;
    bool hard = false;
    cr_burst_float<E> sum;
    sum.place(E::ONE_WINDOW ? make_uint4(0, 0, 0, 0) : body[vectors / 2]);
    Bins::clear(bins);
    if (first < args.plan.head + args.plan.tail) {
        hard = true;
        cr_burst_float_hard<E>(bins, special, cr_burst_float_edge<E>(args, first));
    }
#pragma unroll 1
    for (uint32_t j = 0, at = first; j < each && at < vectors; j++, at += CR_GPU_THREADS) {
        const uint4 v = body[at];
        const bool fits = cr_burst_float<E>::welcome(v, sum.low);
        sum.put(v, fits);
        if (fits) continue;
        hard = true;
#pragma unroll 1
        for (int i = 0; i < LANES; i++)
            cr_burst_float_hard<E>(bins, special, cr_burst_float_load<E>(reinterpret_cast<const uint8_t *>(body + at) + i * E::SIZE));
    }
    __syncwarp();
    cr_burst_float_reduce(sum, part);
    if (!__syncthreads_or(hard)) return false;
    cr_burst_float_flush<E>(args, bins, special);
    return true;
}

/* What blocks have put into the limbs; one thread of the last. */
CR_CALLED void cr_burst_float_limbs(cr_sum_state *to, cr_sum_found *found, int limbs) {
    __threadfence();
#pragma unroll 1
    for (int i = 0; i < limbs; i++) {
        found->limbs[i] = (int64_t)__ldcg(&to->limbs[i]);
        to->limbs[i] = 0;
    }
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        found->special[i] = __ldcg(&to->special[i]);
        to->special[i] = 0;
    }
}

/* By a block's first lanes: what the block has found, and if all have spoken, what they found together. */
CR_DEVICE void cr_burst_float_tell(const cr_fold_args &args, unsigned long long word, bool dirty, int limbs) {
    const uint32_t lane = threadIdx.x, blocks = args.plan.blocks;
    cr_sum_state *to = &args.state->sums[CR_SUM_PLAIN];
    cr_sum_found *found = &args.slot->sums[CR_SUM_PLAIN];
    if (lane == 0 && dirty) word += 1ull << CR_BURST_FLOAT_DIRTY_AT;
    if (blocks > 1) {
        const unsigned long long before = atomicAdd(&to->words[lane], word + (1ull << CR_BURST_FLOAT_COUNT_AT));
        if (before >> CR_BURST_FLOAT_COUNT_AT != blocks - 1) return;
        to->words[lane] = 0;
        word += before;
    }
    found->words[lane] = word;
    if (lane == 0 && (word >> CR_BURST_FLOAT_DIRTY_AT & CR_BURST_FLOAT_COUNTED) != 0) cr_burst_float_limbs(to, found, limbs);
}

/* By one thread of all: how the words are to be read. */
CR_DEVICE void cr_burst_float_describe(const cr_fold_args &args, int unit, uint32_t digits, bool again) {
    cr_after_the_last();
    cr_sum_found *found = &args.slot->sums[CR_SUM_PLAIN];
    found->unit = unit;
    found->digits = digits | CR_BURST_FLOAT;
    found->blocks = args.plan.blocks;
    found->again = again;
}

/* V vectors from `at` on. For those at or beyond `end` the last one before it is looked at, and not added. */
template <int V> CR_DEVICE void cr_burst_float_fetch(uint4 (&v)[V], const uint4 *body, uint32_t at, uint32_t end) {
    if (V > 1 && at - threadIdx.x + CR_GPU_THREADS * V <= end) {
#pragma unroll
        for (int j = 0; j < V; j++) v[j] = body[at + j * CR_GPU_THREADS];
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) v[j] = body[min(at + j * CR_GPU_THREADS, end - 1)];
    }
}

/* What of V vectors lies in the window, to the sum, and other vectors to the bins; gives whether there are any. */
template <class E, int V>
CR_DEVICE bool cr_burst_float_sort(cr_burst_float<E> &sum, typename cr_burst_float_bins<E>::Shared &bins, uint32_t &special, const uint4 (&v)[V],
                                   uint32_t at, uint32_t end) {
    bool hard = false;
#pragma unroll
    for (int j = 0; j < V; j++) {
        if (at + j * CR_GPU_THREADS >= end) break;
        const bool fits = cr_burst_float<E>::welcome(v[j], sum.low);
        sum.put(v[j], fits);
        if (fits) continue;
        special += cr_burst_float_odd<E>(bins, v[j]);
        hard = true;
    }
    sum.worst = 0;
    return hard;
}

/* The end of a block of a sum that the host reads: the first lanes add their words to those of other blocks, and the last one on a word
 * writes it to the slot. */
template <class E> struct cr_burst_float_left {
    static constexpr bool WARP = false;  /* true: the whole first warp comes to the end, and not only its threads with a word */
    static constexpr bool WAITS = false; /* true: the block waits for the kernels before it before it reads an element */

    CR_DEVICE void operator()(const cr_fold_args &args, unsigned long long word, bool dirty, int) const {
        cr_burst_float_tell(args, word, dirty, E::SIZE == 8 ? CR_F64_LIMBS : CR_F32_LIMBS);
    }
};

/* The block's elements, and its end. LONG: its run is longer than V vectors a thread. ONCE: no element is loaded again. */
template <class E, int V, bool LONG, bool ONCE, class END> CR_DEVICE void cr_burst_float_block(const cr_burst_args &told, const END &tell) {
    const cr_fold_args &args = told.fold;
    constexpr int DIGITS = 3 + cr_burst_float<E>::WIDE;
    __shared__ cr_burst_float_part<E> part;
    cr_let_the_next_begin();
    if (END::WAITS) cr_after_the_last();
    const uint4 *body = told.body;
    const uint32_t per = LONG ? told.per : CR_GPU_THREADS * V, first = blockIdx.x * per + threadIdx.x;
    const uint32_t vectors = told.vectors, end = LONG ? min(first - threadIdx.x + per, vectors) : vectors;
    const bool edge = first < told.singles;
    const uint4 sample = E::ONE_WINDOW ? make_uint4(0, 0, 0, 0) : body[vectors / 2];
    uint4 v[V];
    cr_burst_float_fetch(v, body, first, end);
    uint64_t lone = 0;
    if (edge) lone = cr_burst_float_edge<E>(args, first);
    cr_burst_float<E> sum;
    sum.place(sample);
    __shared__ std::conditional_t<ONCE, typename cr_burst_float_bins<E>::Shared, int> bins;
    if constexpr (ONCE) cr_burst_float_bins<E>::clear(bins);
    uint32_t at = first, special = 0;
    bool hard = false;
    for (;;) {
#pragma unroll
        for (int j = 0; j < V; j++) sum.look(v[j]);
        if (!ONCE || __builtin_expect(sum.fits(), 1)) {
#pragma unroll
            for (int j = 0; j < V; j++) sum.put(v[j], (int)at < (int)end - j * CR_GPU_THREADS);
        } else if constexpr (ONCE) {
            hard |= cr_burst_float_sort<E, V>(sum, bins, special, v, at, end);
        }
        at += CR_GPU_THREADS * V;
        if (!LONG || at - threadIdx.x >= end) break;
        cr_burst_float_fetch(v, body, at, end);
    }
    if (__builtin_expect(edge, 0)) {
        sum.look(cr_burst_float_copies<E>(lone));
        const bool fits = !ONCE || sum.fits();
        sum.put(make_uint4((uint32_t)lone, (uint32_t)(lone >> 32), 0, 0), fits);
        if constexpr (ONCE) {
            if (!fits) cr_burst_float_hard<E>(bins, special, lone);
            hard |= !fits;
        }
    }
    cr_burst_float_reduce(sum, part);
    const bool again = __syncthreads_or(ONCE ? hard : !sum.fits());
    bool dirty = again;
    if (__builtin_expect(again, 0)) {
        if constexpr (ONCE) cr_burst_float_flush<E>(args, bins, special);
        else dirty = cr_burst_float_again<E>(args, first, per / CR_GPU_THREADS, part);
    }
    if (threadIdx.x >= (END::WARP ? 32 : DIGITS)) {
        if (!END::WARP && first == 32) cr_burst_float_describe(args, sum.unit, DIGITS, again);
        return;
    }
    uint32_t all = 0;
    if (!END::WARP || threadIdx.x < DIGITS) {
#pragma unroll
        for (int i = 0; i < CR_GPU_THREADS / 128; i++) {
            const uint4 row = part[threadIdx.x][i];
            all += row.x + row.y + row.z + row.w;
        }
    }
    unsigned long long word = all;
    if (threadIdx.x == DIGITS - 1) word = (unsigned long long)((long long)(int)all + (long long)CR_BURST_FLOAT_BIAS);
    if (!END::WAITS) cr_after_the_last();
    tell(args, word, dirty, sum.unit);
}

template <class E, int V, bool LONG, bool ONCE>
__global__ void __launch_bounds__(CR_GPU_THREADS, CR_GPU_BLOCKS_PER_SM) cr_burst_float_sum(const __grid_constant__ cr_burst_args told) {
    cr_burst_float_block<E, V, LONG, ONCE>(told, cr_burst_float_left<E>{});
}

template <class E, int V, bool LONG, bool ONCE = false> int cr_burst_float_start(const cr_fold_args &args, void *stream) {
    return cr_launch(cr_burst_float_sum<E, V, LONG, ONCE>, args.plan.blocks, CR_GPU_THREADS, stream, args.follows, cr_burst_told<E::SIZE>(args));
}

/* Σx, by the kernel for the length. */
template <class E> int cr_any_length_sum(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    const uint32_t each = cr_fold_plan_burst_float(&mine.plan, mine.multiprocessors);
    if (each == 0 || (args->wary && each > 4)) return cr_walk_launch<cr_float_sum<E, CR_SUM_PLAIN>>(args, stream);
    switch (cr_burst_float_kernel_of(each)) {
        case CR_BURST_FLOAT_ONE:
            return cr_burst_float_start<E, 1, false>(mine, stream);
        case CR_BURST_FLOAT_FOUR:
            return cr_burst_float_start<E, 4, false>(mine, stream);
        case CR_BURST_FLOAT_LOOP:
            return cr_burst_float_start<E, 4, true>(mine, stream);
        case CR_BURST_FLOAT_ONCE:
            break;
    }
    return cr_burst_float_start<E, 4, true, true>(mine, stream);
}

#endif
