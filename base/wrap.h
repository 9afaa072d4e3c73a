/* wrap: texts of --help, in lines of at most 80 columns.
 *
 * Thread: any. Owner: the caller owns the stream and the text. */
#ifndef CURED_BASE_WRAP_H
#define CURED_BASE_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CR_WRAP_COLUMNS = 80 };

/* Writes the words of text, the first at `column` of the line that was begun, and ends the line. Further lines begin at `indent`. */
static inline void cr_wrap(FILE *out, const char *text, size_t column, size_t indent) {
    for (bool first = true; *text != '\0'; first = false) {
        const size_t length = strcspn(text, " ");
        if (!first && column + 1 + length > CR_WRAP_COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += length;
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

#endif
