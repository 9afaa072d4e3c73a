/* tokens: secrets that clients are known by, from a file of salted hashes that `cured-client token NAME` makes lines of:
 *
 *   NAME SALT HASH [until=TIME] [may=WORD,WORD]
 *       SALT: 32 hex digits; HASH: SHA-256 of SALT's 16 bytes and the secret's 32, 64 hex digits
 *       TIME: 2026-12-31T12:00:00Z, or 2026-12-31, the last day on which the token is good (UTC)
 *       WORD: of proto/may.def; without may= all but admin
 *
 * A token is NAME.SECRET, the secret as 64 hex digits: so many random bits need no slow hash. Comparing takes as long whatever
 * is wrong with a token, but for its form.
 * Thread: the loop's. Owner: the listeners' arrivals. */
#ifndef CURED_SERVER_SOCKET_TOKENS_H
#define CURED_SERVER_SOCKET_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"
#include "server/base/may.h"

typedef struct cr_tokens cr_tokens;

enum { CR_TOKEN_NAME_BYTES = 32 };

/* Whom a token names. */
typedef struct cr_principal {
    char name[CR_TOKEN_NAME_BYTES + 1];
    uint8_t may;     /* cr_may bits */
    int64_t until_s; /* the token is good so long; 0: for ever */
} cr_principal;

/* INVALID_ARGUMENT names the option, the file, the line and what is wrong. A file that others may write is refused. */
cr_status cr_tokens_open(const char *path, cr_tokens **tokens, cr_error *error);
void cr_tokens_free(cr_tokens *tokens);
/* Whom the token names at now_s. UNAUTHENTICATED: it is none of them, or its time is over. tokens NULL: none are known. */
cr_status cr_tokens_know(const cr_tokens *tokens, const char *token, size_t length, int64_t now_s,
                         cr_principal *principal, cr_error *error);

#endif
