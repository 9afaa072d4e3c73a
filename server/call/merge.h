/* merge: partials, taken from a stream one after the other and added up as they come.
 *
 * Thread: the loop's (a partial takes it a few microseconds). Owner: the call. */
#ifndef CURED_SERVER_CALL_MERGE_H
#define CURED_SERVER_CALL_MERGE_H

#include <stdbool.h>

#include "kernels/core/serial.h"

enum { CR_MERGE_LENGTH_BYTES = 4 };

typedef struct cr_merge {
    uint64_t merged;
    uint32_t used, taken; /* bytes of record, which begins with a length; of those, in partials that were added */
    uint8_t record[CR_MERGE_LENGTH_BYTES + CR_SERIAL_MAX_BYTES];
    cr_share sum, next;
} cr_merge;

/* NULL: there is no memory. */
cr_merge *cr_merge_new(void);
/* Where the next bytes go; there is always room. */
void cr_merge_room(cr_merge *merge, uint8_t **at, size_t *room);
/* bytes of that room were filled. cr_merge_step until it brings nothing. */
void cr_merge_filled(cr_merge *merge, size_t bytes);
/* Adds the next partial; *added: whether one was complete. */
cr_status cr_merge_step(cr_merge *merge, bool *added, cr_error *error);
/* At the end: whether there was something, and nothing half. merge may be NULL. */
cr_status cr_merge_check_end(const cr_merge *merge, cr_error *error);

#endif
