/* walk: how the threads of a fold go over its elements. A fold is walk × accumulator; an accumulator knows a family and a
 * type, and nothing of memory. One launch: what the blocks found is merged by the last of them to finish.
 *
 * An accumulator A is a struct made once per thread:
 *   A::SIZE, A::UNROLL, A::BLOCKS  bytes of an element; vectors in flight; blocks wanted on a multiprocessor (bounds the registers)
 *   A::Shared                      what a block shares (may be empty, never larger than 47 KiB)
 *   A::Sample, sample(args)        loads asked for before the first tile's, so that they travel together; may be empty
 *   begin(args, shared, sample)    before any element; all threads together, may use barriers; a warp may go on alone
 *   tile(v, vector, count, shared) U vectors of 16 bytes: v[j] is the body's vector `vector + j·CR_GPU_THREADS`; only the
 *                                  first `count` are elements, the rest is zeros. The warp is together and whole.
 *   one(bits, index, shared)       a single element, zero-extended, at the input's index; by any thread alone, after the tiles
 *   publish(args, shared)          all threads together, at the end: merges the block, leaves at most CR_GPU_SLOT_BYTES in
 *                                  *cr_block_slot<Found>(args, blockIdx.x)
 *   collect(args, shared)          all threads of the last block, when all slots are visible: merges them, writes the
 *                                  family's members of args.slot->partial
 *   SELF                           true: publish does without the ticket, and collect is never called
 *   CHUNKED                        true: a block may take any tiles, see plan/shapes.h; not there: false
 *   LATE                           true, with CHUNKED: before publish it touches the state behind a cr_after_the_last() alone
 * An element's index is args.index + plan.head + vector·(16/size) + lane (cr_index_of).
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_WALK_WALK_CUH
#define CURED_KERNELS_CUDA_WALK_WALK_CUH

#include "kernels/cuda/thread/array.cuh"

/* A::CHUNKED, or false. */
template <class A, class = void> struct cr_chunked {
    static constexpr bool value = false;
};
template <class A> struct cr_chunked<A, std::enable_if_t<A::CHUNKED>> {
    static constexpr bool value = true;
};

/* A::LATE, or false. */
template <class A, class = void> struct cr_late {
    static constexpr bool value = false;
};
template <class A> struct cr_late<A, std::enable_if_t<A::LATE>> {
    static constexpr bool value = true;
};

/* The head and the tail: block 0's first threads take an element each. */
template <class A> CR_DEVICE void cr_walk_edges(A &acc, const cr_fold_args &args, typename A::Shared &shared) {
    const cr_fold_plan &plan = args.plan;
    if (blockIdx.x != 0 || threadIdx.x >= plan.head + plan.tail) return;
    uint64_t at = threadIdx.x;
    if (at >= plan.head) at += plan.vectors * (CR_GPU_VECTOR / A::SIZE);
    acc.one(cr_load_one<A::SIZE>(args.data + at * A::SIZE), args.index + at, shared);
}

/* A block's run, tile after tile. */
template <int U, bool SHIFT, class A> CR_DEVICE void cr_walk_run(A &acc, const cr_fold_args &args, typename A::Shared &shared) {
    const uint4 *body = cr_body<A::SIZE>(args);
    typename A::Sample sample = acc.sample(args);
    uint64_t vector = blockIdx.x * args.plan.per_block;
    int left = vector < args.plan.vectors ? (int)min(args.plan.per_block, args.plan.vectors - vector) : 0;
    vector += threadIdx.x;
    left -= (int)threadIdx.x; /* of this thread's own */
    uint4 v[U];
    uint32_t count = cr_load<U, SHIFT>(v, body + vector, args.plan.shift, left);
    cr_after_the_last();
    acc.begin(args, shared, sample);
    for (;;) {
        acc.template tile<U>(v, vector, count, shared);
        left -= U * CR_GPU_THREADS;
        if (left + (int)threadIdx.x <= 0) break; /* the same for all */
        vector += U * CR_GPU_THREADS;
        count = cr_load<U, SHIFT>(v, body + vector, args.plan.shift, left);
    }
}

/* The chunks after a block's second one are whose comes first: of long arrays the GPU then reads one stretch at a time, and no
 * block waits for a slow one. A block asks for its next chunk but one while it works, and stops at the first that is not there;
 * so whoever is given the last number of all knows it, and leaves zero behind. Thread 0 only. Who waits for the fold before needs no
 * counter of its own; it lies beside the state's sums, and so its address takes no registers. */
