/* cpu: what `cured-bench cpu` and `cured-bench axis` share: their options, the array, the walk over it, and the read loops.
 *
 * Thread: main, but for the loops and what a walk calls. Owner: the bench owns the array while it runs. */
#ifndef CURED_BENCH_CPU_H
#define CURED_BENCH_CPU_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/rows.h"
#include "kernels/core/dtype.h"

/* A loop that only reads; isa is what it needs (a name of cr_cpu_select). */
typedef struct cpu_floor {
    const char *name, *isa;
    uint64_t (*run)(const uint8_t *p, size_t n);
} cpu_floor;
/* A loop that looks up the next pages' translations ahead, as the folds do; not among those of cpu_floors_here, which are as plain as they
 * come. NULL where the machine cannot run it. */
const cpu_floor *cpu_floor_pages(void);
/* The loop that this machine has and that takes the least time, by three calls of seconds for each. */
const cpu_floor *cpu_floor_best(double (*seconds)(void *context, const cpu_floor *loop), void *context);

/* Fills data with a distribution: a block of random values, repeated. */
typedef enum cpu_data { DATA_NORMAL, DATA_ORDERS20, DATA_BITS, DATA_DENORMAL, DATA_NANS, DATA_COUNT } cpu_data;
const char *cpu_data_name(cpu_data which);
void cpu_fill(uint8_t *data, size_t bytes, cr_dtype dtype, cpu_data which);

/* A walk over an array: workers, one a core, claim pieces of it until none is left. */
typedef struct cpu_walk {
    void (*begin)(void *context, int id); /* of each worker, within the measured time; NULL: nothing */
    void (*fold)(void *context, int id, size_t at, size_t bytes);
    void *context;
    size_t bytes, claim;
    atomic_size_t next;
} cpu_walk;
/* Seconds from the start of all workers to the end of the last. */
double cpu_walk_run(cpu_walk *walk, int threads);
/* The same of a read loop, in claims of CPU_CLAIM. */
enum { CPU_CLAIM = 1 << 20, CPU_FLOORS = 16 };
double cpu_read(const cpu_floor *loop, const uint8_t *data, size_t bytes, int threads);
/* The loops that this machine has; their number. */
int cpu_floors_here(const cpu_floor *loops[CPU_FLOORS]);

typedef struct cpu_settings {
    size_t bytes, claim; /* claim 0: the row's own */
    int threads, rounds; /* threads 0: one, then all */
    const char *only, *isa;
    bench_table table;
} cpu_settings;

typedef struct cpu_row {
    const char *name;
    cr_dtype dtype;
    cpu_data data;
} cpu_row;

/* A bench: rows over one array of random elements. */
typedef struct cpu_bench {
    int rows;
    cpu_row (*row)(int at);
    bool together; /* neighbours of one type and distribution race each other */
    bool claims;   /* --claim */
    /* Measures those rows over the array; how many gave a wrong answer. */
    int (*run)(cpu_settings *s, const uint8_t *data, int threads, const int *rows, int count);
} cpu_bench;
/* The status to end with. */
int cpu_bench_run(const cpu_bench *bench, int argc, char **argv);
/* Whether folds may use that instruction set; else a sentence was printed. */
bool cpu_select(const char *isa);

#endif
