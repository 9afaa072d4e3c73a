/* embedded: calls that are answered in the caller's own process, without a daemon.
 *
 *   small arrays ──────────────────────────────────────► one turn, on the caller's thread, with no job
 *   merges of partials ────────────────────────────────► the same, a slice a turn
 *   everything else ──► job ──┬─ queue `own` ──────────► one claim a turn, on the caller's thread
 *                             └─ queue `shared` ───────► the same, beside the threads of a kept pool
 *
 * The shared queue is used by large inputs only, and only where the program has asked for threads. Memory that cannot be cut is
 * one segment of its job, and so is a file of which several threads read what they fold (unread.c). Other files are read, and streams
 * copied, into pieces; whoever folds the last byte of one gives it back. No
 * signal is touched, nobody waits for anything but the end of claims under way, and one turn is one piece and one claim.
 *
 * Thread: the one that uses the connection; the pool's threads fold, and give pieces back. Owner: the connection owns its
 * local, a local its works, a work its job. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_H
#define CURED_CLIENT_LIB_EMBEDDED_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/ahead.h"
#include "base/list.h"
#include "client/lib/call/call.h"
#include "client/lib/call/outputs.h"
#include "engine/worker.h"

enum {
    CR_LOCAL_SMALL_BYTES = 1024 * 1024,      /* folded in one turn, without a job */
    CR_LOCAL_INLINE_BYTES = 8 * 1024 * 1024, /* up to here waking a thread costs more than it brings */
    CR_LOCAL_POOLED_BYTES = 8 * 1024 * 1024, /* the same as SMALL, of whole arrays that the thread pool folds */
    CR_LOCAL_PIECE_BYTES = 1024 * 1024,
    CR_LOCAL_STATE_BYTES = 1024 * 1024 * 1024, /* beyond, columns come in strips, where they can */
    CR_LOCAL_CLAIM_LEAST_BYTES =
        8 * 1024 * 1024,                      /* as plan->cached in kernels/cpu: long lines are faster in the caches */
    CR_LOCAL_CLAIM_BYTES = 256 * 1024 * 1024, /* of an array of columns that is one claim */
    CR_LOCAL_MAX_THREADS = 1024,
    CR_LOCAL_KEPT_BYTES =
        1024 * 1024 * 1024, /* of a stream that is read several times, and of a block that is not cut */
    CR_LOCAL_ALIGNMENT = 64,
};

typedef struct cr_local_pool cr_local_pool;
typedef struct cr_local_merge cr_local_merge;

/* The jobs of one line, and what this thread carries from claim to claim of them. */
typedef struct cr_line {
    cr_queue *queue; /* NULL: not used yet */
    cr_worker worker;
    uint32_t threads; /* that claim from it */
} cr_line;

typedef struct cr_local {
    cr_cl_calls *calls;
    uint32_t threads;
    bool pooled; /* whole arrays in memory go to the thread pool of the process (split.h) */
    uint64_t opened_ns;
    cr_line own, shared;
    cr_local_pool *pool; /* NULL: there is none yet */
    int event;           /* woken by other threads; -1: nobody else is there */
    _Atomic bool woken;
    _Atomic uint32_t kept; /* blocks that are folded (kept.c) */
    bool leaving;          /* an Unregister waits for calls that read its region */
    bool idle;             /* the last turn found nothing to do: only news, bytes or a new call bring more */
    cr_list works, done;   /* under way; whose job is done and which want an answer */
    struct cr_work *delivering;
    pthread_mutex_t mutex; /* guards the next two */
    cr_list spare;
    uint32_t pieces;  /* all there are, spare or not */
    uint32_t filling; /* of them, what works fill; this thread's */
} cr_local;

/* What a call reduces, once it is known. */
typedef struct cr_local_input {
    const uint8_t *memory; /* NULL: fd, or a stream */
    int fd;                /* -1: none */
    uint64_t offset, bytes;
} cr_local_input;

/* What a call with ops by rank knows (rereads.c). */
typedef struct cr_rereads {
    bool once; /* counts are asked, and no answers: there is one read */
    cr_quantile state;
    uint64_t *counts;               /* of this read */
    uint32_t at[CR_QUANTILE_ITEMS]; /* where the items' ops stand among all */
    cr_local_input input;           /* which is read again */
    cr_partial partial;             /* of the first read */
    uint64_t opened_ns, first_claim_ns, done_ns, bytes;
} cr_rereads;

/* A call that has a job. */
typedef struct cr_work {
    cr_list link; /* in local->works or local->done */
    cr_local *local;
    cured_call *call; /* NULL: nobody waits any more */
    cr_job *job;
    cr_line *line;
    bool done;              /* the job is DONE */
    bool feeding;           /* it holds the job: more input comes */
    struct cr_piece *piece; /* being filled; NULL: none */
    uint64_t index;         /* of the next piece's first element */
    int fd;                 /* of a file or region that is read */
    const uint8_t *memory;  /* in place of fd, where the columns come in strips */
    bool wide;              /* the thread pool takes claims, too (wide.c) */
    bool split;             /* it shares each claim (split.h), if no other call has it */
    uint64_t wide_bytes;    /* of the input */
    uint64_t offset;        /* of the input in the file, in bytes */
    uint64_t fed, left;     /* of the input, in bytes: in pieces, and not yet */
    cr_ahead ahead;         /* of fd */
    uint64_t received;      /* of a stream, in bytes */
    struct cr_kept *kept;   /* input that is not of use yet (kept.c); NULL: none */
    struct cr_kept *whole;  /* a stream that is read several times; NULL: none */
    cr_rereads *rereads;    /* NULL: one read is enough */
    uint64_t progress_ns;   /* when to say how far it is */
} cr_work;

