/* call: folds whose partials come to host memory.
 *
 *   start: folds and an event in the stream ──▶ done: the result has told itself, or the event fired ──▶ finish: merged, slot freed
 *
 * Several arrays go by one launch where they can (list.c). Else each is a fold; more than SLOTS_MOST are many folds (each.c), small ones
 * hundreds to a launch, for which start waits.
 * Thread: any. Owner: the call owns its slots until it is finished; whoever started it owns the call. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/caller/internal.h"

enum { SLOTS_MOST = 16, LOOKS = 64 }; /* LOOKS: at the result, before the driver is asked */

struct cr_caller_call {
    cr_room *room; /* NULL: all was waited for */
    cr_dtype dtype;
    uint32_t families, wants, looks;
    uint32_t slots[SLOTS_MOST], count;
    uint64_t n[SLOTS_MOST];
    bool telling; /* the only slot says itself that its result is there */
    bool merged;  /* sum has the folds that were waited for */
    bool masked;  /* how many elements count comes with the result */
    cr_partial sum;
};

cr_status cr_caller_launch(cr_fold_args *args, const cr_gpu_fold *fold, cudaStream_t stream, cr_error *error) {
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    uint32_t count = 0;
    int failure = cudaSuccess;
    if (fold->n > CR_FOLD_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array: %llu elements; a GPU takes %llu in one",
                       (unsigned long long)fold->n, (unsigned long long)CR_FOLD_MAX);
    cr_status status = (fold->families & CR_FAM_PAIRS) != 0
                           ? cr_fold_paired_launchers(fold->dtype, fold->families, launchers, &count, error)
                       : args->mask.kind != CR_MASK_NONE
                           ? cr_fold_masked_launchers(fold->dtype, fold->families, launchers, &count, error)
                           : cr_fold_launchers(fold->dtype, fold->families, fold->wants, launchers, &count, error);
    if (status != CR_OK) return status;
    for (uint32_t i = 0; i < count && failure == cudaSuccess && fold->n != 0; i++) {
        failure = launchers[i](args, stream);
        args->follows = true; /* what comes before the first may write the array */
    }
    return cr_caller_error(failure, "fold", error);
}

_Static_assert((int)CR_ROOM_SLOTS <= (int)CR_GPU_COUNTERS, "a slot has a counter of its own");

cr_status cr_caller_fold_put(cr_room *room, const cr_visit *visit, const cr_gpu_fold *fold, cr_caller_beside beside,
                             uint32_t slot, bool follows, bool *telling, cr_error *error) {
    cr_fold_args args = {0};
    cr_fold_slot *to = &room->slots[slot];
    cr_fold_prepare(&args, fold->dtype, fold->data, fold->n, fold->index, visit->multiprocessors, room->state, to);
    cr_partial_init(&to->partial, fold->dtype, fold->families);
    if (fold->wants) cr_partial_want(&to->partial, fold->wants);
    args.follows = follows;
    args.apart = follows;
    args.next = &room->state->next[slot];
    args.mask = beside.mask;
    args.second = beside.second;
    *telling = fold->n != 0 && beside.mask.kind == CR_MASK_NONE && cr_fold_await(&args, fold->dtype, fold->families);
    return cr_caller_launch(&args, fold, visit->stream, error);
}

/* The results of the call's slots, which are done, into its sum. */
static void take(cr_caller_call *call) {
    cr_room *room = call->room;
    for (uint32_t i = 0; i < call->count; i++) {
        cr_fold_slot *slot = &room->slots[call->slots[i]];
        cr_fold_result(slot, call->dtype, call->families, call->masked ? slot->kept : call->n[i]);
        if (call->merged) {
            cr_partial_merge(&call->sum, &slot->partial);
        } else {
            call->sum = slot->partial;
            call->merged = true;
        }
    }
}

static void free_slots(cr_caller_call *call) {
    pthread_mutex_lock(&call->room->mutex);
    for (uint32_t i = 0; i < call->count; i++) {
        cr_room_free_slot(call->room, call->slots[i]);
        cr_caller_list_over(call->room, call->room->events[call->slots[i]]);
    }
    pthread_mutex_unlock(&call->room->mutex);
    call->count = 0;
}

/* All of the call's folds are done. */
static cr_status wait_for_slots(cr_caller_call *call, cr_error *error) {
    if (call->count == 0) return CR_OK;
    return cr_room_wait(call->room, call->room->events[call->slots[call->count - 1]], error);
}

/* A slot more for the call. */
static cr_status next_slot(cr_caller_call *call, uint64_t n, cr_error *error) {
    pthread_mutex_lock(&call->room->mutex);
    cr_status status = cr_room_slot(call->room, &call->slots[call->count], error);
    pthread_mutex_unlock(&call->room->mutex);
    if (status == CR_OK) call->n[call->count++] = n;
    return status;
}

