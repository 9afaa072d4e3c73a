// kernels_thrust: thrust::reduce as the source documents call it: it allocates, waits and returns a value, so it is timed by the
// clock, call by call.
//
// Thread: main. Owner: the caller owns in, device memory.
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>

#include "bench/kernels_peer.h"

namespace {

template <class T>
void sum(const void *in, uint64_t n, void *out, cudaStream_t stream) {
    *(T *)out = thrust::reduce(thrust::cuda::par.on(stream), (const T *)in, (const T *)in + n);
}

typedef void (*reduction)(const void *, uint64_t, void *, cudaStream_t);

reduction find(cr_op op, cr_dtype dtype) {
    if (op != CR_OP_SUM) return nullptr;
    return dtype == CR_F32   ? sum<float>
           : dtype == CR_F64 ? sum<double>
           : dtype == CR_I32 ? sum<int32_t>
           : dtype == CR_I64 ? sum<int64_t>
                             : nullptr;
}

} // namespace

extern "C" bool bench_thrust_has(cr_op op, cr_dtype dtype) { return find(op, dtype) != nullptr; }

extern "C" int bench_thrust(cr_op op, cr_dtype dtype, const void *in, void *out, uint64_t n, void *stream) {
    try {
        find(op, dtype)(in, n, out, (cudaStream_t)stream);
    } catch (...) {
        return (int)cudaErrorUnknown;
    }
    return (int)cudaGetLastError();
}
