/* guard: the SIGBUS handler and the thread's view. Thread: any (one view each). Owner: the process. */
#include "server/memory/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/metrics.h"

/* initial-exec: the handler may not run the dynamic linker's lazy allocation of thread-local storage. */
static _Thread_local struct {
    volatile uintptr_t start, end;
    volatile sig_atomic_t faulted;
    _Atomic bool *volatile lost;
} view __attribute__((tls_model("initial-exec")));

static uintptr_t page_mask;

static void on_sigbus(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr, start = view.start, end = view.end;
    if (start < end && at >= (start & page_mask) && at < end) {
        uintptr_t from = at & page_mask;
        void *over = (void *)from; /* NOLINT: an address from Linux */
        if (view.lost) atomic_store(view.lost, true);
        /* By the system call itself: sanitizers take their mmap for a write that nobody may read beside. Here they may. */
        long got = syscall(SYS_mmap, over, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
        if (got == (long)from) {
            view.faulted = 1;
            errno = saved;
            return;
        }
    }
    /* Not ours: back to the default action, which the repeated access then takes. */
    signal(signal_number, SIG_DFL);
    errno = saved;
}

cr_status cr_guard_install(cr_error *error) {
    page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, NULL) != 0)
        return cr_fail(error, CR_INTERNAL, "cannot install the SIGBUS handler: %s", strerror(errno));
    return CR_OK;
}

void cr_guard_enter(const void *start, size_t bytes) { cr_guard_enter_shared(start, bytes, NULL); }

void cr_guard_enter_shared(const void *start, size_t bytes, _Atomic bool *lost) {
    view.faulted = 0;
    view.lost = lost;
    view.end = (uintptr_t)start + bytes;
    view.start = (uintptr_t)start;
}

bool cr_guard_leave(void) {
    bool faulted = view.faulted;
    view.start = view.end = 0;
    if (faulted) cr_metric_add(faults_total, 1);
    return faulted;
}