template <class A> CR_DEVICE uint32_t cr_next_chunk(const cr_fold_args &args) {
    uint32_t *next = cr_late<A>::value ? args.next : &args.state->next_in_turn;
    const uint32_t number = atomicAdd(next, 1u);
    if (number + 1 == args.plan.chunks - args.plan.blocks) *next = 0;
    return number + 2 * args.plan.blocks;
}

template <int U> CR_DEVICE uint32_t cr_load_chunk(uint4 (&v)[U], const uint4 *from, uint32_t shift, int left) {
    return shift == 0 ? cr_load<U, false>(v, from, 0, left) : cr_load<U, true>(v, from, shift, left);
}

/* A block's chunks. */
template <int U, class A> CR_DEVICE void cr_walk_chunks(A &acc, const cr_fold_args &args, typename A::Shared &shared) {
    __shared__ uint32_t told[2];
    const uint4 *body = cr_body<A::SIZE>(args);
    const uint64_t per = args.plan.per_block;
    typename A::Sample sample = acc.sample(args);
    uint64_t vector = blockIdx.x * per;
    int left = vector < args.plan.vectors ? (int)min(per, args.plan.vectors - vector) : 0;
    vector += threadIdx.x;
    left -= (int)threadIdx.x; /* of this thread's own */
    uint4 v[U];
    uint32_t count = cr_load_chunk(v, body + vector, args.plan.shift, left);
    uint32_t chunk = blockIdx.x + args.plan.blocks, after = 0, turn = 0; /* the next one, and the one after it */
    if (!cr_late<A>::value || !args.apart) cr_after_the_last();
    if (chunk < args.plan.chunks && threadIdx.x == 0) after = cr_next_chunk<A>(args);
    acc.begin(args, shared, sample);
    for (;;) {
        acc.template tile<U>(v, vector, count, shared);
        left -= U * CR_GPU_THREADS;
        vector += U * CR_GPU_THREADS;
        const bool over = left + (int)threadIdx.x <= 0; /* the same for all */
        if (over) {
            if (chunk >= args.plan.chunks) break;
            vector = chunk * per;
            left = (int)min(per, args.plan.vectors - vector) - (int)threadIdx.x;
            vector += threadIdx.x;
        }
        count = cr_load_chunk(v, body + vector, args.plan.shift, left);
        if (!over) continue;
        if (threadIdx.x == 0) told[turn] = after;
        __syncthreads();
        chunk = told[turn];
        turn ^= 1;
        if (chunk < args.plan.chunks && threadIdx.x == 0) after = cr_next_chunk<A>(args);
    }
}

template <class A> __global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_walk(const __grid_constant__ cr_fold_args args) {
    __shared__ typename A::Shared shared;
    A acc;
    cr_let_the_next_begin();
    if constexpr (cr_chunked<A>::value) {
        cr_walk_chunks<A::UNROLL>(acc, args, shared);
    } else {
        if (args.plan.per_block <= CR_GPU_LEAST || args.plan.shift != 0) {
            cr_walk_run<CR_GPU_SHIFTED, true>(acc, args, shared);
        } else {
            cr_walk_run<A::UNROLL, false>(acc, args, shared);
        }
    }
    if (cr_late<A>::value) cr_after_the_last();
    cr_walk_edges(acc, args, shared);
    __syncwarp();
    acc.publish(args, shared);
    if constexpr (!A::SELF) {
        if (cr_last_block(args)) acc.collect(args, shared);
    }
}

template <class A> int cr_walk_launch(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    cr_fold_plan_fit(&mine.plan, A::BLOCKS);
    if (cr_chunked<A>::value) cr_fold_plan_chunks(&mine.plan, mine.multiprocessors, A::BLOCKS);
    return cr_launch(cr_walk<A>, mine.plan.blocks, CR_GPU_THREADS, stream, mine.follows, mine);
}

/* RUN: of long arrays, vectors of a block; 0: as the walk has it. */
template <class Walk, uint32_t RUN> int cr_walk_runs(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    if (RUN == 0) return cr_walk_launch<Walk>(args, stream);
    cr_fold_plan_runs(&mine.plan, mine.multiprocessors, Walk::BLOCKS, RUN);
    return cr_launch(cr_walk<Walk>, mine.plan.blocks, CR_GPU_THREADS, stream, mine.follows, mine);
}

#endif
