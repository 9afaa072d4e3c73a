/* segments: answers of segments by offsets, to host memory or device memory. Offsets lie in device memory, or are copied there.
 *
 * Wrong offsets are found by the kernels. Who waits for the answers is told the first that is wrong: the offsets are then copied and
 * looked at by the CPU, because that is rare.
 * Thread: any. Owner: the room, or a graph. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/offsets/offsets.h"

enum { ALIGN = 256 };

static uint64_t bytes_of_offsets(const cr_offsets *offsets) {
    return (offsets->count + 1) * cr_dtype_size(offsets->dtype);
}

/* Whether kernels by offsets answer; otherwise those by key do. */
static bool takes(const cr_gpu_segments *s) {
    for (uint32_t k = 0; k < s->axis.op_count; k++)
        if (!cr_segments_takes(s->axis.ops[k], s->axis.dtype, &s->axis.finish)) return false;
    return s->mask.kind == CR_MASK_NONE;
}

static cr_status by_key(const cr_gpu_segments *s, void *stream, void *const *results, void *state, cr_error *error) {
    const cr_gpu_keys keys = {.axis = s->axis,
                              .keys = cr_keys_of_offsets(&s->offsets, s->axis.shape.n),
                              .offsets = s->offsets,
                              .mask = s->mask};
    return cr_caller_keys(&keys, stream, results, state, error);
}

cr_status cr_caller_find_offsets(const cr_offsets *offsets, const cr_visit *visit, bool *here, cr_error *error) {
    enum cudaMemoryType type;
    const cr_status status = cr_caller_find(offsets->data, "offsets", visit, &type, error);
    if (status != CR_OK) return status;
    *here = type == cudaMemoryTypeDevice || type == cudaMemoryTypeManaged;
    if (*here && (uintptr_t)offsets->data % cr_dtype_size(offsets->dtype) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: %p is no multiple of %zu", (const void *)offsets->data,
                       cr_dtype_size(offsets->dtype));
    if (!*here && visit->captured)
        return cr_fail(error, CR_FAILED_PRECONDITION,
                       "offsets: the stream is captured, and a graph would read host memory later: put them in device "
                       "memory");
    return CR_OK;
}

cr_status cr_caller_bring_offsets(cr_room *room, const cr_visit *visit, cr_offsets *offsets, cr_error *error) {
    const uint64_t bytes = bytes_of_offsets(offsets);
    cr_status status = cr_room_grow(&room->offsets, &room->offset_bytes, bytes, visit->stream, error);
    if (status != CR_OK) return status;
    const cudaError_t failure =
        cudaMemcpyAsync(room->offsets, offsets->data, bytes, cudaMemcpyHostToDevice, visit->stream);
    offsets->data = room->offsets;
    return cr_caller_error((int)failure, "offsets", error);
}

static cr_status put(const cr_gpu_segments *s, const cr_visit *visit, uint8_t *scratch, void *const *out,
                     unsigned long long *wrong, cr_error *error) {
    cudaError_t failure = cudaMemsetAsync(wrong, 0, sizeof *wrong, visit->stream);
    if (failure == cudaSuccess)
        failure = (cudaError_t)cr_segments_enqueue(s, visit->multiprocessors, out, scratch, wrong, visit->stream);
    return cr_caller_error((int)failure, "offsets", error);
}

/* ---- To host memory ---- */

cr_status cr_caller_say_wrong(const cr_offsets *offsets, uint64_t elements, const cr_visit *visit, cr_error *error) {
    const uint64_t bytes = bytes_of_offsets(offsets);
    cr_offsets copy = *offsets;
    cr_status status = CR_OK;
    void *own = malloc(bytes);
    if (own == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "offsets: no memory to look for the wrong one");
    cudaError_t failure = cudaMemcpyAsync(own, copy.data, bytes, cudaMemcpyDefault, visit->stream);
    if (failure == cudaSuccess) failure = cudaStreamSynchronize(visit->stream);
    copy.data = own;
    status = cr_caller_error((int)failure, "offsets", error);
    if (status == CR_OK) status = cr_offsets_check(&copy, elements, error);
    if (status == CR_OK) status = cr_fail(error, CR_INVALID_ARGUMENT, "offsets: they changed while they were read");
    free(own);
    return status;
}

