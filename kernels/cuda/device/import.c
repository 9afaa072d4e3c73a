/* import: device memory and events of other processes: CUDA IPC handles, descriptors of VMM memory, pointers in memory pools.
 *
 * Nothing that a client says is believed: the driver tells what a handle or descriptor opens, of which GPU it is and how long.
 * A refusal is that client's own business and leaves the device as it was.
 * Thread: one at a time for a device; cr_cuda_inspect any. Owner: whoever imported, until it releases; the device keeps the list. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/internal.h"

typedef enum import_kind { OPENED, MAPPED, IN_POOL } import_kind;

struct cr_cuda_import {
    cr_cuda_import *next;
    import_kind kind;
    void *memory;
    size_t bytes;       /* MAPPED: of the reservation */
    cudaMemPool_t pool; /* IN_POOL */
    unsigned
        opened; /* IN_POOL: how often the pool was opened and is to be closed, by this import and others that are over */
};

/* The driver's functions that the runtime does not offer. */
typedef struct driver {
    CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr);
    CUresult (*attribute)(void *, CUpointer_attribute, CUdeviceptr);
    CUresult (*import)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
    CUresult (*properties)(CUmemAllocationProp *, CUmemGenericAllocationHandle);
    CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*unreserve)(CUdeviceptr, size_t);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*release)(CUmemGenericAllocationHandle);
} driver;

static cr_status find_driver(driver *d, cr_error *error) {
    if (cr_cuda_find("cuMemGetAddressRange", &d->range, sizeof d->range) &&
        cr_cuda_find("cuPointerGetAttribute", &d->attribute, sizeof d->attribute) &&
        cr_cuda_find("cuMemImportFromShareableHandle", &d->import, sizeof d->import) &&
        cr_cuda_find("cuMemGetAllocationPropertiesFromHandle", &d->properties, sizeof d->properties) &&
        cr_cuda_find("cuMemGetAllocationGranularity", &d->granularity, sizeof d->granularity) &&
        cr_cuda_find("cuMemAddressReserve", &d->reserve, sizeof d->reserve) &&
        cr_cuda_find("cuMemAddressFree", &d->unreserve, sizeof d->unreserve) &&
        cr_cuda_find("cuMemMap", &d->map, sizeof d->map) && cr_cuda_find("cuMemUnmap", &d->unmap, sizeof d->unmap) &&
        cr_cuda_find("cuMemSetAccess", &d->access, sizeof d->access) &&
        cr_cuda_find("cuMemRelease", &d->release, sizeof d->release))
        return CR_OK;
    return cr_fail(error, CR_UNAVAILABLE, "device memory: the driver cannot open that of other processes");
}

/* What a call with a client's handle gave. Only the device itself says whether it is lost, for a garbage handle may be answered
 * by any error. */
static cr_status refused(cr_gpu *gpu, int failure, const char *field, const char *what, cr_error *error) {
    (void)cudaGetLastError();
    cudaError_t now = cudaStreamQuery(NULL);
    if (now != cudaSuccess && now != cudaErrorNotReady) cr_cuda_error(gpu, (int)now, "device memory", error);
    if (gpu->lost) return CR_UNAVAILABLE;
    if (failure == (int)cudaErrorMemoryAllocation) return cr_cuda_error(gpu, failure, "device memory", error);
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %s: %s", field, what, cudaGetErrorString((cudaError_t)failure));
}

static cr_status too_short(size_t bytes, size_t there, cr_error *error) {
    return cr_fail(error, CR_INVALID_ARGUMENT, "device memory: %zu bytes are claimed, the allocation has %zu", bytes,
                   there);
}

/* Bytes from memory to the end of its allocation, as the driver knows it here. */
static size_t length_of(const driver *d, const void *memory) {
    CUdeviceptr base = 0, at = (CUdeviceptr)memory;
    size_t size = 0;
    if (d->range(&base, &size, at) != CUDA_SUCCESS || at < base || at - base > size) return 0;
    return size - (size_t)(at - base);
}

static cr_status open_handle(cr_gpu *gpu, const driver *d, const void *handle, size_t bytes, cr_cuda_import *import,
                             cr_error *error) {
    cudaIpcMemHandle_t ipc;
    memcpy(&ipc, handle, sizeof ipc);
    cudaError_t failure = cudaIpcOpenMemHandle(&import->memory, ipc, cudaIpcMemLazyEnablePeerAccess);
    if (failure != cudaSuccess) return refused(gpu, (int)failure, "handle", "it cannot be opened here", error);
    size_t there = length_of(d, import->memory);
    if (bytes <= there) return CR_OK;
    cr_cuda_error(gpu, (int)cudaIpcCloseMemHandle(import->memory), "device memory", NULL);
    return too_short(bytes, there, error);
}

