/* list: a fold of many arrays by one launch for each family: the descriptors' way to the device.
 *
 * Descriptors of few arrays go with the launch. Others are written to pinned memory and copied in the stream's order. The device's copy
 * is read by this call's kernels and written by the next call's copy, which come one after the other. The pinned memory has two parts in
 * turn: one is written again when the call before the last is known to be done.
 * Thread: whoever has locked the room. Owner: the room. */
#include <string.h>

#include "kernels/cuda/caller/internal.h"

enum { LEAST_ARRAYS = 512 };

bool cr_caller_lists(const cr_caller_fold *fold) {
    if (fold->count < 2) return false;
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1)
        if (fold->families & family && cr_list_launcher(fold->dtype, family) == NULL) return false;
    return true;
}

/* The copies from a part are done. */
static cr_status wait_for(const cr_room *room, uint32_t part, cr_error *error) {
    const cudaEvent_t after = room->list.after[part];
    return after != NULL ? cr_room_wait(room, after, error) : CR_OK;
}

/* Room for so many descriptors, on both sides. */
static cr_status make_room(cr_room *room, size_t count, cudaStream_t stream, cr_error *error) {
    cr_list_memory *list = &room->list;
    void *device = NULL, *host = NULL;
    size_t bytes = (count > LEAST_ARRAYS ? count * 2 : LEAST_ARRAYS) * sizeof(cr_list_array);
    if (count * sizeof(cr_list_array) <= list->bytes) return wait_for(room, list->part, error);
    cr_status status = CR_OK;
    for (uint32_t i = 0; i < CR_LIST_PARTS && status == CR_OK; i++) status = wait_for(room, i, error);
    if (status != CR_OK) return status;
    cudaError_t failure = cudaMallocAsync(&device, bytes, stream);
    if (failure == cudaSuccess) failure = cr_caller_pinned(&host, CR_LIST_PARTS * bytes);
    if (failure == cudaSuccess && list->device) failure = cudaFreeAsync(list->device, stream);
    if (failure != cudaSuccess) {
        if (device) cudaFreeAsync(device, stream);
        if (host) cudaFreeHost(host);
        return cr_caller_error((int)failure, "list", error);
    }
    if (list->host != NULL) {
        memcpy(list->host, &list->outgrown, sizeof list->outgrown);
        list->outgrown = list->host;
    }
    list->device = device;
    list->host = host;
    list->bytes = bytes;
    memset(list->after, 0, sizeof list->after);
    return CR_OK;
}

/* Writes the descriptors; the longest array is what args->fold is of. Gives the number of all elements; beyond CR_FOLD_MAX some number
 * beyond it. */
static uint64_t describe(const cr_caller_fold *fold, uint32_t size, cr_list_array *to, cr_list_args *args,
                         size_t *longest) {
    uint64_t row = 0, most = 0, all = 0;
    uintptr_t edges = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < fold->count && all <= CR_FOLD_MAX; i++) {
        const cr_caller_array *array = &fold->arrays[i];
        if (array->n == 0) continue;
        if (array->n > most) most = array->n, *longest = i;
        if (array->n > CR_FOLD_MAX) return array->n;
        edges |= (uintptr_t)array->data | array->n * size;
        to[count++] = (cr_list_array){array->data, array->n, (uint32_t)row};
        row += cr_list_rows(array->n, size);
        all += array->n;
    }
    to[count] = (cr_list_array){NULL, 0, (uint32_t)row};
    args->count = count;
    args->rows = (uint32_t)row;
    args->edges = edges % CR_GPU_VECTOR != 0;
    return all;
}

bool cr_caller_list_is_told(size_t count) { return count <= CR_LIST_TOLD; }

