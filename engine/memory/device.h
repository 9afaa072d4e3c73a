/* device: what the daemon asks of a GPU about memory that clients share: opening and closing it, and pinning mapped host
 * memory. A build or a machine without a GPU has no hook, and everything here is refused.
 *
 * Thread: a files thread calls these functions, one call at a time for one region, several at once for several. They may
 * wait for the device's own thread, for that one makes the calls. Owner: whoever sets the hook, before the first client. */
#ifndef CURED_ENGINE_MEMORY_DEVICE_H
#define CURED_ENGINE_MEMORY_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"

/* What a client says of its memory. Nothing of it is true before open has found so: handles may be garbage, stale or of
 * another kind, and the allocation may be shorter than offset + bytes. */
typedef struct cr_device_memory {
    uint8_t device[CR_DEVICE_UUID_BYTES];
    int descriptor;  /* of the memory, or of a pool; -1: handle names the memory (CUDA IPC) */
    bool has_handle; /* always with CUDA IPC; with a descriptor it is the pointer in a pool */
    bool has_event;
    bool writable; /* answers may be written there */
    uint8_t handle[CR_DEVICE_HANDLE_BYTES], event[CR_DEVICE_HANDLE_BYTES];
    uint64_t offset, bytes; /* of the region in the allocation; their sum is below 2^64 */
} cr_device_memory;

/* What it is here. */
typedef struct cr_device_region {
    int device;       /* the lane's number of it */
    uint64_t address; /* of the region's first byte, in the device's memory */
    void *event;      /* every job waits for it before it reads; NULL: none */
    void *own;        /* the hook's */
} cr_device_region;

typedef struct cr_device_hook {
    void *context;
    /* Checks and opens; fills *region. INVALID_ARGUMENT or NOT_FOUND with a sentence for what the client said wrong. The
     * descriptor stays the caller's, and is closed when this returns. */
    cr_status (*open)(void *context, const cr_device_memory *memory, cr_device_region *region, cr_error *error);
    /* No job reads the region any more. */
    void (*close)(void *context, cr_device_region *region);
    /* Pins [start, start + bytes) of a mapping of host memory, which the device then reads faster. Either both are set or
     * none. A failure costs speed and nothing else. */
    cr_status (*pin)(void *context, const void *start, size_t bytes, cr_error *error);
    void (*unpin)(void *context, const void *start, size_t bytes);
} cr_device_hook;

#endif
