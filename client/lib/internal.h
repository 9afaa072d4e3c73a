/* internal: the two objects of libcured and what its files need of each other. Not installed.
 *
 * A connection has one list of calls that are not done and one queue of those with something to send. A call's output is at
 * most one piece at a time: `head` (its own bytes: frame headers and the CALL) followed by `body` (the caller's bytes, not
 * copied). The frame at the front of the queue may be partly on the wire; nothing may come between its bytes, so a call
 * that ends meanwhile stays queued until the frame is whole, with zeros in place of the caller's bytes (the daemon drops
 * them), and only then is freed.
 *
 * Thread: the one that uses the connection. Owner: the connection belongs to the program until cured_close, a call until
 * cured_call_free; a call that is still queued then belongs to the connection. */
#ifndef CURED_CLIENT_LIB_INTERNAL_H
#define CURED_CLIENT_LIB_INTERNAL_H

#include <sys/types.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/lookout.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/value.h"
#include "cured/cured.h"
#include "kernels/core/ask.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
    HASH_BUCKETS = 256,
    CALL_HEAD_BYTES = 416, /* header, the longest packed CALL of this library, header of the first DATA */
    IN_BYTES = CR_FRAME_HEADER_BYTES + CR_HEAD_MAX_BYTES + 16 * 1024,
    LARGE_IN_BYTES = CR_FRAME_HEADER_BYTES + CR_DATA_MAX_BYTES + 16 * 1024, /* once arrays come */
    CONTROL_BYTES = 8 * 1024,
};

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
/* ACTIVE: under way (queued, sent or waiting for bytes). RETRY: waits for retry_ns, unknown to the daemon. DONE. */
typedef enum call_state { CALL_ACTIVE, CALL_RETRY, CALL_DONE } call_state;

typedef struct cr_cl_array cr_cl_array;

/* How the calls of a connection are answered: by a daemon at the other end of a socket (send.c, receive.c), or in this process
 * (embedded/). No function is called for a connection that is DEAD. */
typedef struct cr_way {
    void (*begin)(cured_call *call);               /* begins a try of the call, which may be done when this returns */
    void (*over)(cured_call *call);                /* the call is done: lets go of all that is the program's */
    void (*more)(cured_call *call);                /* a stream has new bytes, or its end */
    void (*turn)(cured_conn *conn, bool readable); /* what can be done without blocking; readable: worth a recv */
    void (*flush)(cured_conn *conn);               /* after callbacks, which may have begun calls */
    bool (*pressing)(const cured_conn *conn);      /* there is work that waits for nothing */
    void (*inherited)(cured_conn *conn);           /* this process is a child: nothing of the parent's is touched */
    void (*close)(cured_conn *conn);               /* all calls are done */
} cr_way;

extern const cr_way cr_cl_socket;

struct cured_call {
    cured_conn *conn; /* NULL once the connection is closed */
    cr_list all;      /* in conn->calls, or conn->finished while a callback is due */
    cr_list queue;    /* in conn->queue */
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
    const uint8_t *source; /* the caller's bytes that are in no frame yet */
    size_t source_len;
    uint64_t framed, declared, handed; /* bytes put into frames; of the whole input; handed over by the caller */
    uint64_t credit;

    /* the request, kept for another try; the buffer's bounds for the same reason */
    cr_wire_call request;
    const uint8_t *data;
    uint64_t data_bytes;
    uint64_t ping_id;
    void *owned;                /* the library's copy of what is sent, where it made one */
    cured_region *region;       /* KIND_REGION keeps it; KIND_REGISTER is its own */
    struct cr_outputs *outputs; /* where the answers along an axis are written; NULL: nowhere */
    struct cr_pieces *pieces;   /* KIND_REGION of several regions, which it keeps all; region is the first. NULL: one */
    cr_needs needs;             /* what is folded in this process */
    struct cr_work *work;       /* its job in this process; NULL: none */

