/* fast: which fast ways are on, and their names.
 *
 * Thread: any; two atomic words. */
#include "kernels/core/fast.h"

#include <stddef.h>

_Static_assert(CR_FAST_WAYS <= 64, "a bit each");

_Atomic uint64_t cr_fast_off;

void cr_fast_switch_off(uint64_t ways) { atomic_store(&cr_fast_off, ways); }

const char *cr_fast_name(unsigned way) {
    static const char *const names[] = {
#define CR_FAST(symbol, name, takes, gain) name,
#include "kernels/core/fast.def"
#undef CR_FAST
    };
    return way < CR_FAST_WAYS ? names[way] : NULL;
}

bool cr_fast_tells_inexact(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    static atomic_int known; /* 0: not yet; 1: it does; 2: it does not */
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now == 0) {
        now = cr_fast_try_inexact() ? 1 : 2;
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == 1;
#else
    return false;
#endif
}
