/* keys: answers by key, by offsets and under a mask along an axis, to host memory or device memory; and partials by key. Keys and masks lie in
 * memory of the array's device; offsets lie there, or are copied there.
 *
 * A key outside, or a wrong offset, is found by the kernels. Who waits for the answers is told the first; other answers have a word of
 * status for it.
 * Thread: any. Owner: the room, or a graph. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/keys/keys.h"
#include "kernels/cuda/swaths/swaths.h"

enum { KEPT_LOG2 = 28 }; /* of the bytes of states that a stream keeps for its next call */

static bool by_offsets(const cr_gpu_keys *k) { return k->offsets.dtype != CR_DTYPE_NONE; }

/* here: offsets lie where the kernels read them. */
static cr_status check_beside(const cr_gpu_keys *k, const cr_visit *visit, bool *here, cr_error *error) {
    const cr_keys *keys = &k->keys;
    const bool some = keys->count != 0 && keys->dtype != CR_DTYPE_NONE;
    cr_status status = CR_OK;
    *here = true;
    if (by_offsets(k)) status = cr_caller_find_offsets(&k->offsets, visit, here, error);
    if (some) status = cr_caller_check_beside(keys->data, "keys", visit, error);
    if (status == CR_OK && some && (uintptr_t)keys->data % cr_dtype_size(keys->dtype) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: %p is no multiple of %zu", (const void *)keys->data,
                       cr_dtype_size(keys->dtype));
    if (status == CR_OK && k->mask.kind != CR_MASK_NONE && k->axis.shape.n != 0)
        status = cr_caller_check_beside(k->mask.data, "mask", visit, error);
    return status;
}

static cr_status put(const cr_gpu_keys *k, const cr_visit *visit, uint8_t *state, void *const *out,
                     unsigned long long *wrong, cr_error *error) {
    return cr_caller_error(cr_ways_enqueue(k, visit->multiprocessors, out, state, wrong, visit->stream), "keys", error);
}

bool cr_caller_is_broken(cr_status status) {
    return status != CR_OK && status != CR_INVALID_ARGUMENT && status != CR_OUT_OF_RANGE;
}

/* The state of all groups, so many bytes, and behind it a word for the status of nobody who asks. */
static cr_status need_state(cr_room *room, uint64_t bytes, const cr_visit *visit, cr_error *error) {
    return cr_room_grow(&room->groups, &room->group_bytes, bytes + sizeof(unsigned long long), visit->stream, error);
}

/* A large state goes when the stream has come past it. */
static void drop_state(cr_room *room, const cr_visit *visit) {
    if (room->groups == NULL || room->group_bytes <= (uint64_t)1 << KEPT_LOG2) return;
    if (cudaFreeAsync(room->groups, visit->stream) != cudaSuccess) (void)cudaGetLastError();
    room->groups = NULL;
    room->group_bytes = 0;
}

/* The word that is told: the caller's, or what lies behind the state. */
static unsigned long long *word_of(void *status, uint8_t *state, uint64_t bytes) {
    return status != NULL ? status : (unsigned long long *)(void *)(state + bytes);
}

/* Key number `at` is outside. */
static cr_status say_outside(const cr_gpu_keys *k, const cr_visit *visit, uint64_t at, cr_error *error) {
    const size_t size = cr_dtype_size(k->keys.dtype);
    uint64_t copy = 0;
    cr_keys one = k->keys;
    cudaError_t failure = cudaMemcpyAsync(&copy, one.data + at * size, size, cudaMemcpyDefault, visit->stream);
    if (failure == cudaSuccess) failure = cudaStreamSynchronize(visit->stream);
    const cr_status status = cr_caller_error((int)failure, "keys", error);
    one.data = (const uint8_t *)&copy;
    return status == CR_OK ? cr_keys_outside(&k->keys, at, cr_keys_at(&one, 0), error) : status;
}

static cr_status run(cr_room *room, const cr_visit *visit, const cr_gpu_keys *k, void *const *results,
                     cr_error *error) {
    uint64_t at[CR_GPU_AXIS_OPS];
    void *out[CR_GPU_AXIS_OPS];
    unsigned long long wrong = 0;
    const cr_gpu_axis answers = cr_caller_answers_of(&k->axis, cr_keys_answers(&k->keys));
    const uint64_t bytes = cr_axis_lay_out(&answers, at);
    cr_status status = cr_caller_need_answers(room, bytes, visit, error);
    if (status == CR_OK) status = need_state(room, cr_ways_state(k, visit->multiprocessors), visit, error);
    if (status != CR_OK) return status;
    for (uint32_t i = 0; i < k->axis.op_count; i++) out[i] = room->answers + at[i];
    status = put(k, visit, room->groups, out, (unsigned long long *)(void *)room->answers, error);
    if (status == CR_OK) status = cr_caller_bring(room, visit, &answers, at, results, &wrong, error);
    if (status != CR_OK || wrong == 0) return status;
    if (cr_caller_lacks(wrong, error)) return error->code;
    return by_offsets(k) ? cr_caller_say_wrong(&k->offsets, k->axis.shape.n, visit, error)
                         : say_outside(k, visit, wrong - 1, error);
}

static cr_status put_in_graph(const cr_gpu_keys *k, const cr_visit *visit, void *status, cr_error *error) {
    const uint64_t word = sizeof(unsigned long long), bytes = cr_ways_state(k, visit->multiprocessors);
    void *state = NULL;
    const cr_status made = cr_caller_own(visit, bytes + word, word, &state, error);
    return made != CR_OK ? made : put(k, visit, state, k->axis.to, word_of(status, state, bytes), error);
}

