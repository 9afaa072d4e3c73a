/* counts: how many elements are NaNs, and how many are not zero. The simplest accumulator: an example for the others.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/walk.cuh"

namespace {

/* Of one element's bits: 1 where it is not zero (a NaN is not; -0.0 is), and where it is a NaN. */
template <int BYTES, unsigned long long INFINITY_BITS> struct cr_counts {
    static constexpr int SIZE = BYTES, BLOCKS = 4;
    static constexpr bool SELF = false;
    static constexpr bool FLOAT = INFINITY_BITS != 0;
    static constexpr uint64_t MAGNITUDE = FLOAT ? ~0ull >> (65 - 8 * BYTES) : ~0ull >> (64 - 8 * BYTES);
    struct Shared {
        unsigned long long nans, nonzero;
    };
    struct Sample {};
    uint64_t nans, nonzero;

    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }

    CR_DEVICE void begin(const cr_fold_args &, Shared &shared, Sample) {
        nans = nonzero = 0;
        if (threadIdx.x == 0) shared.nans = shared.nonzero = 0;
        __syncthreads();
    }

    CR_DEVICE void element(uint64_t bits, uint32_t &some_nans, uint32_t &some_nonzero) {
        bits &= MAGNITUDE;
        some_nonzero += bits != 0;
        if (FLOAT) some_nans += bits > INFINITY_BITS;
    }

    /* What lies beyond the end is zeros: neither. */
    template <int U> CR_DEVICE void tile(const uint4 (&v)[U], uint64_t, uint32_t, Shared &) {
        uint32_t some_nans = 0, some_nonzero = 0;
#pragma unroll
        for (int j = 0; j < U; j++) {
#pragma unroll
            for (int e = 0; e < CR_GPU_VECTOR / SIZE; e++) element(cr_lane<SIZE>(v[j], e), some_nans, some_nonzero);
        }
        nans += some_nans;
        nonzero += some_nonzero;
    }

    CR_DEVICE void one(uint64_t bits, uint64_t, Shared &) {
        uint32_t some_nans = 0, some_nonzero = 0;
        element(bits, some_nans, some_nonzero);
        nans += some_nans;
        nonzero += some_nonzero;
    }

    CR_DEVICE void into_shared(Shared &shared, uint64_t a, uint64_t b) {
        for (int step = 16; step > 0; step /= 2) {
            a += __shfl_xor_sync(~0u, a, step);
            b += __shfl_xor_sync(~0u, b, step);
        }
        if (threadIdx.x % 32 == 0) {
            atomicAdd(&shared.nans, a);
            atomicAdd(&shared.nonzero, b);
        }
        __syncthreads();
    }

    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        into_shared(shared, nans, nonzero);
        if (threadIdx.x == 0) *cr_block_slot<Shared>(args, blockIdx.x) = shared;
    }

    CR_DEVICE void collect(const cr_fold_args &args, Shared &shared) {
        uint64_t a = 0, b = 0;
        for (uint32_t i = threadIdx.x; i < args.plan.blocks; i += CR_GPU_THREADS) {
            const volatile Shared *slot = cr_block_slot<Shared>(args, i);
            a += slot->nans;
            b += slot->nonzero;
        }
        if (threadIdx.x == 0) shared.nans = shared.nonzero = 0;
        __syncthreads();
        into_shared(shared, a, b);
        if (threadIdx.x == 0) {
            args.slot->partial.nans = shared.nans;
            args.slot->partial.nonzero = shared.nonzero;
        }
    }
};

} // namespace

extern "C" cr_fold_launcher cr_launch_counts(cr_dtype dtype) {
    switch ((int)dtype) {
        case CR_F16:
            return cr_walk_launch<cr_counts<2, 0x7c00>>;
        case CR_BF16:
            return cr_walk_launch<cr_counts<2, 0x7f80>>;
        case CR_F32:
            return cr_walk_launch<cr_counts<4, 0x7f800000>>;
        case CR_F64:
            return cr_walk_launch<cr_counts<8, 0x7ff0000000000000>>;
    }
    switch (cr_dtype_size(dtype)) {
        case 1:
            return cr_walk_launch<cr_counts<1, 0>>;
        case 2:
            return cr_walk_launch<cr_counts<2, 0>>;
        case 4:
            return cr_walk_launch<cr_counts<4, 0>>;
        case 8:
            return cr_walk_launch<cr_counts<8, 0>>;
    }
    return NULL;
}
