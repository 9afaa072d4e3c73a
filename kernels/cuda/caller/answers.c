/* answers: answers along an axis, which the GPU finishes, to host memory; and how those by offsets and by key come there.
 *
 * Thread: any. Owner: the room. */
#include <string.h>

#include "kernels/cuda/caller/internal.h"

cr_status cr_caller_check_axis(const cr_gpu_axis *axis, cr_error *error) {
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

uint64_t cr_caller_scratch(const cr_gpu_axis *axis, const cr_visit *visit) {
    cr_axis_launch at;
    cr_axis_launch_make(&at, (uintptr_t)axis->data, &axis->shape, axis->dtype, cr_axis_is_variance(axis),
                        visit->multiprocessors);
    return at.scratch_bytes;
}

/* Its head is zero before its first use, and left so. */
cr_status cr_caller_need_bytes(cr_room *room, uint64_t bytes, const cr_visit *visit, cr_error *error) {
    const uint8_t *before = room->scratch;
    cr_status status = cr_room_grow(&room->scratch, &room->scratch_bytes, bytes, visit->stream, error);
    if (status != CR_OK || room->scratch == before) return status;
    return cr_caller_error((int)cudaMemsetAsync(room->scratch, 0, sizeof(cr_axis_head), visit->stream), "workspace",
                           error);
}

cr_status cr_caller_need_scratch(cr_room *room, const cr_gpu_axis *axis, const cr_visit *visit, cr_error *error) {
    return cr_caller_need_bytes(room, cr_caller_scratch(axis, visit), visit, error);
}

/* ---- By offsets and by key ---- */

cr_gpu_axis cr_caller_answers_of(const cr_gpu_axis *axis, uint64_t count) {
    cr_gpu_axis answers = *axis;
    answers.to = NULL;
    answers.shape = (cr_shape){count, 1, 1};
    return answers;
}

/* Small ones come by one copy, through pinned memory, so that no copy waits. */
cr_status cr_caller_bring(cr_room *room, const cr_visit *visit, const cr_gpu_axis *answers, const uint64_t *at,
                          void *const *results, unsigned long long *wrong, cr_error *error) {
    uint64_t same[CR_GPU_AXIS_OPS];
    const uint64_t bytes = cr_axis_lay_out(answers, same);
    const bool small = bytes <= CR_ROOM_SMALL;
    cudaError_t failure = cudaMemcpyAsync(room->small, room->answers, small ? bytes : sizeof *wrong,
                                          cudaMemcpyDeviceToHost, visit->stream);
    for (uint32_t k = 0; k < answers->op_count && !small && failure == cudaSuccess; k++)
        failure = cudaMemcpyAsync(results[k], room->answers + at[k], cr_axis_bytes(answers, k), cudaMemcpyDeviceToHost,
                                  visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    cr_status status = cr_caller_error((int)failure, "answers", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status == CR_OK) memcpy(wrong, room->small, sizeof *wrong);
    for (uint32_t k = 0; k < answers->op_count && status == CR_OK && *wrong == 0 && small; k++)
        memcpy(results[k], room->small + at[k], cr_axis_bytes(answers, k));
    return status;
}

/* ---- Along an axis ---- */

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
        failure = cudaMemcpyAsync(results[k], out[k], cr_axis_bytes(axis, k), cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    return cr_caller_error((int)failure, "axis", error);
}

cr_status cr_caller_need_answers(cr_room *room, uint64_t bytes, const cr_visit *visit, cr_error *error) {
    const uint64_t before = room->answer_bytes;
    const cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    if (status != CR_OK || room->answer_bytes == before) return status;
    return cr_caller_error((int)cudaMemsetAsync(room->answers, 0, room->answer_bytes, visit->stream), "answers", error);
}

static cr_status run_axis(cr_room *room, const cr_visit *visit, const cr_gpu_axis *axis, void *const *results,
                          cr_error *error) {
    uint64_t at[CR_GPU_AXIS_OPS], failed = 0;
    const void *ignored[CR_GPU_AXIS_OPS];
    const uint64_t bytes = cr_axis_lay_out(axis, at);
    cr_status status = cr_caller_need_answers(room, bytes, visit, error);
    if (status == CR_OK) status = cr_caller_need_scratch(room, axis, visit, error);
    if (status == CR_OK) status = put(room, visit, axis, results, at, bytes, error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status != CR_OK) return status;
    for (uint32_t k = 0; k < axis->op_count && bytes <= CR_ROOM_SMALL; k++)
        memcpy(results[k], room->small + at[k], cr_axis_bytes(axis, k));
    const cr_axis_room view = {.host = room->small, .asked = *axis, .may_fail = cr_axis_may_fail(axis)};
    return cr_axis_answers(&view, ignored, &failed, error);
}

cr_status cr_caller_axis(const cr_gpu_axis *axis, void *stream, void *const *results, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_gpu_axis own = *axis;
    own.to = NULL;
    cr_status status = cr_caller_check_axis(&own, error);
    if (status != CR_OK || axis->shape.outer * axis->shape.inner == 0) return status;
    status = cr_caller_enter(&visit, axis->data, stream, error);
    if (status != CR_OK) return status;
    status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        pthread_mutex_lock(&room->mutex);
        status = run_axis(room, &visit, &own, results, error);
        if (status != CR_OK && status != CR_OUT_OF_RANGE && cr_room_settle(room, visit.stream))
            cr_room_drop_scratch(room, visit.stream);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    return status;
}
