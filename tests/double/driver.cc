/* driver (double): the functions of CUDA's driver that are found by name. What opens memory of other processes is refused.
 *
 * Thread: any. Owner: none. */
#include <algorithm>
#include <cstring>

#include "tests/double/internal.hh"

static bool is_context(const context *c) {
    return std::find(the.contexts.begin(), the.contexts.end(), c) != the.contexts.end();
}

static CUresult get_current(CUcontext *found) {
    *found = mine.current;
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext c) {
    entry here("cuCtxSetCurrent", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    if (c != nullptr && !is_context(c)) return CUDA_ERROR_INVALID_CONTEXT;
    mine.current = c;
    return CUDA_SUCCESS;
}

static CUresult get_id(CUcontext c, unsigned long long *id) {
    entry here("cuCtxGetId", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    if (c == nullptr) c = mine.current;
    if (c == nullptr || !is_context(c)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->active) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = c->number;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device) {
    entry here("cuCtxGetDevice", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    if (mine.current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!mine.current->active) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *device = mine.current->device;
    return CUDA_SUCCESS;
}

static CUresult retain_primary(CUcontext *found, CUdevice device) {
    entry here("cuDevicePrimaryCtxRetain", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    if (device < 0 || device >= the.devices) return (CUresult)cudaErrorInvalidDevice;
    *found = primary_of(device);
    activate(*found);
    return CUDA_SUCCESS;
}

/* It stays: the runtime retains it too. */
static CUresult release_primary(CUdevice) { return CUDA_SUCCESS; }

static CUresult primary_state(CUdevice device, unsigned *flags, int *active) {
    entry here("cuDevicePrimaryCtxGetState", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    if (device < 0 || device >= the.devices) return (CUresult)cudaErrorInvalidDevice;
    *flags = 0;
    *active = primary_of(device)->active;
    return CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, CUcontext *found) {
    entry here("cuStreamGetCtx", CONTEXT);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    cudaError_t failure;
    const queue *q = find_queue(stream, &failure);
    if (q == nullptr) return (CUresult)failure;
    *found = q->home;
    return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    entry here("cuMemGetAddressRange", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    const auto at = find_block((const void *)address);
    if (at == the.blocks.end()) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = at->first;
    if (bytes) *bytes = at->second.bytes;
    return CUDA_SUCCESS;
}

static CUresult pointer_attribute(void *found, CUpointer_attribute attribute, CUdeviceptr address) {
    entry here("cuPointerGetAttribute", PLAIN);
    if (here.failure != cudaSuccess) return (CUresult)here.failure;
    const auto at = find_block((const void *)address);
    if (at == the.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            memcpy(found, &at->second.home, sizeof at->second.home);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            memcpy(found, &at->second.home->device, sizeof at->second.home->device);
            return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* For functions of the driver whose arguments it does not look at. */
static CUresult refuse() { return CUDA_ERROR_NOT_SUPPORTED; }

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"cuCtxGetCurrent", (void *)get_current},
    {"cuCtxSetCurrent", (void *)set_current},
    {"cuCtxGetId", (void *)get_id},
    {"cuCtxGetDevice", (void *)get_device},
    {"cuDevicePrimaryCtxRetain", (void *)retain_primary},
    {"cuDevicePrimaryCtxRelease", (void *)release_primary},
    {"cuDevicePrimaryCtxGetState", (void *)primary_state},
    {"cuStreamGetCtx", (void *)stream_context},
    {"cuMemGetAddressRange", (void *)address_range},
    {"cuPointerGetAttribute", (void *)pointer_attribute},
    {"cuMemImportFromShareableHandle", (void *)refuse},
    {"cuMemGetAllocationPropertiesFromHandle", (void *)refuse},
    {"cuMemGetAllocationGranularity", (void *)refuse},
    {"cuMemAddressReserve", (void *)refuse},
    {"cuMemAddressFree", (void *)refuse},
    {"cuMemMap", (void *)refuse},
    {"cuMemUnmap", (void *)refuse},
    {"cuMemSetAccess", (void *)refuse},
    {"cuMemRelease", (void *)refuse},
};

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *how) {
    ENTER(cudaGetDriverEntryPointByVersion, PLAIN);
    *function = nullptr;
    if (how) *how = cudaDriverEntryPointSymbolNotFound;
    for (const auto &f : functions) {
        if (strcmp(f.name, name) != 0) continue;
        *function = f.function;
        if (how) *how = cudaDriverEntryPointSuccess;
    }
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned) {
    ENTER(cudaIpcOpenMemHandle, CONTEXT);
    return here.give(cudaErrorNotSupported);
}
cudaError_t cudaIpcCloseMemHandle(void *) {
    ENTER(cudaIpcCloseMemHandle, CONTEXT);
    return here.give(cudaErrorNotSupported);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *, cudaIpcEventHandle_t) {
    ENTER(cudaIpcOpenEventHandle, CONTEXT);
    return here.give(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *, void *, enum cudaMemAllocationHandleType, unsigned) {
    ENTER(cudaMemPoolImportFromShareableHandle, CONTEXT);
    return here.give(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolImportPointer(void **, cudaMemPool_t, struct cudaMemPoolPtrExportData *) {
    ENTER(cudaMemPoolImportPointer, CONTEXT);
    return here.give(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
    ENTER(cudaMemPoolDestroy, CONTEXT);
    return here.give(cudaErrorNotSupported);
}

} /* extern "C" */
