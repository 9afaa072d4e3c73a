/* frames: recvmsg, the stash, and what each frame does.
 *
 * Array bytes of a frame under way are received straight into their slab; everything else into the loop's one buffer, in
 * front of which there is room for the beginning of a frame that was stashed, so frames always lie in one piece.
 * Thread: the loop's. Owner: the connection; the buffer is the door's. */
#include "server/native/frames.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/native/annex.h"
#include "server/native/front.h"
#include "server/native/reply.h"

enum {
    BEHIND_PAYLOAD = 4096, /* read beyond a payload's end: the next headers, little of the next payload */
    LOOK_FRAMES = 8,       /* between two looks at the clock */
    EARLY_FRAMES = 16,     /* of a go, after which its first answers leave early; the next after four times as many */
    PACE_NS = 500 * 1000,  /* bytes of an upload may wait so long for more, so that one read takes them all */
};

static uint8_t *main_buffer(cr_conn *conn) { return conn->native->buffer + CR_FRAME_HEAD_MAX; }

/* Where the frame ends that begins at `at` in the stash, or its header while that is not there. */
static uint32_t stash_end(const cr_conn *conn, uint32_t at) {
    if (conn->stash.len < at + CR_FRAME_HEADER_BYTES) return at + CR_FRAME_HEADER_BYTES;
    uint32_t length;
    memcpy(&length, conn->stash.at + at + 12, sizeof length);
    return at + CR_FRAME_HEADER_BYTES + le32toh(length);
}

/* Bytes of the frame that begins in the stash; its header was checked when it was complete. In an annex a CALL waits there for its
 * DATA. */
static uint32_t stash_need(const cr_conn *conn) {
    const uint32_t need = stash_end(conn, 0);
    return conn->guest && conn->stash.len >= need ? stash_end(conn, need) : need;
}

/* Keeps n bytes, at least cap room; false when there is no memory. */
static bool stash(cr_conn *conn, const uint8_t *p, size_t n, size_t cap) {
    cr_bytes *s = &conn->stash;
    if (cap < n) cap = n;
    if (s->cap < cap) {
        uint8_t *at = malloc(cap);
        if (!at) {
            cr_error error;
            cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for a frame's %zu bytes", cap);
            return cr_conn_fail(conn, &error);
        }
        free(s->at);
        s->at = at;
        s->cap = (uint32_t)cap;
    }
    if (n) memcpy(s->at, p, n);
    s->len = (uint32_t)n;
    return true;
}

static void stash_free(cr_conn *conn) {
    free(conn->stash.at);
    conn->stash = (cr_bytes){0};
}

static bool payload_done(cr_conn *conn) {
    cr_stream *stream = conn->payload_stream;
    conn->payload_stream = NULL;
    if (stream && conn->payload_end) cr_call_end(stream->call);
    return conn->state < CR_CONN_LINGERING;
}

/* On a Unix socket Linux has said who it is: a token must be right there, and says nothing more. */
static cr_status authenticate(cr_conn *conn, const char *token, cr_error *error) {
    const cr_principal *who;
    cr_calls *calls = conn->native->calls;
    cr_status status = cr_arrived_check_token(calls, conn->wants_token, token, strlen(token), &who, error);
    if (status != CR_OK || !who || conn->peer.has_uid) return status;
    return cr_admit_become(&calls->admission, &conn->peer, who, who->name, error);
}

static bool on_hello(cr_conn *conn, const uint8_t *payload, uint32_t length) {
    cr_error error;
    cr_wire_hello hello;
    if (cr_wire_unpack_hello(payload, length, &hello, &error) != CR_OK) return cr_conn_fail(conn, &error);
    if (hello.version_min > CR_WIRE_VERSION_MAX || hello.version_max < CR_WIRE_VERSION_MIN) {
        cr_fail(&error, CR_UNIMPLEMENTED, "HELLO: versions %u to %u are asked for, %d to %d are spoken",
                hello.version_min, hello.version_max, CR_WIRE_VERSION_MIN, CR_WIRE_VERSION_MAX);
        return cr_conn_fail(conn, &error);
    }
    if (authenticate(conn, hello.token, &error) != CR_OK) {
        cr_stats_stranger(&conn->native->calls->stats, &conn->peer, &error);
        return cr_conn_fail(conn, &error);
    }
    char quoted[4 * CR_NAME_MAX_BYTES];
    cr_debug("connection from %s", cr_log_quote(quoted, sizeof quoted, hello.client));
    memcpy(conn->peer.name, hello.client, sizeof conn->peer.name);
    conn->state = CR_CONN_OPEN;
    cr_timer_stop(&conn->native->calls->timers, &conn->timer);
    return cr_reply_welcome(conn, &hello);
}

