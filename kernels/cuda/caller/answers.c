/* answers: what is finished on the device: answers along an axis, and answers that stay in device memory. A whole array is one row.
 *
 *   enqueue, in a stream that is captured: the kernels' memory is the graph's own. It is made beside the capture, zeroed by a stream of
 *   its own, and the graph keeps it; what is given back later is freed by the next call, because a graph's end may not call CUDA.
 *
 * Thread: any. Owner: the room, or a graph. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"

enum { ALIGN = 256 };

/* A graph's. */
typedef struct owned {
    struct owned *next;
    int device;
    void *scratch;
} owned;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static owned *given_back; /* guarded by mutex */

static bool may_fail(const cr_gpu_axis *axis, uint32_t k) {
    const cr_finish_opts own = cr_finish_share(axis->ops[k], axis->dtype, &axis->finish, NULL);
    return cr_op_result(axis->ops[k]) == CR_RESULT_EXACT &&
           cr_dtype_kind(cr_axis_dtype(axis->ops[k], axis->dtype, &own)) != CR_KIND_FLOAT;
}

static bool any_may_fail(const cr_gpu_axis *axis) {
    for (uint32_t k = 0; k < axis->op_count; k++)
        if (may_fail(axis, k)) return true;
    return false;
}

static cr_status check(const cr_gpu_axis *axis, cr_error *error) {
    if (axis->shape.outer != 0 && axis->shape.inner > UINT32_MAX / axis->shape.outer)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: more than 2^32 answers at once");
    if (axis->shape.n == 0)
        return cr_fail(error, CR_UNIMPLEMENTED, "array: it has no elements, of which a GPU makes no answers");
    if (!cr_axis_takes(axis))
        return cr_fail(
            error, CR_UNIMPLEMENTED,
            "ops: the GPU has no kernel that finishes one of them over %llu elements; ask for answers in host "
            "memory, without an axis",
            (unsigned long long)axis->shape.n);
    return CR_OK;
}

static uint64_t scratch_bytes(const cr_gpu_axis *axis, const cr_visit *visit) {
    cr_axis_launch at;
    cr_axis_launch_make(&at, (uintptr_t)axis->data, &axis->shape, axis->dtype, cr_axis_is_variance(axis),
                        visit->multiprocessors);
    return at.scratch_bytes;
}

/* The room's scratch, whose head is zero before its first use and left so. */
static cr_status need_scratch(cr_room *room, const cr_gpu_axis *axis, const cr_visit *visit, cr_error *error) {
    const uint8_t *before = room->scratch;
    cr_status status =
        cr_room_grow(&room->scratch, &room->scratch_bytes, scratch_bytes(axis, visit), visit->stream, error);
    if (status != CR_OK || room->scratch == before) return status;
    return cr_caller_error((int)cudaMemsetAsync(room->scratch, 0, sizeof(cr_axis_head), visit->stream), "workspace",
                           error);
}

static uint64_t bytes_of(const cr_gpu_axis *axis, uint32_t k) {
    const cr_finish_opts own = cr_finish_share(axis->ops[k], axis->dtype, &axis->finish, NULL);
    return axis->shape.outer * axis->shape.inner * cr_dtype_size(cr_axis_dtype(axis->ops[k], axis->dtype, &own));
}

/* Enqueues the kernels, and the copies of what they answer; small ones by one, through pinned memory. */
static cr_status put(cr_room *room, const cr_visit *visit, const cr_gpu_axis *axis, void *const *results,
                     const uint64_t *at, uint64_t bytes, cr_error *error) {
    void *out[CR_GPU_AXIS_OPS];
    for (uint32_t k = 0; k < axis->op_count; k++) out[k] = room->answers + at[k];
    cr_axis_failure *failed = (cr_axis_failure *)(void *)room->answers;
    cudaError_t failure = cudaMemsetAsync(failed, 0, sizeof *failed, visit->stream);
    if (failure == cudaSuccess)
        failure = (cudaError_t)cr_axis_enqueue(axis, visit->multiprocessors, out, room->scratch, failed, visit->stream);
    const bool small = bytes <= CR_ROOM_SMALL;
    if (failure == cudaSuccess)
        failure = cudaMemcpyAsync(room->small, room->answers, small ? bytes : sizeof *failed, cudaMemcpyDeviceToHost,
                                  visit->stream);
    for (uint32_t k = 0; k < axis->op_count && !small && failure == cudaSuccess; k++)
        failure = cudaMemcpyAsync(results[k], out[k], bytes_of(axis, k), cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    return cr_caller_error((int)failure, "axis", error);
}

static cr_status run_axis(cr_room *room, const cr_visit *visit, const cr_gpu_axis *axis, void *const *results,
                          cr_error *error) {
    uint64_t at[CR_GPU_AXIS_OPS], bytes = ALIGN, failed = 0;
    const void *ignored[CR_GPU_AXIS_OPS];
    for (uint32_t k = 0; k < axis->op_count; k++) {
        at[k] = bytes;
        bytes = (bytes + bytes_of(axis, k) + ALIGN - 1) / ALIGN * ALIGN;
    }
    cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    if (status == CR_OK) status = need_scratch(room, axis, visit, error);
    if (status == CR_OK) status = put(room, visit, axis, results, at, bytes, error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status != CR_OK) return status;
    for (uint32_t k = 0; k < axis->op_count && bytes <= CR_ROOM_SMALL; k++)
        memcpy(results[k], room->small + at[k], bytes_of(axis, k));
    const cr_axis_room view = {.host = room->small, .asked = *axis, .may_fail = any_may_fail(axis)};
    return cr_axis_answers(&view, ignored, &failed, error);
}

cr_status cr_caller_axis(const cr_gpu_axis *axis, void *stream, void *const *results, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_gpu_axis own = *axis;
    own.to = NULL;
    cr_status status = check(&own, error);
    if (status != CR_OK || axis->shape.outer * axis->shape.inner == 0) return status;
    status = cr_caller_enter(&visit, axis->data, stream, error);
    if (status != CR_OK) return status;
    if (visit.captured)
        status = cr_fail(error, CR_FAILED_PRECONDITION,
                         "stream: it is captured, and a graph has nobody who waits for answers in host memory");
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        pthread_mutex_lock(&room->mutex);
        status = run_axis(room, &visit, &own, results, error);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    return status;
}

/* ---- Answers in device memory ---- */

static void free_given_back(void) {
    pthread_mutex_lock(&mutex);
    owned *all = given_back;
    given_back = NULL;
    pthread_mutex_unlock(&mutex);
    for (owned *next; all != NULL; all = next) {
        next = all->next;
        cudaFree(all->scratch);
        free(all);
    }
    (void)cudaGetLastError();
}

/* By CUDA, when the graph and what was made of it are gone. */
static void CUDART_CB give_back(void *user) {
    owned *o = user;
    pthread_mutex_lock(&mutex);
    o->next = given_back;
    given_back = o;
    pthread_mutex_unlock(&mutex);
}

/* Zeroed memory beside a capture, which allocations would end otherwise. */
static cudaError_t allocate_beside(void **memory, uint64_t bytes, uint64_t zeros) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t own = NULL;
    cudaError_t failure = cudaThreadExchangeStreamCaptureMode(&mode);
    if (failure != cudaSuccess) return failure;
    free_given_back();
    failure = cudaMalloc(memory, bytes);
    if (failure == cudaSuccess) failure = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    if (failure == cudaSuccess) failure = cudaMemsetAsync(*memory, 0, zeros, own);
    if (failure == cudaSuccess) failure = cudaStreamSynchronize(own);
    if (own) cudaStreamDestroy(own);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return failure;
}