    uint64_t start_ns, deadline_ns, retry_ns, elapsed_ns; /* deadline 0: none */
    uint64_t waits_ns,
        foreseen_ns; /* since when it is waited for, and when its answer will probably come; 0: nobody knows */
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
    size_t partial_bytes;
    uint8_t input_dtype; /* 0: not known (a merge of what is no partial) */
    uint8_t head[CALL_HEAD_BYTES];
    uint32_t value_count; /* ops asked for; values are valid when done with CR_OK */
    struct cured_value values[];
};

/* WAITING: no socket; the next attempt is due at attempt_ns when calls want it. CONNECTING: connect() is under way. OPEN.
 * DEAD: the daemon broke the protocol; nothing more happens. */
typedef enum conn_state { CONN_WAITING, CONN_CONNECTING, CONN_OPEN, CONN_DEAD } conn_state;

struct cured_conn {
    const cr_way *way;
    struct cr_local *local; /* in this process; NULL: a socket */
    conn_state state;
    int fd;
    struct cr_cl_tls *tls; /* NULL: the bytes are plain */
    bool tcp, busy, welcomed, send_failed, more_addresses;
    bool has_statuses, has_outputs; /* of WELCOME: the features are granted */
    bool registered;                /* a Register call is over: calls may have waited for it */
    char client[CR_NAME_MAX_BYTES + 1], server[CR_NAME_MAX_BYTES + 1];
    char address[CURED_ADDRESS_BYTES], token[CR_TOKEN_MAX_BYTES + 1];
    uint32_t connect_timeout_ms;
    uint64_t attempt_ns, attempt_deadline_ns; /* 0: none */
    uint32_t attempts;                        /* in a row that found the listener's backlog full */
    uint32_t circuit_failures, circuit_max_ms;
    uint32_t failures;     /* attempts in a row that brought no WELCOME */
    uint64_t circuit_ns;   /* nothing is attempted before */
    uint32_t keepalive_ms; /* 0: none */
    bool full;             /* the socket was, when bytes were last sent */
    bool moved, asked;     /* since keepalive_ns was set: the daemon was seen to live; a PING asks whether it does */
    uint64_t keepalive_ns; /* when to look at these next; counts only while there are calls */
    uint64_t came_ns;      /* when what is being read came; 0: nothing is */
    uint32_t lookup;       /* which of the host's addresses is tried next */
    pid_t process;         /* whose connection it is; see fork.c */
    const volatile uint32_t *mark; /* NULL: Linux has none */
    uint64_t wake_ns;              /* no deadline or retry lies before it; 0: none at all */
    uint64_t random;
    cr_lookout lookout; /* of the thread that waits */
    cr_foresight foresight;
    uint64_t look_ns; /* when the wait began that is looked through */

    uint32_t last_stream;
    uint64_t last_ping, credit;
    uint64_t epoch; /* rises with every connection that is made anew; the daemon knows no region of an earlier one */
    uint64_t last_region;
    cr_list calls, queue, finished, regions;
    cured_call *hash[HASH_BUCKETS];
    cr_error error, auto_reason;
    uint32_t retry_after_ms;

    size_t control_len, control_pos, in_len;
    uint64_t skip; /* bytes left of a frame that is not understood */
    uint8_t *in;   /* small, or LARGE_IN_BYTES of its own */
    size_t in_bytes;
    uint8_t control[CONTROL_BYTES];
    uint8_t small[IN_BYTES];
};

/* token.c: takes the token of the options or the environment, if there is one and the connection's address may see it. */
cr_status cr_cl_token_take(cured_conn *conn, const cured_connect_options *options, bool tls, cr_error *error);

/* tls.c: what is used of a connection to "tls:HOST:PORT". prepare reads the files that the options or the environment name.
 * recv and send are as their namesakes; EPROTO: why says what is wrong. shakes: nothing of ours is sent yet. pending: recv would
 * bring something, which poll does not tell. unsent: sealed bytes wait until the socket is writable. reset: the socket is gone. */
