/* extra: a further input of a call, beside its array: a mask, keys, offsets. All of it is in memory before a byte of the array is folded.
 *
 * Its bytes come from its owner (a stream), or a files thread reads them from a file or a region, a few MiB at a time, so that no
 * fold waits for a file or faults on a mapping that is cut:
 *
 *   cr_extra_new ──► filled by its owner                         cr_extra_release ──► freed with its last use
 *       ├─ cr_extra_read ──► on files threads ──► told, on one of them
 *       └─ cr_extra_empty, of a large one, likewise
 *
 * Thread: new, read and release on any; told runs on a files thread. Owner: its uses: the call, the job, and the reading. */
#ifndef CURED_ENGINE_EXTRA_H
#define CURED_ENGINE_EXTRA_H

#include "engine/job.h"
#include "engine/memory/files.h"
#include "engine/memory/kept.h"

typedef struct cr_extra {
    cr_held held;     /* by its job, which has a use */
    const char *name; /* in sentences */
    uint8_t *data;
    uint64_t bytes; /* held.left of them are still in memory */
    uint64_t came;  /* the owner's; of one that is read all or nothing */
    cr_error error; /* why it could not be read: from told on */

    cr_list told_link; /* for whoever is told */
    void *owner;       /* likewise */
    void (*told)(struct cr_extra *extra);
    /* Looks at bytes [from, till), which have been read, on the thread that read them; what it says is why it cannot be used. NULL:
     * nobody looks. */
    cr_status (*look)(const struct cr_extra *extra, uint64_t from, uint64_t till, cr_error *error);

    cr_file_task task;
    cr_files *files;
    cr_kept *kept; /* the region that it is read from; NULL: descriptor */
    cr_region own;
    uint64_t offset;     /* bytes, in the source */
    _Atomic uint64_t at; /* read so far */
    size_t most_foreign;
    bool inspected, foreign;
    _Atomic bool unwanted; /* nobody waits for it any more */
    _Atomic uint32_t uses;
} cr_extra;

/* What an extra is read from. The descriptor, or one use of kept, is taken over. */
typedef struct cr_extra_source {
    cr_files *files;
    cr_kept *kept; /* of host memory; NULL: descriptor */
    int descriptor;
    uint64_t offset; /* bytes */
    uint64_t client, owner;
    size_t most_foreign; /* calls of owner on files that may hang; 0: any number */
} cr_extra_source;

/* With one use. name: for sentences, a constant. NULL: no memory. */
cr_extra *cr_extra_new(uint64_t bytes, const char *name);
/* Begins to read all of it, and then tells. */
void cr_extra_read(cr_extra *extra, const cr_extra_source *source);
/* The job reads it from now on, and lets go of it when it is freed. */
void cr_extra_hold(cr_extra *extra, cr_job *job);
void cr_extra_release(cr_extra *extra);
/* Its memory goes back on a files thread, and then extra is told. No job holds it, and nobody reads it any more; it is not being read. */
void cr_extra_empty(cr_extra *extra, cr_files *files, uint64_t user, uint64_t client);

#endif
