/* cuda_runtime_api (double): as much of CUDA 13's runtime as kernels/cuda's host code and its tests use. With this folder first in the
 * search path these files compile for the runtime double, which keeps streams as queues in host memory. double.h steers it.
 *
 * Thread: any, as with the real one. Owner: as with the real one. */
#ifndef CURED_TESTS_DOUBLE_CUDA_RUNTIME_API_H
#define CURED_TESTS_DOUBLE_CUDA_RUNTIME_API_H

#include <stddef.h>

#define CR_DOUBLE_API __attribute__((visibility("default")))
#define CUDART_CB

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 13000

/* Name, number, and what cudaGetErrorString() says. */
#define CR_DOUBLE_ERRORS(ROW)                                                       \
    ROW(Success, 0, "no error")                                                     \
    ROW(ErrorInvalidValue, 1, "invalid argument")                                   \
    ROW(ErrorMemoryAllocation, 2, "out of memory")                                  \
    ROW(ErrorInitializationError, 3, "initialization error")                        \
    ROW(ErrorCudartUnloading, 4, "driver shutting down")                            \
    ROW(ErrorInsufficientDriver, 35, "the driver is too old for the runtime")       \
    ROW(ErrorDevicesUnavailable, 46, "the device is busy or unavailable")           \
    ROW(ErrorIncompatibleDriverContext, 49, "incompatible driver context")          \
    ROW(ErrorNoDevice, 100, "no device is detected")                                \
    ROW(ErrorInvalidDevice, 101, "invalid device ordinal")                          \
    ROW(ErrorDeviceUninitialized, 201, "invalid device context")                    \
    ROW(ErrorECCUncorrectable, 214, "uncorrectable ECC error")                      \
    ROW(ErrorNvlinkUncorrectable, 220, "uncorrectable NVLink error")                \
    ROW(ErrorInvalidResourceHandle, 400, "invalid resource handle")                 \
    ROW(ErrorIllegalState, 401, "illegal state")                                    \
    ROW(ErrorSymbolNotFound, 500, "named symbol not found")                         \
    ROW(ErrorNotReady, 600, "device not ready")                                     \
    ROW(ErrorIllegalAddress, 700, "an illegal memory access was encountered")       \
    ROW(ErrorLaunchTimeout, 702, "the launch timed out and was terminated")         \
    ROW(ErrorContextIsDestroyed, 709, "context is destroyed")                       \
    ROW(ErrorAssert, 710, "device-side assert triggered")                           \
    ROW(ErrorHostMemoryAlreadyRegistered, 712, "host memory is already registered") \
    ROW(ErrorHostMemoryNotRegistered, 713, "host memory is not registered")         \
    ROW(ErrorHardwareStackError, 714, "hardware stack error")                       \
    ROW(ErrorIllegalInstruction, 715, "an illegal instruction was encountered")     \
    ROW(ErrorMisalignedAddress, 716, "misaligned address")                          \
    ROW(ErrorInvalidAddressSpace, 717, "invalid address space")                     \
    ROW(ErrorInvalidPc, 718, "invalid program counter")                             \
    ROW(ErrorLaunchFailure, 719, "unspecified launch failure")                      \
    ROW(ErrorNotPermitted, 800, "operation not permitted")                          \
    ROW(ErrorNotSupported, 801, "operation not supported")                          \
    ROW(ErrorSystemNotReady, 802, "system not yet initialized")                     \
    ROW(ErrorStreamCaptureUnsupported, 900, "not permitted when a stream captures") \
    ROW(ErrorStreamCaptureInvalidated, 901, "the capture was invalidated")          \
    ROW(ErrorStreamCaptureMerge, 902, "two captures would be merged")               \
    ROW(ErrorStreamCaptureUnmatched, 903, "the capture began in another stream")    \
    ROW(ErrorStreamCaptureUnjoined, 904, "the capture has work that is not joined") \
    ROW(ErrorStreamCaptureIsolation, 905, "it would depend on uncaptured work")     \
    ROW(ErrorStreamCaptureImplicit, 906, "it would depend on a capture implicitly") \
    ROW(ErrorCapturedEvent, 907, "the event was recorded in a capturing stream")    \
    ROW(ErrorStreamCaptureWrongThread, 908, "the capture began in another thread")  \
    ROW(ErrorUnknown, 999, "unknown error")

typedef enum cudaError {
#define ROW(name, number, text) cuda##name = number,
    CR_DOUBLE_ERRORS(ROW)
#undef ROW
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUuserObject_st *cudaUserObject_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef void (*cudaHostFn_t)(void *user);
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum {
    cudaStreamDefault = 0,
    cudaStreamNonBlocking = 1,
    cudaEventDefault = 0,
    cudaEventBlockingSync = 1,
    cudaEventDisableTiming = 2,
    cudaEventInterprocess = 4,
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostRegisterPortable = 1,
    cudaHostRegisterMapped = 2,
    cudaHostRegisterReadOnly = 8,
    cudaMemAttachGlobal = 1,
    cudaUserObjectNoDestructorSync = 1,
    cudaGraphUserObjectMove = 1,
    cudaIpcMemLazyEnablePeerAccess = 1
};
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrManagedMemory = 83,
    cudaDevAttrSingleToDoublePrecisionPerfRatio = 87,
    cudaDevAttrConcurrentManagedAccess = 89,
    cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
    cudaDevAttrMemoryPoolsSupported = 115
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess,
    cudaDriverEntryPointSymbolNotFound,
    cudaDriverEntryPointVersionNotSufficent
};
enum { cudaEnableDefault = 0 };

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
struct cudaFuncAttributes {
    int binaryVersion, ptxVersion;
};
typedef struct cudaUUID {
    char bytes[16];
} cudaUUID_t;
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount, l2CacheSize;
};
typedef struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;
struct cudaMemcpyAttributes {
    int srcAccessOrder;
};
enum { cudaMemcpySrcAccessOrderStream = 1 };

