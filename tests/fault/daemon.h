/* daemon: starts the daemon for a program of tests/fault, and asks it for what is done with it.
 *
 * Thread: one. Owner: the program; daemon_stop ends the daemon and removes its folder. */
#ifndef CURED_TESTS_FAULT_DAEMON_H
#define CURED_TESTS_FAULT_DAEMON_H

#include <sys/types.h>

typedef struct daemon_process {
    pid_t pid;
    char folder[64], address[128];
} daemon_process;

/* Prints the reason and ends the program with 1. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define NEED(what)                                                         \
    do {                                                                   \
        if (!(what)) fail("%s:%d: not so: %s", __FILE__, __LINE__, #what); \
    } while (0)

/* Starts CURED_TEST_BIN/cured on a Unix socket of its own and waits until it listens. */
void daemon_start(daemon_process *d);
/* Ends it with SIGTERM; the program fails unless its exit status is 0. */
void daemon_stop(daemon_process *d);
/* Open descriptors of this process. */
unsigned descriptors_open(void);

#endif
