/* merge: the partials of a Merge call, taken from DATA one after the other and added up as they come.
 *
 * Thread: the loop's (a partial takes it a few microseconds). Owner: the call, which frees call->merge. */
#ifndef CURED_SERVER_CALL_MERGE_H
#define CURED_SERVER_CALL_MERGE_H

#include "server/call/call.h"

/* Before the first byte. */
cr_status cr_merge_begin(cr_call *call, cr_error *error);
/* Where the next bytes go; there is always room. */
void cr_merge_room(cr_call *call, uint8_t **at, size_t *room);
/* bytes of that room were filled: adds what is complete. On failure the call must fail. */
cr_status cr_merge_advance(cr_call *call, size_t bytes, cr_error *error);
/* END: answers with the values or the merged partial. On failure nothing was sent. */
cr_status cr_merge_end(cr_call *call, cr_error *error);

#endif
