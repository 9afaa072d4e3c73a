/* tokens: secrets that clients are known by. A token is NAME.SECRET, the secret as 64 hex digits; its principal's line has a salted
 * hash of the secret (principals.h). So many random bits need no slow hash. Comparing takes as long whatever is wrong with a token,
 * but for its form.
 * Thread: the loop's. Owner: nobody. */
#ifndef CURED_SERVER_SOCKET_TOKENS_H
#define CURED_SERVER_SOCKET_TOKENS_H

#include "server/admit/principal.h"

enum { CR_TOKEN_NAME_BYTES = 32 };

/* n bytes out of 2 n hex digits in small letters, and nothing behind them. */
bool cr_token_hex(const char *text, size_t length, size_t n, uint8_t *out);
/* Whom the token names at now_s. UNAUTHENTICATED: it is none of these principals', or its time is over. */
cr_status cr_tokens_know(const cr_principals *principals, const char *token, size_t length, int64_t now_s,
                         const cr_principal **who, cr_error *error);

#endif
