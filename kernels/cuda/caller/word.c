/* word: a word of status for answers that stay in device memory and may lack a value: made before them in the stream's order, and brought
 * behind them, which is all of such a call that comes to the host.
 *
 * Thread: any. Owner: the caller, of a word until it is taken. */
#include <string.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/keys/keys.h"

static cr_status make(const cr_visit *visit, void **word, cr_error *error) {
    cudaError_t failure = cudaMallocAsync(word, sizeof(uint64_t), visit->stream);
    if (failure != cudaSuccess) {
        *word = NULL;
        return cr_caller_error((int)failure, "status", error);
    }
    failure = cudaMemsetAsync(*word, 0, sizeof(uint64_t), visit->stream);
    if (failure == cudaSuccess) return CR_OK;
    cudaFreeAsync(*word, visit->stream);
    *word = NULL;
    return cr_caller_error((int)failure, "status", error);
}

cr_status cr_caller_word(const void *data, void *stream, void **word, cr_error *error) {
    cr_visit visit;
    *word = NULL;
    cr_status status = cr_caller_enter(&visit, data, stream, error);
    if (status != CR_OK) return status;
    if (visit.captured)
        status = cr_fail(error, CR_FAILED_PRECONDITION,
                         "stream: it is captured, and a graph has nobody who looks whether the answers have values: "
                         "cured_cuda_enqueue() takes a word of status in device memory");
    if (status == CR_OK) status = make(&visit, word, error);
    cr_caller_leave(&visit);
    return status;
}

/* Through pinned memory, so that the copy does not wait. */
static cr_status bring(cr_room *room, const cr_visit *visit, const void *word, uint64_t *value, cr_error *error) {
    cudaError_t failure = cudaMemcpyAsync(room->small, word, sizeof *value, cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    cr_status status = cr_caller_error((int)failure, "status", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status == CR_OK) memcpy(value, room->small, sizeof *value);
    if (status != CR_OK) cr_room_settle(room, visit->stream);
    return status;
}

cr_status cr_caller_take_word(void *word, void *stream, uint64_t *value, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    *value = 0;
    cr_status status = cr_caller_enter(&visit, word, stream, error);
    if (status != CR_OK) { /* a stream knows its device */
        if (cudaFreeAsync(word, (cudaStream_t)stream) != cudaSuccess) (void)cudaGetLastError();
        return status;
    }
    status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        pthread_mutex_lock(&room->mutex);
        status = bring(room, &visit, word, value, error);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    if (cudaFreeAsync(word, visit.stream) != cudaSuccess) (void)cudaGetLastError();
    cr_caller_leave(&visit);
    return status;
}

/* Below 2^32 a value names a key, or an offset, or is that of output 2^32 - 1. */
bool cr_caller_lacks(uint64_t value, cr_error *error) {
    const unsigned long long output = UINT32_MAX - (value >> 32);
    const char *op = cr_op_name((cr_op)(value >> 8 & 255));
    if (value >> CR_KEYS_OUTSIDE_LOG2 == 0) return false;
    if (value & CR_AXIS_NO_VALUE)
        cr_fail(error, CR_INVALID_ARGUMENT, "output %llu: %s of no elements has no value", output, op);
    else
        cr_fail(error, CR_OUT_OF_RANGE, "output %llu: %s does not fit %s", output, op,
                cr_dtype_name((cr_dtype)(value & 255)));
    return true;
}
