/* receive: reads in bulk, cuts into frames, and hands to the calls each that is not its own. The daemon is not trusted:
 * what does not fit ends the connection.
 *
 * Thread: the one that uses the connection. Owner: the bytes stay in the connection's buffer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "client/lib/conn/conn.h"
#include "client/lib/conn/tls.h"
#include "client/lib/error.h"
#include "proto/wire.h"

static void broken(cured_conn *conn, const char *what, const char *detail) {
    cr_error e;
    cr_cl_broken(&e, what, detail);
    cr_cl_conn_broken(conn, &e);
}

static void on_welcome(cured_conn *conn, const uint8_t *in, uint32_t len) {
    cr_wire_welcome w;
    cr_error e;
    if (cr_wire_unpack_welcome(in, len, &w, &e) != CR_OK) {
        broken(conn, "bad WELCOME", e.text);
        return;
    }
    if (w.version < CR_WIRE_VERSION_MIN || w.version > CR_WIRE_VERSION_MAX) {
        cr_fail(&e, CR_UNIMPLEMENTED, "the daemon speaks protocol version %u, this library %d to %d", w.version,
                CR_WIRE_VERSION_MIN, CR_WIRE_VERSION_MAX);
        cr_cl_conn_broken(conn, &e);
        return;
    }
    const cr_wire_limits *limits = &w.limits; /* 0: not told */
    if ((limits->credit_bytes != 0 && limits->credit_bytes < CR_CREDIT_INITIAL_BYTES) ||
        (limits->data_bytes != 0 && limits->data_bytes < CR_DATA_MAX_BYTES)) {
        broken(conn, "bad WELCOME", "credit_bytes or data_bytes is less than version 1 promises");
        return;
    }
    conn->calls.welcomed = true;
    conn->attempt_deadline_ns = 0;
    conn->attempts = conn->failures = 0;
    conn->circuit_ns = 0;
    cr_cl_conn_watch(&conn->calls, cr_now_ns());
    memcpy(conn->server, w.server, sizeof conn->server);
    if (limits->credit_bytes != 0) conn->calls.credit = limits->credit_bytes;
    for (int i = 0; i < CR_WIRE_FEATURES; i++)
        conn->calls.has[i] = cr_wire_has_feature(w.features, w.feature_count, cr_wire_features[i]);
    cr_cl_calls_held(&conn->calls);
}

/* Of the connection as a whole: it ends. */
static void on_status(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    cr_wire_status s;
    cr_error e;
    if (cr_wire_unpack_status(in, f->length, &s, &e) != CR_OK) {
        broken(conn, "bad STATUS", e.text);
    } else if (s.code == CR_UNAVAILABLE || s.code == CR_RESOURCE_EXHAUSTED || s.code == CR_DEADLINE_EXCEEDED) {
        cr_cl_conn_lost(conn, s.code == CR_DEADLINE_EXCEEDED ? CR_UNAVAILABLE : s.code, s.retry_after_ms, s.message);
    } else {
        cr_fail(&e, s.code == CR_OK ? CR_UNKNOWN : s.code, "%s", s.message);
        cr_cl_conn_broken(conn, &e);
    }
}

static void answer_ping(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    if (!cr_cl_send_control(conn, CR_FRAME_PONG, in, f->length)) broken(conn, "too many PINGs at once", "");
}

static void on_frame(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    cr_error e;
    if (f->type == CR_FRAME_STATUS && f->stream == 0)
        on_status(conn, f, in);
    else if (f->type == CR_FRAME_WELCOME && !conn->calls.welcomed)
        on_welcome(conn, in, f->length);
    else if (f->type == CR_FRAME_WELCOME)
        broken(conn, "WELCOME twice", "");
    else if (!conn->calls.welcomed)
        broken(conn, "another frame before WELCOME", cr_frame_name(f->type));
    else if (f->type == CR_FRAME_PING)
        answer_ping(conn, f, in);
    else if (cr_cl_calls_take(&conn->calls, f, in, &e) != CR_OK)
        cr_cl_conn_broken(conn, &e);
}

