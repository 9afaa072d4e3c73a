/* embedded: calls that are answered in the caller's own process, without a daemon.
 *
 *   small arrays, merges ──────────────────────────────► one turn, on the caller's thread, with no job
 *   everything else ──► job ──┬─ queue `own` ──────────► one claim a turn, on the caller's thread
 *                             └─ queue `shared` ───────► the same, beside the threads of a kept pool
 *
 * The shared queue is used by large inputs only, and only where the program has asked for threads. Memory that cannot be cut is
 * one segment of its job. Files are read, and streams copied, into pieces; whoever folds the last byte of one gives it back. No
 * signal is touched, nobody waits for anything but the end of claims under way, and one turn is one piece and one claim.
 *
 * Thread: the one that uses the connection; the pool's threads fold, and give pieces back. Owner: the connection owns its
 * local, a local its works, a work its job. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_H
#define CURED_CLIENT_LIB_EMBEDDED_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "client/lib/call/call.h"
#include "client/lib/call/outputs.h"
#include "engine/worker.h"

enum {
    CR_LOCAL_SMALL_BYTES = 1024 * 1024,      /* folded in one turn, without a job */
    CR_LOCAL_INLINE_BYTES = 8 * 1024 * 1024, /* up to here waking a thread costs more than it brings */
    CR_LOCAL_PIECE_BYTES = 1024 * 1024,
    CR_LOCAL_STATE_BYTES = 1024 * 1024 * 1024, /* beyond, columns come in strips, where they can */
    CR_LOCAL_CLAIM_LEAST_BYTES =
        8 * 1024 * 1024,                      /* as plan->cached in kernels/cpu: long lines are faster in the caches */
    CR_LOCAL_CLAIM_BYTES = 256 * 1024 * 1024, /* of an array of columns that is one claim */
    CR_LOCAL_MAX_THREADS = 1024,
};

typedef struct cr_local_pool cr_local_pool;

/* The jobs of one line, and what this thread carries from claim to claim of them. */
typedef struct cr_line {
    cr_queue *queue; /* NULL: not used yet */
    cr_worker worker;
    uint32_t threads; /* that claim from it */
} cr_line;

typedef struct cr_local {
    cr_cl_calls *calls;
    uint32_t threads;
    uint64_t opened_ns;
    cr_line own, shared;
    cr_local_pool *pool; /* NULL: there is none yet */
    int event;           /* woken by other threads; -1: nobody else is there */
    _Atomic bool woken;
    bool leaving;        /* an Unregister waits for calls that read its region */
    bool idle;           /* the last turn found nothing to do: only news, bytes or a new call bring more */
    cr_list works, done; /* under way; whose job is done and which want an answer */
    struct cr_work *delivering;
    pthread_mutex_t mutex; /* guards the next two */
    cr_list spare;
    uint32_t pieces;  /* all there are, spare or not */
    uint32_t filling; /* of them, what works fill; this thread's */
} cr_local;

/* A call that has a job. */
typedef struct cr_work {
    cr_list link; /* in local->works or local->done */
    cr_local *local;
    cured_call *call; /* NULL: nobody waits any more */
    cr_job *job;
    cr_line *line;
    bool done;                   /* the job is DONE */
    bool feeding;                /* it holds the job: more input comes */
    struct cr_piece *piece;      /* being filled; NULL: none */
    uint64_t index;              /* of the next piece's first element */
    int fd;                      /* of a file or region that is read */
    const uint8_t *memory;       /* in place of fd, where the columns come in strips */
    uint64_t offset;             /* of the input in the file, in bytes */
    uint64_t fed, left;          /* of the input, in bytes: in pieces, and not yet */
    uint64_t received;           /* of a stream, in bytes */
    struct cr_kept_stream *kept; /* of a stream whose columns come in strips: all of it; NULL: nothing came */
    uint64_t progress_ns;        /* when to say how far it is */
} cr_work;

/* Memory that input is read or copied into. */
typedef struct cr_piece {
    cr_segment segment;
    cr_local *local;
    uint64_t used;
    uint8_t *data; /* PIECE_BYTES, behind this struct */
} cr_piece;

/* What a call reduces, once it is known. */
typedef struct cr_local_input {
    const uint8_t *memory; /* NULL: fd, or a stream */
    int fd;                /* -1: none */
    uint64_t offset, bytes;
} cr_local_input;

/* embedded.c: other threads, and whatever brings work: the connection wants a turn. */
void cr_local_wake(cr_local *local);
/* The request as kernels/core sees it; ops has room for the numbers, shape for the shape. */
cr_ask cr_local_ask(const cured_call *call, cr_shape *shape);
/* The answer of a whole array. The call is done afterwards. */
void cr_local_answer(cured_call *call, const cr_partial *partial, const cured_timing *timing);

/* input.c: what the call reads, checked. */
cr_status cr_local_input_of(cured_call *call, cr_local_input *input, cr_error *error);
/* Opens the region of a KIND_REGISTER. */
cr_status cr_local_register(cured_call *call, cr_error *error);
/* outputs.c: whether answers may be written into this memory. */
cr_status cr_local_writable(int fd, cr_error *error);
/* The places of the call's outputs, checked, and memory for the answers. */
cr_status cr_local_outputs(cured_call *call, cr_error *error);
/* All answers are there: to the regions with them. */
cr_status cr_local_write_outputs(cured_call *call, cr_error *error);
/* Gives the job one piece more, of what there is; false: there is none now. */
bool cr_work_feed(cr_work *work);
/* Memory of the caller's, as it is. */
cr_status cr_work_offer(cr_work *work, const uint8_t *data, uint64_t bytes, cr_error *error);
/* Gives back what was being filled, and the hold. */
void cr_work_end_feed(cr_work *work);
void cr_local_free_pieces(cr_local *local);

/* small.c: whole calls in one turn. */
bool cr_small_takes(const cured_call *call, const cr_local_input *input);
void cr_small_run(cured_call *call);

/* work.c: calls with jobs. */
void cr_work_begin(cured_call *call, const cr_local_input *input);
/* One piece and one claim; false: there was nothing to do. */
bool cr_work_step(cr_local *local);
/* Takes the news of the lines; answers what is done. */
void cr_work_collect(cr_local *local);
void cr_work_progress(cr_local *local);
/* The call is over: nobody reads its memory any more when this returns. */
void cr_work_drop(cr_work *work);

/* pool.c: so many threads that fold from a queue until it is closed; NULL: there is no memory for any. */
cr_local_pool *cr_local_pool_new(cr_queue *queue, uint32_t threads, uint32_t claimers);
/* After cr_queue_close. */
void cr_local_pool_free(cr_local_pool *pool);

/* embedded.c: the folds' instruction set, as CURED_CPU_ISA says or the best there is. Any thread. */
cr_status cr_local_select(cr_error *error);

#endif
