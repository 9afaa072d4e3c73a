/* guard: the SIGBUS handler and the thread's views. Thread: any (two views each). Owner: the process. */
#include "engine/memory/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/metrics.h"

/* initial-exec: the handler may not run the dynamic linker's lazy allocation of thread-local storage. */
typedef struct view {
    volatile uintptr_t start, end;
    volatile sig_atomic_t faulted;
    _Atomic bool *volatile lost;
} view;

static _Thread_local view views[2] __attribute__((tls_model("initial-exec"))); /* what is read, what is written */

static uintptr_t page_mask;

/* Zeros from the fault on to the view's end. They can be written, because what is read may be written elsewhere. */
static bool lay_zeros(view *v, uintptr_t at) {
    const uintptr_t start = v->start, end = v->end, from = at & page_mask;
    if (start >= end || at < (start & page_mask) || at >= end) return false;
    void *over = (void *)from; /* NOLINT: an address from Linux */
    if (v->lost) atomic_store(v->lost, true);
    /* By the system call itself: sanitizers take their mmap for a write that nobody may read beside. Here they may. */
    long got =
        syscall(SYS_mmap, over, end - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
    if (got != (long)from) return false;
    v->faulted = 1;
    return true;
}

static void on_sigbus(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    /* Not ours: back to the default action, which the repeated access then takes. */
    if (!lay_zeros(&views[0], at) && !lay_zeros(&views[1], at)) signal(signal_number, SIG_DFL);
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

static void enter(view *v, const void *start, size_t bytes, _Atomic bool *lost) {
    v->faulted = 0;
    v->lost = lost;
    v->end = (uintptr_t)start + bytes;
    v->start = (uintptr_t)start;
}

static bool leave(view *v) {
    bool faulted = v->faulted;
    v->start = v->end = 0;
    if (faulted) cr_metric_add(faults_total, 1);
    return faulted;
}

void cr_guard_enter(const void *start, size_t bytes) { enter(&views[0], start, bytes, NULL); }

void cr_guard_enter_shared(const void *start, size_t bytes, _Atomic bool *lost) {
    enter(&views[0], start, bytes, lost);
}

bool cr_guard_leave(void) { return leave(&views[0]); }

void cr_guard_enter_writing(const void *start, size_t bytes, _Atomic bool *lost) {
    enter(&views[1], start, bytes, lost);
}

bool cr_guard_leave_writing(void) { return leave(&views[1]); }
