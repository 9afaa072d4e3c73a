/* device: the GPUs of this machine by the CUDA runtime, and what its errors mean. The runtime is linked statically and looks
 * for the driver when it is first called: without one, count is 0 and says so.
 *
 * Thread: one at a time for a device; count from any. Owner: whoever opened. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/internal.h"
#include "kernels/ladder/ladder.h"

bool cr_cuda_find(const char *name, void *function, size_t size) {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
    cudaError_t failure = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how);
    if (failure != cudaSuccess) (void)cudaGetLastError();
    if (failure != cudaSuccess || how != cudaDriverEntryPointSuccess || !found) return false;
    memcpy(function, &found, size);
    return true;
}

cr_status cr_cuda_capable(const char *device, int major, int minor, cr_error *error) {
    if (major >= 8) return CR_OK;
    return cr_fail(error, CR_UNAVAILABLE,
                   "%s is of compute capability %d.%d, and the kernels need 8.0 or later: take a newer GPU, or the CPU",
                   device, major, minor);
}

/* Errors after which nothing on this device works any more in this process. */
static bool sticky(cudaError_t failure) {
    switch (failure) {
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorAssert:
        case cudaErrorContextIsDestroyed:
        case cudaErrorDeviceUninitialized:
        case cudaErrorDevicesUnavailable:
        case cudaErrorNoDevice:
        case cudaErrorSystemNotReady:
        case cudaErrorCudartUnloading:
        case cudaErrorUnknown:
            return true;
        default:
            return false;
    }
}

cr_status cr_cuda_error(cr_gpu *gpu, int failure, const char *what, cr_error *error) {
    cudaError_t code = (cudaError_t)failure;
    if (code == cudaSuccess) return CR_OK;
    (void)cudaGetLastError(); /* what is not sticky is forgotten: the next call starts clean */
    if (code == cudaErrorMemoryAllocation) {
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "%s: the GPU has no memory left (%s)", what,
                       cudaGetErrorString(code));
    }
    if (sticky(code)) {
        gpu->lost = true;
        return cr_fail(error, CR_UNAVAILABLE, "%s: GPU %u is lost: %s", what, gpu->info.ordinal,
                       cudaGetErrorString(code));
    }
    return cr_fail(error, CR_INTERNAL, "%s: GPU %u: %s", what, gpu->info.ordinal, cudaGetErrorString(code));
}

/* The runtime is asked once for each change: a thread has mostly one device. */
cr_status cr_cuda_bind(cr_gpu *gpu, cr_error *error) {
    static _Thread_local uint32_t bound = UINT32_MAX;
    if (gpu->lost) return cr_fail(error, CR_UNAVAILABLE, "GPU %u is lost", gpu->info.ordinal);
    if (bound == gpu->info.ordinal) return CR_OK;
    cr_status status = cr_cuda_error(gpu, (int)cudaSetDevice((int)gpu->info.ordinal), "device", error);
    bound = status == CR_OK ? gpu->info.ordinal : UINT32_MAX;
    return status;
}

static uint32_t count(cr_error *why) {
    int version = 0, devices = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
        (void)cudaGetLastError();
        cr_fail(why, CR_UNAVAILABLE, "no CUDA driver on this machine");
        return 0;
    }
    cudaError_t failure = cudaGetDeviceCount(&devices);
    if (failure == cudaErrorInsufficientDriver) {
        cr_fail(why, CR_UNAVAILABLE, "the CUDA driver is too old: it is for CUDA %d.%d, this program needs %d.%d",
                version / 1000, version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    } else if (failure == cudaErrorNoDevice || (failure == cudaSuccess && devices == 0)) {
        cr_fail(why, CR_UNAVAILABLE, "no CUDA device on this machine");
    } else if (failure != cudaSuccess) {
        cr_fail(why, CR_UNAVAILABLE, "the CUDA driver failed: %s", cudaGetErrorString(failure));
    }
    (void)cudaGetLastError();
    return failure == cudaSuccess && devices > 0 ? (uint32_t)devices : 0;
}

static void print_uuid(char text[48], const unsigned char uuid[16]) {
    char *p = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *p++ = '-';
        p += sprintf(p, "%02x", uuid[i]);
    }
}

