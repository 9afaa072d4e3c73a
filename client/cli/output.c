/* output: bytes to a file or to standard output, complete or with a sentence.
 *
 * Thread: one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"

static bool is_standard(const char *path) { return path == NULL || strcmp(path, "-") == 0; }

int cli_check_binary(const char *path) {
    if (!is_standard(path) || !isatty(STDOUT_FILENO)) return EXIT_OK;
    return cli_fail(EXIT_USAGE,
                    "the answer is binary and standard output is a terminal: redirect it, or give --output FILE");
}

static bool write_all(int fd, const uint8_t *data, uint64_t bytes) {
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes < (1u << 30) ? (size_t)bytes : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n;
        bytes -= (uint64_t)n;
    }
    return true;
}

/* A file that is half written is not left behind (a device is). */
static int write_failed(int fd, const char *path) {
    int e = errno;
    struct stat st;
    if (path != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) unlink(path);
    return cli_fail(EXIT_IO, "cannot write to %s: %s", path != NULL ? path : "standard output", strerror(e));
}

int cli_write(const char *path, const cli_piece *pieces, size_t count) {
    if (is_standard(path)) path = NULL;
    if (path == NULL && fflush(stdout) != 0) return cli_flush();
    int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666) : STDOUT_FILENO;
    if (fd < 0)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_IO, "cannot create %s: %s", path,
                        strerror(errno));
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < count; i++)
        if (!write_all(fd, pieces[i].data, pieces[i].bytes)) code = write_failed(fd, path);
    if (path != NULL && close(fd) != 0 && code == EXIT_OK)
        code = cli_fail(EXIT_IO, "cannot write to %s: %s", path, strerror(errno));
    return code;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A new file beside `path`, as open(2) makes one, or with the old file's mode; -1, and errno. */
static int create_beside(const char *path, const struct stat *old, char name[PATH_MAX]) {
    int fd = -1;
    for (unsigned i = 0; fd < 0 && i < 100; i++) {
        if (snprintf(name, PATH_MAX, "%s.%ld-%u", path, (long)getpid(), i) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    if (fd >= 0 && old != NULL && fchmod(fd, old->st_mode & 0777) != 0) errno = 0; /* the umask's mode is good, too */
    return fd;
}

int cli_replace(const char *path, const cli_piece *pieces, size_t count) {
    struct stat old, standard;
    char target[PATH_MAX], name[PATH_MAX];
    const bool exists = !is_standard(path) && stat(path, &old) == 0;
    if (is_standard(path) || (exists && !S_ISREG(old.st_mode))) return cli_write(path, pieces, count);
    if (exists && fstat(STDOUT_FILENO, &standard) == 0 && same_file(&old, &standard))
        return cli_write(path, pieces, count);
    if (!exists || realpath(path, target) == NULL) snprintf(target, sizeof target, "%s", path);
    const int fd = create_beside(target, exists ? &old : NULL, name);
    if (fd < 0)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_IO, "cannot create %s: %s", path,
                        strerror(errno));
    bool good = true;
    for (size_t i = 0; good && i < count; i++) good = write_all(fd, pieces[i].data, pieces[i].bytes);
    good = good && (fsync(fd) == 0 || errno == EINVAL || errno == EROFS);
    int why = errno;
    if (close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && rename(name, target) == 0) return EXIT_OK;
    if (good) why = errno;
    unlink(name);
    return cli_fail(EXIT_IO, "cannot write to %s: %s", path, strerror(why));
}
