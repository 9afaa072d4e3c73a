/* text: writes text into a buffer that may be too small.
 *
 * Thread: any. Owner: the caller's buffer. */
#ifndef CURED_PROTO_TEXT_H
#define CURED_PROTO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cr_text {
    char *at;
    size_t cap, used; /* cap: at least 1, for the NUL behind what is used */
    bool full;        /* something was cut */
} cr_text;

/* Appends as much as fits. */
void cr_text_put(cr_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
