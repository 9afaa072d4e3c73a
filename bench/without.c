/* without: what the --without of every bench names. Thread: main. Owner: nothing. */
#include <string.h>

#include "bench/options.h"
#include "kernels/core/fast.h"

bool bench_without(void *to, const char *word) {
    (void)to;
    for (unsigned way = 0; way < CR_FAST_WAYS; way++) {
        if (strcmp(cr_fast_name(way), word) != 0) continue;
        cr_fast_switch_off(atomic_load(&cr_fast_off) | UINT64_C(1) << way);
        return true;
    }
    return false;
}
