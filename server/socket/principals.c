/* principals: see principals.h. Thread: any. Owner: the caller. */
#include "server/socket/principals.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text_file.h"
#include "base/units.h"
#include "server/socket/ids.h"
#include "server/socket/tokens.h"

enum { MOST_LINES = 4096, LINE_BYTES = 510, FILE_BYTES = 4 << 20 };

#define SPACES " \t\r\n"

typedef struct reader {
    cr_principals *to;
    const char *path;
    uint32_t line;
    cr_error *error;
} reader;

/* False. */
__attribute__((format(printf, 2, 3))) static bool wrong(reader *r, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cr_fail(r->error, CR_INVALID_ARGUMENT, "principals: %.200s, line %u: %s", r->path, r->line, text);
    return false;
}

/* ---- words ---- */

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
    if (back.tm_mon != wanted.tm_mon || back.tm_mday != wanted.tm_mday || back.tm_hour != wanted.tm_hour ||
        back.tm_min != wanted.tm_min || back.tm_sec != wanted.tm_sec)
        return false; /* there is no 31st of June, and no 13th month */
    *until_s = (int64_t)seconds + (day ? 86400 : 0);
    return true;
}

static bool read_may(char *text, uint8_t *may) {
    static const char *const words[] = {
#define CR_MAY(name, what) #name,
#include "proto/may.def"
#undef CR_MAY
    };
    *may = CR_MAY_nothing;
    if (strcmp(text, "nothing") == 0) return true;
    for (char *rest, *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned i = 0;
        while (i < CR_MAYS && strcmp(words[i], word) != 0) i++;
        if (i == CR_MAYS) return false;
        *may |= (uint8_t)(1 << i);
    }
    return *may;
}

/* One of proto/use.def. */
static bool read_limit(reader *r, cr_principal *to, const char *name, const char *value) {
    unsigned use = 0;
    while (use < CR_USES && strcmp(cr_use_names[use], name) != 0) use++;
    if (use == CR_USES)
        return wrong(r,
                     "%.40s= is no word: until=, may=, and calls=, bytes=, state_bytes=, regions=, region_bytes=, "
                     "connections= and descriptors= are",
                     name);
    const char *should = cr_units_parse(strstr(name, "bytes") ? CR_UNIT_BYTES : CR_UNIT_COUNT, value, &to->most[use]);
    return !should || wrong(r, "%s= must be %s", name, should);
}

/* The rest of a line, of which strtok_r has had the first words. */
static bool read_words(reader *r, cr_principal *to, char **rest) {
    const char *seen[2 + CR_USES];
    unsigned count = 0;
    for (char *word; (word = strtok_r(NULL, SPACES, rest));) {
        char *value = strchr(word, '=');
        if (!value) return wrong(r, "\"%.40s\" has no '=': until=, may= and limits may stand there", word);
        *value++ = '\0';
        for (unsigned i = 0; i < count; i++)
            if (strcmp(seen[i], word) == 0) return wrong(r, "%s= stands in it twice", word);
        if (strcmp(word, "until") == 0) {
            if (!read_until(value, &to->until_s))
                return wrong(r,
                             "until= must be a day or a time of it in UTC, such as 2026-12-31 or 2026-12-31T12:00:00Z");
        } else if (strcmp(word, "may") == 0) {
            if (!read_may(value, &to->may))
                return wrong(r,
                             "may= must be of reduce, regions, info, stats and admin, with commas between, or nothing");
        } else if (!read_limit(r, to, word, value)) {
            return false;
        }
        seen[count++] = word;
    }
    return true;
}

/* ---- names ---- */

static cr_principal *add(reader *r, cr_known_by by, const char *name) {
    if (r->to->by_name.count == MOST_LINES) {
        wrong(r, "it may have %d lines at most", MOST_LINES);
        return NULL;
    }
    cr_principal *line = cr_principals_add(r->to, by, name);
    if (line)
        line->line = r->line;
    else
        wrong(r, cr_principals_find(r->to, name) ? "its name stands in it twice" : "there is no memory for it");
    return line;
}

