/* small: see small.h. Thread: the caller's. Owner: the caller. */
#include "engine/small.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "kernels/core/dtype.h"

enum {
    CLOSED_HERE_BYTES = 1024 * 1024, /* of memory: to free as much takes some 50 us */
    CACHESTAT = 451,                 /* of Linux 6.5; the C library of Debian 12 does not know it */
};

/* Whether Linux need not wait for a disk to read the bytes. */
static bool in_memory(int descriptor, uint64_t offset, uint64_t bytes) {
    const struct { uint64_t offset, bytes; } range = {offset, bytes};
    struct {
        uint64_t cached, dirty, under_write, evicted, lately;
    } pages = {0};
    struct sysinfo host;
    if (sysinfo(&host) == 0 && host.totalswap == 0) return true;
    return syscall(CACHESTAT, descriptor, &range, &pages, 0u) == 0 && pages.evicted == 0;
}

cr_small cr_small_read(const cr_feed_options *o, cr_dtype dtype, uint8_t *into, size_t room, uint64_t *bytes,
                       cr_error *error) {
    const cr_source *source = &o->input.sources[0];
    const cr_kept *kept = source->kept;
    struct stat st;
    uint64_t offset;
    cr_region region = {.descriptor = source->descriptor};
    if (o->input.count != 1 || (!o->to_end && o->count > room / cr_dtype_size(dtype))) return CR_SMALL_NOT;
    if (kept ? !kept->region.shared || atomic_load(&kept->lost) : fcntl(source->descriptor, F_GET_SEALS) < 0)
        return CR_SMALL_NOT;
    if (kept) region = kept->region;
    if (fstat(region.descriptor, &st) != 0 || (uint64_t)st.st_size < region.size) return CR_SMALL_NOT;
    if (!kept) region.size = (uint64_t)st.st_size;
    if (cr_feed_measure(o, dtype, region.size, &offset, bytes, error) != CR_OK) return CR_SMALL_FAILED;
    if (*bytes > room || !in_memory(region.descriptor, offset, *bytes)) return CR_SMALL_NOT;
    return cr_region_read(&region, offset, into, (size_t)*bytes, error) == CR_OK ? CR_SMALL_READ : CR_SMALL_FAILED;
}

static dev_t lasting[2];
static pthread_once_t known = PTHREAD_ONCE_INIT;

static void know(void) {
    struct stat st;
    const int fd = memfd_create("cured", MFD_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) lasting[0] = st.st_dev;
    if (fd >= 0) close(fd);
    if (stat("/dev/shm", &st) == 0) lasting[1] = st.st_dev;
}

/* Of memfds and shm_open(). Another tmpfs may be mounted nowhere any more, and go with its last descriptor: as a whole. */
static bool is_lasting(dev_t device) {
    pthread_once(&known, know);
    return device == lasting[0] || device == lasting[1];
}

void cr_small_close(const cr_feed_options *o) {
    const int descriptor = o->input.sources[0].descriptor;
    struct stat st;
    if (fstat(descriptor, &st) == 0 && is_lasting(st.st_dev) && (uint64_t)st.st_blocks * 512 <= CLOSED_HERE_BYTES)
        close(descriptor);
    else
        cr_files_close(o->files, o->owner, descriptor);
}
