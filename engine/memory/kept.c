/* kept: opening, pinning and closing of registered regions. Thread: files threads, but where said. Owner: native/regions.c. */
#include "engine/memory/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/shared.h"
#include "engine/memory/holes.h"
#include "engine/memory/origin.h"

static const uint32_t HUGETLBFS = 0x958458f6; /* of statfs(2) */

enum {
    USER_UNKNOWN = 65534, /* what every user outside this user namespace looks like */
};

/* By O_PATH first: opening a FIFO or a device would already do something to it. */
static cr_status open_name(const cr_kept_source *source, int *descriptor, cr_error *error) {
    char path[16 + CR_SHM_NAME_MAX_BYTES], self[64];
    struct stat st;
    const mode_t rights = source->writable ? S_IRUSR | S_IWUSR : S_IRUSR;
    snprintf(path, sizeof path, "/dev/shm%s", source->name);
    int found = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0)
        return cr_fail(error, errno == ENOENT ? CR_NOT_FOUND : CR_PERMISSION_DENIED, "name: cannot open it: %s",
                       strerror(errno));
    cr_status status = CR_OK;
    if (fstat(found, &st) != 0 || !S_ISREG(st.st_mode))
        status = cr_fail(error, CR_INVALID_ARGUMENT, "name: it is no shared memory object");
    else if (st.st_uid != source->peer || source->peer == USER_UNKNOWN || (st.st_mode & rights) != rights)
        status =
            cr_fail(error, CR_PERMISSION_DENIED,
                    "name: the object must belong to the client's user, and be readable, to be written writable, too");
    snprintf(self, sizeof self, "/proc/self/fd/%d", found);
    /* For writing where that may be: Linux watches nothing else for holes. Without O_NONBLOCK a lease of the client's (F_SETLEASE)
     * would keep the opener waiting for most of a minute. */
    if (status == CR_OK && st.st_mode & S_IWUSR) *descriptor = open(self, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (status == CR_OK && *descriptor < 0 && !source->writable)
        *descriptor = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (status == CR_OK && *descriptor < 0)
        status = cr_fail(error, CR_PERMISSION_DENIED, "name: cannot open it: %s", strerror(errno));
    close(found);
    return status;
}

static cr_status open_device(cr_kept *kept, cr_error *error) {
    cr_device_memory *memory = &kept->source.memory;
    if (!kept->hook || !kept->hook->open)
        return cr_fail(error, CR_FAILED_PRECONDITION, "this daemon has no CUDA device");
    memory->descriptor = kept->source.descriptor;
    memory->writable = kept->source.writable;
    cr_status status = kept->hook->open(kept->hook->context, memory, &kept->device, error);
    if (status != CR_OK) return status;
    kept->on_device = true;
    kept->region.size = memory->bytes;
    kept->region.way = CR_REGION_DEVICE;
    kept->region.writable = kept->source.writable;
    return CR_OK;
}

/* The guard could not lay zeros over a part of a huge page: Linux does not split such a mapping. */
static bool is_of_huge_pages(const cr_region *region) {
    struct statfs fs;
    return fstatfs(region->descriptor, &fs) != 0 || (uint32_t)fs.f_type == HUGETLBFS;
}

/* Maps all of it, if nothing there can ever make Linux fill a hole. */
static bool map_unfilled(cr_kept *kept) {
    cr_region *region = &kept->region;
    cr_error ignored;
    if (cr_region_map(region, 0, (size_t)region->size, &kept->map, &ignored) != CR_OK) return false;
    if (!region->shared || cr_holes_watch(kept->map.base, kept->map.length)) return true;
    if (!region->writable && cr_holes_never(region->descriptor, region->size)) return true;
    cr_region_unmap(&kept->map);
    return false;
}

