/* socket: the bytes of a connection, plain or under TLS.
 *
 * Under TLS poll does not tell all: bytes may have been received and not yet read, and sealed bytes may wait to be sent.
 * cr_socket_has_more and cr_socket_unsent tell.
 * Thread: the loop's. Owner: the connection. */
#ifndef CURED_SERVER_SOCKET_SOCKET_H
#define CURED_SERVER_SOCKET_SOCKET_H

#include "server/socket/tls.h"

typedef struct cr_socket {
    int fd;             /* non-blocking */
    cr_tls *tls;        /* NULL: plain; owned */
    uint32_t waits_for; /* poll tells of the socket from so many bytes on; 0: from one on */
} cr_socket;

/* Reads once into parts, in their order. 0: the end; -1: errno, as recv has it. */
ssize_t cr_socket_read(cr_socket *socket, const struct iovec *parts, int count);
/* Writes some of n bytes; of none what still waits. -1: errno, as send has it. */
ssize_t cr_socket_write(cr_socket *socket, const void *bytes, size_t n);
/* Whether a read would bring something, or find that it is too early, without a word of poll. */
static inline bool cr_socket_has_more(const cr_socket *socket) { return socket->tls && cr_tls_has_more(socket->tls); }
/* Whether bytes that were taken wait until the socket is writable. */
static inline bool cr_socket_unsent(const cr_socket *socket) { return socket->tls && cr_tls_unsent(socket->tls); }
/* Of a TCP socket: poll need not tell of fewer bytes than these, which are on their way. 0: of any. What is asked for lasts until
 * the next time; a client's end poll tells in any case. */
void cr_socket_wait_for(cr_socket *socket, uint32_t bytes);
/* Says that nothing more is written. */
void cr_socket_end(cr_socket *socket);
void cr_socket_close(cr_socket *socket);

#endif
