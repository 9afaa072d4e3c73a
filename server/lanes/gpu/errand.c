/* errand: what other threads want of a device, done on its lane's thread: pinning, and opening what other processes
 * share.
 *
 * Thread: cr_gpu_errands_run and cr_gpu_unpin_all on the lane's; the rest on any other thread, which waits. Owner: the
 * lane. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/lanes/gpu/internal.h"
#include "server/lanes/gpu/lane.h"

/* Something pinned, by its first byte. */
typedef struct cr_pin {
    cr_list link;
    void *memory;
} cr_pin;

typedef enum errand_kind { ERRAND_PIN, ERRAND_UNPIN, ERRAND_IMPORT, ERRAND_RELEASE } errand_kind;

typedef struct cr_errand {
    cr_list link;
    errand_kind kind;
    void *memory; /* IMPORT: where it is, afterwards */
    size_t bytes;
    bool read_only;                 /* PIN */
    const cr_device_memory *source; /* IMPORT */
    void *event;                    /* IMPORT: afterwards; RELEASE; NULL: none */
    bool done;
    cr_status status;
    cr_error *error;
} cr_errand;

static cr_status pin(cr_gpu_lane *lane, const cr_errand *errand) {
    cr_pin *entry = malloc(sizeof *entry);
    if (!entry) return cr_fail(errand->error, CR_RESOURCE_EXHAUSTED, "no memory to pin with");
    cr_status status = lane->api->pin(lane->gpu, errand->memory, errand->bytes, errand->read_only, errand->error);
    if (status != CR_OK) {
        cr_gpu_count_error(lane, CR_GPU_ERROR_pin);
        free(entry);
        return status;
    }
    entry->memory = errand->memory;
    cr_list_append(&lane->pins, &entry->link);
    return CR_OK;
}

static bool is_lost(cr_gpu_lane *lane) { return atomic_load(&lane->lost) || lane->api->lost(lane->gpu); }

static void drop_pin(cr_gpu_lane *lane, cr_pin *entry) {
    cr_list_remove(&entry->link);
    if (!is_lost(lane)) lane->api->unpin(lane->gpu, entry->memory);
    free(entry);
}

static void unpin(cr_gpu_lane *lane, const cr_errand *errand) {
    for (cr_list *node = lane->pins.next; node != &lane->pins; node = node->next) {
        cr_pin *entry = cr_container(node, cr_pin, link);
        if (entry->memory != errand->memory) continue;
        drop_pin(lane, entry);
        break;
    }
}

void cr_gpu_unpin_all(cr_gpu_lane *lane) {
    while (!cr_list_empty(&lane->pins)) drop_pin(lane, cr_container(lane->pins.next, cr_pin, link));
}

static void release(cr_gpu_lane *lane, const cr_errand *errand) {
    if (is_lost(lane)) return;
    if (errand->event) lane->api->event_close(lane->gpu, errand->event);
    lane->api->release(lane->gpu, errand->memory);
}

static cr_status import(cr_gpu_lane *lane, cr_errand *errand) {
    const cr_device_memory *from = errand->source;
    const cr_gpu_api *api = lane->api;
    cr_status status =
        api->import(lane->gpu, from->has_handle ? from->handle : NULL, from->descriptor,
                    (size_t)(from->offset + from->bytes), from->writable, &errand->memory, errand->error);
    if (status != CR_OK || !from->has_event) return status;
    status = api->event_open(lane->gpu, from->event, &errand->event, errand->error);
    if (status != CR_OK && !is_lost(lane)) api->release(lane->gpu, errand->memory);
    return status;
}

static cr_status carry_out(cr_gpu_lane *lane, cr_errand *errand, bool refuse) {
    switch (errand->kind) {
        case ERRAND_UNPIN:
            unpin(lane, errand);
            return CR_OK;
        case ERRAND_RELEASE:
            release(lane, errand);
            return CR_OK;
        case ERRAND_PIN:
        case ERRAND_IMPORT:
            break;
    }
    if (refuse || is_lost(lane)) return cr_fail(errand->error, CR_UNAVAILABLE, "the GPU is lost");
    if (errand->kind == ERRAND_PIN) return pin(lane, errand);
    return import(lane, errand);
}

