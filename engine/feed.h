/* feed: brings the bytes of a passed descriptor, or of a registered region, to a job.
 *
 * Memory that is mapped already and cannot be cut goes to the lanes at once, as one segment. Other memory does so once it was looked
 * at, unread, where no GPU gains by slabs: each worker reads what it folds. Everything else comes by files threads, a few windows
 * ahead of the lanes:
 *
 *   inspect ──► slot: fill ──► published to the job ──► folded, released ──► slot: empty, fill the next …  ──► close
 *
 * Each slot is a mapped window, or a slab that is read into. Slots work independently and take the next range of the file
 * when they are free; what they publish carries its element index, so the order does not matter. A slot holds its job. A feed of a region
 * uses it until its last byte was folded.
 *
 * Thread: cr_feed_start on the loop; everything else on files threads, by tasks. Owner: the feed frees itself when its
 * last slot ends, closing the descriptor or letting the region go before. */
#ifndef CURED_ENGINE_FEED_H
#define CURED_ENGINE_FEED_H

#include "engine/memory/files.h"
#include "engine/memory/kept.h"
#include "engine/memory/slab.h"
#include "engine/queue.h"

/* Ranges that are brought at a time. */
enum { CR_FEED_SLOTS = 4 };

/* One array of an input. Its region's use, or its descriptor, is taken over in every case. */
typedef struct cr_source {
    cr_kept *kept; /* an open region; NULL: descriptor */
    int descriptor;
    uint64_t offset; /* bytes */
} cr_source;

/* What an op reduces: so far every op takes one array, and more are refused. */
enum { CR_INPUT_SOURCES = 2 };
typedef struct cr_input {
    uint32_t count;
    cr_source sources[CR_INPUT_SOURCES];
} cr_input;

typedef struct cr_feed_options {
    cr_files *files;
    cr_slabs *slabs;
    cr_queue *queue;
    uint64_t max_bytes;     /* of one input */
    const char *max_option; /* that says so */
    cr_input input;
    uint64_t client, owner; /* whose file it is: for its tasks, and for its slabs */
    size_t most_foreign;    /* calls of owner on files that may hang; 0: any number */
    bool to_end;            /* as many elements as the file holds after offset; otherwise count */
    uint64_t count;
    const char *expects; /* what says how many elements there must be: "axis: its shape"; NULL: nothing does */
    uint64_t expected;
    bool is_cut; /* only elements [from, till) are read, which are those of segments; the input has as many at least */
    uint64_t from, till;
} cr_feed_options;

/* Takes over the job's one hold. Bad input stops the job with the reason, or is told at once (descriptor closed, or region
 * let go, and the hold still the caller's), as is a lack of memory. */
cr_status cr_feed_start(cr_job *job, const cr_feed_options *options, cr_error *error);

/* feed_measure.c: which bytes of an input of size bytes are read: *total from *offset on. INVALID_ARGUMENT says why there is no such
 * range. */
cr_status cr_feed_measure(const cr_feed_options *o, cr_dtype dtype, uint64_t size, uint64_t *offset, uint64_t *total,
                          cr_error *error);

#endif
