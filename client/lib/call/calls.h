/* calls: the calls of a connection, and what they know of it: the seam between them and whoever answers.
 *
 * Whoever answers is a table of functions (cr_way): a daemon at the other end of a socket (conn/), or this process (embedded/). Calls
 * see no more of either. Those see calls through the functions below; embedded/, which is their daemon, sees call.h too.
 *
 *   conn/       send.c    ◀─ cr_cl_calls_gather, _sent ── frames and bytes of the calls
 *               receive.c ── cr_cl_calls_take ──────────▶ every frame that is not the connection's own
 *               process.c ── cr_cl_calls_due, _held, _run_callbacks ─▶ each turn
 *
 * Thread: the one that uses the connection. Owner: the connection, which begins with its calls. A call is the program's until
 * cured_call_free; one that is still queued then belongs to the connection. */
#ifndef CURED_CLIENT_LIB_CALL_CALLS_H
#define CURED_CLIENT_LIB_CALL_CALLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "client/lib/region/region.h"
#include "cured/cured.h"
#include "proto/frame.h"
#include "proto/status.h"
#include "proto/wire.h"

typedef struct cr_cl_calls cr_cl_calls;

/* How the calls of a connection are answered. Functions that say so may be NULL. A dead connection begins no calls. */
typedef struct cr_way {
    uint32_t (*away_ms)(const cr_cl_calls *calls, cr_error *why); /* how long calls fail for at once; 0: not. Or NULL */
    void (*watch)(cr_cl_calls *calls, uint64_t now_ns);           /* a call waits from now on, and no other. Or NULL */
    void (*begin)(cured_call *call); /* begins a try of the call, which may be done when this returns */
    void (*over)(cured_call *call);  /* the call is done: lets go of all that is the program's. Or NULL */
    void (*more)(cured_call *call);  /* a stream has new bytes, or its end */
    void (*turn)(cr_cl_calls *calls, bool readable); /* what can be done without blocking; readable: worth a recv */
    void (*flush)(cr_cl_calls *calls);               /* after callbacks, which may have begun calls. Or NULL */
    bool (*pressing)(const cr_cl_calls *calls);      /* there is work that waits for nothing */
    void (*inherited)(cr_cl_calls *calls);           /* this process is a child: nothing of the parent's is touched */
    void (*close)(cr_cl_calls *calls);               /* all calls are done. Or NULL */
} cr_way;

enum { CR_CL_BUCKETS = 256 };

struct cr_cl_calls {
    const cr_way *way;
    struct cr_local *local; /* of embedded/; NULL: a socket */
    int fd;                 /* what is waited for: the socket, or news of other threads; -1: nothing */
    bool tcp;               /* no descriptor can be passed */
    bool busy;              /* callbacks may be under way: nothing may be waited for */
    const cr_error *dead;   /* why no call may begin any more; NULL: they may */

    /* of WELCOME: what the daemon grants */
    bool welcomed, has[CR_WIRE_FEATURES];
    uint64_t credit;
    uint32_t last_stream;
    uint64_t last_ping;

    bool registered;  /* a Register call is over: calls may have waited for it */
    uint64_t wake_ns; /* no deadline or retry lies before it; 0: none at all */
    uint64_t came_ns; /* when what is being read came; 0: nothing is */
    uint64_t random;
    cr_cl_regions regions;
    cr_list all;      /* which are not done */
    cr_list queue;    /* those with something to send */
    cr_list finished; /* whose callback is due */
    cured_call *hash[CR_CL_BUCKETS];

    pid_t process;                 /* whose connection it is; see fork.c */
    const volatile uint32_t *mark; /* NULL: Linux has none */
};

/* A connection begins with its calls (conn/conn.h). */
static inline cr_cl_calls *cr_cl_calls_of(cured_conn *conn) { return (cr_cl_calls *)(void *)conn; }

