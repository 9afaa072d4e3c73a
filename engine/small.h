/* small: a small input in memory that a client shares, read where the call is, instead of by a feed. A files thread, a slab, a
 * worker and the wakes between them take a hundred times as long as copying and folding a few KiB.
 *
 * Only what cannot wait is read so: pages of memfds, tmpfs and shm_open() (F_GET_SEALS tells), of a host that has no swap, or
 * which Linux says are in memory (cachestat).
 *
 * Thread: any that must not block. Owner: the caller. */
#ifndef CURED_ENGINE_SMALL_H
#define CURED_ENGINE_SMALL_H

#include "engine/feed.h"
#include "kernels/core/dtype.h"

typedef enum cr_small { CR_SMALL_NOT, CR_SMALL_READ, CR_SMALL_FAILED } cr_small;

/* Reads the whole input of o into room bytes. READ: *bytes of it are there. NOT: it is larger, or may wait: it is a feed's. FAILED:
 * the error that a feed would tell. The input stays the caller's. */
cr_small cr_small_read(const cr_feed_options *o, cr_dtype dtype, uint8_t *into, size_t room, uint64_t *bytes,
                       cr_error *error);
/* Closes the descriptor of an input that was READ, or FAILED: it is of memory, of which Linux tells the size at once. It does so on a
 * files thread if letting go may take long: of much memory, or of a file system that may go with it. */
void cr_small_close(const cr_feed_options *o);

#endif
