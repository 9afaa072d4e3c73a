/* decimal_driver: the values of a column of text from standard input, as cured-client reads them: each line of the output has the bits
 * of a double in hexadecimal, and behind a column of integers the integer. What is no column of numbers is a sentence.
 *
 * usage: decimal_driver [KIND] [BYTES] [COLUMN] [DELIMITER] [slowly] [header] [quiet]
 *   KIND either, reals or integers; BYTES at a time; COLUMN a number, a name or 0; DELIMITER a byte or none
 *   quiet: no values
 *
 * Thread: one. Owner: this file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/text.h"

static size_t fill(uint8_t *to, size_t most) {
    const ssize_t n = read(STDIN_FILENO, to, most);
    return n > 0 ? (size_t)n : 0;
}

static void print(const text_values *v, bool quiet) {
    for (size_t i = 0; i < v->count && !quiet; i++) {
        uint64_t bits;
        memcpy(&bits, &v->reals[i], sizeof bits);
        printf("%016" PRIx64, bits);
        if (v->whole) printf(" %" PRId64, v->integers[i]);
        putchar('\n');
    }
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"either", "reals", "integers"};
    text_format f = {.kind = TEXT_EITHER};
    const size_t at_once = argc > 2 ? strtoul(argv[2], NULL, 10) : TEXT_BLOCK_BYTES;
    bool quiet = false;
    for (size_t i = 0; i < 3 && argc > 1; i++)
        if (strcmp(argv[1], kinds[i]) == 0) f.kind = (text_kind)i;
    if (argc > 3) f.column = strtoul(argv[3], NULL, 10);
    if (argc > 3 && f.column == 0 && strcmp(argv[3], "0") != 0) f.name = argv[3];
    if (argc > 4 && strcmp(argv[4], "none") != 0) f.delimiter = (uint8_t)argv[4][0];
    for (int i = 5; i < argc; i++) {
        f.slowly |= strcmp(argv[i], "slowly") == 0;
        f.header |= strcmp(argv[i], "header") == 0;
        quiet |= strcmp(argv[i], "quiet") == 0;
    }
    text *t = text_begin(&f);
    if (t == NULL) return 2;
    cured_error error;
    cured_status status = CURED_OK;
    size_t n = 1;
    bool whole = false;
    while (n != 0 && status == CURED_OK) {
        text_values values;
        size_t most;
        uint8_t *to = text_room(t, &most);
        n = fill(to, most < at_once ? most : at_once);
        status = text_take(t, n, &values, &error);
        print(&values, quiet);
        whole = values.whole;
    }
    puts(status != CURED_OK ? error.text : whole ? "whole" : "reals");
    text_end(t);
    return 0;
}
