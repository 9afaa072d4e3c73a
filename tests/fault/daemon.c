/* daemon: see daemon.h. */
#include "tests/fault/daemon.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    _exit(1); /* no report of leaks hides the reason */
}

static int listens(const daemon_process *d) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, d->address + 5);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int answered = connect(fd, (struct sockaddr *)&name, sizeof name) == 0;
    close(fd);
    return answered;
}

void daemon_start(daemon_process *d) {
    enum { TRIES = 60000 };
    char program[4096];
    const char *bin = getenv("CURED_TEST_BIN");
    NEED(bin != NULL);
    snprintf(program, sizeof program, "%s/cured", bin);
    strcpy(d->folder, "/tmp/cured-fault-XXXXXX");
    NEED(mkdtemp(d->folder) != NULL);
    snprintf(d->address, sizeof d->address, "unix:%s/s", d->folder);
    d->pid = fork();
    NEED(d->pid >= 0);
    if (d->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("CURED_TEST_FAULTS");
        execl(program, program, "--listen", d->address, "--slabs", "8", "--log-level", "error", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; !listens(d); i++) {
        NEED(i < TRIES && waitpid(d->pid, NULL, WNOHANG) == 0);
        poll(NULL, 0, 1);
    }
}

void daemon_stop(daemon_process *d) {
    int status;
    char lock[160];
    NEED(kill(d->pid, SIGTERM) == 0 && waitpid(d->pid, &status, 0) == d->pid);
    NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    snprintf(lock, sizeof lock, "%s.lock", d->address + 5);
    unlink(lock);
    rmdir(d->folder);
}

unsigned descriptors_open(void) {
    DIR *all = opendir("/proc/self/fd");
    unsigned count = 0;
    NEED(all != NULL);
    while (readdir(all) != NULL) count++;
    closedir(all);
    return count;
}
