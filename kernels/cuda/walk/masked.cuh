/* masked: a masked view of a walk's elements: makes an accumulator for the walk of one to which zeros are nothing (sums, and counts of
 * what is not zero). What the mask leaves out becomes zeros, and how many elements count is told beside: slot->kept.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_MASKED_CUH
#define CURED_KERNELS_CUDA_WALK_MASKED_CUH

#include "kernels/cuda/thread/keep.cuh"
#include "kernels/cuda/walk/walk.cuh"

template <class A>
struct cr_masked {
    static constexpr int SIZE = A::SIZE, UNROLL = A::UNROLL, BLOCKS = A::BLOCKS, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr bool SELF = A::SELF, CHUNKED = cr_chunked<A>::value;
    static_assert(SELF, "what blocks merge by a ticket does not say how many elements count");
    struct Shared {
        typename A::Shared inner;
        uint32_t kept[CR_WARPS];
    };
    typedef typename A::Sample Sample;
    A inner;
    const cr_fold_args *args;
    const uint8_t *quick; /* the byte of the body's first element, where vectors have theirs at multiples of their number; else NULL */
    uint32_t kept;        /* by this thread; a block takes less than 2^32 */

    CR_DEVICE Sample sample(const cr_fold_args &of) { return inner.sample(of); }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, Sample sample) {
        args = &of;
        kept = 0;
        quick = of.mask.data + of.mask.first + of.plan.head;
        if (of.mask.kind != CR_MASK_BYTES || (uintptr_t)quick % LANES != 0) quick = nullptr;
        inner.begin(of, shared.inner, sample);
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&given)[U], uint64_t vector, uint32_t count, Shared &shared) {
        uint4 v[U];
        cr_keep<LANES> keep[U];
        if (quick != nullptr && count == U) {
#pragma unroll
            for (int j = 0; j < U; j++) keep[j].load(quick + (vector + (uint64_t)j * CR_GPU_THREADS) * LANES);
#pragma unroll
            for (int j = 0; j < U; j++) kept += keep[j].settle(args->mask);
        } else {
            look<U>(keep, vector, count);
        }
#pragma unroll
        for (int j = 0; j < U; j++)
            v[j] = make_uint4(given[j].x & keep[j].word(0), given[j].y & keep[j].word(1), given[j].z & keep[j].word(2),
                              given[j].w & keep[j].word(3));
        inner.template tile<U>(v, vector, count, shared.inner);
    }
    /* Masks of bits, of bytes at any address, and of a tile that has fewer vectors. */
    template <int U>
    CR_DEVICE void look(cr_keep<LANES> (&keep)[U], uint64_t vector, uint32_t count) {
#pragma unroll
        for (int j = 0; j < U; j++) {
#pragma unroll
            for (int i = 0; i < cr_keep<LANES>::WORDS; i++) keep[j].top[i] = 0;
            if (j < (int)count)
                kept += keep[j].look(args->mask, args->plan.head + (vector + (uint64_t)j * CR_GPU_THREADS) * LANES);
        }
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        cr_keep<1> keep;
        if (keep.look(args->mask, index - args->index) == 0) return;
        kept++;
        inner.one(bits, index, shared.inner);
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) {
        const uint32_t own = __reduce_add_sync(CR_EVERYONE, kept);
        if (threadIdx.x % CR_WARP == 0) shared.kept[threadIdx.x / CR_WARP] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            uint64_t all = 0;
#pragma unroll
            for (int w = 0; w < CR_WARPS; w++) all += shared.kept[w];
            if (cr_leave_word(&of.state->kept, all, of.plan.blocks)) of.slot->kept = all;
        }
        inner.publish(of, shared.inner);
    }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

template <class A>
int cr_masked_launch(const cr_fold_args *args, void *stream) {
    return cr_walk_launch<cr_masked<A>>(args, stream);
}

#endif
