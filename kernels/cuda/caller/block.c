/* block: the digest of a block, whose runs each have their place in a larger array (kernels/cuda/digests).
 *
 * Thread: any. Owner: the room. */
#include <string.h>

#include "kernels/core/digest.h"
#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/digests/digests.h"

enum { BYTES = CR_DIGEST_PARTS * sizeof(uint64_t) };

/* Through pinned memory, so that no copy waits. */
static cr_status run(cr_room *room, const cr_visit *visit, const void *data, cr_dtype dtype, const cr_layout *block,
                     uint64_t *digest, cr_error *error) {
    cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, BYTES, visit->stream, error);
    if (status != CR_OK) return status;
    cudaError_t failure =
        (cudaError_t)cr_digests_block(data, dtype, block, room->answers, visit->multiprocessors, visit->stream);
    if (failure == cudaSuccess)
        failure = cudaMemcpyAsync(room->small, room->answers, BYTES, cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    status = cr_caller_error((int)failure, "block", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status != CR_OK) return status;
    memcpy(digest, room->small, BYTES);
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) digest[j] = cr_digest_least(cr_digest_fold(digest[j]));
    return CR_OK;
}

cr_status cr_caller_block(const void *data, cr_dtype dtype, const cr_layout *block, void *stream, uint64_t *digest,
                          cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_status status = cr_caller_enter(&visit, data, stream, error);
    if (status != CR_OK) return status;
    status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        pthread_mutex_lock(&room->mutex);
        status = run(room, &visit, data, dtype, block, digest, error);
        if (status != CR_OK) cr_room_settle(room, visit.stream);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    return status;
}
