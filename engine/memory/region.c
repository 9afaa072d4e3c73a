/* region: inspection, windows and reads of a passed descriptor. Thread: files threads. Owner: the feed of one job. */
#include "engine/memory/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fiemap.h>
#include <linux/fs.h>

#include "base/metrics.h"
#include "engine/memory/origin.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static const uint32_t OVERLAYFS = 0x794c7630, RAMFS = 0x858458f6; /* of statfs(2) */

enum { CACHED_STEP = 2 * 1024 * 1024 }; /* a probe costs most of a microsecond */

cr_status cr_region_readable(int descriptor, cr_error *error) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it is not open");
    if (flags & O_PATH)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: opened with O_PATH, which gives no right to read");
    /* The fourth mode, 3, gives a right to neither: such a file is open for ioctl alone. */
    if ((flags & O_ACCMODE) != O_RDONLY && (flags & O_ACCMODE) != O_RDWR)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "descriptor: opened write-only, or for nothing; open it for reading");
    return CR_OK;
}

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO or pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode)) return "a character device";
    if (S_ISBLK(mode)) return "a block device";
    return "not a file";
}

/* Whether a file of an overlay lies on a disk, whose file systems say where. On a tmpfs a map of it would fill its holes. */
static bool is_on_disk(int descriptor) {
    struct fiemap first = {.fm_length = 1};
    return ioctl(descriptor, FS_IOC_FIEMAP, &first) == 0;
}

/* Shared memory is read, because a map of it would fill its holes. */
static cr_region_way choose_way(int descriptor, const struct stat *st) {
    struct statfs fs;
    if (fcntl(descriptor, F_GET_SEALS) >= 0) return CR_REGION_READ;
    if (fstatfs(descriptor, &fs) != 0 || !cr_origin_type_is_local((long)fs.f_type)) return CR_REGION_SLOW;
    /* Any user may mount one over a file system that hangs, where this process does not see the mount. */
    const bool overlay = (uint32_t)fs.f_type == OVERLAYFS, ramfs = (uint32_t)fs.f_type == RAMFS;
    if ((overlay || ramfs) && !cr_origin_is_local(descriptor)) return CR_REGION_SLOW;
    if (overlay && !is_on_disk(descriptor)) return CR_REGION_READ;
    if ((uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size && !(fcntl(descriptor, F_GETFL) & O_DIRECT))
        return CR_REGION_READ;
    return CR_REGION_MAP;
}

/* A ramfs keeps what is read, holes too, until the file goes. Any user may mount one, and an overlay above it. */
static bool may_be_filled(int descriptor) {
    struct statfs fs;
    if (fstatfs(descriptor, &fs) != 0) return false;
    return (uint32_t)fs.f_type == RAMFS || ((uint32_t)fs.f_type == OVERLAYFS && !is_on_disk(descriptor));
}

/* Whether the file system, which is not one of those that are known, lets the file be read, and by its size. The answer to
 * what a file without a size holds may depend on who asks (procfs), so the daemon does not read it for others. */
static cr_status check_foreign(int descriptor, uint64_t size, cr_error *error) {
    _Alignas(4096) char page[4096]; /* as O_DIRECT may want it */
    struct stat st;
    ssize_t got;
    if (may_be_filled(descriptor))
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "descriptor: to read a ramfs, or an overlay that lies on no disk, of another mount namespace may "
            "take memory for its holes; copy the file to a memfd, or stream it");
    do got = pread(descriptor, page, size ? 0 : sizeof page, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "descriptor: reading at an offset fails (%s), as of secret memory (memfd_secret); copy it to a "
                       "memfd, or stream it",
                       strerror(errno));
    if (got == 0 || fstat(descriptor, &st) != 0 || st.st_size != 0) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "descriptor: the file has bytes, but a size of 0 (as in /proc), so its end is unknown; stream it");
}

