/* socket: plain ones; tls.c has the others. Thread: the loop's. Owner: the connection. */
#include "server/socket/socket.h"

#include <sys/socket.h>
#include <unistd.h>

ssize_t cr_socket_read(cr_socket *s, const struct iovec *parts, int count) {
    if (s->tls) return cr_tls_read(s->tls, parts, count);
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
    return recvmsg(s->fd, (struct msghdr *)(uintptr_t)&message, MSG_DONTWAIT);
}

ssize_t cr_socket_write(cr_socket *s, const void *bytes, size_t n) {
    if (s->tls) return cr_tls_write(s->tls, bytes, n);
    return n ? send(s->fd, bytes, n, MSG_NOSIGNAL) : 0;
}

void cr_socket_wait_for(cr_socket *s, uint32_t bytes) {
    const int least = bytes ? (int)bytes : 1;
    if (bytes == s->waits_for || setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least) != 0) return;
    s->waits_for = bytes;
}

void cr_socket_end(cr_socket *s) {
    if (s->tls) cr_tls_end(s->tls);
    if (!cr_socket_unsent(s)) shutdown(s->fd, SHUT_WR);
}

void cr_socket_close(cr_socket *s) {
    if (s->tls) cr_tls_free(s->tls);
    s->tls = NULL;
    close(s->fd);
}