/* Maps the first `bytes` of an allocation, to be read, and to be written if it is writable. */
static cr_status map(cr_gpu *gpu, const driver *d, CUmemGenericAllocationHandle allocation, size_t bytes, bool writable,
                     cr_cuda_import *import, cr_error *error) {
    CUmemAllocationProp prop;
    size_t grain = 0;
    memset(&prop, 0, sizeof prop);
    CUresult failure = d->properties(&prop, allocation);
    if (failure == CUDA_SUCCESS) failure = d->granularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (failure != CUDA_SUCCESS || grain == 0)
        return refused(gpu, (int)failure, "descriptor", "the driver cannot tell what it is", error);
    if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop.location.id != (int)gpu->info.ordinal)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it is not memory of the GPU that is named");
    if (bytes > gpu->info.memory_bytes || bytes > SIZE_MAX - grain)
        return too_short(bytes, (size_t)gpu->info.memory_bytes, error);
    size_t size = (bytes + grain - 1) / grain * grain;
    CUdeviceptr at = 0;
    failure = d->reserve(&at, size, 0, 0, 0);
    if (failure != CUDA_SUCCESS) return refused(gpu, (int)failure, "device memory", "no room to map it", error);
    failure = d->map(at, size, 0, allocation, 0); /* the driver refuses what is beyond the allocation */
    if (failure != CUDA_SUCCESS) {
        d->unreserve(at, size);
        return refused(gpu, (int)failure, "device memory", "the allocation cannot be mapped as long as is claimed",
                       error);
    }
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)gpu->info.ordinal},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    failure = writable ? CUDA_ERROR_NOT_SUPPORTED : d->access(at, size, &access, 1);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE; /* for drivers that know no less */
    if (failure != CUDA_SUCCESS) failure = d->access(at, size, &access, 1);
    import->memory = (void *)at; /* NOLINT */
    import->bytes = size;
    size_t there = failure == CUDA_SUCCESS ? length_of(d, import->memory) : 0;
    if (failure == CUDA_SUCCESS && bytes <= there) return CR_OK;
    d->unmap(at, size);
    d->unreserve(at, size);
    if (failure == CUDA_SUCCESS) return too_short(bytes, there, error);
    return refused(gpu, (int)failure, "descriptor", "it cannot be read here", error);
}

static cr_status map_descriptor(cr_gpu *gpu, const driver *d, int descriptor, size_t bytes, bool writable,
                                cr_cuda_import *import, cr_error *error) {
    CUmemGenericAllocationHandle allocation = 0;
    CUresult failure =
        d->import(&allocation, (void *)(uintptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR); /* NOLINT */
    if (failure != CUDA_SUCCESS)
        return refused(gpu, (int)failure, "descriptor", "it is no device memory that can be opened here", error);
    cr_status status = map(gpu, d, allocation, bytes, writable, import, error);
    d->release(allocation); /* what is mapped stays */
    return status;
}

/* The driver knows a pool once, however often it is opened, and a pointer of it likewise. So the last import of a pool closes it, as
 * often as it was opened: before, the driver refuses to, and would keep a descriptor. */
static void close_pool(cr_gpu *gpu, const cr_cuda_import *import) {
    cr_cuda_import *other = gpu->imports;
    while (other != NULL && (other->kind != IN_POOL || other->pool != import->pool)) other = other->next;
    if (other != NULL) {
        other->opened += import->opened;
        return;
    }
    for (unsigned i = 0; i < import->opened; i++)
        cr_cuda_error(gpu, (int)cudaMemPoolDestroy(import->pool), "memory pool", NULL);
}

/* import is no longer, or not yet, in the list. */
static void release_in_pool(cr_gpu *gpu, const cr_cuda_import *import) {
    bool shared = false;
    for (const cr_cuda_import *i = gpu->imports; i != NULL; i = i->next)
        shared |= i->kind == IN_POOL && i->pool == import->pool && i->memory == import->memory;
    if (!shared) cr_cuda_error(gpu, (int)cudaFree(import->memory), "device memory", NULL);
    close_pool(gpu, import);
}

static cr_status open_in_pool(cr_gpu *gpu, const driver *d, int descriptor, const void *pointer, size_t bytes,
                              cr_cuda_import *import, cr_error *error) {
    struct cudaMemPoolPtrExportData data;
    int ordinal = -1;
    memcpy(&data, pointer, sizeof data);
    import->opened = 1;
    cudaError_t failure =
        cudaMemPoolImportFromShareableHandle(&import->pool, (void *)(uintptr_t)descriptor, /* NOLINT */
                                             cudaMemHandleTypePosixFileDescriptor, 0);
    if (failure != cudaSuccess)
        return refused(gpu, (int)failure, "descriptor", "it is no memory pool that can be opened here", error);
    failure = cudaMemPoolImportPointer(&import->memory, import->pool, &data);
    if (failure != cudaSuccess) {
        close_pool(gpu, import);
        return refused(gpu, (int)failure, "pointer", "it cannot be opened in this pool", error);
    }
    size_t there = length_of(d, import->memory);
    if (d->attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)import->memory) != CUDA_SUCCESS ||
        ordinal != (int)gpu->info.ordinal)
        there = 0; /* of another GPU */
    if (bytes <= there) return CR_OK;
    release_in_pool(gpu, import);
    return too_short(bytes, there, error);
}

