// v0_baseline: the idea that all others improve on. Each thread brings one element into shared memory; then the block adds them
// up as a binary tree, and writes one partial.
//
// What is slow about it: in step s only every 2s-th thread works, so each warp takes both sides of the branch, and nearly all
// of its lanes wait (and % is a slow instruction); half of the threads never do more than load.
//
// The source document reads beyond n when n is no multiple of the block. Here a thread without an element brings the identity.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const unsigned t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * BLOCK + t;
    s[t] = i < n ? f.lift(in[i]) : Op::identity();
    __syncthreads();
    for (unsigned k = 1; k < BLOCK; k *= 2) {
        if (t % (2 * k) == 0) s[t] = Op::combine(s[t], s[t + k]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_for(r.n);
        CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(v0_baseline, Row)
