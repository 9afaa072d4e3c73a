/* upload: array bytes of a stream into slabs, and slabs to the lanes.
 *
 * A slab is offered in steps while it fills, so that its bytes are folded while they are in the cache, and sealed when it
 * is full, when its client pauses, or when others need slabs: a slab never waits for a client. So what may have to wait until
 * a client takes answers (of an axis) goes into memory of its own instead.
 *
 * An upload that has the loop and the workers to itself is folded by the loop as it comes. It always lies in the first part of its
 * slab, which so stays in the loop's cache: bytes that move to a worker's core, and a slab that comes back from there, cost several
 * times what the fold does. Where folding keeps taking longer than the bytes take to come, the workers go on.
 *
 * What a job wants in strips of columns is kept as a whole, in memory that counts as its state: each byte goes to its place in the
 * job's order, and the lanes get all of it at the end. A second array is kept beside it, in the array's order.
 *
 * The second array of a pair that is streamed comes in turn with the first, CR_PAIR_BLOCK_BYTES of each. It lies in the same slab, which
 * has the first's elements in one half and those of the second that belong to them in the other. Only what both have is offered. A slab is
 * full when the next block might not fit, so blocks are never cut between two slabs, unless a slab is sealed early: then what only the
 * first has goes to the next, with the tail.
 *
 * Who finds no slab waits in the pool's line. The waiter is an allocation of its own, for another thread may be granting it
 * while its upload goes away:
 *
 *   cr_slab_take_or_wait ──► in line ──granted, on any thread──► in calls->granted ──the loop's turn──► the upload's spare
 *                               └──the upload goes, cr_slab_forget──► freed        └──the upload is gone──► given back, freed
 *
 * Thread: the loop's (release, granted: any). Owner: the call, until a segment is offered and sealed; a waiter is the calls'
 * until it was granted and taken, or forgotten. */
#ifndef CURED_SERVER_CALL_UPLOAD_H
#define CURED_SERVER_CALL_UPLOAD_H

#include "server/call/calls.h"

enum { CR_UPLOAD_HEAVY = 4 }; /* in a row; one may be chance, because others want the core, too */

typedef struct cr_upload {
    cr_calls *calls;
    cr_job *job;
    cr_slab_asker asker;          /* set with the job */
    cr_list filling;              /* in calls->filling while slab is open */
    struct cr_slab_segment *slab; /* being filled; NULL: none */
    struct cr_slab_wait *wait;    /* for the next; NULL: not waiting */
    void *spare;                  /* it has come: the bytes that waited are about to go there */
    uint32_t filled, offered;     /* bytes in slab; of those, given to the lanes */
    uint64_t handed;              /* elements in sealed slabs */
    uint8_t *tail;                /* what a sealed slab could not hand over: less than the job's grain */
    uint32_t tail_len;
    bool pairs;    /* a second array comes, too */
    bool fed;      /* the loop has folded some of it */
    uint8_t heavy; /* how often in a row that took longer than the bytes took to come, or than half a turn */
    uint64_t touched_ms;
    uint8_t *kept;       /* all of the array, in the job's order; NULL: it is not kept */
    uint64_t kept_bytes; /* that came, in the array's order */
    /* With pairs: */
    uint32_t second, second_tail;     /* its bytes in slab, and in tail, which has them behind the first's */
    uint32_t first_left, second_left; /* of the blocks in turn: bytes of each array that are still to come */
    uint64_t pair_left;               /* of each array, behind those */
    uint8_t *kept_second;             /* with kept: all of the second, in the array's order */
    uint64_t kept_second_bytes;       /* that came */
} cr_upload;

/* Of zeroed memory. */
void cr_upload_init(cr_upload *upload, cr_calls *calls);
/* The job's second array comes, too: bytes of each. Before a byte of either. */
void cr_upload_pair(cr_upload *upload, uint64_t bytes);
/* Where the next array bytes go; job is set. own: they may have to wait, so not into a slab. False: there is none now, and
 * cr_upload_granted will say when (or there is no memory, and then *error is set and the call must fail). */
bool cr_upload_room(cr_upload *upload, bool own, uint8_t **at, size_t *room, cr_error *error);
/* bytes of that room were filled. */
void cr_upload_filled(cr_upload *upload, size_t bytes);
/* The whole array, where it lies in one place and nothing of it was offered, and its second. NULL: it does not. */
const uint8_t *cr_upload_whole(const cr_upload *upload, uint32_t *bytes, const uint8_t **second);
/* The last byte is in: hands over everything and lets the slab go. False: no memory. */
bool cr_upload_finish(cr_upload *upload);
/* The call is going away: lets everything go. */
void cr_upload_drop(cr_upload *upload);
/* For the loop's turn: the next upload whose slab came; NULL: none. */
cr_upload *cr_upload_granted(cr_calls *calls);
/* calls->sealing has fired: hands over what was idle for a while. */
void cr_upload_seal_idle(cr_timer *sealing);

#endif
