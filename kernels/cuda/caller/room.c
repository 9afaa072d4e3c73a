/* room: what each stream has for its calls: see internal.h.
 *
 * A room is made by a stream's first call. Beyond ROOMS of a device, the one that was not used for longest is handed on, as it is,
 * if nothing of it is under way: so nothing is freed, which would make the driver wait for the device.
 *
 * Thread: any; `mutex` guards the list and each room's number of calls. Owner: this file. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"

enum {
    ROOMS = 64,       /* of a device, beyond which idle ones are handed on */
    ROOMS_MOST = 512, /* of which none is idle */
    EAGER = 4096,     /* looks before a wait lets others have the core */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cr_room *rooms;
static unsigned long long calls; /* so far */

/* The room of a device that was reset: its memory is gone. */
static bool is_lost(const cr_room *room) { return room->context_id != cr_caller_context(room->device); }

cudaError_t cr_caller_relax(enum cudaStreamCaptureMode *before) {
    *before = cudaStreamCaptureModeRelaxed;
    return cudaThreadExchangeStreamCaptureMode(before);
}

void cr_caller_restore(enum cudaStreamCaptureMode before) {
    if (before != cudaStreamCaptureModeRelaxed) cudaThreadExchangeStreamCaptureMode(&before);
}

cudaError_t cr_caller_query(cudaEvent_t event) {
    enum cudaStreamCaptureMode before;
    cr_caller_relax(&before);
    const cudaError_t answer = cudaEventQuery(event);
    cr_caller_restore(before);
    return answer;
}

cudaError_t cr_caller_pinned(void **memory, size_t bytes) {
    enum cudaStreamCaptureMode before;
    cr_caller_relax(&before);
    const cudaError_t failure = cudaMallocHost(memory, bytes);
    cr_caller_restore(before);
    return failure;
}

static bool is_idle(const cr_room *room) {
    bool idle = room->calls == 0 && cr_caller_query(room->last) == cudaSuccess;
    for (uint32_t i = 0; i < CR_LIST_PARTS; i++) idle = idle && cr_caller_query(room->list.own[i]) == cudaSuccess;
    idle = idle && (!room->legacy || cr_caller_legacy_idle(room->device));
    for (uint32_t i = 0; room->doubtful && i < CR_ROOM_SLOTS; i++)
        idle = idle && cr_caller_query(room->events[i]) == cudaSuccess;
    return idle;
}

static void forget(cr_room *room) {
    for (cr_room **at = &rooms; *at != NULL; at = &(*at)->next) {
        if (*at != room) continue;
        *at = room->next;
        break;
    }
    pthread_mutex_destroy(&room->mutex);
    free(room);
}

static void free_memory(cr_room *room) {
    enum cudaStreamCaptureMode before;
    cr_caller_relax(&before);
    cudaFree(room->state);
    cudaFreeHost(room->slots);
    cudaFreeHost(room->pack_memory);
    cudaFreeHost(room->small);
    cudaFree(room->list.device);
    cudaFreeHost(room->list.host);
    for (void *host = room->list.outgrown, *next; host != NULL; host = next) {
        memcpy(&next, host, sizeof next);
        cudaFreeHost(host);
    }
    cudaFree(room->scratch);
    cudaFree(room->answers);
    cudaFree(room->offsets);
    cudaFree(room->groups);
    for (uint32_t i = 0; i < CR_ROOM_SLOTS; i++)
        if (room->events[i]) cudaEventDestroy(room->events[i]);
    if (room->last) cudaEventDestroy(room->last);
    for (uint32_t i = 0; i < CR_LIST_PARTS; i++)
        if (room->list.own[i]) cudaEventDestroy(room->list.own[i]);
    cr_caller_restore(before);
    (void)cudaGetLastError();
}

