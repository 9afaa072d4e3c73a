/* address: from "unix:PATH", a path, "tcp:HOST:PORT" or "tls:HOST:PORT" to a socket that is connecting.
 *
 * Thread: the caller's; getaddrinfo may block for host names. Owner: the socket made here belongs to the caller. */
#ifndef CURED_CLIENT_LIB_CONN_ADDRESS_H
#define CURED_CLIENT_LIB_CONN_ADDRESS_H

#include "cured/cured.h"
#include "proto/status.h"

cr_status cr_cl_address_parse(const char *address, bool *tcp, bool *tls, cr_error *error);
/* The host of "tcp:HOST:PORT" or "tls:HOST:PORT", without brackets. */
cr_status cr_cl_address_host(const char *address, char host[256], cr_error *error);
/* Makes a non-blocking socket and starts connecting it. *connecting: the result comes with POLLOUT. *again: worth another try at
 * once (the next of a host's addresses). *lookup counts the addresses tried. */
cr_status cr_cl_address_open(const char *address, uint32_t *lookup, int *fd, bool *connecting, bool *again,
                             cr_error *error);

/* Where a daemon is looked for when the program names no address, in this order; how many. */
enum { CR_CL_ADDRESSES = 2 };
size_t cr_cl_address_defaults(char out[CR_CL_ADDRESSES][CURED_ADDRESS_BYTES]);

#endif
