/* threads: how they start. Thread: the caller's. Owner: threads.h. */
#include "client/lib/embedded/threads.h"

#include <signal.h>

uint32_t cr_threads_start(void *(*thread_main)(void *), void *first, size_t stride, uint32_t count,
                          cr_threads_kind kind) {
    pthread_attr_t how;
    sigset_t all, before;
    uint32_t started = 0;
    if (pthread_attr_init(&how) != 0) return 0;
    if (kind == CR_THREADS_DETACHED) pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < count; started++) {
        cr_thread *thread = (cr_thread *)((char *)first + started * stride);
        if (pthread_create(&thread->id, &how, thread_main, thread) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    return started;
}
