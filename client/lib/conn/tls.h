/* tls: "tls:HOST:PORT". TLS 1.3 by OpenSSL, which is loaded when the first such address is used: a program that uses none need not
 * have it, and is not linked with it.
 *
 * Thread: the one that uses the connection. Owner: the connection. */
#ifndef CURED_CLIENT_LIB_CONN_TLS_H
#define CURED_CLIENT_LIB_CONN_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "cured/cured.h"
#include "proto/status.h"

/* Reads the files that the options or the environment name. */
cr_status cr_cl_tls_prepare(cured_conn *conn, const cured_connect_options *options, cr_error *error);
/* As recv and send; EPROTO: why says what is wrong. */
ssize_t cr_cl_tls_recv(cured_conn *conn, uint8_t *to, size_t n);
ssize_t cr_cl_tls_send(cured_conn *conn, const struct iovec *pieces, size_t count);
/* Nothing of ours is sent yet. */
bool cr_cl_tls_shakes(const cured_conn *conn);
/* recv would bring something, which poll does not tell. */
bool cr_cl_tls_pending(const cured_conn *conn);
/* Sealed bytes wait until the socket is writable. */
bool cr_cl_tls_unsent(const cured_conn *conn);
const char *cr_cl_tls_why(const cured_conn *conn);
/* The socket is gone. */
void cr_cl_tls_reset(cured_conn *conn);
void cr_cl_tls_free(cured_conn *conn);

#endif
