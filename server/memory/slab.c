/* slab: one anonymous mapping cut into slabs, a stack of free ones, a queue of waiters.
 *
 * Thread: any; the pool's mutex guards everything here. Owner: the daemon. */
#include "server/memory/slab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "server/base/metrics.h"

struct cr_slabs {
    pthread_mutex_t mutex;
    uint8_t *base;
    size_t count, free_count;
    cr_list waiters;
    cr_pinner pinner; /* pin is NULL while they are not pinned */
    void *free[];
};

cr_status cr_slabs_new(size_t count, cr_slabs **out, cr_error *error) {
    if (count > SIZE_MAX / CR_SLAB_BYTES / 2)
        return cr_fail(error, CR_INVALID_ARGUMENT, "slabs: %zu is too many", count);
    cr_slabs *slabs = malloc(sizeof *slabs + count * sizeof slabs->free[0]);
    if (!slabs) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the table of %zu slabs", count);
    slabs->base = mmap(NULL, count * CR_SLAB_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_NORESERVE, -1, 0);
    if (slabs->base == MAP_FAILED) {
        int e = errno;
        free(slabs);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot map %zu slabs of 1 MiB: %s", count, strerror(e));
    }
    pthread_mutex_init(&slabs->mutex, NULL);
    cr_list_init(&slabs->waiters);
    slabs->count = slabs->free_count = count;
    slabs->pinner = (cr_pinner){0};
    for (size_t i = 0; i < count; i++) slabs->free[i] = slabs->base + (count - 1 - i) * CR_SLAB_BYTES;
    *out = slabs;
    return CR_OK;
}

cr_status cr_slabs_pin(cr_slabs *slabs, const cr_pinner *pinner, cr_error *error) {
    cr_status status = pinner->pin(pinner->argument, slabs->base, slabs->count * CR_SLAB_BYTES, false, error);
    if (status == CR_OK) slabs->pinner = *pinner;
    return status;
}

void cr_slabs_unpin(cr_slabs *slabs) {
    if (slabs->pinner.pin) slabs->pinner.unpin(slabs->pinner.argument, slabs->base);
    slabs->pinner.pin = NULL;
}

bool cr_slabs_pinned(const cr_slabs *slabs) { return slabs->pinner.pin != NULL; }

void *cr_slabs_memory(cr_slabs *slabs, size_t *bytes) {
    *bytes = slabs->count * CR_SLAB_BYTES;
    return slabs->base;
}

void cr_slabs_free(cr_slabs *slabs) {
    if (!slabs) return;
    munmap(slabs->base, slabs->count * CR_SLAB_BYTES);
    pthread_mutex_destroy(&slabs->mutex);
    free(slabs);
}

static void *take_locked(cr_slabs *slabs) {
    if (!slabs->free_count || !cr_list_empty(&slabs->waiters)) return NULL;
    cr_metric_add(slabs_used, 1);
    return slabs->free[--slabs->free_count];
}

void *cr_slab_take(cr_slabs *slabs) {
    pthread_mutex_lock(&slabs->mutex);
    void *slab = take_locked(slabs);
    pthread_mutex_unlock(&slabs->mutex);
    return slab;
}

void *cr_slab_take_or_wait(cr_slabs *slabs, cr_slab_waiter *waiter) {
    pthread_mutex_lock(&slabs->mutex);
    void *slab = take_locked(slabs);
    if (!slab) {
        cr_list_append(&slabs->waiters, &waiter->link);
        waiter->waiting = true;
        cr_metric_add(slab_waits_total, 1);
    }
    pthread_mutex_unlock(&slabs->mutex);
    return slab;
}

bool cr_slab_forget(cr_slabs *slabs, cr_slab_waiter *waiter) {
    pthread_mutex_lock(&slabs->mutex);
    bool was_waiting = waiter->waiting;
    if (was_waiting) {
        cr_list_remove(&waiter->link);
        waiter->waiting = false;
    }
    pthread_mutex_unlock(&slabs->mutex);
    return was_waiting;
}

void cr_slab_give(cr_slabs *slabs, void *slab) {
    pthread_mutex_lock(&slabs->mutex);
    cr_list *node = cr_list_pop(&slabs->waiters);
    cr_slab_waiter *waiter = node ? cr_container(node, cr_slab_waiter, link) : NULL;
    if (waiter) {
        waiter->waiting = false;
    } else {
        slabs->free[slabs->free_count++] = slab;
        cr_metric_sub(slabs_used, 1);
    }
    pthread_mutex_unlock(&slabs->mutex);
    if (waiter) waiter->granted(waiter, slab);
}

bool cr_slabs_low(cr_slabs *slabs) {
    pthread_mutex_lock(&slabs->mutex);
    bool low = !cr_list_empty(&slabs->waiters) || slabs->free_count < (slabs->count + 7) / 8;
    pthread_mutex_unlock(&slabs->mutex);
    return low;
}