/* Of a kind and "=": to is the name under which a client is found. */
static bool read_known(reader *r, cr_known_by by, const char *name, char *to, size_t room) {
    uint32_t id;
    const bool all = strcmp(name, "*") == 0, any = by == CR_KNOWN_certificate || by == CR_KNOWN_address;
    const bool group = by == CR_KNOWN_group;
    const char *kind = cr_known_words[by];
    if (any && !all) return wrong(r, "%s must have a '*' behind it", kind);
    if (all && !any && by != CR_KNOWN_user)
        return wrong(r, "%s must name one; certificate=*, user=* and address=* are for all", kind);
    if (!*name || (size_t)snprintf(to, room, "%s%s", kind, name) >= room)
        return wrong(r, "%s must have a name behind it, and both may have %zu bytes", kind, room - 1);
    if (by == CR_KNOWN_DNS)
        for (char *c = to + strlen(kind); *c; c++) *c = (char)tolower((unsigned char)*c);
    if ((by != CR_KNOWN_user && !group) || all) return true;
    if (!cr_ids_look_up(name, group, &id))
        return wrong(r, "this machine knows no %s \"%.40s\"", group ? "group" : "user", name);
    snprintf(to, room, "%s%u", kind, id);
    return true;
}

static cr_known_by kind_of(const char *text) {
    for (unsigned by = 1; by < CR_KNOWNS; by++)
        if (strncmp(text, cr_known_words[by], strlen(cr_known_words[by])) == 0) return (cr_known_by)by;
    return CR_KNOWN_token;
}

static bool is_token_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t length = strlen(text);
    return length >= 1 && length <= CR_TOKEN_NAME_BYTES && strspn(text, letters) == length;
}

static cr_principal *read_token(reader *r, const char *name, char **rest) {
    const char *salt = strtok_r(NULL, SPACES, rest), *hash = salt ? strtok_r(NULL, SPACES, rest) : NULL;
    if (!is_token_name(name)) {
        wrong(r,
              "NAME must be 1 to 32 letters, digits, '-' or '_', or begin with CN=, DNS=, URI=, certificate=, "
              "user=, group= or address=");
        return NULL;
    }
    if (!hash) {
        wrong(r, "it must be NAME SALT HASH");
        return NULL;
    }
    cr_principal *line = add(r, CR_KNOWN_token, name);
    if (!line) return NULL;
    if (cr_token_hex(salt, strlen(salt), CR_SALT_BYTES, line->salt)) {
        if (cr_token_hex(hash, strlen(hash), CR_HASH_BYTES, line->hash)) return line;
        wrong(r, "HASH must be 64 hex digits");
    } else {
        wrong(r, "SALT must be 32 hex digits");
    }
    return NULL;
}

static bool read_line(reader *r, char *text) {
    char known[CR_NAME_MAX_BYTES + 1], *rest, *name;
    text += strspn(text, SPACES);
    if (*text == '"') {
        name = text + 1;
        char *end = strchr(name, '"');
        if (!end || !strchr(SPACES, end[1]) || kind_of(name) == CR_KNOWN_token)
            return wrong(r, "quotes must hold CN=, DNS= or URI= and what is behind it, and end before a space");
        *end = '\0';
        rest = end + 1;
    } else {
        name = strtok_r(text, SPACES, &rest);
        if (!name || *name == '#') return true;
    }
    const cr_known_by by = kind_of(name);
    cr_principal *line = NULL;
    if (by == CR_KNOWN_token)
        line = read_token(r, name, &rest);
    else if (read_known(r, by, name + strlen(cr_known_words[by]), known, sizeof known))
        line = add(r, by, known);
    return line && read_words(r, line, &rest);
}

/* Each line of the text, which is cut into words. */
static bool read_lines(reader *r, char *text, size_t length) {
    for (char *end = text + length, *line = text; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end; /* the NUL behind the text */
        *stop = '\0';
        r->line++;
        if (memchr(line, '\0', (size_t)(stop - line))) return wrong(r, "it holds a NUL byte");
        if (stop - line > LINE_BYTES) return wrong(r, "it is longer than %d bytes", LINE_BYTES);
        if (!read_line(r, line)) return false;
        line = stop + 1;
    }
    return true;
}

cr_status cr_principals_read(const char *path, cr_principals *principals, cr_error *error) {
    char shown[256], *text;
    size_t length;
    struct stat st;
    snprintf(shown, sizeof shown, "principals: %.200s", path);
    const cr_status status = cr_text_file_read(path, shown, FILE_BYTES, &st, &text, &length, error);
    if (status == CR_NOT_FOUND) error->code = CR_INVALID_ARGUMENT;
    if (status) return error->code;
    reader r = {.to = principals, .path = path, .error = error};
    bool good = !(st.st_mode & (S_IWGRP | S_IWOTH));
    if (!good)
        cr_fail(error, CR_INVALID_ARGUMENT, "%s: only its owner may be able to write it (chmod go-w)", shown);
    else
        good = read_lines(&r, text, length);
    free(text);
    principals->given = true;
    return good ? CR_OK : CR_INVALID_ARGUMENT;
}
