/* conn: a connection: its calls, and the socket to the daemon that answers them, if it is not this process that does.
 *
 *   cured_connect ─▶ CONNECTING ─▶ OPEN ─▶ (lost) WAITING ─▶ CONNECTING …     when a call wants it
 *                        └──────────┴────▶ (daemon broke the protocol) DEAD
 *
 * A child process goes to WAITING, with a connection of its own to come (call/fork.c).
 *
 * An attempt that brings no WELCOME is a failure. After circuit_failures of them in a row WAITING lasts, whoever wants a
 * connection.
 *
 * HELLO waits in the control buffer from the start, so calls can follow it without waiting for WELCOME.
 *
 * For this room; everybody else has cured.h.
 * Thread: the one that uses the connection. Owner: the program, until cured_close. */
#ifndef CURED_CLIENT_LIB_CONN_CONN_H
#define CURED_CLIENT_LIB_CONN_CONN_H

#include "base/lookout.h"
#include "client/lib/call/calls.h"
#include "cured/cured.h"
#include "proto/frame.h"
#include "proto/limits.h"

enum {
    CR_CL_IN_BYTES = CR_FRAME_HEADER_BYTES + CR_HEAD_MAX_BYTES + 16 * 1024,
    CR_CL_LARGE_IN_BYTES = CR_FRAME_HEADER_BYTES + CR_DATA_MAX_BYTES + 16 * 1024, /* once arrays come */
    CR_CL_CONTROL_BYTES = 8 * 1024,
};

/* WAITING: no socket; the next attempt is due at attempt_ns when calls want it. CONNECTING: connect() is under way. OPEN.
 * DEAD: the daemon broke the protocol; nothing more happens. */
typedef enum conn_state { CONN_WAITING, CONN_CONNECTING, CONN_OPEN, CONN_DEAD } conn_state;

struct cured_conn {
    cr_cl_calls calls; /* first: see cr_cl_calls_of */
    conn_state state;
    struct cr_cl_tls *tls; /* NULL: the bytes are plain */
    bool send_failed, more_addresses;
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
    uint32_t lookup;       /* which of the host's addresses is tried next */
    cr_lookout lookout;    /* of the thread that waits */
    cr_foresight foresight;
    uint64_t look_ns; /* when the wait began that is looked through */
    cr_error error, auto_reason;
    uint32_t retry_after_ms;

    size_t control_len, control_pos, in_len;
    uint64_t skip; /* bytes left of a frame that is not understood */
    uint8_t *in;   /* small, or CR_CL_LARGE_IN_BYTES of its own */
    size_t in_bytes;
    uint8_t control[CR_CL_CONTROL_BYTES];
    uint8_t small[CR_CL_IN_BYTES];
};

static inline cured_conn *cr_cl_conn_of(const cr_cl_calls *calls) { return cr_container(calls, cured_conn, calls); }

/* conn.c */
void cr_cl_conn_attempt(cured_conn *conn, uint64_t now);
/* connect() has an outcome: OPEN, the host's next address, or lost. */
void cr_cl_conn_connected(cured_conn *conn, uint64_t now);
/* A call has something to send: makes sure that a connection is coming. */
void cr_cl_conn_want(cured_conn *conn);
/* How long calls that are started fail for, because the daemon was away too often; 0: not now. */
uint32_t cr_cl_conn_away_ms(const cr_cl_calls *calls, cr_error *why);
/* A call waits from now on: what moves counts. */
void cr_cl_conn_watch(cr_cl_calls *calls, uint64_t now);
/* Some call is under way, and the daemon is there. */
bool cr_cl_conn_waits(const cured_conn *conn);
/* Asks a daemon from which nothing comes whether it lives; loses the connection when it did not answer. */
void cr_cl_conn_keep(cured_conn *conn);
/* The connection is gone: calls are tried again or end with this; the next attempt may come. */
void cr_cl_conn_lost(cured_conn *conn, cr_status code, uint32_t retry_after_ms, const char *text);
/* The daemon broke the protocol: calls end with this, and so does everything later. */
void cr_cl_conn_broken(cured_conn *conn, const cr_error *error);
/* This process is a child of the one that made the connection: connects anew when a call wants it. */
void cr_cl_conn_inherited(cr_cl_calls *calls);

/* send.c: sends until nothing is left or the socket is full. */
void cr_cl_send_flush(cured_conn *conn);
/* Queues a small frame of the connection itself; false when there is no room. */
bool cr_cl_send_control(cured_conn *conn, cr_frame_type type, const void *payload, uint32_t length);

/* receive.c: reads once and handles whole frames; false when there was nothing to read. */
bool cr_cl_receive_once(cured_conn *conn);

/* process.c: calls that a daemon answers. */
extern const cr_way cr_cl_socket;

#endif
