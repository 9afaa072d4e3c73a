/* cured-client token NAME: a new token, and the line by which a daemon knows it (server/socket/tokens.h). Nothing is kept and no
 * daemon is asked.
 *
 * Thread: one. SHA-256 is OpenSSL's, loaded for it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "client/cli/cli.h"

enum { SALT_BYTES = 16, SECRET_BYTES = 32, HASH_BYTES = 32, NAME_BYTES = 32 };

static void hex(const uint8_t *bytes, size_t n, char *out) {
    for (size_t i = 0; i < n; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
}

static bool is_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t length = strlen(text);
    return length >= 1 && length <= NAME_BYTES && strspn(text, letters) == length;
}

int cmd_token(const cli_options *o) {
    unsigned char *(*sha256)(const unsigned char *, size_t, unsigned char *);
    uint8_t both[SALT_BYTES + SECRET_BYTES], hash[HASH_BYTES];
    char salt[2 * SALT_BYTES + 1], secret[2 * SECRET_BYTES + 1], hashed[2 * HASH_BYTES + 1];
    if (!is_name(o->file))
        return cli_fail(EXIT_USAGE, "token: '%.40s' is no name: 1 to 32 letters, digits, '-' or '_'", o->file);
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    void *function = library != NULL ? dlsym(library, "SHA256") : NULL;
    if (function == NULL) return cli_fail(EXIT_IO, "token: OpenSSL 3 (libcrypto.so.3) cannot be loaded: %s", dlerror());
    memcpy(&sha256, &function, sizeof sha256);
    if (getrandom(both, sizeof both, 0) != sizeof both) return cli_fail(EXIT_IO, "token: there are no random bytes");
    sha256(both, sizeof both, hash);
    hex(both, SALT_BYTES, salt);
    hex(both + SALT_BYTES, SECRET_BYTES, secret);
    hex(hash, sizeof hash, hashed);
    printf("token (for the client, in a file of mode 0600): %s.%s\n", o->file, secret);
    printf("line (for the daemon's file of --tokens): %s %s %s\n", o->file, salt, hashed);
    return cli_flush();
}