static cr_status run(cr_room *room, const cr_visit *visit, cr_gpu_segments *s, bool here, void *const *results,
                     cr_error *error) {
    uint64_t at[CR_GPU_AXIS_OPS];
    void *out[CR_GPU_AXIS_OPS];
    unsigned long long wrong = 0;
    const cr_gpu_axis answers = cr_caller_answers_of(&s->axis, s->offsets.count);
    const uint64_t bytes = cr_axis_lay_out(&answers, at);
    cr_status status = here ? CR_OK : cr_caller_bring_offsets(room, visit, &s->offsets, error);
    if (status == CR_OK) status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    if (status == CR_OK)
        status = cr_caller_need_bytes(room, cr_segments_scratch(s, visit->multiprocessors), visit, error);
    for (uint32_t k = 0; k < s->axis.op_count && status == CR_OK; k++) out[k] = room->answers + at[k];
    if (status == CR_OK) status = put(s, visit, room->scratch, out, (unsigned long long *)(void *)room->answers, error);
    if (status == CR_OK) status = cr_caller_bring(room, visit, &answers, at, results, &wrong, error);
    if (status != CR_OK || wrong == 0) return status;
    return cr_caller_lacks(wrong, error) ? error->code
                                         : cr_caller_say_wrong(&s->offsets, s->axis.shape.n, visit, error);
}

/* ---- To device memory ---- */

/* Where nobody asks, what is wrong is told to the head's padding, which nobody reads. */
static unsigned long long *place_of(void *status, uint8_t *scratch) {
    return status != NULL ? status : (void *)&((cr_axis_head *)(void *)scratch)->pad[1];
}

static cr_status put_in_graph(const cr_gpu_segments *s, const cr_visit *visit, void *status, cr_error *error) {
    void *scratch = NULL;
    const cr_status made =
        cr_caller_own(visit, cr_segments_scratch(s, visit->multiprocessors), sizeof(cr_axis_head), &scratch, error);
    return made != CR_OK ? made : put(s, visit, scratch, s->axis.to, place_of(status, scratch), error);
}

static cr_status put_in_room(cr_room *room, const cr_visit *visit, cr_gpu_segments *s, bool here, void *state,
                             cr_error *error) {
    cr_status status =
        here ? CR_OK : cr_offsets_check(&s->offsets, s->axis.shape.n, error); /* nobody waits to be told */
    if (status == CR_OK && !here) status = cr_caller_bring_offsets(room, visit, &s->offsets, error);
    if (status == CR_OK)
        status = cr_caller_need_bytes(room, cr_segments_scratch(s, visit->multiprocessors), visit, error);
    if (status == CR_OK) status = put(s, visit, room->scratch, s->axis.to, place_of(state, room->scratch), error);
    return status == CR_OK ? cr_room_mark(room, visit, error) : status;
}

cr_status cr_caller_segments(const cr_gpu_segments *segments, void *stream, void *const *results, void *state,
                             cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_gpu_segments own = *segments;
    bool here = false;
    if (own.offsets.count > UINT32_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: more than 2^32 answers at once");
    if (own.offsets.count == 0) return CR_OK;
    if (!takes(segments)) return by_key(segments, stream, results, state, error);
    cr_status status = cr_caller_enter(&visit, own.axis.shape.n != 0 ? own.axis.data : NULL, stream, error);
    if (status != CR_OK) return status;
    if (results != NULL) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_caller_find_offsets(&own.offsets, &visit, &here, error);
    if (status == CR_OK && results == NULL) status = cr_caller_check_to(&own.axis, &visit, error);
    if (status == CR_OK && visit.captured) {
        status = put_in_graph(&own, &visit, state, error);
    } else if (status == CR_OK) {
        status = cr_room_take(&visit, &room, error);
        if (status == CR_OK) {
            pthread_mutex_lock(&room->mutex);
            status = results != NULL ? run(room, &visit, &own, here, results, error)
                                     : put_in_room(room, &visit, &own, here, state, error);
            if (cr_caller_is_broken(status) && cr_room_settle(room, visit.stream))
                cr_room_drop_scratch(room, visit.stream);
            pthread_mutex_unlock(&room->mutex);
            cr_room_give(room);
        }
    }
    cr_caller_leave(&visit);
    return status;
}
