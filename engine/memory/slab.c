/* slab: one anonymous mapping cut into slabs, a stack of free ones, a line of waiters, and who holds how many.
 *
 * Thread: any; the pool's mutex guards everything here. Owner: the daemon. */
#include "engine/memory/slab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/metrics.h"

enum { BUCKET_BITS = 8, BUCKETS = 1 << BUCKET_BITS };

/* An owner that holds slabs. */
typedef struct holder {
    cr_list link; /* in its bucket, or among the spare ones */
    uint64_t owner;
    size_t held;
} holder;

struct cr_slabs {
    pthread_mutex_t mutex;
    uint8_t *base;
    size_t count, free_count, waiting;
    cr_turns *waiters;
    bool asked;
    uint64_t last; /* the owner that asked last */
    size_t run;    /* how often in a row */
    cr_list buckets[BUCKETS], spare;
    uint64_t factor;  /* of the buckets' hash */
    cr_pinner pinner; /* pin is NULL while they are not pinned */
    void **free;
    holder **holder_of; /* of each slab that is out */
    holder holders[];   /* one for each slab: nobody holds less than one */
};

cr_status cr_slabs_new(size_t count, cr_slabs **out, cr_error *error) {
    if (count > SIZE_MAX / CR_SLAB_BYTES / 2)
        return cr_fail(error, CR_INVALID_ARGUMENT, "slabs: %zu is too many", count);
    const size_t each = sizeof(holder) + sizeof(void *) + sizeof(holder *);
    cr_slabs *slabs = malloc(sizeof *slabs + count * each);
    cr_turns *waiters = slabs ? cr_turns_new() : NULL;
    if (!waiters) {
        free(slabs);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the table of %zu slabs", count);
    }
    slabs->base = mmap(NULL, count * CR_SLAB_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_NORESERVE, -1, 0);
    if (slabs->base == MAP_FAILED) {
        int e = errno;
        cr_turns_free(waiters);
        free(slabs);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot map %zu slabs of 1 MiB: %s", count, strerror(e));
    }
    pthread_mutex_init(&slabs->mutex, NULL);
    slabs->waiters = waiters;
    slabs->count = slabs->free_count = count;
    slabs->waiting = 0;
    slabs->asked = false;
    slabs->run = SIZE_MAX; /* the first to ask is alone */
    slabs->factor = cr_hash_factor();
    slabs->pinner = (cr_pinner){0};
    slabs->free = (void **)&slabs->holders[count];
    slabs->holder_of = (holder **)&slabs->free[count];
    cr_list_init(&slabs->spare);
    for (size_t i = 0; i < BUCKETS; i++) cr_list_init(&slabs->buckets[i]);
    for (size_t i = 0; i < count; i++) {
        slabs->free[i] = slabs->base + (count - 1 - i) * CR_SLAB_BYTES;
        cr_list_append(&slabs->spare, &slabs->holders[i].link);
    }
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
    cr_turns_free(slabs->waiters);
    pthread_mutex_destroy(&slabs->mutex);
    free(slabs);
}

/* The functions below are called with the mutex held, but for those of the header. */

static cr_list *bucket_of(cr_slabs *slabs, uint64_t owner) {
    return &slabs->buckets[cr_hash(slabs->factor, owner, BUCKET_BITS)];
}

/* NULL: it holds none. */
static holder *find_holder(cr_slabs *slabs, uint64_t owner) {
    cr_list *bucket = bucket_of(slabs, owner);
    for (cr_list *node = bucket->next; node != bucket; node = node->next) {
        holder *h = cr_container(node, holder, link);
        if (h->owner == owner) return h;
    }
    return NULL;
}

static size_t number_of(const cr_slabs *slabs, const void *slab) {
    return (size_t)((const uint8_t *)slab - slabs->base) / CR_SLAB_BYTES;
}

static bool may_have(cr_slabs *slabs, uint64_t owner) {
    if (!slabs->free_count) return false;
    if (slabs->last == owner && slabs->run / CR_SLAB_ALONE >= slabs->count) return true;
    const holder *h = find_holder(slabs, owner);
    return !h || h->held < CR_SLAB_SHARE * slabs->free_count;
}

