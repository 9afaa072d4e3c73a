/* cured-client token NAME: a new token, and the line by which a daemon knows it (server/socket/principals.h). Nothing is kept and no
 * daemon is asked.
 *
 * Thread: one. SHA-256 is OpenSSL's, loaded for it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

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

/* "until=TIME", or nothing, into out. */
static int write_until(const cli_options *o, char *out, size_t room) {
    struct tm t = {0};
    time_t until = time(NULL) + (time_t)o->days * 86400;
    *out = '\0';
    if (o->days != 0 && o->until != NULL) return cli_fail(EXIT_USAGE, "token: give --days or --until");
    if (o->days == 0 && o->until == NULL) return EXIT_OK;
    if (o->until != NULL) {
        const char *end = strptime(o->until, "%Y-%m-%d", &t);
        const int day = t.tm_mday;
        until = timegm(&t) + 86400; /* the end of that day */
        if (end == NULL || t.tm_mday != day || *end != '\0' || strlen(o->until) != 10 || until <= time(NULL))
            return cli_fail(EXIT_USAGE, "token: --until is '%.40s', must be a day such as 2026-12-31, and not over",
                            o->until);
    }
    if (gmtime_r(&until, &t) != NULL) strftime(out, room, " until=%Y-%m-%dT%H:%M:%SZ", &t);
    return EXIT_OK;
}

/* Whether text is "nothing", or each of its words between commas is one of may.def's. */
static bool are_rights(const char *text) {
    static const char *const words[] = {
#define CR_MAY(name, what) #name,
#include "proto/may.def"
#undef CR_MAY
    };
    if (strcmp(text, "nothing") == 0) return true;
    for (;; text++) {
        const size_t length = strcspn(text, ",");
        bool known = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            known |= strlen(words[i]) == length && memcmp(words[i], text, length) == 0;
        text += length;
        if (!known || *text == '\0') return known;
    }
}

/* A whole number, and behind it one of the units that the daemon takes for bytes: 64 bits hold both together. */
static bool is_amount(const char *text, size_t length, bool bytes) {
    static const char *const units[] = {"", "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const size_t digits = strspn(text, "0123456789"), left = digits < length ? length - digits : 0;
    errno = 0;
    const uint64_t number = strtoull(text, NULL, 10);
    if (digits == 0 || errno != 0) return false;
    for (size_t i = 0; i < (bytes ? sizeof units / sizeof units[0] : 1); i++)
        if (strlen(units[i]) == left && memcmp(units[i], text + digits, left) == 0)
            return number <= UINT64_MAX >> (i > 1 ? 10 * (i - 1) : 0);
    return false;
}

/* Writes each WORD=N of text, the words those of use.def, with a space before it. NULL: one is wrong or there twice, or there is no
 * room. */
static const char *write_limits(const char *text, char *out, size_t room) {
    static const char *const words[] = {
#define CR_USE(name) #name "=",
#include "proto/use.def"
#undef CR_USE
    };
    size_t used = 0;
    uint32_t seen = 0; /* a bit for each word */
    *out = '\0';
    for (; text != NULL; text = text[strcspn(text, ",")] == ',' ? text + strcspn(text, ",") + 1 : NULL) {
        const size_t length = strcspn(text, ",");
        size_t i = 0, word = 0;
        while (i < sizeof words / sizeof words[0] && strncmp(words[i], text, strlen(words[i])) != 0) i++;
        if (i < sizeof words / sizeof words[0]) word = strlen(words[i]);
        if (word == 0 || (seen >> i & 1) != 0 ||
            !is_amount(text + word, length - word, strstr(words[i], "bytes") != NULL))
            return NULL;
        seen |= 1u << i;
        const int n = snprintf(out + used, room - used, " %.*s", (int)length, text);
        if (n < 0 || (size_t)n >= room - used) return NULL;
        used += (size_t)n;
    }
    return out;
}

/* Into a file that nobody else can read. One that is there is left alone, because others may have it open. */
static int write_token(const char *path, const char *token) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return cli_fail(EXIT_IO, "token: cannot create %s: %s", path, strerror(errno));
    const bool written = dprintf(fd, "%s\n", token) > 0;
    if (close(fd) == 0 && written) return EXIT_OK;
    unlink(path);
    return cli_fail(EXIT_IO, "token: cannot write to %s", path);
}

/* With --output standard output has the line alone, as the daemon's file takes it. */
static int print_token(const cli_options *o, const char *token, const char *line) {
    const int code = o->output != NULL ? write_token(o->output, token) : EXIT_OK;
    if (code != EXIT_OK) return code;
    if (o->json) /* neither has a character that JSON escapes */
        printf("{\"token\":\"%s\",\"line\":\"%s\"}\n", token, line);
    else if (o->output != NULL)
        puts(line);
    else
        printf("token (for the client, in a file of mode 0600): %s\nline (for the daemon's file of --principals): %s\n",
               token, line);
    return cli_flush();
}

int cmd_token(const cli_options *o) {
    unsigned char *(*sha256)(const unsigned char *, size_t, unsigned char *);
    uint8_t both[SALT_BYTES + SECRET_BYTES], hash[HASH_BYTES];
    char salt[2 * SALT_BYTES + 1], secret[2 * SECRET_BYTES + 1], hashed[2 * HASH_BYTES + 1];
    if (!is_name(o->file))
        return cli_fail(EXIT_USAGE, "token: '%.40s' is no name: 1 to 32 letters, digits, '-' or '_'", o->file);
    char until[64], limits[200];
    int code = write_until(o, until, sizeof until);
    if (code != EXIT_OK) return code;
    if (o->may != NULL && !are_rights(o->may))
        return cli_fail(EXIT_USAGE,
                        "token: --may is '%.60s', must be of reduce, regions, info, stats and admin, or nothing",
                        o->may);
    if (write_limits(o->limits, limits, sizeof limits) == NULL)
        return cli_fail(EXIT_USAGE,
                        "token: --limits is '%.60s', must be of calls=, bytes=, state_bytes=, regions=, region_bytes=, "
                        "connections= and descriptors=, each once, with numbers below 2^64, such as calls=8,bytes=1GiB",
                        o->limits);
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    void *function = library != NULL ? dlsym(library, "SHA256") : NULL;
    if (function == NULL) return cli_fail(EXIT_IO, "token: OpenSSL 3 (libcrypto.so.3) cannot be loaded: %s", dlerror());
    memcpy(&sha256, &function, sizeof sha256);
    if (getrandom(both, sizeof both, 0) != sizeof both) return cli_fail(EXIT_IO, "token: there are no random bytes");
    sha256(both, sizeof both, hash);
    hex(both, SALT_BYTES, salt);
    hex(both + SALT_BYTES, SECRET_BYTES, secret);
    hex(hash, sizeof hash, hashed);
    char token[NAME_BYTES + sizeof secret + 1], line[1024];
    snprintf(token, sizeof token, "%s.%s", o->file, secret);
    snprintf(line, sizeof line, "%s %s %s%s%s%s%s", o->file, salt, hashed, until, o->may != NULL ? " may=" : "",
             o->may != NULL ? o->may : "", limits);
    return print_token(o, token, line);
}
