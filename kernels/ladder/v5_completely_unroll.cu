// v5_completely_unroll: the number of threads is a template parameter, so that the compiler knows every step of the tree: no loop
// counter, no test of it, and steps that this block size does not have are not compiled at all.
//
// What it improves on: v4's loop over the upper steps. (The source document has this heading and nothing below it.)
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

// One step and then the rest of them: s[0 … 2·HALF) to s[0]. Steps of one warp do without the block's barrier, as in v4.
template <class Op, unsigned HALF>
__device__ __forceinline__ void steps(typename Op::Acc *s) {
    const unsigned t = threadIdx.x;
    if constexpr (HALF > 32) {
        if (t < HALF) s[t] = Op::combine(s[t], s[t + HALF]);
        __syncthreads();
        steps<Op, HALF / 2>(s);
    } else if constexpr (HALF > 0) {
        if (t >= 32) return;
        const typename Op::Acc a = Op::combine(s[t], s[t + HALF]);
        __syncwarp();
        s[t] = a;
        __syncwarp();
        steps<Op, HALF / 2>(s);
    }
}

template <unsigned THREADS, class F>
__global__ void __launch_bounds__(THREADS) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    static_assert(THREADS >= 64 && (THREADS & (THREADS - 1)) == 0, "a power of two, two warps at least");
    __shared__ typename F::Acc s[THREADS];
    const uint64_t i = (uint64_t)blockIdx.x * (2 * THREADS) + threadIdx.x;
    typename F::Acc a = i < n ? f.lift(in[i]) : Op::identity();
    if (i + THREADS < n) a = Op::combine(a, f.lift(in[i + THREADS]));
    s[threadIdx.x] = a;
    __syncthreads();
    steps<Op, THREADS / 2>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n, 2 * BLOCK); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_for(r.n, 2 * BLOCK);
        CR_START(kernel<BLOCK>, blocks, BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(v5_completely_unroll, Row)
