/* pool: threads of one connection that fold beside the caller's, as many as it was asked for.
 *
 * Thread: cr_local_pool_new and cr_local_pool_free on the caller's. Owner: the connection's local. */
#include <stdlib.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/embedded/threads.h"

typedef struct pool_thread {
    cr_thread thread;
    cr_local_pool *pool;
    cr_worker worker;
} pool_thread;

struct cr_local_pool {
    cr_queue *queue;
    uint32_t count, claimers; /* threads here; and with the caller's */
    pool_thread threads[];
};

static void *thread_main(void *argument) {
    pool_thread *own = argument;
    const cr_local_pool *pool = own->pool;
    while (cr_worker_next(&own->worker, pool->queue, pool->claimers, true)) cr_worker_fold(&own->worker, pool->queue);
    cr_worker_end(&own->worker, pool->queue);
    return NULL;
}

cr_local_pool *cr_local_pool_new(cr_queue *queue, uint32_t threads, uint32_t claimers) {
    cr_local_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->threads[0]);
    if (pool == NULL) return NULL;
    pool->queue = queue;
    pool->claimers = claimers;
    for (uint32_t i = 0; i < threads; i++) pool->threads[i].pool = pool;
    pool->count = cr_threads_start(thread_main, pool->threads, sizeof pool->threads[0], threads, CR_THREADS_JOINED);
    return pool;
}

void cr_local_pool_free(cr_local_pool *pool) {
    if (pool == NULL) return;
    for (uint32_t i = 0; i < pool->count; i++) pthread_join(pool->threads[i].thread.id, NULL);
    free(pool);
}
