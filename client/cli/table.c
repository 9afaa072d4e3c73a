/* table: see table.h. Thread, owner: see there. */
#include "client/cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2 }; /* between two columns */

const char *cli_printable(const char *name, char out[CLI_NAME_BYTES]) {
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)name;
    for (; *p != '\0' && n + 12 < CLI_NAME_BYTES; p++) {
        const bool control = *p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
        if (control || *p == '\\')
            n += (size_t)snprintf(out + n, 5, *p == '\\' ? "\\\\" : "\\x%02x", *p);
        else
            out[n++] = (char)*p;
        if (control && *p == 0xc2) n += (size_t)snprintf(out + n, 5, "\\x%02x", *++p);
    }
    strcpy(out + n, *p != '\0' ? "..." : "");
    return out;
}

size_t cli_terminal_columns(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO)) return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

/* Letters that take two columns: those of East Asia, and pictures. Marks that take none are U+0300 to U+036F, and joiners. */
static size_t letter_columns(unsigned letter) {
    static const struct {
        unsigned first, last, columns;
    } ranges[] = {
        {0x0300, 0x036f, 0}, {0x1100, 0x115f, 2}, {0x200b, 0x200f, 0},   {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},   {0xfe30, 0xfe6f, 2},
        {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (letter >= ranges[i].first && letter <= ranges[i].last) return ranges[i].columns;
    return 1;
}

size_t cli_text_columns(const char *text) {
    size_t columns = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        const size_t more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
        unsigned letter = more == 0 ? *p : *p & (0x3fu >> more);
        p++;
        for (size_t i = 0; i < more && (*p & 0xc0) == 0x80; i++) letter = letter << 6 | (*p++ & 0x3fu);
        columns += letter_columns(letter);
    }
    return columns;
}

static void put_blanks(size_t count) {
    while (count-- > 0) putchar(' ');
}

/* Blanks that end a line are left out. */
static void put_columns(const cli_table *t, const size_t *width) {
    for (uint64_t row = 0; row < t->rows && !ferror(stdout); row++) {
        size_t blanks = 0;
        for (size_t i = 0; i < t->columns; i++) {
            const char *text = t->cell(t->user, row, i);
            const size_t takes = cli_text_columns(text);
            const size_t pad = width[i] > takes ? width[i] - takes : 0;
            if (takes != 0) {
                put_blanks(blanks + (t->words[i] ? 0 : pad));
                fputs(text, stdout);
                blanks = t->words[i] ? pad : 0;
            } else {
                blanks += width[i];
            }
            blanks += GAP;
        }
        putchar('\n');
    }
}

/* A line for each cell, under its heading: a block for each row. */
static void put_blocks(const cli_table *t, const size_t *width, size_t most) {
    size_t label = 0, numbers = 0;
    for (size_t i = 0; i < t->columns; i++) {
        const size_t takes = cli_text_columns(t->cell(t->user, 0, i));
        if (takes > label) label = takes;
        if (!t->words[i] && width[i] > numbers) numbers = width[i];
    }
    if (label + GAP + numbers > most) numbers = 0;
    for (uint64_t row = 1; row < t->rows && !ferror(stdout); row++) {
        if (row != 1) putchar('\n');
        for (size_t i = 0; i < t->columns; i++) {
            const char *heading = t->cell(t->user, 0, i);
            const size_t used = cli_text_columns(heading);
            fputs(heading, stdout);
            const char *text = t->cell(t->user, row, i); /* in place of the heading */
            const size_t takes = cli_text_columns(text);
            if (used == 0 && takes == 0) continue;
            if (takes != 0) put_blanks(label - used + GAP + (t->words[i] || numbers < takes ? 0 : numbers - takes));
            puts(text);
        }
    }
}

void cli_table_print(const cli_table *t, size_t most) {
    size_t width[CLI_TABLE_COLUMNS] = {0}, all = 0;
    for (uint64_t row = 0; row < t->rows; row++)
        for (size_t i = 0; i < t->columns; i++) {
            const size_t takes = cli_text_columns(t->cell(t->user, row, i));
            if (takes > width[i]) width[i] = takes;
        }
    for (size_t i = 0; i < t->columns; i++) all += width[i] + (i != 0 ? GAP : 0);
    if (most != 0 && all > most)
        put_blocks(t, width, most);
    else
        put_columns(t, width);
}

int cli_rows_add(cli_rows *rows, const char *cell) {
    if (rows->count == rows->room) {
        const size_t room = 2 * rows->room + 64;
        char **cells = realloc(rows->cells, room * sizeof *cells);
        if (cells == NULL) return cli_fail(EXIT_IO, "out of memory");
        rows->cells = cells;
        rows->room = room;
    }
    char *copy = strdup(cell);
    if (copy == NULL) return cli_fail(EXIT_IO, "out of memory");
    rows->cells[rows->count++] = copy;
    return EXIT_OK;
}

int cli_rows_lack(cli_rows *rows, const char *name) {
    char printable[CLI_NAME_BYTES];
    int code = cli_rows_add(rows, cli_printable(name, printable));
    for (size_t i = 1; i < rows->columns && code == EXIT_OK; i++) code = cli_rows_add(rows, "-");
    return code;
}

static const char *cell_of(void *user, uint64_t row, size_t column) {
    const cli_rows *rows = user;
    return rows->cells[row * rows->columns + column];
}

void cli_rows_end(cli_rows *rows) {
    static const bool words[CLI_TABLE_COLUMNS] = {true};
    const cli_table table = {rows->columns, rows->count / rows->columns, words, cell_of, rows};
    cli_table_print(&table, cli_terminal_columns());
    for (size_t i = 0; i < rows->count; i++) free(rows->cells[i]);
    free(rows->cells);
    *rows = (cli_rows){.columns = rows->columns};
}
