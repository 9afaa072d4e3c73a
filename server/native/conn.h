/* conn: one native connection: reads frames, keeps its calls, writes replies.
 *
 * A socket that poll reports has its connection wait for its turn (loop/rounds.h), in which cr_conn_go writes, goes on with what
 * had to wait, and reads. Reading: one recvmsg a turn, into {the rest of the slab or head that is being filled, the loop's
 * buffer}. Frames are taken from the buffer until it is empty, a frame is incomplete, or the connection must wait (for room, for
 * the client to read its replies, or for its next turn, because its go was full); what is left is stashed.
 * While much of a frame is on its way over TCP, the connection waits for many bytes at once.
 * Descriptors queue as they come and frames take them.
 *
 *   GREETING ──HELLO──► OPEN ──error──► LINGERING (says why, drops what comes) ──► CLOSED (freed when its handle is closed)
 *
 * Thread: the loop's. Owner: the native door's list of connections; cr_conn_close ends it from any state. */
#ifndef CURED_SERVER_NATIVE_CONN_H
#define CURED_SERVER_NATIVE_CONN_H

#include "base/bytes.h"
#include "proto/frame.h"
#include "server/native/native.h"
#include "server/native/streams.h"

typedef enum cr_conn_state { CR_CONN_GREETING, CR_CONN_OPEN, CR_CONN_LINGERING, CR_CONN_CLOSED } cr_conn_state;

struct cr_stream;

typedef struct cr_conn {
    uv_poll_t poll;
    cr_native *native;
    cr_list link, dirty;
    cr_seat seat;
    cr_socket socket;
    cr_peer peer;
    cr_place place;
    bool passes_descriptors; /* Unix sockets */
    uint8_t state;           /* cr_conn_state */
    uint8_t events;          /* asked of poll */
    uint8_t descriptor_count;
    int descriptors[CR_CONN_MAX_DESCRIPTORS]; /* received, not yet taken; oldest first */

    uint32_t highest_stream;
    cr_list open;               /* streams whose calls are not over */
    cr_streams streams;         /* the same by number */
    cr_list stalled;            /* of them, those whose answers wait for room in out */
    struct cr_regions *regions; /* NULL until one is registered */
    struct cr_guest *guest;     /* while it is in an annex; NULL: it is at home, see annex.h */

    uint32_t frames, answered;        /* of its go: frames, and bytes of replies since it last went */
    uint32_t early;                   /* after so many frames of its go answers leave early */
    cr_bytes stash;                   /* an incomplete frame, or all that came after the connection had to wait */
    uint32_t payload_left;            /* of the DATA (or skipped frame) being read */
    struct cr_stream *payload_stream; /* whose bytes they are; NULL: drop them */
    bool payload_end;                 /* the DATA has END */

    cr_bytes out;
    cr_timer timer; /* HELLO, then stalls, then lingering */
    uint64_t last_progress_ms;
    uint64_t read_ns; /* the last read */
    uint32_t pace;    /* how many bytes of an upload the next read may wait for */
    uint64_t parked;  /* where descriptors wait for their frames: when that began, as native->parked counts */

    bool readable, gone;   /* as poll said last */
    bool crowded;          /* poll does not watch it: see crowd.h */
    bool ended;            /* of one in the crowd: the client sends nothing more */
    bool alone;            /* no other connection went since it went last */
    bool waits_for_room;   /* for the bytes of payload_stream */
    bool waits_for_closes; /* of descriptors that it passed before */
    bool paused;           /* stash holds whole frames: taken on before anything else is read */
    bool wants_token;      /* its client must show one in HELLO */
    bool refused;          /* not admitted: it only says why */
    bool broken;           /* no memory for a reply: closed at the end of the turn */
    bool other;            /* the last CALL's array was not small, or has not come yet */
    bool goes_home;        /* from its annex, with the end of its go */
    uint32_t small;        /* so many calls in a row were answered that had small arrays */
    uint32_t wanted;       /* of them, before it may leave for an annex */
} cr_conn;

/* See cr_door. */
cr_status cr_conn_open(cr_native *native, const cr_arrived *arrived, cr_error *error);
/* Cancels its calls, closes what was passed and the socket. The conn must not be used afterwards. */
void cr_conn_close(cr_conn *conn);
/* Takes the connection, which has no open call, from its loop: with what it has read and not yet written. The old one must not be used
 * afterwards; its peer counts where it did. NULL: there is no memory, and nothing has changed. */
cr_conn *cr_conn_lift(cr_conn *conn);
/* A connection that was lifted is native's from now on, on the thread of native's loop. False: it cannot, and stays as it was. */
bool cr_conn_settle(cr_conn *conn, cr_native *native);
/* Ends one that was lifted and has not settled. Its peer counts nowhere any more. */
void cr_conn_discard(cr_conn *conn);
/* Sends STATUS on stream 0 and closes after a while. False, for `return cr_conn_fail(…)`. */
bool cr_conn_fail(cr_conn *conn, const cr_error *error);

/* Reply bytes: room for at least bytes at the end of out. NULL when there is no memory; the connection then ends soon. */
uint8_t *cr_conn_room(cr_conn *conn, size_t bytes);
/* bytes of that room were filled: they go out at the end of the turn, or early. */
void cr_conn_put(cr_conn *conn, size_t bytes);
/* Reply bytes not written yet. */
size_t cr_conn_backlog(const cr_conn *conn);
/* Whether answers that can wait have to: the client does not read them, or its go is full. */
bool cr_conn_full(const cr_conn *conn);
/* Whether the go is over: it is full, or the time of the turn is. */
bool cr_conn_go_is_over(const cr_conn *conn);
/* A go of the connection's. True: it was full. */
bool cr_conn_go(cr_seat *seat, uint64_t until_ns);
/* Over a Unix socket: writes what the client takes at once. What goes wrong the next flush finds, too. */
void cr_conn_send_early(cr_conn *conn);
/* Writes what can be written now. */
void cr_conn_flush(cr_conn *conn);
/* The bytes that this connection waits with can be taken. */
void cr_conn_has_room(cr_conn *conn);
/* Reads nothing for a moment, because closes are behind (cr_arrived_behind). False: there is no memory for that. */
bool cr_conn_wait_for_closes(cr_conn *conn);
/* Keeps a passed descriptor until its frame takes it: at most CR_CONN_MAX_DESCRIPTORS. */
void cr_conn_park_descriptor(cr_conn *conn, int descriptor);
/* Of all connections (user: of that user's, NULL: all) the one with most descriptors that wait so; of several, the one that has had some for longest. NULL: none
 * has any. */
cr_conn *cr_conn_most_parked(const cr_native *native, const cr_user *user);
/* Takes the next passed descriptor; -1: none. */
int cr_conn_take_descriptor(cr_conn *conn);
/* Closes those that no frame has taken. */
void cr_conn_close_descriptors(cr_conn *conn);

#endif
