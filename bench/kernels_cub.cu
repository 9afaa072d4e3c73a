// kernels_cub: CUB's reductions as they come, on the same buffers as everything else: the ordinary sum (added in the array's own type),
// max, and the index of the maximum.
//
// Thread: main. Owner: the caller owns temp, in and out, all device memory.
#include <cub/device/device_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "bench/kernels_peer.h"

namespace {

template <class T>
int sum(void *temp, size_t *bytes, const void *in, void *out, uint64_t n, cudaStream_t stream) {
    return (int)cub::DeviceReduce::Sum(temp, *bytes, (const T *)in, (T *)out, (int64_t)n, stream);
}

template <class T>
int max(void *temp, size_t *bytes, const void *in, void *out, uint64_t n, cudaStream_t stream) {
    return (int)cub::DeviceReduce::Max(temp, *bytes, (const T *)in, (T *)out, (int64_t)n, stream);
}

template <class T>
int argmax(void *temp, size_t *bytes, const void *in, void *out, uint64_t n, cudaStream_t stream) {
    return (int)cub::DeviceReduce::ArgMax(temp, *bytes, (const T *)in, (T *)((char *)out + 8), (int64_t *)out, (int64_t)n, stream);
}

typedef int (*reduction)(void *, size_t *, const void *, void *, uint64_t, cudaStream_t);

reduction find(cr_op op, cr_dtype dtype) {
    if (op == CR_OP_SUM) {
        switch (dtype) {
            case CR_I8:
                return sum<int8_t>;
            case CR_U8:
                return sum<uint8_t>;
            case CR_I32:
                return sum<int32_t>;
            case CR_I64:
                return sum<int64_t>;
            case CR_F16:
                return sum<__half>;
            case CR_BF16:
                return sum<__nv_bfloat16>;
            case CR_F32:
                return sum<float>;
            case CR_F64:
                return sum<double>;
            case CR_BOOL:
            case CR_U16:
            case CR_I16:
            case CR_U32:
            case CR_U64:
                return nullptr;
        }
    }
    if (op == CR_OP_MAX) return dtype == CR_F32 ? max<float> : dtype == CR_F64 ? max<double> : dtype == CR_I32 ? max<int32_t> : nullptr;
    if (op == CR_OP_ARGMAX) return dtype == CR_F32 ? argmax<float> : dtype == CR_F64 ? argmax<double> : nullptr;
    return nullptr;
}

} // namespace

extern "C" bool bench_cub_has(cr_op op, cr_dtype dtype) { return find(op, dtype) != nullptr; }

extern "C" int bench_cub(cr_op op, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out, uint64_t n,
                         void *stream) {
    return find(op, dtype)(temp, bytes, in, out, n, (cudaStream_t)stream);
}
