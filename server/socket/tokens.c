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
#include <time.h>
#include <unistd.h>

enum { MOST_TOKENS = 4096, SALT_BYTES = 16, SECRET_BYTES = 32, HASH_BYTES = 32, LINE_BYTES = 256 };

typedef struct entry {
    cr_principal who;
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
    return length >= 1 && length <= CR_TOKEN_NAME_BYTES;
}

static const entry *find(const cr_tokens *t, const char *name, size_t length) {
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->entries[i].who.name) == length && memcmp(t->entries[i].who.name, name, length) == 0)
            return &t->entries[i];
    return NULL;
}

/* n digits at *text, which moves past them and the character behind, which must be one of after. -1: they are something else. */
static int read_digits(const char **text, int n, const char *after) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        const char c = (*text)[i];
        if (c < '0' || c > '9') return -1;
        value = 10 * value + (c - '0');
    }
    if (!strchr(after, (*text)[n])) return -1; /* a NUL counts as the last of after */
    *text += n + ((*text)[n] != '\0');
    return value;
}

/* A day is good to its end. */
static bool read_until(const char *text, int64_t *until_s) {
    struct tm t = {0}, back;
    t.tm_year = read_digits(&text, 4, "-") - 1900;
    if (t.tm_year < 0 || (t.tm_mon = read_digits(&text, 2, "-") - 1) < 0) return false;
    t.tm_mday = read_digits(&text, 2, "T");
    const bool day = t.tm_mday > 0 && text[-1] != 'T';
    if (!day &&
        (t.tm_mday < 1 || (t.tm_hour = read_digits(&text, 2, ":")) < 0 || (t.tm_min = read_digits(&text, 2, ":")) < 0 ||
         (t.tm_sec = read_digits(&text, 2, "Z")) < 0 || text[-1] != 'Z'))
        return false;
    const struct tm wanted = t;
    const time_t seconds = timegm(&t);
    if (*text || seconds <= 0 || !gmtime_r(&seconds, &back)) return false;
    if (back.tm_mday != wanted.tm_mday || back.tm_hour != wanted.tm_hour || back.tm_min != wanted.tm_min ||
        back.tm_sec != wanted.tm_sec)
        return false; /* there is no 31st of June */
    *until_s = (int64_t)seconds + (day ? 86400 : 0);
    return true;
}

static bool read_may(char *text, uint8_t *may) {
    static const char *const words[] = {
#define CR_MAY(name, what) #name,
#include "proto/may.def"
#undef CR_MAY
    };
    *may = 0;
    for (char *rest, *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned i = 0;
        while (i < CR_MAYS && strcmp(words[i], word) != 0) i++;
        if (i == CR_MAYS) return false;
        *may |= (uint8_t)(1 << i);
    }
    return *may;
}

/* The rest of a line, of what stands before "=" in it. NULL, or what is wrong with it. */
static const char *read_more(cr_principal *who, char **rest) {
    who->may = CR_MAY_PLAIN;
    who->until_s = 0;
    bool until = false, may = false;
    for (char *word; (word = strtok_r(NULL, " \t\r\n", rest));) {
        if (strncmp(word, "until=", 6) == 0 && !until) {
            until = read_until(word + 6, &who->until_s);
            if (!until)
                return "until= must be a day or a time of it in UTC, such as 2026-12-31 or 2026-12-31T12:00:00Z";
        } else if (strncmp(word, "may=", 4) == 0 && !may) {
            may = read_may(word + 4, &who->may);
            if (!may) return "may= must be of reduce, regions, info, stats and admin, with commas between";
        } else {
            return "it must be NAME SALT HASH, and then until= and may= at most, once each";
        }
    }
    return NULL;
}

/* One line of the file. NULL, or what is wrong with it. */
static const char *add_line(cr_tokens *t, char *line) {
    char *rest, *name = strtok_r(line, " \t\r\n", &rest);
    if (!name || *name == '#') return NULL;
    const char *salt = strtok_r(NULL, " \t\r\n", &rest), *hash = salt ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    if (!hash) return "it must be NAME SALT HASH";
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
    memcpy(e->who.name, name, strlen(name) + 1);
    if (strlen(salt) != 2 * SALT_BYTES || !from_hex(salt, SALT_BYTES, e->salt)) return "SALT must be 32 hex digits";
    if (strlen(hash) != 2 * HASH_BYTES || !from_hex(hash, HASH_BYTES, e->hash)) return "HASH must be 64 hex digits";
    const char *wrong = read_more(&e->who, &rest);
    if (!wrong) t->count++;
    return wrong;
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

/* NULL: it is none of them. */
static const entry *look_up(const cr_tokens *t, const char *token, size_t length) {
    static const entry nobody; /* who is not known costs a hash, too */
    uint8_t secret[SECRET_BYTES], hash[HASH_BYTES];
    const char *dot = memchr(token, '.', length);
    const size_t name = dot ? (size_t)(dot - token) : 0;
    if (!dot || length - name - 1 != 2 * SECRET_BYTES || !from_hex(dot + 1, SECRET_BYTES, secret)) return NULL;
    const entry *e = find(t, token, name);
    const bool hashed = hash_of((e ? e : &nobody)->salt, secret, hash);
    const bool same = CRYPTO_memcmp(hash, (e ? e : &nobody)->hash, HASH_BYTES) == 0;
    OPENSSL_cleanse(secret, sizeof secret);
    return hashed && same ? e : NULL;
}

cr_status cr_tokens_know(const cr_tokens *t, const char *token, size_t length, int64_t now_s, cr_principal *principal,
                         cr_error *error) {
    const entry *e = t ? look_up(t, token, length) : NULL;
    if (!e) return cr_fail(error, CR_UNAUTHENTICATED, "token: it is none of this daemon's");
    if (e->who.until_s && now_s >= e->who.until_s) /* only its owner learns that */
        return cr_fail(error, CR_UNAUTHENTICATED, "token: its time is over: ask for a new one");
    *principal = e->who;
    return CR_OK;
}
