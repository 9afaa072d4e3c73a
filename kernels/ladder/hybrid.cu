// hybrid: passes on the device while there is much to fold, and the host for the last few hundred values: a launch to add up a few
// numbers takes longer than the host's addition.
//
// What it improves on: multi_pass's last launches, and block_host's long copy: at most THRESHOLD values come back.
#include "kernels/ladder/grid_stride.cuh"

namespace {
using namespace cr_ladder;

constexpr unsigned THRESHOLD = 512; // what the host takes

struct Row {
    static constexpr bool on_host = true;
    static uint64_t slots(uint64_t n, unsigned processors) { return 2 * (uint64_t)blocks_held(n, processors); }
    template <class F>
    static void launch(const Run<F> &r) {
        using Op = typename F::Op;
        unsigned left = blocks_held(r.n, r.processors);
        typename F::Acc *from = r.scratch, *to = r.scratch + left;
        CR_START(grid_stride_kernel, left, BLOCK, r.stream, r.fold, r.in, r.n, from);
        while (left > THRESHOLD) {
            unsigned blocks = blocks_held(left, r.processors);
            CR_START(grid_stride_kernel, blocks, BLOCK, r.stream, Again<Op>{}, from, left, to);
            typename F::Acc *t = from;
            from = to;
            to = t;
            left = blocks;
        }
        cudaMemcpyAsync(r.host, from, left * sizeof *from, cudaMemcpyDeviceToHost, r.stream);
    }
    template <class F>
    static void collect(const Run<F> &r, cr_ladder_total *total) {
        if (cudaStreamSynchronize(r.stream) != cudaSuccess) return; // run.cu asks again and tells
        unsigned left = blocks_held(r.n, r.processors);
        while (left > THRESHOLD) left = blocks_held(left, r.processors);
        for (unsigned i = 0; i < left; i++) F::Op::settle(total, r.host[i]);
    }
};
} // namespace

CR_LADDER_ROW(hybrid, Row)
