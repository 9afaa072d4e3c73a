/* text: a column of numbers that are written out, as arrays of double and int64_t, a block at a time. Lines may have any length.
 *
 * A column is whole while all its numbers are integers within int64_t; each is given as a double, too, because a decimal may follow.
 * docs/TEXT.md has the rules.
 *
 * Thread: one at a time. Owner: the caller owns the reader, and the reader the blocks. Errors are sentences that name the line. */
#ifndef CURED_CLIENT_CLI_TEXT_H
#define CURED_CLIENT_CLI_TEXT_H

#include "cured/cured.h"

enum { TEXT_BLOCK_BYTES = 256 * 1024 };

typedef enum text_kind { TEXT_EITHER, TEXT_REALS, TEXT_INTEGERS } text_kind;

typedef struct text_format {
    text_kind kind;    /* TEXT_REALS: never whole; TEXT_INTEGERS: a decimal is an error */
    bool header;       /* the first line that is not blank has names */
    bool slowly;       /* byte by byte, for tests: the same values */
    uint8_t delimiter; /* 0: any white space */
    uint64_t column;   /* from 1; 0: the only one, or that of the name */
    const char *name;  /* with a header; NULL: none */
} text_format;

typedef struct text_values {
    size_t count;
    bool whole; /* the column is until now, so integers has the values, too */
    const double *reals;
    const int64_t *integers;
} text_values;

typedef struct text text;

/* The format's name must outlive the reader. NULL: no memory. */
text *text_begin(const text_format *format);
void text_end(text *t);
/* Where the next bytes go, and how many at most: at least one. */
uint8_t *text_room(text *t, size_t *most);
/* Takes so many bytes that were put there, and gives the values that they complete, which stay until the next call. bytes 0: the text
 * ends. INVALID_ARGUMENT: it is none of numbers; the reader is of no more use then. */
cured_status text_take(text *t, size_t bytes, text_values *values, cured_error *error);

#endif