/* Maps all of it, where it is whole. Where that fails, pread does. */
static void map_whole(cr_kept *kept) {
    cr_region *region = &kept->region;
    uint64_t size;
    bool whole;
    cr_error ignored;
    if (region->size == 0 || region->size > SIZE_MAX || (region->way == CR_REGION_READ && !region->shared)) return;
    if (region->way == CR_REGION_SLOW || cr_region_look(region, &size, &whole, &ignored) != CR_OK) return;
    if (region->shared && (!whole || size < region->size || is_of_huge_pages(region))) return;
    /* Blocks beyond the end may stand for holes before it. What is written may have room alone, which looks like a hole. */
    if (region->shared && !region->writable && !cr_holes_none(region->descriptor, region->size)) return;
    region->way = map_unfilled(kept) ? CR_REGION_MAP : CR_REGION_READ;
}

/* Why a region that is to be written is not mapped. */
static void explain_unmapped(const cr_kept *kept, cr_error *error) {
    uint64_t size;
    bool whole;
    if (cr_region_look(&kept->region, &size, &whole, error) != CR_OK) return;
    if (is_of_huge_pages(&kept->region))
        cr_fail(error, CR_INVALID_ARGUMENT, "writable: memory in huge pages (MFD_HUGETLB) is read only");
    else if (!whole)
        cr_fail(error, CR_INVALID_ARGUMENT, "writable: the memory has holes; fill them first (posix_fallocate)");
    else
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "writable: the memory cannot be mapped for writing");
}

/* False: the task goes on in the other pool. */
static bool open_here(cr_kept *kept, cr_file_task *task) {
    cr_kept_source *source = &kept->source;
    cr_error *error = &kept->error;
    if (source->kind == CR_KEPT_DEVICE) {
        open_device(kept, error);
        return true;
    }
    if (source->kind == CR_KEPT_NAME && source->descriptor < 0 &&
        open_name(source, &source->descriptor, error) != CR_OK)
        return true;
    if (task->pool == CR_FILES_LOCAL && !cr_origin_is_local(source->descriptor)) {
        cr_files_submit(kept->files, task, CR_FILES_FOREIGN);
        return false;
    }
    const char *why;
    kept->region.writable = source->writable && cr_holes_open(&why); /* otherwise it is read only */
    if (source->writable && cr_shared_writable(source->descriptor, error) != CR_OK) return true;
    if (cr_region_inspect(&kept->region, source->descriptor, error) != CR_OK) return true;
    map_whole(kept);
    if (kept->region.writable && kept->region.size && !kept->map.base) explain_unmapped(kept, error);
    return true;
}

static void pin_run(cr_file_task *task) {
    cr_kept *kept = cr_container(task, cr_kept, task);
    uint64_t done = atomic_load(&kept->pinned), left = kept->region.size - done;
    size_t step = left < CR_KEPT_PIN_BYTES ? (size_t)left : CR_KEPT_PIN_BYTES;
    cr_error ignored;
    bool wanted = step && atomic_load(&kept->uses) > 1 && !atomic_load(&kept->lost);
    if (!wanted || kept->hook->pin(kept->hook->context, kept->map.data + done, step, &ignored) != CR_OK) {
        cr_kept_release(kept);
        return;
    }
    atomic_store(&kept->pinned, done + step);
    cr_files_submit(kept->files, task, task->pool); /* others get their turn */
}

static void open_run(cr_file_task *task) {
    cr_kept *kept = cr_container(task, cr_kept, task);
    if (atomic_load(&kept->uses) == 1)
        cr_fail(&kept->error, CR_CANCELLED, "nobody wants the region any more");
    else if (!open_here(kept, task))
        return;
    bool pins = kept->error.code == CR_OK && kept->map.base && kept->hook && kept->hook->pin;
    kept->publish(kept, CR_KEPT_OPENED);
    task->run = pin_run;
    if (pins)
        cr_files_submit(kept->files, task, task->pool);
    else
        cr_kept_release(kept);
}

