// streams: the array in eight pieces. While a piece is folded on the caller's stream, the partials of the piece before come back on
// a stream of their own, and the host adds those before that.
//
// What it improves on: block_host, where device, bus and host take turns.
//
// The source document copies on a second stream what the kernel on the first one is still writing, without an event between them: a
// race. Here each piece's event says "folded" to the copy, and each copy's event says "here" to the host.
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
    tree<Op>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// Elements of a piece: whole blocks, so that a piece's partials follow those of the piece before.
uint64_t piece_length(uint64_t n) { return divide_up(divide_up(n, PIECES), 2 * BLOCK) * (2 * BLOCK); }

struct Row {
    static constexpr bool on_host = true;
    static uint64_t slots(uint64_t n, unsigned) { return blocks_for(n, 2 * BLOCK); }
    template <class F>
    static void launch(const Run<F> &r) {
        const uint64_t length = piece_length(r.n);
        for (uint64_t k = 0, at = 0; at < r.n; k++, at += length) {
            const uint64_t n = r.n - at < length ? r.n - at : length, slot = at / (2 * BLOCK);
            unsigned blocks = blocks_for(n, 2 * BLOCK);
            CR_START(kernel, blocks, BLOCK, r.stream, r.fold, r.in + at, n, r.scratch + slot);
            cudaEventRecord(r.extras->folded[k], r.stream);
            cudaStreamWaitEvent(r.extras->copies, r.extras->folded[k], 0);
            cudaMemcpyAsync(r.host + slot, r.scratch + slot, blocks * sizeof *r.host, cudaMemcpyDeviceToHost, r.extras->copies);
            cudaEventRecord(r.extras->copied[k], r.extras->copies);
        }
    }
    template <class F>
    static void collect(const Run<F> &r, cr_ladder_total *total) {
        const uint64_t length = piece_length(r.n);
        for (uint64_t k = 0, at = 0; at < r.n; k++, at += length) {
            const uint64_t n = r.n - at < length ? r.n - at : length, slot = at / (2 * BLOCK);
            if (cudaEventSynchronize(r.extras->copied[k]) != cudaSuccess) return; // run.cu asks again and tells
            for (unsigned i = 0; i < blocks_for(n, 2 * BLOCK); i++) F::Op::settle(total, r.host[slot + i]);
        }
    }
};
} // namespace

CR_LADDER_ROW(streams, Row)
