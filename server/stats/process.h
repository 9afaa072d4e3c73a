/* process: what Linux says about this process.
 *
 * Thread: any. Owner: nobody; nothing is kept. */
#ifndef CURED_SERVER_STATS_PROCESS_H
#define CURED_SERVER_STATS_PROCESS_H

#include <stdint.h>

typedef struct cr_process_bytes {
    uint64_t resident, virtual;
} cr_process_bytes;

double cr_process_cpu_s(void);
/* Seconds since 1970. */
double cr_process_clock_s(void);
/* Zeroes where /proc does not say. */
cr_process_bytes cr_process_memory(void);
/* Descriptors that are open, about `expected`. 0: Linux is older than 6.2, and counting so many takes too long. */
uint64_t cr_process_open_files(uint64_t expected);
uint64_t cr_process_most_files(void);

#endif
