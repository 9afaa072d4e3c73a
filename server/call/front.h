/* front: the seam between a call and whoever brings it. A call knows no frame and no socket; a front knows no job.
 *
 *   front                                             call
 *   cr_call_new, cr_call_request ← the request          counts nothing yet; cr_call_refuse takes it back
 *   cr_call_admit                                     in flight: it ends exactly once, by front->answer, or by a cancel
 *                                                     without an answer
 *   cr_call_begin, cr_call_input                      checked; where its array comes from
 *   cr_call_whole                                     a small array, folded where it lies
 *   cr_call_coming, cr_call_room, cr_call_filled,     a stream: bytes go where the lanes read them; after CR_WAIT front->room
 *   cr_call_end                                       says when there is room again
 *   cr_call_sink                                      answers along an axis go there
 *   cr_call_part, cr_call_sent                        answers along an axis, pulled by the front; front->parts says that there
 *                                                     are some
 *   cr_call_done                                      a call whose work is the front's own, such as Register
 *
 * Functions that may end the call say so by what they return; it must not be used afterwards.
 * Thread: the loop's. Owner: a call owns itself from cr_call_new until it is refused, answered or cancelled. */
#ifndef CURED_SERVER_CALL_FRONT_H
#define CURED_SERVER_CALL_FRONT_H

#include "base/names.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/axis.h"
#include "proto/wire.h"
#include "server/admit/admission.h"

enum {
    CR_INLINE_BYTES = 16 * 1024, /* arrays up to here are folded on the loop: waking a worker costs more */
    CR_FRONT_BYTES = 136,        /* of a front's own, beside which malloc keeps a freed call at hand for the next */
};

typedef struct cr_call cr_call;
typedef struct cr_calls cr_calls;
struct cr_kept;
struct cr_sink;

typedef enum cr_answer_kind {
    CR_ANSWER_FAILED,   /* error */
    CR_ANSWER_DONE,     /* of cr_call_done */
    CR_ANSWER_VALUES,   /* the asked ops, to be finished from partial by finish */
    CR_ANSWER_FINISHED, /* values of an input of count elements, some of them inexact */
    CR_ANSWER_PARTIAL,  /* share */
    CR_ANSWER_ARRAY,    /* all parts went before; spec says of what */
} cr_answer_kind;

/* Lent for the time of front->answer. */
typedef struct cr_answer {
    cr_answer_kind kind;
    const cr_error *error;
    const cr_wire_timing *timing; /* but for FAILED and DONE */
    const cr_partial *partial;
    const cr_finish_opts *finish;
    const cr_value *values;
    const bool *exact;
    uint64_t count;
    const cr_share *share;
    const cr_axis_spec *spec;
    cr_geometry geometry;           /* of those answers */
    const cr_axis_missing *missing; /* by op, with spec->statuses */
    const uint64_t *missing_of;     /* by offsets: elements of the first of them */
    uint64_t written;               /* bytes of answers along the axis that a sink has */
} cr_answer;

/* One for each kind of front. A turn calls `room` and `parts` last, so they may begin and end any call, this one too.
 * `progress` and `answer` may begin no call, and may end other calls but not this one. */
typedef struct cr_front {
    size_t bytes;                                                    /* of what the front keeps with each call */
    void (*room)(cr_call *call);                                     /* after CR_WAIT: bytes can be taken again */
    void (*parts)(cr_call *call);                                    /* there are answers to pull */
    void (*progress)(cr_call *call, const cr_wire_progress *so_far); /* every progress_ms that the request asks for */
    void (*answer)(cr_call *call, const cr_answer *answer);          /* once; the call is gone afterwards */
} cr_front;

/* Where the array of a call comes from. What is passed is taken over, in every case. */
typedef struct cr_array {
    enum { CR_STREAM, CR_DESCRIPTOR, CR_KEPT } kind;
    int descriptor;
    struct cr_kept *kept; /* a region that is open; the call takes a use of its own */
} cr_array;

/* One part of the answers along an axis: those of the op at position op from number first on. */
typedef struct cr_part {
    uint32_t op;
    uint64_t first;
    const uint8_t *values; /* lent until cr_call_sent */
    size_t bytes;
    const uint8_t *statuses; /* likewise, one for each; NULL: each answer has a value */
    size_t status_count;
} cr_part;

typedef enum cr_room { CR_ROOM, CR_WAIT, CR_GONE } cr_room;
typedef enum cr_pull { CR_PART, CR_LATER, CR_PULLED } cr_pull;

