/* memory: pinned host memory and device memory. That of other processes: import.c.
 *
 * Thread: one at a time for a device. Owner: whoever asked, until it gives back. */
#include <cuda_runtime_api.h>

#include "kernels/cuda/device/internal.h"

cr_status cr_cuda_host_alloc(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    cudaError_t failure = cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    return cr_cuda_error(gpu, (int)failure, "pinned memory", error);
}

void cr_cuda_host_free(cr_gpu *gpu, void *memory) {
    if (memory == NULL) return;
    cr_linger_quit(&gpu->linger); /* here and below: the driver may wait until nothing runs */
    cr_cuda_error(gpu, (int)cudaFreeHost(memory), "pinned memory", NULL);
}

cr_status cr_cuda_pin(cr_gpu *gpu, void *memory, size_t bytes, bool read_only, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    cr_linger_quit(&gpu->linger);
    unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped | (read_only ? cudaHostRegisterReadOnly : 0);
    cudaError_t failure = cudaHostRegister(memory, bytes, flags);
    return cr_cuda_error(gpu, (int)failure, "pinning", error);
}

void cr_cuda_unpin(cr_gpu *gpu, void *memory) {
    cr_linger_quit(&gpu->linger);
    cr_cuda_error(gpu, (int)cudaHostUnregister(memory), "unpinning", NULL);
}

cr_status cr_cuda_device_alloc(cr_gpu *gpu, size_t bytes, void **device, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    return cr_cuda_error(gpu, (int)cudaMalloc(device, bytes), "device memory", error);
}

void cr_cuda_device_free(cr_gpu *gpu, void *device) {
    if (device == NULL || cr_cuda_bind(gpu, NULL) != CR_OK) return;
    cr_linger_quit(&gpu->linger);
    cr_cuda_error(gpu, (int)cudaFree(device), "device memory", NULL);
}
