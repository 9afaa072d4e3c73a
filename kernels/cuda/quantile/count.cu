/* count: counts the next bits of keys whose upper bits are sought, in bins that each block has in shared memory.
 *
 * Data whose elements are alike would have all lanes add to one bin, one after the other. So a thread counts elements that follow each
 * other in one bin by itself, and adds when another comes: constant and sorted data take as long as any. And there are copies of few bins,
 * for lanes that lie side by side.
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel; the bins are the block's. */
#include "kernels/cuda/quantile/quantile.h"
#include "kernels/cuda/thread/simt.cuh"

/* The smallest integer that holds a key. */
template <int SIZE> struct cr_key_of { using type = uint32_t; };
template <> struct cr_key_of<8> { using type = uint64_t; };

template <int SIZE> struct cr_quantile_counter {
    using Key = typename cr_key_of<SIZE>::type;
    const cr_quantile_args &args;
    uint32_t *bins;
    uint32_t run_at, run;      /* elements of a bin that are not added yet */
    uint32_t nans_below, nans; /* of the first read; the second is of both signs */

    CR_DEVICE cr_quantile_counter(const cr_quantile_args &told, uint32_t *memory)
        : args(told), bins(memory), run_at(0), run(0), nans_below(0), nans(0) {}

    CR_DEVICE void flush() {
        if (run != 0) atomicAdd(&bins[run_at], run);
        run = 0;
    }
    /* The group whose upper bits these are; as many as there are groups: none's. */
    CR_DEVICE uint32_t group_of(Key upper) const {
        if (args.groups == 1) return upper != (Key)args.upper[0];
        uint32_t low = 0, high = args.groups;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if ((Key)args.upper[middle] < upper) low = middle + 1;
            else high = middle;
        }
        return low < args.groups && (Key)args.upper[low] == upper ? low : args.groups;
    }
    CR_DEVICE void element(Key bits) {
        const Key top = (Key)args.turns.top;
        if (args.is_bool) bits = bits != 0;
        if (args.first) {
            const bool nan = (bits & (Key)(top - 1)) > (Key)args.turns.last;
            nans += nan;
            nans_below += nan && (bits & top) != 0;
        }
        const Key key = bits ^ (Key)((bits & top) != 0 ? args.turns.with_sign : args.turns.without);
        const Key left = key >> args.below;
        const uint32_t group = args.first ? 0 : group_of(left >> args.bits);
        const uint32_t digit = (uint32_t)left & ((1u << args.bits) - 1);
        const uint32_t at = ((group << args.bits) + digit) * args.copies + (threadIdx.x & (args.copies - 1));
        if (group == args.groups) return;
        if (at != run_at) {
            flush();
            run_at = at;
        }
        run++;
    }
    CR_DEVICE void vector(const uint4 &v) {
#pragma unroll
        for (unsigned e = 0; e < CR_GPU_VECTOR / SIZE; e++) element((Key)cr_element<SIZE>(v, e));
    }
    /* What lies before and behind the body; of one block. */
    CR_DEVICE void singles() {
        const cr_fold_plan &plan = args.plan;
        const uint64_t behind = plan.head + plan.vectors * (CR_GPU_VECTOR / SIZE);
        for (uint32_t i = threadIdx.x; i < plan.head + plan.tail; i += CR_GPU_THREADS)
            element((Key)cr_load_one<SIZE>(args.data + (i < plan.head ? i : behind + (i - plan.head)) * SIZE));
    }
    CR_DEVICE void body() {
        const cr_fold_plan &plan = args.plan;
        const uint4 *from = reinterpret_cast<const uint4 *>(args.data + (uint64_t)plan.head * SIZE - plan.shift);
        const uint64_t first = blockIdx.x * plan.per_block, end = min(plan.vectors, first + plan.per_block);
        for (uint64_t at = first + threadIdx.x; at < end; at += CR_GPU_FEWER * CR_GPU_THREADS) {
            uint4 v[CR_GPU_FEWER];
            const uint32_t count = cr_load<CR_GPU_FEWER>(v, from, plan.shift, at, end);
#pragma unroll
            for (uint32_t j = 0; j < CR_GPU_FEWER; j++)
                if (j < count) vector(v[j]);
        }
    }
};

template <int SIZE> __global__ void __launch_bounds__(CR_GPU_THREADS) cr_quantile_kernel(const __grid_constant__ cr_quantile_args args) {
    __shared__ uint32_t bins[CR_QUANTILE_SHARED];
    const uint32_t count = args.groups << args.bits;
    for (uint32_t i = threadIdx.x; i < count * args.copies; i += CR_GPU_THREADS) bins[i] = 0;
    __syncthreads();
    cr_quantile_counter<SIZE> counter(args, bins);
    counter.body();
    if (blockIdx.x == 0) counter.singles();
    counter.flush();
    if (args.first) {
        const uint32_t all = __reduce_add_sync(CR_EVERYONE, counter.nans), below = __reduce_add_sync(CR_EVERYONE, counter.nans_below);
        if (threadIdx.x % CR_WARP == 0 && all != 0) {
            atomicAdd(&args.counts[CR_QUANTILE_BELOW], (unsigned long long)below);
            atomicAdd(&args.counts[CR_QUANTILE_ABOVE], (unsigned long long)(all - below));
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += CR_GPU_THREADS) {
        unsigned long long sum = 0;
        for (uint32_t copy = 0; copy < args.copies; copy++) sum += bins[i * args.copies + copy];
        if (sum != 0) atomicAdd(&args.counts[CR_QUANTILE_BINS + i], sum);
    }
}

extern "C" int cr_quantile_launch(const cr_quantile_args *args, uint32_t size, void *stream) {
    const uint32_t blocks = args->plan.blocks;
    switch (size) {
        case 1:
            return CR_LAUNCH(cr_quantile_kernel<1>, blocks, CR_GPU_THREADS, stream, *args);
        case 2:
            return CR_LAUNCH(cr_quantile_kernel<2>, blocks, CR_GPU_THREADS, stream, *args);
        case 4:
            return CR_LAUNCH(cr_quantile_kernel<4>, blocks, CR_GPU_THREADS, stream, *args);
        default:
            return CR_LAUNCH(cr_quantile_kernel<8>, blocks, CR_GPU_THREADS, stream, *args);
    }
}