/* Memory that is freed in the order of a stream need not be freed by it; but this is, by whoever trims. */
static cudaError_t make_memory(cr_room *room, cudaStream_t stream) {
    void *state = NULL, *slots = NULL, *small = NULL;
    const size_t bytes = sizeof *room->state + sizeof *room->answer;
    cudaError_t failure = cudaMallocAsync(&state, bytes, stream);
    room->state = state;
    room->answer = (cr_fold_slot *)(void *)(room->state + 1);
    if (failure == cudaSuccess) failure = cudaMemsetAsync(state, 0, bytes, stream);
    if (failure == cudaSuccess) failure = cr_caller_pinned(&slots, CR_ROOM_SLOTS * sizeof *room->slots);
    room->slots = slots;
    if (failure == cudaSuccess) failure = cr_caller_pinned(&small, CR_ROOM_SMALL + sizeof(cr_axis_failure));
    room->small = small;
    for (uint32_t i = 0; i < CR_ROOM_SLOTS && failure == cudaSuccess; i++)
        failure = cudaEventCreateWithFlags(&room->events[i], cudaEventDisableTiming);
    if (failure == cudaSuccess) failure = cudaEventCreateWithFlags(&room->last, cudaEventDisableTiming);
    for (uint32_t i = 0; i < CR_LIST_PARTS && failure == cudaSuccess; i++)
        failure = cudaEventCreateWithFlags(&room->list.own[i], cudaEventDisableTiming);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, stream); /* behind the zeros */
    return failure;
}

static cr_status make_room(const cr_visit *visit, cr_room **out, cr_error *error) {
    cr_room *room = calloc(1, sizeof *room);
    if (room == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "stream: no memory for its workspace");
    room->device = visit->device;
    room->context_id = cr_caller_context(visit->device);
    pthread_mutex_init(&room->mutex, NULL);
    const cr_status status = cr_caller_error((int)make_memory(room, visit->stream), "workspace", error);
    if (status != CR_OK && room->state != NULL && cudaFreeAsync(room->state, visit->stream) == cudaSuccess)
        room->state = NULL; /* the zeros are still on their way there */
    if (status != CR_OK) {
        free_memory(room);
        pthread_mutex_destroy(&room->mutex);
        free(room);
        return status;
    }
    room->next = rooms;
    rooms = room;
    *out = room;
    return CR_OK;
}

/* The stream's; NULL: it has none. *idle: the one of that device to hand on; *count: how many it has. */
static cr_room *look_for(const cr_visit *visit, cr_room **idle, uint32_t *count) {
    for (cr_room *room = rooms, *next; room != NULL; room = next) {
        next = room->next;
        if (room->device != visit->device) continue;
        if (is_lost(room)) {
            if (room->calls == 0) forget(room); /* the reset has freed its memory */
            continue;
        }
        if (room->stream_id == visit->stream_id && room->legacy == visit->legacy && !room->doubtful) return room;
        ++*count;
        if (*idle == NULL || room->used < (*idle)->used) *idle = room;
    }
    return NULL;
}

