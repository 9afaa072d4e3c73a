/* bench: what the benchmarks share: clock, medians, pinning, the machine's name, and the table of results.
 *
 * Thread: the main thread, but for bench_now and bench_pin. Owner: the caller owns its rows. */
#ifndef CURED_BENCH_BENCH_H
#define CURED_BENCH_BENCH_H

#include <stddef.h>
#include <stdio.h>

/* Subcommands. */
#define BENCH_COMMAND(name, function, what) int function(int argc, char **argv);
#include "bench/commands.def"
#undef BENCH_COMMAND

enum { BENCH_MAX_THREADS = 256 };

/* Seconds on a clock that only goes forward. */
double bench_now(void);
/* Pins the calling thread to one core; 0 on success. */
int bench_pin(int core);
/* Cores this process may run on; at most BENCH_MAX_THREADS. */
int bench_cores(void);
/* Runs work(argument, 0 … threads - 1) at once, each on a core of its own; the seconds from the start of all to the end of the last.
 * Ends the process where a thread cannot be started. At most BENCH_MAX_THREADS. */
double bench_together(int threads, void (*work)(void *argument, int id), void *argument);
/* Sorts x; the middle one. */
double bench_median(double *x, size_t n);
/* "AMD EPYC …, 2 cores, Linux 6.1": into text. */
void bench_machine(char *text, size_t cap);
/* Where the program of that name lies that was built beside this one; for the program's life. */
const char *bench_beside(const char *name);
/* The command line, as it could be typed again. */
void bench_command(int argc, char **argv, char *text, size_t cap);
/* A JSON string, quoted and escaped. */
void bench_json_string(FILE *out, const char *text);

#endif
