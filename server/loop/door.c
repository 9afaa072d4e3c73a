/* door: what all doors do with a connection that is over. Thread: the loop's. Owner: the door. */
#include "server/loop/door.h"

#include <string.h>
#include <time.h>

#include "base/metrics.h"
#include "server/socket/tokens.h"

cr_status cr_arrived_check_token(const cr_calls *calls, bool wanted, const char *token, size_t length,
                                 const cr_principal **who, cr_error *error) {
    const cr_principals *principals = &calls->admission.principals;
    *who = NULL;
    if (!length && wanted)
        return cr_fail(error, CR_UNAUTHENTICATED, "token: this address wants one, or a client certificate");
    if (!length) return CR_OK;
    return cr_tokens_know(principals, token, length, (int64_t)time(NULL), who, error);
}

void cr_arrived_speaks(cr_calls *calls, cr_peer *peer, cr_spoken spoken) {
    calls->stats.connections[peer->spoken]--;
    calls->stats.connections[peer->spoken = spoken]++;
}

void cr_arrived_leave(cr_calls *calls, cr_peer *peer, bool refused) {
    calls->stats.connections[peer->spoken]--;
    if (refused)
        cr_admit_refused_over(&calls->admission);
    else
        cr_admit_connection_over(&calls->admission, peer);
    cr_admit_leave(&calls->admission, peer);
}

/* More than may wait for silent file systems. */
static bool too_many_foreign(const cr_calls *calls, const cr_peer *peer) {
    return cr_files_foreign_tasks(calls->files, peer->owner) > calls->admission.most[CR_USE_descriptors];
}

/* Closes of which it is not known yet whether they are foreign are not held against anybody before they are a quarter of the table. */
static bool too_many_closing(const cr_calls *calls, const cr_peer *peer) {
    return cr_files_closing(calls->files, peer->owner) > 4 * calls->admission.most[CR_USE_descriptors];
}

static bool many_tasks(const cr_calls *calls) {
    return cr_metric_get(file_tasks) > calls->admission.most[CR_USE_descriptors];
}

void cr_arrived_room(cr_calls *calls, const cr_peer *peer, struct msghdr *message, cr_control *room) {
    if (many_tasks(calls) && (too_many_foreign(calls, peer) || too_many_closing(calls, peer))) return;
    message->msg_control = room->bytes;
    message->msg_controllen = sizeof room->bytes;
}

bool cr_arrived_behind(const cr_calls *calls, const cr_peer *peer) {
    return many_tasks(calls) && too_many_closing(calls, peer) && !too_many_foreign(calls, peer);
}

void cr_arrived_drop(cr_calls *calls, const cr_peer *peer, struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + i * sizeof descriptor, sizeof descriptor);
            cr_files_close(calls->files, peer->owner, descriptor);
        }
    }
}

ssize_t cr_arrived_read(cr_calls *calls, const cr_peer *peer, cr_socket *socket, bool is_unix, uint8_t *to, size_t most,
                        bool *passed) {
    cr_control control;
    struct iovec iov = {to, most};
    *passed = false;
    if (!is_unix) return cr_socket_read(socket, &iov, 1);
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    cr_arrived_room(calls, peer, &message, &control);
    const ssize_t n = recvmsg(socket->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    *passed = n > 0 && (message.msg_controllen || message.msg_flags & MSG_CTRUNC);
    if (*passed) cr_arrived_drop(calls, peer, &message);
    return n;
}

void cr_arrived_close(cr_calls *calls, const cr_peer *peer, cr_socket *socket, bool is_unix) {
    static _Thread_local uint8_t unread[64 * 1024];
    cr_control control;
    if (is_unix) shutdown(socket->fd, SHUT_RDWR); /* nothing comes behind what is there */
    for (ssize_t n = is_unix; n > 0;) {
        struct iovec iov = {unread, sizeof unread};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        cr_arrived_room(calls, peer, &message, &control);
        n = recvmsg(socket->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n > 0) cr_arrived_drop(calls, peer, &message);
    }
    cr_socket_close(socket);
}