/* A frame longer than a head may be an array's or a partial's that was asked for, or belong to a call that is over. True: it can be
 * read; otherwise it is skipped, or the connection has ended. */
static bool take_long(cured_conn *conn, const cr_frame *f) {
    cured_call *call;
    cr_error e;
    if (cr_cl_calls_take_long(&conn->calls, f, &call, &e) != CR_OK) {
        cr_cl_conn_broken(conn, &e);
        return false;
    }
    if (call != NULL && conn->in == conn->small) {
        uint8_t *large = malloc(CR_CL_LARGE_IN_BYTES);
        if (large != NULL) {
            memcpy(large, conn->small, conn->in_len);
            conn->in = large;
            conn->in_bytes = CR_CL_LARGE_IN_BYTES;
        } else {
            cr_cl_call_abandon(call, CR_RESOURCE_EXHAUSTED, "no memory for its answer");
            call = NULL;
        }
    }
    if (call == NULL) conn->skip = f->length;
    return call != NULL;
}

/* Handles every whole frame in the buffer; what is left of the next one moves to its start. */
static void cut_frames(cured_conn *conn) {
    size_t pos = 0;
    while (conn->state == CONN_OPEN) {
        size_t left = conn->in_len - pos;
        if (conn->skip != 0) {
            size_t n = conn->skip < left ? (size_t)conn->skip : left;
            conn->skip -= n;
            pos += n;
            left -= n;
        }
        if (left < CR_FRAME_HEADER_BYTES) break;
        cr_frame f;
        cr_error e;
        bool skip;
        if (cr_frame_get(conn->in + pos, false, &f, &skip, &e) != CR_OK) {
            broken(conn, "bad frame", e.text);
            return;
        }
        if (skip) {
            conn->skip = f.length;
            pos += CR_FRAME_HEADER_BYTES;
            continue;
        }
        if (f.length > CR_HEAD_MAX_BYTES && !take_long(conn, &f)) {
            pos += CR_FRAME_HEADER_BYTES;
            continue;
        }
        if (left - CR_FRAME_HEADER_BYTES < f.length) break;
        on_frame(conn, &f, conn->in + pos + CR_FRAME_HEADER_BYTES);
        cr_cl_fork_check(&conn->calls); /* a callback may have forked */
        pos += CR_FRAME_HEADER_BYTES + f.length;
    }
    if (conn->state != CONN_OPEN) return; /* the buffer was emptied */
    conn->in_len -= pos;
    if (conn->in_len != 0 && pos != 0) memmove(conn->in, conn->in + pos, conn->in_len);
}

bool cr_cl_receive_once(cured_conn *conn) {
    ssize_t n;
    uint8_t *to = conn->in + conn->in_len;
    const size_t room = conn->in_bytes - conn->in_len;
    do n = conn->tls != NULL ? cr_cl_tls_recv(conn, to, room) : recv(conn->calls.fd, to, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        conn->moved = true;
        conn->in_len += (size_t)n;
        conn->calls.came_ns = cr_now_ns(); /* one time for all answers that came together */
        cut_frames(conn);
        conn->calls.came_ns = 0;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    char text[CR_ERROR_TEXT];
    if (n == 0)
        snprintf(text, sizeof text, "the daemon closed the connection");
    else
        snprintf(text, sizeof text, "the connection to the daemon was lost: %s",
                 cr_cl_tls_why(conn) != NULL ? cr_cl_tls_why(conn) : strerror(errno));
    const bool distrust = n < 0 && cr_cl_tls_shakes(conn) && cr_cl_tls_why(conn) != NULL;
    cr_cl_conn_lost(conn, distrust ? CR_UNAUTHENTICATED : CR_UNAVAILABLE, 0, text);
    return true;
}
