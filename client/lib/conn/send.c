/* send: gathers what the calls of a connection have to send into as few sendmsg as possible.
 *
 * Order on the wire: the rest of a frame that is partly sent, then the connection's own small frames, then the calls' pieces
 * in turn. A CALL with a descriptor starts a sendmsg of its own (SCM_RIGHTS goes with the first byte).
 *
 * Thread: the one that uses the connection. Owner: nothing is copied; the pieces belong to their calls. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "client/lib/internal.h"

enum {
    MAX_PIECES = 128,
    ENOUGH_BYTES = 1024 * 1024, /* more than any socket takes at once */
    ZERO_BYTES = 64 * 1024,
    COPY_BYTES =
        40 * 1024, /* sent from one place where the pieces are small: each costs the kernel more than its copy */
    COPY_PIECE_BYTES = 1024,
};

static const uint8_t zeros[ZERO_BYTES];

struct message {
    struct iovec iov[MAX_PIECES];
    size_t pieces, bytes;
    cured_call *fd_call; /* its descriptor goes with the first byte */
    bool full;
};

static cured_call *first_call(const cured_conn *conn) {
    return cr_list_empty(&conn->queue) ? NULL : cr_container(conn->queue.next, cured_call, queue);
}

static cured_call *call_after(const cured_conn *conn, const cured_call *call) {
    return call->queue.next == &conn->queue ? NULL : cr_container(call->queue.next, cured_call, queue);
}

static bool begun(const cured_call *call) { return call != NULL && (call->head_pos != 0 || call->body_pos != 0); }

static void add(struct message *m, const void *base, size_t len) {
    if (len == 0) return;
    m->iov[m->pieces++] = (struct iovec){.iov_base = (void *)(uintptr_t)base, .iov_len = len};
    m->bytes += len;
}

static void add_call(struct message *m, const cured_call *call) {
    size_t left = call->body_len - call->body_pos;
    add(m, call->head + call->head_pos, call->head_len - call->head_pos);
    if (call->body != NULL) {
        add(m, call->body + call->body_pos, left);
    } else {
        add(m, zeros, left < ZERO_BYTES ? left : ZERO_BYTES);
        m->full = left > ZERO_BYTES; /* nothing may come between the rest of the zeros and these */
    }
    if (m->pieces > MAX_PIECES - 3 || m->bytes >= ENOUGH_BYTES) m->full = true;
}

static void gather(cured_conn *conn, struct message *m) {
    cured_call *call = first_call(conn);
    m->pieces = m->bytes = 0;
    m->fd_call = NULL;
    m->full = false;
    if (begun(call)) {
        add_call(m, call);
        call = call_after(conn, call);
    }
    if (m->full) return;
    add(m, conn->control + conn->control_pos, conn->control_len - conn->control_pos);
    for (; call != NULL && !m->full; call = call_after(conn, call)) {
        if (call->fd_due) {
            if (m->pieces != 0) return;
            m->fd_call = call;
        }
        add_call(m, call);
    }
}

/* Counts n sent bytes against one call; a call whose piece is sent readies its next and goes to the end of the queue. */
static void sent_by_call(cured_call *call, size_t *n) {
    size_t head = call->head_len - call->head_pos;
    if (head > *n) head = *n;
    call->head_pos += (uint32_t)head;
    *n -= head;
    size_t body = call->body_len - call->body_pos;
    if (body > *n) body = *n;
    call->body_pos += body;
    *n -= body;
    call->sent = true;
    call->fd_due = false;
    if (call->head_pos < call->head_len || call->body_pos < call->body_len) return;
    cr_list_remove(&call->queue);
    if (cr_cl_call_next_frame(call))
        cr_cl_call_enqueue(call);
    else if (call->freed)
        cr_cl_call_destroy(call);
}

static void sent(cured_conn *conn, size_t n) {
    if (begun(first_call(conn))) sent_by_call(first_call(conn), &n);
    if (n != 0) {
        size_t control = conn->control_len - conn->control_pos;
        if (control > n) control = n;
        conn->control_pos += control;
        n -= control;
        if (conn->control_pos == conn->control_len) conn->control_pos = conn->control_len = 0;
    }
    while (n != 0) sent_by_call(first_call(conn), &n);
}

static ssize_t send_copy(const cured_conn *conn, const struct message *m) {
    uint8_t all[COPY_BYTES], *at = all;
    ssize_t n;
    for (size_t i = 0; i < m->pieces; at += m->iov[i++].iov_len) memcpy(at, m->iov[i].iov_base, m->iov[i].iov_len);
    do n = send(conn->fd, all, m->bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t send_message(cured_conn *conn, struct message *m) {
    if (conn->tls != NULL) return cr_cl_tls_send(conn, m->iov, m->pieces);
    if (m->fd_call == NULL && m->bytes <= COPY_BYTES && m->bytes <= m->pieces * COPY_PIECE_BYTES)
        return send_copy(conn, m);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr msg = {.msg_iov = m->iov, .msg_iovlen = m->pieces};
    if (m->fd_call != NULL) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &m->fd_call->fd, sizeof(int));
    }
    ssize_t n;
    do n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

void cr_cl_send_flush(cured_conn *conn) {
    struct message m;
    while (conn->state == CONN_OPEN && !conn->send_failed) {
        gather(conn, &m);
        if (m.pieces == 0) {
            if (cr_cl_tls_unsent(conn)) cr_cl_tls_send(conn, NULL, 0);
            return;
        }
        ssize_t n = send_message(conn, &m);
        if (n >= 0) {
            if (conn->full) conn->moved = true; /* the daemon has read something */
            conn->full = (size_t)n < m.bytes;
            sent(conn, (size_t)n);
            if (conn->full) return; /* POLLOUT will tell */
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            conn->full = true;
            return;
        } else if (m.fd_call != NULL && (errno == ETOOMANYREFS || errno == EBADF)) {
            cr_cl_call_finish(m.fd_call, CR_RESOURCE_EXHAUSTED, 0,
                              "the descriptor could not be passed: too many are in flight");
        } else {
            /* The daemon may have said why before it closed: reading finds out. */
            conn->send_failed = true;
        }
    }
}

bool cr_cl_send_control(cured_conn *conn, cr_frame_type type, const void *payload, uint32_t length) {
    if (conn->control_len + CR_FRAME_HEADER_BYTES + length > sizeof conn->control) return false;
    cr_frame f = {.type = (uint8_t)type, .length = length};
    cr_frame_put(conn->control + conn->control_len, &f);
    conn->control_len += CR_FRAME_HEADER_BYTES;
    if (length != 0) memcpy(conn->control + conn->control_len, payload, length);
    conn->control_len += length;
    return true;
}
