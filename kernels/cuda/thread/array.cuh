/* array: what every kernel stands on: launching, waiting for the kernel before, and a thread's loads from an array.
 *
 * Thread: GPU; launches: the stream's thread. Owner: none. */
#ifndef CURED_KERNELS_CUDA_THREAD_ARRAY_CUH
#define CURED_KERNELS_CUDA_THREAD_ARRAY_CUH

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/plan/early.h"
#include "kernels/cuda/plan/fold.h"

/* A function of the device: part of whoever uses it, or called where it is much code that few need. */
#define CR_DEVICE __device__ __forceinline__
#define CR_CALLED inline __device__ __noinline__

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

/* What the kernels of short folds are told. In front is what follows from fold, but would take time to work out; all of it up to the
 * fold's number of blocks lies in one line of the constant cache. */
struct cr_burst_args {
    const uint4 *body;
    uint32_t vectors, per, singles;
    cr_fold_args fold;
};
template <int SIZE> cr_burst_args cr_burst_told(const cr_fold_args &fold) {
    const cr_fold_plan &plan = fold.plan;
    const uint4 *body = reinterpret_cast<const uint4 *>(fold.data + (uint64_t)plan.head * SIZE);
    return {body, (uint32_t)plan.vectors, (uint32_t)plan.per_block, plan.head + plan.tail, fold};
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

#endif
