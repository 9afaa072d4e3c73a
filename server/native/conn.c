/* conn: birth, waiting, and end of a connection, and its replies; frames.c reads it.
 *
 * Thread: the loop's. Owner: the server's list. */
#include "server/native/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/native/annex.h"
#include "server/native/crowd.h"
#include "server/native/frames.h"
#include "server/native/front.h"
#include "server/native/regions.h"
#include "server/native/reply.h"

enum {
    OUT_FIRST = 16 * 1024,
    AT_ONCE_BYTES = 256 * 1024, /* of an upload, waited for at most; as many as TLS receives at once */
    STEP_BYTES = 32 * 1024,     /* waited for in multiples of these */
    SEALED_BYTES = 32 * 1024,   /* more than TLS holds of a record that is not whole */
    HUSH_MS = 10,               /* an upload that brings nothing for so long is read to what there is */
    CLOSES_MS = 2,              /* closes that are behind are looked at again after so long */
    AWAY_MS = 200,              /* a client that owes something for so long is home's */
};

static void free_if_over(cr_conn *conn) {
    if (conn->state != CR_CONN_CLOSED || conn->poll.data) return;
    free(conn->stash.at);
    free(conn->out.at);
    cr_streams_free(&conn->streams);
    free(conn);
}

static void on_handle_closed(uv_handle_t *handle) {
    cr_conn *conn = handle->data;
    handle->data = NULL;
    free_if_over(conn);
}

size_t cr_conn_backlog(const cr_conn *conn) { return conn->out.len - conn->out.off; }

static bool out_pending(const cr_conn *conn) { return cr_conn_backlog(conn) > 0 || cr_socket_unsent(&conn->socket); }

static bool reading(const cr_conn *conn) {
    return !conn->waits_for_room && !conn->waits_for_closes && cr_conn_backlog(conn) < CR_BACKLOG_BYTES;
}

bool cr_conn_full(const cr_conn *conn) {
    return cr_conn_backlog(conn) >= CR_BACKLOG_BYTES || conn->answered >= CR_GO_ANSWERS;
}

bool cr_conn_go_is_over(const cr_conn *conn) {
    const cr_native *native = conn->native;
    return conn->frames >= CR_GO_FRAMES || conn->answered >= CR_GO_ANSWERS ||
           native->calls->last_ns >= native->until_ns;
}

/* Whether there is something to go on with before anything else is read. */
static bool has_more(const cr_conn *conn) {
    return (conn->paused && reading(conn)) || (!cr_list_empty(&conn->stalled) && !out_pending(conn)) ||
           (reading(conn) && (cr_socket_has_more(&conn->socket) || (conn->crowded && conn->readable)));
}

static void wait_for_turn(cr_conn *conn) { cr_rounds_wait(&conn->native->rounds, &conn->seat); }

static void on_poll(uv_poll_t *handle, int status, int events);

/* How many bytes of a frame the next read waits for. Nothing else of its client can come before them. Of what is left of an input
 * a quarter is waited for, so that little of it comes last. */
static uint32_t await(const cr_conn *conn) {
    if (conn->passes_descriptors || !conn->payload_left || !conn->payload_stream || conn->paused || !reading(conn))
        return 0;
    uint32_t left = conn->payload_left > SEALED_BYTES ? conn->payload_left - SEALED_BYTES : 0, most = conn->pace;
    if (conn->payload_end) left /= 4;
    if (most > left) most = left;
    if (most > AT_ONCE_BYTES) most = AT_ONCE_BYTES;
    return most / STEP_BYTES * STEP_BYTES;
}

/* Waits for many bytes at once only while a timer ends that. */
static void update_wait(cr_conn *conn) {
    const uint32_t bytes = await(conn);
    cr_timers *timers = &conn->native->calls->timers;
    if (bytes && !conn->socket.waits_for && !cr_timer_set(timers, &conn->timer, cr_now_ms() + HUSH_MS)) return;
    cr_socket_wait_for(&conn->socket, bytes);
}

/* Asks the loop for just what this connection can use now. */
static void update_events(cr_conn *conn) {
    if (conn->state == CR_CONN_CLOSED) return;
    update_wait(conn);
    int events = (reading(conn) ? UV_READABLE : UV_DISCONNECT) | (out_pending(conn) ? UV_WRITABLE : 0);
    if (conn->crowded) {
        if (events == UV_READABLE && conn->state < CR_CONN_LINGERING && !conn->socket.waits_for) return;
        cr_crowd_leave(conn);
    }
    if (events == conn->events) return;
    conn->events = (uint8_t)events;
    uv_poll_start(&conn->poll, events, on_poll);
}

