/* load: what the files of `cured-bench load` share: the mix of calls, latencies, and the figures of one row.
 *
 * Thread: main, and one thread for each of --threads, which has its own connections and figures. Owner: load.c owns the mix and
 * the rows. */
#ifndef CURED_BENCH_LOAD_H
#define CURED_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cured/cured.h"

enum {
    LOAD_MIX_MOST = 16,  /* kinds of calls in a mix */
    LOAD_ROWS_MOST = 64, /* rates and concurrencies */
    LOAD_ADDRESSES_MOST = 16,
    LOAD_STATUSES = 17,    /* gRPC's */
    LOAD_CONN_CALLS = 256, /* in flight on one connection: the daemon's default limit */
    LOAD_BITS = 6,         /* of a latency that are kept: 1.6 % of it */
    LOAD_TIMES = (64 - LOAD_BITS) << LOAD_BITS,
};

typedef enum load_input { LOAD_BYTES, LOAD_MEMFD, LOAD_FILE, LOAD_REGION, LOAD_INPUTS } load_input;

/* An op's answer, as this process folds it. */
typedef struct load_expected {
    cured_status status;
    size_t bytes;
    uint8_t value[32];
} load_expected;

/* One kind of call. */
typedef struct load_kind {
    char text[128]; /* as it was asked for */
    cured_dtype dtype;
    size_t op_count;
    cured_op ops[CURED_MAX_OPS];
    load_expected expected[CURED_MAX_OPS];
    uint64_t bytes, weight;
    load_input input;
    cured_array *array;
    int file; /* of LOAD_FILE; else -1 */
} load_kind;

typedef struct load_mix {
    load_kind kinds[LOAD_MIX_MOST];
    size_t count;
    uint64_t weights; /* of all */
} load_mix;

/* How many calls took how long: log-linear, as HdrHistogram has it (hdrhistogram.org). */
typedef struct load_times {
    uint64_t counts[LOAD_TIMES];
    uint64_t count, longest_ns;
} load_times;

/* What one kind of call, or all of them, gave. */
typedef struct load_figures {
    load_times times;         /* of right answers to calls whose intended start was within the row, from there */
    uint64_t answered, bytes; /* right answers that came within the row, and the bytes of their inputs */
    uint64_t wrong, failed[LOAD_STATUSES];
    uint64_t not_begun; /* their time came within the row, and no connection had room for them until it was over */
} load_figures;

typedef struct load_row {
    double rate;              /* calls a second that were meant to begin; 0: closed loop */
    int concurrency;          /* of a closed loop */
    double seconds;           /* of the measurement */
    load_figures all, *kinds; /* kinds: one for each kind of the mix */
} load_row;

typedef struct load_options {
    const char *addresses[LOAD_ADDRESSES_MOST];
    size_t address_count;
    int connections, threads, timeout_ms, retries;
    double seconds, warm_up;
    uint64_t seed;
    bool even; /* starts at equal distances, not at random */
    const char *dir, *json, *plot;
} load_options;

/* load_mix.c. Reads "OPS:DTYPE:BYTES[:INPUT[:WEIGHT]]", and appends it. False: a sentence went to stderr. */
bool load_mix_add(load_mix *mix, const char *text);
/* Makes the arrays and what their answers must be. False: a sentence went to stderr. */
bool load_mix_fill(load_mix *mix, const char *dir, uint64_t seed);
void load_mix_free(load_mix *mix);
const char *load_input_name(load_input input);

/* load_run.c */
typedef struct load_runner load_runner;
/* Connects. NULL: a sentence went to stderr. */
load_runner *load_runner_new(const load_options *options, load_mix *mix);
/* Who answers, by the first connection. */
const char *load_runner_server(const load_runner *runner);
/* Measures row, whose rate or concurrency is set, and fills the rest. False: a sentence went to stderr. */
bool load_runner_measure(load_runner *runner, load_row *row);
void load_runner_free(load_runner *runner);

/* load_report.c */
void load_times_add(load_times *times, uint64_t ns);
/* The latency that so many of all (0 to 1) do not exceed, in ns, at most 1.6 % too large. 0: there is none. */
uint64_t load_times_at(const load_times *times, double part);
uint64_t load_failures(const load_figures *figures);
void load_figures_add(load_figures *to, const load_figures *from);
void load_print_head(void);
void load_print_row(const load_mix *mix, const load_row *row);
/* False: the file cannot be written. */
bool load_write_json(const char *path, const char *machine, const char *command, const char *server,
                     const load_mix *mix, const load_row *rows, size_t count);
bool load_write_plot(const char *path, const char *title, const load_row *rows, size_t count);

#endif