static cr_status start_list(cr_caller_call *call, const cr_visit *visit, const cr_caller_fold *fold, cr_error *error) {
    cr_status status = next_slot(call, 0, error);
    if (status != CR_OK) return status;
    pthread_mutex_lock(&call->room->mutex);
    status = cr_caller_fold_list(call->room, visit, fold, call->slots[0], &call->n[0], &call->telling, error);
    pthread_mutex_unlock(&call->room->mutex);
    return status;
}

static cr_status start_each(cr_caller_call *call, const cr_visit *visit, const cr_caller_fold *fold, cr_error *error) {
    cr_status status = CR_OK;
    uint64_t index = fold->first;
    for (size_t i = 0; i < fold->count && status == CR_OK; i++) {
        const cr_gpu_fold one = {fold->dtype,       fold->families, fold->arrays[i].data,
                                 fold->arrays[i].n, index,          fold->wants};
        index += one.n;
        if (one.n == 0 && (i != 0 || fold->count != 1)) continue;
        status = next_slot(call, one.n, error);
        if (status != CR_OK) break;
        pthread_mutex_lock(&call->room->mutex);
        const uint32_t slot = call->slots[call->count - 1];
        const cr_caller_beside beside = {fold->mask, fold->second};
        status = cr_caller_fold_put(call->room, visit, &one, beside, slot, false, &call->telling, error);
        if (status == CR_OK)
            status = cr_caller_error((int)cudaEventRecord(call->room->events[slot], visit->stream), "event", error);
        pthread_mutex_unlock(&call->room->mutex);
        call->telling = call->telling && fold->count == 1;
    }
    return status;
}

cr_status cr_caller_find(const void *data, const char *what, const cr_visit *visit, enum cudaMemoryType *type,
                         cr_error *error) {
    struct cudaPointerAttributes found = {0};
    cr_status status = cr_caller_error((int)cudaPointerGetAttributes(&found, data), what, error);
    if (status == CR_OK && found.type == cudaMemoryTypeDevice && found.device != visit->device)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "%s: on GPU %d, and the array is on GPU %d: pass both on one GPU",
                         what, found.device, visit->device);
    *type = found.type;
    return status;
}

cr_status cr_caller_check_beside(const void *data, const char *what, const cr_visit *visit, cr_error *error) {
    enum cudaMemoryType type;
    const cr_status status = cr_caller_find(data, what, visit, &type, error);
    if (status == CR_OK && type == cudaMemoryTypeUnregistered)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %p is no memory that a GPU reads", what, data);
    return status;
}

cr_status cr_caller_check_to(const cr_gpu_axis *axis, const cr_visit *visit, cr_error *error) {
    cr_status status = CR_OK;
    enum cudaMemoryType ignored;
    if (cr_caller_is_only()) return CR_OK;
    for (uint32_t k = 0; k < axis->op_count && status == CR_OK; k++)
        status = cr_caller_find(axis->to[k], "out", visit, &ignored, error);
    return status;
}

static cr_status check_beside(const cr_caller_fold *fold, const cr_visit *visit, cr_error *error) {
    if (fold->mask.kind != CR_MASK_NONE && fold->arrays[0].n != 0)
        return cr_caller_check_beside(fold->mask.data, "mask", visit, error);
    if (fold->second != NULL && fold->arrays[0].n != 0)
        return cr_caller_check_beside(fold->second, "second", visit, error);
    return CR_OK;
}

/* Where parts lie. A product of floats goes by blocks of the whole, which a cut inside one would part. */
static cr_status check(const cr_caller_fold *fold, cr_error *error) {
    const uint64_t grain = cr_partial_grain(fold->dtype, fold->families);
    for (size_t i = 0; grain != 1 && i + 1 < fold->count; i++)
        if (fold->arrays[i].n % grain != 0)
            return cr_fail(
                error, CR_INVALID_ARGUMENT,
                "arrays[%zu]: %llu elements; of a product of floats in several arrays each but the last has a "
                "multiple of %llu",
                i, (unsigned long long)fold->arrays[i].n, (unsigned long long)grain);
    return CR_OK;
}

const void *cr_caller_data(const cr_caller_array *arrays, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (arrays[i].n != 0) return arrays[i].data;
    return NULL;
}

/* ---- More arrays than slots, of ops without a launch for all ---- */

static void merge_one(void *user, size_t number, const cr_partial *partial) {
    cr_caller_call *call = user;
    (void)number;
    if (call->merged)
        cr_partial_merge(&call->sum, partial);
    else
        call->sum = *partial;
    call->merged = true;
}

/* Answers on the host have another way, without which they go; those in device memory have this one alone. */
static bool by_list(const cr_caller_fold *fold) { return cr_fast_on(CR_FAST_GPU_LISTS) && cr_caller_lists(fold); }

static bool goes_by_many(const cr_caller_fold *fold) {
    return fold->count > SLOTS_MOST && fold->mask.kind == CR_MASK_NONE && !by_list(fold);
}

