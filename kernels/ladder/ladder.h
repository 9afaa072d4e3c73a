/* ladder: the teaching kernels, each by its name. A kernel of the ladder runs alone over a whole array in device memory, in the
 * order and precision that it teaches, and never writes to the array.
 *
 * Integers (sum, prod), min, max, any, all and count_nonzero are exact: the values that docs/NUMERICS.md wants. Sums and
 * products of floats are not (exact false): f16 and f32 are added as f32, f64 as f64.
 *
 * cr_ladder_count … cr_ladder_check are plain C in every build; the rest is there where CUDA is.
 * Thread: one for a space. Owner: the caller, on the device that was current when the space was opened. */
#ifndef CURED_KERNELS_LADDER_LADDER_H
#define CURED_KERNELS_LADDER_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/partial.h"

typedef struct cr_ladder_row {
    const char *name, *what;
} cr_ladder_row;

uint32_t cr_ladder_count(void);
/* Rows 0 … cr_ladder_count() - 1; NULL beyond. */
const cr_ladder_row *cr_ladder_at(uint32_t row);
/* cr_ladder_count() for a name that is not in the list. */
uint32_t cr_ladder_find(const char *name);
/* Whether op of dtype can be asked of the kernel: NOT_FOUND for an unknown name, UNIMPLEMENTED for an op or type that the
 * ladder lacks. */
cr_status cr_ladder_check(const char *name, cr_op op, cr_dtype dtype, cr_error *error);
/* Whether op of dtype comes out as docs/NUMERICS.md has it. */
bool cr_ladder_exact(cr_op op, cr_dtype dtype);

/* Scratch memory on the device, pinned memory for what comes back, a stream and an event: kept from run to run. */
typedef struct cr_ladder_space cr_ladder_space;

typedef struct cr_ladder_job {
    const char *name;
    cr_op op;
    cr_dtype dtype;
    const void *data; /* device memory, or pinned host memory; any alignment */
    uint64_t n;
} cr_ladder_job;

cr_status cr_ladder_open(cr_ladder_space **space, cr_error *error);
void cr_ladder_close(cr_ladder_space *space);
/* Runs and waits. stream is a cudaStream_t: what is on it comes first. An op without a value (min of nothing, a product beyond
 * 64 bits) is told in value->error. UNAVAILABLE: the device failed; RESOURCE_EXHAUSTED: no memory. */
cr_status cr_ladder_run(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value, bool *exact,
                        cr_error *error);
/* The three for who is not linked with them. */
typedef struct cr_ladder_functions {
    cr_status (*open)(cr_ladder_space **space, cr_error *error);
    void (*close)(cr_ladder_space *space);
    cr_status (*run)(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value, bool *exact,
                     cr_error *error);
} cr_ladder_functions;

/* For measuring: enqueue alone, without a wait or an allocation, so that a graph can hold it. prepare makes the room for jobs of
 * this kernel, op, type and up to n elements. Only aligned arrays of 1 … 2^31 elements; FAILED_PRECONDITION otherwise, and for
 * kernels whose host takes part (cr_ladder_on_host). The answer stays on the device. */
bool cr_ladder_on_host(const char *name);
cr_status cr_ladder_prepare(cr_ladder_space *space, const cr_ladder_job *job, cr_error *error);
cr_status cr_ladder_enqueue(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_error *error);

#endif
