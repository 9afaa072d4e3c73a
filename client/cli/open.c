/* open: a file of the command line, or standard input, for reading.
 *
 * Thread: one. Owner: the caller closes the descriptor, unless it is standard input's. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/npz.h"

int cli_open(const char *file, const char **name, int *fd, bool *archive, struct stat *st) {
    const bool standard = strcmp(file, "-") == 0;
    *archive = false;
    *name = standard ? "standard input" : file;
    *fd = standard ? STDIN_FILENO : npz_open(file, archive);
    if (*fd < 0)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_NOINPUT, "cannot open %s: %s", *name,
                        strerror(errno));
    if (fstat(*fd, st) != 0) return cli_fail(EXIT_IO, "cannot examine %s: %s", *name, strerror(errno));
    if (S_ISDIR(st->st_mode)) return cli_fail(EXIT_NOINPUT, "%s is a directory, not a file", *name);
    return EXIT_OK;
}