static bool on_call(cr_conn *conn, const cr_frame *frame, const uint8_t *payload) {
    cr_error error;
    if (frame->stream <= conn->highest_stream) {
        cr_fail(&error, CR_INVALID_ARGUMENT, "CALL: stream %u is not above %u, the highest so far", frame->stream,
                conn->highest_stream);
        return cr_conn_fail(conn, &error);
    }
    if (frame->descriptors > conn->descriptor_count) {
        cr_fail(&error, CR_INVALID_ARGUMENT, "CALL: its header says %u descriptors, %u came", frame->descriptors,
                conn->descriptor_count);
        return cr_conn_fail(conn, &error);
    }
    conn->highest_stream = frame->stream;
    if (conn->other) conn->small = 0;
    conn->other = true;
    return cr_stream_open(conn, frame, payload);
}

/* A frame of at most CR_HEAD_MAX_BYTES payload, all of it here. */
static bool on_frame(cr_conn *conn, const cr_frame *frame, const uint8_t *payload) {
    cr_error error;
    switch ((cr_frame_type)frame->type) {
        case CR_FRAME_HELLO:
            if (conn->state == CR_CONN_GREETING) return on_hello(conn, payload, frame->length);
            cr_fail(&error, CR_INVALID_ARGUMENT, "HELLO: it came twice");
            return cr_conn_fail(conn, &error);
        case CR_FRAME_CALL:
            return on_call(conn, frame, payload);
        case CR_FRAME_CANCEL: {
            cr_stream *stream = cr_stream_find(conn, frame->stream);
            if (stream) cr_stream_cancel(stream);
            return true;
        }
        case CR_FRAME_PING:
            return cr_reply_pong(conn, payload, frame->length);
        case CR_FRAME_CREDIT: {
            cr_stream *stream = cr_stream_find(conn, frame->stream);
            uint64_t bytes;
            if (cr_wire_unpack_credit(payload, frame->length, &bytes, &error) != CR_OK)
                return cr_conn_fail(conn, &error);
            if (stream) cr_stream_credit(stream, bytes);
            return conn->state == CR_CONN_OPEN;
        }
        case CR_FRAME_PONG:
        case CR_FRAME_DATA:    /* it has gone its own way */
        case CR_FRAME_WELCOME: /* cr_frame_get takes none of these from a client */
        case CR_FRAME_PROGRESS:
        case CR_FRAME_RESULT:
        case CR_FRAME_STATUS:
            break;
    }
    return true;
}

/* Whether the frame's stream may be named at all: no id above the highest CALL. */
static bool check_stream(cr_conn *conn, const cr_frame *frame) {
    cr_error error;
    if (frame->type == CR_FRAME_CALL || frame->stream <= conn->highest_stream) return true;
    cr_fail(&error, CR_INVALID_ARGUMENT, "%s: stream %u has had no CALL", cr_frame_name(frame->type), frame->stream);
    return cr_conn_fail(conn, &error);
}

/* DATA's header. n bytes follow it here. *used: of those; -1 when the frame must be stashed until it is whole. */
static bool on_data(cr_conn *conn, const cr_frame *frame, const uint8_t *payload, size_t n, long *used) {
    cr_stream *stream = cr_stream_find(conn, frame->stream);
    bool whole = stream && cr_stream_takes_whole(stream, frame), take = false;
    *used = 0;
    if (whole && n < frame->length) {
        *used = -1;
        return true;
    }
    if (stream && !cr_stream_data(stream, frame, &take)) return false;
    assert(!conn->guest || !take || whole); /* an annex has no slabs, and no lanes */
    if (take && whole) {
        conn->small++;
        conn->other = false;
        cr_call_whole(stream->call, payload, frame->length);
        *used = (long)frame->length;
        return conn->state == CR_CONN_OPEN;
    }
    conn->payload_left = frame->length;
    conn->payload_stream = take ? stream : NULL;
    conn->payload_end = frame->flags & CR_FLAG_END;
    return frame->length || payload_done(conn);
}

