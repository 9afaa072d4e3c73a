/* tls: TLS 1.3 by OpenSSL, under a connection's bytes.
 *
 * OpenSSL reads by a BIO of ours from what one recv brought, and seals into a buffer that is sent at once: fewer system
 * calls than its own BIO makes. Sessions are not resumed: a full handshake with a P-256 key costs the loop 16 µs of signing.
 * Thread: the loop's. Owner: the connection; identities are the listeners'. */
#ifndef CURED_SERVER_SOCKET_TLS_H
#define CURED_SERVER_SOCKET_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "proto/status.h"
#include "server/admit/principal.h"

/* Who the daemon is, by its certificate and key, and whose clients' certificates it takes. */
typedef struct cr_identity cr_identity;
typedef struct cr_tls cr_tls;

enum { CR_TLS_MOST_NAMES = 64 };

/* Reads PEM files; client_ca NULL: no client shows a certificate. INVALID_ARGUMENT names the option, the file and what is wrong. */
cr_status cr_identity_open(const char *certificate, const char *key, const char *client_ca, cr_identity **identity,
                           cr_error *error);
/* Connections that began with it go on. */
void cr_identity_free(cr_identity *identity);
/* When its certificate ends, in seconds of the Unix clock. */
int64_t cr_identity_expires_s(const cr_identity *identity);

/* For a new connection of which n bytes were read. NULL: there is no memory. */
cr_tls *cr_tls_new(const cr_identity *identity, int fd, const uint8_t *bytes, size_t n);
/* A step of the handshake, when bytes came or there is room for some. CR_OK: it is done; CR_UNAVAILABLE: not yet; all else: it has failed. */
cr_status cr_tls_shake(cr_tls *tls, cr_error *error);
/* False: the client has shown a certificate that is over, or that no CA of the identity's signed. */
bool cr_tls_trusts_client(const cr_tls *tls);
/* Whether the client has shown a certificate that the identity's CA signed. */
bool cr_tls_knows_client(const cr_tls *tls);
/* When the client's certificate ends, in seconds of the Unix clock. 0: it has none. */
int64_t cr_tls_client_until_s(const cr_tls *tls);
/* Takes each name of the client's certificate that is printable ASCII of 1 to CR_NAME_MAX_BYTES bytes: its common name, then the DNS
 * names, in small letters, and URIs beside its subject, CR_TLS_MOST_NAMES of them. */
typedef void (*cr_tls_take_name)(void *argument, cr_known_by by, const char *name);
void cr_tls_client_names(const cr_tls *tls, cr_tls_take_name take, void *argument);
/* As the functions of cr_socket. */
ssize_t cr_tls_read(cr_tls *tls, const struct iovec *parts, int count);
ssize_t cr_tls_write(cr_tls *tls, const void *bytes, size_t n);
bool cr_tls_has_more(const cr_tls *tls);
bool cr_tls_unsent(const cr_tls *tls);
void cr_tls_end(cr_tls *tls);
void cr_tls_free(cr_tls *tls);

#endif