cr_status cr_room_take(const cr_visit *visit, cr_room **out, cr_error *error) {
    cr_room *idle = NULL;
    uint32_t count = 0;
    cr_status status = CR_OK;
    pthread_mutex_lock(&mutex);
    cr_room *room = look_for(visit, &idle, &count);
    if (room == NULL && count >= ROOMS && is_idle(idle)) room = idle;
    if (room == NULL && count >= ROOMS_MOST)
        status = cr_fail(error, CR_RESOURCE_EXHAUSTED,
                         "stream: %u streams of GPU %d have calls under way, and so many may", count, visit->device);
    else if (room == NULL)
        status = make_room(visit, &room, error);
    if (status == CR_OK) {
        room->stream_id = visit->stream_id;
        room->legacy = visit->legacy;
        room->doubtful = false;
        room->used = ++calls;
        room->calls++;
        *out = room;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

void cr_room_give(cr_room *room) {
    pthread_mutex_lock(&mutex);
    room->calls--;
    pthread_mutex_unlock(&mutex);
}

/* Where the stream cannot go, it is asked itself when that matters, which is seldom: an event a call costs more. */
cr_status cr_room_mark(cr_room *room, const cr_visit *visit, cr_error *error) {
    if (visit->legacy) return CR_OK;
    return cr_caller_error((int)cudaEventRecord(room->last, visit->stream), "event", error);
}

cr_status cr_room_slot(cr_room *room, uint32_t *slot, cr_error *error) {
    for (uint32_t i = 0; i < CR_ROOM_SLOTS; i++) {
        if (room->taken >> i & 1) continue;
        room->taken |= (uint32_t)1 << i;
        *slot = i;
        return CR_OK;
    }
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "stream: %d calls were started on it and not finished, and so many may: finish one", CR_ROOM_SLOTS);
}

void cr_room_free_slot(cr_room *room, uint32_t slot) { room->taken &= ~((uint32_t)1 << slot); }

cr_status cr_room_grow(uint8_t **memory, uint64_t *bytes, uint64_t wanted, cudaStream_t stream, cr_error *error) {
    void *more = NULL;
    if (wanted <= *bytes) return CR_OK;
    cudaError_t failure = cudaMallocAsync(&more, wanted, stream);
    if (failure == cudaSuccess && *memory != NULL) failure = cudaFreeAsync(*memory, stream);
    if (failure != cudaSuccess && more != NULL) cudaFreeAsync(more, stream);
    if (failure != cudaSuccess) return cr_caller_error((int)failure, "workspace", error);
    *memory = more;
    *bytes = wanted;
    return CR_OK;
}

void cr_room_drop_scratch(cr_room *room, cudaStream_t stream) {
    if (room->scratch == NULL) return;
    if (cudaFreeAsync(room->scratch, stream) != cudaSuccess) (void)cudaGetLastError();
    room->scratch = NULL;
    room->scratch_bytes = 0;
}

cr_status cr_room_wait(const cr_room *room, cudaEvent_t event, cr_error *error) {
    enum cudaStreamCaptureMode before;
    cudaError_t answer;
    cr_caller_relax(&before);
    for (uint32_t looks = 0; (answer = cudaEventQuery(event)) == cudaErrorNotReady; looks++)
        if (looks > EAGER) sched_yield();
    cr_caller_restore(before);
    if (answer == cudaSuccess) return CR_OK;
    cr_status status = cr_caller_alive(room->device, room->context_id, error);
    return status != CR_OK ? status : cr_caller_error((int)answer, "stream", error);
}

void cr_room_doubt(cr_room *room) {
    pthread_mutex_lock(&mutex);
    room->doubtful = true;
    pthread_mutex_unlock(&mutex);
}

bool cr_room_settle(cr_room *room, cudaStream_t stream) {
    cr_error ignored;
    if (cr_caller_alive(room->device, room->context_id, &ignored) != CR_OK) return false;
    if (cudaEventRecord(room->last, stream) == cudaSuccess && cr_room_wait(room, room->last, &ignored) == CR_OK)
        return true;
    enum cudaStreamCaptureMode before;
    cr_caller_relax(&before);
    const cudaError_t failure = cudaStreamSynchronize(stream);
    cr_caller_restore(before);
    (void)cudaGetLastError();
    if (failure == cudaSuccess) return true;
    pthread_mutex_lock(&mutex);
    room->doubtful = true;
    room->calls++; /* it is never idle again */
    pthread_mutex_unlock(&mutex);
    return false;
}

void cr_caller_trim(void) {
    cr_error ignored;
    if (cr_caller_is_child()) return; /* its parent's threads may have left the mutex locked */
    cr_caller_free_given_back();
    pthread_mutex_lock(&mutex);
    for (cr_room *room = rooms, *next; room != NULL; room = next) {
        next = room->next;
        if (cr_caller_alive(room->device, room->context_id, &ignored) != CR_OK) continue;
        const bool lent = cr_caller_lend(room->device), idle = is_idle(room);
        if (idle) free_memory(room);
        cr_caller_unlend(lent);
        if (idle) forget(room);
    }
    pthread_mutex_unlock(&mutex);
}
