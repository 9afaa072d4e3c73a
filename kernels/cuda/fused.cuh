/* fused: two accumulators in one walk, neither of which needs the ticket.
 *
 * Thread: device code. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FUSED_CUH
#define CURED_KERNELS_CUDA_FUSED_CUH

#include "kernels/cuda/simt.cuh"

template <class A, class B, int RESIDENT, int U>
struct cr_with {
    static constexpr int SIZE = A::SIZE, UNROLL = U, BLOCKS = RESIDENT;
    static constexpr bool SELF = true, CHUNKED = cr_chunked<A>::value && cr_chunked<B>::value;
    static_assert(A::SELF && B::SELF, "the blocks' slots are for one");
    struct Shared {
        typename A::Shared a;
        typename B::Shared b;
    };
    struct Sample {
        typename A::Sample a;
        typename B::Sample b;
    };
    A a;
    B b;

    CR_IN Sample sample(const cr_fold_args &args) {
        Sample both = {a.sample(args), b.sample(args)};
        return both;
    }
    CR_IN void begin(const cr_fold_args &args, Shared &shared, const Sample &sample) {
        a.begin(args, shared.a, sample.a);
        b.begin(args, shared.b, sample.b);
    }
    template <int N>
    CR_IN void tile(const uint4 (&v)[N], uint64_t vector, uint32_t count, Shared &shared) {
        a.template tile<N>(v, vector, count, shared.a);
        b.template tile<N>(v, vector, count, shared.b);
    }
    CR_IN void one(uint64_t bits, uint64_t index, Shared &shared) {
        a.one(bits, index, shared.a);
        b.one(bits, index, shared.b);
    }
    CR_IN void publish(const cr_fold_args &args, Shared &shared) {
        a.publish(args, shared.a);
        __syncthreads();
        b.publish(args, shared.b);
    }
};

#endif
