/* walk: how the threads of a fold go over its elements. A fold is walk × accumulator; an accumulator knows a family and a
 * type, and nothing of memory. One launch: what the blocks found is merged by the last of them to finish.
 *
 * An accumulator A is a struct made once per thread:
 *   A::SIZE, A::UNROLL, A::BLOCKS  bytes of an element; vectors in flight; blocks wanted on a multiprocessor (bounds the registers)
 *   A::Shared                      what a block shares (may be empty, never larger than 32 KiB)
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
 *   CHUNKED                        true, or not there: it is all the same which tiles a block takes, see plan.h
 * An element's index is args.index + plan.head + vector·(16/size) + lane (cr_index_of).
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_WALK_CUH
#define CURED_KERNELS_CUDA_WALK_CUH

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/early.h"
#include "kernels/cuda/fold.h"

#define CR_DEVICE __device__ __forceinline__

/* Launches; gives a cudaError_t. Tests on the host have their own (tests/gpu/emulate). */
#if !defined(CR_LAUNCH)
#define CR_LAUNCH(kernel, blocks, threads, stream, ...) \
    (kernel<<<(blocks), (threads), 0, (cudaStream_t)(stream)>>>(__VA_ARGS__), (int)cudaPeekAtLastError())
/* The same for a kernel that may begin while the one before it on the stream ends: see cr_after_the_last. */
template <class Kernel, class Args> int cr_launch_early(Kernel *kernel, uint32_t blocks, uint32_t threads, void *stream, const Args &args) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return (int)cudaLaunchKernelEx(&config, kernel, args);
}
#define CR_LAUNCH_EARLY(kernel, blocks, threads, stream, args) cr_launch_early(kernel, blocks, threads, stream, args)
#else
#define CR_LAUNCH_EARLY CR_LAUNCH
#endif
/* follows: as in cr_fold_args. */
template <class Kernel, class Args>
int cr_launch(Kernel *kernel, uint32_t blocks, uint32_t threads, void *stream, bool follows, const Args &args) {
    if (follows && cr_can_launch_early((const void *)kernel)) return CR_LAUNCH_EARLY(kernel, blocks, threads, stream, args);
    return CR_LAUNCH(kernel, blocks, threads, stream, args);
}

/* From compute capability 9.0 on, a fold that follows a fold begins early: its blocks come as the other's leave, and ask for
 * their data, which no fold writes. All that folds write (state, slots) is touched after this. */
CR_DEVICE void cr_let_the_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
CR_DEVICE void cr_after_the_last() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class Found> CR_DEVICE Found *cr_block_slot(const cr_fold_args &args, uint32_t block) {
    static_assert(sizeof(Found) <= CR_GPU_SLOT_BYTES, "a block's slot is too small for this accumulator");
    return reinterpret_cast<Found *>(&args.state->blocks[block]);
}

template <int SIZE> CR_DEVICE uint64_t cr_index_of(const cr_fold_args &args, uint64_t vector) {
    return args.index + args.plan.head + vector * (CR_GPU_VECTOR / SIZE);
}

/* Bytes [shift, shift + 16) of two neighbouring vectors. */
CR_DEVICE uint4 cr_join(uint4 a, uint4 b, uint32_t shift) {
    if (shift & 8) a = make_uint4(a.z, a.w, b.x, b.y), b = make_uint4(b.z, b.w, 0, 0);
    if (shift & 4) a = make_uint4(a.y, a.z, a.w, b.x), b.x = b.y;
    uint32_t bits = 8 * (shift & 3);
    return make_uint4(__funnelshift_r(a.x, a.y, bits), __funnelshift_r(a.y, a.z, bits), __funnelshift_r(a.z, a.w, bits),
                      __funnelshift_r(a.w, b.x, bits));
}

/* Where the body's vectors are read: at a multiple of 16 bytes. */
template <int SIZE> CR_DEVICE const uint4 *cr_body(const cr_fold_args &args) {
    return reinterpret_cast<const uint4 *>(args.data + (uint64_t)args.plan.head * SIZE - args.plan.shift);
}

/* U vectors from `from` on, CR_GPU_THREADS apart; those at or beyond from[left] are zeros. Gives how many there are. SHIFT: the
 * body may lie at an odd address. */
