// multi_pass: the block's tree again and again, over the partials of the pass before, until one value is left. Nothing but that value
// leaves the device.
//
// What it improves on: block_host's copy and its lonely host thread. What it costs: a launch for every factor of 256.
//
// The source document swaps its two pointers after each pass, which makes the caller's input an output buffer from pass 2 on: the
// input is destroyed. Here the passes go back and forth between two buffers of their own.
#include "kernels/ladder/row.cuh"

namespace {
using namespace cr_ladder;

template <class F>
__global__ void __launch_bounds__(BLOCK) kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const uint64_t i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x;
    s[threadIdx.x] = i < n ? f.lift(in[i]) : Op::identity();
    __syncthreads();
    tree<Op>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n) + blocks_for(blocks_for(n)); }
    template <class F>
    static void launch(const Run<F> &r) {
        using Op = typename F::Op;
        unsigned left = blocks_for(r.n);
        typename F::Acc *from = r.scratch, *to = r.scratch + left;
        CR_START(kernel, left, BLOCK, r.stream, r.fold, r.in, r.n, from);
        while (left > 1) {
            unsigned blocks = blocks_for(left);
            CR_START(kernel, blocks, BLOCK, r.stream, Again<Op>{}, from, left, to);
            typename F::Acc *t = from;
            from = to;
            to = t;
            left = blocks;
        }
        if (from != r.scratch) cudaMemcpyAsync(r.scratch, from, sizeof *from, cudaMemcpyDeviceToDevice, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(multi_pass, Row)
