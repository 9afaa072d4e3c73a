/* bulk: see bulk.h. Thread: any, one at a time. Owner: whoever has the memory. */
#include "engine/memory/bulk.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/metrics.h"

bool cr_bulk_step(void *memory, uint64_t *left) {
    const uint64_t step = *left < CR_BULK_STEP_BYTES ? *left : CR_BULK_STEP_BYTES;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory;
    const uintptr_t first = begin / page * page + page, till = (begin + (uintptr_t)*left) / page * page;
    cr_metric_add(bulk_freed_bytes_total, step);
    *left -= step;
    if (!*left) {
        free(memory);
        return false;
    }
    const uintptr_t from = (begin + (uintptr_t)*left) / page * page;
    if (from >= first && from < till) madvise((void *)from, till - from, MADV_DONTNEED); /* NOLINT */
    return true;
}

bool cr_bulk_free(void **memory, uint64_t *left) {
    if (!*memory || *left < CR_BULK_BYTES)
        free(*memory);
    else if (cr_bulk_step(*memory, left))
        return true;
    *memory = NULL;
    *left = 0;
    return false;
}
