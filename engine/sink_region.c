/* sink_region: places in registered regions. Into the host's memory go checked copies by its mapping. They go by the mapping and not by pwrite, because that would
 * lengthen a file that its owner cut, and would append where the owner sets O_APPEND. Thread: see sink.h. Owner: the job. */
#include "engine/sink_region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/memory/guard.h"
#include "proto/limits.h"

typedef struct sink_region {
    cr_sink sink;
    uint32_t count;
    cr_kept *awaited[CR_CALL_MAX_OPS];
    cr_sink_place places[];
} sink_region;

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreWritesBegin(const char *file, int line); /* of ThreadSanitizer's runtime */
void AnnotateIgnoreWritesEnd(const char *file, int line);
#else
#define AnnotateIgnoreWritesBegin(file, line) ((void)0)
#define AnnotateIgnoreWritesEnd(file, line) ((void)0)
#endif

/* Other calls of this client may read or write the same bytes meanwhile, as the client itself may: what they find is its affair. */
static void copy_out(uint8_t *to, const void *values, size_t bytes) {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    memcpy(to, values, bytes);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

/* What was written over the guard's zeros is nobody's, and takes memory of this process. */
static cr_status lose(uint32_t op, uint8_t *to, size_t bytes, cr_error *error) {
    const size_t lead = (uintptr_t)to % (uintptr_t)sysconf(_SC_PAGESIZE);
    madvise(to - lead, bytes + lead, MADV_DONTNEED);
    return cr_fail(error, CR_DATA_LOSS,
                   "outputs[%u]: its region was cut or got holes, or its memory failed, while it was written", op);
}

static void *device_place(const cr_sink *base, uint32_t op, uint64_t at) {
    const cr_sink_place *place = &cr_container(base, const sink_region, sink)->places[op];
    return (void *)(uintptr_t)(place->kept->device.address + place->offset + at); /* NOLINT */
}

static cr_status write_place(cr_sink *base, uint32_t op, uint64_t at, const void *values, size_t bytes,
                             cr_error *error) {
    const cr_sink_place *place = &cr_container(base, sink_region, sink)->places[op];
    cr_kept *kept = place->kept;
    if (at > place->bytes || bytes > place->bytes - at)
        return cr_fail(error, CR_INTERNAL, "outputs[%u]: answers beyond their place", op);
    if (!bytes) return CR_OK;
    if (base->device >= 0) return base->put(base->put_argument, device_place(base, op, at), values, bytes, error);
    uint8_t *to = cr_kept_memory(kept) + place->offset + at;
    cr_guard_enter_writing(to, bytes, &kept->lost);
    copy_out(to, values, bytes);
    if (cr_guard_leave_writing() || atomic_load(&kept->lost)) return lose(op, to, bytes, error);
    return cr_kept_still(kept, place->offset + at + bytes, error);
}

static void free_places(cr_sink *base) {
    sink_region *sink = cr_container(base, sink_region, sink);
    for (uint32_t i = 0; i < sink->count; i++) cr_kept_release(sink->places[i].kept);
    free(sink);
}

static int32_t device_of(const cr_kept *kept) { return kept->on_device ? kept->device.device : -1; }

/* Notes once each region whose event is to be waited for. */
static void note_event(sink_region *sink, cr_kept *kept) {
    if (!kept->on_device || !kept->device.event) return;
    for (uint32_t i = 0; i < sink->sink.await_count; i++)
        if (sink->awaited[i] == kept) return;
    sink->awaited[sink->sink.await_count++] = kept;
}

cr_sink *cr_sink_region_new(const cr_sink_place *places, uint32_t count, cr_error *error) {
    for (uint32_t i = 0; i < count; i++) {
        if (cr_kept_can_write(places[i].kept, places[i].offset + places[i].bytes, error) != CR_OK) return NULL;
        if (device_of(places[i].kept) == device_of(places[0].kept)) continue;
        cr_fail(error, CR_INVALID_ARGUMENT,
                "outputs[%u]: its region is not in the same memory as that of outputs[0]: the host's, or one GPU's", i);
        return NULL;
    }
    sink_region *sink = malloc(sizeof *sink + count * sizeof sink->places[0]);
    if (!sink) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the outputs");
        return NULL;
    }
    sink->sink = (cr_sink){.device = device_of(places[0].kept),
                           .awaited = sink->awaited,
                           .write = write_place,
                           .place = device_place,
                           .free = free_places};
    sink->count = count;
    memcpy(sink->places, places, count * sizeof places[0]);
    for (uint32_t i = 0; i < count; i++) {
        cr_kept_use(places[i].kept);
        note_event(sink, places[i].kept);
    }
    return &sink->sink;
}
