/* process_limits: see process_limits.h. Thread: main's, and the loop's. */
#include "server/process_limits.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/log.h"

enum { FILES_LEAST = 64 }; /* the loop, signals, a listener, the probe and threads take about 30, clients the rest */

void cr_process_ignore(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Every region holds a descriptor: those who register may have a quarter of them, for others must still be let in. */
void cr_process_raise_files(cr_config *config) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    if (limit.rlim_cur != limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (config->max_regions <= limit.rlim_cur / 4) return;
    config->max_regions = limit.rlim_cur / 4;
    cr_info("max_regions: %llu, for this process may open %llu files only", (unsigned long long)config->max_regions,
            (unsigned long long)limit.rlim_cur);
}

cr_status cr_process_check_files(cr_error *error) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_LEAST) return CR_OK;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "RLIMIT_NOFILE: this process may open %llu files, and the daemon needs %d at least (ulimit -n, "
                   "LimitNOFILE=)",
                   (unsigned long long)limit.rlim_cur, FILES_LEAST);
}
