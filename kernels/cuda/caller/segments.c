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

/* What is asked, and whether the word of status has something of other ops already. */
typedef struct asked {
    cr_gpu_segments segments;
    void *const *results; /* NULL: answers go to device memory */
    void *state;
    bool told;
    bool here; /* offsets lie where the kernels read them */
} asked;

static cr_status put(const asked *a, const cr_visit *visit, uint8_t *scratch, void *const *out,
                     unsigned long long *wrong, cr_error *error) {
    const cr_gpu_segments *s = &a->segments;
    cudaError_t failure = a->told ? cudaSuccess : cudaMemsetAsync(wrong, 0, sizeof *wrong, visit->stream);
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

static cr_status run(cr_room *room, const cr_visit *visit, asked *a, cr_error *error) {
    cr_gpu_segments *s = &a->segments;
    uint64_t at[CR_GPU_AXIS_OPS];
    void *out[CR_GPU_AXIS_OPS];
    unsigned long long wrong = 0;
    const cr_gpu_axis answers = cr_caller_answers_of(&s->axis, s->offsets.count);
    const uint64_t bytes = cr_axis_lay_out(&answers, at);
    cr_status status = a->here ? CR_OK : cr_caller_bring_offsets(room, visit, &s->offsets, error);
    if (status == CR_OK) status = cr_caller_need_answers(room, bytes, visit, error);
    if (status == CR_OK)
        status = cr_caller_need_bytes(room, cr_segments_scratch(s, visit->multiprocessors), visit, error);
    for (uint32_t k = 0; k < s->axis.op_count && status == CR_OK; k++) out[k] = room->answers + at[k];
    if (status == CR_OK) status = put(a, visit, room->scratch, out, (unsigned long long *)(void *)room->answers, error);
    if (status == CR_OK) status = cr_caller_bring(room, visit, &answers, at, a->results, &wrong, error);
    if (status != CR_OK || wrong == 0) return status;
    return cr_caller_lacks(wrong, error) ? error->code
                                         : cr_caller_say_wrong(&s->offsets, s->axis.shape.n, visit, error);
}

/* ---- To device memory ---- */

/* Where nobody asks, what is wrong is told to the head's padding, which nobody reads. */
static unsigned long long *place_of(void *status, uint8_t *scratch) {
    return status != NULL ? status : (void *)&((cr_axis_head *)(void *)scratch)->pad[1];
}

static cr_status put_in_graph(const asked *a, const cr_visit *visit, cr_error *error) {
    const cr_gpu_segments *s = &a->segments;
    void *scratch = NULL;
    const cr_status made =
        cr_caller_own(visit, cr_segments_scratch(s, visit->multiprocessors), sizeof(cr_axis_head), &scratch, error);
    return made != CR_OK ? made : put(a, visit, scratch, s->axis.to, place_of(a->state, scratch), error);
}

static cr_status put_in_room(cr_room *room, const cr_visit *visit, asked *a, cr_error *error) {
    cr_gpu_segments *s = &a->segments;
    cr_status status =
        a->here ? CR_OK : cr_offsets_check(&s->offsets, s->axis.shape.n, error); /* nobody waits to be told */
    if (status == CR_OK && !a->here) status = cr_caller_bring_offsets(room, visit, &s->offsets, error);
    if (status == CR_OK)
        status = cr_caller_need_bytes(room, cr_segments_scratch(s, visit->multiprocessors), visit, error);
    if (status == CR_OK) status = put(a, visit, room->scratch, s->axis.to, place_of(a->state, room->scratch), error);
    return status == CR_OK ? cr_room_mark(room, visit, error) : status;
}

static cr_status by_offsets(asked *a, void *stream, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_gpu_segments *own = &a->segments;
    cr_status status = cr_caller_enter(&visit, own->axis.shape.n != 0 ? own->axis.data : NULL, stream, error);
    if (status != CR_OK) return status;
    if (a->results != NULL) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_caller_find_offsets(&own->offsets, &visit, &a->here, error);
    if (status == CR_OK && a->results == NULL) status = cr_caller_check_to(&own->axis, &visit, error);
    if (status == CR_OK && visit.captured) {
        status = put_in_graph(a, &visit, error);
    } else if (status == CR_OK) {
        status = cr_room_take(&visit, &room, error);
        if (status == CR_OK) {
            pthread_mutex_lock(&room->mutex);
            status = a->results != NULL ? run(room, &visit, a, error) : put_in_room(room, &visit, a, error);
            if (cr_caller_is_broken(status) && cr_room_settle(room, visit.stream))
                cr_room_drop_scratch(room, visit.stream);
            pthread_mutex_unlock(&room->mutex);
            cr_room_give(room);
        }
    }
    cr_caller_leave(&visit);
    return status;
}

/* Ops that kernels by offsets answer, and others. */
typedef struct half {
    cr_op ops[CR_GPU_AXIS_OPS];
    void *to[CR_GPU_AXIS_OPS], *results[CR_GPU_AXIS_OPS];
    uint32_t count;
} half;

static void part(const cr_gpu_segments *s, void *const *results, half *by_keys, half *others) {
    by_keys->count = others->count = 0;
    for (uint32_t k = 0; k < s->axis.op_count; k++) {
        const bool takes =
            s->mask.kind == CR_MASK_NONE && cr_segments_takes(s->axis.ops[k], s->axis.dtype, &s->axis.finish);
        half *to = takes ? others : by_keys;
        to->ops[to->count] = s->axis.ops[k];
        to->to[to->count] = s->axis.to != NULL ? s->axis.to[k] : NULL;
        to->results[to->count++] = results != NULL ? results[k] : NULL;
    }
}

static cr_gpu_segments segments_of(const cr_gpu_segments *s, const half *h) {
    cr_gpu_segments own = *s;
    own.axis.ops = h->ops;
    own.axis.op_count = h->count;
    own.axis.to = s->axis.to != NULL ? h->to : NULL;
    return own;
}

cr_status cr_caller_segments(const cr_gpu_segments *segments, void *stream, void *const *results, void *state,
                             cr_error *error) {
    half keyed, others;
    cr_status status = CR_OK;
    if (segments->offsets.count > UINT32_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: more than 2^32 answers at once");
    if (segments->offsets.count == 0) return CR_OK;
    part(segments, results, &keyed, &others);
    if (keyed.count != 0) {
        const cr_gpu_segments own = segments_of(segments, &keyed);
        status = by_key(&own, stream, results != NULL ? keyed.results : NULL, state, error);
    }
    if (status != CR_OK || others.count == 0) return status;
    asked a = {.segments = segments_of(segments, &others),
               .results = results != NULL ? others.results : NULL,
               .state = state,
               .told = keyed.count != 0 && results == NULL && state != NULL};
    return by_offsets(&a, stream, error);
}
