// v3_add_during_load: each thread takes two elements, a block apart, and adds them on the way into shared memory.
//
// What it improves on: v2's threads that only load. Half as many blocks do the same work, and every thread adds at least once.
//
// The source document wants n to be a multiple of two blocks. Here each of the two elements is looked for by itself.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const uint64_t i = (uint64_t)blockIdx.x * (2 * BLOCK) + threadIdx.x;
    typename F::Acc a = i < n ? f.lift(in[i]) : Op::identity();
    if (i + BLOCK < n) a = Op::combine(a, f.lift(in[i + BLOCK]));
    s[threadIdx.x] = a;
    __syncthreads();
    tree<Op>(s); // as in v2
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n, 2 * BLOCK); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_for(r.n, 2 * BLOCK);
        CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(v3_add_during_load, Row)