/* calls.c. Everything else is zero. */
void cr_cl_calls_init(cr_cl_calls *calls);
/* xorshift: of 64 bits. */
uint64_t cr_cl_calls_random(cr_cl_calls *calls);
/* cr_cl_calls_due has something to do then. */
void cr_cl_calls_wake_at(cr_cl_calls *calls, uint64_t when_ns);
/* Where wake_ns is not 0: ends calls whose time is over and begins those whose next try is due. */
void cr_cl_calls_due(cr_cl_calls *calls);
/* WELCOME is there, or a region is: sends the calls that waited for it. */
void cr_cl_calls_held(cr_cl_calls *calls);
/* Runs the callbacks of what is done. */
void cr_cl_calls_run_callbacks(cr_cl_calls *calls);
/* Some call is under way, and not only to be tried again. */
bool cr_cl_calls_waiting(const cr_cl_calls *calls);
/* The daemon is gone: calls are tried again or end with this. */
void cr_cl_calls_lost(cr_cl_calls *calls, const cr_error *error, uint32_t retry_after_ms);
/* Nothing is answered any more: calls end with this, which is kept, and so do all that begin later. */
void cr_cl_calls_die(cr_cl_calls *calls, const cr_error *error);
/* This process is a child of the one that made the connection: ends the calls without callbacks. */
void cr_cl_calls_inherited(cr_cl_calls *calls);
/* The connection is closed: the same, and its regions are nobody's. */
void cr_cl_calls_close(cr_cl_calls *calls);

/* fork.c: a connection belongs to the process that made it. Looks whether this is that process, before the socket is used. */
void cr_cl_fork_mark(cr_cl_calls *calls);
void cr_cl_fork_unmark(cr_cl_calls *calls);
void cr_cl_fork_check(cr_cl_calls *calls);

/* output.c: what is sent together. */
enum { CR_CL_PIECES = 128 };
typedef struct cr_cl_message {
    struct iovec iov[CR_CL_PIECES];
    size_t pieces, bytes;
    cured_call *fd_call; /* whose descriptor goes with the first byte; NULL: none does */
    int fd;
    bool full;
} cr_cl_message;

/* Collects the rest of a frame that is partly sent, then the connection's own small frames, then the calls' pieces in turn. */
void cr_cl_calls_gather(const cr_cl_calls *calls, const uint8_t *own, size_t own_bytes, cr_cl_message *message);
/* n bytes of that are sent: how many of them are the connection's own. */
size_t cr_cl_calls_sent(cr_cl_calls *calls, size_t own_bytes, size_t n);
/* The descriptor could not be passed. */
void cr_cl_calls_fd_refused(const cr_cl_message *message);
/* Queues the frames of a call's try for the daemon. */
void cr_cl_call_send(cured_call *call);
/* Readies a frame for new bytes or credit, or the end, if the call has none under way. */
void cr_cl_call_more(cured_call *call);

/* take.c: a frame of the daemon's that is about a call, or that answers a PING. What is wrong with it ends the connection. */
cr_status cr_cl_calls_take(cr_cl_calls *calls, const cr_frame *f, const uint8_t *in, cr_error *error);
/* A frame longer than a head: whether it may come. *call: whose it is; NULL: of one that is over. */
cr_status cr_cl_calls_take_long(const cr_cl_calls *calls, const cr_frame *f, cured_call **call, cr_error *error);

/* call.c: ends a call on this side; the daemon is told to stop. */
void cr_cl_call_abandon(cured_call *call, cr_status code, const char *text);
/* What is known of a wait for a call (conn/look.c). */
typedef struct cr_cl_awaited {
    uint64_t since_ns, foreseen_ns; /* when it began, and when the answer will probably come; 0: nobody knows */
} cr_cl_awaited;
cr_cl_awaited *cr_cl_call_awaited(cured_call *call);
/* What two calls have in common that take the same time; 0: a call of which nothing is foreseen. */
uint64_t cr_cl_call_kind(const cured_call *call);
cr_cl_calls *cr_cl_call_calls(const cured_call *call);

/* register.c: the Register call of the region on this connection, to be waited for; NULL: *error. */
cured_call *cr_cl_region_awaited(cured_region *region, cr_error *error);

#endif
