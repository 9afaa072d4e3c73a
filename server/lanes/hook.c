/* hook: what regions and slabs ask of the GPUs. Memory that other processes share is opened on the lane of its GPU.
 * Host memory is pinned for all GPUs, by the first that is not lost.
 *
 * What a GPU has pinned it alone gives back. A lost one gives nothing back: its driver keeps the pages pinned until
 * the process ends, so the other GPUs go on reading the memory where it is.
 * Thread: files threads, and main's at start; they wait for the lanes'. The pins have a mutex. Owner: the lanes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "server/lanes/gpu/lane.h"
#include "server/lanes/lanes.h"

/* "GPU-" and 32 digits in the driver's grouping. */
static void print_uuid(char text[48], const uint8_t uuid[CR_DEVICE_UUID_BYTES]) {
    char *p = text + snprintf(text, 48, "GPU-");
    for (int i = 0; i < CR_DEVICE_UUID_BYTES; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        p += snprintf(p, (size_t)(text + 48 - p), dash ? "-%02x" : "%02x", uuid[i]);
    }
}

static cr_lane *find_lane(const cr_lanes *lanes, const cr_device_memory *memory, cr_error *error) {
    char uuid[48];
    print_uuid(uuid, memory->device);
    for (uint32_t i = 1; i < lanes->count; i++) {
        if (strcmp(cr_lane_gpu_device(lanes->lanes[i])->uuid, uuid) == 0) return lanes->lanes[i];
    }
    cr_fail(error, CR_NOT_FOUND, "device: this daemon has no %s", uuid);
    return NULL;
}

/* What one region holds of a lane. */
typedef struct own {
    cr_lane *lane;
    void *memory, *event;
} own;

static cr_status hook_open(void *context, const cr_device_memory *memory, cr_device_region *region, cr_error *error) {
    cr_lane *lane = find_lane(context, memory, error);
    if (!lane) return CR_NOT_FOUND;
    own *held = malloc(sizeof *held);
    if (!held) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the region");
    cr_status status = cr_lane_gpu_import(lane, memory, &held->memory, &held->event, error);
    if (status != CR_OK) {
        free(held);
        return status;
    }
    held->lane = lane;
    *region = (cr_device_region){.device = (int)cr_lane_gpu_device(lane)->ordinal,
                                 .address = (uint64_t)(uintptr_t)held->memory + memory->offset,
                                 .event = held->event,
                                 .own = held};
    cr_metric_add(device_regions, 1);
    return CR_OK;
}

static void hook_close(void *context, cr_device_region *region) {
    own *held = region->own;
    (void)context;
    cr_lane_gpu_release(held->lane, held->memory, held->event);
    cr_metric_sub(device_regions, 1);
    free(held);
}

/* What is pinned, and by whom; in cr_lanes.pins. */
typedef struct pinned {
    cr_list link;
    const void *start;
    cr_lane *lane;
} pinned;

static cr_status pin(void *argument, void *memory, size_t bytes, bool read_only, cr_error *error) {
    cr_lanes *lanes = argument;
    pinned *entry = malloc(sizeof *entry);
    if (!entry) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to pin with");
    cr_status status = CR_UNAVAILABLE;
    for (uint32_t i = 1; i < lanes->count && status == CR_UNAVAILABLE; i++) { /* it says so when it is lost */
        const cr_pinner pinner = cr_lane_gpu_pinner(lanes->lanes[i]);
        *entry = (pinned){.start = memory, .lane = lanes->lanes[i]};
        status = pinner.pin(pinner.argument, memory, bytes, read_only, error);
    }
    if (status != CR_OK) {
        free(entry);
        return status;
    }
    pthread_mutex_lock(&lanes->pins_mutex);
    cr_list_append(&lanes->pins, &entry->link);
    pthread_mutex_unlock(&lanes->pins_mutex);
    return CR_OK;
}

static pinned *take_pinned(cr_lanes *lanes, const void *start) {
    pinned *found = NULL;
    pthread_mutex_lock(&lanes->pins_mutex);
    for (cr_list *node = lanes->pins.next; node != &lanes->pins && !found; node = node->next) {
        pinned *entry = cr_container(node, pinned, link);
        if (entry->start == start) found = entry;
    }
    if (found) cr_list_remove(&found->link);
    pthread_mutex_unlock(&lanes->pins_mutex);
    return found;
}

static void unpin(void *argument, void *memory) {
    pinned *entry = take_pinned(argument, memory);
    if (!entry) return;
    const cr_pinner pinner = cr_lane_gpu_pinner(entry->lane);
    pinner.unpin(pinner.argument, memory);
    free(entry);
}

cr_pinner cr_lanes_pinner(cr_lanes *lanes) { return (cr_pinner){lanes, pin, unpin}; }

static cr_status hook_pin(void *context, const void *start, size_t bytes, cr_error *error) {
    return pin(context, (void *)(uintptr_t)start, bytes, true, error);
}

static void hook_unpin(void *context, const void *start, size_t bytes) {
    (void)bytes;
    unpin(context, (void *)(uintptr_t)start);
}

cr_device_hook cr_lanes_device_hook(cr_lanes *lanes) {
    return (cr_device_hook){lanes, hook_open, hook_close, hook_pin, hook_unpin};
}
