// v7_shuffle: lanes of a warp read each other's registers (__shfl_down_sync), so a warp needs no shared memory and no barrier to
// become one value. Shared memory holds one value a warp; the first warp folds those the same way.
//
// What it improves on: v6's tree: 256 slots and eight barriers become 8 slots and one barrier, and the ten steps of two warps.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, uint64_t length, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc of_warps[32]; // a block has at most 32 warps of 32
    const unsigned lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = BLOCK / warpSize;
    const uint64_t first = blockIdx.x * length, last = first + length < n ? first + length : n;
    typename F::Acc a = fold_warp<Op>(fold_run(f, in, first, last));
    if (lane == 0) of_warps[warp] = a;
    __syncthreads();
    if (warp != 0) return;
    a = fold_warp<Op>(lane < warps ? of_warps[lane] : Op::identity());
    if (lane == 0) out[blockIdx.x] = a;
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned processors) { return blocks_held(n, processors); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_held(r.n, r.processors);
        uint64_t length = divide_up(divide_up(r.n, blocks), BLOCK) * BLOCK;
        CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, length, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(v7_shuffle, Row)
