// block_atomic: warp_atomic's idea taken further: one thread walks the elements of its whole block, and there is one atomic a block.
//
// What it improves on: the number of atomics, by eight; and its walk is one plain loop over neighbours, so that what a load fetches
// serves the next ones. What it shows: it helps little, for the atomics were not what took the time: one thread in 256 works.
// (The source document found it slower than warp_atomic, for that reason.) Sharing the work inside the block, as v0 … v7 do, is what helps.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *answer) {
    using Op = typename F::Op;
    const uint64_t start = (uint64_t)blockIdx.x * BLOCK, step = (uint64_t)gridDim.x * BLOCK;
    if (threadIdx.x != 0) return;
    typename F::Acc a = Op::identity();
    for (uint64_t round = start; round < n; round += step) {
        const uint64_t last = round + BLOCK < n ? round + BLOCK : n;
        for (uint64_t i = round; i < last; i++) a = Op::combine(a, f.lift(in[i]));
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

CR_LADDER_ROW(block_atomic, Row)
