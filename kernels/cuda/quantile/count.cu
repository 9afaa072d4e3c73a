/* count: counts the next bits of keys whose upper bits are sought, in bins that each block has in shared memory. Elements are taken as
 * they lie: elements whose keys begin alike begin alike themselves, and which bin is which key's is asked when the bins are added up.
 *
 * Data whose elements are alike would have all lanes add to one bin, one after the other. So a thread counts elements that follow each
 * other in one bin by itself, and adds when another comes: constant and sorted data take as long as any. And there are copies of few bins,
 * for lanes that lie side by side.
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel; the bins are the block's. */
#include "kernels/cuda/quantile/quantile.h"
#include "kernels/cuda/thread/simt.cuh"

/* The smallest integer that holds an element. */
template <int SIZE> struct cr_quantile_key { using type = uint32_t; };
template <> struct cr_quantile_key<8> { using type = uint64_t; };

/* A block's vectors of an array, and of one block what lies before and behind them. */
template <int SIZE, class Vector, class Single>
CR_DEVICE void cr_quantile_each(const uint8_t *data, const cr_fold_plan &plan, const Vector &vector, const Single &single) {
    const uint4 *from = reinterpret_cast<const uint4 *>(data + (uint64_t)plan.head * SIZE - plan.shift);
    const uint64_t first = blockIdx.x * plan.per_block, end = min(plan.vectors, first + plan.per_block);
    for (uint64_t at = first + threadIdx.x; at < end; at += CR_GPU_FEWER * CR_GPU_THREADS) {
        uint4 v[CR_GPU_FEWER];
        const uint32_t count = cr_load<CR_GPU_FEWER>(v, from, plan.shift, at, end);
#pragma unroll
        for (uint32_t j = 0; j < CR_GPU_FEWER; j++)
            if (j < count) vector(v[j]);
    }
    const uint64_t behind = plan.head + plan.vectors * (CR_GPU_VECTOR / SIZE);
    for (uint32_t i = threadIdx.x; blockIdx.x == 0 && i < plan.head + plan.tail; i += CR_GPU_THREADS)
        single(cr_load_one<SIZE>(data + (i < plan.head ? i : behind + (i - plan.head)) * SIZE));
}

template <int SIZE, int MODE> struct cr_quantile_counter {
    using Key = typename cr_quantile_key<SIZE>::type;
    static constexpr int ELEMENTS = CR_GPU_VECTOR / SIZE;
    const cr_quantile_args &args;
    uint32_t *bins;
    const uint8_t *group_at; /* of many: of elements of two bytes, by the upper one */
    const uint32_t lane;
    uint32_t run_at, run;      /* elements of a bin that are not added yet; nobody's bin is behind the last */
    uint32_t nans, nans_below; /* of all; the second have their sign set */

    CR_DEVICE cr_quantile_counter(const cr_quantile_args &told, uint32_t *memory, const uint8_t *table)
        : args(told), bins(memory), group_at(table), lane(threadIdx.x & (told.copies - 1)), run_at(CR_QUANTILE_SHARED), run(0), nans(0), nans_below(0) {}

    CR_DEVICE void flush() { atomicAdd(&bins[run_at], run); }
    CR_DEVICE void put(uint32_t bin) {
        const uint32_t at = bin * args.copies + lane;
        if (at != run_at) {
            flush();
            run_at = at;
            run = 0;
        }
        run++;
    }
    CR_DEVICE void element(Key bits) {
        if constexpr (MODE == CR_QUANTILE_ALL) {
            if (SIZE == 1 && args.is_bool) bits = bits != 0;
            put((uint32_t)(bits >> args.below));
        } else if constexpr (MODE == CR_QUANTILE_MANY) {
            const uint32_t group = group_at[bits >> 8];
            if (group != CR_QUANTILE_GROUPS) put((group << args.bits) + (uint32_t)(bits & 255));
        } else {
            const Key span = (Key)1 << (args.bits + args.below);
#pragma unroll
            for (uint32_t g = 0; g < (MODE == CR_QUANTILE_ONE ? 1 : CR_QUANTILE_FEW); g++) {
                const Key lower = bits - (Key)args.base[g];
                if (lower >= span) continue;
                put((g << args.bits) + (uint32_t)(lower >> args.below));
                break;
            }
        }
    }
    CR_DEVICE bool is_nan(Key bits) const { return (bits & (Key)(args.turns.top - 1)) > (Key)args.turns.last; }
    CR_DEVICE void look(Key bits) {
        nans += is_nan(bits);
        nans_below += is_nan(bits) && (bits & (Key)args.turns.top) != 0;
    }
    CR_DEVICE void vector(const uint4 &v) {
        if (MODE == CR_QUANTILE_ALL && args.is_float) {
            bool any = false;
#pragma unroll
            for (unsigned e = 0; e < ELEMENTS; e++) any |= is_nan((Key)cr_element<SIZE>(v, e));
            if (any) {
#pragma unroll
                for (unsigned e = 0; e < ELEMENTS; e++) look((Key)cr_element<SIZE>(v, e));
            }
        }
#pragma unroll
        for (unsigned e = 0; e < ELEMENTS; e++) element((Key)cr_element<SIZE>(v, e));
    }
    CR_DEVICE void single(uint64_t bits) {
        if (MODE == CR_QUANTILE_ALL && args.is_float) look((Key)bits);
        element((Key)bits);
    }
    /* The key's digit of a bin. */
    CR_DEVICE uint32_t digit_of(uint32_t bin) const {
        const uint32_t mask = (1u << args.bits) - 1;
        if (MODE != CR_QUANTILE_ALL) return bin ^ args.flip[bin >> args.bits];
        const bool has_sign = (bin & (1u << (args.bits - 1))) != 0;
        return bin ^ ((uint32_t)((has_sign ? args.turns.with_sign : args.turns.without) >> args.below) & mask);
    }
};

