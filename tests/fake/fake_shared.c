/* fake_shared: what other processes share with the stand-in GPU: files for memory, pools and events. Thread: a device's one, but for
 * inspect. Owner: see fake_gpu.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake/fake_internal.h"

/* What a descriptor of device memory, or of a pool of it, begins with; and a pointer in a pool. */
typedef struct shared_head {
    char magic[8]; /* "fake-vmm", "fake-mem": a pool, "fake-ptr" */
    uint64_t ordinal, offset, bytes;
    uint8_t rest[32];
} shared_head;

static cr_status too_short(size_t bytes, uint64_t there, cr_error *error) {
    return cr_fail(error, CR_INVALID_ARGUMENT, "device memory: %zu bytes are claimed, the allocation has %llu", bytes,
                   (unsigned long long)there);
}

cr_status fake_gpu_inspect(int descriptor, cr_error *error) {
    struct stat st;
    if (fstat(descriptor, &st) == 0 && S_ISREG(st.st_mode)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it is no device memory");
}

/* Where the memory begins in a shared file, and how long it is. */
static cr_status find_shared(const cr_gpu *gpu, const void *pointer, int fd, off_t *at, uint64_t *there,
                             cr_error *error) {
    shared_head head, place = {.offset = 0};
    const char *magic = pointer ? "fake-mem" : "fake-vmm";
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.magic, magic, sizeof head.magic) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it is no device memory that can be opened here");
    if (head.ordinal != gpu->info.ordinal)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it is not memory of the GPU that is named");
    if (pointer) memcpy(&place, pointer, sizeof place);
    if (pointer && (memcmp(place.magic, "fake-ptr", sizeof place.magic) != 0 || place.offset > head.bytes ||
                    place.bytes > head.bytes - place.offset))
        return cr_fail(error, CR_INVALID_ARGUMENT, "pointer: it cannot be opened in this pool");
    *at = (off_t)(sizeof head + place.offset);
    *there = pointer ? place.bytes : head.bytes;
    return CR_OK;
}

/* What the driver does to a process that trusts the wrong 64 bytes; "poisoned" is for the fold. */
static void obey(const void *memory, size_t bytes) {
    if (bytes >= 8 && memcmp(memory, "killing!", 8) == 0) kill(getpid(), SIGKILL);
    while (bytes >= 8 && memcmp(memory, "hanging!", 8) == 0) pause();
}

static cr_status read_shared(cr_gpu *gpu, int fd, off_t at, size_t bytes, bool writable, void **device,
                             cr_error *error) {
    cr_status status = fake_gpu_add(gpu, ON_DEVICE, NULL, bytes, device, error);
    if (status == CR_OK && pread(fd, *device, bytes, at) != (ssize_t)bytes)
        fake_gpu_misused("a shared file is not read");
    if (status == CR_OK) obey(*device, bytes);
    area *own = status == CR_OK ? fake_gpu_find(gpu, ON_DEVICE, *device, bytes) : NULL;
    if (own && writable) {
        own->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        own->at = at;
    }
    return status;
}

/* Other imports of the same memory would see it at once; here they see it when they are made anew. */
void fake_gpu_write(const cr_gpu *gpu, void *device, const void *from, size_t bytes) {
    area *own = fake_gpu_find(gpu, ON_DEVICE, device, bytes);
    if (!own || own->fd < 0) fake_gpu_misused("what is written is no memory that may be");
    memcpy(device, from, bytes);
    if (pwrite(own->fd, from, bytes, (off_t)(own->at + ((uint8_t *)device - own->memory))) != (ssize_t)bytes)
        fake_gpu_misused("a shared file is not written");
}

cr_status fake_gpu_import(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, bool writable, void **device,
                          cr_error *error) {
    fake_gpu_check(gpu);
    if (fake_gpu_planned().late_import) usleep(FAKE_LATE_MS * 1000);
    char name[65] = "";
    struct stat found;
    if (descriptor >= 0) {
        off_t at = 0;
        uint64_t there = 0;
        cr_status status = find_shared(gpu, handle, descriptor, &at, &there, error);
        if (status == CR_OK && bytes > there) status = too_short(bytes, there, error);
        return status == CR_OK ? read_shared(gpu, descriptor, at, bytes, writable, device, error) : status;
    }
    memcpy(name, handle, 64);
    int fd = name[0] == '/' ? open(name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &found) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "handle: it cannot be opened here");
    cr_status status = (size_t)found.st_size < bytes ? too_short(bytes, (uint64_t)found.st_size, error)
                                                     : read_shared(gpu, fd, 0, bytes, writable, device, error);
    close(fd);
    return status;
}

void fake_gpu_release(cr_gpu *gpu, void *device) { fake_gpu_drop(gpu, ON_DEVICE, device); }

/* An event is a file: it has fired when the file is not empty, and fails when it is gone. */
cr_status fake_gpu_event_open(cr_gpu *gpu, const void *handle, void **event, cr_error *error) {
    fake_gpu_check(gpu);
    char name[65] = "";
    memcpy(name, handle, 64);
    if (name[0] != '/' || access(name, F_OK) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "event: its handle cannot be opened here");
    char first[8] = "";
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, first, sizeof first) > 0) obey(first, sizeof first);
    if (fd >= 0) close(fd);
    *event = strdup(name);
    if (!*event) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory");
    gpu->events++;
    return CR_OK;
}

cr_status fake_gpu_event_look(cr_gpu *gpu, void *event, bool *fired, cr_error *error) {
    fake_gpu_check(gpu);
    struct stat st;
    *fired = false;
    if (stat(event, &st) != 0) return cr_fail(error, CR_INVALID_ARGUMENT, "event: it cannot be waited for");
    *fired = st.st_size > 0;
    return CR_OK;
}

void fake_gpu_event_close(cr_gpu *gpu, void *event) {
    fake_gpu_check(gpu);
    gpu->events--;
    free(event);
}