template <int U, bool SHIFT>
CR_DEVICE uint32_t cr_load(uint4 (&v)[U], const uint4 *from, uint32_t shift, int left) {
    if (!SHIFT && left > (U - 1) * CR_GPU_THREADS) {
#pragma unroll
        for (int j = 0; j < U; j++) v[j] = from[j * CR_GPU_THREADS];
        return U;
    }
    const int count = left <= 0 ? 0 : min((left + CR_GPU_THREADS - 1) / CR_GPU_THREADS, U);
#pragma unroll
    for (int j = 0; j < U; j++) {
        v[j] = make_uint4(0, 0, 0, 0);
        if (j < count) v[j] = from[j * CR_GPU_THREADS];
    }
    if (SHIFT && shift != 0) {
#pragma unroll
        for (int j = 0; j < U; j++) v[j] = cr_join(v[j], j < count ? from[j * CR_GPU_THREADS + 1] : make_uint4(0, 0, 0, 0), shift);
    }
    return (uint32_t)count;
}

/* Likewise, by places in the body. */
template <int U>
CR_DEVICE uint32_t cr_load(uint4 (&v)[U], const uint4 *body, uint32_t shift, uint64_t vector, uint64_t end) {
    const int64_t left = (int64_t)(end - vector);
    return cr_load<U, true>(v, body + vector, shift, (int)min(left, (int64_t)(U * CR_GPU_THREADS)));
}

CR_DEVICE uint64_t cr_pair(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

/* Words of a vector of 16 bytes: an index known at compile time only. */
CR_DEVICE uint32_t cr_word(const uint4 &v, unsigned i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
CR_DEVICE uint64_t cr_word64(const uint4 &v, unsigned i) { return i == 0 ? cr_pair(v.x, v.y) : cr_pair(v.z, v.w); }

/* Element e of a vector, zero-extended; e is known when compiling (an unrolled loop's counter). */
template <unsigned WIDTH>
CR_DEVICE uint64_t cr_element(const uint4 &v, unsigned e) {
    if (WIDTH == 8) return cr_word64(v, e);
    if (WIDTH == 4) return cr_word(v, e);
    if (WIDTH == 2) return cr_word(v, e / 2) >> e % 2 * 16 & 0xffffu;
    return cr_word(v, e / 4) >> e % 4 * 8 & 0xffu;
}

/* One element at any address, zero-extended. */
template <int SIZE> CR_DEVICE uint64_t cr_load_one(const uint8_t *p) {
    uint64_t bits = 0;
#pragma unroll
    for (int i = 0; i < SIZE; i++) bits |= (uint64_t)p[i] << (8 * i);
    return bits;
}

/* Whether this block is the last to come here; all threads together. What blocks wrote before is then visible to it. */
CR_DEVICE bool cr_last_block(const cr_fold_args &args) {
    if (args.plan.blocks == 1) {
        __syncthreads();
        return true;
    }
    __shared__ uint32_t last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        uint32_t before = atomicAdd(&args.state->ticket, 1);
        last = before + 1 == args.plan.blocks;
        if (last) args.state->ticket = 0;
        __threadfence();
    }
    __syncthreads();
    return last != 0;
}

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
 * so whoever is given the last number of all knows it, and leaves zero behind. Thread 0 only. */
CR_DEVICE uint32_t cr_next_chunk(const cr_fold_args &args) {
    const uint32_t number = atomicAdd(&args.state->next, 1u);
    if (number + 1 == args.plan.chunks - args.plan.blocks) args.state->next = 0;
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
    cr_after_the_last();
    if (chunk < args.plan.chunks && threadIdx.x == 0) after = cr_next_chunk(args);
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
        if (chunk < args.plan.chunks && threadIdx.x == 0) after = cr_next_chunk(args);
    }
}

/* A::CHUNKED, or false. */
template <class A, class = void> struct cr_chunked {
    static constexpr bool value = false;
};
template <class A> struct cr_chunked<A, std::enable_if_t<A::CHUNKED>> {
    static constexpr bool value = true;
};

template <class A> __global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_walk(const __grid_constant__ cr_fold_args args) {
    __shared__ typename A::Shared shared;
    A acc;
    cr_let_the_next_begin();
    if constexpr (cr_chunked<A>::value) {
        cr_walk_chunks<A::UNROLL>(acc, args, shared);
    } else {
        if (args.plan.per_block <= CR_GPU_SMALL || args.plan.shift != 0) {
            cr_walk_run<CR_GPU_SHIFTED, true>(acc, args, shared);
        } else {
            cr_walk_run<A::UNROLL, false>(acc, args, shared);
        }
    }
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

#endif
