/* text_file: see text_file.h. Thread: any. Owner: see text_file.h. */
#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A FIFO would keep the opener waiting: so O_NONBLOCK, then a look. */
static cr_status open_file(const char *path, const char *shown, struct stat *st, int *descriptor, cr_error *error) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return cr_fail(error, errno == ENOENT ? CR_NOT_FOUND : CR_INVALID_ARGUMENT, "%s: %s", shown, strerror(errno));
    *descriptor = fd;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return CR_OK;
    close(fd);
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: it must be a regular file, not a directory, pipe or device", shown);
}

/* As many bytes as come. False: errno says why. */
static bool fill(int fd, char *buffer, size_t room, size_t *used) {
    *used = 0;
    while (*used < room) {
        const ssize_t got = read(fd, buffer + *used, room - *used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        *used += (size_t)got;
    }
    return true;
}

cr_status cr_text_file_read(const char *path, const char *shown, size_t most, struct stat *st, char **text,
                            size_t *length, cr_error *error) {
    struct stat own;
    int fd = -1;
    cr_status status = open_file(path, shown, st ? st : &own, &fd, error);
    if (status) return status;
    char *buffer = malloc(most + 2);
    if (!buffer)
        status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "%s: no memory to read it", shown);
    else if (!fill(fd, buffer, most + 1, length))
        status = cr_fail(error, CR_INVALID_ARGUMENT, "%s: cannot read it: %s", shown, strerror(errno));
    else if (*length > most)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "%s: larger than %zu bytes", shown, most);
    close(fd);
    if (status) {
        free(buffer);
        return status;
    }
    buffer[*length] = '\0';
    *text = buffer;
    return CR_OK;
}
