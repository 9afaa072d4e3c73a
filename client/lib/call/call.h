/* call: one call. What it asks, what it has to send, and what came of it.
 *
 *   cr_cl_call_submit ─▶ ACTIVE ─▶ DONE        cr_cl_call_finish; cr_cl_call_abandon also sends CANCEL
 *                    │ ▲
 *                    ▼ │ cr_cl_call_submit, when the time has come
 *                   RETRY                      cr_cl_call_failed
 *
 * A call's output is at most one piece at a time: `head` (its own bytes: frame headers and the CALL) followed by `body` (the
 * caller's bytes, not copied). The frame at the front of the queue may be partly on the wire; nothing may come between its bytes, so
 * a call that ends meanwhile stays queued until the frame is whole, with zeros in place of the caller's bytes (the daemon drops
 * them), and only then is freed.
 *
 * For this room and embedded/; conn/ sees calls.h.
 * Thread: the one that uses the connection. Owner: the program until cured_call_free; a call that is still queued then belongs to
 * the connection. */
#ifndef CURED_CLIENT_LIB_CALL_CALL_H
#define CURED_CLIENT_LIB_CALL_CALL_H

#include "base/clock.h"
#include "base/list.h"
#include "client/lib/call/array.h"
#include "client/lib/call/calls.h"
#include "client/lib/value.h"
#include "cured/cured.h"
#include "kernels/core/ask.h"
#include "kernels/core/keyed.h"
#include "kernels/core/keys.h"
#include "kernels/core/layout.h"
#include "kernels/core/offsets.h"
#include "kernels/core/quantile.h"
#include "kernels/core/view.h"
#include "proto/wire.h"

enum { CR_CL_HEAD_BYTES = 960 }; /* header, the longest packed CALL of this library, header of the first DATA */

typedef enum call_kind {
    KIND_BUFFER,
    KIND_FD,
    KIND_STREAM,
    KIND_INFO,
    KIND_STATS,
    KIND_SLOW_LOG,
    KIND_PING,
    KIND_REGION,
    KIND_REGISTER,
    KIND_UNREGISTER,
    KIND_RELOAD,
    KIND_CONFIG,
} call_kind;
/* What ops by rank ask, by their position among the call's, and the bits of their answers; or the read that is asked and its counts. */
typedef struct cr_cl_ranked {
    cr_quantile_item items[CURED_MAX_OPS];
    uint64_t bits[CURED_MAX_OPS];
    bool counts_only;
    cr_quantile asked;
    uint64_t *counts; /* NULL: none yet */
} cr_cl_ranked;

/* ACTIVE: under way (queued, sent or waiting for bytes). RETRY: waits for retry_ns, unknown to the daemon. DONE. */
typedef enum call_state { CALL_ACTIVE, CALL_RETRY, CALL_DONE } call_state;

/* A block of a larger array: for the folds of this process, and as a daemon is told of it. */
typedef struct cr_cl_block {
    cr_layout at;
    cr_wire_layout wire;
    uint8_t packed[CR_CL_HEAD_BYTES + CR_CALL_MAX_AXES * 34]; /* the longest CALL with one */
} cr_cl_block;

struct cured_call {
    cr_cl_calls *calls;
    cr_list all;   /* in calls->all, or calls->finished while a callback is due */
    cr_list queue; /* in calls->queue */
    cured_call *hash_next;
    uint32_t stream; /* PING: 0 */
    call_kind kind;
    call_state state;
    bool hashed;   /* the daemon may answer on `stream` */
    bool sent;     /* a byte of this try's CALL or PING is on the wire */
    bool freed;    /* by the program; destroyed when it leaves the queue */
    bool detached; /* nobody waits for it: destroyed when it is done */
    bool fd_due, cancel_due, end_wanted, end_sent;
    bool held; /* until WELCOME says what the daemon grants */
    int fd;

    /* output */
    uint32_t head_len, head_pos;
    const uint8_t *body; /* NULL with body_len > 0: zeros */
    size_t body_len, body_pos;
    bool body_is_input;    /* and not what is sent before that */
    const uint8_t *source; /* the caller's bytes that are in no frame yet */
    size_t source_len;
    const uint8_t *beside; /* what is sent before them, likewise */
    size_t beside_len;
    uint32_t beside_kind;             /* the kinds before it are sent, or in beside */
    uint64_t first_sent, second_sent; /* bytes of an array and of its second, which are sent in turn */
    uint64_t declared, handed;        /* bytes of the whole input; handed over by the caller */
    uint64_t credit;

