/* tokens: see tokens.h. Thread: the loop's. Owner: see tokens.h. */
#include "server/socket/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TOKENS = 4096, NAME_BYTES = 32, SALT_BYTES = 16, SECRET_BYTES = 32, HASH_BYTES = 32, LINE_BYTES = 256 };

typedef struct entry {
    char name[NAME_BYTES + 1];
    uint8_t salt[SALT_BYTES], hash[HASH_BYTES];
} entry;

struct cr_tokens {
    size_t count, room;
    entry *entries;
};

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 2 n hex digits, in small letters. */
static bool from_hex(const char *text, size_t n, uint8_t *out) {
    for (size_t i = 0; i < n; i++) {
        const int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool hash_of(const uint8_t salt[SALT_BYTES], const uint8_t secret[SECRET_BYTES], uint8_t hash[HASH_BYTES]) {
    uint8_t both[SALT_BYTES + SECRET_BYTES];
    memcpy(both, salt, SALT_BYTES);
    memcpy(both + SALT_BYTES, secret, SECRET_BYTES);
    const bool done = EVP_Digest(both, sizeof both, hash, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_cleanse(both, sizeof both);
    return done;
}

static bool is_name(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
              (text[i] >= '0' && text[i] <= '9') || text[i] == '_' || text[i] == '-'))
            return false;
    return length >= 1 && length <= NAME_BYTES;
}

static const entry *find(const cr_tokens *t, const char *name, size_t length) {
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->entries[i].name) == length && memcmp(t->entries[i].name, name, length) == 0)
            return &t->entries[i];
    return NULL;
}

/* One line of the file. NULL, or what is wrong with it. */
static const char *add_line(cr_tokens *t, char *line) {
    char *rest, *name = strtok_r(line, " \t\r\n", &rest);
    if (!name || *name == '#') return NULL;
    const char *salt = strtok_r(NULL, " \t\r\n", &rest), *hash = salt ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    if (!hash || strtok_r(NULL, " \t\r\n", &rest)) return "it must be NAME SALT HASH";
    if (!is_name(name, strlen(name))) return "NAME must be 1 to 32 letters, digits, '-' or '_'";
    if (find(t, name, strlen(name))) return "that NAME stands in it twice";
    if (t->count == MOST_TOKENS) return "it may have 4096 tokens at most";
    if (t->count == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        entry *entries = realloc(t->entries, room * sizeof *entries);
        if (!entries) return "there is no memory for it";
        t->entries = entries;
        t->room = room;
    }
    entry *e = &t->entries[t->count];
    memcpy(e->name, name, strlen(name) + 1);
    if (strlen(salt) != 2 * SALT_BYTES || !from_hex(salt, SALT_BYTES, e->salt)) return "SALT must be 32 hex digits";
    if (strlen(hash) != 2 * HASH_BYTES || !from_hex(hash, HASH_BYTES, e->hash)) return "HASH must be 64 hex digits";
    t->count++;
    return NULL;
}

cr_status cr_tokens_open(const char *path, cr_tokens **out, cr_error *error) {
    char line[LINE_BYTES];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO is refused below, at once */
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0) close(fd);
        return cr_fail(error, CR_INVALID_ARGUMENT, "tokens: cannot open %.200s: %s", path, strerror(errno));
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_mode & (S_IWGRP | S_IWOTH)) {
        fclose(file);
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "tokens: %.200s must be a regular file that only its owner may write (chmod go-w)", path);
    }
    cr_tokens *t = calloc(1, sizeof *t);
    const char *wrong = t ? NULL : "there is no memory for it";
    unsigned number = 0;
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        wrong = strlen(line) == sizeof line - 1 ? "it is longer than 254 bytes" : add_line(t, line);
    }
    fclose(file);
    if (!wrong) {
        *out = t;
        return CR_OK;
    }
    cr_tokens_free(t);
    return cr_fail(error, CR_INVALID_ARGUMENT, "tokens: %.200s, line %u: %s", path, number, wrong);
}

void cr_tokens_free(cr_tokens *t) {
    if (!t) return;
    free(t->entries);
    free(t);
}

bool cr_tokens_know(const cr_tokens *t, const char *token, size_t length) {
    static const entry nobody; /* who is not known costs a hash, too */
    uint8_t secret[SECRET_BYTES], hash[HASH_BYTES];
    const char *dot = memchr(token, '.', length);
    const size_t name = dot ? (size_t)(dot - token) : 0;
    if (!dot || length - name - 1 != 2 * SECRET_BYTES || !from_hex(dot + 1, SECRET_BYTES, secret)) return false;
    const entry *e = find(t, token, name);
    const bool hashed = hash_of((e ? e : &nobody)->salt, secret, hash);
    const bool same = CRYPTO_memcmp(hash, (e ? e : &nobody)->hash, HASH_BYTES) == 0;
    OPENSSL_cleanse(secret, sizeof secret);
    return hashed && e && same;
}