/* Where the next bytes of the payload go. A call that has no room and no hope of it fails, and leaves payload_stream NULL. */
static cr_room payload_room(cr_conn *conn, uint8_t **at, size_t *room) {
    cr_room answer = cr_call_room(conn->payload_stream->call, at, room);
    if (answer == CR_WAIT) conn->waits_for_room = true;
    return answer;
}

/* step bytes more of the payload are where they belong. True: merging them took the rest of the go. */
static bool filled(cr_conn *conn, size_t step) {
    cr_calls *calls = conn->native->calls;
    uint64_t merged = calls->merged;
    cr_call_filled(conn->payload_stream->call, step);
    if (calls->merged == merged) return false;
    conn->frames += (uint32_t)(calls->merged - merged);
    calls->last_ns = cr_now_ns();
    return cr_conn_go_is_over(conn);
}

/* Copies bytes that were received beside others to their place. Bytes used; fewer than n when the connection must wait. */
static size_t take_payload(cr_conn *conn, const uint8_t *p, size_t n) {
    size_t used = 0;
    while (used < n && conn->payload_left && conn->state < CR_CONN_LINGERING) {
        size_t step = n - used < conn->payload_left ? n - used : conn->payload_left;
        if (conn->payload_stream) {
            uint8_t *at;
            size_t room;
            cr_room answer = payload_room(conn, &at, &room);
            if (answer == CR_WAIT) return used;
            if (answer == CR_GONE) continue;
            if (step > room) step = room;
            memcpy(at, p + used, step);
            used += step;
            conn->payload_left -= (uint32_t)step;
            if (filled(conn, step)) break;
            continue;
        }
        used += step;
        conn->payload_left -= (uint32_t)step;
    }
    return used;
}

/* What is left waits until the connection can go on: where it is, if held is what was stashed before, or in a new stash. */
static bool pause_with(cr_conn *conn, cr_bytes *held, const uint8_t *p, size_t n) {
    conn->paused = true;
    if (!held) return stash(conn, p, n, n);
    free(conn->stash.at);
    conn->stash = *held;
    conn->stash.off = (uint32_t)(p - held->at);
    *held = (cr_bytes){0};
    return true;
}

/* Whether a frame more may be taken. The clock is asked now and then: a call that folds has asked it anyway. Of a
 * connection that is alone the first answers leave early, or client and daemon would take turns where both could work. */
static bool may_go_on(cr_conn *conn) {
    cr_native *native = conn->native;
    if (conn->frames == 0) conn->early = EARLY_FRAMES;
    if (conn->frames >= conn->early) {
        conn->early = 4 * conn->frames + EARLY_FRAMES;
        if (conn->alone && !native->rounds.waiting) cr_conn_send_early(conn);
    }
    if (++conn->frames % LOOK_FRAMES == 0) {
        if (native->calls->last_ns == native->looked_ns) native->calls->last_ns = cr_now_ns();
        native->looked_ns = native->calls->last_ns;
    }
    return conn->frames == 1 || !cr_conn_go_is_over(conn);
}

/* Takes frames from [p, p + n) until none is complete, or the go is over; stashes the rest. A client that does not
 * read its replies is not answered any further. held: what was stashed, if p lies there. */
