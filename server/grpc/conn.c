/* conn: birth, turns and end of a connection. Thread: the loop's. Owner: the door's list. */
#include "server/grpc/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/grpc/session.h"

enum {
    SLICE_BYTES = 8 * 1024, /* given to nghttp2 between two looks at the clock */
    OUT_BYTES =
        64 * 1024, /* of frames packed before they are written; a client that reads none of them is read from no more */
    LINGER_MS = 1000, /* for a client to read why its connection ended */
};

static void on_handle_closed(uv_handle_t *handle) {
    cr_grpc_conn *conn = handle->data;
    for (cr_list *node; (node = cr_list_pop(&conn->guests));) free(cr_container(node, cr_grpc_guest, link));
    free(conn);
}

static bool out_pending(const cr_grpc_conn *conn) {
    return cr_bytes_left(&conn->out) > 0 || cr_socket_unsent(&conn->socket);
}

static bool reading(const cr_grpc_conn *conn) {
    return !conn->waits_for_room && !conn->paused && cr_bytes_left(&conn->out) < OUT_BYTES;
}

bool cr_grpc_conn_go_is_over(const cr_grpc_conn *conn) {
    const cr_grpc *grpc = conn->grpc;
    return conn->requests >= CR_GO_FRAMES || conn->answered >= CR_GO_ANSWERS || grpc->calls->last_ns >= grpc->until_ns;
}

static bool has_more(const cr_grpc_conn *conn) {
    return (conn->paused && !conn->waits_for_room) || (!cr_list_empty(&conn->stalled) && !out_pending(conn)) ||
           (!out_pending(conn) && nghttp2_session_want_write(conn->session)) ||
           (reading(conn) && cr_socket_has_more(&conn->socket));
}

static void wait_for_turn(cr_grpc_conn *conn) { cr_rounds_wait(&conn->grpc->rounds, &conn->seat); }

static void on_poll(uv_poll_t *handle, int status, int events) {
    cr_grpc_conn *conn = handle->data;
    cr_loop_came(conn->grpc->loop);
    if (status < 0 || (events & UV_DISCONNECT && !(events & UV_READABLE) && !reading(conn))) conn->gone = true;
    if (events & UV_READABLE) conn->readable = true;
    wait_for_turn(conn);
}

static void update_events(cr_grpc_conn *conn) {
    int events = (reading(conn) ? UV_READABLE : UV_DISCONNECT) | (out_pending(conn) ? UV_WRITABLE : 0);
    if (conn->state == CR_GRPC_CLOSED || events == conn->events) return;
    conn->events = (uint8_t)events;
    uv_poll_start(&conn->poll, events, on_poll);
}

bool cr_grpc_conn_busy(const cr_grpc_conn *conn) {
    for (cr_list *node = conn->streams.next; node != &conn->streams; node = node->next) {
        const cr_grpc_stream *stream = cr_container(node, cr_grpc_stream, link);
        if (stream->call || cr_grpc_reply_backlog(stream) || (stream->over && !stream->trailers_sent)) return true;
    }
    return conn->parting || out_pending(conn);
}

/* ---- time ---- */

static void set_timer(cr_grpc_conn *conn, uint64_t when_ms) {
    cr_timer_set(&conn->grpc->calls->timers, &conn->timer, when_ms);
}

/* Requests that stay unfinished, and answers that are not taken, end by and by. Calls have rules of their own. */
static void end_stalled(cr_grpc_conn *conn, uint64_t now, uint64_t stall) {
    for (cr_list *node = conn->streams.next, *next; node != &conn->streams; node = next) {
        next = node->next;
        cr_grpc_stream *stream = cr_container(node, cr_grpc_stream, link);
        const bool between = stream->any_message && stream->reading == CR_GRPC_PREFIX && !stream->prefix_len;
        const bool owes = cr_grpc_reply_backlog(stream) || (stream->over && !stream->trailers_sent) ||
                          (!stream->call && !stream->over && !between);
        if (!owes || now < stream->progress_ms + stall) continue;
        cr_metric_add(calls_failed, 1);
        nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
        cr_grpc_conn_dirty(conn);
    }
}

