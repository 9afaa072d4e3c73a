/* linger: the host's half: posts, and whether somebody is there to see them. Thread, owner: see linger.h. */
#include "kernels/cuda/pack/linger.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "kernels/core/fast.h"

#define PAYLOAD (((uint64_t)1 << CR_LINGER_SHIFT) - 1)

static void put(uint64_t *word, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
}

static uint64_t look(const uint64_t *word) {
    return atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_acquire);
}

void cr_linger_init(cr_linger *linger, cr_linger_box *box, void *stream, uint64_t linger_ns) {
    *linger = (cr_linger){.box = box, .stream = stream, .linger_ns = linger_ns};
}

static bool may_stay(const cr_linger *linger) { return linger->box && cr_fast_on(CR_FAST_GPU_LINGER); }

bool cr_linger_gone(cr_linger *linger) {
    if (linger->running && look(&linger->box->gone)) linger->running = false;
    return !linger->running;
}

void cr_linger_quit(cr_linger *linger) {
    if (!cr_linger_gone(linger)) put(&linger->box->word[CR_LINGER_QUIT], 1);
}

static bool quits(const cr_linger *linger) { return linger->box->word[CR_LINGER_QUIT] != 0; }

/* Units of a pack that are neither launched nor posted. */
static uint32_t fresh(const cr_pack *pack) { return pack->count - pack->launched; }

bool cr_linger_post(cr_linger *linger, cr_pack *pack) {
    const uint32_t count = fresh(pack);
    if (!may_stay(linger) || linger->posted || count == 0 || count > CR_LINGER_UNITS || cr_linger_gone(linger) ||
        quits(linger))
        return false;
    linger->number = linger->number % 255 + 1;
    const uint64_t number = linger->number << CR_LINGER_SHIFT;
    uint64_t *word = linger->box->word;
    for (uint32_t i = 0; i < CR_LINGER_UNITS; i++) {
        const cr_pack_unit *unit = &pack->units[pack->launched + (i < count ? i : 0)];
        uint64_t *at = &word[i * CR_LINGER_UNIT_WORDS];
        put(&at[0], number | (unit->data & PAYLOAD));
        put(&at[1], number | unit->data >> CR_LINGER_SHIFT << 32 | (uint64_t)unit->family << 24 |
                        (uint64_t)unit->dtype << 16 | unit->n);
        put(&at[2], number | unit->more);
    }
    put(&word[CR_LINGER_FOUND], number | (uint64_t)(uintptr_t)(pack->found + (size_t)pack->launched * CR_PACK_WORDS));
    put(&word[CR_LINGER_MORE], number | (uint64_t)(uintptr_t)pack->more);
    put(&word[CR_LINGER_COUNT], number | count);
    linger->posted = pack;
    linger->from = pack->launched;
    linger->count = count;
    pack->launched = pack->count;
    return true;
}

int cr_linger_follow(cr_linger *linger, const cr_pack *pack) {
    if (!may_stay(linger) || pack->count == 0 || pack->count > CR_LINGER_UNITS) return 0;
    const uint64_t now = cr_now_ns();
    const bool closely = linger->last_ns && now - linger->last_ns < linger->linger_ns;
    linger->last_ns = now;
    if (!closely || !cr_linger_gone(linger)) return 0;
    put(&linger->box->gone, 0);
    put(&linger->box->word[CR_LINGER_QUIT], 0);
    const cr_linger_args args = {linger->box, linger->linger_ns, linger->number};
    const int failure = cr_linger_launch(&args, linger->stream);
    linger->running = failure == 0;
    return failure;
}

void cr_linger_forget(cr_linger *linger, const cr_pack *pack) {
    if (linger->posted == pack) linger->posted = NULL;
}
