/* json: reads JSON value by value, without a tree: a header of 100 MB takes no more memory than its longest string. Numbers stay
 * exact integers, and whoever reads knows which field it is.
 *
 * Thread: one. Owner: the reader owns the string it has read last; the text is the caller's. Not trusted. */
#ifndef CURED_CLIENT_WEIGHTS_JSON_H
#define CURED_CLIENT_WEIGHTS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIGHTS_JSON_DEPTH = 32 };

typedef struct weights_json {
    const char *begin, *p, *end;
    char *text; /* the string read last, valid UTF-8 without a NUL inside; NULL at first */
    size_t length, room;
    const char *why; /* what was wrong, for a sentence; NULL: nothing */
} weights_json;

void weights_json_begin(weights_json *j, const char *text, size_t bytes);
void weights_json_free(weights_json *j);
/* Takes ch, behind white space, if it comes next. */
bool weights_json_take(weights_json *j, char ch);
/* Of an object: its next key, and the colon, go to j->text; *more is false at its end. first: none was read yet. */
bool weights_json_key(weights_json *j, bool first, bool *more);
/* Of an array: whether another element comes. */
bool weights_json_element(weights_json *j, bool first, bool *more);
bool weights_json_string(weights_json *j);
/* A whole number from 0 to 2^64 - 1. */
bool weights_json_number(weights_json *j, uint64_t *out);
/* Any value, at most WEIGHTS_JSON_DEPTH deep. */
bool weights_json_skip(weights_json *j);
/* Whether nothing but white space is left. */
bool weights_json_ended(weights_json *j);
/* Bytes before the place where it stopped. */
size_t weights_json_at(const weights_json *j);
/* Bytes of the UTF-8 character that text begins with, of so many that are left; 0: it is none, or a NUL. */
size_t weights_utf8_bytes(const char *text, size_t left);
/* Whether bytes are UTF-8 without a NUL. */
bool weights_is_utf8(const char *text, size_t bytes);

#endif