/* ---- devices, errors ---- */

CR_DOUBLE_API cudaError_t cudaGetDeviceCount(int *count);
CR_DOUBLE_API cudaError_t cudaGetDevice(int *device);
CR_DOUBLE_API cudaError_t cudaSetDevice(int device);
CR_DOUBLE_API cudaError_t cudaDriverGetVersion(int *version);
CR_DOUBLE_API cudaError_t cudaRuntimeGetVersion(int *version);
CR_DOUBLE_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *found, int device);
CR_DOUBLE_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
CR_DOUBLE_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *found, const void *kernel);
CR_DOUBLE_API cudaError_t cudaDeviceSynchronize(void);
CR_DOUBLE_API cudaError_t cudaDeviceReset(void);
CR_DOUBLE_API cudaError_t cudaGetLastError(void);
CR_DOUBLE_API cudaError_t cudaPeekAtLastError(void);
CR_DOUBLE_API const char *cudaGetErrorString(cudaError_t error);
CR_DOUBLE_API const char *cudaGetErrorName(cudaError_t error);
CR_DOUBLE_API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                                           unsigned long long flags,
                                                           enum cudaDriverEntryPointQueryResult *how);

/* ---- memory ---- */

CR_DOUBLE_API cudaError_t cudaMalloc(void **memory, size_t bytes);
CR_DOUBLE_API cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags);
CR_DOUBLE_API cudaError_t cudaFree(void *memory);
CR_DOUBLE_API cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaMallocHost(void **memory, size_t bytes);
CR_DOUBLE_API cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
CR_DOUBLE_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
CR_DOUBLE_API cudaError_t cudaFreeHost(void *memory);
CR_DOUBLE_API cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
CR_DOUBLE_API cudaError_t cudaHostUnregister(void *memory);
CR_DOUBLE_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *found, const void *pointer);
CR_DOUBLE_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
CR_DOUBLE_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes,
                                               size_t count, struct cudaMemcpyAttributes *how, size_t *first,
                                               size_t hows, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaMemset(void *memory, int byte, size_t bytes);
CR_DOUBLE_API cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream);

/* ---- streams, events ---- */

CR_DOUBLE_API cudaError_t cudaStreamCreate(cudaStream_t *stream);
CR_DOUBLE_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
CR_DOUBLE_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
CR_DOUBLE_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
CR_DOUBLE_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
CR_DOUBLE_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
CR_DOUBLE_API cudaError_t cudaStreamQuery(cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
CR_DOUBLE_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user);
CR_DOUBLE_API cudaError_t cudaEventCreate(cudaEvent_t *event);
CR_DOUBLE_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
CR_DOUBLE_API cudaError_t cudaEventDestroy(cudaEvent_t event);
CR_DOUBLE_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaEventQuery(cudaEvent_t event);
CR_DOUBLE_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
CR_DOUBLE_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

/* ---- captures, graphs ---- */

CR_DOUBLE_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
CR_DOUBLE_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
CR_DOUBLE_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
CR_DOUBLE_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                                   unsigned long long *id, cudaGraph_t *graph,
                                                   const cudaGraphNode_t **dependencies,
                                                   const cudaGraphEdgeData **edges, size_t *count);
CR_DOUBLE_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
CR_DOUBLE_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags);
CR_DOUBLE_API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
CR_DOUBLE_API cudaError_t cudaGraphDestroy(cudaGraph_t graph);
CR_DOUBLE_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
CR_DOUBLE_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *made, void *user, cudaHostFn_t destroy, unsigned count,
                                               unsigned flags);
CR_DOUBLE_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count);
CR_DOUBLE_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count);
CR_DOUBLE_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                                    unsigned flags);
CR_DOUBLE_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count);

/* ---- memory of other processes: all of it is refused ---- */

typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
    char reserved[64];
} cudaIpcEventHandle_t;
struct cudaMemPoolPtrExportData {
    unsigned char reserved[64];
};
enum cudaMemAllocationHandleType { cudaMemHandleTypePosixFileDescriptor = 1 };
CR_DOUBLE_API cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags);
CR_DOUBLE_API cudaError_t cudaIpcCloseMemHandle(void *memory);
CR_DOUBLE_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);
CR_DOUBLE_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                               enum cudaMemAllocationHandleType type, unsigned flags);
CR_DOUBLE_API cudaError_t cudaMemPoolImportPointer(void **memory, cudaMemPool_t pool,
                                                   struct cudaMemPoolPtrExportData *data);
CR_DOUBLE_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);

#ifdef __cplusplus
}
#endif
#endif
