/* stay: the host's half: posts, and whether somebody is there to see them. Thread, owner: see stay.h. */
#include "kernels/cuda/stay.h"

#include <stdatomic.h>
#include <time.h>

#define PAYLOAD (((uint64_t)1 << CR_STAY_SHIFT) - 1)

static void put(uint64_t *word, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
}

static uint64_t look(const uint64_t *word) {
    return atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_acquire);
}

void cr_stay_init(cr_stay *stay, cr_stay_box *box, void *stream, uint64_t linger_ns) {
    *stay = (cr_stay){.box = box, .stream = stream, .linger_ns = linger_ns};
}

bool cr_stay_gone(cr_stay *stay) {
    if (stay->running && look(&stay->box->gone)) stay->running = false;
    return !stay->running;
}

void cr_stay_quit(cr_stay *stay) {
    if (!cr_stay_gone(stay)) put(&stay->box->word[CR_STAY_QUIT], 1);
}

static bool quits(const cr_stay *stay) { return stay->box->word[CR_STAY_QUIT] != 0; }

/* Units of a batch that are neither launched nor posted. */
static uint32_t fresh(const cr_batch *batch) { return batch->count - batch->launched; }

bool cr_stay_post(cr_stay *stay, cr_batch *batch) {
    const uint32_t count = fresh(batch);
    if (!stay->box || stay->posted || count == 0 || count > CR_STAY_UNITS || cr_stay_gone(stay) || quits(stay))
        return false;
    stay->number = stay->number % 255 + 1;
    const uint64_t number = stay->number << CR_STAY_SHIFT;
    uint64_t *word = stay->box->word;
    for (uint32_t i = 0; i < CR_STAY_UNITS; i++) {
        const cr_batch_unit *unit = &batch->units[batch->launched + (i < count ? i : 0)];
        uint64_t *at = &word[i * CR_STAY_UNIT_WORDS];
        put(&at[0], number | (unit->data & PAYLOAD));
        put(&at[1], number | unit->data >> CR_STAY_SHIFT << 32 | (uint64_t)unit->family << 24 |
                        (uint64_t)unit->dtype << 16 | unit->n);
        put(&at[2], number | unit->more);
    }
    put(&word[CR_STAY_FOUND], number | (uint64_t)(uintptr_t)(batch->found + (size_t)batch->launched * CR_BATCH_WORDS));
    put(&word[CR_STAY_MORE], number | (uint64_t)(uintptr_t)batch->more);
    put(&word[CR_STAY_COUNT], number | count);
    stay->posted = batch;
    stay->from = batch->launched;
    stay->count = count;
    batch->launched = batch->count;
    return true;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int cr_stay_follow(cr_stay *stay, const cr_batch *batch) {
    if (!stay->box || batch->count == 0 || batch->count > CR_STAY_UNITS) return 0;
    const uint64_t now = now_ns();
    const bool closely = stay->last_ns && now - stay->last_ns < stay->linger_ns;
    stay->last_ns = now;
    if (!closely || !cr_stay_gone(stay)) return 0;
    put(&stay->box->gone, 0);
    put(&stay->box->word[CR_STAY_QUIT], 0);
    const cr_stay_args args = {stay->box, stay->linger_ns, stay->number};
    const int failure = cr_stay_launch(&args, stay->stream);
    stay->running = failure == 0;
    return failure;
}

void cr_stay_forget(cr_stay *stay, const cr_batch *batch) {
    if (stay->posted == batch) stay->posted = NULL;
}