static void on_timer(cr_timer *timer) {
    cr_grpc_conn *conn = cr_container(timer, cr_grpc_conn, timer);
    const uint64_t stall = conn->grpc->calls->config->stall_timeout_ms, now = cr_now_ms();
    const bool stuck = out_pending(conn) && now >= conn->last_progress_ms + stall;
    if (conn->state == CR_GRPC_LEAVING || conn->state == CR_GRPC_GREETING || conn->refused || stuck) {
        cr_debug("gRPC connection ended: %s", conn->state == CR_GRPC_GREETING ? "no SETTINGS came" : "it stood still");
        cr_metric_add(connections_ended, 1);
        cr_grpc_conn_close(conn);
        return;
    }
    end_stalled(conn, now, stall);
    if (!cr_list_empty(&conn->streams) || out_pending(conn)) set_timer(conn, now + stall / 2 + 1);
}

static void watch_stall(cr_grpc_conn *conn) {
    if (conn->timer.slot || conn->state != CR_GRPC_OPEN || (cr_list_empty(&conn->streams) && !out_pending(conn)))
        return;
    set_timer(conn, cr_now_ms() + conn->grpc->calls->config->stall_timeout_ms / 2 + 1);
}

/* ---- birth and end ---- */

static uint64_t left_to_greet(const cr_grpc_conn *conn, const cr_arrived *arrived) {
    const uint64_t until = arrived->since_ms + conn->grpc->calls->config->hello_timeout_ms, now = cr_now_ms();
    return until > now ? until - now : 0;
}

/* Nothing here takes descriptors: a client that passes some is told to go. */
static void refuse_descriptors(cr_grpc_conn *conn) {
    if (conn->state != CR_GRPC_LEAVING)
        cr_grpc_conn_goaway(conn, NGHTTP2_PROTOCOL_ERROR, "descriptors belong to the native protocol");
}

/* Before nghttp2 sees them. False: the connection ends, because of a header block. */
static bool look(cr_grpc_conn *conn, uint8_t *bytes, size_t n) {
    if (cr_block_look(&conn->block, bytes, n)) return true;
    cr_grpc_conn_goaway(conn, NGHTTP2_ENHANCE_YOUR_CALM,
                        "headers: a block of them has at most 128 KiB, and 8 CONTINUATIONs");
    return false;
}

/* A client that is not trusted hears so by each of its calls, for a moment: of a GOAWAY gRPC would tell nobody why. */
static void begin(cr_grpc_conn *conn, const cr_arrived *arrived) {
    conn->refused = arrived->refused != NULL;
    conn->brief = arrived->brief;
    if (conn->refused) conn->why = *arrived->refused;
    if (arrived->control) {
        cr_arrived_drop(conn->grpc->calls, &conn->peer, arrived->control);
        refuse_descriptors(conn);
    } else if (arrived->refused && (arrived->brief || arrived->refused->code == CR_RESOURCE_EXHAUSTED)) {
        cr_grpc_conn_goaway(conn, NGHTTP2_ENHANCE_YOUR_CALM, arrived->refused->text);
    } else if (cr_bytes_add(&conn->stash, arrived->bytes, arrived->count)) {
        conn->paused = true;
        look(conn, conn->stash.at, conn->stash.len); /* fewer than a block can have */
        set_timer(conn, cr_now_ms() + (arrived->refused ? LINGER_MS : left_to_greet(conn, arrived)));
    } else {
        conn->broken = true;
    }
    cr_grpc_conn_dirty(conn);
    wait_for_turn(conn);
}

cr_status cr_grpc_conn_guest(cr_grpc_conn *conn, const cr_principal *who, cr_peer **peer, cr_error *error) {
    cr_admission *admission = &conn->grpc->calls->admission;
    const uint64_t owner = cr_peer_principal(who->name);
    cr_grpc_guest *guest = NULL;
    unsigned count = 0;
    for (cr_list *node = conn->guests.next; node != &conn->guests; node = node->next, count++)
        if (cr_container(node, cr_grpc_guest, link)->peer.owner == owner)
            guest = cr_container(node, cr_grpc_guest, link);
    if (!guest && count == CR_GRPC_MOST_GUESTS)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "token: %d others came on this connection, which is the limit",
                       CR_GRPC_MOST_GUESTS);
    if (!guest) {
        guest = calloc(1, sizeof *guest);
        if (!guest) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
        guest->peer = conn->peer;
        guest->peer.calls = guest->peer.state_bytes = guest->peer.regions = guest->peer.region_bytes = 0;
        cr_status status = cr_admit_visit(admission, &guest->peer, who, who->name, error);
        if (status != CR_OK) {
            free(guest);
            return status;
        }
        cr_list_append(&conn->guests, &guest->link);
    }
    cr_peer_goes_by(&guest->peer, who); /* its token may be a new one */
    *peer = &guest->peer;
    return CR_OK;
}

