/* beside: what a call takes beside its array: rows of proto/beside.def. All of it is in memory (engine/extra.h) before the array begins.
 *
 *   COMING   its bytes come in DATA, before the array's and those of later rows
 *   IN_TURN  the second array of a first that comes in DATA: both come in turn, into the same slabs (upload.h)
 *   READING  a files thread reads it; of a stream no array bytes are taken meanwhile
 *   THERE    nothing more is waited for
 *
 * Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_BESIDE_H
#define CURED_SERVER_CALL_BESIDE_H

#include "engine/extra.h"
#include "engine/ticket.h"
#include "kernels/core/keys.h"
#include "kernels/core/offsets.h"
#include "kernels/core/view.h"
#include "server/call/front.h"

typedef enum cr_beside_state {
    CR_BESIDE_THERE,
    CR_BESIDE_COMING,
    CR_BESIDE_IN_TURN,
    CR_BESIDE_READING
} cr_beside_state;

typedef struct cr_beside {
    struct cr_besides *of;
    cr_beside_kind kind;
    cr_beside_state state;
    cr_wire_beside asked; /* source 0: the call takes none of this kind */
    cr_extra *extra;
    uint64_t announced; /* bytes of it whose DATA has begun */
    uint64_t elements;  /* of the array, as far as the request says; UINT64_MAX: it does not */
    uint64_t longest;   /* segment that is answered, in elements; UINT64_MAX: any is */
} cr_beside;

typedef struct cr_besides {
    cr_call *call;    /* NULL: it is over, while files threads still read */
    cr_ticket ticket; /* of that call, as are */
    uint64_t client;
    cr_calls *calls;
    uint32_t coming, reading; /* how many are; of a call that is over: read, or given back */
    uint64_t in_turn;         /* bytes of DATA that were the array's and its second's in turn */
    bool waits, ended;        /* the array that is passed waits for them; the client has ended its DATA meanwhile */
    bool parked;              /* the array's descriptor counts among those that wait */
    cr_array array;           /* with waits; a descriptor, or one use of kept */
    cr_beside each[CR_BESIDES];
} cr_besides;

/* What is checked of one kind, beyond what is of all. */
typedef struct cr_beside_row {
    /* Before a byte of it came; sets asked->element. NULL: nothing is. */
    cr_status (*check)(const cr_call *call, cr_wire_beside *asked, cr_error *error);
    /* Of bytes [from, till), all before which were looked at, on whichever thread brought them. NULL: nothing is. */
    cr_status (*look)(const cr_beside *beside, uint64_t from, uint64_t till, cr_error *error);
    /* How many elements the array must have, and what of the sentence says so. NULL: it may have any number. */
    uint64_t (*elements)(const cr_wire_beside *asked);
    const char *expects;
} cr_beside_row;

/* beside_rows.c, by kind. */
extern const cr_beside_row cr_beside_rows[CR_BESIDES];

/* What the request takes, which is checked with it. NULL beside: nothing. */
cr_status cr_beside_ask(cr_call *call, const cr_wire_beside *beside, cr_error *error);
cr_status cr_beside_check(const cr_call *call, cr_error *error);
/* What the call takes of this kind; NULL: nothing. */
const cr_beside *cr_beside_of(const cr_call *call, cr_beside_kind kind);
/* Whether the array may begin. */
bool cr_beside_there(const cr_call *call);
/* How many elements the array must have, and what says so: "mask: it". UINT64_MAX: nothing does. */
uint64_t cr_beside_expects(const cr_call *call, const char **what);
/* What counts of the array. */
cr_mask cr_beside_mask(const cr_call *call);
/* The segments that are asked for; dtype CR_DTYPE_NONE: none are. Once all is there, these are the borders. */
cr_offsets cr_beside_offsets(const cr_call *call);
/* The same of keys, of a call that has some. */
cr_keys cr_beside_keys(const cr_call *call);
/* Bytes of a second array that comes in turn with the first; UINT64_MAX: none does. */
uint64_t cr_beside_in_turn(const cr_call *call);
/* Of so many array bytes that came, those whose second came, too: all where there is none. */
uint64_t cr_beside_complete(const cr_call *call, uint64_t received);
/* The second array, from an element on, where all of it is there; NULL: it is not, or there is none. */
const uint8_t *cr_beside_second(const cr_call *call, uint64_t from);
/* The job reads what is there from now on. */
void cr_beside_hold(const cr_call *call, cr_job *job);
/* Of bytes that come in DATA those that are the array's. */
uint64_t cr_beside_announce(cr_call *call, uint64_t bytes);
/* Whether bytes of DATA go to what is beside the array, and where. */
bool cr_beside_room(const cr_call *call, uint8_t **at, size_t *room);
/* So many of them are there. False: the call is gone. */
bool cr_beside_filled(cr_call *call, size_t bytes);
/* The input of a call waits until what is beside it is there. It is taken over. False: its descriptor is one too many that wait, and the
 * call is gone. */
bool cr_beside_wait(cr_call *call, const cr_array *input);
/* The client has ended its DATA. Whether that ends the array: not while something is read, nor of an array that is passed. False,
 * too, when the call has failed and is gone. */
bool cr_beside_end(cr_call *call);
/* Bytes that were read so far. */
uint64_t cr_beside_progress(const cr_call *call);
/* The call goes. True: a files thread still reads, or gives memory back, and what is beside the array has taken over the ticket. */
bool cr_beside_drop(cr_call *call);
/* For the loop's turn: takes up what files threads have read. */
void cr_beside_turn(cr_calls *calls);

#endif
