/* errand: what other threads want of a device, done on its lane's thread: pinning, and opening what other processes
 * share.
 *
 * An errand is on the heap and has copies of what it needs, because whoever asked is told that the device is lost while the lane's
 * thread still is in the driver. The last of the two frees it.
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
    bool read_only;          /* PIN */
    cr_device_memory source; /* IMPORT */
    void *event;             /* IMPORT: afterwards; RELEASE; NULL: none */
    cr_status status;
    cr_error error;
    bool done, given_up; /* mutex; given_up: status, error, memory and event still are the lane's thread's */
    unsigned holders;    /* mutex: who asked, and the lane */
} cr_errand;

static cr_status pin(cr_gpu_lane *lane, cr_errand *errand) {
    cr_pin *entry = malloc(sizeof *entry);
    if (!entry) return cr_fail(&errand->error, CR_RESOURCE_EXHAUSTED, "no memory to pin with");
    cr_status status = lane->api->pin(lane->gpu, errand->memory, errand->bytes, errand->read_only, &errand->error);
    if (status != CR_OK) {
        cr_gpu_count_error(lane, CR_GPU_ERROR_pin);
        free(entry);
        return status;
    }
    entry->memory = errand->memory;
    pthread_mutex_lock(&lane->mutex); /* whoever watches the lane empties the list for a thread that is stuck */
    cr_list_append(&lane->pins, &entry->link);
    pthread_mutex_unlock(&lane->mutex);
    return CR_OK;
}

static bool is_lost(cr_gpu_lane *lane) { return atomic_load(&lane->lost) || lane->api->lost(lane->gpu); }

/* Takes the pin of memory, or with NULL the first, off the list; NULL: there is none. */
static cr_pin *take_pin(cr_gpu_lane *lane, const void *memory) {
    cr_pin *found = NULL;
    pthread_mutex_lock(&lane->mutex);
    for (cr_list *node = lane->pins.next; node != &lane->pins && found == NULL; node = node->next) {
        cr_pin *entry = cr_container(node, cr_pin, link);
        if (memory == NULL || entry->memory == memory) found = entry;
    }
    if (found != NULL) cr_list_remove(&found->link);
    pthread_mutex_unlock(&lane->mutex);
    return found;
}

static bool unpin(cr_gpu_lane *lane, const void *memory) {
    cr_pin *entry = take_pin(lane, memory);
    if (entry == NULL) return false;
    if (!is_lost(lane)) lane->api->unpin(lane->gpu, entry->memory);
    free(entry);
    return true;
}

void cr_gpu_unpin_all(cr_gpu_lane *lane) {
    while (unpin(lane, NULL)) continue;
}

static void release(cr_gpu_lane *lane, const cr_errand *errand) {
    if (is_lost(lane)) return;
    if (errand->event) lane->api->event_close(lane->gpu, errand->event);
    lane->api->release(lane->gpu, errand->memory);
}

static cr_status import(cr_gpu_lane *lane, cr_errand *errand) {
    const cr_device_memory *from = &errand->source;
    const cr_gpu_api *api = lane->api;
    cr_status status =
        api->import(lane->gpu, from->has_handle ? from->handle : NULL, from->descriptor,
                    (size_t)(from->offset + from->bytes), from->writable, &errand->memory, &errand->error);
    if (status != CR_OK || !from->has_event) return status;
    status = api->event_open(lane->gpu, from->event, &errand->event, &errand->error);
    if (status != CR_OK && !is_lost(lane)) api->release(lane->gpu, errand->memory);
    return status;
}

static cr_status carry_out(cr_gpu_lane *lane, cr_errand *errand, bool refuse) {
    switch (errand->kind) {
        case ERRAND_UNPIN:
            unpin(lane, errand->memory);
            return CR_OK;
        case ERRAND_RELEASE:
            release(lane, errand);
            return CR_OK;
        case ERRAND_PIN:
        case ERRAND_IMPORT:
            break;
    }
    if (refuse || is_lost(lane)) return cr_fail(&errand->error, CR_UNAVAILABLE, "the GPU is lost");
    if (errand->kind == ERRAND_PIN) return pin(lane, errand);
    return import(lane, errand);
}

/* With the mutex. */
static void let_go(cr_errand *errand) {
    if (--errand->holders == 0) free(errand);
}

