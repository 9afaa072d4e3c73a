/* holes: one userfaultfd for all mappings, and what seals promise. Thread: any. Owner: the process. */
#include "engine/memory/holes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

/* Linux's, which older headers lack. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { FLAGS = O_CLOEXEC | O_NONBLOCK };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watcher = -1;
static char refusal[160];
static int lasting_seals; /* one of them keeps Linux from punching */

/* User mode only needs no right. Linux before 5.11 does not know it, and asks for a right or its sysctl. */
static int by_system_call(void) {
    long fd = syscall(SYS_userfaultfd, FLAGS | UFFD_USER_MODE_ONLY);
    if (fd < 0 && errno == EINVAL) fd = syscall(SYS_userfaultfd, FLAGS);
    return (int)fd;
}

/* What a container that may not make the system call can be given. */
static int by_device(void) {
    const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    const int fd = ioctl(device, USERFAULTFD_IOC_NEW, FLAGS | UFFD_USER_MODE_ONLY);
    close(device);
    return fd;
}

static void open_watcher(void) {
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
    int fd = by_system_call();
    const int refused = errno;
    if (fd < 0) fd = by_device();
    if (fd < 0) {
        snprintf(refusal, sizeof refusal, "%s", strerror(refused));
        return;
    }
    if (ioctl(fd, UFFDIO_API, &api) == 0) {
        watcher = fd;
        return;
    }
    snprintf(refusal, sizeof refusal, "it watches no shared memory: %s", strerror(errno));
    close(fd);
}

/* F_SEAL_WRITE has always forbidden to punch. Whether F_SEAL_FUTURE_WRITE does, Linux itself is asked. */
static void try_seals(void) {
    enum { PAGE = 65536 };
    const int fd = memfd_create("cured", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    lasting_seals = F_SEAL_WRITE;
    if (fd < 0) return;
    if (ftruncate(fd, PAGE) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 &&
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) != 0 && errno == EPERM)
        lasting_seals |= F_SEAL_FUTURE_WRITE;
    close(fd);
}

static void prepare(void) {
    open_watcher();
    try_seals();
}

bool cr_holes_open(const char **why) {
    pthread_once(&once, prepare);
    *why = refusal;
    return watcher >= 0;
}

bool cr_holes_watch(void *start, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_once(&once, prepare);
    struct uffdio_register range = {.range = {(uintptr_t)start, (bytes + page - 1) / page * page},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    return watcher >= 0 && ioctl(watcher, UFFDIO_REGISTER, &range) == 0;
}

/* Where the first hole is, of what was allocated but never written, too; -1: nobody knows. A description of our own, because
 * looking moves its place. */
static off_t first_hole(int descriptor) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const int own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (own < 0) return -1;
    const off_t at = lseek(own, 0, SEEK_HOLE);
    close(own);
    return at;
}

bool cr_holes_never(int descriptor, uint64_t bytes) {
    pthread_once(&once, prepare);
    const int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || !(seals & lasting_seals)) return false;
    const off_t hole = first_hole(descriptor);
    return hole >= 0 && (uint64_t)hole >= bytes;
}

bool cr_holes_none(int descriptor, uint64_t bytes) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    if (fstat(descriptor, &st) != 0) return true;
    const uint64_t there = (uint64_t)st.st_blocks * 512;
    if (there <= (bytes + page - 1) / page * page)
        return there >= bytes; /* none beyond the end: asked without a walk */
    const off_t hole = first_hole(descriptor);
    return hole < 0 || (uint64_t)hole >= bytes;
}
