/* cpu: what the files of `cured-bench cpu` share.
 *
 * Thread: any. */
#ifndef CURED_BENCH_CPU_H
#define CURED_BENCH_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/core/dtype.h"

/* A loop that only reads. The list ends with a NULL name; isa is what the loop needs (a name of cr_cpu_select). */
typedef struct cpu_floor {
    const char *name, *isa;
    uint64_t (*run)(const uint8_t *p, size_t n);
} cpu_floor;
const cpu_floor *cpu_floors(void);
/* A read loop that looks up the next pages' translations ahead, as the folds do; not among those above, which are as plain as they
 * come. NULL where the machine cannot run it. */
const cpu_floor *cpu_floor_pages(void);
/* The loop that this machine has and that takes the least time, by three calls of seconds for each. */
const cpu_floor *cpu_floor_best(double (*seconds)(void *context, const cpu_floor *loop), void *context);

/* For --without: switches off a fast way by its name; false: there is none of that name. */
bool cpu_without(void *to, const char *word);

/* Fills data with a distribution: a block of random values, repeated. */
typedef enum cpu_data { DATA_NORMAL, DATA_ORDERS20, DATA_BITS, DATA_DENORMAL, DATA_NANS, DATA_COUNT } cpu_data;
const char *cpu_data_name(cpu_data which);
void cpu_fill(uint8_t *data, size_t bytes, cr_dtype dtype, cpu_data which);

#endif