void cr_gpu_errands_run(cr_gpu_lane *lane, bool refuse) {
    assert(cr_gpu_running(lane) == 0);
    pthread_mutex_lock(&lane->mutex);
    for (cr_list *node; (node = cr_list_pop(&lane->errands));) {
        cr_errand *errand = cr_container(node, cr_errand, link);
        lane->current = errand;
        pthread_mutex_unlock(&lane->mutex);
        const cr_status status = carry_out(lane, errand, refuse);
        pthread_mutex_lock(&lane->mutex);
        if (!errand->given_up) lane->current = NULL;
        errand->status = status;
        errand->done = true;
        pthread_cond_broadcast(&lane->changed);
        let_go(errand);
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
        errand->given_up = true;
        pthread_cond_broadcast(&lane->changed);
    }
    pthread_mutex_unlock(&lane->mutex);
    cr_gpu_errands_run(lane, true);
}

/* Waits with the mutex until the errand is done or given up. */
static void wait_for(cr_gpu_lane *lane, const cr_errand *errand) {
    while (!errand->done && !errand->given_up && atomic_load(&lane->attended))
        pthread_cond_wait(&lane->changed, &lane->mutex);
    while (!errand->done && !errand->given_up) {
        const struct timespec until = cr_gpu_until(lane->options.timeout_ms / 4 + 1);
        int late = pthread_cond_timedwait(&lane->changed, &lane->mutex, &until);
        pthread_mutex_unlock(&lane->mutex);
        if (late == ETIMEDOUT) cr_lane_gpu_watch((cr_lane *)(void *)lane);
        pthread_mutex_lock(&lane->mutex);
    }
}

/* Has the lane's thread do it, and waits. *wanted gets what an import finds. Once that thread has ended there is nothing left to
 * ask. error NULL: it cannot fail. */
static cr_status ask(cr_gpu_lane *lane, cr_errand *wanted, cr_error *error) {
    cr_errand *errand = malloc(sizeof *errand);
    if (!errand) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to ask the GPU's lane with");
    *errand = *wanted;
    errand->holders = 2;
    cr_list_init(&errand->link);
    pthread_mutex_lock(&lane->mutex);
    if (lane->ended) {
        pthread_mutex_unlock(&lane->mutex);
        free(errand);
        return error ? cr_fail(error, CR_UNAVAILABLE, "the GPU's lane has ended") : CR_OK;
    }
    cr_list_append(&lane->errands, &errand->link);
    atomic_store(&lane->asking, true);
    pthread_mutex_unlock(&lane->mutex);
    cr_queue_poke(lane->options.queue);
    pthread_mutex_lock(&lane->mutex);
    wait_for(lane, errand);
    cr_status status = CR_OK;
    if (!errand->done) {
        if (error) status = cr_fail(error, CR_UNAVAILABLE, "%s", lane->lost_error.text);
    } else {
        status = errand->status;
        if (status != CR_OK && error) *error = errand->error;
        wanted->memory = errand->memory;
        wanted->event = errand->event;
    }
    let_go(errand);
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

static cr_status ask_pin(void *argument, void *memory, size_t bytes, bool read_only, cr_error *error) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    cr_errand errand = {.kind = ERRAND_PIN, .memory = memory, .bytes = bytes, .read_only = read_only};
    return ask(argument, &errand, error);
}

static void ask_unpin(void *argument, void *memory) {
    cr_errand errand = {.kind = ERRAND_UNPIN, .memory = memory};
    ask(argument, &errand, NULL);
}

cr_pinner cr_lane_gpu_pinner(cr_lane *lane) { return (cr_pinner){lane, ask_pin, ask_unpin}; }

cr_status cr_lane_gpu_import(cr_lane *lane, const cr_device_memory *source, void **memory, void **event,
                             cr_error *error) {
    cr_errand errand = {.kind = ERRAND_IMPORT, .source = *source};
    cr_gpu_lane *own = (cr_gpu_lane *)(void *)lane;
    if (source->descriptor >= 0) {
        cr_status status = own->api->inspect(source->descriptor, error);
        if (status != CR_OK) return status;
    }
    cr_status status = own->probe ? cr_gpu_probe_try(own->probe, source, error) : CR_OK;
    if (status == CR_OK) status = ask(own, &errand, error);
    *memory = errand.memory;
    *event = errand.event;
    return status;
}

void cr_lane_gpu_release(cr_lane *lane, void *memory, void *event) {
    cr_errand errand = {.kind = ERRAND_RELEASE, .memory = memory, .event = event};
    ask((cr_gpu_lane *)(void *)lane, &errand, NULL);
}

const cr_gpu_info *cr_lane_gpu_device(const cr_lane *lane) {
    return &((const cr_gpu_lane *)(const void *)lane)->device;
}
