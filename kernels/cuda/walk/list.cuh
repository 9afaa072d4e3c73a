/* list: one fold of many arrays in one launch: see plan/list.h. It goes over rows of a list as walk.cuh goes over an array, and takes
 * walk.cuh's accumulators: those to which it is all the same where an element lies, and zeros are nothing (sums of floats).
 *
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_WALK_LIST_CUH
#define CURED_KERNELS_CUDA_WALK_LIST_CUH

#include "kernels/cuda/plan/list.h"
#include "kernels/cuda/thread/simt.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* The descriptors, wherever they lie. */
CR_DEVICE const cr_list_array *cr_list_arrays(const cr_list_args &args) { return args.arrays != nullptr ? args.arrays : args.told; }

/* Descriptors at hand, a warp's worth of them in shared memory: so 31 short arrays take one way to memory, and not one each. */
struct cr_list_window {
    uint32_t base;
    cr_list_array *mine; /* from number `base` on; the warp's own */

    CR_DEVICE void load(const cr_list_args &args, uint32_t at) {
        const uint32_t lane = threadIdx.x % CR_WARP;
        base = at;
        __syncwarp();
        mine[lane] = cr_list_arrays(args)[min(at + lane, args.count)];
        __syncwarp();
    }
    /* Whether number `at` and the next one are there. */
    CR_DEVICE bool has(uint32_t at) const { return at - base + 1 < CR_WARP; }
};

/* An array of the list, laid out as cr_fold_plan_make does. */
template <int SIZE> struct cr_list_spot {
    static constexpr uint32_t LANES = CR_GPU_VECTOR / SIZE;
    const uint8_t *data;
    const uint4 *body;
    uint64_t n, vectors;
    uint32_t row, next; /* next: the row at which the next array begins */
    uint32_t head, shift;

    /* Number `at` of the list; a warp together. */
    CR_DEVICE void take(const cr_list_args &args, cr_list_window &window, uint32_t at) {
        if (!window.has(at)) window.load(args, at);
        const cr_list_array *one = &window.mine[at - window.base];
        data = reinterpret_cast<const uint8_t *>(one[0].data);
        n = one[0].n;
        row = one[0].row;
        next = one[1].row;
        const uint32_t off = (uint32_t)((uintptr_t)data % CR_GPU_VECTOR);
        uint32_t back = 0;
        head = off == 0 ? 0 : (CR_GPU_VECTOR - off) / SIZE;
        if (off % SIZE != 0) {
            head++;
            back = LANES;
        }
        shift = 0;
        vectors = 0;
        body = NULL;
        if (n < (uint64_t)head + back + LANES) {
            head = (uint32_t)n;
            return;
        }
        shift = (uint32_t)((uintptr_t)(data + (uint64_t)head * SIZE) % CR_GPU_VECTOR);
        vectors = (n - head - back) / LANES;
        body = reinterpret_cast<const uint4 *>(data + (uint64_t)head * SIZE - shift);
    }
    CR_DEVICE uint32_t edges() const { return (uint32_t)(n - vectors * LANES); }
    /* An edge's element and zeros; zeros alone beyond the last. */
    CR_DEVICE uint4 edge(uint32_t i) const {
        if (i >= edges()) return make_uint4(0, 0, 0, 0);
        const uint64_t at = i < head ? i : i + vectors * LANES;
        return cr_alone(cr_load_one<SIZE>(data + at * SIZE));
    }
};

/* The array of a row: the last that begins at it or before. A warp together; 32 at a time. */
CR_DEVICE uint32_t cr_list_find(const cr_list_args &args, uint32_t row) {
    uint32_t low = 0, high = args.count;
    while (high - low > 1) {
        const uint32_t step = (high - low + CR_WARP - 1) / CR_WARP, at = low + step * (threadIdx.x % CR_WARP);
        const bool before = at < high && cr_list_arrays(args)[at].row <= row;
        const uint32_t last = 31 - __clz((int)__ballot_sync(CR_EVERYONE, before));
        low += step * last;
        high = min(high, low + step);
    }
    return low;
}

