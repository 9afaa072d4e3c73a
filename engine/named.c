/* named: making of the run of a kernel that is named. Thread: the loop's. Owner: the job. */
#include "engine/named.h"

#include <stdio.h>
#include <stdlib.h>

cr_status cr_named_attach(cr_job *job, const char *name, const uint32_t *ops, uint32_t op_count, cr_error *error) {
    cr_named *run = calloc(1, sizeof *run);
    if (!run) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
    snprintf(run->name, sizeof run->name, "%s", name);
    run->op_count = op_count;
    for (uint32_t i = 0; i < op_count; i++) {
        run->ops[i] = (cr_op)ops[i];
        run->values[i].op = (cr_op)ops[i];
        cr_fail(&run->values[i].error, CR_INTERNAL, "kernel: %s gave no answer", name); /* until it has */
    }
    job->named = run;
    return CR_OK;
}

void cr_named_empty(cr_job *job) {
    cr_named *run = job->named;
    for (uint32_t i = 0; i < run->op_count; i++) {
        cr_partial_finish(&job->partial, run->ops[i], &(cr_finish_opts){0}, &run->values[i]);
        run->exact[i] = true;
    }
}
