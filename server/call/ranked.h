/* ranked: calls with ops by rank (median, quantile), which read their input several times (kernels/core/quantile.h).
 *
 *   array in DATA          kept as a whole, which counts as state; then read in memory
 *   descriptor, region     each read is a feed of its own, of the same descriptor or region
 *   along an axis          one job: each of its claims is of whole blocks, which are read as often as need be
 *
 *   begun ──► a job for each read ──► read again ──► … ──► answered
 *
 * Thread: the loop's. Owner: its uses: the call, and the job that counts. */
#ifndef CURED_SERVER_CALL_RANKED_H
#define CURED_SERVER_CALL_RANKED_H

#include "kernels/core/quantile.h"
#include "server/call/call.h"

/* Ops by rank are asked for: the call is ready for them from here on. INVALID_ARGUMENT: a parameter is wrong, or of another op. */
cr_status cr_ranked_check(cr_call *call, cr_error *error);
/* The same of the shape of its axis, which is checked by itself before: a block is not too long for one worker. */
cr_status cr_ranked_check_block(const cr_call *call, cr_error *error);
/* The most elements of a segment by offsets, or of an array by key, for the same reason; UINT64_MAX: any number. */
uint64_t cr_ranked_longest(const cr_call *call);
/* What each op of the call asks; NULL: none goes by rank. */
const cr_quantile_item *cr_ranked_items(const cr_call *call);
/* The job counts for the call, or answers along its axis, and holds what it needs of it. */
cr_status cr_ranked_attach(cr_call *call, cr_job *job, cr_error *error);
/* How many reads there are, and how many are over: for progress. 1 and 0 of other calls. */
uint32_t cr_ranked_reads(const cr_call *call, uint32_t *over);

/* Where the next bytes of an array in DATA go. */
cr_status cr_ranked_room(cr_call *call, uint8_t **at, size_t *room, cr_error *error);
void cr_ranked_filled(cr_call *call, size_t bytes);
/* The array is whole: it goes to the call's job, whose hold is let go of. RESOURCE_EXHAUSTED: the hold is still the call's. */
cr_status cr_ranked_offer(cr_call *call, cr_error *error);
/* An array that is passed, to be read again. Nothing is taken over. */
cr_status cr_ranked_pass(cr_call *call, const cr_array *input, cr_error *error);

/* The job is back, without an error. Whether another read begins, or the call has failed and is gone. */
bool cr_ranked_again(cr_call *call);
/* Of a call of several reads, when the first was opened, and first claimed; those of other calls stay as they are. */
void cr_ranked_begun(const cr_call *call, uint64_t *opened_ns, uint64_t *first_ns);
/* After the last: the answers, in memory of the loop's, and the number of elements. */
void cr_ranked_answer(const cr_call *call, cr_answer *answer);
/* The call goes. */
void cr_ranked_drop(cr_call *call);

#endif
