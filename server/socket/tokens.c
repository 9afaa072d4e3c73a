/* tokens: see tokens.h. Thread: the loop's. Owner: nobody. */
#include "server/socket/tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

enum { SECRET_BYTES = 32 };

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool cr_token_hex(const char *text, size_t length, size_t n, uint8_t *out) {
    if (length != 2 * n) return false;
    for (size_t i = 0; i < n; i++) {
        const int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool hash_of(const uint8_t salt[CR_SALT_BYTES], const uint8_t secret[SECRET_BYTES],
                    uint8_t hash[CR_HASH_BYTES]) {
    uint8_t both[CR_SALT_BYTES + SECRET_BYTES];
    memcpy(both, salt, CR_SALT_BYTES);
    memcpy(both + CR_SALT_BYTES, secret, SECRET_BYTES);
    const bool done = EVP_Digest(both, sizeof both, hash, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_cleanse(both, sizeof both);
    return done;
}

/* NULL: it is none of them. */
static const cr_principal *look_up(const cr_principals *principals, const char *token, size_t length) {
    char name[CR_TOKEN_NAME_BYTES + 1] = "";
    uint8_t secret[SECRET_BYTES], hash[CR_HASH_BYTES];
    const char *dot = memchr(token, '.', length);
    const size_t n = dot ? (size_t)(dot - token) : 0;
    if (!dot || !cr_token_hex(dot + 1, length - n - 1, SECRET_BYTES, secret)) return NULL;
    if (n <= CR_TOKEN_NAME_BYTES) memcpy(name, token, n);
    const cr_principal *line = cr_principals_find(principals, name);
    const bool known = line && line->by == CR_KNOWN_token && strlen(name) == n; /* who is not known costs a hash, too */
    if (!known) line = &cr_principal_plain;
    const bool hashed = hash_of(line->salt, secret, hash);
    const bool same = CRYPTO_memcmp(hash, line->hash, CR_HASH_BYTES) == 0;
    OPENSSL_cleanse(secret, sizeof secret);
    return known && hashed && same ? line : NULL;
}

cr_status cr_tokens_know(const cr_principals *principals, const char *token, size_t length, int64_t now_s,
                         const cr_principal **who, cr_error *error) {
    *who = look_up(principals, token, length);
    if (!*who) return cr_fail(error, CR_UNAUTHENTICATED, "token: it is none of this daemon's");
    if ((*who)->until_s && now_s >= (*who)->until_s) /* only its owner learns that */
        return cr_fail(error, CR_UNAUTHENTICATED, "token: its time is over: ask for a new one");
    return CR_OK;
}
