/* format: tells files that are no arrays by their first bytes. Their bytes summed as floats would be a number that means
 * nothing.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_CLIENT_CLI_FORMAT_H
#define CURED_CLIENT_CLI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FORMAT_BYTES = 512,   /* as many of the first bytes are looked at, if there are so many */
    NUMBERS_BYTES = 4096, /* and as many where they read as numbers */
};

typedef struct format {
    const char *what;    /* "a ZIP archive" */
    const char *endings; /* of names that promise it: ".zip.npz." */
    const char *advice;  /* what to do instead */
} format;

/* The format that in[0 … len) begins; NULL: the bytes can be elements. by_name: the user says that they are elements, so a
 * format counts only if the file's name promises it too. name: NULL for none. */
const format *format_find(const uint8_t *in, size_t len, const char *name, bool by_name);

/* Whether in[0 … len), the first bytes, are numbers written out: digits, signs, points, exponents and what stands between them.
 * whole: that is all that is looked at, and a line and a digit must be there. No floats and hardly any integers look so. */
bool format_numbers(const uint8_t *in, size_t len, bool whole);

/* What text is, and what to do about it. */
const format *format_text(void);

bool format_ends_with(const char *name, const char *tail);

#endif
