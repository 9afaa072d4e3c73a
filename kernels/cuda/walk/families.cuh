/* families: makes accumulators for the walk of folds that know one family each: of one, of several at once, of totals.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_FAMILIES_CUH
#define CURED_KERNELS_CUDA_WALK_FAMILIES_CUH

#include "kernels/cuda/thread/simt.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* Makes an accumulator for the walk of families that need no ticket, one after the other on the same elements. An F has
 *   F::WIDTH, F::ROOM                  of an element, in bytes; words of shared memory that leave may use
 *   F::BLOCKS, F::UNROLL, begin(args), tile<U>(v, vector, count), one(bits)   as in walk.cuh; args may be kept
 *   leave(args, room)                  all threads, at the end: merges the block, and the blocks
 * What was not written keeps what cr_partial_init made of it. */
template <class... F>
struct cr_families;

template <class F>
struct cr_families<F> {
    static constexpr unsigned WIDTH = F::WIDTH, ROOM = F::ROOM;
    static constexpr int BLOCKS = F::BLOCKS, UNROLL = F::UNROLL;
    static constexpr bool CHUNKED = cr_chunked<F>::value;
    F fold;
    CR_DEVICE void begin(const cr_fold_args &args) { fold.begin(args); }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        fold.template tile<U>(v, vector, count);
    }
    CR_DEVICE void one(uint64_t bits) { fold.one(bits); }
    CR_DEVICE void leave(const cr_fold_args &args, uint64_t *room) { fold.leave(args, room); }
};

template <class F, class... Others>
struct cr_families<F, Others...> {
    static constexpr unsigned WIDTH = F::WIDTH, ROOM = F::ROOM + cr_families<Others...>::ROOM;
    /* Together they need more registers. */
    static constexpr int BLOCKS = 3, UNROLL = CR_GPU_FEWER;
    static constexpr bool CHUNKED = cr_chunked<F>::value && cr_families<Others...>::CHUNKED;
    F fold;
    cr_families<Others...> others;
    CR_DEVICE void begin(const cr_fold_args &args) {
        fold.begin(args);
        others.begin(args);
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        fold.template tile<U>(v, vector, count);
        others.template tile<U>(v, vector, count);
    }
    CR_DEVICE void one(uint64_t bits) {
        fold.one(bits);
        others.one(bits);
    }
    CR_DEVICE void leave(const cr_fold_args &args, uint64_t *room) {
        fold.leave(args, room);
        others.leave(args, room + F::ROOM);
    }
};

template <class... F>
struct cr_self {
    typedef cr_families<F...> families;
    static constexpr int SIZE = (int)families::WIDTH, BLOCKS = families::BLOCKS, UNROLL = families::UNROLL;
    static constexpr bool SELF = true, CHUNKED = families::CHUNKED;
    struct Shared {
        uint64_t room[cr_families<F...>::ROOM];
    };
    struct Sample {};
    cr_families<F...> all;

    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }
    CR_DEVICE void begin(const cr_fold_args &args, Shared &, Sample) { all.begin(args); }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count, Shared &) {
        all.template tile<U>(v, vector, count);
    }
    CR_DEVICE void one(uint64_t bits, uint64_t, Shared &) { all.one(bits); }
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) { all.leave(args, shared.room); }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

/* Makes an accumulator for the walk of an F, which is about totals:
 *   F::WIDTH, F::BLOCKS, F::total, F::ROOM   of an element, in bytes; as in walk.cuh; what is merged, plain words; words of
 *                                            shared memory that close and reduce may use, one after the other
 *   begin(args), tile<U>(v, vector, count)   as in walk.cuh; args may be kept
 *   one(bits)                                a single element: a thread has at most one
 *   close(room, t)                           all threads: makes t this thread's share of the block's total
 *   empty(t), merge(t, other), reduce(t, room)   reduce: all threads; t becomes the block's total in every thread
 *   put(t, args)                             one thread: writes the families' members of the result */
template <class F>
struct cr_totals {
    static constexpr int SIZE = (int)F::WIDTH, UNROLL = CR_GPU_FEWER, BLOCKS = F::BLOCKS;
    static constexpr bool SELF = false;
    typedef typename F::total total;
    struct Shared {
        uint64_t room[F::ROOM];
        total found; /* by the only block */
    };
    struct Sample {};
    F fold;

    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }
    CR_DEVICE void begin(const cr_fold_args &args, Shared &, Sample) { fold.begin(args); }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count, Shared &) {
        fold.template tile<U>(v, vector, count);
    }
    CR_DEVICE void one(uint64_t bits, uint64_t, Shared &) { fold.one(bits); }
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        total t;
        fold.close(shared.room, t);
        F::reduce(t, shared.room);
        if (threadIdx.x == 0) *(args.plan.blocks == 1 ? &shared.found : cr_block_slot<total>(args, blockIdx.x)) = t;
    }
    CR_DEVICE void collect(const cr_fold_args &args, Shared &shared) {
        if (args.plan.blocks == 1) {
            if (threadIdx.x == 0) F::put(shared.found, args);
            return;
        }
        total t;
        F::empty(t);
        for (uint32_t block = threadIdx.x; block < args.plan.blocks; block += CR_GPU_THREADS) {
            static_assert(sizeof(total) % 8 == 0, "a total is words of 64 bits");
            union {
                total t;
                unsigned long long word[sizeof(total) / 8];
            } other;
            const unsigned long long *from = (const unsigned long long *)cr_block_slot<total>(args, block);
#pragma unroll
            for (unsigned i = 0; i < sizeof(total) / 8; i++) other.word[i] = __ldcg(from + i);
            F::merge(t, other.t);
        }
        F::reduce(t, shared.room);
        if (threadIdx.x == 0) F::put(t, args);
    }
};

#endif