static cr_status start_many(const cr_caller_fold *fold, cr_caller_call **out, cr_error *error) {
    uint64_t index = fold->first;
    size_t count = 0;
    cr_status status = check(fold, error);
    if (status != CR_OK) return status;
    cr_caller_call *call = malloc(sizeof *call);
    cr_gpu_fold *folds = fold->count <= SIZE_MAX / sizeof *folds ? malloc(fold->count * sizeof *folds) : NULL;
    for (size_t i = 0; folds != NULL && i < fold->count; i++) {
        const uint64_t n = fold->arrays[i].n;
        if (n != 0)
            folds[count++] = (cr_gpu_fold){fold->dtype, fold->families, fold->arrays[i].data, n, index, fold->wants};
        index += n;
    }
    if (call == NULL || folds == NULL) {
        status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "call: no memory for it");
    } else {
        *call = (cr_caller_call){.dtype = fold->dtype, .families = fold->families, .wants = fold->wants};
        status = cr_caller_each(folds, count, fold->stream, &(cr_caller_told){merge_one, NULL, call}, error);
    }
    free(folds);
    if (status == CR_OK)
        *out = call;
    else
        free(call);
    return status;
}

cr_status cr_caller_start(const cr_caller_fold *fold, cr_caller_call **out, cr_error *error) {
    cr_visit visit;
    if (goes_by_many(fold)) return start_many(fold, out, error);
    cr_status status = cr_caller_enter(&visit, cr_caller_data(fold->arrays, fold->count), fold->stream, error);
    if (status != CR_OK) return status;
    cr_caller_call *call = malloc(sizeof *call);
    if (call == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "call: no memory for it");
    if (status == CR_OK) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = check(fold, error);
    if (status == CR_OK) status = check_beside(fold, &visit, error);
    if (status == CR_OK) {
        call->dtype = fold->dtype;
        call->families = fold->families;
        call->wants = fold->wants;
        call->count = call->looks = 0;
        call->telling = call->merged = false;
        call->masked = fold->mask.kind != CR_MASK_NONE && fold->arrays[0].n != 0;
        status = cr_room_take(&visit, &call->room, error);
    }
    if (status != CR_OK) {
        free(call);
        cr_caller_leave(&visit);
        return status;
    }
    status = by_list(fold) ? start_list(call, &visit, fold, error) : start_each(call, &visit, fold, error);
    *out = call;
    if (status != CR_OK && call->count != 0)
        cr_room_settle(call->room, visit.stream); /* what was put in the stream may still run */
    cr_caller_leave(&visit);
    if (status == CR_OK) return CR_OK;
    free_slots(call);
    cr_room_give(call->room);
    free(call);
    return status;
}

static bool has_told(cr_caller_call *call) {
    return call->telling && cr_fold_there(&call->room->slots[call->slots[0]]);
}

bool cr_caller_done(cr_caller_call *call) {
    if (call->count == 0) return true;
    cr_error ignored;
    if (cr_caller_alive(call->room->device, call->room->context_id, &ignored) != CR_OK) return true;
    if (has_told(call)) return true;
    const bool lent = cr_caller_lend(call->room->device);
    const cudaError_t answer = cr_caller_query(call->room->events[call->slots[call->count - 1]]);
    cr_caller_unlend(lent);
    return answer != cudaErrorNotReady;
}

/* The call's partial is there. */
static void give(cr_caller_call *call, cr_partial *partial) {
    if (!call->merged) {
        cr_partial_init(&call->sum, call->dtype, call->families);
        if (call->wants) cr_partial_want(&call->sum, call->wants);
    }
    *partial = call->sum;
}

cr_status cr_caller_finish(cr_caller_call *call, cr_partial *partial, cr_error *error) {
    cr_room *room = call->room;
    cr_error own;
    if (error == NULL) error = &own;
    if (room == NULL) {
        if (partial != NULL) give(call, partial);
        free(call);
        return CR_OK;
    }
    cr_status status = cr_caller_alive(room->device, room->context_id, error);
    bool told = status == CR_OK && has_told(call);
    const bool lent = status == CR_OK && !told && cr_caller_lend(room->device);
    while (status == CR_OK && call->telling && !told) { /* it needs no driver, unless the result has gone to limbs */
        told = has_told(call);
        if (!told && ++call->looks % LOOKS == 0 && cr_caller_query(room->events[call->slots[0]]) != cudaErrorNotReady)
            break;
    }
    if (status == CR_OK && !told) status = wait_for_slots(call, error);
    cr_caller_unlend(lent);
    if (status != CR_OK) cr_room_doubt(room);
    if (status == CR_OK && partial != NULL) {
        take(call);
        give(call, partial);
    }
    free_slots(call);
    cr_room_give(room);
    free(call);
    return status;
}
