// v1_no_divergence: v0's tree with its work given to neighbouring threads: thread t adds at 2·s·t. Whole warps work or rest, so no warp
// takes both sides of a branch until fewer than 32 threads are left, and there is no %.
//
// What it improves on: v0's divergence. What it costs: in step s the lanes of a warp touch every 2s-th word, which lie in
// the same few of the 32 banks of shared memory; their accesses queue up (2-way, 4-way, … 32-way).
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
        const unsigned at = 2 * k * t;
        if (at < BLOCK) s[at] = Op::combine(s[at], s[at + k]);
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

CR_LADDER_ROW(v1_no_divergence, Row)
