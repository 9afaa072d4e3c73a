/* send: what the calls of a connection have to send (call/output.c), and its own small frames, in as few sendmsg as possible.
 *
 * Thread: the one that uses the connection. Owner: nothing is copied; the pieces belong to their calls. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "client/lib/conn/conn.h"
#include "client/lib/conn/tls.h"

enum {
    COPY_BYTES =
        40 * 1024, /* sent from one place where the pieces are small: each costs the kernel more than its copy */
    COPY_PIECE_BYTES = 1024,
};

static ssize_t send_copy(const cured_conn *conn, const cr_cl_message *m) {
    uint8_t all[COPY_BYTES], *at = all;
    ssize_t n;
    for (size_t i = 0; i < m->pieces; at += m->iov[i++].iov_len) memcpy(at, m->iov[i].iov_base, m->iov[i].iov_len);
    do n = send(conn->calls.fd, all, m->bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t send_message(cured_conn *conn, cr_cl_message *m) {
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
        memcpy(CMSG_DATA(c), &m->fd, sizeof(int));
    }
    ssize_t n;
    do n = sendmsg(conn->calls.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

void cr_cl_send_flush(cured_conn *conn) {
    cr_cl_message m;
    while (conn->state == CONN_OPEN && !conn->send_failed) {
        const size_t own = conn->control_len - conn->control_pos;
        if (own == 0 && cr_list_empty(&conn->calls.queue)) {
            if (cr_cl_tls_unsent(conn)) cr_cl_tls_send(conn, NULL, 0);
            return;
        }
        cr_cl_calls_gather(&conn->calls, conn->control + conn->control_pos, own, &m);
        ssize_t n = send_message(conn, &m);
        if (n >= 0) {
            if (conn->full) conn->moved = true; /* the daemon has read something */
            conn->full = (size_t)n < m.bytes;
            conn->control_pos += cr_cl_calls_sent(&conn->calls, own, (size_t)n);
            if (conn->control_pos == conn->control_len) conn->control_pos = conn->control_len = 0;
            if (conn->full) return; /* POLLOUT will tell */
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            conn->full = true;
            return;
        } else if (m.fd_call != NULL && (errno == ETOOMANYREFS || errno == EBADF)) {
            cr_cl_calls_fd_refused(&m);
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
