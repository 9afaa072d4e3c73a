/* start: asks how many GPUs there are, for a limited time, because a driver whose GPU is not well hangs in its first
 * call. The lane limits what opening a GPU takes (lane.c).
 *
 *   asked ──► answered: both let go, the last one frees
 *        └──► too late: left behind
 *
 * Thread: main's; the question is asked on a thread of its own. Owner: whoever of the two lets go last. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "server/lanes/gpu/internal.h"

typedef struct question {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const cr_gpu_api *api;
    bool answered, left; /* mutex */
    uint32_t count;
    cr_error why;
} question;

static void *ask(void *argument) {
    question *q = argument;
    cr_error why = {CR_OK, ""};
    const uint32_t count = q->api->count(&why);
    pthread_mutex_lock(&q->mutex);
    q->answered = true;
    q->count = count;
    q->why = why;
    const bool left = q->left;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    if (left) free(q);
    return NULL;
}

void cr_gpu_cond_init(pthread_cond_t *changed) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct timespec cr_gpu_until(uint64_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    return until;
}

uint32_t cr_gpu_count(const cr_gpu_api *api, uint64_t limit_ms, bool *hung, cr_error *why) {
    question *q = calloc(1, sizeof *q);
    pthread_t thread;
    if (q) {
        pthread_mutex_init(&q->mutex, NULL);
        cr_gpu_cond_init(&q->changed);
        q->api = api;
    }
    if (!q || pthread_create(&thread, NULL, ask, q) != 0) {
        free(q);
        cr_fail(why, CR_RESOURCE_EXHAUSTED, "there is no memory or no thread to look for GPUs with");
        return 0;
    }
    const struct timespec until = cr_gpu_until(limit_ms);
    int late = 0;
    pthread_mutex_lock(&q->mutex);
    while (!q->answered && late != ETIMEDOUT) late = pthread_cond_timedwait(&q->changed, &q->mutex, &until);
    *hung = q->left = !q->answered;
    const uint32_t count = q->answered ? q->count : 0;
    if (q->answered) *why = q->why;
    pthread_mutex_unlock(&q->mutex);
    if (!*hung) {
        pthread_join(thread, NULL);
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->mutex);
        free(q);
        return count;
    }
    pthread_detach(thread);
    cr_fail(why, CR_DEADLINE_EXCEEDED,
            "the driver has not said within gpu_start_timeout_ms, %llu ms, which GPUs there are",
            (unsigned long long)limit_ms);
    return 0;
}