struct iovec;
cr_status cr_cl_tls_prepare(cured_conn *conn, const cured_connect_options *options, cr_error *error);
ssize_t cr_cl_tls_recv(cured_conn *conn, uint8_t *to, size_t n);
ssize_t cr_cl_tls_send(cured_conn *conn, const struct iovec *pieces, size_t count);
bool cr_cl_tls_shakes(const cured_conn *conn);
bool cr_cl_tls_pending(const cured_conn *conn);
bool cr_cl_tls_unsent(const cured_conn *conn);
const char *cr_cl_tls_why(const cured_conn *conn);
void cr_cl_tls_reset(cured_conn *conn);
void cr_cl_tls_free(cured_conn *conn);

/* address.c: makes a non-blocking socket and starts connecting it. *connecting: the result comes with POLLOUT. *again: worth
 * another try at once (the next of a host's addresses). *lookup counts the addresses tried. */
cr_status cr_cl_address_parse(const char *address, bool *tcp, bool *tls, cr_error *error);
/* The host of "tcp:HOST:PORT" or "tls:HOST:PORT", without brackets. */
cr_status cr_cl_address_host(const char *address, char host[256], cr_error *error);
cr_status cr_cl_address_open(const char *address, uint32_t *lookup, int *fd, bool *connecting, bool *again,
                             cr_error *error);

/* Where a daemon is looked for when the program names no address, in this order; how many. */
enum { CR_CL_ADDRESSES = 2 };
size_t cr_cl_address_defaults(char out[CR_CL_ADDRESSES][CURED_ADDRESS_BYTES]);

/* conn.c */
void cr_cl_conn_attempt(cured_conn *conn, uint64_t now);
/* connect() has an outcome: OPEN, the host's next address, or lost. */
void cr_cl_conn_connected(cured_conn *conn, uint64_t now);
/* A call has something to send: makes sure that a connection is coming. */
void cr_cl_conn_want(cured_conn *conn);
/* The connection is gone: calls are tried again or end with this; the next attempt may come. */
void cr_cl_conn_lost(cured_conn *conn, cr_status code, uint32_t retry_after_ms, const char *text);
/* How long calls that are started fail for, because the daemon was away too often; 0: not now. */
uint32_t cr_cl_conn_circuit_ms(const cured_conn *conn);
/* A call waits from now on: what moves counts. */
void cr_cl_conn_watch(cured_conn *conn, uint64_t now);
/* Some call is under way, and not only to be tried again. */
bool cr_cl_conn_waits(const cured_conn *conn);
/* Asks a daemon from which nothing comes whether it lives; loses the connection when it did not answer. */
void cr_cl_conn_keep(cured_conn *conn);
/* xorshift: of 64 bits. */
uint64_t cr_cl_conn_random(cured_conn *conn);
/* The daemon broke the protocol: calls end with this, and so does everything later. */
void cr_cl_conn_broken(cured_conn *conn, const cr_error *error);

/* This process is a child of the one that made the connection: ends the calls, and connects anew when a call wants it. */
void cr_cl_conn_inherited(cured_conn *conn);

/* fork.c: a connection belongs to the process that made it. Looks whether this is that process, before the socket is used. */
void cr_cl_fork_mark(cured_conn *conn);
void cr_cl_fork_unmark(cured_conn *conn);
void cr_cl_fork_check(cured_conn *conn);

/* Ends the calls of a connection, or of a child's copy, without callbacks. */
void cr_cl_conn_cancel_calls(cured_conn *conn, const char *text);

/* embedded/: calls of this connection are answered in this process, by so many threads. UNIMPLEMENTED: the library was built
 * without kernels. */
#define CR_CL_EMBEDDED "embedded:"
cr_status cr_cl_embedded_open(cured_conn *conn, uint32_t threads, cr_error *error);

