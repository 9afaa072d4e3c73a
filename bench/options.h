/* options: one table of options for each subcommand of cured-bench; it is read, bounded and shown by --help from here.
 *
 * Thread: main. Owner: the caller owns the table and what its rows point to. */
#ifndef CURED_BENCH_OPTIONS_H
#define CURED_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bench_kind {
    BENCH_BYTES,  /* uint64_t: "64", "4K", "16M", "1.5G"; a multiple of `step` is kept */
    BENCH_NUMBER, /* int */
    BENCH_REAL,   /* double */
    BENCH_TEXT,   /* const char *, which points into argv */
    BENCH_SWITCH, /* bool: the option has no value */
    BENCH_WORDS,  /* each(to, word) for every word between commas; false: the word is not known */
} bench_kind;

typedef struct bench_option {
    const char *name;
    bench_kind kind;
    void *to;
    const char *value;  /* what --help calls the value */
    const char *what;   /* one line of --help */
    double least, most; /* of BYTES, NUMBER and REAL; both 0: no bounds */
    size_t step;
    bool (*each)(void *to, const char *word);
} bench_option;

/* The option of every bench that writes JSON. */
#define BENCH_JSON(path) \
    { "json", BENCH_TEXT, (path), "FILE", .what = "writes the figures to FILE" }

/* The option that switches off fast ways by their names; bench_without: false: there is none of that name (without.c). */
#define BENCH_WITHOUT(example)                                                                                       \
    {                                                                                                                \
        "without", BENCH_WORDS, NULL, "WAYS", .what = "leaves out fast ways (kernels/core/fast.def), e.g. " example, \
                                              .each = bench_without                                                  \
    }
bool bench_without(void *to, const char *word);

/* "64", "4K", "16M", "1.5G" as bytes; 0: the text is none of these. */
uint64_t bench_bytes(const char *text);

/* Reads argv[1 …] by the table. -1: all is set, the caller goes on. Otherwise the status to end with: 0 after --help, 64
 * after a sentence about what is wrong. `last` is printed under the options by --help; NULL: nothing. */
int bench_options(const bench_option *options, size_t count, const char *last, int argc, char **argv);

#endif
