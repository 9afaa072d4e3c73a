/* shared: launches with shared memory whose size the host says, which may be more than 48 KiB.
 *
 * Thread: the stream's. Owner: none. */
#ifndef CURED_KERNELS_CUDA_THREAD_SHARED_CUH
#define CURED_KERNELS_CUDA_THREAD_SHARED_CUH

#include "kernels/cuda/thread/array.cuh"

/* CR_LAUNCH with so many bytes, which the kernel knows by CR_SHARED_BYTES; tests on the host give it `most`. */
#if defined(__CUDACC__)
template <class Kernel, class Args> int cr_launch_shared(Kernel *kernel, uint32_t blocks, uint32_t threads, uint32_t bytes, void *stream, const Args &args) {
    const cudaError_t failure = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (failure != cudaSuccess) return (int)failure;
    kernel<<<blocks, threads, bytes, (cudaStream_t)stream>>>(args);
    return (int)cudaPeekAtLastError();
}
#define CR_LAUNCH_SHARED(kernel, blocks, threads, bytes, stream, args) cr_launch_shared(kernel, blocks, threads, bytes, stream, args)
#define CR_SHARED_BYTES(name, most) extern __shared__ __align__(16) uint8_t name[]
#else
#define CR_LAUNCH_SHARED(kernel, blocks, threads, bytes, stream, args) ((void)(bytes), CR_LAUNCH(kernel, blocks, threads, stream, args))
#define CR_SHARED_BYTES(name, most) alignas(16) static uint8_t name[most]
#endif

#endif