static cr_status put_in_room(cr_room *room, const cr_visit *visit, const cr_gpu_keys *k, void *state, cr_error *error) {
    const uint64_t bytes = cr_ways_state(k, visit->multiprocessors);
    cr_status status = need_state(room, bytes, visit, error);
    if (status == CR_OK) status = put(k, visit, room->groups, k->axis.to, word_of(state, room->groups, bytes), error);
    return status == CR_OK ? cr_room_mark(room, visit, error) : status;
}

/* Offsets of host memory are brought; of a call that nobody waits for they are looked at first. */
static cr_status bring(cr_room *room, const cr_visit *visit, cr_gpu_keys *k, bool waits, cr_error *error) {
    const cr_status status = waits ? CR_OK : cr_offsets_check(&k->offsets, k->axis.shape.n, error);
    return status == CR_OK ? cr_caller_bring_offsets(room, visit, &k->offsets, error) : status;
}

cr_status cr_caller_keys(const cr_gpu_keys *keys, void *stream, void *const *results, void *state, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_gpu_keys own = *keys;
    bool here;
    const void *data = keys->axis.shape.n != 0 ? keys->axis.data : NULL;
    cr_status status = cr_ways_check(keys, error);
    if (status == CR_OK) status = cr_caller_enter(&visit, data, stream, error);
    if (status != CR_OK) return status;
    if (results != NULL) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = check_beside(keys, &visit, &here, error);
    if (status == CR_OK && results == NULL) status = cr_caller_check_to(&keys->axis, &visit, error);
    if (status == CR_OK && visit.captured) {
        status = put_in_graph(keys, &visit, state, error);
    } else if (status == CR_OK) {
        status = cr_room_take(&visit, &room, error);
        if (status == CR_OK) {
            pthread_mutex_lock(&room->mutex);
            if (!here) status = bring(room, &visit, &own, results != NULL, error);
            if (status == CR_OK)
                status = results != NULL ? run(room, &visit, &own, results, error)
                                         : put_in_room(room, &visit, &own, state, error);
            drop_state(room, &visit);
            if (cr_caller_is_broken(status)) cr_room_settle(room, visit.stream);
            pthread_mutex_unlock(&room->mutex);
            cr_room_give(room);
        }
    }
    cr_caller_leave(&visit);
    return status;
}

/* ---- Partials ---- */

/* The launches of a partial, and their states in host memory. */
typedef struct states {
    cr_keys_part parts[CR_KEYS_PARTS];
    uint32_t count;
    uint8_t *memory;
} states;

static uint64_t bytes_of(const states *s) { return s->parts[s->count - 1].place + s->parts[s->count - 1].bytes; }

/* One after the other, through the same device memory; small ones through pinned memory, so that no copy waits. */
static cr_status copy_states(cr_room *room, const cr_visit *visit, const cr_gpu_keys *k, const states *s,
                             cr_error *error) {
    const bool small = bytes_of(s) <= CR_ROOM_SMALL;
    uint8_t *to = small ? room->small : s->memory;
    uint64_t most = 0;
    cudaError_t failure = cudaSuccess;
    for (uint32_t i = 0; i < s->count; i++) most = s->parts[i].bytes > most ? s->parts[i].bytes : most;
    cr_status status = cr_room_grow(&room->groups, &room->group_bytes, most, visit->stream, error);
    if (status != CR_OK) return status;
    for (uint32_t i = 0; i < s->count && failure == cudaSuccess; i++) {
        const cr_keys_part *part = &s->parts[i];
        failure = (cudaError_t)cr_keys_gpu_enqueue_part(k, part, visit->multiprocessors, room->groups, visit->stream);
        if (failure == cudaSuccess)
            failure =
                cudaMemcpyAsync(to + part->place, room->groups, part->bytes, cudaMemcpyDeviceToHost, visit->stream);
    }
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    status = cr_caller_error((int)failure, "keys", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status != CR_OK) return status;
    if (small) memcpy(s->memory, room->small, bytes_of(s));
    cr_keys_head head;
    cr_keys_part_planes(s->memory, &head);
    return head.inside != 0 ? say_outside(k, visit, ~(uint64_t)head.inside, error) : CR_OK;
}

static cr_status report_cells(const cr_gpu_keys *k, const states *s, const cr_caller_cells *told, cr_error *error) {
    cr_status status = CR_OK;
    cr_partial *p = malloc(sizeof *p);
    if (p == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    for (uint64_t cell = 0; cell < cr_keys_answers(&k->keys) && status == CR_OK; cell++) {
        cr_keys_part_fill(k, s->parts, s->count, s->memory, cell, p);
        if (p->n != 0) status = told->found(told->user, cell, p, error);
    }
    free(p);
    return status;
}

cr_status cr_caller_keys_partial(const cr_gpu_keys *keys, void *stream, const cr_caller_cells *told, cr_error *error) {
    states s;
    cr_visit visit;
    cr_room *room = NULL;
    bool here;
    cr_status status = cr_keys_gpu_parts(keys, s.parts, &s.count, error);
    if (status == CR_OK)
        status = cr_caller_enter(&visit, keys->axis.shape.n != 0 ? keys->axis.data : NULL, stream, error);
    if (status != CR_OK) return status;
    s.memory = malloc(bytes_of(&s));
    if (s.memory == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the states of all groups");
    if (status == CR_OK) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = check_beside(keys, &visit, &here, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        pthread_mutex_lock(&room->mutex);
        status = copy_states(room, &visit, keys, &s, error);
        drop_state(room, &visit);
        if (cr_caller_is_broken(status)) cr_room_settle(room, visit.stream);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    if (status == CR_OK) status = report_cells(keys, &s, told, error);
    free(s.memory);
    return status;
}