static bool has_calls(const cr_grpc_conn *conn) {
    uint64_t calls = conn->peer.calls;
    for (cr_list *node = conn->guests.next; node != &conn->guests; node = node->next)
        calls += cr_container(node, cr_grpc_guest, link)->peer.calls;
    return calls > 0;
}

/* Whether bytes have come that nobody has read. */
static bool has_unread(const cr_grpc_conn *conn) {
    int bytes = 0;
    return ioctl(conn->socket.fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* GOAWAY names the last request that was looked at: clients make later ones again, on another connection. */
static bool end_idle(cr_place *place, bool quiet) {
    cr_grpc_conn *conn = cr_container(place, cr_grpc_conn, place);
    const bool open = conn->state == CR_GRPC_OPEN && cr_list_empty(&conn->streams);
    if (has_calls(conn)) return false;
    if (quiet && (!open || conn->seat.waits || out_pending(conn) || cr_bytes_left(&conn->stash) || has_unread(conn)))
        return false;
    cr_metric_add(connections_idle_ended_total, 1);
    cr_grpc_conn_goaway(conn, NGHTTP2_NO_ERROR, "this connection was idle, and another user needed its place");
    cr_grpc_conn_flush(conn); /* may close it */
    cr_grpc_conn_close(conn);
    return true;
}

cr_status cr_grpc_conn_open(cr_grpc *grpc, const cr_arrived *arrived, cr_error *error) {
    cr_grpc_conn *conn = calloc(1, sizeof *conn);
    bool opened = false;
    if (conn) {
        conn->grpc = grpc;
        conn->poll.data = conn;
        conn->socket = arrived->socket;
        conn->is_unix = arrived->is_unix;
        conn->peer = arrived->peer;
        conn->wants_token = arrived->wants_token;
        conn->place.end = end_idle;
        conn->timer.fire = on_timer;
        conn->last_progress_ms = cr_now_ms();
        cr_list_init(&conn->streams);
        cr_list_init(&conn->stalled);
        cr_list_init(&conn->dirty);
        cr_list_init(&conn->guests);
        cr_block_init(&conn->block);
        opened = cr_rounds_join(&grpc->rounds, &conn->seat, conn->peer.client) && cr_session_open(conn) &&
                 uv_poll_init_socket(grpc->loop->uv, &conn->poll, conn->socket.fd) == 0;
    }
    if (!opened) {
        cr_peer peer = arrived->peer;
        if (conn) cr_rounds_leave(&grpc->rounds, &conn->seat);
        if (conn) nghttp2_session_del(conn->session);
        free(conn);
        cr_metric_sub(connections, 1);
        cr_arrived_leave(grpc->calls, &peer, arrived->refused);
        cr_socket unwanted = arrived->socket;
        cr_socket_close(&unwanted);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a new connection");
    }
    cr_arrived_speaks(grpc->calls, &conn->peer, CR_SPOKEN_grpc);
    cr_list_append(&grpc->connections, &conn->link);
    if (!arrived->refused) cr_admit_place(&conn->peer, &conn->place);
    begin(conn, arrived);
    update_events(conn);
    return CR_OK;
}

void cr_grpc_conn_close(cr_grpc_conn *conn) {
    cr_calls *calls = conn->grpc->calls;
    if (conn->state == CR_GRPC_CLOSED) return;
    conn->state = CR_GRPC_CLOSED;
    while (!cr_list_empty(&conn->streams)) cr_grpc_stream_free(cr_container(conn->streams.next, cr_grpc_stream, link));
    nghttp2_session_del(conn->session);
    cr_timer_stop(&calls->timers, &conn->timer);
    cr_list_remove(&conn->link);
    cr_list_remove(&conn->dirty);
    cr_rounds_leave(&conn->grpc->rounds, &conn->seat);
    cr_bytes_free(&conn->held);
    cr_bytes_free(&conn->stash);
    cr_bytes_free(&conn->out);
    for (cr_list *node = conn->guests.next; node != &conn->guests; node = node->next)
        cr_admit_leave(&calls->admission, &cr_container(node, cr_grpc_guest, link)->peer);
    cr_arrived_leave(calls, &conn->peer, conn->refused);
    cr_metric_sub(connections, 1);
    uv_close((uv_handle_t *)&conn->poll, on_handle_closed); /* frees conn, but not yet */
    cr_arrived_close(calls, &conn->peer, &conn->socket, conn->is_unix);
}

void cr_grpc_conn_goaway(cr_grpc_conn *conn, uint32_t http2_error, const char *text) {
    const int32_t last = nghttp2_session_get_last_proc_stream_id(conn->session);
    nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, last, http2_error, (const uint8_t *)text, strlen(text));
    if (http2_error != NGHTTP2_NO_ERROR) {
        conn->state = CR_GRPC_LEAVING;
        set_timer(conn, cr_now_ms() + LINGER_MS);
    }
    cr_grpc_conn_dirty(conn);
}

/* As RFC 9113 has it (6.8): a request that crosses the one GOAWAY would be lost, and grpc's own clients may then wait for ever. */
void cr_grpc_conn_part(cr_grpc_conn *conn) {
    if (conn->state == CR_GRPC_LEAVING) return;
    conn->parting = nghttp2_submit_shutdown_notice(conn->session) == 0 &&
                    nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL) == 0;
    cr_grpc_conn_dirty(conn);
}

