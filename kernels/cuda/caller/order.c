/* order: one stream behind another, by an event: where a call's answers go to memory that belongs to another stream than its input; and
 * behind an event of the caller's.
 *
 * Thread: any. Owner: CUDA, of an event made here, from the moment at which it is destroyed until the stream has come past it. */
#include "kernels/cuda/caller/internal.h"

cr_status cr_caller_order(const void *data, void *before, void *after, cr_error *error) {
    cr_visit visit;
    cudaEvent_t event = NULL;
    cr_status status = cr_caller_enter(&visit, data, before, error);
    if (status != CR_OK) return status;
    cudaError_t failure = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (failure == cudaSuccess) failure = cudaEventRecord(event, visit.stream);
    if (failure == cudaSuccess) failure = cudaStreamWaitEvent((cudaStream_t)after, event, 0);
    if (event != NULL) cudaEventDestroy(event);
    status = cr_caller_error((int)failure, "order of two streams", error);
    cr_caller_leave(&visit);
    return status;
}

static cudaError_t wait_for(const cr_visit *visit, void *event, bool here) {
    enum cudaStreamCaptureMode before;
    if (!here) return cudaStreamWaitEvent(visit->stream, (cudaEvent_t)event, 0);
    if (event != NULL) return cudaEventSynchronize((cudaEvent_t)event);
    cr_caller_relax(&before); /* another stream may be captured */
    const cudaError_t failure = cudaStreamSynchronize(visit->stream);
    cr_caller_restore(before);
    return failure;
}

cr_status cr_caller_wait(const void *data, void *event, void *stream, bool here, cr_error *error) {
    cr_visit visit;
    cr_status status = cr_caller_enter(&visit, data, stream, error);
    if (status != CR_OK) return status;
    if (here && event == NULL && visit.captured)
        status =
            cr_fail(error, CR_FAILED_PRECONDITION, "event: the stream is captured, and there is nothing to wait for");
    if (status == CR_OK) status = cr_caller_error((int)wait_for(&visit, event, here), "wait for an event", error);
    cr_caller_leave(&visit);
    return status;
}
