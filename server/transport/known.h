/* known: who is at the other end of a new connection, by what Linux, the address and a certificate say, and which line of
 * principals it goes by. Tokens come later, and are the doors'.
 *
 * Thread: the loop's. Owner: nobody. */
#ifndef CURED_SERVER_TRANSPORT_KNOWN_H
#define CURED_SERVER_TRANSPORT_KNOWN_H

#include "server/loop/door.h"
#include "server/socket/secrets.h"

/* What a connection may before it has said anything: of a Unix socket what its process may, else what whoever shows nothing may. */
void cr_known_at_first(const cr_calls *calls, const cr_secrets *secrets, cr_peer *peer, int socket);
/* Of a Unix socket to which not everybody may connect. PERMISSION_DENIED. */
cr_status cr_known_process(const cr_secrets *secrets, const cr_peer *peer, int socket, cr_error *error);
/* Of a client that has shown a certificate which a CA of ours signed: it becomes a principal by its names. PERMISSION_DENIED,
 * RESOURCE_EXHAUSTED. */
cr_status cr_known_certificate(cr_calls *calls, const cr_secrets *secrets, const cr_tls *tls, cr_peer *peer,
                               cr_error *error);

#endif
