/* call: one request on one stream, from CALL to its answer.
 *
 *   small array in one DATA     folded on the loop, answered in the same turn, no job
 *   larger or streamed array    a job; bytes go into slabs as they come (upload)
 *   descriptor, region          a job with a feed
 *   register, unregister        an entry among the connection's regions (regions.h)
 *
 * A call is answered exactly once (RESULT, or STATUS), and ends with it; a job it leaves behind is freed when the last
 * claim and hold are back. Thread: the loop's. Owner: its connection's list. */
#ifndef CURED_SERVER_CALL_CALL_H
#define CURED_SERVER_CALL_CALL_H

#include "server/native/conn.h"

typedef struct cr_upload {
    cr_list filling;              /* in server->filling while slab is open */
    struct cr_slab_segment *slab; /* being filled; NULL: none */
    uint32_t filled, offered;     /* bytes in slab; of those, given to the lanes */
    uint64_t handed;              /* elements in sealed slabs */
    uint8_t *tail;                /* what a sealed slab could not hand over: less than the job's grain */
    uint32_t tail_len;
    uint64_t touched_ms;
} cr_upload;

struct cr_call {
    cr_list link;
    cr_conn *conn;
    uint32_t stream;
    cr_wire_call request;
    cr_dtype dtype;
    cr_finish_opts finish;
    uint32_t families, wants; /* of its ops: CR_FAM_..., CR_WANTS_... */
    cr_ticket ticket;
    uint64_t arrived_ns;
    uint64_t received;        /* array bytes */
    uint64_t credit;          /* DATA bytes the client may still send */
    uint64_t to_grant;        /* consumed and not yet credited */
    cr_job *job;              /* NULL until there is something for the lanes */
    bool held;                /* the loop still holds job */
    bool job_done;            /* job came back, and goes with the call */
    struct cr_entry *region;  /* the call waits for news of it */
    cr_list in_region;        /* among those that wait until it is open */
    struct cr_merge *merge;   /* of a Merge call, once a partial began to come */
    uint64_t reply_credit;    /* bytes of array answers the client can take */
    struct cr_output *output; /* the one being sent */
    uint64_t output_sent;     /* answers of it that went out: all of op 0's, then op 1's, … */
    uint64_t answers_sent;    /* bytes of array answers that went out */
    uint64_t answers_done;    /* of those, in outputs that went out as a whole: what the queue knows of */
    cr_upload upload;
    cr_timer deadline, progress;
};

/* CALL's payload. False when the connection ended. */
bool cr_call_begin(cr_conn *conn, const cr_frame *frame, const uint8_t *head);
/* The open call on stream; NULL: over. */
cr_call *cr_call_find(cr_conn *conn, uint32_t stream);
/* DATA's header: checks length and credit. False when the connection ended. *take: the payload goes to the call; otherwise
 * it is to be dropped (the call may be gone). */
bool cr_call_data(cr_call *call, const cr_frame *frame, bool *take);
/* CREDIT for what was consumed, when it is worth a frame. False when the connection ended. */
bool cr_call_grant(cr_call *call);
/* A whole small array, the call's only DATA: folds it and answers. Only when cr_call_can_inline. */
bool cr_call_can_inline(const cr_call *call, const cr_frame *frame);
void cr_call_inline(cr_call *call, const uint8_t *data, uint32_t bytes);
/* END was read: no more array bytes. Answers at once when they are too few. */
void cr_call_end(cr_call *call);
/* Fails the call with STATUS. */
void cr_call_fail(cr_call *call, const cr_error *error);
/* Takes the call away without an answer (its connection is going). */
void cr_call_drop(cr_call *call);
/* The call's answer was sent: it is gone. */
void cr_call_answered(cr_call *call);
struct cr_kept;
/* The region that the call reduces is open. */
cr_status cr_call_start_region(cr_call *call, struct cr_kept *kept, cr_error *error);
/* The length of its input is known by now: it is admitted with it. False: that was too much, and the call has failed and is gone. */
bool cr_call_measured(cr_call *call);
/* A job came back from the lanes: answers its call, if it still has one, and frees it. */
void cr_call_job_done(cr_server *server, cr_job *job);
/* Everything a done job's answer needs is there (and sent, for an array): answers. The call is gone afterwards. */
void cr_call_answer_job(cr_call *call);

/* upload.c: where the next array bytes go. False: there is no slab now (the caller waits) — or no memory, and then *error
 * is set and the call must fail. */
bool cr_upload_room(cr_call *call, uint8_t **at, size_t *room, cr_error *error);
/* bytes of that room were filled. On failure the call must fail. */
cr_status cr_upload_advance(cr_call *call, size_t bytes, cr_error *error);
/* Hands over what can be handed over, and lets the slab go. */
void cr_upload_seal(cr_call *call);
/* The last byte is in: hands over everything and lets the slab go. False: no memory. */
bool cr_upload_finish(cr_call *call);
/* The call is going away: lets everything go. */
void cr_upload_drop(cr_call *call);
/* Seals those that were idle for idle_ms; 0: the one idle longest. */
void cr_upload_seal_idle(cr_server *server, uint64_t idle_ms);

#endif
