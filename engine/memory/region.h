/* region: bytes that a client holds and the daemon reads by a descriptor (regular file, memfd, shared memory). One that
 * came with a call is read for that call (engine/feed); one that was registered is kept (kept.h). Both are read by what is here.
 *
 * Thread: every function here may block on the client's file system, so each runs on a files thread only
 * (cr_region_readable excepted). Owner: whoever made it; cr_region_close ends it. */
#ifndef CURED_ENGINE_MEMORY_REGION_H
#define CURED_ENGINE_MEMORY_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/range.h"
#include "proto/status.h"

typedef enum cr_region_way {
    CR_REGION_MAP,    /* regular file without holes on a local file system: windows of it are mapped */
    CR_REGION_READ,   /* memfd, tmpfs, sparse: pread (touching a hole through a map would allocate memory) */
    CR_REGION_FETCH,  /* of those what waits for nobody, for a job of the CPU: whoever folds it reads it */
    CR_REGION_SLOW,   /* anything else: pread into a buffer that nobody waits for */
    CR_REGION_DEVICE, /* not this machine's memory, but its GPU's */
} cr_region_way;

typedef struct cr_region {
    int descriptor;
    uint64_t size; /* in bytes, when inspected */
    cr_region_way way;
    bool shared;   /* memory that can be sealed: memfd, tmpfs */
    bool sealed;   /* it cannot be cut (F_SEAL_SHRINK) */
    bool writable; /* mapped for writing, too */
} cr_region;

/* A mapped range: bytes at data; base and length are what munmap needs. */
typedef struct cr_window {
    void *base;
    size_t length;
    const uint8_t *data;
} cr_window;

/* Checks what can be checked without blocking: a descriptor open for reading and not O_PATH. */
cr_status cr_region_readable(int descriptor, cr_error *error);
/* Finds type, size and way. INVALID_ARGUMENT names what it is instead of a regular file, or why its bytes cannot be had: no
 * reads (memfd_secret), no size (/proc, some FUSE). */
cr_status cr_region_inspect(cr_region *region, int descriptor, cr_error *error);
void cr_region_close(cr_region *region);
/* Its size now, and whether all of it has memory or blocks (otherwise it has holes). */
cr_status cr_region_look(const cr_region *region, uint64_t *size, bool *whole, cr_error *error);

cr_status cr_region_map(const cr_region *region, uint64_t offset, size_t bytes, cr_window *window, cr_error *error);
void cr_region_unmap(cr_window *window);
/* Sees to it that reading [data, data + bytes) of a window waits for no disk: what is not in the page cache is brought in
 * here. It is not mapped page by page: a fault on a cached page costs less on the reader's side (it maps many at once)
 * than populating it beforehand. The guard covers what cannot be brought in. */
void cr_region_fetch(const cr_region *region, uint64_t offset, const uint8_t *data, size_t bytes);
/* Reads exactly bytes at offset; DATA_LOSS when the file ends before. */
cr_status cr_region_read(const cr_region *region, uint64_t offset, void *into, size_t bytes, cr_error *error);
/* CR_OK while the file still reaches to end; DATA_LOSS when it was cut. Only for way MAP, where fstat cannot hang. */
cr_status cr_region_still(const cr_region *region, uint64_t end, cr_error *error);

#endif
