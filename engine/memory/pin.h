/* pin: how memory becomes fit for a GPU to copy from where it lies. A hook of two functions, filled by the lane of a GPU, so
 * that this room need not know one.
 *
 * Thread: any but the GPU's own; both wait until the GPU's thread has done it. Owner: whoever pinned unpins, before the memory
 * goes and before the lane ends. */
#ifndef CURED_ENGINE_MEMORY_PIN_H
#define CURED_ENGINE_MEMORY_PIN_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

typedef struct cr_pinner {
    void *argument;
    /* Whole pages. UNAVAILABLE when the GPU is gone; what is not pinned still works, more slowly. */
    cr_status (*pin)(void *argument, void *memory, size_t bytes, bool read_only, cr_error *error);
    void (*unpin)(void *argument, void *memory);
} cr_pinner;

#endif
