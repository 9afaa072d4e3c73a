/* quantile: a read of quantiles of arrays in device memory: its counts are added up there, and come to host memory, where the next read is
 * chosen (kernels/core/quantile.h).
 *
 * Thread: any. Owner: the room. */
#include <string.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/quantile/quantile.h"

static cr_status put(cr_room *room, const cr_visit *visit, const cr_quantile *s, const cr_caller_array *arrays,
                     size_t count, uint64_t *counts, cr_error *error) {
    const size_t bytes = cr_quantile_words(s) * sizeof counts[0];
    cudaError_t failure = cudaMemsetAsync(room->answers, 0, bytes, visit->stream);
    for (size_t i = 0; i < count && failure == cudaSuccess; i++)
        failure = (cudaError_t)cr_quantile_count(s, arrays[i].data, arrays[i].n, (void *)room->answers,
                                                 visit->multiprocessors, visit->stream);
    if (failure == cudaSuccess)
        failure = cudaMemcpyAsync(bytes <= CR_ROOM_SMALL ? (void *)room->small : counts, room->answers, bytes,
                                  cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    return cr_caller_error((int)failure, "quantile", error);
}

static cr_status read_once(cr_room *room, const cr_visit *visit, const cr_quantile *s, const cr_caller_array *arrays,
                           size_t count, uint64_t *counts, cr_error *error) {
    const size_t bytes = cr_quantile_words(s) * sizeof counts[0];
    cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    if (status == CR_OK) status = put(room, visit, s, arrays, count, counts, error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status == CR_OK && bytes <= CR_ROOM_SMALL) memcpy(counts, room->small, bytes);
    if (status != CR_OK) cr_room_settle(room, visit->stream);
    return status;
}

cr_status cr_caller_quantile(const cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream,
                             uint64_t *counts, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    uint64_t seen = 0;
    memset(counts, 0, cr_quantile_words(s) * sizeof counts[0]);
    for (size_t i = 0; i < count; i++) seen += arrays[i].n;
    cr_status status = cr_caller_enter(&visit, cr_caller_data(arrays, count), stream, error);
    if (status != CR_OK) return status;
    status = cr_caller_check_wait(&visit, error);
    for (size_t i = 1; i < count && status == CR_OK; i++)
        if (arrays[i].n != 0) status = cr_caller_check_beside(arrays[i].data, "array", &visit, error);
    if (status == CR_OK && seen != 0) status = cr_room_take(&visit, &room, error);
    if (room != NULL) {
        pthread_mutex_lock(&room->mutex);
        status = read_once(room, &visit, s, arrays, count, counts, error);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    if (s->read == 0) counts[CR_QUANTILE_SEEN] = seen;
    return status;
}
