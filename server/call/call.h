/* call: one request, from its admission to its answer.
 *
 *   small array that comes whole   folded on the loop, answered in the same turn, no job
 *   larger or streamed array       a job; bytes go into slabs as they come (upload)
 *   descriptor, region             a job with a feed
 *   a front's own work             nothing here but admission, deadline and the one answer
 *
 * Two small states, checked at every move (call.c):
 *
 *   input    AWAITING ──a stream──► RECEIVING ──its end──► CLOSED ──the job is back──► FOLDED
 *                └───────a descriptor, a region──────────────┘▲
 *   output   NONE ──first part──► SENDING ──last part──► OVER ; NONE ──an answer, a failure──► OVER
 *
 *   both         NONE   SENDING   OVER
 *   AWAITING      yes      -       yes    a region opens; or the work is the front's own
 *   RECEIVING     yes     yes      yes    answers along an axis leave while bytes still come
 *   CLOSED        yes     yes      yes    the lanes have all of it
 *   FOLDED        yes     yes      yes    the job goes with the call
 *
 * Until its input is CLOSED a call holds its job. A job that the call leaves behind is freed when the last claim and hold are
 * back. Thread: the loop's. Owner: see front.h. */
#ifndef CURED_SERVER_CALL_CALL_H
#define CURED_SERVER_CALL_CALL_H

#include "server/call/calls.h"
#include "server/call/outputs.h"
#include "server/call/upload.h"

typedef enum cr_input_state { CR_AWAITING, CR_RECEIVING, CR_CLOSED, CR_FOLDED, CR_INPUT_STATES } cr_input_state;
typedef enum cr_output_state { CR_NONE, CR_SENDING, CR_OVER, CR_OUTPUT_STATES } cr_output_state;

struct cr_call {
    cr_calls *calls;
    const cr_front *front;
    cr_input_state input;
    cr_output_state output;
    cr_dtype dtype;
    cr_geometry geometry; /* once it is checked */
    cr_finish_opts finish;
    uint32_t families, wants; /* of its ops: CR_FAM_..., CR_WANTS_... */
    cr_peer *peer;
    cr_ticket ticket;
    cr_wait wait;                   /* while RECEIVING */
    uint64_t arrived_ns, closed_ns; /* closed: when the last byte of a stream was there; 0: it was not */
    uint8_t method, refused;        /* cr_method: 0 goes by the request; cr_reason: 0 goes by the error */
    bool on_loop;                   /* folded there */
    bool checked;                   /* before its admission, see again.h */
    bool seen_draining;             /* see progress_seen */
    uint64_t received;              /* array bytes */
    cr_call *whole;                 /* of which this call reduces a piece, and which is counted for both; NULL: none */
    struct {
        uint64_t bytes, begun_ns; /* when the first began to run; 0: none did */
        uint32_t lanes;
    } pieces;             /* of this call that are over */
    cr_job *job;          /* NULL until there is something for the lanes */
    struct cr_sink *sink; /* of the job that is to come; NULL: none, or the job has it */
    union {               /* of a Merge call, once a partial began to come */
        struct cr_merge *merge;
        struct cr_gather *gather; /* where they are by key (cr_call_gathers) */
    };
    struct cr_besides *beside; /* what it takes beside its array; NULL: nothing */
    struct cr_block *block;    /* with layout; NULL: the array is whole */
    struct cr_ranked *ranked;  /* with ops by rank; NULL: none is asked for */
    cr_upload upload;
    cr_outputs outputs;
    cr_timer deadline, progress;
    cr_list open;           /* in calls->open from its admission on */
    uint64_t progress_seen; /* while draining, when the call was looked at last */
    cr_wire_call request;
    uint64_t own[]; /* the front's */
};

/* Whether it merges partials by key. */
static inline bool cr_call_gathers(const cr_call *call) {
    return call->request.kind == CR_CALL_MERGE && call->request.reduce.keyed;
}

/* Whether both are legal moves, or stay as they are, and go together. */
bool cr_call_may_move(const cr_call *call, cr_input_state input, cr_output_state output);
/* Asserts that. */
void cr_call_move(cr_call *call, cr_input_state input, cr_output_state output);
/* record.c: the one place where requests are counted. The call is over; answer NULL: nobody heard of it. */
void cr_record_answered(cr_call *call, const cr_answer *answer);
/* It was not admitted. */
void cr_record_refused(cr_call *call, const cr_error *error);

/* calls->window has fired. */
void cr_call_window_over(cr_timer *window);
/* Fails and ends the call, with error as its answer. */
void cr_call_fail(cr_call *call, const cr_error *error);
/* The job is back: answers, or says that there are parts. The call may be gone. */
void cr_call_folded(cr_call *call);
/* What its job read beside its input is given back: answers, or says that there are parts. The call may be gone. */
void cr_call_shed(cr_call *call);
/* Lanes have made answers along the axis. The call may be gone. */
void cr_call_has_parts(cr_call *call);
/* Answers from a partial that nobody else touches. The call is gone afterwards. */
void cr_call_answer_partial(cr_call *call, const cr_partial *partial, const cr_wire_timing *timing);

/* charge.c. The call lacks n more of use. If others hold that, one of the calls that wait for their clients ends, which moved least
 * in stall_timeout_ms: true, and then its job may still hold its place. The call itself may not be admitted yet. */
bool cr_call_make_room(cr_call *call, cr_use use, uint64_t n);
/* Each makes room where it lacks some. RESOURCE_EXHAUSTED: the client may ask again. */
/* Admits the call with an input of bytes, of which it held fewer. */
cr_status cr_call_grow(cr_call *call, uint64_t bytes, cr_error *error);
/* Admits the memory of a call along an axis. */
cr_status cr_call_hold_state(cr_call *call, uint64_t bytes, cr_error *error);
/* Admits the call with the length of its input, where only its file or region said that. */
cr_status cr_call_charge(cr_call *call, cr_error *error);

/* The array is whole, and so is its second (NULL: there is none): folds it on the loop, and answers. The call is gone afterwards. */
void cr_call_fold_here(cr_call *call, const uint8_t *data, const uint8_t *second, size_t bytes);

/* How many elements its array must have, and what says so: "axis: its shape". NULL what: nothing does. */
uint64_t cr_call_expects(const cr_call *call, const char **what);
/* start.c: an array that is passed begins: nothing is waited for any more. False: the call is gone. */
bool cr_call_start(cr_call *call, const cr_array *input);
/* An array that is passed goes to a new job of the call. It is taken over; kept gets a use of its own. */
cr_status cr_call_feed(cr_call *call, const cr_array *input, cr_error *error);
/* The job that the lanes work on; the call holds it. kept: the region its input lies in, NULL: none. */
cr_status cr_call_make_job(cr_call *call, const struct cr_kept *kept, cr_error *error);

#endif
