/* secrets: what the options' files say about who the daemon and its clients are: certificate, key, CA, principals.
 *
 * Thread: any opens them; afterwards the loop's. Owner: whoever opened them, until the listeners' arrivals take them. */
#ifndef CURED_SERVER_SOCKET_SECRETS_H
#define CURED_SERVER_SOCKET_SECRETS_H

#include "server/admit/principal.h"
#include "server/socket/ids.h"
#include "server/socket/tls.h"

typedef struct cr_secrets {
    cr_identity *identity;     /* for TLS; NULL: it is not spoken */
    cr_principals *principals; /* until the admission takes them over; NULL: it has */
    cr_ids users, groups;      /* who may connect over Unix sockets; both empty: all whom the socket's mode lets in */
    cr_ids admins;             /* users who may all */
    cr_config_list names;      /* common names that clients' certificates may have; empty: any */
} cr_secrets;

/* Reads the files that the options name, and looks users and groups up. It may take as long as their file systems do.
 * INVALID_ARGUMENT names the option, the file and what is wrong. */
cr_status cr_secrets_open(const cr_config *config, cr_secrets *secrets, cr_error *error);
/* Whether the process at the other end of a Unix socket is let in by users and groups, and not by who it is else. */
bool cr_secrets_allow(const cr_secrets *secrets, int socket, uint32_t uid);
void cr_secrets_free(cr_secrets *secrets);

#endif
