/* rows: what every bench does with its rows. The contestants of a race take turns, round by round, and what they took becomes
 * medians, spreads and ratios. A table prints rows of cells as text, and writes them as JSON, from one list.
 *
 * cured-bench load does not race, because it looks at the latency of calls under a load and not at rounds of one contestant; peer
 * measures what its standard input asks for.
 *
 * Thread: main. Owner: the caller owns races and tables. */
#ifndef CURED_BENCH_ROWS_H
#define CURED_BENCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { BENCH_ROUNDS_MOST = 4096 };

/* A figure of a contestant, by its number; negative: it failed, and has said so. */
typedef double (*bench_measure)(void *context, int which);

typedef struct bench_race {
    int count, rounds, warm; /* contestants; rounds that count; rounds before those */
    bool swap;               /* every other round begins at the other end */
    bench_measure measure;
    void *context;
    double *figures; /* of each contestant all rounds; bench_race_run makes it */
} bench_race;

typedef struct bench_spread {
    double median, least, most, tenth, ninetieth; /* tenth: one of ten is less */
} bench_spread;

/* False: a contestant failed. bench_race_end frees the figures either way. */
bool bench_race_run(bench_race *race);
void bench_race_end(bench_race *race);
/* The figures of a contestant, and how those of `over` stand to those of `under`, round by round. */
bench_spread bench_race_of(const bench_race *race, int which);
bench_spread bench_race_ratio(const bench_race *race, int over, int under);
/* The contestant with the least median, among the first `count`. */
int bench_race_best(const bench_race *race, int count);
bench_spread bench_spread_of(const double *values, size_t n);
/* The median of so many measurements in a row, after one that does not count; negative: one failed. */
double bench_repeat(int calls, bench_measure measure, void *context, int which);

/* Whether a row of that name is asked for: --only; NULL: all are. */
bool bench_wanted(const char *only, const char *name);

/* A cell of a row: of the text where it has a head, of the JSON where it has a key. Without text it is the number; NAN: there is none. */
typedef struct bench_cell {
    const char *key, *head;
    int width, decimals; /* width: negative: to the left */
    double number;
    const char *text;
    bool truth; /* the number is 0 or 1: false or true in the JSON */
} bench_cell;

typedef struct bench_table {
    const char *path; /* of the JSON; NULL: none */
    FILE *json;
    bool headed, more; /* whether the head stands above the next row, and a row before it in the JSON */
} bench_table;

/* Prints the machine, what else is known of it (NULL: nothing), and the command; begins the JSON with these and the cells. 0, or the
 * status to end with, after a sentence. */
int bench_table_open(bench_table *table, int argc, char **argv, const char *more, const bench_cell *cells,
                     size_t count);
void bench_table_row(bench_table *table, const bench_cell *cells, size_t count);
/* The same as text alone, and in the JSON alone. */
void bench_table_text(bench_table *table, const bench_cell *cells, size_t count);
void bench_table_note(bench_table *table, const bench_cell *cells, size_t count);
/* Ends the JSON with the cells. False: it could not be written, which was said. */
bool bench_table_close(bench_table *table, const bench_cell *cells, size_t count);

#define BENCH_CELLS(...) \
    (const bench_cell[]){__VA_ARGS__}, sizeof((const bench_cell[]){__VA_ARGS__}) / sizeof(bench_cell)
#define CELL_TEXT(key, head, width, text) \
    { (key), (head), (width), 0, 0, (text), false }
#define CELL_FIGURE(key, head, width, decimals, number) \
    { (key), (head), (width), (decimals), (double)(number), NULL, false }
/* Of the JSON alone. */
#define CELL_NOTE(key, number) CELL_FIGURE(key, NULL, 0, 0, number)
#define CELL_TRUTH(key, truth) \
    { (key), NULL, 0, 0, (truth), NULL, true }
/* A median and its spread. */
#define CELL_SPREAD(key, head, width, decimals, s)                                                        \
    CELL_FIGURE(key, head, width, decimals, (s).median), CELL_FIGURE(key "_low", "low", 7, 2, (s).least), \
        CELL_FIGURE(key "_high", "high", 7, 2, (s).most)

#endif
