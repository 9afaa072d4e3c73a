// v6_multi_add: as many blocks as the GPU holds at a time, no more, and each folds one long run of neighbouring elements, many to a
// thread, before the tree is gone through once.
//
// What it improves on: in v0 … v5 a block lives for one or two loads a thread, and then for a tree. Here the tree is paid once for
// thousands of elements, eight loads are on their way at a time, and a thousand partials are left instead of millions.
//
// (The source document skips this number; its v7 takes several elements a thread, by a constant that n has to fit.)
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, uint64_t length, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const uint64_t first = blockIdx.x * length, last = first + length < n ? first + length : n;
    s[threadIdx.x] = fold_run(f, in, first, last);
    __syncthreads();
    tree<Op>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned processors) { return blocks_held(n, processors); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_held(r.n, r.processors);
        uint64_t length = divide_up(divide_up(r.n, blocks), BLOCK) * BLOCK; // whole rows of the block
        CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, length, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(v6_multi_add, Row)
