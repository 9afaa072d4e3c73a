// warp_atomic_flat: warp_atomic's two loops as one: k counts all elements of the warp, k / 32 is the round and k % 32 the lane that is
// stood in for.
//
// What it changes: the order. Neighbouring k are neighbouring elements, so what one load fetches serves the next ones, while
// warp_atomic comes back to it a whole array later. What it does not change: one load is waited for before the next, and now each also
// waits for a test of its own; the source document expects a gain that is not there (docs/KERNELS.md).
//
// The source document computes (n - idx + step - 1) / step without a sign: for a warp that begins beyond n that is 2^64, and the
// loop never ends. Here such a warp leaves first.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *answer) {
    using Op = typename F::Op;
    const unsigned lane = threadIdx.x % warpSize;
    const uint64_t mine = (uint64_t)blockIdx.x * BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * BLOCK;
    if (lane != 0 || mine >= n) return;
    const uint64_t rounds = (n - mine + step - 1) / step;
    typename F::Acc a = Op::identity();
    for (uint64_t k = 0; k < rounds * warpSize; k++) {
        const uint64_t i = mine + k / warpSize * step + k % warpSize;
        if (i < n) a = Op::combine(a, f.lift(in[i]));
    }
    Op::atomic(answer, a);
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t, unsigned) { return 1; }
    template <class F>
    static void launch(const Run<F> &r) {
        set_identity<typename F::Op>(r.scratch, r.stream);
        CR_START(kernel, blocks_held(r.n, r.processors), BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
    }
};
} // namespace

CR_LADDER_ROW(warp_atomic_flat, Row)
