/* memory: pinned host memory, device memory, and device memory of other processes.
 *
 * Thread: one at a time for a device. Owner: whoever asked, until it gives back. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/cuda/internal.h"

cr_status cr_cuda_host_alloc(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    cudaError_t failure = cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    return cr_cuda_error(gpu, (int)failure, "pinned memory", error);
}

void cr_cuda_host_free(cr_gpu *gpu, void *memory) {
    if (memory == NULL) return;
    cr_cuda_error(gpu, (int)cudaFreeHost(memory), "pinned memory", NULL);
}

cr_status cr_cuda_pin(cr_gpu *gpu, void *memory, size_t bytes, bool read_only, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped | (read_only ? cudaHostRegisterReadOnly : 0);
    cudaError_t failure = cudaHostRegister(memory, bytes, flags);
    return cr_cuda_error(gpu, (int)failure, "pinning", error);
}

void cr_cuda_unpin(cr_gpu *gpu, void *memory) {
    cr_cuda_error(gpu, (int)cudaHostUnregister(memory), "unpinning", NULL);
}

cr_status cr_cuda_device_alloc(cr_gpu *gpu, size_t bytes, void **device, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    return cr_cuda_error(gpu, (int)cudaMalloc(device, bytes), "device memory", error);
}

void cr_cuda_device_free(cr_gpu *gpu, void *device) {
    if (device == NULL || cr_cuda_bind(gpu, NULL) != CR_OK) return;
    cr_cuda_error(gpu, (int)cudaFree(device), "device memory", NULL);
}

/* The driver's function by its name: the runtime alone cannot tell how large an allocation is. */
static void *driver(const char *name) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t failure = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
    if (failure != cudaSuccess) (void)cudaGetLastError();
    return failure == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : NULL;
}

cr_status cr_cuda_import(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, void **device,
                         cr_error *error) {
    (void)descriptor;
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    if (handle == NULL) return cr_fail(error, CR_UNIMPLEMENTED, "device memory: descriptors of it are not taken yet");
    void *found = driver("cuMemGetAddressRange");
    if (found == NULL) return cr_fail(error, CR_UNAVAILABLE, "device memory: the driver cannot tell its size");
    CUresult (*address_range)(CUdeviceptr *, size_t *, CUdeviceptr);
    memcpy(&address_range, &found, sizeof found);
    cudaIpcMemHandle_t ipc;
    memcpy(&ipc, handle, sizeof ipc);
    void *memory = NULL;
    cudaError_t failure = cudaIpcOpenMemHandle(&memory, ipc, cudaIpcMemLazyEnablePeerAccess);
    if (failure != cudaSuccess) {
        status = cr_cuda_error(gpu, (int)failure, "device memory", error);
        if (gpu->lost || status == CR_RESOURCE_EXHAUSTED) return status;
        return cr_fail(error, CR_INVALID_ARGUMENT, "device memory: its handle cannot be opened here: %s",
                       cudaGetErrorString(failure));
    }
    CUdeviceptr base = 0;
    size_t size = 0, place = 0;
    if (address_range(&base, &size, (CUdeviceptr)memory) == CUDA_SUCCESS && (CUdeviceptr)memory - base <= size) {
        place = (size_t)((CUdeviceptr)memory - base);
    } else {
        size = 0;
    }
    if (bytes > size - place) {
        cr_cuda_release(gpu, memory);
        return cr_fail(error, CR_INVALID_ARGUMENT, "device memory: %zu bytes are claimed, the allocation has %zu",
                       bytes, size - place);
    }
    *device = memory;
    return CR_OK;
}

void cr_cuda_release(cr_gpu *gpu, void *device) {
    if (device == NULL || cr_cuda_bind(gpu, NULL) != CR_OK) return;
    cr_cuda_error(gpu, (int)cudaIpcCloseMemHandle(device), "device memory", NULL);
}
