/* device (double): the state, what each call of the runtime begins with, devices and their contexts.
 *
 * Thread: any. Owner: the process, of the state; it is never taken down, because programs call CUDA while they end. */
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/double/internal.hh"

enum { DEVICES = 2, L2_BYTES = 4 << 20, THREADS = 2048 };

static state *make_state() {
    state *s = new state();
    const char *seed = getenv("CURED_TEST_SEED");
    s->seed = s->drawn = seed ? strtoull(seed, nullptr, 0) : 0;
    for (int device = 0; device < DEVICES; device++) {
        for (bool primary : {true, false}) {
            context *c = new context();
            c->device = device;
            c->primary = primary;
            s->contexts.push_back(c);
        }
    }
    return s;
}
state &the = *make_state();
thread_local thread_state mine;

uint64_t thread_number() {
    static uint64_t threads;
    if (mine.number == 0) mine.number = ++threads;
    return mine.number;
}

context *primary_of(int device) { return the.contexts[(size_t)device * 2]; }

void activate(context *c) {
    if (c->active) return;
    c->active = true;
    c->number = ++the.numbers;
    c->broken = cudaSuccess;
    c->legacy = make_queue(c, true);
    c->legacy->legacy = true;
}

context *current_context() {
    if (mine.current == nullptr) mine.current = primary_of(0);
    activate(mine.current);
    return mine.current;
}

void reset(context *c) {
    drop_work(c);
    remove_blocks_of(c);
    for (const std::shared_ptr<capture> &k : the.captures)
        if (k->origin->home == c) invalidate(*k);
    c->active = false;
}

static cudaError_t fault_of(const char *name) {
    cudaError_t found = cudaSuccess;
    for (fault &f : the.faults)
        if (f.name == name && f.left > 0 && --f.left == 0 && found == cudaSuccess) found = f.error;
    the.faults.erase(std::remove_if(the.faults.begin(), the.faults.end(), [](const fault &f) { return f.left == 0; }),
                     the.faults.end());
    return found;
}

static cudaError_t usable() {
    if (the.driver < 13000) return cudaErrorInsufficientDriver;
    return the.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

entry::entry(const char *name, entry_kind kind) : lock(the.mutex), failure(cudaSuccess) {
    the.calls[name]++;
    thread_number();
    if (the.process == 0) the.process = (int)getpid();
    if (mine.helps) failure = cudaErrorNotPermitted;
    else if (the.process != (int)getpid()) failure = cudaErrorInitializationError;
    else failure = fault_of(name);
    if (failure == cudaSuccess && kind & CONTEXT) failure = usable();
    if (failure == cudaSuccess && kind & CONTEXT) failure = current_context()->broken;
    if (failure == cudaSuccess && kind == UNSAFE && forbidden()) failure = cudaErrorStreamCaptureUnsupported;
    give(failure);
}

cudaError_t entry::give(cudaError_t error) {
    if (error != cudaSuccess) mine.last_error = error;
    return error;
}

extern "C" {

cudaError_t cudaDriverGetVersion(int *version) {
    ENTER(cudaDriverGetVersion, PLAIN);
    *version = the.driver;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    ENTER(cudaRuntimeGetVersion, PLAIN);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    ENTER(cudaGetDeviceCount, PLAIN);
    *count = usable() == cudaSuccess ? the.devices : 0;
    return here.give(usable());
}

cudaError_t cudaGetDevice(int *device) {
    ENTER(cudaGetDevice, PLAIN);
    *device = mine.current ? mine.current->device : 0;
    return here.give(usable());
}

/* As from CUDA 12 on, makes the context too. */
cudaError_t cudaSetDevice(int device) {
    ENTER(cudaSetDevice, PLAIN);
    if (usable() != cudaSuccess) return here.give(usable());
    if (device < 0 || device >= the.devices) return here.give(cudaErrorInvalidDevice);
    mine.current = primary_of(device);
    activate(mine.current);
    return here.give(mine.current->broken);
}

/* Very small, so that short arrays already take many blocks' rounds; by the seed, since each of fewer blocks has more. */
static int multiprocessors() { return 1 + (int)((the.seed + 2) % 3); }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *found, int device) {
    ENTER(cudaGetDeviceProperties, PLAIN);
    if (usable() != cudaSuccess) return here.give(usable());
    if (device < 0 || device >= the.devices) return here.give(cudaErrorInvalidDevice);
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "double %d", device);
    found->uuid.bytes[15] = (char)(device + 1);
    found->totalGlobalMem = (size_t)1 << 30;
    found->major = the.major;
    found->minor = the.minor;
    found->multiProcessorCount = multiprocessors();
    found->l2CacheSize = L2_BYTES;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    ENTER(cudaDeviceGetAttribute, PLAIN);
    if (usable() != cudaSuccess) return here.give(usable());
    if (device < 0 || device >= the.devices) return here.give(cudaErrorInvalidDevice);
    switch (attribute) {
        case cudaDevAttrMultiProcessorCount:
            *value = multiprocessors();
            return cudaSuccess;
        case cudaDevAttrL2CacheSize:
            *value = L2_BYTES;
            return cudaSuccess;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            *value = THREADS;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
            *value = the.major;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            *value = the.minor;
            return cudaSuccess;
        case cudaDevAttrSingleToDoublePrecisionPerfRatio:
            *value = the.ratio;
            return cudaSuccess;
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrConcurrentManagedAccess:
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
        case cudaDevAttrMemoryPoolsSupported:
            *value = 1;
            return cudaSuccess;
    }
    return here.give(cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *found, const void *) {
    ENTER(cudaFuncGetAttributes, CONTEXT);
    *found = {90, 90};
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    ENTER(cudaDeviceSynchronize, UNSAFE);
    the.counts.device_syncs++;
    return here.give(wait_for_device(here, current_context()));
}

cudaError_t cudaDeviceReset(void) {
    ENTER(cudaDeviceReset, PLAIN);
    if (usable() != cudaSuccess) return here.give(usable());
    reset(primary_of(mine.current ? mine.current->device : 0));
    mine.last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t last = mine.last_error;
    mine.last_error = mine.current && mine.current->active ? mine.current->broken : cudaSuccess;
    return last;
}
cudaError_t cudaPeekAtLastError(void) { return mine.last_error; }

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define ROW(name, number, text) \
    case cuda##name:            \
        return text;
        CR_DOUBLE_ERRORS(ROW)
#undef ROW
    }
    return "unrecognized error code";
}
const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define ROW(name, number, text) \
    case cuda##name:            \
        return "cuda" #name;
        CR_DOUBLE_ERRORS(ROW)
#undef ROW
    }
    return "unrecognized error code";
}

} /* extern "C" */
