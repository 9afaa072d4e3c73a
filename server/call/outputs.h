/* outputs: array answers on their way to the client, as they are ready and as the client takes them.
 *
 * They wait for two things: credit (the client's promise to read) and room in the connection's reply buffer. While they
 * wait, the job pauses (cr_queue_sent lets it go on). Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_OUTPUTS_H
#define CURED_SERVER_CALL_OUTPUTS_H

#include "server/call/call.h"

/* Sends what can be sent now; after the last answer of a done job, answers the call (which is then gone). */
void cr_outputs_send(cr_call *call);
/* Whether more of the array may come. Not while the answers to what came wait for the client: its job pauses, its bytes
 * keep their slabs, and the CREDIT that would let it go on could lie behind DATA that finds no slab. */
bool cr_outputs_room(const cr_call *call);
/* Whether the lanes will claim all that came, even if the client takes no answer any more: only then may it lie in slabs. */
bool cr_outputs_flow(const cr_call *call);
/* The client can take bytes more. */
void cr_outputs_credit(cr_call *call, uint64_t bytes);
/* For every call of conn that has something to send, when its reply buffer has room again. */
void cr_outputs_resume(cr_conn *conn);
/* The call is going away. */
void cr_outputs_drop(cr_call *call);

#endif
