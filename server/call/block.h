/* block: the array of a call is a block of a larger one (ReduceRequest.layout), of which the answer is a partial.
 *
 * Thread: the loop's; the lanes only read where the elements lie. Owner: the call, and its job, which each have a use. */
#ifndef CURED_SERVER_CALL_BLOCK_H
#define CURED_SERVER_CALL_BLOCK_H

#include "kernels/core/layout.h"
#include "server/call/call.h"

typedef struct cr_block {
    cr_held held; /* by the job */
    uint32_t uses;
    cr_layout at;
} cr_block;

/* The job folds the call's block, which is there as long as the job. */
void cr_block_hold(cr_call *call, cr_job *job);
/* The call is over. */
void cr_block_drop(cr_call *call);

#endif