template <int SIZE, int MODE> __global__ void __launch_bounds__(CR_GPU_THREADS) cr_quantile_kernel(const __grid_constant__ cr_quantile_args args) {
    __shared__ uint32_t bins[CR_QUANTILE_SHARED + 1];
    const uint32_t count = args.groups << args.bits;
    for (uint32_t i = threadIdx.x; i < count * args.copies; i += CR_GPU_THREADS) bins[i] = 0;
    __shared__ uint8_t group_at[256];
    if (MODE == CR_QUANTILE_MANY) {
        for (uint32_t i = threadIdx.x; i < 256; i += CR_GPU_THREADS) {
            uint32_t group = 0;
            while (group < args.groups && args.base[group] >> 8 != i) group++;
            group_at[i] = (uint8_t)(group < args.groups ? group : (uint32_t)CR_QUANTILE_GROUPS);
        }
    }
    __syncthreads();
    cr_quantile_counter<SIZE, MODE> counter(args, bins, group_at);
    cr_quantile_each<SIZE>(
        args.data, args.plan, [&](const uint4 &v) { counter.vector(v); }, [&](uint64_t bits) { counter.single(bits); });
    counter.flush();
    if (MODE == CR_QUANTILE_ALL && args.is_float) {
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
        if (sum != 0) atomicAdd(&args.counts[CR_QUANTILE_BINS + counter.digit_of(i)], sum);
    }
}

/* What there is of sizes and modes: types of one byte are read once, and of a read of 64-bit types each group is a launch. */
extern "C" int cr_quantile_launch(const cr_quantile_args *args, uint32_t size, uint32_t mode, void *stream) {
    const uint32_t blocks = args->plan.blocks;
#define CASE(bytes, how) \
    if (size == bytes && mode == how) return CR_LAUNCH((cr_quantile_kernel<bytes, how>), blocks, CR_GPU_THREADS, stream, *args);
    CASE(1, CR_QUANTILE_ALL)
    CASE(2, CR_QUANTILE_ALL)
    CASE(2, CR_QUANTILE_ONE)
    CASE(2, CR_QUANTILE_MANY)
    CASE(4, CR_QUANTILE_ALL)
    CASE(4, CR_QUANTILE_ONE)
    CASE(4, CR_QUANTILE_SOME)
    CASE(8, CR_QUANTILE_ALL)
    CASE(8, CR_QUANTILE_ONE)
#undef CASE
    return 1; /* cudaErrorInvalidValue: the plan of groups and these rows do not agree */
}

template <int SIZE> __global__ void __launch_bounds__(CR_GPU_THREADS) cr_quantile_gather_kernel(const __grid_constant__ cr_quantile_gather_args args) {
    using Key = typename cr_quantile_key<SIZE>::type;
    const auto put = [&](uint64_t bits) {
        for (uint32_t g = 0; g < args.groups; g++) {
            if ((Key)((Key)bits - (Key)args.base[g]) >= (Key)args.span) continue;
            const unsigned long long at = atomicAdd(args.to, 1ull);
            if (at < args.room) reinterpret_cast<Key *>(args.to + 1)[at] = (Key)bits;
        }
    };
    cr_quantile_each<SIZE>(
        args.data, args.plan,
        [&](const uint4 &v) {
#pragma unroll
            for (unsigned e = 0; e < CR_GPU_VECTOR / SIZE; e++) put(cr_element<SIZE>(v, e));
        },
        put);
}

extern "C" int cr_quantile_gather_launch(const cr_quantile_gather_args *args, uint32_t size, void *stream) {
    if (size == 4) return CR_LAUNCH(cr_quantile_gather_kernel<4>, args->plan.blocks, CR_GPU_THREADS, stream, *args);
    return CR_LAUNCH(cr_quantile_gather_kernel<8>, args->plan.blocks, CR_GPU_THREADS, stream, *args);
}
