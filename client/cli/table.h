/* table: rows in columns, as --output table and weights print them: words on the left of their column, numbers on the right. On a terminal
 * that is too narrow for its columns a table becomes a block of lines for each row.
 *
 * Thread: one. Owner: the caller owns the cells; cli_rows owns copies. */
#ifndef CURED_CLIENT_CLI_TABLE_H
#define CURED_CLIENT_CLI_TABLE_H

#include "client/cli/cli.h"

enum { CLI_TABLE_COLUMNS = CURED_MAX_OPS + CLI_MAX_DIMS + 1 };

typedef struct cli_table {
    size_t columns;                                               /* CLI_TABLE_COLUMNS at most */
    uint64_t rows;                                                /* with the first, the headings */
    const bool *words;                                            /* a column each: words, not numbers */
    const char *(*cell)(void *user, uint64_t row, size_t column); /* valid until the next */
    void *user;
} cli_table;

/* most: columns of the terminal; 0: any number. Cells are asked for twice. */
void cli_table_print(const cli_table *table, size_t most);
/* Columns of the terminal that standard output is; 0: it is none. */
size_t cli_terminal_columns(void);
/* Columns that a text takes on a terminal, whose letters may be wide. */
size_t cli_text_columns(const char *text);

/* A table that is gathered row by row, and printed at its end: errors do not tear it. */
typedef struct cli_rows {
    char **cells; /* owned, row after row */
    size_t columns, count, room;
} cli_rows;

/* The next cell of the rows; a first row has the headings. EXIT_OK, or EXIT_IO after its sentence. */
int cli_rows_add(cli_rows *rows, const char *cell);
/* A row of which nothing is known but its name. */
int cli_rows_lack(cli_rows *rows, const char *name);
/* Prints the table, whose first column is words, and frees the cells. */
void cli_rows_end(cli_rows *rows);

/* Text with what a terminal would take for commands written out, "\x1b": at most so many bytes. */
enum { CLI_NAME_BYTES = 1024 };
const char *cli_printable(const char *name, char out[CLI_NAME_BYTES]);

#endif