/* A frame is unfinished, descriptors wait for theirs, or replies are unread, by the client's doing. A client that passed its
 * own end of the socket is never seen to leave: only the descriptors that it owes a frame for tell. */
static bool client_owes(const cr_conn *conn) {
    return out_pending(conn) || (!conn->waits_for_room && !conn->paused &&
                                 (conn->stash.len || conn->payload_left || conn->descriptor_count));
}

/* How long a client may owe something: to an annex not long, because home alone says so. */
static uint64_t stall_ms(const cr_conn *conn) {
    return conn->guest ? AWAY_MS : conn->native->calls->config->stall_timeout_ms;
}

static void watch_stall(cr_conn *conn) {
    if (conn->timer.slot || conn->state != CR_CONN_OPEN || !client_owes(conn)) return;
    cr_timer_set(&conn->native->calls->timers, &conn->timer, cr_now_ms() + stall_ms(conn));
}

static void on_timer(cr_timer *timer) {
    cr_conn *conn = cr_container(timer, cr_conn, timer);
    cr_error error;
    const uint64_t stall = stall_ms(conn), now = cr_now_ms();
    if (conn->waits_for_closes) {
        conn->waits_for_closes = false;
        conn->last_progress_ms = now; /* its client could not go on */
        wait_for_turn(conn);
    } else if (conn->socket.waits_for) {
        if (now - conn->last_progress_ms >= HUSH_MS) {
            conn->pace = 0;
            cr_socket_wait_for(&conn->socket, 0);
        }
        cr_timer_set(&conn->native->calls->timers, timer, now + HUSH_MS);
    } else if (conn->state == CR_CONN_LINGERING) {
        cr_conn_close(conn);
    } else if (conn->state == CR_CONN_GREETING) {
        cr_fail(&error, CR_DEADLINE_EXCEEDED, "HELLO: it did not come within %llu ms",
                (unsigned long long)conn->native->calls->config->hello_timeout_ms);
        cr_conn_fail(conn, &error);
    } else if (conn->guest && client_owes(conn) && now - conn->last_progress_ms >= stall) {
        conn->goes_home = true;
        wait_for_turn(conn);
    } else if (client_owes(conn) && now - conn->last_progress_ms >= stall) {
        cr_fail(
            &error, CR_DEADLINE_EXCEEDED, "%s for %llu ms",
            out_pending(conn) ? "replies stayed unread" : "a frame stayed unfinished, or descriptors without a frame",
            (unsigned long long)stall);
        cr_conn_fail(conn, &error);
    } else if (client_owes(conn)) {
        cr_timer_set(&conn->native->calls->timers, timer, conn->last_progress_ms + stall);
    }
}

/* It is told why, and stays to read it unless too many do. */
static void refuse(cr_conn *conn, const cr_arrived *arrived) {
    conn->refused = true;
    cr_conn_fail(conn, arrived->refused);
    if (!arrived->brief) return;
    cr_conn_flush(conn);
    cr_conn_close(conn);
}