static void close_run(cr_file_task *task) {
    cr_kept *kept = cr_container(task, cr_kept, task);
    uint64_t pinned = atomic_load(&kept->pinned);
    for (uint64_t at = 0; at < pinned; at += CR_KEPT_PIN_BYTES)
        kept->hook->unpin(kept->hook->context, kept->map.data + at,
                          (size_t)(pinned - at < CR_KEPT_PIN_BYTES ? pinned - at : CR_KEPT_PIN_BYTES));
    cr_region_unmap(&kept->map);
    if (kept->on_device) kept->hook->close(kept->hook->context, &kept->device);
    if (kept->source.descriptor >= 0) close(kept->source.descriptor);
    cr_metric_sub(regions, 1);
    kept->publish(kept, CR_KEPT_CLOSED);
}

void cr_kept_open(cr_kept *kept) {
    kept->task.run = open_run;
    cr_waiting_init(&kept->task.waiting);
    kept->region.descriptor = -1;
    atomic_store(&kept->uses, 2);
    cr_metric_add(regions, 1);
    cr_files_submit(kept->files, &kept->task, kept->source.kind == CR_KEPT_DEVICE ? CR_FILES_FOREIGN : CR_FILES_LOCAL);
}

void cr_kept_use(cr_kept *kept) { atomic_fetch_add(&kept->uses, 1); }

void cr_kept_release(cr_kept *kept) {
    if (atomic_fetch_sub(&kept->uses, 1) > 1) return;
    kept->task.run = close_run;
    cr_files_submit(kept->files, &kept->task, kept->task.pool);
}

bool cr_kept_is_steady(const cr_kept *kept) {
    uint64_t size;
    bool whole;
    cr_error ignored;
    if (!kept->map.base || !kept->region.sealed) return false;
    return cr_region_look(&kept->region, &size, &whole, &ignored) == CR_OK && whole;
}

static cr_status check_lost(const cr_kept *kept, cr_error *error) {
    if (!atomic_load(&kept->lost)) return CR_OK;
    return cr_fail(error, CR_DATA_LOSS,
                   "region: its file was cut or got holes, or its memory failed, while it was used; register it anew");
}

cr_status cr_kept_can_write(const cr_kept *kept, uint64_t end, cr_error *error) {
    uint64_t size;
    bool whole;
    cr_status status = check_lost(kept, error);
    if (status != CR_OK) return status;
    if (!kept->source.writable)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs: the region was not registered writable");
    if (!kept->region.writable)
        return cr_fail(
            error, CR_FAILED_PRECONDITION,
            "outputs: this daemon may not use userfaultfd, so it writes into no shared memory; take the answers "
            "as they are sent");
    if (!end || kept->on_device) return CR_OK; /* nobody can cut a GPU's memory */
    status = cr_region_look(&kept->region, &size, &whole, error);
    if (status != CR_OK) return status;
    if (end > size)
        return cr_fail(error, CR_DATA_LOSS,
                       "outputs: the region had %llu bytes when it was registered, and was cut to %llu",
                       (unsigned long long)kept->region.size, (unsigned long long)size);
    if (whole) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "outputs: the region has holes; fill them first (posix_fallocate)");
}

cr_status cr_kept_check(cr_kept *kept, uint64_t offset, uint64_t bytes, cr_region_way *way, cr_error *error) {
    uint64_t size;
    bool whole;
    *way = kept->region.way;
    cr_status status = check_lost(kept, error);
    if (status != CR_OK || *way != CR_REGION_MAP) return status;
    status = cr_region_look(&kept->region, &size, &whole, error);
    if (status != CR_OK) return status;
    if (offset > size || bytes > size - offset)
        return cr_fail(error, CR_DATA_LOSS,
                       "region: its file had %llu bytes when it was registered, and was cut to %llu",
                       (unsigned long long)kept->region.size, (unsigned long long)size);
    if (!whole && kept->region.shared) *way = CR_REGION_READ;
    return CR_OK;
}

cr_status cr_kept_still(cr_kept *kept, uint64_t end, cr_error *error) {
    cr_status status = check_lost(kept, error);
    return status != CR_OK || kept->region.sealed ? status : cr_region_still(&kept->region, end, error);
}
