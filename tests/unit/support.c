/* support: see support.h. Thread: any. Owner: the test. */
#include "tests/unit/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int disk_file(void) {
    const char *dir = getenv("CURED_TEST_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/unit-XXXXXX", dir && *dir ? dir : "/var/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    ck_assert_msg(fd >= 0, "cannot make %s", path);
    unlink(path);
    return fd;
}

int memory_file(void) {
    int fd = memfd_create("unit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    return fd;
}

int foreign_file(void) {
    int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
    if (fd < 0) puts("skipped in part: there is no /sys/kernel/notes here");
    return fd;
}

int sizeless_file(void) {
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

void fill_file(int fd, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t wrote = write(fd, (const char *)bytes + done, n - done);
        ck_assert_int_gt(wrote, 0);
        done += (size_t)wrote;
    }
}

size_t open_descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    size_t count = 0;
    while (readdir(dir)) count++;
    closedir(dir);
    return count - 3; /* ".", "..", and the directory's own */
}

void gate_add(gate *g) {
    pthread_mutex_lock(&g->mutex);
    g->count++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

void gate_wait(gate *g, unsigned count) {
    pthread_mutex_lock(&g->mutex);
    while (g->count < count) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

unsigned gate_count(gate *g) {
    pthread_mutex_lock(&g->mutex);
    unsigned count = g->count;
    pthread_mutex_unlock(&g->mutex);
    return count;
}

uint64_t random_next(uint64_t *state) {
    /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static _Thread_local unsigned failing;
static _Thread_local bool holding;

static size_t reallocated;

void fail_allocation(unsigned nth) { failing = nth; }

void hold_failures(bool held) { holding = held; }

static bool must_fail(void) { return !holding && failing && --failing == 0; }

/* The linker puts these in front of the allocator (CMakeLists.txt). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size) { return must_fail() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return must_fail() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *p, size_t size) {
    if (size > reallocated) reallocated = size;
    return must_fail() ? NULL : __real_realloc(p, size);
}

size_t most_reallocated(void) {
    const size_t most = reallocated;
    reallocated = 0;
    return most;
}