/* Rows [row, end), which may be of several arrays; at and spot go on with them. */
template <int U, int SIZE>
CR_DEVICE void cr_list_load(uint4 (&v)[U], const cr_list_args &args, uint32_t row, uint32_t end, uint32_t &at,
                            cr_list_window &window, cr_list_spot<SIZE> &spot) {
    if (spot.shift == 0 && row + U <= end && (uint64_t)(row - spot.row + U) * CR_GPU_THREADS <= spot.vectors) {
        const uint4 *from = spot.body + (uint64_t)(row - spot.row) * CR_GPU_THREADS + threadIdx.x;
#pragma unroll
        for (int j = 0; j < U; j++) v[j] = from[j * CR_GPU_THREADS];
        return;
    }
#pragma unroll
    for (int j = 0; j < U; j++) {
        v[j] = make_uint4(0, 0, 0, 0);
        if (row + j >= end) continue;
        if (row + j >= spot.next) spot.take(args, window, ++at);
        const uint64_t i = (uint64_t)(row + j - spot.row) * CR_GPU_THREADS + threadIdx.x;
        if (i >= spot.vectors) continue;
        v[j] = spot.body[i];
        if (spot.shift != 0) v[j] = cr_join(v[j], spot.body[i + 1], spot.shift);
    }
}

/* The single elements of the arrays that begin in rows [row, end): an array a warp. */
template <class A>
CR_DEVICE void cr_list_edges(A &acc, const cr_list_args &args, uint32_t row, uint32_t end, cr_list_window &window,
                             typename A::Shared &shared) {
    const uint32_t lane = threadIdx.x % CR_WARP;
    uint32_t at = cr_list_find(args, row);
    if (cr_list_arrays(args)[at].row < row) at++;
    window.load(args, at);
    for (at += threadIdx.x / CR_WARP; at < args.count && cr_list_arrays(args)[at].row < end; at += CR_WARPS) {
        cr_list_spot<A::SIZE> spot;
        spot.take(args, window, at);
        if (spot.edges() == 0) continue;
        const uint4 v[2] = {spot.edge(lane), spot.edge(lane + CR_WARP)};
        acc.template tile<2>(v, 0, 2, shared);
    }
}

template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_list_walk(const __grid_constant__ cr_list_args args) {
    static_assert(A::SELF, "the accumulator publishes without a ticket");
    constexpr int U = A::UNROLL;
    __shared__ typename A::Shared shared;
    __shared__ cr_list_array arrays[CR_WARPS][CR_WARP];
    A acc;
    cr_let_the_next_begin();
    cr_after_the_last(); /* the descriptors are written before */
    acc.begin(args.fold, shared, acc.sample(args.fold));
    const uint32_t first = blockIdx.x * args.per_block, end = min(first + args.per_block, args.rows);
    uint32_t at = cr_list_find(args, first);
    cr_list_window window;
    window.mine = arrays[threadIdx.x / CR_WARP];
    cr_list_spot<A::SIZE> spot;
    window.load(args, at);
    spot.take(args, window, at);
    for (uint32_t row = first; row < end; row += U) {
        uint4 v[U];
        if (row >= spot.next) spot.take(args, window, ++at);
        cr_list_load<U>(v, args, row, end, at, window, spot);
        acc.template tile<U>(v, 0, U, shared);
    }
    if (args.edges) cr_list_edges(acc, args, first, end, window, shared);
    __syncwarp();
    acc.publish(args.fold, shared);
}

/* given: the beginning of a cr_list_args. */
template <class A> int cr_list_launch(const cr_fold_args *given, void *stream) {
    cr_list_args args = *reinterpret_cast<const cr_list_args *>(given);
    const uint32_t wave = (args.fold.multiprocessors ? args.fold.multiprocessors : 1) * A::BLOCKS;
    uint32_t per = (args.rows + wave - 1) / wave;
    if (per > 1) per = (per + A::UNROLL - 1) / A::UNROLL * A::UNROLL;
    args.per_block = per;
    args.fold.plan.blocks = args.fold.plan.chunks = (args.rows + per - 1) / per;
    return cr_launch(cr_list_walk<A>, args.fold.plan.blocks, CR_GPU_THREADS, stream, args.fold.follows, args);
}

#endif
