// block_host: the device reduces each block to a partial (v2's tree), all partials are copied back, and the host adds them up. The first
// whole reduction of the source documents: simple, and right without a second launch.
//
// What it costs: 1/256 of the array crosses the bus, and one host thread adds it while the GPU waits.
//
// The source document's partials are ints, like the elements: 256 of them may leave 32 bits. Here a partial of i32 has 64 bits, and the
// host adds integers in 128.
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
    static constexpr bool on_host = true;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_for(r.n);
        CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
        cudaMemcpyAsync(r.host, r.scratch, blocks * sizeof *r.host, cudaMemcpyDeviceToHost, r.stream);
    }
    template <class F>
    static void collect(const Run<F> &r, cr_ladder_total *total) {
        if (cudaStreamSynchronize(r.stream) != cudaSuccess) return; // run.cu asks again and tells
        unsigned blocks = blocks_for(r.n);
        for (unsigned i = 0; i < blocks; i++) F::Op::settle(total, r.host[i]);
    }
};
} // namespace

CR_LADDER_ROW(block_host, Row)