/* call.c */
void cr_cl_call_submit(cured_call *call);
void cr_cl_call_finish(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text);
/* Ends a call on this side; the daemon is told to stop. */
void cr_cl_call_abandon(cured_call *call, cr_status code, const char *text);
/* As cr_cl_call_finish, but tries again when the policy allows. */
void cr_cl_call_failed(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text);
/* Queues the frames of a call's try for the daemon. */
void cr_cl_call_send(cured_call *call);
/* WELCOME is there, or a region is: sends the calls that waited for it. */
void cr_cl_calls_held(cured_conn *conn);
/* Readies the next frame of a call whose last is sent; false: it has none. */
bool cr_cl_call_next_frame(cured_call *call);
/* Nobody will ask for it: it goes when it is done. */
void cr_cl_call_detach(cured_call *call);
void cr_cl_call_enqueue(cured_call *call);
void cr_cl_call_dequeue(cured_call *call);
void cr_cl_call_destroy(cured_call *call);
cured_call *cr_cl_call_lookup(const cured_conn *conn, uint32_t stream);
/* Runs the callbacks of what is done. */
void cr_cl_call_run_callbacks(cured_conn *conn);

/* stats.c: the answer to KIND_STATS, KIND_SLOW_LOG or KIND_CONFIG: the call is done, unless the status says what is wrong with it. */
cr_status cr_cl_call_tell(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error);
/* receive.c: the answer to KIND_INFO, copied. False: no memory, and the call is done. */
bool cr_cl_call_inform(cured_call *call, const cr_wire_info *info);

/* array.c: the answers of a call with an axis. Makes call->array from the request and the options. */
cr_status cr_cl_array_make(cured_call *call, const cured_options *o, cr_error *error);
/* Of a call with outputs, which were not to be written after all: memory for what is known of parts, a bit an answer. Zeroing it for
 * nothing took 0.3 ms of a call for 32 million answers. False: there is none. */
bool cr_cl_array_expect_parts(cr_cl_array *array);
/* Nothing has come yet: for each try. */
void cr_cl_array_reset(cr_cl_array *array);
/* Takes a part and hands it to on_part, which may free the call. What is wrong with it, or NULL. */
const char *cr_cl_array_take(cured_call *call, const cr_wire_part *part);
/* Where all answers of each op go, to be filled at once; false: they do not all lie in memory, or on_part is to see them. */
bool cr_cl_array_places(cr_cl_array *array, void *out[]); /* out: CR_AXIS_PLACES; statuses behind the values */
/* Those places have been filled: says which answers have no value. */
void cr_cl_array_filled(cured_call *call);
/* NULL: no. */
bool cr_cl_array_wants_statuses(const cr_cl_array *array);
/* At the end: what is missing or does not agree, or NULL. */
const char *cr_cl_array_check_end(const cured_call *call, const cr_wire_result *result);
/* Bytes of the op's answers. Memory of the library's own for them all, where the program has none; false: there is none. */
uint64_t cr_cl_array_bytes(const cr_cl_array *array, uint32_t op);
bool cr_cl_array_own(cr_cl_array *array);
const void *cr_cl_array_values(const cr_cl_array *array, uint32_t op);
/* Whether options.results were given. */
bool cr_cl_array_has_results(const cr_cl_array *array);
/* What the daemon may send beyond the window that every stream starts with. */
uint64_t cr_cl_array_credit(const cr_cl_array *array);
/* True when a part went to the program already, so that the call cannot start over. */
bool cr_cl_array_handed_over(const cr_cl_array *array);
void cr_cl_array_free(cr_cl_array *array);

/* outputs.c: the regions that a call's answers are written to. Makes call->outputs, which keeps them; none where the options name
 * none. */
