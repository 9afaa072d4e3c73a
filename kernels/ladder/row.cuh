// row: how a kernel of the ladder joins it. A row is a struct with
//   on_host                      whether the host takes part in the answer
//   slots(n, processors)         accumulators of scratch it needs for n elements
//   launch(run)                  enqueues everything; the answer is then in run.scratch[0] (or, on_host, under way)
//   collect(run, total)          on_host only: waits, and settles what came back
// CR_LADDER_ROW(name, Row) makes of it one function for run.cu, for all types and ops.
//
// Thread: the one that uses the space. Owner: the space owns scratch, pinned memory, stream and events.
#ifndef CURED_KERNELS_LADDER_ROW_CUH
#define CURED_KERNELS_LADDER_ROW_CUH

#include <cuda_runtime.h>

#include "kernels/ladder/ops.cuh"

// kernel<<<blocks, threads, 0, stream>>>(arguments); errors are asked for in run.cu. Tests on the host have a launch of their own
// (tests/gpu/emulate).
#if defined(CR_LAUNCH)
#define CR_START(...) static_cast<void>(CR_LAUNCH(__VA_ARGS__))
#else
#define CR_START(kernel, blocks, threads, stream, ...) kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__)
#endif

namespace cr_ladder {

constexpr unsigned BLOCK = 256;     // threads of a block, everywhere
constexpr unsigned PIECES = 8;      // of "streams"
constexpr uint64_t SPARE = 1024;    // slots behind a row's own, for fold_partials
constexpr uint64_t MAX_RUN = 1u << 31; // elements of one launch

// What rows beyond the plain need; made with the space.
struct Extras {
    cudaStream_t copies;
    cudaEvent_t folded[PIECES], copied[PIECES];
};

template <class F>
struct Run {
    F fold;
    const typename F::In *in;
    uint64_t n; // 1 … MAX_RUN
    typename F::Acc *scratch; // device
    typename F::Acc *host;    // pinned
    unsigned processors;
    cudaStream_t stream;
    Extras *extras;
};

inline uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

// Blocks for one element a thread; and as many as the GPU holds at a time, if there is work for them.
inline unsigned blocks_for(uint64_t n, unsigned per_block = BLOCK) { return (unsigned)divide_up(n, per_block); }
inline unsigned blocks_held(uint64_t n, unsigned processors) {
    uint64_t most = processors * (2048 / BLOCK), wanted = divide_up(n, BLOCK);
    return (unsigned)(wanted < most ? wanted : most);
}

// finish.cu: folds partials[0 … count) to partials[0]; partials[count … count + SPARE) are used on the way.
template <class Op>
void fold_partials(typename Op::Acc *partials, uint64_t count, cudaStream_t stream);
// *at = the identity: for rows that add to it by atomics.
template <class Op>
void set_identity(typename Op::Acc *at, cudaStream_t stream);

// ---- Pieces that several rows are made of ----

// The tree of v2 over s[0 … BLOCK): the answer is in s[0].
template <class Op>
__device__ inline void tree(typename Op::Acc *s) {
    for (unsigned k = BLOCK / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) s[threadIdx.x] = Op::combine(s[threadIdx.x], s[threadIdx.x + k]);
        __syncthreads();
    }
}

// Lane 0 has the warp's.
template <class Op>
__device__ inline typename Op::Acc fold_warp(typename Op::Acc a) {
    for (unsigned k = warpSize / 2; k > 0; k /= 2) a = Op::combine(a, shuffle_down(a, k));
    return a;
}

// The elements first + threadIdx.x, + BLOCK, … below last, eight loads in flight.
template <class F>
__device__ inline typename F::Acc fold_run(const F &f, const typename F::In *in, uint64_t first, uint64_t last) {
    using Op = typename F::Op;
    constexpr unsigned LOADS = 8;
    typename F::Acc a = Op::identity();
    uint64_t i = first + threadIdx.x;
    for (; i + (LOADS - 1) * BLOCK < last; i += LOADS * BLOCK) {
        typename F::In x[LOADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) x[k] = in[i + k * BLOCK];
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) a = Op::combine(a, f.lift(x[k]));
    }
    for (; i < last; i += BLOCK) a = Op::combine(a, f.lift(in[i]));
    return a;
}

// ---- From a request to the row's templates ----

enum Want { SIZE, LAUNCH, COLLECT };

struct Request {
    Want want;
    cr_op op;
    cr_dtype dtype;
    const void *in;
    uint64_t n;
    unsigned processors;
    void *scratch, *host;
    cudaStream_t stream;
    Extras *extras;
    cr_ladder_total *total;             // COLLECT
    uint64_t scratch_bytes, host_bytes; // SIZE gives these
    bool on_host;
};

template <class Row, class F>
void serve(F f, Request *r) {
    using Acc = typename F::Acc;
    const Run<F> run = {f,          (const typename F::In *)r->in, r->n, (Acc *)r->scratch, (Acc *)r->host, r->processors,
                        r->stream, r->extras};
    r->on_host = Row::on_host;
    if (r->want == SIZE) {
        uint64_t slots = Row::slots(r->n, r->processors);
        r->scratch_bytes = (slots + SPARE) * sizeof(Acc);
        r->host_bytes = (Row::on_host ? slots : 1) * sizeof(Acc);
    } else if (r->want == LAUNCH) {
        Row::launch(run);
    } else if constexpr (Row::on_host) {
        Row::collect(run, r->total);
    } else {
        F::Op::settle(r->total, run.host[0]);
    }
}

template <class Row, class T, class Sum, class Prod, class Max>
void choose_op(uint64_t nonzero_mask, Request *r) {
    if (r->op == CR_OP_SUM) return serve<Row>(Fold<T, Sum>{0}, r);
    if (r->op == CR_OP_PROD) return serve<Row>(Fold<T, Prod>{0}, r);
    if (r->op == CR_OP_MIN) return serve<Row>(Fold<T, Max>{UINT64_MAX}, r);
    if (r->op == CR_OP_MAX) return serve<Row>(Fold<T, Max>{0}, r);
    serve<Row>(Fold<T, Truths>{nonzero_mask}, r); // any, all, count_nonzero: cr_ladder_check came before
}

template <class Row>
void choose(Request *r) {
    if (r->dtype == CR_I32) return choose_op<Row, int32_t, SumI32, ProdInt, Max32>(UINT64_MAX, r);
    if (r->dtype == CR_I64) return choose_op<Row, int64_t, SumI64, ProdInt, Max64>(UINT64_MAX, r);
    if (r->dtype == CR_F16)
        return choose_op<Row, Half, SumReal<float>, ProdReal<float, unsigned>, Max32>(0x7fff, r);
    if (r->dtype == CR_F32)
        return choose_op<Row, float, SumReal<float>, ProdReal<float, unsigned>, Max32>(0x7fffffff, r);
    choose_op<Row, double, SumReal<double>, ProdReal<double, unsigned long long>, Max64>(INT64_MAX, r);
}

#define CR_LADDER_ROW(name, Row) \
    extern "C" void cr_ladder_row_##name(cr_ladder::Request *request) { cr_ladder::choose<Row>(request); }

} // namespace cr_ladder

#endif
