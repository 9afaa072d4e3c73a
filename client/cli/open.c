/* open: a file of the command line, or standard input, for reading.
 *
 * Thread: one. Owner: the caller closes the descriptor, unless it is standard input's. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/npz.h"

static const char *const addresses[] = {"unix", "tcp", "tls", "embedded", "auto"};
enum { ADDRESSES = sizeof addresses / sizeof addresses[0] };

static const char *address_at(size_t index) { return index < ADDRESSES ? addresses[index] : NULL; }

/* There is no such file: perhaps it was meant for something else. */
static int no_file(const char *file, int why) {
    char word[12];
    size_t length = 0;
    while (isalnum((unsigned char)file[length]) || (length != 0 && strchr("+-.", file[length]) != NULL && file[length]))
        length++;
    const char *rest = file + length, *meant = NULL;
    if (length != 0 && strncmp(rest, "://", 3) == 0)
        return cli_fail(EXIT_NOINPUT,
                        "%s is a URL, not a path: fetch it first, or read it from a pipe, as in curl -s URL | %s sum -",
                        file, cli_program_here.name);
    if (length != 0 && length < sizeof word && *rest == ':') {
        for (size_t i = 0; i < length; i++) word[i] = (char)tolower((unsigned char)file[i]);
        word[length] = '\0';
        meant = cli_nearest(word, address_at);
    }
    if (meant != NULL)
        return cli_fail(EXIT_NOINPUT, "cannot open %s: %s (a daemon's address goes behind --connect: %s:%s)", file,
                        strerror(why), meant, rest + 1);
    return cli_fail(EXIT_NOINPUT, "cannot open %s: %s", file, strerror(why));
}

int cli_open(const char *file, const char **name, int *fd, bool *archive, struct stat *st) {
    const bool standard = strcmp(file, "-") == 0;
    *archive = false;
    *name = standard ? "standard input" : file;
    *fd = standard ? STDIN_FILENO : npz_open(file, archive);
    if (*fd < 0 && (errno == EACCES || errno == EPERM))
        return cli_fail(EXIT_DENIED, "cannot open %s: %s", *name, strerror(errno));
    if (*fd < 0) return no_file(file, errno);
    if (fstat(*fd, st) != 0) return cli_fail(EXIT_IO, "cannot examine %s: %s", *name, strerror(errno));
    if (S_ISDIR(st->st_mode)) return cli_fail(EXIT_NOINPUT, "%s is a directory, not a file", *name);
    return EXIT_OK;
}