/* Memory that input is read or copied into. */
typedef struct cr_piece {
    cr_segment segment;
    cr_local *local;
    uint64_t used;
    uint8_t *data; /* PIECE_BYTES, behind this struct */
} cr_piece;

/* embedded.c: other threads, and whatever brings work: the connection wants a turn. */
void cr_local_wake(cr_local *local);
/* The request as kernels/core sees it. */
cr_ask cr_local_ask(const cured_call *call);
/* What is asked of every answer. */
cr_axis_spec cr_local_spec(const cured_call *call);
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

void cr_work_feed_fails(cr_work *work, const cr_error *error);
/* bytes of the input, in the job's order, from where they lie. */
cr_status cr_work_read(const cr_work *work, uint8_t *to, uint64_t bytes, cr_error *error);
/* Makes all of the segment claimable. */
void cr_work_publish(cr_work *work, cr_segment *segment, const void *data, uint64_t bytes,
                     void (*release)(cr_segment *segment));
/* The same of what the worker reads that folds it: data is nowhere. */
typedef cr_status cr_local_fetch(cr_segment *segment, uint64_t offset, void *into, size_t bytes, cr_error *error);
void cr_work_publish_by(cr_work *work, cr_segment *segment, const void *data, uint64_t bytes,
                        void (*release)(cr_segment *segment), cr_local_fetch *fetch);
/* All of these bytes of a file. */
cr_status cr_local_read(int fd, uint8_t *to, uint64_t bytes, uint64_t offset, cr_error *error);
bool cr_work_stream_ended(const cured_call *call);
void cr_work_end_stream(cr_work *work);
/* More than the shape has elements: the feed has failed then. */
bool cr_work_too_many_came(cr_work *work);

/* unread.c: whether several threads read the work's file, each what it folds; and offers it so. */
bool cr_work_reads_apart(const cr_work *work);
cr_status cr_work_offer_file(cr_work *work, int fd, uint64_t offset, uint64_t bytes, cr_error *error);

/* kept.c: whether the input is kept; takes more of it (false: nothing can be done now); it is whole; it is not wanted any more. */
bool cr_work_keeps(const cr_work *work);
bool cr_work_keep(cr_work *work);
void cr_work_end_kept(cr_work *work);
void cr_work_forget_kept(cr_work *work);
void cr_work_free_whole(cr_work *work);
/* Whether so many bytes of a stream may be kept. */
cr_status cr_work_check_stream(uint64_t bytes, cr_error *error);
/* Whether a block that is not cut is short enough to be kept. */
cr_status cr_work_check_block(const cr_work *work, cr_error *error);

/* rereads.c: of a whole array with ops by rank, what its work needs; none for others. */
cr_status cr_rereads_begin(cr_work *work, const cr_local_input *input, cr_error *error);
/* A read is over. False: it was the last, and the answers are there. Otherwise the next begins, by another job, or *error says why not. */
bool cr_rereads_next(cr_work *work, cr_error *error);
void cr_rereads_free(cr_rereads *rereads);
/* The same at once, of elements in memory. all: an item of each op; bits[i] becomes the answer of op i, where that goes by rank. */
cr_status cr_local_rank(const cr_ask *ask, const cr_quantile_item *all, const cr_view *view, uint64_t elements,
                        uint64_t *bits, cr_error *error);
/* The counts that a search asks of a call, of elements in memory. */
cr_status cr_local_counts(cr_cl_ranked *ranked, const cr_view *view, uint64_t elements, cr_error *error);
/* The value of op number i: from the partial, or by rank from bits, which may be NULL where no op goes so. */
void cr_local_value(const cr_ask *ask, const cr_partial *partial, const uint64_t *bits, uint32_t i, cr_value *value);

/* small.c: whether the thread pool of the process is asked for it. */
bool cr_local_is_pooled(const cured_call *call, const cr_local_input *input);
/* Whole calls in one turn. */
bool cr_small_takes(const cured_call *call, const cr_local_input *input);
void cr_small_run(cured_call *call);
/* The partial, or the values of all ops, go to the call. */
cr_status cr_local_keep_share(cured_call *call, const cr_share *share, cr_error *error);
void cr_local_give_values(cured_call *call, const cr_partial *partial);

/* merge.c: the next slice of a merge. The call is done afterwards, or in its connection's queue again, or on_part has freed it. */
void cr_local_merge_step(cured_call *call);
/* The call is over. */
void cr_local_merge_drop(cured_call *call);

/* work.c: calls with jobs. */
void cr_work_begin(cured_call *call, const cr_local_input *input);
/* One piece and one claim; false: there was nothing to do. */
bool cr_work_step(cr_local *local);
/* Takes the news of the lines; answers what is done. */
void cr_work_collect(cr_local *local);
void cr_work_progress(cr_local *local);
/* The call is over: nobody reads its memory any more when this returns. */
void cr_work_drop(cr_work *work);

/* wide.c: threads that claim from an input by turns of the process's thread pool; 1: the caller's alone. */
uint32_t cr_wide_threads(const cured_call *call, const cr_local_input *input);
/* One turn, with all workers. False: another call has the pool, or there was nothing to claim. */
bool cr_wide_step(const cr_work *work);

/* pool.c: so many threads that fold from a queue until it is closed; NULL: there is no memory for any. */
cr_local_pool *cr_local_pool_new(cr_queue *queue, uint32_t threads, uint32_t claimers);
/* After cr_queue_close. */
void cr_local_pool_free(cr_local_pool *pool);

/* embedded.c: the folds' instruction set, as CURED_CPU_ISA says or the best there is. Any thread. */
cr_status cr_local_select(cr_error *error);

#endif
