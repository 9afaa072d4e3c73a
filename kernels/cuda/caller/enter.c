/* enter: whose stream, device and context a call is of, and what a process may not do: see caller.h.
 *
 * The driver's functions are found by name, since the runtime does not offer them. The runtime is linked statically; it and the
 * program's own, if there is one, share the primary context. Contexts are known by their numbers, because a handle may come again.
 * Thread: any. Owner: this file, of the list of devices. */
#include <stdatomic.h>
#include <stdio.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/device/driver.h"

enum { DEVICES = 64 };

/* CUDA's driver interface, as far as it is used here; a context is an opaque pointer. */
static struct {
    int (*current)(void **), (*set)(void *), (*number)(void *, unsigned long long *), (*device)(int *),
        (*retain)(void **, int);
} driver;

static struct {
    _Atomic(void *) context; /* the primary one, retained once and for ever; NULL: not asked for yet */
    _Atomic unsigned long long number;
    uint32_t multiprocessors;
} devices[DEVICES];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* whoever fills in a device, or asks for the driver */
static atomic_bool prepared;
static uint32_t device_count;
static atomic_bool inherited;

static void mark_child(void) { inherited = true; }

/* What failed may go well later, and is tried again. */
static cr_status prepare(cr_error *error) {
    static bool marked;
    cr_status status = CR_OK;
    if (prepared) return CR_OK;
    pthread_mutex_lock(&mutex);
    if (!marked) marked = pthread_atfork(NULL, NULL, mark_child) == 0;
    device_count = cr_cuda.count(error);
    if (device_count == 0)
        status = error->code;
    else if (!cr_cuda_find("cuCtxGetCurrent", &driver.current, sizeof driver.current) ||
             !cr_cuda_find("cuCtxSetCurrent", &driver.set, sizeof driver.set) ||
             !cr_cuda_find("cuCtxGetId", &driver.number, sizeof driver.number) ||
             !cr_cuda_find("cuCtxGetDevice", &driver.device, sizeof driver.device) ||
             !cr_cuda_find("cuDevicePrimaryCtxRetain", &driver.retain, sizeof driver.retain))
        status = cr_fail(error, CR_UNAVAILABLE, "the CUDA driver lacks functions of CUDA 12.0");
    prepared = status == CR_OK;
    pthread_mutex_unlock(&mutex);
    return status;
}

cr_status cr_caller_error(int failure, const char *what, cr_error *error) {
    const cudaError_t code = (cudaError_t)failure;
    if (code == cudaSuccess) return CR_OK;
    (void)cudaGetLastError();
    cr_status status = CR_UNAVAILABLE;
    if (code == cudaErrorMemoryAllocation) status = CR_RESOURCE_EXHAUSTED;
    if (code == cudaErrorContextIsDestroyed || code == cudaErrorDeviceUninitialized ||
        code == cudaErrorStreamCaptureUnsupported || code == cudaErrorStreamCaptureImplicit ||
        code == cudaErrorStreamCaptureInvalidated || code == cudaErrorStreamCaptureWrongThread)
        status = CR_FAILED_PRECONDITION;
    if (code == cudaErrorInvalidResourceHandle || code == cudaErrorInvalidValue) status = CR_INVALID_ARGUMENT;
    return cr_fail(error, status, "%s: %s", what, cudaGetErrorString(code));
}

static cr_status fill_in(int device, cr_error *error) {
    int major = 0, minor = 0, multiprocessors = 0;
    char text[32];
    void *context = NULL;
    unsigned long long number = 0;
    cudaError_t failure = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (failure == cudaSuccess) failure = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (failure == cudaSuccess)
        failure = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (failure != cudaSuccess) return cr_caller_error((int)failure, "device", error);
    snprintf(text, sizeof text, "GPU %d", device);
    const cr_status status = cr_cuda_capable(text, major, minor, error);
    if (status != CR_OK) return status;
    int refusal = driver.retain(&context, device);
    if (refusal == 0) refusal = driver.number(context, &number);
    if (refusal != 0) return cr_fail(error, CR_UNAVAILABLE, "GPU %d: its context cannot be had: %d", device, refusal);
    devices[device].multiprocessors = (uint32_t)multiprocessors;
    devices[device].number = number;
    devices[device].context = context;
    return CR_OK;
}

/* Makes the device known, anew if its context has another number than it had. */
static cr_status know(int device, cr_error *error) {
    unsigned long long number = 0;
    if (device < 0 || device >= DEVICES || (uint32_t)device >= device_count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "device %d: there are %u of them", device, device_count);
    void *context = devices[device].context;
    if (context != NULL && driver.number(context, &number) == 0 && number == devices[device].number) return CR_OK;
    pthread_mutex_lock(&mutex);
    const cr_status status = fill_in(device, error);
    pthread_mutex_unlock(&mutex);
    return status;
}

/* Whether the context is a known device's, and still the one of that number. */
static bool is_known(void *context, int *device) {
    unsigned long long number = 0;
    for (uint32_t i = 0; i < device_count && i < DEVICES; i++) {
        if (devices[i].context != context) continue;
        *device = (int)i;
        return driver.number(context, &number) == 0 && number == devices[i].number;
    }
    return false;
}