static bool consume(cr_conn *conn, cr_bytes *held, const uint8_t *p, size_t n) {
    while (n) {
        if (cr_conn_backlog(conn) >= CR_BACKLOG_BYTES) return pause_with(conn, held, p, n);
        if (conn->payload_left) {
            size_t used = take_payload(conn, p, n);
            p += used;
            n -= used;
            if (conn->state >= CR_CONN_LINGERING) return false;
            if (conn->payload_left && n) return pause_with(conn, held, p, n); /* waits for room, or its turn */
            if (!conn->payload_left && !payload_done(conn)) return false;
            continue;
        }
        cr_frame frame;
        cr_error error;
        bool skip;
        if (n < CR_FRAME_HEADER_BYTES) return stash(conn, p, n, 64);
        if (!may_go_on(conn) && !(conn->guest && conn->streams.open)) return pause_with(conn, held, p, n);
        if (cr_frame_get(p, true, &frame, &skip, &error) != CR_OK) return cr_conn_fail(conn, &error);
        const uint8_t *payload = p + CR_FRAME_HEADER_BYTES;
        size_t behind = n - CR_FRAME_HEADER_BYTES;
        long used = (long)frame.length;
        const size_t together = conn->guest ? cr_annex_needs(conn, &frame, p, n) : 0;
        if (together == CR_ANNEX_HOME) {
            conn->goes_home = true;
            return pause_with(conn, held, p, n);
        }
        if (together) return stash(conn, p, n, together);
        if (conn->state == CR_CONN_GREETING && frame.type != CR_FRAME_HELLO) {
            cr_fail(&error, CR_INVALID_ARGUMENT, "%s, type %u: the first frame must be HELLO",
                    cr_frame_name(frame.type), frame.type);
            return cr_conn_fail(conn, &error);
        } else if (skip) {
            conn->payload_left = frame.length;
            conn->payload_stream = NULL;
            used = 0;
        } else if (!check_stream(conn, &frame)) {
            return false;
        } else if (frame.type == CR_FRAME_DATA) {
            if (!on_data(conn, &frame, payload, behind, &used)) return false;
            if (used < 0) return stash(conn, p, n, CR_FRAME_HEADER_BYTES + (size_t)frame.length);
        } else if (behind < frame.length) {
            return stash(conn, p, n, CR_FRAME_HEADER_BYTES + (size_t)frame.length);
        } else if (!on_frame(conn, &frame, payload)) {
            return false;
        }
        p = payload + used;
        n = behind - (size_t)used;
    }
    return true;
}

/* Queues the descriptors of one recvmsg. With too many the connection fails. */
static void take_control(cr_conn *conn, struct msghdr *message) {
    cr_error error = {0};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + i * sizeof descriptor, sizeof descriptor);
            if (conn->descriptor_count < CR_CONN_MAX_DESCRIPTORS) {
                cr_conn_park_descriptor(conn, descriptor);
                continue;
            }
            cr_files_close(conn->native->calls->files, conn->peer.owner, descriptor);
            cr_fail(&error, CR_RESOURCE_EXHAUSTED, "descriptors: more than %d wait for their frames",
                    CR_CONN_MAX_DESCRIPTORS);
        }
    }
    if (message->msg_flags & MSG_CTRUNC)
        cr_fail(&error, CR_RESOURCE_EXHAUSTED,
                "descriptors: some were lost, because more came at once than the %d that may wait, or than the daemon "
                "may open, or because earlier ones of this user are in file systems that do not answer",
                CR_CONN_MAX_DESCRIPTORS);
    if (error.code != CR_OK) cr_conn_fail(conn, &error);
}

/* Where the next bytes belong. first: the slab or stash they continue (0: none). False: the connection must wait. */
static bool plan_read(cr_conn *conn, struct iovec iov[2], int *parts, size_t *first) {
    uint8_t *at;
    size_t room;
    *first = 0;
    while (conn->payload_left && conn->payload_stream && cr_call_in_place(conn->payload_stream->call)) {
        cr_room answer = payload_room(conn, &at, &room);
        if (answer == CR_WAIT) return false;
        if (answer == CR_ROOM) {
            *first = conn->payload_left < room ? conn->payload_left : room;
            iov[0] = (struct iovec){at, *first};
            iov[1] = (struct iovec){main_buffer(conn), BEHIND_PAYLOAD};
            *parts = conn->payload_left <= room ? 2 : 1;
            return true;
        }
    }
    if (conn->stash.len) {
        *first = stash_need(conn) - conn->stash.len;
        assert(conn->stash.len + *first <= conn->stash.cap);
        iov[0] = (struct iovec){conn->stash.at + conn->stash.len, *first};
    }
    iov[*first ? 1 : 0] = (struct iovec){main_buffer(conn), CR_TURN_BYTES};
    *parts = *first ? 2 : 1;
    return true;
}

/* n bytes came, the first of them where plan_read said. */
static bool arrived(cr_conn *conn, size_t n, size_t first) {
    uint8_t *main = main_buffer(conn);
    size_t in_place = n < first ? n : first;
    if (first && conn->payload_left) {
        conn->payload_left -= (uint32_t)in_place;
        cr_call_filled(conn->payload_stream->call, in_place);
        if (!conn->payload_left && !payload_done(conn)) return false;
        return consume(conn, NULL, main, n - in_place);
    }
    if (first) {
        conn->stash.len += (uint32_t)in_place;
        if (in_place < first) return true;
        uint32_t len = conn->stash.len;
        assert(len <= CR_FRAME_HEAD_MAX);
        main -= len;
        memcpy(main, conn->stash.at, len);
        stash_free(conn);
        n = n - in_place + len;
    }
    return consume(conn, NULL, main, n);
}

