/* passed: see passed.h. Thread: main's, at start. Owner: see passed.h. */
#include "server/transport/passed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

cr_status cr_passed_count(uint32_t *count, cr_error *error) {
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t whose = 0, number = 0;
    *count = 0;
    const bool ours = pid && fds && cr_digits(pid, strlen(pid), 10, &whose) && whose == (uint64_t)getpid();
    const bool good = !ours || (cr_digits(fds, strlen(fds), 10, &number) && number <= CR_PASSED_SOCKETS_MOST);
    unsetenv("LISTEN_PID"); /* LISTEN_FDS stays: a reload sees by it that no default address is needed */
    if (!good)
        return cr_fail(error, CR_INVALID_ARGUMENT, "LISTEN_FDS: it must be a number of sockets from 0 to %d",
                       CR_PASSED_SOCKETS_MOST);
    *count = (uint32_t)number;
    for (uint32_t i = 0; i < *count; i++) fcntl(CR_PASSED_FIRST + (int)i, F_SETFD, FD_CLOEXEC);
    return CR_OK;
}
