/* lane_cpu_rates: how fast the CPU is, measured at start. Where a GPU is there, rules compare it with the CPU by these.
 *
 * Thread: main's, which waits for threads of its own. Owner: nobody. */
#ifndef CURED_ENGINE_LANE_CPU_RATES_H
#define CURED_ENGINE_LANE_CPU_RATES_H

#include "engine/lane.h"

/* Bytes a second of an f32 sum on hot memory, from the best of a few folds of 1 MiB: well under a millisecond. */
double cr_cpu_rate_hot(void);
/* Bytes a second of all workers folding at once, from memory; 0 when it cannot be found. A few milliseconds. */
double cr_cpu_rate_all(const cr_lane_options *options);
/* The same of shared memory that the workers read themselves. */
double cr_cpu_rate_shared(const cr_lane_options *options);
/* Bytes a second of shared memory that the threads of one feed read into slabs. */
double cr_cpu_rate_slabs(const cr_lane_options *options);

#endif
