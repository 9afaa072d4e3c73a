// kernels_require: CUB's sum where a program says what its bits must be the same for (cuda::execution::require): the same on every GPU
// (gpu_to_gpu), or nothing at all (not_guaranteed). CUB's plain sum, in kernels_cub.cu, gives the same bits from run to run.
//
// CUB has had both since CCCL 3.2. CUDA 13.0 brings 3.0; CURED_CCCL of CMake names newer headers.
//
// Thread: main. Owner: the caller owns temp, in and out, all device memory.
#include <cub/version.cuh>

#include "bench/kernels_peer.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

extern "C" int bench_cub_version(void) { return CCCL_VERSION; }

#if CCCL_VERSION >= 3002000
#include <cub/device/device_reduce.cuh>
#include <cuda/memory_resource>
#include <cuda/std/execution>
#include <cuda/stream_ref>
#include <new>

// The caller's room, in place of the memory that CUB would take and give back in every call. Without room it says what is wanted, and CUB
// gives up before it launches anything.
struct bench_room {
    void *at;
    size_t *bytes;

    void *allocate(cuda::stream_ref, size_t wanted, size_t = 0) {
        const bool fits = at != nullptr && wanted <= *bytes;
        if (!fits) *bytes = wanted;
        if (!fits) throw std::bad_alloc();
        return at;
    }
    void deallocate(cuda::stream_ref, void *, size_t, size_t = 0) noexcept {}
    // CUB calls neither; a memory resource has them.
    void *allocate_sync(size_t, size_t) { throw std::bad_alloc(); }
    void deallocate_sync(void *, size_t, size_t) noexcept {}
    bool operator==(const bench_room &other) const { return at == other.at; }
    bool operator!=(const bench_room &other) const { return at != other.at; }
};

namespace {

template <class T, class Promise>
int sum(Promise promise, void *temp, size_t *bytes, const void *in, void *out, uint64_t n, cudaStream_t stream) {
    namespace execution = cuda::std::execution;
    const execution::env env{execution::prop{cuda::get_stream_t{}, cuda::stream_ref{stream}},
                             execution::prop{cuda::mr::get_memory_resource_t{}, bench_room{temp, bytes}}, cuda::execution::require(promise)};
    const cudaError_t failure = cub::DeviceReduce::Sum((const T *)in, (T *)out, (int64_t)n, env);
    return temp == nullptr && failure == cudaErrorMemoryAllocation ? 0 : (int)failure;
}

template <class T>
int sum_of(bench_promise promise, void *temp, size_t *bytes, const void *in, void *out, uint64_t n, cudaStream_t stream) {
    namespace determinism = cuda::execution::determinism;
    return promise == BENCH_GPU_TO_GPU ? sum<T>(determinism::gpu_to_gpu, temp, bytes, in, out, n, stream)
                                       : sum<T>(determinism::not_guaranteed, temp, bytes, in, out, n, stream);
}

} // namespace

extern "C" const char *bench_require_lacks(void) { return nullptr; }

extern "C" int bench_require(bench_promise promise, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out, uint64_t n,
                             void *stream) {
    const auto of = dtype == CR_F32 ? sum_of<float> : sum_of<double>;
    return of(promise, temp, bytes, in, out, n, (cudaStream_t)stream);
}
#else

extern "C" const char *bench_require_lacks(void) {
    return "none: CCCL " TEXT(CCCL_MAJOR_VERSION) "." TEXT(CCCL_MINOR_VERSION) " has no such requirement, 3.2 has; "
           "CURED_CCCL of CMake names newer headers";
}

extern "C" int bench_require(bench_promise, cr_dtype, void *, size_t *, const void *, void *, uint64_t, void *) {
    return (int)cudaErrorNotSupported;
}
#endif
