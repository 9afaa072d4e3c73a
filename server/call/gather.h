/* gather: the partials by key of a Merge call. Each is kept as its bytes come, and what all may come to need counts as state before memory is
 * taken. At the end a job makes the answers from them, on files threads, a step at a time (engine/job_axis.h, cr_merging).
 *
 *   call->gather ──END──▶ a task and the job's ──the last step──▶ unholds the job, whose answers go as all along an axis do
 *
 * Thread: the loop's; the steps: files threads'. Owner: the call, until END; then the task. Of a call that ends before, a job that gives
 * the partials back (shed.h). */
#ifndef CURED_SERVER_CALL_GATHER_H
#define CURED_SERVER_CALL_GATHER_H

#include "server/call/call.h"

typedef struct cr_gather cr_gather;

/* NULL: there is no memory. */
cr_gather *cr_gather_new(void);
/* Where the next bytes go; there is always room. */
void cr_gather_room(cr_gather *gather, uint8_t **at, size_t *room);
/* bytes of that room were filled. The first partial says what type all are of, and whether the asked ops can be answered. */
cr_status cr_gather_filled(cr_call *call, size_t bytes, cr_error *error);
/* No more bytes come: makes the call's job, which is CLOSED then. */
cr_status cr_gather_end(cr_call *call, cr_error *error);
/* Cells of each op's answers, of the partials that came. */
uint64_t cr_gather_cells(const cr_gather *gather);
/* The call ends before, and has a job then, which holds the partials, and which it leaves. */
void cr_gather_drop(cr_call *call);

#endif
