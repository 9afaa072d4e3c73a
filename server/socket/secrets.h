/* secrets: what the options' files say about who the daemon and its clients are: certificate, key, CA, tokens.
 *
 * Thread: any opens them; afterwards the loop's. Owner: whoever opened them, until the listeners' arrivals take them. */
#ifndef CURED_SERVER_SOCKET_SECRETS_H
#define CURED_SERVER_SOCKET_SECRETS_H

#include "server/base/config.h"
#include "server/socket/tls.h"
#include "server/socket/tokens.h"

typedef struct cr_secrets {
    cr_identity *identity; /* for TLS; NULL: it is not spoken */
    cr_tokens *tokens;     /* NULL: none are taken */
} cr_secrets;

/* Reads the files that the options name. It may take as long as their file systems do. INVALID_ARGUMENT names the option, the
 * file and what is wrong. */
cr_status cr_secrets_open(const cr_config *config, cr_secrets *secrets, cr_error *error);
void cr_secrets_free(cr_secrets *secrets);

#endif
