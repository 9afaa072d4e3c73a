// warp_atomic: no tree at all: one lane of each warp walks the elements of its 32 lanes, and adds what it found to the answer by one
// atomic. The other 31 lanes do nothing.
//
// What it improves on: an atomic for every element, which makes all threads queue at one address; here it is one for a warp's
// share. What it wastes: 31 of 32 lanes, and with them the GPU's wide loads: a lane alone takes 4 bytes of each 32 it fetches.
//
// The source document's run prints 28.0194 where its own host says 524282, and goes on: it adds halves as halves, whose sums stand
// still at 2,048 and below. It also writes 32 for the width of a warp, and compares an int with the size. Here f16 is added as f32,
// and the walk counts in 64 bits.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *answer) {
    using Op = typename F::Op;
    const unsigned lane = threadIdx.x % warpSize;
    const uint64_t mine = (uint64_t)blockIdx.x * BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * BLOCK;
    if (lane != 0 || mine >= n) return;
    typename F::Acc a = Op::identity();
    for (unsigned other = 0; other < warpSize; other++) {
        for (uint64_t i = mine + other; i < n; i += step) a = Op::combine(a, f.lift(in[i]));
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

CR_LADDER_ROW(warp_atomic, Row)