    /* the request, kept for another try; the buffer's bounds for the same reason */
    cr_wire_call request;
    const uint8_t *data;
    uint64_t data_bytes;
    uint64_t ping_id;
    struct cr_cl_gather
        *gather; /* KIND_STREAM: the input is gathered from memory; KIND_BUFFER: it was. Owned; NULL: neither */
    void *owned; /* the library's copy of what is sent, where it made one */
    cured_region *region;       /* KIND_REGION keeps it; KIND_REGISTER is its own */
    struct cr_outputs *outputs; /* where the answers along an axis are written; NULL: nowhere */
    struct cr_pieces *pieces;   /* KIND_REGION of several regions, which it keeps all; region is the first. NULL: one */
    cr_geometry geometry;       /* where the answers' elements lie, */
    uint64_t answers, elements; /* how many there are of each op, and of the input: UINT64_MAX, as many as it has */
    cr_keys keys;               /* with CR_GEOMETRY_KEYS: the same of the rows */
    cr_offsets offsets;         /* with CR_GEOMETRY_OFFSETS: of the segments; the data are the program's */
    uint64_t span;              /* and the elements from the first to the last of them */
    cr_needs needs;             /* what is folded in this process, */
    cr_mask mask;               /* what of the input counts there, */
    uint64_t mask_count;        /* and how many elements the mask speaks of */
    cured_second second;        /* the second array; the data are the program's */
    bool has_second;            /* there is one */
    cr_cl_block *block;         /* what the input is of a larger array; NULL: no block. Owned */
    cr_cl_ranked *ranked;       /* NULL: no op goes by rank. Owned */
    struct cr_work *work;       /* its job in this process; NULL: none */
    struct cr_local_merge *merge; /* a merge in this process that has begun; NULL: none */

    uint64_t start_ns, deadline_ns, retry_ns, elapsed_ns; /* deadline 0: none */
    cr_cl_awaited awaited;
    uint32_t retries_left, retries, max_wait_ms;
    void (*on_done)(cured_call *call, void *user);
    void (*on_progress)(cured_call *call, uint64_t bytes_done, uint64_t bytes_total, void *user);
    void *user;

    cr_error error;
    uint32_t retry_after_ms;
    uint64_t count;
    cured_timing timing;
    cured_server_info *info;
    cured_reloaded *reloaded;
    char *json;         /* of KIND_STATS, KIND_SLOW_LOG and KIND_CONFIG; NULL: none yet */
    cr_cl_array *array; /* with an axis */
    uint8_t *partial;
    size_t partial_bytes, partial_room; /* room: of one that comes in parts */
    uint8_t input_dtype;                /* 0: not known (a merge of what is no partial) */
    uint8_t head[CR_CL_HEAD_BYTES];
    uint32_t value_count; /* ops asked for; values are valid when done with CR_OK */
    struct cured_value values[];
};

/* call.c. A try begins: the daemon is told of the call's regions, and then of the call. */
void cr_cl_call_submit(cured_call *call);
void cr_cl_call_finish(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text);
/* As cr_cl_call_finish, but tries again when the policy allows. */
void cr_cl_call_failed(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text);
/* Nobody will ask for it: it goes when it is done. */
void cr_cl_call_detach(cured_call *call);
void cr_cl_call_destroy(cured_call *call);
void cr_cl_call_enqueue(cured_call *call);
void cr_cl_call_dequeue(cured_call *call);
/* A byte of the call's piece is on the wire. */
static inline bool cr_cl_call_begun(const cured_call *call) { return call->head_pos != 0 || call->body_pos != 0; }

/* output.c: the call's number, by which the daemon answers. */
cured_call *cr_cl_call_lookup(const cr_cl_calls *calls, uint32_t stream);
void cr_cl_call_forget(cured_call *call);
/* Readies the next frame of a call whose last is sent; false: it has none. */
bool cr_cl_call_next_frame(cured_call *call);

/* request.c: of the records of a merge, which cured_merge made, the one at *at, which goes behind it. */
cr_keyed_bytes cr_cl_record_next(const uint8_t **at);
/* request.c: a call that is in its connection's list and not submitted yet; NULL with *error set. */
cured_call *cr_cl_new_call(cr_cl_calls *calls, call_kind kind, size_t op_count, const cured_options *o,
                           cr_error *error);
/* elements: UINT64_MAX, not known yet. */
cured_call *cr_cl_new_reduce(cr_cl_calls *calls, call_kind kind, cured_dtype dtype, const cured_op *ops,
                             size_t op_count, uint64_t elements, const cured_options *options, cr_error *error);

/* accounts.c: answers that are no numbers. KIND_INFO, copied; false: no memory, and the call is done. */
bool cr_cl_call_put_info(cured_call *call, const cr_wire_info *info);
/* The others: the call is done, unless the status says what is wrong with the answer. */
cr_status cr_cl_call_take_account(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error);

#endif