static void *hand_out(cr_slabs *slabs, uint64_t owner) {
    void *slab = slabs->free[--slabs->free_count];
    holder *h = find_holder(slabs, owner);
    if (!h) {
        h = cr_container(cr_list_pop(&slabs->spare), holder, link);
        h->owner = owner;
        h->held = 0;
        cr_list_append(bucket_of(slabs, owner), &h->link);
    }
    h->held++;
    slabs->holder_of[number_of(slabs, slab)] = h;
    cr_metric_add(slabs_used, 1);
    return slab;
}

static void take_back(cr_slabs *slabs, void *slab) {
    holder *h = slabs->holder_of[number_of(slabs, slab)];
    slabs->free[slabs->free_count++] = slab;
    cr_metric_sub(slabs_used, 1);
    if (--h->held) return;
    cr_list_remove(&h->link);
    cr_list_append(&slabs->spare, &h->link);
}

static void *take_locked(cr_slabs *slabs, const cr_slab_asker *asker) {
    if (slabs->asked && slabs->last != asker->owner) slabs->run = 0;
    if (slabs->run != SIZE_MAX) slabs->run++;
    slabs->asked = true;
    slabs->last = asker->owner;
    return may_have(slabs, asker->owner) ? hand_out(slabs, asker->owner) : NULL;
}

static cr_choice ask(void *argument, cr_waiting *waiting) {
    return may_have(argument, cr_container(waiting, cr_slab_waiter, waiting)->asker.owner) ? CR_CHOICE_TAKE
                                                                                           : CR_CHOICE_PASS_CLIENT;
}

/* The waiter whose turn it is among those that may have a slab. */
static cr_slab_waiter *next_waiter(cr_slabs *slabs) {
    cr_waiting *first = slabs->free_count ? cr_turns_next(slabs->waiters) : NULL;
    if (first && ask(slabs, first) != CR_CHOICE_TAKE) first = cr_turns_pick(slabs->waiters, ask, slabs);
    return first ? cr_container(first, cr_slab_waiter, waiting) : NULL;
}

/* Gives free slabs to waiters, which go to the list. */
static void serve(cr_slabs *slabs, cr_list *served) {
    for (cr_slab_waiter *waiter; (waiter = next_waiter(slabs));) {
        cr_waiting_leave(&waiter->waiting);
        cr_turns_charge(slabs->waiters, &waiter->waiting, CR_SLAB_BYTES);
        waiter->slab = hand_out(slabs, waiter->asker.owner);
        waiter->in_line = false;
        slabs->waiting--;
        cr_list_append(served, &waiter->waiting.link);
    }
}

void *cr_slab_take(cr_slabs *slabs, const cr_slab_asker *asker) {
    pthread_mutex_lock(&slabs->mutex);
    void *slab = take_locked(slabs, asker);
    pthread_mutex_unlock(&slabs->mutex);
    return slab;
}

void *cr_slab_take_or_wait(cr_slabs *slabs, cr_slab_waiter *waiter) {
    const cr_slab_asker *asker = &waiter->asker;
    pthread_mutex_lock(&slabs->mutex);
    void *slab = take_locked(slabs, asker);
    if (!slab) {
        cr_turns_put(slabs->waiters, asker->owner, asker->client, &waiter->waiting, asker->large);
        waiter->in_line = true;
        slabs->waiting++;
        cr_metric_add(slab_waits_total, 1);
    }
    pthread_mutex_unlock(&slabs->mutex);
    return slab;
}

bool cr_slab_forget(cr_slabs *slabs, cr_slab_waiter *waiter) {
    pthread_mutex_lock(&slabs->mutex);
    bool was_in_line = waiter->in_line;
    if (was_in_line) {
        cr_waiting_leave(&waiter->waiting);
        waiter->in_line = false;
        slabs->waiting--;
    }
    pthread_mutex_unlock(&slabs->mutex);
    return was_in_line;
}

void cr_slab_give(cr_slabs *slabs, void *slab) {
    cr_list served;
    cr_list_init(&served);
    pthread_mutex_lock(&slabs->mutex);
    take_back(slabs, slab);
    serve(slabs, &served);
    pthread_mutex_unlock(&slabs->mutex);
    for (cr_list *node; (node = cr_list_pop(&served));) {
        cr_slab_waiter *waiter = cr_container(node, cr_slab_waiter, waiting.link);
        waiter->granted(waiter, waiter->slab);
    }
}

bool cr_slabs_low(cr_slabs *slabs) {
    pthread_mutex_lock(&slabs->mutex);
    bool low = slabs->waiting || slabs->free_count < (slabs->count + 7) / 8;
    pthread_mutex_unlock(&slabs->mutex);
    return low;
}
