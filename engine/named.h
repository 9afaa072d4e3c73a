/* named: what a job that names a kernel of the ladder carries to the lane of a CUDA device and back.
 *
 * The lane that takes such a job brings its whole input to device memory, runs the kernel once for each op, fills values and exact,
 * sets the job's partial.n to the number of elements, and only then lets the job be done. No other lane may claim of it.
 *
 * Thread: the loop's until the job is opened and after it is done; the lane's in between. Owner: the job. */
#ifndef CURED_ENGINE_NAMED_H
#define CURED_ENGINE_NAMED_H

#include "engine/job.h"
#include "proto/limits.h"

typedef struct cr_named {
    char name[CR_NAME_MAX_BYTES + 1];
    uint32_t lane; /* the GPU's ordinal and 1, once one has begun; guarded by the queue's mutex */
    uint32_t op_count;
    cr_op ops[CR_CALL_MAX_OPS];
    cr_value values[CR_CALL_MAX_OPS];
    bool exact[CR_CALL_MAX_OPS];
} cr_named;

/* No lane has run it, for there is no element: the values that follow from that. */
void cr_named_empty(cr_job *job);
/* Gives job a run of the named kernel, whose name and ops were checked; freed with the job. */
cr_status cr_named_attach(cr_job *job, const char *name, const uint32_t *ops, uint32_t op_count, cr_error *error);

#endif