cr_status cr_cuda_import_memory(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, bool writable,
                                void **device, cr_error *error) {
    driver d;
    cr_status status = cr_cuda_bind(gpu, error);
    if (status == CR_OK) status = find_driver(&d, error);
    if (status != CR_OK) return status;
    cr_linger_quit(&gpu->linger);
    cr_cuda_import *import = calloc(1, sizeof *import);
    if (import == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "device memory: no memory to open it");
    import->kind = descriptor < 0 ? OPENED : handle != NULL ? IN_POOL : MAPPED;
    if (import->kind == OPENED)
        status = open_handle(gpu, &d, handle, bytes, import, error);
    else if (import->kind == IN_POOL)
        status = open_in_pool(gpu, &d, descriptor, handle, bytes, import, error);
    else
        status = map_descriptor(gpu, &d, descriptor, bytes, writable, import, error);
    if (status != CR_OK) {
        free(import);
        return status;
    }
    import->next = gpu->imports;
    gpu->imports = import;
    *device = import->memory;
    return CR_OK;
}

void cr_cuda_release(cr_gpu *gpu, void *device) {
    driver d;
    cr_cuda_import **at = &gpu->imports;
    while (*at != NULL && (*at)->memory != device) at = &(*at)->next;
    cr_cuda_import *import = *at;
    if (import == NULL) return;
    *at = import->next;
    cr_linger_quit(&gpu->linger);
    if (cr_cuda_bind(gpu, NULL) == CR_OK) {
        if (import->kind == OPENED) {
            cr_cuda_error(gpu, (int)cudaIpcCloseMemHandle(device), "device memory", NULL);
        } else if (import->kind == IN_POOL) {
            release_in_pool(gpu, import);
        } else if (find_driver(&d, NULL) == CR_OK) {
            cr_cuda_error(gpu, (int)d.unmap((CUdeviceptr)device, import->bytes), "device memory", NULL);
            cr_cuda_error(gpu, (int)d.unreserve((CUdeviceptr)device, import->bytes), "device memory", NULL);
        }
    }
    free(import);
}

void cr_cuda_release_all(cr_gpu *gpu) {
    while (gpu->imports != NULL) cr_cuda_release(gpu, gpu->imports->memory);
}

/* The driver would find it out too, but by its own questions, and nobody says that a file's server answers those. */
cr_status cr_cuda_inspect(int descriptor, cr_error *error) {
    struct stat st;
    if (fstat(descriptor, &st) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: cannot inspect it: %s", strerror(errno));
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
        S_ISBLK(st.st_mode))
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "descriptor: it is no device memory; that comes from cuMemExportToShareableHandle");
    return CR_OK;
}

cr_status cr_cuda_event_open(cr_gpu *gpu, const void *handle, void **event, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    cudaIpcEventHandle_t ipc;
    cudaEvent_t opened = NULL;
    memcpy(&ipc, handle, sizeof ipc);
    cudaError_t failure = cudaIpcOpenEventHandle(&opened, ipc);
    if (failure != cudaSuccess) return refused(gpu, (int)failure, "event", "its handle cannot be opened here", error);
    *event = opened;
    return CR_OK;
}

cr_status cr_cuda_event_look(cr_gpu *gpu, void *event, bool *fired, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    *fired = false;
    if (status != CR_OK) return status;
    cudaError_t answer = cudaEventQuery((cudaEvent_t)event);
    if (answer == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return CR_OK;
    }
    *fired = answer == cudaSuccess;
    return *fired ? CR_OK : refused(gpu, (int)answer, "event", "it cannot be waited for", error);
}

void cr_cuda_event_close(cr_gpu *gpu, void *event) {
    if (event == NULL || cr_cuda_bind(gpu, NULL) != CR_OK) return;
    cr_cuda_error(gpu, (int)cudaEventDestroy((cudaEvent_t)event), "event", NULL);
}