cr_status cr_cl_outputs_make(cured_call *call, const cured_options *o, cr_error *error);
/* Sees to it that the daemon has been told of them on this connection. */
cr_status cr_cl_outputs_ensure(const cured_call *call, cr_error *error);
/* Whether their registrations are still to be answered. */
bool cr_cl_outputs_opening(const cured_call *call);
/* Decides whether this try asks the daemon to write. FAILED: it cannot, and nothing else can be done. */
cr_status cr_cl_outputs_choose(cured_call *call, cr_error *error);
/* Whether it does. */
bool cr_cl_outputs_written(const cured_call *call);
/* Packs the CALL; its length, and where it lies. */
size_t cr_cl_outputs_pack(cured_call *call, const uint8_t **packed);
/* The op's place; false: there is none. */
typedef struct cr_cl_output {
    cured_region *region;
    uint64_t offset;
} cr_cl_output;
bool cr_cl_outputs_get(const cured_call *call, uint32_t op, cr_cl_output *output);
/* The call is done: its uses of the regions end. */
void cr_cl_outputs_release(cured_call *call);
void cr_cl_outputs_free(cured_call *call);

/* request.c */
/* Calls in the connection's list that are not queued yet; NULL with *error set. elements: UINT64_MAX, not known yet. */
cured_call *cr_cl_new_call(cured_conn *conn, call_kind kind, size_t op_count, const cured_options *o, cr_error *error);
cured_call *cr_cl_new_reduce(cured_conn *conn, call_kind kind, cured_dtype dtype, const cured_op *ops, size_t op_count,
                             uint64_t elements, const cured_options *options, cr_error *error);

/* region.c: sees to it that the daemon has been told of the region on this connection. */
cr_status cr_cl_region_ensure(cured_region *region, cr_error *error);
/* For outputs: a use more of a region that may be written. has_results: the library may have to fill it. */
cr_status cr_cl_region_keep(cured_region *region, const cured_conn *conn, uint32_t index, bool has_results,
                            cr_error *error);
/* As cured_region_cuda. */
cured_status cr_cl_region_cuda(cured_conn *conn, const cured_cuda_memory *memory, bool writable, cured_region **region,
                               cured_error *error);
uint64_t cr_cl_region_id(const cured_region *region);
/* Of its registration on this connection, for answers that are to be written there: OPEN, or not yet, or *why not. */
typedef enum cr_cl_region_state { CR_REGION_OPENING, CR_REGION_OPEN, CR_REGION_FAILED } cr_cl_region_state;
cr_cl_region_state cr_cl_region_is(const cured_region *region, const cr_error **why);
int cr_cl_region_descriptor(const cured_region *region);
/* Whether the call is about a writable region: it waits for WELCOME, because older daemons know no such thing. */
bool cr_cl_regions_writable(const cured_call *call);
/* The same for all regions that the call names, and the end of its uses of them. */
cr_status cr_cl_regions_ensure(cured_call *call, cr_error *error);
void cr_cl_regions_release(cured_call *call);
/* Packs the CALL of several regions into call->owned; its length. */
size_t cr_cl_regions_pack(cured_call *call);
/* The Register call was answered. */
void cr_cl_region_registered(cured_call *call, const cr_wire_registered *r);
/* The same in this process: fd (taken over), and the memory of a sealed one, mapped; NULL: it is read. */
void cr_cl_region_opened(cured_call *call, int fd, void *memory, uint64_t bytes);
/* What a call of KIND_REGION reads: *memory NULL: the descriptor. */
int cr_cl_region_view(const cured_call *call, const uint8_t **memory, uint64_t *bytes);
/* Why the region that the call names is not there; NULL: it may be. */
const cr_error *cr_cl_region_error(const cured_call *call);
void cr_cl_region_release(cured_region *region);
void cr_cl_regions_close(cured_conn *conn);

/* send.c: sends until nothing is left or the socket is full. */
void cr_cl_send_flush(cured_conn *conn);
/* Queues a small frame of the connection itself; false when there is no room. */
bool cr_cl_send_control(cured_conn *conn, cr_frame_type type, const void *payload, uint32_t length);

/* receive.c: reads once and handles whole frames; false when there was nothing to read. */
bool cr_cl_receive_once(cured_conn *conn);

/* process.c */
void cr_cl_process_wake_at(cured_conn *conn, uint64_t when_ns);
/* Blocks until reached(call), until the call is done, or until a time (0: none). */
void cr_cl_process_until(cured_call *call, bool (*reached)(const cured_call *call), uint64_t until_ns);

#endif
