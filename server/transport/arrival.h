/* arrival: connections from their accept until it is known which language they speak. The first bytes say it: each door has
 * the bytes that its connections begin with (loop/door.h). They are read as usual and handed on with the socket, and what
 * no door knows goes to the first, which says so. TLS begins with a byte of its own; the first bytes within it say the rest.
 *
 *   accepted ──the first bytes──► a door's        (most clients have sent them by then)
 *       │ └─TLS─► SHAKING ──done──► accepted      (refused without a certificate, where one is wanted)
 *       └──none for hello_timeout_ms──► closed by the first door, which says why
 *
 * A connection counts from its accept on. One that is not let in waits a moment for its first bytes, to be told why in its own
 * language.
 * Thread: the loop's. Owner: main. */
#ifndef CURED_SERVER_TRANSPORT_ARRIVAL_H
#define CURED_SERVER_TRANSPORT_ARRIVAL_H

#include "server/loop/loop.h"
#include "server/socket/secrets.h"

typedef struct cr_arrivals {
    cr_loop *loop;
    cr_list waiting;
    cr_list shaking;     /* of them, those in a TLS handshake; the oldest first */
    cr_secrets secrets;  /* its principals are the admission's */
    uint64_t shook_turn; /* of the loop, by the time that it began */
    uint64_t shook_ns;   /* in that turn */
    uint64_t count;      /* connections so far */
    cr_timer daily;      /* looks at how long the certificate is good */
} cr_arrivals;

/* The address that a connection came to. */
typedef struct cr_arrival_from {
    bool is_unix;
    bool
        far; /* it can be reached from other machines, and a connection must be trusted by TLS and a certificate or token */
    cr_door *door; /* all its connections are for this one; NULL: for the one that their first bytes say */
} cr_arrival_from;

/* The loop has its doors by the time that the first connection comes. */
void cr_arrivals_init(cr_arrivals *arrivals, cr_loop *loop);
/* Takes the secrets over in place of those that were, at start and after a reload. Connections that are open go on. */
void cr_arrivals_secure(cr_arrivals *arrivals, cr_secrets *secrets);
/* Takes over the socket of a new connection (non-blocking, close-on-exec), in every case. */
cr_status cr_arrival_open(cr_arrivals *arrivals, int fd, const cr_arrival_from *from, cr_error *error);
/* Hands all that wait to their doors, which are closed next. The loop has to run until their handles are gone. */
void cr_arrivals_close(cr_arrivals *arrivals);

#endif
