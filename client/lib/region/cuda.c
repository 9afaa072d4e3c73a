/* cuda: the GPU's UUID, where the allocation begins, and the handle or descriptor that shares it. Asks the driver that the program
 * has loaded already, by name: nothing here is linked with CUDA.
 *
 * Thread: any. Owner: nothing is kept. */
#include "client/lib/region/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/error.h"

/* Of the driver's interface, which is stable. */
enum {
    ATTRIBUTE_CONTEXT = 1,
    ATTRIBUTE_MEMORY_TYPE = 2,
    ATTRIBUTE_IS_MANAGED = 8,
    ATTRIBUTE_DEVICE_ORDINAL = 9,
    ATTRIBUTE_IS_IPC_CAPABLE = 10,
    ATTRIBUTE_POOL = 17,
    ATTRIBUTE_MAPPING_SIZE = 18,
    ATTRIBUTE_MAPPING_BASE = 19,
    MEMORY_TYPE_DEVICE = 2,
    HANDLE_POSIX_DESCRIPTOR = 1,
};

typedef unsigned long long address;

/* Each by its name in the library. */
#define DRIVER_FUNCTIONS(X)                                                        \
    X(cuGetErrorString, (int, const char **))                                      \
    X(cuPointerGetAttribute, (void *, int, address))                               \
    X(cuMemGetAddressRange_v2, (address *, size_t *, address))                     \
    X(cuDeviceGet, (int *, int))                                                   \
    X(cuDeviceGetUuid_v2, (void *, int))                                           \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                    \
    X(cuDevicePrimaryCtxRelease_v2, (int))                                         \
    X(cuCtxPushCurrent_v2, (void *))                                               \
    X(cuCtxPopCurrent_v2, (void **))                                               \
    X(cuIpcGetMemHandle, (void *, address))                                        \
    X(cuIpcGetEventHandle, (void *, void *))                                       \
    X(cuMemRetainAllocationHandle, (address *, void *))                            \
    X(cuMemExportToShareableHandle, (void *, address, int, unsigned long long))    \
    X(cuMemRelease, (address))                                                     \
    X(cuMemPoolExportToShareableHandle, (void *, void *, int, unsigned long long)) \
    X(cuMemPoolExportPointer, (void *, address))

#define DRIVER_MEMBER(name, arguments) int(*name) arguments;
typedef struct driver {
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
} driver;

/* What is found out of a pointer. */
typedef struct found {
    driver d;
    address at, base;
    size_t size; /* of the allocation, from base */
    int device;
    void *context;
    bool retained;
} found;

static cured_status find_driver(driver *d, cured_error *error) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION,
                          "pointer: this program has loaded no CUDA driver, so it has no device memory");
    void *function;
#define DRIVER_FIND(name, arguments)                                                                                  \
    if ((function = dlsym(library, #name)) == NULL) {                                                                 \
        dlclose(library);                                                                                             \
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "pointer: the CUDA driver has no %s: it is too old", #name); \
    }                                                                                                                 \
    memcpy(&d->name, &function, sizeof function);
    DRIVER_FUNCTIONS(DRIVER_FIND)
    dlclose(library); /* the program's own use keeps it */
    return CURED_OK;
}

static cured_status refused(const found *f, int result, const char *what, cured_error *error) {
    const char *text = NULL;
    if (f->d.cuGetErrorString(result, &text) != 0 || text == NULL) text = "unknown";
    return cr_cl_fail(error, CR_FAILED_PRECONDITION, "pointer: %s: CUDA error %d, %s", what, result, text);
}

static bool attribute(const found *f, int which, void *value) {
    return f->d.cuPointerGetAttribute(value, which, f->at) == 0;
}

/* Whether it is device memory at all, and of which device. */
static cured_status look(found *f, unsigned char uuid[16], cured_error *error) {
    int type = 0, ordinal = -1, managed = 0;
    if (!attribute(f, ATTRIBUTE_MEMORY_TYPE, &type))
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "pointer: it is no memory that the CUDA driver knows");
    if (attribute(f, ATTRIBUTE_IS_MANAGED, &managed) && managed)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "pointer: managed memory cannot be shared with a process");
    if (type != MEMORY_TYPE_DEVICE)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT,
                          "pointer: it is host memory; share it with cured_region_fd() or cured_array_alloc()");
    int result = attribute(f, ATTRIBUTE_DEVICE_ORDINAL, &ordinal) ? f->d.cuDeviceGet(&f->device, ordinal) : 1;
    if (result == 0) result = f->d.cuDeviceGetUuid_v2(uuid, f->device);
    if (result != 0) return refused(f, result, "its GPU is not known", error);
    if (attribute(f, ATTRIBUTE_CONTEXT, &f->context) && f->context != NULL) return CURED_OK;
    result = f->d.cuDevicePrimaryCtxRetain(&f->context, f->device);
    f->retained = result == 0;
    return result == 0 ? CURED_OK : refused(f, result, "its GPU has no context", error);
}

