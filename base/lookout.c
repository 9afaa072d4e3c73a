/* lookout: the rule. Thread: see lookout.h. Owner: see lookout.h. */
#include "base/lookout.h"

void cr_seats_init(cr_seats *seats, uint32_t cores) {
    atomic_store(&seats->free, cores < 2 ? 0 : cores < 4 ? 1 : (int32_t)cores - 1);
}

static bool take_seat(cr_seats *seats) {
    int32_t left = atomic_load_explicit(&seats->free, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&seats->free, &left, left - 1)) return true;
    return false;
}

bool cr_lookout_begin(cr_lookout *lookout, cr_look *look, uint64_t now_ns) {
    if (!lookout->window_ns || !take_seat(lookout->seats)) return false;
    *look = (cr_look){.until_ns = now_ns + lookout->window_ns, .last_ns = now_ns};
    return true;
}

bool cr_look_on(cr_look *look, uint64_t now_ns) {
    look->disturbed = now_ns - look->last_ns > CR_LOOKOUT_GAP_NS;
    look->last_ns = now_ns;
    return !look->disturbed && now_ns < look->until_ns;
}

void cr_lookout_end(cr_lookout *lookout, const cr_look *look) {
    atomic_fetch_add(&lookout->seats->free, 1);
    if (!look->disturbed) {
        lookout->calm_ns /= 2;
        return;
    }
    const uint64_t calm = 2 * lookout->calm_ns;
    lookout->calm_ns = calm < CR_LOOKOUT_CALM_NS        ? CR_LOOKOUT_CALM_NS
                       : calm < CR_LOOKOUT_CALM_MOST_NS ? calm
                                                        : CR_LOOKOUT_CALM_MOST_NS;
    lookout->window_ns = 0;
    lookout->calm_until_ns = look->last_ns + lookout->calm_ns;
}

bool cr_lookout_may(const cr_lookout *lookout, uint64_t now_ns) {
    return lookout->most_ns && now_ns >= lookout->calm_until_ns && atomic_load(&lookout->seats->free) > 0;
}

void cr_lookout_expect(cr_lookout *lookout, uint64_t now_ns) {
    lookout->window_ns = now_ns >= lookout->calm_until_ns ? lookout->most_ns : 0;
}

void cr_lookout_waited(cr_lookout *lookout, uint64_t waited_ns, uint64_t now_ns) {
    if (waited_ns > lookout->most_ns) {
        lookout->window_ns = 0;
    } else if (waited_ns > lookout->window_ns && now_ns >= lookout->calm_until_ns) {
        const uint64_t wider = lookout->window_ns ? 2 * lookout->window_ns : CR_LOOKOUT_FIRST_NS;
        lookout->window_ns = wider < lookout->most_ns ? wider : lookout->most_ns;
    }
}

uint64_t cr_foresight_of(const cr_foresight *foresight, uint64_t kind) {
    const uint64_t last = foresight->waits[kind % CR_FORESIGHT_KINDS].last_ns;
    const uint64_t before = foresight->waits[kind % CR_FORESIGHT_KINDS].before_ns;
    if (foresight->waits[kind % CR_FORESIGHT_KINDS].kind != kind || !last || !before) return 0;
    const uint64_t shorter = last < before ? last : before, longer = last < before ? before : last;
    return longer - shorter <= CR_FORESIGHT_SPREAD_NS ? shorter : 0;
}

void cr_foresight_took(cr_foresight *foresight, uint64_t kind, uint64_t took_ns) {
    const uint32_t i = kind % CR_FORESIGHT_KINDS;
    const uint64_t before = foresight->waits[i].kind == kind ? foresight->waits[i].last_ns : 0;
    foresight->waits[i].kind = kind;
    foresight->waits[i].last_ns = took_ns;
    foresight->waits[i].before_ns = before;
}

void cr_foresight_overslept(cr_foresight *foresight, uint64_t kind, uint64_t most_ns) {
    for (int i = 0; i < 2; i++) cr_foresight_took(foresight, kind, most_ns);
}