static cr_status describe(cr_gpu *gpu, cr_error *error) {
    struct cudaDeviceProp found;
    cr_status status =
        cr_cuda_error(gpu, (int)cudaGetDeviceProperties(&found, (int)gpu->info.ordinal), "device", error);
    if (status != CR_OK) return status;
    cr_gpu_info *info = &gpu->info;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, found.name);
    print_uuid(info->uuid, (const unsigned char *)found.uuid.bytes);
    info->multiprocessors = (uint32_t)found.multiProcessorCount;
    info->major = (uint32_t)found.major;
    info->minor = (uint32_t)found.minor;
    info->memory_bytes = found.totalGlobalMem;
    info->l2_bytes = (uint64_t)found.l2CacheSize;
    char device[sizeof info->name + 32];
    snprintf(device, sizeof device, "GPU %u (%s)", info->ordinal, info->name);
    return cr_cuda_capable(device, found.major, found.minor, error);
}

static void gpu_close(cr_gpu *gpu) {
    cr_cuda_linger_end(gpu);
    if (gpu->ladder && cr_cuda_bind(gpu, NULL) == CR_OK) cr_ladder_close(gpu->ladder);
    cr_cuda_release_all(gpu);
    free(gpu);
}

static cr_status gpu_open(uint32_t ordinal, cr_gpu **out, cr_error *error) {
    uint32_t devices = count(error);
    if (devices == 0) return CR_UNAVAILABLE;
    if (ordinal >= devices) {
        return cr_fail(error, CR_UNAVAILABLE, "GPU %u: there are %u of them", ordinal, devices);
    }
    cr_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "GPU %u: out of memory", ordinal);
    gpu->info.ordinal = ordinal;
    cr_status status = describe(gpu, error);
    if (status == CR_OK) status = cr_cuda_bind(gpu, error);
    /* The context is made now, not by somebody's first job. */
    if (status == CR_OK) status = cr_cuda_error(gpu, (int)cudaFree(NULL), "context", error);
    if (status != CR_OK) {
        gpu_close(gpu);
        return error ? error->code = CR_UNAVAILABLE : CR_UNAVAILABLE;
    }
    *out = gpu;
    return CR_OK;
}

static const cr_gpu_info *info(const cr_gpu *gpu) { return &gpu->info; }
static bool lost(const cr_gpu *gpu) { return gpu->lost; }

const cr_gpu_api cr_cuda = {
    .name = "cuda",
    .traced = cr_cuda_traced,
    .trace_begin = cr_cuda_trace_begin,
    .trace_end = cr_cuda_trace_end,
    .count = count,
    .open = gpu_open,
    .close = gpu_close,
    .info = info,
    .lost = lost,
    .host_alloc = cr_cuda_host_alloc,
    .host_free = cr_cuda_host_free,
    .pin = cr_cuda_pin,
    .unpin = cr_cuda_unpin,
    .device_alloc = cr_cuda_device_alloc,
    .device_free = cr_cuda_device_free,
    .stream_open = cr_cuda_stream_open,
    .stream_close = cr_cuda_stream_close,
    .copy = cr_cuda_copy,
    .copies = cr_cuda_copies,
    .fold = cr_cuda_fold,
    .fold_takes = cr_fold_takes,
    .axis_takes = cr_axis_takes,
    .axis = cr_cuda_axis,
    .axis_result = cr_cuda_axis_result,
    .axis_trim = cr_cuda_axis_trim,
    .fetch = cr_cuda_fetch,
    .put = cr_cuda_put,
    .poll = cr_cuda_poll,
    .result = cr_cuda_result,
    .pack = cr_cuda_pack,
    .pack_result = cr_cuda_pack_result,
    .linger = cr_cuda_linger,
    .kernel = cr_cuda_kernel,
    .inspect = cr_cuda_inspect,
    .import = cr_cuda_import_memory,
    .release = cr_cuda_release,
    .event_open = cr_cuda_event_open,
    .event_look = cr_cuda_event_look,
    .event_close = cr_cuda_event_close,
};