static cured_status check_range(const found *f, uint64_t bytes, cured_error *error) {
    uint64_t offset = f->at - f->base;
    if (bytes != 0 && offset <= f->size && bytes <= f->size - offset) return CURED_OK;
    return cr_cl_fail(error, CR_INVALID_ARGUMENT, "bytes is %llu; from the pointer on its allocation has %llu",
                      (unsigned long long)bytes, (unsigned long long)(offset <= f->size ? f->size - offset : 0));
}

/* Memory of cuMemCreate: its own descriptor. What is mapped side by side may be several allocations. */
static cured_status export_mapped(found *f, uint64_t bytes, int *fd, cured_error *error) {
    address base = 0, allocation = 0;
    size_t size = 0;
    if (attribute(f, ATTRIBUTE_MAPPING_BASE, &base) && attribute(f, ATTRIBUTE_MAPPING_SIZE, &size) && size != 0 &&
        f->at >= base && f->at - base < size) {
        f->base = base;
        f->size = size;
        if (bytes > size - (f->at - base))
            return cr_cl_fail(error, CR_FAILED_PRECONDITION,
                              "pointer: %llu bytes lie in several allocations, each of which is a region of its own",
                              (unsigned long long)bytes);
    }
    int result = f->d.cuMemRetainAllocationHandle(&allocation, (void *)(uintptr_t)f->at); /* NOLINT */
    if (result != 0) return refused(f, result, "its memory cannot be shared", error);
    result = f->d.cuMemExportToShareableHandle(fd, allocation, HANDLE_POSIX_DESCRIPTOR, 0);
    f->d.cuMemRelease(allocation);
    if (result == 0) return CURED_OK;
    *fd = -1;
    return refused(f, result,
                   "its memory was not made to be shared (CUmemAllocationProp.requestedHandleTypes needs "
                   "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)",
                   error);
}

static cured_status export_from_pool(found *f, void *pool, unsigned char handle[64], int *fd, cured_error *error) {
    int result = f->d.cuMemPoolExportToShareableHandle(fd, pool, HANDLE_POSIX_DESCRIPTOR, 0);
    if (result != 0) {
        *fd = -1;
        return refused(f, result,
                       "its memory pool was not made to be shared (cudaMemPoolProps.handleTypes needs "
                       "cudaMemHandleTypePosixFileDescriptor)",
                       error);
    }
    result = f->d.cuMemPoolExportPointer(handle, f->base);
    return result == 0 ? CURED_OK : refused(f, result, "it cannot be shared from its memory pool", error);
}

/* Fills all but the device. handle: 64 bytes, of which memory->handle is made. */
static cured_status export_memory(found *f, uint64_t bytes, unsigned char handle[64], cured_cuda_memory *memory,
                                  cured_error *error) {
    int capable = 0, result = f->d.cuMemGetAddressRange_v2(&f->base, &f->size, f->at);
    void *pool = NULL;
    if (result != 0) return refused(f, result, "its allocation is not known", error);
    cured_status status = check_range(f, bytes, error);
    if (status != CURED_OK) return status;
    if (attribute(f, ATTRIBUTE_POOL, &pool) && pool != NULL) {
        status = export_from_pool(f, pool, handle, &memory->fd, error);
        memory->handle = handle;
    } else if (attribute(f, ATTRIBUTE_IS_IPC_CAPABLE, &capable) && capable) {
        result = f->d.cuIpcGetMemHandle(handle, f->base);
        if (result != 0) return refused(f, result, "it has no CUDA IPC handle", error);
        memory->handle = handle;
    } else {
        status = export_mapped(f, bytes, &memory->fd, error);
    }
    memory->offset = f->at - f->base;
    memory->bytes = bytes;
    return status;
}

static cured_status describe(found *f, uint64_t bytes, void *event, unsigned char handle[64],
                             unsigned char event_handle[64], cured_cuda_memory *memory, cured_error *error) {
    cured_status status = find_driver(&f->d, error);
    if (status == CURED_OK) status = look(f, memory->device, error);
    if (status != CURED_OK) return status;
    int result = f->d.cuCtxPushCurrent_v2(f->context);
    if (result == 0) {
        void *popped;
        status = export_memory(f, bytes, handle, memory, error);
        if (status == CURED_OK && event != NULL) result = f->d.cuIpcGetEventHandle(event_handle, event);
        f->d.cuCtxPopCurrent_v2(&popped);
        if (result == 0 && event != NULL) memory->event = event_handle;
    }
    if (f->retained) f->d.cuDevicePrimaryCtxRelease_v2(f->device);
    if (status != CURED_OK || result == 0) return status;
    return refused(f, result,
                   event != NULL
                       ? "its event cannot be shared; that needs cudaEventInterprocess and cudaEventDisableTiming"
                       : "its GPU's context cannot be used",
                   error);
}

cured_status cr_cl_cuda_find(const void *pointer, uint64_t bytes, void *event, cr_cl_cuda *found_here,
                             cured_error *error) {
    found f = {.at = (address)(uintptr_t)pointer};
    found_here->memory = (cured_cuda_memory){.fd = -1};
    return describe(&f, bytes, event, found_here->handle, found_here->event_handle, &found_here->memory, error);
}
