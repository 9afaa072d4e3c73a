/* standard: descriptors 0, 1 and 2 of a program that was started without some of them, as by `program >&-`.
 *
 * The next file or socket that such a program opens is its standard output: an answer goes to a peer or into a file, and nobody is
 * told that it is lost. So a descriptor that is lacking becomes one that nothing can be read from or written to.
 *
 * Thread: main's, before all else. */
#ifndef CURED_BASE_STANDARD_H
#define CURED_BASE_STANDARD_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static inline void cr_standard_hold(void) {
    int fd;
    do fd = open("/dev/null", O_PATH); /* the least that is free */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

/* The exit status of a program that has printed its answer: 0, or 74 after a sentence where it could not. */
static inline int cr_standard_printed(const char *program) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    return 74;
}

#endif
