/* listener: where clients connect. Unix sockets under a lock file, TCP on loopback (or beyond, with insecure).
 *
 * Thread: main's at open, the loop's afterwards. Owner: main. */
#ifndef CURED_SERVER_TRANSPORT_LISTENER_H
#define CURED_SERVER_TRANSPORT_LISTENER_H

#include "base/address.h"
#include "server/transport/arrival.h"

typedef struct cr_listener cr_listener;

/* Binds and listens; connections are accepted as soon as the loop runs, and go to arrivals; door: see cr_arrival_from. ALREADY_EXISTS when a live daemon has the address; a
 * socket that nobody listens on is replaced. */
cr_status cr_listener_open(cr_arrivals *arrivals, const char *text, cr_door *door, cr_listener **listener,
                           cr_error *error);
/* Takes over a socket that listens already, passed by the service manager (passed.h). INVALID_ARGUMENT: it does not. */
cr_status cr_listener_adopt(cr_arrivals *arrivals, int fd, cr_listener **listener, cr_error *error);
/* The address as clients give it, with the port that was chosen for port 0. */
const char *cr_listener_name(const cr_listener *listener);
/* Stops accepting and removes the socket's file, but for one that was passed. The memory goes when the loop has closed the handle. */
void cr_listener_close(cr_listener *listener);

#endif
