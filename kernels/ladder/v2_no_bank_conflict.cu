// v2_no_bank_conflict: the tree turned round: the upper half of what is left is added onto the lower half. Thread t touches words t
// and t + s, neighbours touch neighbouring banks, and the threads at work are still the first ones.
//
// What it improves on: v1's bank conflicts. What is left: each thread loads one element and half of them are idle from the first
// step on, so the time goes to starting blocks and to barriers.
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
    for (unsigned k = BLOCK / 2; k > 0; k /= 2) {
        if (t < k) s[t] = Op::combine(s[t], s[t + k]);
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

CR_LADDER_ROW(v2_no_bank_conflict, Row)