cr_status cr_region_inspect(cr_region *region, int descriptor, cr_error *error) {
    struct stat st;
    if (fstat(descriptor, &st) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: cannot inspect the file: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: %s, where a regular file or memfd is needed",
                       kind_of(st.st_mode));
    region->descriptor = descriptor;
    region->size = (uint64_t)st.st_size;
    region->way = choose_way(descriptor, &st);
    int seals = fcntl(descriptor, F_GET_SEALS);
    region->shared = seals >= 0;
    region->sealed = seals >= 0 && seals & F_SEAL_SHRINK;
    return region->way == CR_REGION_SLOW ? check_foreign(descriptor, region->size, error) : CR_OK;
}

cr_status cr_region_look(const cr_region *region, uint64_t *size, bool *whole, cr_error *error) {
    struct stat st;
    if (fstat(region->descriptor, &st) != 0)
        return cr_fail(error, CR_DATA_LOSS, "descriptor: cannot inspect the file: %s", strerror(errno));
    *size = (uint64_t)st.st_size;
    *whole = (uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size;
    return CR_OK;
}

void cr_region_close(cr_region *region) {
    if (region->descriptor >= 0) close(region->descriptor);
    region->descriptor = -1;
}

cr_status cr_region_map(const cr_region *region, uint64_t offset, size_t bytes, cr_window *window, cr_error *error) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), lead = offset % page;
    window->length = (size_t)(bytes + lead);
    const int rights = region->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    window->base = mmap(NULL, window->length, rights, MAP_SHARED, region->descriptor, (off_t)(offset - lead));
    if (window->base == MAP_FAILED) {
        *window = (cr_window){0};
        return cr_fail(error, errno == ENOMEM ? CR_RESOURCE_EXHAUSTED : CR_DATA_LOSS,
                       "descriptor: cannot map %zu bytes at %llu: %s", bytes, (unsigned long long)offset,
                       strerror(errno));
    }
    window->data = (const uint8_t *)window->base + lead;
    cr_metric_add(windows, 1);
    return CR_OK;
}

void cr_region_unmap(cr_window *window) {
    if (!window->base) return;
    munmap(window->base, window->length);
    *window = (cr_window){0};
    cr_metric_sub(windows, 1);
}

/* Asks for one byte here and there, without waiting for it. Mostly a file is in the cache as a whole or not at all; what
 * slips through costs a lane a wait, nothing else. */
static bool is_cached(const cr_region *region, uint64_t offset, size_t bytes) {
    for (size_t at = 0; at < bytes; at += CACHED_STEP) {
        char byte;
        struct iovec part = {&byte, 1};
        if (preadv2(region->descriptor, &part, 1, (off_t)(offset + at), RWF_NOWAIT) != 1) return false;
    }
    return true;
}

void cr_region_fetch(const cr_region *region, uint64_t offset, const uint8_t *data, size_t bytes) {
    if (is_cached(region, offset, bytes)) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data & ~(page - 1);
    size_t length = (size_t)((uintptr_t)data + bytes - from);
    madvise((void *)from, length, MADV_POPULATE_READ); /* NOLINT: the page that data lies in */
}

/* Where a file ends that has nothing at a place; of some that have a size of 0 nobody knows. */
static uint64_t end_before(int descriptor, uint64_t place) {
    struct stat st;
    return fstat(descriptor, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size < place ? (uint64_t)st.st_size : place;
}

cr_status cr_region_read(const cr_region *region, uint64_t offset, void *into, size_t bytes, cr_error *error) {
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = pread(region->descriptor, (char *)into + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return cr_fail(error, CR_DATA_LOSS, "descriptor: cannot read at %llu: %s",
                           (unsigned long long)(offset + got), strerror(errno));
        if (n == 0)
            return cr_fail(error, CR_DATA_LOSS, "descriptor: the file ended at %llu while it was read up to %llu",
                           (unsigned long long)end_before(region->descriptor, offset + got),
                           (unsigned long long)(offset + bytes));
        got += (size_t)n;
    }
    return CR_OK;
}

cr_status cr_region_still(const cr_region *region, uint64_t end, cr_error *error) {
    struct stat st;
    if (fstat(region->descriptor, &st) != 0 || (uint64_t)st.st_size < end)
        return cr_fail(error, CR_DATA_LOSS, "descriptor: the file was cut to under %llu bytes while it was read",
                       (unsigned long long)end);
    return CR_OK;
}
