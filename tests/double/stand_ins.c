/* stand_ins (double): what kernels/cuda's host code calls that the double has nothing of: names for tools, which take NVTX's headers. And
 * CURED_TEST_WITHOUT, the names of fast ways that this library goes without, with a comma behind each.
 *
 * Thread: any. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/device/internal.h"

__attribute__((constructor)) static void go_without(void) {
    const char *names = getenv("CURED_TEST_WITHOUT");
    uint64_t off = 0;
    for (unsigned way = 0; names != NULL && way < CR_FAST_WAYS; way++) {
        char name[64];
        snprintf(name, sizeof name, "%s,", cr_fast_name(way));
        if (strstr(names, name) != NULL) off |= UINT64_C(1) << way;
    }
    cr_fast_switch_off(off);
}

bool cr_cuda_traced(void) { return false; }
uint64_t cr_cuda_trace_begin(const char *name) {
    (void)name;
    return 0;
}
void cr_cuda_trace_end(uint64_t trace_id) { (void)trace_id; }
