// v4_unroll_last_warp: when 64 values are left, one warp can finish them without a barrier of the block.
//
// What it improves on: v3 pays a __syncthreads, which all eight warps must reach, for each of the last six steps although one warp
// alone has something to do.
//
// The source documents rest on `volatile` and on the lanes of a warp moving in lock-step. Since Volta lanes have program counters of
// their own: one may store before another has loaded. So every step here loads, meets at __syncwarp, stores, and meets again.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

// s[0 … 64) to s[0], by the first warp.
template <class Op>
__device__ void last_warp(typename Op::Acc *s) {
    const unsigned t = threadIdx.x;
#pragma unroll
    for (unsigned k = 32; k > 0; k /= 2) {
        const typename Op::Acc a = Op::combine(s[t], s[t + k]); // t + k < 64: what lies beyond the live part changes nothing
        __syncwarp();
        s[t] = a;
        __syncwarp();
    }
}

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const unsigned t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * (2 * BLOCK) + t;
    typename F::Acc a = i < n ? f.lift(in[i]) : Op::identity();
    if (i + BLOCK < n) a = Op::combine(a, f.lift(in[i + BLOCK]));
    s[t] = a;
    __syncthreads();
    for (unsigned k = BLOCK / 2; k > 32; k /= 2) {
        if (t < k) s[t] = Op::combine(s[t], s[t + k]);
        __syncthreads();
    }
    if (t < 32) last_warp<Op>(s);
    if (t == 0) out[blockIdx.x] = s[0];
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

CR_LADDER_ROW(v4_unroll_last_warp, Row)
