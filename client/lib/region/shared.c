/* shared: arrays in memory that the daemon can read where they are: a memfd, sealed so that nobody can cut it, with all of its
 * pages there before anybody writes.
 *
 * Thread: any. Owner: the program, until cured_array_free. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/lib/error.h"
#include "kernels/core/dtype.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif

struct cured_array {
    int fd;
    void *data;
    size_t bytes;
};

/* What can be allocated now without taking anybody's memory away: asking for more would not fail, but end some program. */
static uint64_t available_bytes(void) {
    char line[128];
    unsigned long long kib = UINT64_MAX >> 10;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    if (f != NULL) fclose(f);
    return (uint64_t)kib << 10;
}

/* A descriptor of bytes of sealed memory; -1, and errno. posix_fallocate: what there is no memory for is found out here, and
 * not by a signal later. */
static int make_memory(size_t bytes) {
    struct rlimit most; /* of files, and memory counts: beyond it the kernel would send SIGXFSZ */
    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && bytes > most.rlim_cur) return -1;
    int fd = memfd_create("cured-array", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    int failed = ftruncate(fd, (off_t)bytes) != 0 ? errno : 0;
    if (!failed) do
            failed = posix_fallocate(fd, 0, (off_t)bytes);
        while (failed == EINTR);
    if (!failed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) failed = errno;
    if (!failed) return fd;
    close(fd);
    errno = failed;
    return -1;
}

cured_status cured_array_alloc(cured_dtype dtype, uint64_t count, cured_array **out, cured_error *error) {
    size_t size = cured_dtype_size(dtype);
    *out = NULL;
    if (!cr_dtype_is_input((cr_dtype)dtype))
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
    if (count == 0 || count > (uint64_t)PTRDIFF_MAX / size)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is %llu, must be 1 to %llu elements of %s",
                          (unsigned long long)count, (unsigned long long)PTRDIFF_MAX / size, cured_dtype_name(dtype));
    cured_array *array = malloc(sizeof *array);
    if (array == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for an array");
    array->bytes = (size_t)count * size;
    errno = ENOMEM;
    array->fd = array->bytes <= available_bytes() ? make_memory(array->bytes) : -1;
    array->data = MAP_FAILED;
    if (array->fd >= 0)
        array->data = mmap(NULL, array->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, array->fd, 0);
    if (array->data == MAP_FAILED) {
        cured_status status = cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "cannot make an array of %zu bytes: %s",
                                         array->bytes, strerror(errno));
        if (array->fd >= 0) close(array->fd);
        free(array);
        return status;
    }
    *out = array;
    return cr_cl_fail(error, CR_OK, "%s", "");
}

void *cured_array_data(const cured_array *array) { return array->data; }

size_t cured_array_bytes(const cured_array *array) { return array->bytes; }

int cured_array_fd(const cured_array *array) { return array->fd; }

void cured_array_free(cured_array *array) {
    if (array == NULL) return;
    munmap(array->data, array->bytes);
    close(array->fd);
    free(array);
}