/* Makes scratch that the graph under way owns. */
static cr_status make_owned(const cr_gpu_axis *axis, const cr_visit *visit, owned **out, cr_error *error) {
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    cudaUserObject_t object = NULL;
    cudaGraph_t graph = NULL;
    owned *o = calloc(1, sizeof *o);
    if (o == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "graph: no memory for its workspace");
    o->device = visit->device;
    cudaError_t failure = allocate_beside(&o->scratch, scratch_bytes(axis, visit), sizeof(cr_axis_head));
#if CUDART_VERSION >= 13000
    if (failure == cudaSuccess)
        failure = cudaStreamGetCaptureInfo(visit->stream, &captured, NULL, &graph, NULL, NULL, NULL);
#else
    if (failure == cudaSuccess)
        failure = cudaStreamGetCaptureInfo_v2(visit->stream, &captured, NULL, &graph, NULL, NULL);
#endif
    if (failure == cudaSuccess)
        failure = cudaUserObjectCreate(&object, o, give_back, 1, cudaUserObjectNoDestructorSync);
    if (failure != cudaSuccess) {
        give_back(o);
        return cr_caller_error((int)failure, "graph", error);
    }
    failure = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (failure != cudaSuccess) cudaUserObjectRelease(object, 1);
    *out = o;
    return cr_caller_error((int)failure, "graph", error);
}

static cr_status put_to(const cr_gpu_axis *axis, const cr_visit *visit, uint8_t *scratch, void *status,
                        cr_error *error) {
    cudaError_t failure = cudaSuccess;
    /* Where nobody asks, the failure goes to the head's padding: it is never read, and the head stays as good as zero. */
    cr_axis_failure *failed = status ? status : (cr_axis_failure *)(void *)&((cr_axis_head *)(void *)scratch)->pad[1];
    if (status != NULL) failure = cudaMemsetAsync(status, 0, sizeof *failed, visit->stream);
    if (failure == cudaSuccess)
        failure = (cudaError_t)cr_axis_enqueue(axis, visit->multiprocessors, axis->to, scratch, failed, visit->stream);
    return cr_caller_error((int)failure, "enqueue", error);
}

static cr_status put_in_room(const cr_gpu_axis *axis, const cr_visit *visit, void *status, cr_error *error) {
    cr_room *room = NULL;
    cr_status s = cr_room_take(visit, &room, error);
    if (s != CR_OK) return s;
    pthread_mutex_lock(&room->mutex);
    s = need_scratch(room, axis, visit, error);
    if (s == CR_OK) s = put_to(axis, visit, room->scratch, status, error);
    if (s == CR_OK) s = cr_caller_error((int)cudaEventRecord(room->last, visit->stream), "event", error);
    pthread_mutex_unlock(&room->mutex);
    cr_room_give(room);
    return s;
}

cr_status cr_caller_enqueue(const cr_gpu_axis *axis, void *stream, void *status, cr_error *error) {
    cr_visit visit;
    cr_status s = check(axis, error);
    if (s != CR_OK || axis->shape.outer * axis->shape.inner == 0) return s;
    s = cr_caller_enter(&visit, axis->data, stream, error);
    if (s != CR_OK) return s;
    if (visit.captured) {
        owned *own = NULL;
        s = make_owned(axis, &visit, &own, error);
        if (s == CR_OK) s = put_to(axis, &visit, own->scratch, status, error);
    } else {
        s = put_in_room(axis, &visit, status, error);
    }
    cr_caller_leave(&visit);
    return s;
}