/* Whether bytes have come that nobody has read. */
static bool has_unread(const cr_conn *conn) {
    int bytes = 0;
    return ioctl(conn->socket.fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* Says so by the protocol. What the client sends from here on is not looked at, so that it may ask again on another connection. */
static bool end_idle(cr_place *place, bool quiet) {
    cr_error error;
    cr_conn *conn = cr_container(place, cr_conn, place);
    if (conn->streams.open || conn->peer.calls || conn->peer.regions) return false;
    if (quiet && (conn->state != CR_CONN_OPEN || client_owes(conn) || conn->seat.waits || has_unread(conn)))
        return false;
    cr_metric_add(connections_idle_ended_total, 1);
    if (conn->state != CR_CONN_LINGERING) {
        conn->state = CR_CONN_LINGERING;
        cr_fail(&error, CR_UNAVAILABLE, "this connection was idle, and another user needed its place: connect again");
        cr_reply_status(conn, 0, &error);
        cr_conn_flush(conn); /* closes it when the peer is gone */
    }
    cr_conn_close(conn);
    return true;
}

cr_status cr_conn_open(cr_native *native, const cr_arrived *arrived, cr_error *error) {
    cr_calls *calls = native->calls;
    cr_conn *conn = calloc(1, sizeof *conn);
    int failed = UV_ENOMEM;
    if (conn && cr_rounds_join(&native->rounds, &conn->seat, arrived->peer.client))
        failed = uv_poll_init_socket(native->loop->uv, &conn->poll, arrived->socket.fd);
    if (failed) {
        cr_peer peer = arrived->peer;
        if (conn) cr_rounds_leave(&native->rounds, &conn->seat);
        cr_metric_sub(connections, 1);
        cr_socket unwanted = arrived->socket;
        cr_arrived_leave(calls, &peer, arrived->refused);
        free(conn);
        cr_socket_close(&unwanted);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot watch a new connection: %s", uv_strerror(failed));
    }
    conn->poll.data = conn;
    conn->native = native;
    conn->socket = arrived->socket;
    conn->peer = arrived->peer;
    cr_arrived_speaks(calls, &conn->peer, CR_SPOKEN_native);
    conn->passes_descriptors = arrived->is_unix;
    conn->wants_token = arrived->wants_token;
    conn->place.end = end_idle;
    conn->wanted = 1;
    conn->timer.fire = on_timer;
    cr_list_init(&conn->open);
    cr_list_init(&conn->stalled);
    cr_list_init(&conn->dirty);
    cr_list_append(&native->connections, &conn->link);
    conn->last_progress_ms = cr_now_ms();
    cr_timer_set(&calls->timers, &conn->timer, arrived->since_ms + calls->config->hello_timeout_ms);
    if (!arrived->refused) cr_admit_place(&conn->peer, &conn->place);
    if (arrived->refused)
        refuse(conn, arrived);
    else
        cr_frames_begin(conn, arrived);
    update_events(conn);
    return CR_OK;
}

static void drop_calls(cr_conn *conn) {
    while (!cr_list_empty(&conn->open)) cr_stream_drop(cr_container(conn->open.next, cr_stream, link));
    cr_conn_close_descriptors(conn);
    cr_regions_drop(conn);
}

void cr_conn_close(cr_conn *conn) {
    if (conn->state == CR_CONN_CLOSED) return;
    conn->state = CR_CONN_CLOSED;
    drop_calls(conn);
    cr_timer_stop(&conn->native->calls->timers, &conn->timer);
    cr_list_remove(&conn->link);
    cr_list_remove(&conn->dirty);
    cr_rounds_leave(&conn->native->rounds, &conn->seat);
    cr_crowd_leave(conn);
    cr_arrived_leave(conn->native->calls, &conn->peer, conn->refused);
    if (conn->guest) cr_annex_left(conn);
    cr_metric_sub(connections, 1);
    uv_close((uv_handle_t *)&conn->poll, on_handle_closed);
    /* Last: libuv names it once more, and by then it could be another thread's. */
    cr_arrived_close(conn->native->calls, &conn->peer, &conn->socket, conn->passes_descriptors);
}

/* ---- from one loop to another ---- */

cr_conn *cr_conn_lift(cr_conn *conn) {
    assert(!conn->streams.open && !conn->peer.calls && !conn->payload_stream); /* which point at it */
    cr_conn *fresh = malloc(sizeof *fresh);
    if (!fresh) return NULL;
    cr_timer_stop(&conn->native->calls->timers, &conn->timer);
    cr_socket_wait_for(&conn->socket, 0);
    cr_list_remove(&conn->link);
    cr_list_remove(&conn->dirty);
    cr_rounds_leave(&conn->native->rounds, &conn->seat);
    cr_crowd_leave(conn);
    *fresh = *conn;
    fresh->poll.data = NULL;
    cr_list_init(&fresh->link);
    cr_list_init(&fresh->dirty);
    cr_list_init(&fresh->open);
    cr_list_init(&fresh->stalled);
    fresh->events = 0;
    fresh->readable = true; /* nobody knows: a read tells */
    fresh->paused |= fresh->stash.len > 0;
    fresh->goes_home = false;
    fresh->waits_for_closes = false; /* its timer stays here; who reads it next looks again */
    conn->state = CR_CONN_CLOSED;
    conn->stash = conn->out = (cr_bytes){0};
    conn->streams = (cr_streams){0};
    uv_close((uv_handle_t *)&conn->poll, on_handle_closed);
    return fresh;
}

bool cr_conn_settle(cr_conn *conn, cr_native *native) {
    if (!cr_rounds_join(&native->rounds, &conn->seat, conn->peer.client)) return false;
    if (uv_poll_init_socket(native->loop->uv, &conn->poll, conn->socket.fd) != 0) {
        cr_rounds_leave(&native->rounds, &conn->seat);
        return false;
    }
    conn->poll.data = conn;
    conn->native = native;
    cr_list_append(&native->connections, &conn->link);
    wait_for_turn(conn);
    watch_stall(conn);
    update_events(conn);
    return true;
}

void cr_conn_discard(cr_conn *conn) {
    cr_conn_close_descriptors(conn);
    cr_metric_sub(connections, 1);
    cr_arrived_close(conn->native->calls, &conn->peer, &conn->socket, conn->passes_descriptors);
    conn->state = CR_CONN_CLOSED;
    free_if_over(conn);
}

bool cr_conn_fail(cr_conn *conn, const cr_error *error) {
    if (conn->state >= CR_CONN_LINGERING) return false;
    char quoted[CR_ERROR_TEXT];
    cr_debug("connection ended: %s: %s", cr_status_name(error->code), cr_log_quote(quoted, sizeof quoted, error->text));
    cr_metric_add(connections_ended, 1);
    conn->state = CR_CONN_LINGERING;
    conn->payload_left = conn->stash.len = conn->stash.off = 0;
    conn->paused = conn->waits_for_closes = false;
    drop_calls(conn);
    cr_reply_status(conn, 0, error);
    cr_timer_set(&conn->native->calls->timers, &conn->timer, cr_now_ms() + CR_LINGER_MS);
    return false;
}

uint8_t *cr_conn_room(cr_conn *conn, size_t bytes) {
    cr_bytes *out = &conn->out;
    if (!out->at && conn->native->spare_out && bytes <= OUT_FIRST) {
        *out = (cr_bytes){.at = conn->native->spare_out, .cap = OUT_FIRST};
        conn->native->spare_out = NULL;
    }
    uint8_t *at = cr_bytes_room(out, bytes, OUT_FIRST);
    if (at) return at;
    conn->broken = true;
    cr_list_remove(&conn->dirty);
    cr_list_append(&conn->native->dirty, &conn->dirty);
    return NULL;
}

void cr_conn_put(cr_conn *conn, size_t bytes) {
    conn->out.len += (uint32_t)bytes;
    conn->answered += (uint32_t)bytes;
    if (conn->state == CR_CONN_CLOSED || !cr_list_empty(&conn->dirty)) return;
    cr_list_append(&conn->native->dirty, &conn->dirty);
}

/* An idle connection keeps no buffer: the first 16 KiB go round among all of them. */
static void out_done(cr_conn *conn) {
    cr_bytes *out = &conn->out;
    if (out->cap == OUT_FIRST && !conn->native->spare_out)
        conn->native->spare_out = out->at;
    else
        free(out->at);
    *out = (cr_bytes){0};
}

void cr_conn_send_early(cr_conn *conn) {
    cr_bytes *out = &conn->out;
    if (!conn->passes_descriptors || out->off || !out->len)
        return; /* off: the client has not even read what came before */
    const ssize_t n = cr_socket_write(&conn->socket, out->at, out->len);
    if (n <= 0) return;
    conn->last_progress_ms = uv_now(conn->native->loop->uv);
    if ((uint32_t)n < out->len)
        out->off = (uint32_t)n;
    else
        out->len = 0;
}

void cr_conn_flush(cr_conn *conn) {
    cr_list_remove(&conn->dirty);
    if (conn->state == CR_CONN_CLOSED) return;
    while (out_pending(conn)) {
        ssize_t n = cr_socket_write(&conn->socket, conn->out.at + conn->out.off, cr_conn_backlog(conn));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n < 0 || conn->broken) {
            cr_conn_close(conn);
            return;
        }
        conn->out.off += (uint32_t)n;
        conn->last_progress_ms = uv_now(conn->native->loop->uv);
    }
    if (conn->broken) {
        cr_conn_close(conn);
        return;
    }
    if (!out_pending(conn) && conn->out.at) out_done(conn);
    if (has_more(conn)) wait_for_turn(conn);
    if (!out_pending(conn) && conn->state == CR_CONN_LINGERING) cr_socket_end(&conn->socket);
    watch_stall(conn);
    update_events(conn);
}

bool cr_conn_wait_for_closes(cr_conn *conn) {
    if (!cr_timer_set(&conn->native->calls->timers, &conn->timer, cr_now_ms() + CLOSES_MS)) return false;
    conn->waits_for_closes = conn->readable = true;
    return true;
}

void cr_conn_park_descriptor(cr_conn *conn, int descriptor) {
    if (!conn->descriptor_count) conn->parked = ++conn->native->parked;
    conn->descriptors[conn->descriptor_count++] = descriptor;
    cr_admit_parked(&conn->native->calls->admission, &conn->peer, 1);
}

int cr_conn_take_descriptor(cr_conn *conn) {
    if (!conn->descriptor_count) return -1;
    int descriptor = conn->descriptors[0];
    conn->descriptor_count--;
    cr_admit_parked(&conn->native->calls->admission, &conn->peer, -1);
    memmove(conn->descriptors, conn->descriptors + 1, conn->descriptor_count * sizeof conn->descriptors[0]);
    return descriptor;
}

void cr_conn_close_descriptors(cr_conn *conn) {
    while (conn->descriptor_count)
        cr_files_close(conn->native->calls->files, conn->peer.owner, cr_conn_take_descriptor(conn));
}

cr_conn *cr_conn_most_parked(const cr_native *native, const cr_user *user) {
    cr_conn *most = NULL;
    for (cr_list *node = native->connections.next; node != &native->connections; node = node->next) {
        cr_conn *conn = cr_container(node, cr_conn, link);
        bool more = !most || conn->descriptor_count > most->descriptor_count;
        bool longer = most && conn->descriptor_count == most->descriptor_count && conn->parked < most->parked;
        if (user && conn->peer.user != user) continue;
        if (conn->descriptor_count && (more || longer)) most = conn;
    }
    return most;
}

void cr_conn_has_room(cr_conn *conn) {
    conn->waits_for_room = false;
    conn->last_progress_ms = uv_now(conn->native->loop->uv);
    wait_for_turn(conn);
}

bool cr_conn_go(cr_seat *seat, uint64_t until_ns) {
    cr_conn *conn = cr_container(seat, cr_conn, seat);
    conn->frames = 0;
    conn->alone = cr_calls_goes(conn->native->calls, conn, conn->native->rounds.waiting > 0);
    conn->native->until_ns = until_ns;
    if (conn->gone) {
        cr_conn_close(conn);
        return false;
    }
    if (out_pending(conn)) cr_conn_flush(conn);
    if (conn->state == CR_CONN_CLOSED) return false;
    if (has_more(conn)) cr_calls_look(conn->native->calls);
    if (!out_pending(conn)) cr_streams_resume(conn);
    bool open = conn->state < CR_CONN_LINGERING && reading(conn) ? cr_frames_resume(conn) : true, much = false;
    const bool readable = conn->readable || cr_socket_has_more(&conn->socket);
    if (conn->state != CR_CONN_CLOSED && open && readable && reading(conn) && !conn->paused) {
        if (!conn->crowded) conn->readable = false;
        much = cr_frames_read(conn) >= CR_GO_READ;
    }
    const cr_calls *calls = conn->native->calls;
    const bool full = much || conn->frames >= CR_GO_FRAMES || conn->answered >= CR_GO_ANSWERS ||
                      calls->last_ns - calls->read_ns >= CR_GO_NS;
    conn->answered = 0;
    cr_conn_flush(conn);
    if (conn->guest || (conn->small && conn->native->annexes)) cr_annex_went(conn);
    return full;
}

/* Where as many are ready as libuv asks for at once, it asks again, many times. */
static void on_poll(uv_poll_t *handle, int status, int events) {
    cr_conn *conn = handle->data;
    cr_native *native = conn->native;
    cr_loop_came(native->loop);
    if (status < 0 || (events & UV_DISCONNECT && !(events & UV_READABLE) && !reading(conn))) conn->gone = true;
    if (events & UV_READABLE) conn->readable = true;
    if (conn->seat.waits && !cr_crowd_join(conn) && native->rounds.waiting > CR_ARMED_MOST) {
        uv_poll_stop(handle);
        conn->events = 0;
    }
    wait_for_turn(conn);
}