void cr_frames_keep_few_parked(const cr_conn *conn) {
    cr_error error;
    const cr_user *user;
    while (cr_admit_check_parked(&conn->native->calls->admission, &conn->peer, &user, &error) != CR_OK) {
        cr_conn *most = cr_conn_most_parked(conn->native, user);
        if (!most) return; /* all wait with their calls, for which there was room when they came */
        cr_stats_rejected(&conn->native->calls->stats, CR_REASON_descriptors);
        cr_conn_fail(most, &error);
    }
}

/* n bytes came since the last read: as many as PACE_NS brings at that rate are worth waiting for. */
static void set_pace(cr_conn *conn, size_t n) {
    const uint64_t now = conn->native->calls->read_ns, took = now - conn->read_ns;
    const uint64_t pace = n * PACE_NS / (took ? took : 1);
    conn->read_ns = now;
    conn->pace = pace < UINT32_MAX ? (uint32_t)pace : UINT32_MAX;
}

/* Of a connection of which poll does not tell again: whether more may be there. Linux ends a read behind descriptors. */
static bool may_have_left(const cr_conn *conn, const struct msghdr *message, ssize_t n) {
    size_t room = 0;
    if (n < 0) return false;
    for (size_t i = 0; i < message->msg_iovlen; i++) room += message->msg_iov[i].iov_len;
    return conn->ended || (size_t)n == room || message->msg_controllen || message->msg_flags & MSG_CTRUNC;
}

/* Whether what the client passes next has to wait, because descriptors of its refused calls are not closed yet. */
static bool must_wait(cr_conn *conn) {
    return conn->passes_descriptors && conn->state == CR_CONN_OPEN &&
           cr_arrived_behind(conn->native->calls, &conn->peer) && cr_conn_wait_for_closes(conn);
}

size_t cr_frames_read(cr_conn *conn) {
    struct iovec iov[2];
    cr_control control;
    size_t first = 0;
    int parts = 1;
    if (must_wait(conn)) return 0;
    if (conn->state == CR_CONN_LINGERING)
        iov[0] = (struct iovec){main_buffer(conn), CR_TURN_BYTES};
    else if (!plan_read(conn, iov, &parts, &first))
        return 0;
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)parts};
    if (conn->passes_descriptors) cr_arrived_room(conn->native->calls, &conn->peer, &message, &control);
    ssize_t n = conn->passes_descriptors ? recvmsg(conn->socket.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)
                                         : cr_socket_read(&conn->socket, iov, parts);
    if (n < 0 && errno == EINTR) return 0;
    conn->readable &= may_have_left(conn, &message, n);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (n <= 0) {
        cr_conn_close(conn);
        return 0;
    }
    /* With the daemon's table of descriptors full the mark comes without control data. */
    if (message.msg_controllen || message.msg_flags & MSG_CTRUNC) take_control(conn, &message);
    if (conn->state == CR_CONN_LINGERING) {
        cr_conn_close_descriptors(conn);
        return 0;
    }
    conn->last_progress_ms = uv_now(conn->native->loop->uv);
    cr_calls_look(conn->native->calls);
    set_pace(conn, (size_t)n);
    if (arrived(conn, (size_t)n, first)) cr_frames_keep_few_parked(conn);
    return (size_t)n;
}

void cr_frames_begin(cr_conn *conn, const cr_arrived *arrived) {
    if (arrived->control) take_control(conn, arrived->control);
    if (!arrived->count || conn->state >= CR_CONN_LINGERING) return;
    if (!pause_with(conn, NULL, arrived->bytes, arrived->count)) return;
    cr_frames_keep_few_parked(conn);
    cr_rounds_wait(&conn->native->rounds, &conn->seat);
}

bool cr_frames_resume(cr_conn *conn) {
    if (!conn->paused || conn->waits_for_room || conn->state >= CR_CONN_LINGERING)
        return conn->state < CR_CONN_LINGERING;
    cr_bytes held = conn->stash;
    conn->stash = (cr_bytes){0};
    conn->paused = false;
    bool open = consume(conn, &held, held.at + held.off, held.len - held.off);
    free(held.at);
    return open;
}
