/* tokens: secrets that clients are known by, from a file of salted hashes that `cured-client token NAME` makes lines of:
 *
 *   NAME SALT HASH        SALT: 32 hex digits; HASH: SHA-256 of SALT's 16 bytes and the secret's 32, 64 hex digits
 *
 * A token is NAME.SECRET, the secret as 64 hex digits: so many random bits need no slow hash. Comparing takes as long whatever
 * is wrong with a token, but for its form.
 * Thread: the loop's. Owner: the listeners' arrivals. */
#ifndef CURED_SERVER_SOCKET_TOKENS_H
#define CURED_SERVER_SOCKET_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

typedef struct cr_tokens cr_tokens;

/* INVALID_ARGUMENT names the option, the file, the line and what is wrong. A file that others may write is refused. */
cr_status cr_tokens_open(const char *path, cr_tokens **tokens, cr_error *error);
void cr_tokens_free(cr_tokens *tokens);
/* Whether the token is one of them. */
bool cr_tokens_know(const cr_tokens *tokens, const char *token, size_t length);

#endif