/* NULL: there is no memory. What the front keeps with it is zero. */
cr_call *cr_call_new(cr_calls *calls, const cr_front *front, cr_peer *peer);
cr_wire_call *cr_call_request(cr_call *call);
void *cr_call_front(cr_call *call);
/* Says what it is, where that is more than the request says. */
void cr_call_set_method(cr_call *call, cr_method method);
cr_method cr_call_method(const cr_call *call);
/* Ends a call that was not admitted. The front says why, and has set the kind of a request that could not be read to 0. */
void cr_call_refuse(cr_call *call, const cr_error *error);
/* A request that needs no call is over: an answer that the front gives by itself, or a refusal by the request's form. error NULL:
 * it went well. */
void cr_calls_count_request(cr_calls *calls, const cr_peer *peer, cr_method method, uint64_t arrived_ms,
                            const cr_error *error);
/* Lets the call in, by its request, and sets its deadline. On failure it must be refused. */
cr_status cr_call_admit(cr_call *call, cr_error *error);
/* Before that: what the ops of a request ask besides, from its bytes again. */
cr_status cr_call_parameters(cr_call *call, cr_wire_form form, const uint8_t *in, size_t len, cr_error *error);
/* The same of the block that its array is. */
cr_status cr_call_layout(cr_call *call, cr_wire_form form, const uint8_t *in, size_t len, cr_error *error);
/* Checks what a Reduce or Merge asks for, before a byte of its array is looked at. beside: what it takes beside its array, by kind; NULL:
 * nothing. False: the call has failed and is gone. */
bool cr_call_begin(cr_call *call, const cr_wire_beside *beside);
/* Of a checked call: how its answers come, and how many there are of each op; 1 of a whole array. */
cr_geometry cr_call_geometry(const cr_call *call);
uint64_t cr_call_answers(const cr_call *call);
/* What of it asks for so many, for sentences: "axis: its shape asks". */
const char *cr_call_asks(const cr_call *call);
/* The bytes that it takes beside its array. */
uint64_t cr_call_beside_bytes(const cr_call *call);
/* Those that its array and a second in turn with it have at least. */
uint64_t cr_call_least_bytes(const cr_call *call);
/* Those of a second array, which come in turn with the array's, that are still to come. */
uint64_t cr_call_second_left(const cr_call *call);
/* Before the input: where the answers along its axis go. It is taken over. */
void cr_call_sink(cr_call *call, struct cr_sink *sink);
/* Before the input of a checked call that takes something beside it: where each kind comes from. `from` is taken over in every case.
 * False: the call has failed and is gone. */
bool cr_call_beside(cr_call *call, const cr_array from[CR_BESIDES]);
/* False: the call is gone. It has failed, or was so small that it is answered. */
bool cr_call_input(cr_call *call, const cr_array *input);

/* Whether bytes of a stream, the array's or those before it, may still come. */
bool cr_call_receives(const cr_call *call);
/* Whether bytes, the whole array, may go by cr_call_whole. */
bool cr_call_takes_whole(const cr_call *call, size_t bytes);
/* Folds the array and answers: the call is gone. */
void cr_call_whole(cr_call *call, const uint8_t *data, size_t bytes);
/* So many bytes more are coming. False: the call has failed, for they are too many, and is gone. */
bool cr_call_coming(cr_call *call, uint64_t bytes);
/* Where the next bytes go. */
cr_room cr_call_room(cr_call *call, uint8_t **at, size_t *room);
/* bytes of that room were filled. False: the call has failed and is gone. */
bool cr_call_filled(cr_call *call, size_t bytes);
/* Whether bytes are worth being received where they go; those of a merge are copied there, a few partials at a time. */
bool cr_call_in_place(const cr_call *call);
/* No more bytes come. The call may be gone. */
void cr_call_end(cr_call *call);
/* Whether the sender may be told to go on: not while the answers to what came wait for it. */
bool cr_call_flows(const cr_call *call);

/* The next part, of at most most bytes. CR_LATER: there is none now, or not in so few bytes. CR_PULLED: all went, the call has
 * been answered and is gone. */
cr_pull cr_call_part(cr_call *call, uint64_t most, cr_part *part);
/* Whether the lanes are done with it: all parts that are left can be pulled now. */
bool cr_call_is_folded(const cr_call *call);
/* Of a checked call along an axis: the bytes of one answer of the op at that position, without its status. */
size_t cr_call_answer_bytes(const cr_call *call, uint32_t op);
/* The part that was pulled last is written. */
void cr_call_sent(cr_call *call);

/* Ends the call, with FAILED as its answer; error NULL: without an answer. */
void cr_call_cancel(cr_call *call, const cr_error *error);
/* The array of the call is reduced by other calls: it only waits. */
void cr_call_split(cr_call *call);
/* One of those, before its admission: whoever counts requests counts whole alone, which outlives it. */
void cr_call_is_piece(cr_call *piece, cr_call *whole);
/* Answers a call whose array others have reduced, from their partials together. The call is gone. */
void cr_call_merged(cr_call *call, const cr_share *sum);
/* Ends a call whose work was the front's own. */
void cr_call_done(cr_call *call);

#endif