void cr_gpu_errands_run(cr_gpu_lane *lane, bool refuse) {
    assert(cr_gpu_running(lane) == 0);
    pthread_mutex_lock(&lane->mutex);
    for (cr_list *node; (node = cr_list_pop(&lane->errands));) {
        cr_errand *errand = cr_container(node, cr_errand, link);
        lane->current = errand;
        pthread_mutex_unlock(&lane->mutex);
        errand->status = carry_out(lane, errand, refuse);
        pthread_mutex_lock(&lane->mutex);
        lane->current = NULL;
        errand->done = true;
        pthread_cond_broadcast(&lane->changed);
    }
    atomic_store(&lane->asking, false);
    pthread_mutex_unlock(&lane->mutex);
}

void cr_gpu_errands_lose(cr_gpu_lane *lane) {
    pthread_mutex_lock(&lane->mutex);
    lane->ended = true;
    cr_errand *errand = lane->current;
    lane->current = NULL;
    if (errand) {
        errand->done = true;
        errand->status = errand->error ? cr_fail(errand->error, CR_UNAVAILABLE, "%s", lane->lost_error.text) : CR_OK;
        pthread_cond_broadcast(&lane->changed);
    }
    pthread_mutex_unlock(&lane->mutex);
    cr_gpu_errands_run(lane, true);
}

/* Waits for the lane's thread; once that has ended there is nothing left to ask. */
static cr_status wait_for(cr_gpu_lane *lane, cr_errand *errand) {
    cr_list_init(&errand->link);
    pthread_mutex_lock(&lane->mutex);
    if (!lane->ended) {
        cr_list_append(&lane->errands, &errand->link);
        atomic_store(&lane->asking, true);
        pthread_mutex_unlock(&lane->mutex);
        cr_queue_poke(lane->options.queue);
        pthread_mutex_lock(&lane->mutex);
    } else {
        errand->done = true;
        errand->status = errand->error ? cr_fail(errand->error, CR_UNAVAILABLE, "the GPU's lane has ended") : CR_OK;
    }
    while (!errand->done && atomic_load(&lane->attended)) pthread_cond_wait(&lane->changed, &lane->mutex);
    while (!errand->done) {
        const struct timespec until = cr_gpu_until(lane->options.timeout_ms / 4 + 1);
        int late = pthread_cond_timedwait(&lane->changed, &lane->mutex, &until);
        pthread_mutex_unlock(&lane->mutex);
        if (late == ETIMEDOUT) cr_lane_gpu_watch((cr_lane *)(void *)lane);
        pthread_mutex_lock(&lane->mutex);
    }
    pthread_mutex_unlock(&lane->mutex);
    return errand->status;
}

static cr_status ask_pin(void *argument, void *memory, size_t bytes, bool read_only, cr_error *error) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    cr_errand errand = {.kind = ERRAND_PIN, .memory = memory, .bytes = bytes, .read_only = read_only, .error = error};
    return wait_for(argument, &errand);
}

static void ask_unpin(void *argument, void *memory) {
    cr_errand errand = {.kind = ERRAND_UNPIN, .memory = memory};
    wait_for(argument, &errand);
}

cr_pinner cr_lane_gpu_pinner(cr_lane *lane) { return (cr_pinner){lane, ask_pin, ask_unpin}; }

cr_status cr_lane_gpu_import(cr_lane *lane, const cr_device_memory *source, void **memory, void **event,
                             cr_error *error) {
    cr_errand errand = {.kind = ERRAND_IMPORT, .source = source, .error = error};
    cr_gpu_lane *own = (cr_gpu_lane *)(void *)lane;
    if (source->descriptor >= 0) {
        cr_status status = own->api->inspect(source->descriptor, error);
        if (status != CR_OK) return status;
    }
    cr_status status = own->probe ? cr_gpu_probe_try(own->probe, source, error) : CR_OK;
    if (status == CR_OK) status = wait_for(own, &errand);
    *memory = errand.memory;
    *event = errand.event;
    return status;
}

void cr_lane_gpu_release(cr_lane *lane, void *memory, void *event) {
    cr_errand errand = {.kind = ERRAND_RELEASE, .memory = memory, .event = event};
    wait_for((cr_gpu_lane *)(void *)lane, &errand);
}

const cr_gpu_info *cr_lane_gpu_device(const cr_lane *lane) {
    return &((const cr_gpu_lane *)(const void *)lane)->device;
}