bool cr_caller_list_write(const cr_caller_fold *fold, void *host, const cr_visit *visit, cr_gpu_state *state,
                          cr_fold_slot *to, cr_list_args *args, uint64_t *n) {
    size_t longest = 0;
    *n = describe(fold, (uint32_t)cr_dtype_size(fold->dtype), host, args, &longest);
    if (*n > CR_FOLD_MAX) return false;
    cr_fold_prepare(&args->fold, fold->dtype, fold->arrays[longest].data, fold->arrays[longest].n, fold->first,
                    visit->multiprocessors, state, to);
    return true;
}

cr_status cr_caller_list_launch(cr_list_args *args, const cr_caller_fold *fold, cudaStream_t stream, cr_error *error) {
    int failure = cudaSuccess;
    args->fold.follows = false;
    for (uint32_t family = 1; family < CR_FAM_ALL && failure == cudaSuccess; family <<= 1) {
        if (!(fold->families & family)) continue;
        failure = cr_list_launcher(fold->dtype, family)(&args->fold, stream);
        args->fold.follows = true;
    }
    return cr_caller_error(failure, "list", error);
}

cr_status cr_caller_list_put(cr_room *room, const cr_visit *visit, const cr_caller_fold *fold, cr_fold_slot *to,
                             uint64_t *n, cr_error *error) {
    const bool told = cr_caller_list_is_told(fold->count);
    cr_list_args args = {.arrays = NULL};
    cr_status status = CR_OK;
    *n = 0;
    if (fold->count >= CR_LIST_ROWS / 2) /* with CR_FOLD_MAX elements, no more rows than there may be */
        return cr_fail(error, CR_INVALID_ARGUMENT, "arrays: more than 2^30");
    if (!told) status = make_room(room, fold->count + 1, visit->stream, error);
    if (status != CR_OK) return status;
    void *host = told ? (void *)args.told : room->list.host + room->list.part * room->list.bytes;
    if (!cr_caller_list_write(fold, host, visit, room->state, to, &args, n))
        return cr_fail(error, CR_INVALID_ARGUMENT, "arrays: more than %llu elements in all",
                       (unsigned long long)CR_FOLD_MAX);
    if (args.count == 0) return CR_OK;
    if (!told) {
        args.arrays = (const cr_list_array *)(const void *)room->list.device;
        const cudaError_t failure = cudaMemcpyAsync(room->list.device, host, (args.count + 1) * sizeof(cr_list_array),
                                                    cudaMemcpyHostToDevice, visit->stream);
        if (failure != cudaSuccess) return cr_caller_error((int)failure, "list", error);
    }
    return cr_caller_list_launch(&args, fold, visit->stream, error);
}

cr_status cr_caller_list_mark(cr_room *room, cudaEvent_t event, const cr_visit *visit, cr_error *error) {
    cr_list_memory *list = &room->list;
    if (event == NULL) event = list->own[list->part];
    list->after[list->part] = event;
    list->part = (list->part + 1) % CR_LIST_PARTS;
    return cr_caller_error((int)cudaEventRecord(event, visit->stream), "event", error);
}

void cr_caller_list_over(cr_room *room, cudaEvent_t event) {
    for (uint32_t i = 0; i < CR_LIST_PARTS; i++)
        if (room->list.after[i] == event) room->list.after[i] = NULL;
}

cr_status cr_caller_fold_list(cr_room *room, const cr_visit *visit, const cr_caller_fold *fold, uint32_t slot,
                              uint64_t *n, bool *telling, cr_error *error) {
    cr_partial_init(&room->slots[slot].partial, fold->dtype, fold->families);
    const bool awaited = cr_fold_await_walk(&room->slots[slot], fold->dtype, fold->families);
    const cr_status status = cr_caller_list_put(room, visit, fold, &room->slots[slot], n, error);
    *telling = awaited && *n != 0; /* else nothing was launched */
    if (status != CR_OK) return status;
    if (!cr_caller_list_is_told(fold->count)) return cr_caller_list_mark(room, room->events[slot], visit, error);
    return cr_caller_error((int)cudaEventRecord(room->events[slot], visit->stream), "event", error);
}