void cr_grpc_conn_heard(cr_grpc_conn *conn) {
    if (!conn->parting) return;
    conn->parting = false;
    cr_grpc_conn_goaway(conn, NGHTTP2_NO_ERROR, "the server is shutting down");
}

/* ---- writing ---- */

void cr_grpc_conn_dirty(cr_grpc_conn *conn) {
    if (conn->state == CR_GRPC_CLOSED || !cr_list_empty(&conn->dirty)) return;
    cr_list_append(&conn->grpc->dirty, &conn->dirty);
}

/* Packs frames behind those that wait. False: the session is at its end. */
static bool pack(cr_grpc_conn *conn) {
    while (cr_bytes_left(&conn->out) < OUT_BYTES && conn->answered < CR_GO_ANSWERS) {
        const uint8_t *frame;
        ssize_t n = nghttp2_session_mem_send(conn->session, &frame);
        if (n == 0) return true;
        if (n < 0 || !cr_bytes_add(&conn->out, frame, (size_t)n)) return false;
        conn->answered += (uint32_t)n;
    }
    return true;
}

/* False: the connection is at its end. */
static bool write_out(cr_grpc_conn *conn) {
    for (;;) {
        if (!pack(conn)) return false;
        if (!out_pending(conn)) return true;
        ssize_t n = cr_socket_write(&conn->socket, conn->out.at + conn->out.off, cr_bytes_left(&conn->out));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        conn->out.off += (uint32_t)n;
        conn->last_progress_ms = uv_now(conn->grpc->loop->uv);
        if (cr_bytes_left(&conn->out)) continue;
        conn->out.off = conn->out.len = 0;
    }
}

/* All is written: the client has a moment to read why. False: the connection may go. */
static bool linger(cr_grpc_conn *conn) {
    if (conn->brief || conn->gone || conn->broken) return false;
    if (conn->shut) return true;
    conn->shut = true;
    conn->state = CR_GRPC_LEAVING;
    set_timer(conn, cr_now_ms() + LINGER_MS);
    cr_socket_end(&conn->socket);
    return true;
}

void cr_grpc_conn_flush(cr_grpc_conn *conn) {
    cr_list_remove(&conn->dirty);
    if (conn->state == CR_GRPC_CLOSED) return;
    const bool alive = !conn->broken && write_out(conn);
    const bool written = !out_pending(conn) && !nghttp2_session_want_write(conn->session);
    const bool over = written && (conn->state == CR_GRPC_LEAVING || !nghttp2_session_want_read(conn->session));
    if (!alive || (over && !linger(conn))) {
        cr_grpc_conn_close(conn);
        return;
    }
    if (!out_pending(conn)) cr_bytes_free(&conn->out); /* an idle connection keeps no buffer */
    if (has_more(conn)) wait_for_turn(conn);
    watch_stall(conn);
    update_events(conn);
}

/* ---- reading ---- */

bool cr_grpc_conn_hold(cr_grpc_conn *conn, cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    conn->waiting = stream;
    return cr_bytes_add(&conn->held, bytes, n);
}

void cr_grpc_conn_has_room(cr_grpc_conn *conn) {
    conn->waits_for_room = false;
    wait_for_turn(conn);
}

