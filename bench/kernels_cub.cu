// kernels_cub: CUB's reductions as they come, on the same buffers as everything else: the ordinary sum (added in the array's own type),
// max, and the index of the maximum; its segmented sum, for cured-bench pack; and thrust::reduce as the source documents call it: it
// allocates, waits and returns a value, so it is timed by the clock, call by call. In one file: much of what compiling them takes is
// reading the headers that they share.
//
// Thread: main. Owner: the caller owns temp, in and out, all device memory.
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>

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

extern "C" const char *bench_cub_lacks(void) { return nullptr; }
extern "C" bool bench_cub_has(cr_op op, cr_dtype dtype) { return find(op, dtype) != nullptr; }

extern "C" int bench_cub(cr_op op, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out, uint64_t n,
                         void *stream) {
    return find(op, dtype)(temp, bytes, in, out, n, (cudaStream_t)stream);
}

extern "C" int bench_cub_segments(void *temp, size_t *bytes, const void *in, void *out, uint32_t segments, const int *offsets,
                                  void *stream) {
    return (int)cub::DeviceSegmentedReduce::Sum(temp, *bytes, (const float *)in, (float *)out, (int)segments, offsets, offsets + 1,
                                                (cudaStream_t)stream);
}

namespace {

template <class T>
void thrust_sum(const void *in, uint64_t n, void *out, cudaStream_t stream) {
    *(T *)out = thrust::reduce(thrust::cuda::par.on(stream), (const T *)in, (const T *)in + n);
}

typedef void (*thrust_reduction)(const void *, uint64_t, void *, cudaStream_t);

thrust_reduction find_thrust(cr_op op, cr_dtype dtype) {
    if (op != CR_OP_SUM) return nullptr;
    return dtype == CR_F32   ? thrust_sum<float>
           : dtype == CR_F64 ? thrust_sum<double>
           : dtype == CR_I32 ? thrust_sum<int32_t>
           : dtype == CR_I64 ? thrust_sum<int64_t>
                             : nullptr;
}

} // namespace

extern "C" bool bench_thrust_has(cr_op op, cr_dtype dtype) { return find_thrust(op, dtype) != nullptr; }

extern "C" int bench_thrust(cr_op op, cr_dtype dtype, const void *in, void *out, uint64_t n, void *stream) {
    try {
        find_thrust(op, dtype)(in, n, out, (cudaStream_t)stream);
    } catch (...) {
        return (int)cudaErrorUnknown;
    }
    return (int)cudaGetLastError();
}
