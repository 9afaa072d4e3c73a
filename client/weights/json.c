/* json: a cursor over the text. What goes wrong is kept as a few words in j->why; from then on every function fails.
 *
 * Thread: one. */
#include "client/weights/json.h"

#include <stdlib.h>
#include <string.h>

void weights_json_begin(weights_json *j, const char *text, size_t bytes) {
    *j = (weights_json){.begin = text, .p = text, .end = text + bytes};
}

void weights_json_free(weights_json *j) {
    free(j->text);
    j->text = NULL;
}

size_t weights_json_at(const weights_json *j) { return (size_t)(j->p - j->begin); }

static bool fail(weights_json *j, const char *why) {
    if (j->why == NULL) j->why = why;
    return false;
}

static void skip_space(weights_json *j) {
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r')) j->p++;
}

bool weights_json_take(weights_json *j, char ch) {
    skip_space(j);
    if (j->why != NULL || j->p == j->end || *j->p != ch) return false;
    j->p++;
    return true;
}

bool weights_json_ended(weights_json *j) {
    skip_space(j);
    return j->why == NULL && (j->p == j->end || fail(j, "something follows it"));
}

size_t weights_utf8_bytes(const char *text, size_t left) {
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) return p[0] != 0;
    const size_t n = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                     : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                     : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                   : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;  /* longer than need be */
    if (p[0] == 0xed && p[1] >= 0xa0) return 0; /* half of a pair */
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    return p[0] == 0xf4 && p[1] >= 0x90 ? 0 : n;
}

bool weights_is_utf8(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes;) {
        const size_t n = weights_utf8_bytes(text + i, bytes - i);
        if (n == 0) return false;
        i += n;
    }
    return true;
}

/* Room for four more bytes and the NUL. */
static bool grow(weights_json *j) {
    if (j->length + 5 <= j->room) return true;
    const size_t room = j->room < 128 ? 256 : 2 * j->room;
    char *text = realloc(j->text, room);
    if (text == NULL) return fail(j, "there is no memory for it");
    j->text = text;
    j->room = room;
    return true;
}

static bool hex4(weights_json *j, uint32_t *out) {
    *out = 0;
    if (j->end - j->p < 4) return fail(j, "an escape is cut");
    for (int i = 0; i < 4; i++, j->p++) {
        const char c = *j->p;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return fail(j, "an escape is no hexadecimal number");
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static void put(weights_json *j, uint32_t code) {
    char *out = j->text + j->length;
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[n] | code);
    j->length += n;
}

/* What stands behind a backslash. */
static bool escape(weights_json *j) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    if (j->p == j->end) return fail(j, "an escape is cut");
    const char c = *j->p++;
    const char *at = c != '\0' ? strchr(from, c) : NULL;
    if (at != NULL) {
        put(j, (uint8_t)to[at - from]);
        return true;
    }
    if (c != 'u') return fail(j, "an escape is unknown");
    if (!hex4(j, &code)) return false;
    if (code == 0) return fail(j, "a string holds a NUL");
    if (code >= 0xdc00 && code < 0xe000) return fail(j, "an escape is half of a pair");
    if (code >= 0xd800 && code < 0xdc00) {
        if (j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u') return fail(j, "an escape is half of a pair");
        j->p += 2;
        if (!hex4(j, &low)) return false;
        if (low < 0xdc00 || low >= 0xe000) return fail(j, "an escape is half of a pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put(j, code);
    return true;
}

bool weights_json_string(weights_json *j) {
    if (!weights_json_take(j, '"')) return fail(j, "a string is missing");
    j->length = 0;
    while (j->p < j->end && *j->p != '"') {
        if (!grow(j)) return false;
        if ((uint8_t)*j->p < ' ') return fail(j, "a string holds a control character");
        if (*j->p == '\\') {
            j->p++;
            if (!escape(j)) return false;
            continue;
        }
        const size_t n = weights_utf8_bytes(j->p, (size_t)(j->end - j->p));
        if (n == 0) return fail(j, "a string is not UTF-8");
        memcpy(j->text + j->length, j->p, n);
        j->length += n;
        j->p += n;
    }
    if (j->p == j->end) return fail(j, "a string does not end");
    j->p++;
    if (!grow(j)) return false;
    j->text[j->length] = '\0';
    return true;
}

bool weights_json_number(weights_json *j, uint64_t *out) {
    skip_space(j);
    const char *start = j->p;
    *out = 0;
    if (j->why != NULL) return false;
    for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++) {
        const unsigned digit = (unsigned)(*j->p - '0');
        if (*out > (UINT64_MAX - digit) / 10) return fail(j, "a number is above 2^64 - 1");
        *out = *out * 10 + digit;
    }
    const bool more = j->p < j->end && (*j->p == '.' || *j->p == 'e' || *j->p == 'E');
    if (j->p == start || more) return fail(j, "a number is not a whole number from 0 on");
    return (*start != '0' || j->p == start + 1) || fail(j, "a number begins with 0");
}

static bool next(weights_json *j, bool first, char close, bool *more) {
    *more = false;
    if (j->why != NULL) return false;
    if (weights_json_take(j, close)) return true;
    if (!first && !weights_json_take(j, ',')) return fail(j, "a comma is missing");
    *more = true;
    return true;
}

bool weights_json_element(weights_json *j, bool first, bool *more) { return next(j, first, ']', more); }

bool weights_json_key(weights_json *j, bool first, bool *more) {
    if (!next(j, first, '}', more)) return false;
    if (!*more) return true;
    if (!weights_json_string(j)) return false;
    return weights_json_take(j, ':') || fail(j, "a colon is missing");
}

static bool word(weights_json *j) {
    const char *start = j->p;
    while (j->p < j->end && *j->p != '\0' && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *j->p) != NULL) j->p++;
    return j->p != start || fail(j, "a value is missing");
}

/* Strings are read into j->text, too. */
static bool skip(weights_json *j, unsigned depth) {
    bool more = true, good = true;
    skip_space(j);
    if (j->why != NULL || j->p == j->end) return fail(j, "a value is missing");
    const bool object = *j->p == '{';
    if (*j->p == '"') return weights_json_string(j);
    if (!object && *j->p != '[') return word(j);
    if (depth == WEIGHTS_JSON_DEPTH) return fail(j, "it is more than 32 deep");
    j->p++;
    for (bool first = true; good && more; first = false) {
        good = object ? weights_json_key(j, first, &more) : weights_json_element(j, first, &more);
        if (good && more) good = skip(j, depth + 1);
    }
    return good;
}

bool weights_json_skip(weights_json *j) { return skip(j, 0); }
