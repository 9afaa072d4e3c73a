/* fake_driver: a library by the name of CUDA's driver, as far as libcured asks one. Addresses say what they are: bits 36 and up are the
 * kind; an allocation begins at 0x1000 of its kind and has 64 KiB.
 *
 * Thread: the test's. Owner: the test loads it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/client/fake_driver.h"

typedef unsigned long long address;

/* Read by the test. */
int fake_driver_contexts, fake_driver_retained, fake_driver_allocations;

static const address base_of = 0x1000, size_of = 65536;

static address kind_of(address at) { return at >> 36; }

int cuGetErrorString(int result, const char **text) {
    *text = result == 801 ? "not supported" : "invalid";
    return 0;
}

int cuPointerGetAttribute(void *value, int which, address at) {
    address kind = kind_of(at);
    if (kind < FAKE_IPC || kind > FAKE_TWO) return 1;
    memset(value, 0, which == 1 || which >= 17 ? 8 : 4);
    switch (which) {
        case 1: /* context: of what cudaMalloc gave */
            if (kind == FAKE_IPC) memset(value, 7, 8);
            return 0;
        case 2:
            *(int *)value = kind == FAKE_HOST ? 1 : 2;
            return 0;
        case 8:
            *(int *)value = kind == FAKE_MANAGED;
            return 0;
        case 9:
            *(int *)value = 1;
            return 0;
        case 10:
            *(int *)value = kind == FAKE_IPC;
            return 0;
        case 17:
            if (kind == FAKE_POOL || kind == FAKE_PRIVATE_POOL) memset(value, kind == FAKE_POOL ? 3 : 4, 8);
            return 0;
        case 18:
            *(address *)value = kind == FAKE_TWO ? size_of / 2 : size_of;
            return 0;
        case 19:
            *(address *)value = (kind << 36) + base_of;
            return 0;
        default:
            return 1;
    }
}

int cuMemGetAddressRange_v2(address *base, size_t *size, address at) {
    *base = (kind_of(at) << 36) + base_of;
    *size = size_of;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal + 40;
    return 0;
}

int cuDeviceGetUuid_v2(void *uuid, int device) {
    memset(uuid, device, 16);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &fake_driver_retained;
    fake_driver_retained++;
    return device == 41 ? 0 : 101;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    fake_driver_retained--;
    return device == 41 ? 0 : 101;
}

int cuCtxPushCurrent_v2(void *context) {
    fake_driver_contexts++;
    return context ? 0 : 201;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = NULL;
    fake_driver_contexts--;
    return 0;
}

int cuIpcGetMemHandle(void *handle, address at) {
    memset(handle, 0, 64);
    memcpy(handle, &at, sizeof at);
    return 0;
}

int cuIpcGetEventHandle(void *handle, void *event) {
    memset(handle, 0, 64);
    memcpy(handle, event, 4);
    return memcmp(event, "good", 4) == 0 ? 0 : 801;
}

int cuMemRetainAllocationHandle(address *handle, void *at) {
    *handle = (address)(size_t)at;
    fake_driver_allocations++;
    return 0;
}

int cuMemExportToShareableHandle(void *out, address handle, int type, unsigned long long flags) {
    if (type != 1 || flags || kind_of(handle) == FAKE_PRIVATE_MEMORY) return 801;
    int fd = memfd_create("memory", MFD_CLOEXEC);
    *(int *)out = fd;
    return fd < 0;
}

int cuMemRelease(address handle) {
    (void)handle;
    fake_driver_allocations--;
    return 0;
}

int cuMemPoolExportToShareableHandle(void *out, void *pool, int type, unsigned long long flags) {
    if (*(unsigned char *)&pool == 4) return 801;
    return cuMemExportToShareableHandle(out, 0, type, flags);
}

int cuMemPoolExportPointer(void *data, address at) { return cuIpcGetMemHandle(data, at); }
