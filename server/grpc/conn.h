/* conn: one HTTP/2 connection: reads it, lets nghttp2 cut it into frames, writes what nghttp2 has to send.
 *
 * As with the native door a socket that is ready has its connection wait for its turn (loop/rounds.h), in which cr_grpc_conn_go
 * writes, goes on with what had to wait, and reads once. nghttp2 gets what was read in pieces, until the go is
 * over, or the bytes of a call have no room. The rest is stashed and nothing more is read.
 *
 *   GREETING ──the client's SETTINGS──► OPEN ──GOAWAY, an error──► LEAVING (writes, and takes nothing) ──► CLOSED
 *
 * Thread: the loop's. Owner: the door's list of connections; cr_grpc_conn_close ends it from any state, and must not be called
 * by nghttp2's callbacks. */
#ifndef CURED_SERVER_GRPC_CONN_H
#define CURED_SERVER_GRPC_CONN_H

#include "base/bytes.h"
#include "server/grpc/block.h"
#include "server/grpc/grpc.h"

typedef enum cr_grpc_state { CR_GRPC_GREETING, CR_GRPC_OPEN, CR_GRPC_LEAVING, CR_GRPC_CLOSED } cr_grpc_state;

struct cr_grpc_stream;

typedef struct cr_grpc_conn {
    uv_poll_t poll;
    cr_grpc *grpc;
    cr_list link, dirty;
    cr_seat seat;
    cr_socket socket;
    bool is_unix;
    cr_peer peer;
    cr_place place;
    cr_list guests; /* cr_grpc_guest: principals whose tokens came with calls */
    nghttp2_session *session;
    cr_block block;
    uint8_t state;                  /* cr_grpc_state */
    uint8_t events;                 /* asked of poll */
    cr_list streams;                /* all that are open */
    cr_list stalled;                /* of them, those whose calls have answers for the next turn */
    struct cr_grpc_stream *waiting; /* the one whose bytes have no room, the first of them in held; NULL: none */
    cr_bytes held;                  /* the rest of a chunk that nghttp2 counts as taken */
    cr_bytes stash;                 /* read, and not yet given to nghttp2 */
    cr_bytes out;                   /* to be written */
    size_t backlog;                 /* bytes that wait in the streams' buffers */
    uint32_t requests, answered;    /* of its go: calls begun, and bytes of answers */
    cr_timer timer;
    uint64_t last_progress_ms;
    bool readable, gone; /* as poll said last */
    bool paused;         /* by the end of its go, or for room: stash is taken on before anything else is read */
    bool early;          /* answers went while paused: their requests may have ended in what waits */
    bool waits_for_room; /* for the bytes of waiting */
    bool halted;         /* nghttp2 was told to pause */
    bool refused, brief, broken;
    bool parting;     /* told to begin no calls, and yet to say that it heard it */
    bool shut;        /* all is written, and the client has a moment to read it */
    bool wants_token; /* each request must show one */
    cr_error why;     /* with refused */
} cr_grpc_conn;

/* A principal on a connection, which may be that of a gateway for many. */
typedef struct cr_grpc_guest {
    cr_list link;
    cr_peer peer;
} cr_grpc_guest;
enum { CR_GRPC_MOST_GUESTS = 16 };

/* The peer that stands for the principal on this connection, until the connection ends. RESOURCE_EXHAUSTED. */
cr_status cr_grpc_conn_guest(cr_grpc_conn *conn, const cr_principal *who, cr_peer **peer, cr_error *error);
/* See cr_door. */
cr_status cr_grpc_conn_open(cr_grpc *grpc, const cr_arrived *arrived, cr_error *error);
/* Cancels its calls and closes the socket. The conn must not be used afterwards. */
void cr_grpc_conn_close(cr_grpc_conn *conn);
/* nghttp2 has something to send, or a stream has. */
void cr_grpc_conn_dirty(cr_grpc_conn *conn);
/* Writes what can be written now. The connection may be gone. */
void cr_grpc_conn_flush(cr_grpc_conn *conn);
/* A go of the connection's. True: it was full. */
bool cr_grpc_conn_go(cr_seat *seat, uint64_t until_ns);
/* Whether the go is over: it is full, or the time of the turn is. */
bool cr_grpc_conn_go_is_over(const cr_grpc_conn *conn);
/* The bytes that it waits with can be taken. */
void cr_grpc_conn_has_room(cr_grpc_conn *conn);
/* Keeps n bytes of a chunk for stream until there is room. False: there is no memory. */
bool cr_grpc_conn_hold(cr_grpc_conn *conn, struct cr_grpc_stream *stream, const uint8_t *bytes, size_t n);
/* Tells the client to begin no calls any more; none that it begins from now on is looked at. */
void cr_grpc_conn_goaway(cr_grpc_conn *conn, uint32_t http2_error, const char *text);
/* The server ends: tells the client to begin no calls, and answers those that are on their way. */
void cr_grpc_conn_part(cr_grpc_conn *conn);
/* The client has answered a PING: all that it sent before it heard of the end has come. */
void cr_grpc_conn_heard(cr_grpc_conn *conn);
/* Bytes of answers that wait, calls that are open, or calls that may be on their way. */
bool cr_grpc_conn_busy(const cr_grpc_conn *conn);

#endif