/* Takes on the chunk that had no room. False: it still has not, or the go is over. */
static bool take_held(cr_grpc_conn *conn) {
    cr_bytes *held = &conn->held;
    while (cr_bytes_left(held)) {
        size_t left = cr_bytes_left(held), used = left; /* of a stream that is gone nothing is wanted */
        if (conn->waiting) used = cr_grpc_read(conn->waiting, held->at + held->off, left);
        held->off += (uint32_t)used;
        if (cr_bytes_left(held) && (conn->waits_for_room || cr_grpc_conn_go_is_over(conn))) return false;
    }
    conn->waiting = NULL;
    cr_bytes_free(held);
    return true;
}

/* Gives nghttp2 n bytes, until the connection has to wait. False: the connection is at its end. *used: those taken. */
static bool give(cr_grpc_conn *conn, const uint8_t *bytes, size_t n, size_t *used) {
    cr_calls *calls = conn->grpc->calls;
    *used = 0;
    do { /* at least once: after a pause nghttp2 may have something to tell without a byte more */
        size_t slice = n - *used < SLICE_BYTES ? n - *used : SLICE_BYTES;
        conn->halted = false;
        ssize_t taken = nghttp2_session_mem_recv(conn->session, bytes + *used, slice);
        if (taken < 0) {
            cr_debug("gRPC connection ended: %s", nghttp2_strerror((int)taken));
            return false;
        }
        *used += (size_t)taken;
        if (conn->halted) break;
        calls->last_ns = cr_now_ns();
    } while (*used < n && !cr_grpc_conn_go_is_over(conn));
    cr_grpc_conn_dirty(conn);
    return true;
}

/* Goes on with what was read. False: the connection is at its end. */
static bool resume(cr_grpc_conn *conn) {
    size_t used;
    if (!conn->paused || conn->waits_for_room) return true;
    cr_calls_look(conn->grpc->calls);
    if (!take_held(conn)) return true;
    const size_t left = cr_bytes_left(&conn->stash);
    const uint8_t *from = left ? conn->stash.at + conn->stash.off : conn->grpc->buffer;
    if (!give(conn, from, left, &used)) return false;
    conn->stash.off += (uint32_t)used;
    if (cr_bytes_left(&conn->stash) || conn->halted) return true;
    conn->paused = false;
    cr_bytes_free(&conn->stash);
    if (conn->early) cr_session_spare_rests(conn);
    return true;
}

/* One read. False: the connection is at its end. *much: it brought much. */
static bool read_once(cr_grpc_conn *conn, bool *much) {
    uint8_t *buffer = conn->grpc->buffer;
    size_t used;
    bool passed;
    ssize_t n = cr_arrived_read(conn->grpc->calls, &conn->peer, &conn->socket, conn->is_unix, buffer,
                                CR_GRPC_READ_BYTES, &passed);
    if (passed) refuse_descriptors(conn);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (n == 0) return false;
    conn->last_progress_ms = uv_now(conn->grpc->loop->uv);
    *much = n >= CR_GO_READ;
    if (conn->state == CR_GRPC_LEAVING || !look(conn, buffer, (size_t)n)) return true; /* it only reads why */
    cr_calls_look(conn->grpc->calls);
    if (!give(conn, buffer, (size_t)n, &used)) return false;
    if (used == (size_t)n && !conn->halted) return true;
    conn->paused = true;
    return cr_bytes_add(&conn->stash, buffer + used, (size_t)n - used);
}

bool cr_grpc_conn_go(cr_seat *seat, uint64_t until_ns) {
    cr_grpc_conn *conn = cr_container(seat, cr_grpc_conn, seat);
    cr_calls *const calls = conn->grpc->calls;
    bool alive = !conn->gone && !conn->broken, much = false;
    cr_calls_goes(calls, conn, conn->grpc->rounds.waiting > 0);
    conn->requests = 0;
    conn->grpc->until_ns = until_ns;
    if (alive) cr_grpc_streams_resume(conn);
    if (alive) alive = resume(conn);
    if (alive && (conn->readable || cr_socket_has_more(&conn->socket)) && reading(conn)) {
        conn->readable = false;
        alive = read_once(conn, &much);
    }
    const bool full = much || conn->requests >= CR_GO_FRAMES || conn->answered >= CR_GO_ANSWERS ||
                      calls->last_ns - calls->read_ns >= CR_GO_NS;
    conn->answered = 0;
    if (alive)
        cr_grpc_conn_flush(conn);
    else
        cr_grpc_conn_close(conn);
    return full;
}
