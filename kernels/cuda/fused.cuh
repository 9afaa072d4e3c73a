/* fused: several accumulators in one walk. cr_pair_of joins two of the totals of simt.cuh, cr_with joins accumulators of the walk
 * of which at most one needs the last block (they share the blocks' slots).
 *
 * Thread: device code. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FUSED_CUH
#define CURED_KERNELS_CUDA_FUSED_CUH

#include "kernels/cuda/simt.cuh"

template <class F, class G>
struct cr_pair_of {
    static constexpr unsigned WIDTH = F::WIDTH, ROOM = F::ROOM > G::ROOM ? F::ROOM : G::ROOM;
    static constexpr int BLOCKS = F::BLOCKS < G::BLOCKS ? F::BLOCKS : G::BLOCKS;
    struct total {
        typename F::total f;
        typename G::total g;
    };
    F f;
    G g;

    CR_IN void begin(const cr_fold_args &args) {
        f.begin(args);
        g.begin(args);
    }
    template <int U>
    CR_IN void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        f.template tile<U>(v, vector, count);
        g.template tile<U>(v, vector, count);
    }
    CR_IN void one(uint64_t bits) {
        f.one(bits);
        g.one(bits);
    }
    CR_IN void close(uint64_t *room, total &t) {
        f.close(room, t.f);
        __syncthreads();
        g.close(room, t.g);
    }
    static CR_IN void empty(total &t) {
        F::empty(t.f);
        G::empty(t.g);
    }
    static CR_IN void merge(total &t, const total &other) {
        F::merge(t.f, other.f);
        G::merge(t.g, other.g);
    }
    static CR_IN void reduce(total &t, uint64_t *room) {
        F::reduce(t.f, room);
        __syncthreads();
        G::reduce(t.g, room);
    }
    static CR_IN void put(const total &t, const cr_fold_args &args) {
        F::put(t.f, args);
        G::put(t.g, args);
    }
};

template <class A, class B, int RESIDENT, int U>
struct cr_with {
    static constexpr int SIZE = A::SIZE, UNROLL = U, BLOCKS = RESIDENT;
    static constexpr bool SELF = A::SELF && B::SELF;
    static_assert(A::SELF || B::SELF, "both want the blocks' slots");
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
        b.publish(args, shared.b);
    }
    CR_IN void collect(const cr_fold_args &args, Shared &shared) {
        if constexpr (!A::SELF) a.collect(args, shared.a);
        if constexpr (!B::SELF) b.collect(args, shared.b);
    }
};

#endif
