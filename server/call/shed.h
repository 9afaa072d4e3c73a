/* shed: large memory of jobs that are done, which files threads give back, because the loop would stand still meanwhile. It stays admitted
 * until it is back; of a call that succeeds that is before its answer, so a client that asks one call after another is not refused
 * for memory of its last one.
 *
 * Thread: the loop's. Owner: calls. */
#ifndef CURED_SERVER_CALL_SHED_H
#define CURED_SERVER_CALL_SHED_H

#include "server/call/calls.h"

/* The job of a call is DONE. True: what it read beside its input goes back elsewhere; cr_call_shed follows, unless the call ends before. */
bool cr_shed_job(cr_calls *calls, cr_job *job);
/* Frees the job, which no call has any more (NULL: there was none), and gives ticket back: now, or when its memory is back. */
void cr_shed_over(cr_calls *calls, cr_job *job, cr_ticket *ticket);
/* For the loop's turn: takes up what files threads have given back. */
void cr_shed_turn(cr_calls *calls);

#endif
