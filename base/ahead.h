/* ahead: reads a file by one thread from a place on, and has the disk bring what comes next meanwhile. The kernel reads ahead of such
 * a reader, too, but keeps one or two requests under way, where a disk gives more to several.
 *
 * The first bytes that the page cache lacks begin it: a file that is there costs nothing. A reader that begins anew is kept ahead of
 * anew, because a large file's pages may be gone by then. File systems that cannot say what is there (tmpfs, FUSE) are never asked to
 * read ahead.
 *
 * Thread: the one that reads. Owner: the embedder; zero-initialised, and nothing to free. */
#ifndef CURED_BASE_AHEAD_H
#define CURED_BASE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CR_AHEAD_BYTES = 16 * 1024 * 1024, /* asked of the disk beyond what is being read */
    CR_AHEAD_STEP = 128 * 1024,        /* at a time: the kernel cuts what exceeds the device's own limits */
};

typedef struct cr_ahead {
    uint64_t asked; /* where that ends in the file; 0: all was there so far */
    bool unknown;   /* the file system cannot say */
} cr_ahead;

/* Whether reads of the descriptor pass by the page cache, so that they gain nothing by what lies there. */
bool cr_ahead_passes_by(int fd);
/* Reads what can be had of bytes at offset without waiting for a disk, and returns how many. The caller reads the others by pread,
 * which says what is wrong with them. Nothing beyond end is asked for. */
size_t cr_ahead_read(cr_ahead *ahead, int fd, void *into, size_t bytes, uint64_t offset, uint64_t end);

#endif