/* The device whose primary context is current; −1: no context is. */
static cr_status find_home(void *context, int *home, cr_error *error) {
    *home = -1;
    if (context == NULL || is_known(context, home)) return CR_OK;
    if (driver.device(home) != 0)
        return cr_fail(error, CR_FAILED_PRECONDITION, "the current CUDA context is destroyed, as by cudaDeviceReset");
    cr_status status = know(*home, error);
    if (status == CR_OK && devices[*home].context != context)
        status = cr_fail(error, CR_FAILED_PRECONDITION,
                         "the current CUDA context of GPU %d is not its primary one, which alone is served", *home);
    return status;
}

static cr_status find_device(const void *data, int *device, cr_error *error) {
    struct cudaPointerAttributes found;
    cudaError_t failure = cudaPointerGetAttributes(&found, data);
    if (failure != cudaSuccess) return cr_caller_error((int)failure, "array", error);
    if (found.type == cudaMemoryTypeUnregistered)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array: %p is no memory that a GPU reads", data);
    if (found.type == cudaMemoryTypeDevice) *device = found.device;
    return CR_OK;
}

static cr_status look_at_stream(cr_visit *visit, cr_error *error) {
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    cudaError_t failure = cudaStreamIsCapturing(visit->stream, &captured);
    if (failure == cudaSuccess && captured == cudaStreamCaptureStatusInvalidated)
        failure = cudaErrorStreamCaptureInvalidated;
    /* Implicitly: another is, for which the legacy stream would wait. */
    visit->captured = captured == cudaStreamCaptureStatusActive || failure == cudaErrorStreamCaptureImplicit ||
                      failure == cudaErrorStreamCaptureInvalidated;
    visit->legacy = visit->stream == NULL || visit->stream == cudaStreamLegacy;
    /* Its number, asked for in a capture, would end the capture (CUDA 13.0); and it has no room then. */
    if (failure == cudaSuccess && !visit->captured && !visit->legacy)
        failure = cudaStreamGetId(visit->stream, &visit->stream_id);
    return cr_caller_error((int)failure, "stream", error);
}

cr_status cr_caller_enter(cr_visit *visit, const void *data, void *stream, cr_error *error) {
    int home = -1;
    *visit = (cr_visit){.stream = (cudaStream_t)stream};
    if (inherited) return cr_caller_alive(0, 0, error);
    cr_status status = prepare(error);
    if (status != CR_OK) return status;
    if (driver.current(&visit->before) != 0) visit->before = NULL;
    status = find_home(visit->before, &home, error);
    if (status != CR_OK) return status;
    visit->device = home;
    if (home < 0) status = cr_caller_error((int)cudaGetDevice(&visit->device), "device", error);
    if (status == CR_OK && data != NULL) status = find_device(data, &visit->device, error);
    if (status == CR_OK && visit->device != home) {
        status = know(visit->device, error);
        visit->switched = status == CR_OK && driver.set(devices[visit->device].context) == 0;
        if (status == CR_OK && !visit->switched)
            status = cr_fail(error, CR_UNAVAILABLE, "GPU %d cannot be made current", visit->device);
    }
    if (status == CR_OK) status = look_at_stream(visit, error);
    if (status != CR_OK) return cr_caller_leave(visit), status;
    visit->multiprocessors = devices[visit->device].multiprocessors;
    return CR_OK;
}

cr_status cr_caller_check_wait(const cr_visit *visit, cr_error *error) {
    if (!visit->captured) return CR_OK;
    return cr_fail(error, CR_FAILED_PRECONDITION,
                   "stream: it is captured, and a graph has nobody who waits for an answer in host memory: ask for "
                   "answers in device memory");
}

void cr_caller_leave(cr_visit *visit) {
    if (visit->switched) driver.set(visit->before);
    visit->switched = false;
}

unsigned long long cr_caller_context(int device) { return devices[device].number; }

bool cr_caller_is_only(void) { return device_count == 1; }

/* A query in a capture that the stream would take part in ends the capture; to ask whether there is one does not. */
bool cr_caller_legacy_idle(int device) {
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    enum cudaStreamCaptureMode mode;
    void *before = NULL;
    if (driver.current(&before) != 0) return false;
    const bool elsewhere = before != devices[device].context;
    if (elsewhere && driver.set(devices[device].context) != 0) return false;
    cr_caller_relax(&mode);
    const bool idle = cudaStreamIsCapturing(cudaStreamLegacy, &captured) == cudaSuccess &&
                      cudaStreamQuery(cudaStreamLegacy) == cudaSuccess;
    cr_caller_restore(mode);
    if (!idle) (void)cudaGetLastError();
    if (elsewhere) driver.set(before);
    return idle;
}

bool cr_caller_lend(int device) {
    void *now = NULL;
    return driver.current(&now) == 0 && now == NULL && driver.set(devices[device].context) == 0;
}

void cr_caller_unlend(bool lent) {
    if (lent) driver.set(NULL);
}

bool cr_caller_is_child(void) { return inherited; }

cr_status cr_caller_alive(int device, unsigned long long context_id, cr_error *error) {
    unsigned long long number = 0;
    if (inherited)
        return cr_fail(error, CR_FAILED_PRECONDITION,
                       "CUDA was used before fork(): a child cannot use it; start the child by exec, as "
                       "multiprocessing's \"spawn\" does");
    void *context = devices[device].context;
    if (context != NULL && driver.number(context, &number) == 0 && number == context_id) return CR_OK;
    return cr_fail(error, CR_FAILED_PRECONDITION, "GPU %d was reset (cudaDeviceReset): what was under way is lost",
                   device);
}
