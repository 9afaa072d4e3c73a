/* fake_cuda: a library by the name of CUDA's driver, for clients of a daemon with the stand-in GPU: its device memory is files that a test has
 * mapped, and named by fake_cuda_share. The daemon opens them by their names, which are their IPC handles.
 *
 * Thread: the test's. Owner: the test loads it. */
#include <string.h>

typedef unsigned long long address;

enum { SHARED = 1024, HANDLE_BYTES = 64, NOT_SUPPORTED = 801 };

static struct {
    address base;
    size_t size;
    char name[HANDLE_BYTES];
} shared[SHARED];
static int count;

/* Read by the test. */
int fake_cuda_waits, fake_cuda_contexts;

/* 0: done. */
int fake_cuda_share(address base, size_t size, const char *name) {
    if (count == SHARED || strlen(name) >= HANDLE_BYTES) return 1;
    shared[count].base = base;
    shared[count].size = size;
    strcpy(shared[count++].name, name);
    return 0;
}

/* Addresses are used again: the last counts. */
static int find(address at) {
    int i = count - 1;
    while (i >= 0 && (at < shared[i].base || at - shared[i].base >= shared[i].size)) i--;
    return i;
}

int cuGetErrorString(int result, const char **text) {
    *text = result == NOT_SUPPORTED ? "not supported" : "invalid";
    return 0;
}

int cuPointerGetAttribute(void *value, int which, address at) {
    const int i = find(at);
    if (i < 0) return 1;
    if (which == 1) memcpy(value, &(void *){shared}, sizeof(void *)); /* a context */
    if (which == 2) *(int *)value = 2;                                /* device memory */
    if (which == 8 || which == 9) *(int *)value = 0;                  /* not managed; of device 0 */
    if (which == 10) *(int *)value = 1;                               /* which has a handle */
    if (which == 17) memset(value, 0, sizeof(void *));                /* of no pool */
    return which > 17;
}

int cuMemGetAddressRange_v2(address *base, size_t *size, address at) {
    const int i = find(at);
    if (i < 0) return 1;
    *base = shared[i].base;
    *size = shared[i].size;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) { return (*device = ordinal) != 0; }

int cuDeviceGetUuid_v2(void *uuid, int device) {
    memset(uuid, 0, 16); /* the stand-in's first */
    return device != 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = shared;
    return device != 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device != 0; }

int cuCtxPushCurrent_v2(void *context) {
    fake_cuda_contexts++;
    return context ? 0 : 201;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = NULL;
    fake_cuda_contexts--;
    return 0;
}

int cuIpcGetMemHandle(void *handle, address at) {
    const int i = find(at);
    if (i < 0) return 1;
    memcpy(handle, shared[i].name, HANDLE_BYTES);
    return 0;
}

/* A stream always has something under way once. */
int cuStreamQuery(const void *stream) {
    (void)stream;
    return 600;
}

int cuStreamSynchronize(const void *stream) {
    (void)stream;
    fake_cuda_waits++;
    return 0;
}

#define NONE(name, ...) \
    int name(__VA_ARGS__) { return NOT_SUPPORTED; }
NONE(cuIpcGetEventHandle, void *handle, void *event)
NONE(cuMemRetainAllocationHandle, address *handle, void *at)
NONE(cuMemExportToShareableHandle, void *out, address handle, int type, unsigned long long flags)
NONE(cuMemRelease, address handle)
NONE(cuMemPoolExportToShareableHandle, void *out, void *pool, int type, unsigned long long flags)
NONE(cuMemPoolExportPointer, void *data, address at)
