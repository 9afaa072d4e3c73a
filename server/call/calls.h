/* calls: what the calls of one loop share, whoever brings them: queue, slabs, files, lanes, limits, timers.
 *
 * Thread: the loop's, but for the slabs that other threads grant, which have a mutex of their own. Owner: main. */
#ifndef CURED_SERVER_CALL_CALLS_H
#define CURED_SERVER_CALL_CALLS_H

#include <pthread.h>

#include "base/config.h"
#include "base/timers.h"
#include "engine/memory/files.h"
#include "engine/memory/slab.h"
#include "server/admit/admission.h"
#include "server/call/again.h"
#include "server/call/front.h"
#include "server/call/patience.h"
#include "server/call/reload.h"
#include "server/lanes/lanes.h"
#include "server/stats/stats.h"

enum { CR_HURRY_MS = 1000 };

struct cr_calls {
    const cr_config *config;
    const char *version; /* of the daemon */
    uint64_t started_ms;
    cr_queue *queue;
    cr_slabs *slabs;
    cr_files *files;
    cr_lanes lanes;
    bool warming;      /* lanes is another thread's, which opens them */
    bool runs_kernels; /* a lane of a CUDA device is open, and takes calls that name a kernel */
    bool draining;     /* no call comes in any more */

    void (*reload)(void *argument, cr_reload_wait *wait); /* see call/reload.h; wait NULL: nobody waits */
    void *reload_argument;

    /* Has annexes (native/annex.h) stand still, or go on. While they stand, what they read may change. NULL: there are none. */
    void (*still)(void *argument, bool stand);
    void *still_argument;

    cr_admission admission;
    cr_stats stats;
    _Atomic uint64_t
        *counts; /* metrics that only this loop counts: cr_metrics, or an annex's own, which are gathered there */
    cr_timers timers;
    uint64_t read_ns; /* when the bytes being taken were read: the arrival of every call among them */
    uint64_t last_ns; /* the latest time anybody looked; saves a call that folds on the loop one look of two */

    const void *went; /* the connection that had the last go, of any door; it may be gone */
    bool pressed;     /* others went since it went last, or wait: the loop folds no more than it must */

    cr_again again;
    cr_list open;         /* calls from their admission on */
    uint64_t claims_seen; /* while draining */
    uint64_t merged;      /* partials added up on the loop, of all calls so far */
    cr_list done;         /* jobs that came back, and have not been answered yet */
    cr_list writing;      /* of them, those whose answers to no elements are being written: a piece of one job a turn */

    cr_patience patience; /* the calls that wait for their clients' bytes */
    cr_timer window;      /* of patience; set while a call waits */

    cr_list filling;  /* uploads with an open slab, the longest idle first */
    cr_timer sealing; /* set while filling is not empty */
    uint64_t fed_ns;  /* when the loop was last done with folding of an upload */

    void (*wake)(void *argument); /* from any thread: cr_calls_turn is due */
    void *wake_argument;
    pthread_mutex_t mutex;
    cr_list granted; /* guarded by mutex: slabs that came for uploads which waited */
    cr_list extras;  /* likewise: what files threads have read beside arrays, or given back of it */
    cr_list shed;    /* likewise: jobs whose memory they have given back */
};

static inline void cr_calls_still(cr_calls *calls, bool stand) {
    if (calls->still) calls->still(calls->still_argument, stand);
}

/* config and version are set, and counts, where they are not cr_metrics. */
void cr_calls_init(cr_calls *calls, void (*wake)(void *argument), void *wake_argument);
/* All calls are over and no slab is out. */
void cr_calls_free(cr_calls *calls);
/* The limits of the options, at start and when they were reloaded. What is counted stays. */
void cr_calls_limit(cr_calls *calls);
/* After a wake: takes on answers, jobs that are done, and slabs that came, for not much longer than most_ns. True: more are left,
 * and another wake is due. */
bool cr_calls_turn(cr_calls *calls, uint64_t most_ns);
/* While draining, every CR_HURRY_MS: calls without progress since the last time end UNAVAILABLE, but for those that only wait for
 * lanes which work on others. */
void cr_calls_hurry(cr_calls *calls);
/* A connection has its go; others: some wait for theirs. Whether none went since it went last. */
bool cr_calls_goes(cr_calls *calls, const void *connection, bool others);
/* The time of what is read next. */
void cr_calls_look(cr_calls *calls);

#endif
