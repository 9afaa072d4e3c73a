/* outputs: array answers on their way to the client, as they are ready and as the client takes them.
 *
 * A part is lent to whoever sends it, and counts as sent when that says so. While answers wait, the job pauses (cr_queue_sent
 * lets it go on). Of answers that a sink has only statuses go out, and only where some have no value: for those no job pauses.
 * Thread: the loop's. Owner: the call; jobs here are along an axis. */
#ifndef CURED_SERVER_CALL_OUTPUTS_H
#define CURED_SERVER_CALL_OUTPUTS_H

#include "engine/job_axis.h"
#include "server/call/front.h"

/* Zero-initialise. */
typedef struct cr_outputs {
    cr_output *output;   /* the one being sent; NULL: none */
    uint64_t sent;       /* answers of it that went out: all of op 0's, then op 1's, … */
    uint64_t lent;       /* answers in the part that is lent */
    uint64_t bytes_sent; /* of all answers */
    uint64_t bytes_done; /* of those, in outputs that went out as a whole: what the queue knows of */
} cr_outputs;

/* Takes the next output of job, unless one is under way. folded: job is back, so the queue knows nothing of it any more. False:
 * there is none, or no memory for it, and then *error is set. */
bool cr_outputs_next(cr_outputs *outputs, cr_queue *queue, cr_job *job, bool folded, cr_error *error);
/* Of the output under way, as many answers of one op as fit most bytes. False: not even one does. */
bool cr_outputs_part(cr_outputs *outputs, const cr_job *job, uint64_t most, cr_part *part);
/* The part that is lent went out. Its bytes. */
uint64_t cr_outputs_sent(cr_outputs *outputs, cr_queue *queue, cr_job *job, bool folded);
/* Whether more of the array may come, received bytes of which did. Not while the answers to what came wait for the client: its
 * job pauses, its bytes keep their slabs, and what would let it go on could lie behind bytes that find no slab. */
bool cr_outputs_room(const cr_outputs *outputs, const cr_job *job, uint64_t received);
/* Whether the lanes will claim all that came, even if the client takes no answer any more: only then may it lie in slabs. */
bool cr_outputs_flow(const cr_outputs *outputs, const cr_job *job, uint64_t received);
void cr_outputs_drop(cr_outputs *outputs);

#endif
