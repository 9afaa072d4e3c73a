/* bulk: memory of many pages. Linux takes about 45 ms to take 900 MiB back, and whoever maps memory meanwhile waits for its lock. So bulk is
 * given back a step at a time, by threads that may wait.
 *
 * Thread: any, one at a time. Owner: whoever has the memory. */
#ifndef CURED_ENGINE_MEMORY_BULK_H
#define CURED_ENGINE_MEMORY_BULK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CR_BULK_BYTES = 4 * 1024 * 1024,     /* less is freed where it is: 0.2 ms */
    CR_BULK_STEP_BYTES = 8 * 1024 * 1024 /* 0.4 ms */
};

/* Gives back a step of memory, which malloc gave and of which *left bytes from its begin are still there; with the last of them memory is
 * freed. Nobody reads it any more. True: there is more. */
bool cr_bulk_step(void *memory, uint64_t *left);
/* The same of *memory, which becomes NULL with its last step; of less than CR_BULK_BYTES, and of NULL, there is one. */
bool cr_bulk_free(void **memory, uint64_t *left);

#endif
