/* cuda_runtime_api (emulated): as much of CUDA's runtime as the ladder and its test use, over host memory. Everything is over when
 * the call returns, so streams and events are nothing.
 *
 * Thread: one. Owner: as with the real one. */
#ifndef CURED_TESTS_GPU_EMULATE_CUDA_RUNTIME_API_H
#define CURED_TESTS_GPU_EMULATE_CUDA_RUNTIME_API_H

#include <stdlib.h>
#include <string.h>

enum { CUDART_VERSION = 0 };
typedef enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600 } cudaError_t;
typedef void *cudaStream_t;
typedef void *cudaEvent_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum {
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrSingleToDoublePrecisionPerfRatio = 87
};

static inline cudaError_t cudaMalloc(void **memory, size_t bytes) {
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaMallocHost(void **memory, size_t bytes) { return cudaMalloc(memory, bytes); }
static inline cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void *memory) { return cudaFree(memory); }
static inline cudaError_t cudaMemset(void *memory, int byte, size_t bytes) {
    memset(memory, byte, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream) {
    (void)stream;
    return cudaMemset(memory, byte, bytes);
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}
static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind,
                                            cudaStream_t stream) {
    (void)kind, (void)stream;
    for (size_t i = 0; i < height; i++) memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }
static inline const char *cudaGetErrorString(cudaError_t error) { return error ? "no memory" : "no error"; }
static inline cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
/* The current device, and what a kernel's code for it is. */
struct cudaFuncAttributes {
    int binaryVersion, ptxVersion;
};
#ifdef __cplusplus
extern "C" {
#endif
extern int cr_emulated_device;
cudaError_t cr_emulated_code(struct cudaFuncAttributes *found);
/* What a device says that it has; NULL: 1 of everything. */
extern cudaError_t (*cr_emulated_attribute)(int *value, int attribute, int device);
/* Graphs, and whether a stream is idle: a test that wants them has its own. */
cudaError_t cudaStreamQuery(cudaStream_t stream);
typedef void *cudaGraph_t, *cudaGraphExec_t;
enum { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
#ifdef __cplusplus
}
#endif
static inline cudaError_t cudaGetDevice(int *device) {
    *device = cr_emulated_device;
    return cudaSuccess;
}
static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *found, const void *kernel) {
    (void)kernel;
    return cr_emulated_code(found);
}
/* A very small GPU, so that short arrays already give every block several rounds. */
static inline cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
    if (cr_emulated_attribute != NULL) return cr_emulated_attribute(value, attribute, device);
    *value = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    (void)flags;
    *stream = NULL;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return (void)stream, cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return (void)stream, cudaSuccess; }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return (void)stream, (void)event, (void)flags, cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return cudaStreamCreateWithFlags(event, flags);
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaStreamCreateWithFlags(event, 0); }
static inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return (void)event, cudaSuccess; }
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return (void)event, (void)stream, cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) { return (void)event, cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    (void)begin, (void)end;
    *milliseconds = 0;
    return cudaSuccess;
}

#endif
