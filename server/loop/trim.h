/* trim: gives memory back to Linux after a burst.
 *
 * Calls and connections take memory from malloc, which keeps what they free: 4,000 calls leave some 150 MiB behind. Once no more
 * than a quarter of a peak is left, a files thread trims, because 150 MiB take it 14 ms.
 *
 * Thread: the loop's, but for the trimming. Owner: the loop. */
#ifndef CURED_SERVER_LOOP_TRIM_H
#define CURED_SERVER_LOOP_TRIM_H

#include <stdatomic.h>

#include "server/call/calls.h"

typedef struct cr_trim {
    cr_calls *calls;
    uint64_t peak; /* of calls and connections together, since the last trim */
    cr_timer timer;
    cr_file_task task;
    atomic_bool runs;
} cr_trim;

void cr_trim_init(cr_trim *trim, cr_calls *calls);
/* Each turn. */
void cr_trim_look(cr_trim *trim);

#endif
