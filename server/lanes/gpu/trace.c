/* trace: the name under which a tool that looks on (Nsight Systems) sees a job while a GPU has it.
 *
 * Thread: any, under the queue's lock. Owner: nobody; nothing here holds state. */
#include <stdio.h>

#include "engine/job_axis.h"
#include "engine/named.h"
#include "server/lanes/gpu/internal.h"

/* What did not fit is left out. */
static void add(char text[CR_GPU_TRACE_TEXT], size_t *length, const char *format, const char *word, uint64_t number) {
    const size_t room = CR_GPU_TRACE_TEXT - *length;
    int wrote = word ? snprintf(text + *length, room, format, word)
                     : snprintf(text + *length, room, format, (unsigned long long)number);
    if (wrote > 0) *length += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

/* "job 17: sum,mean f32[1048576]", "job 18: v7_shuffle sum i32[1000]", "job 19: max f64[3,1000,7]"; "[?]" while nobody
 * knows. */
void cr_gpu_trace_name(const cr_job *job, char text[CR_GPU_TRACE_TEXT]) {
    size_t length = 0;
    uint64_t bytes = job->total_bytes;
    const char *comma = "";
    text[0] = 0;
    if (!bytes && !job->holds) bytes = job->claimed_bytes + job->claimable;
    add(text, &length, "job %llu: ", NULL, job->number);
    if (job->named) add(text, &length, "%s ", job->named->name, 0);
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        if (!cr_ops_has(job->ops, op)) continue;
        add(text, &length, "%s", comma, 0);
        add(text, &length, "%s", cr_op_name(op), 0);
        comma = ",";
    }
    add(text, &length, " %s[", cr_dtype_name(job->dtype), 0);
    if (job->axis) {
        const cr_shape *shape = &job->axis->spec.shape;
        add(text, &length, "%llu,", NULL, shape->outer);
        add(text, &length, "%llu,", NULL, shape->n);
        add(text, &length, "%llu]", NULL, shape->inner);
    } else if (bytes) {
        add(text, &length, "%llu]", NULL, bytes / job->element);
    } else {
        add(text, &length, "%s", "?]", 0);
    }
}

static uint64_t begin(void *argument, const cr_job *job) {
    const cr_gpu_api *api = argument;
    char name[CR_GPU_TRACE_TEXT];
    cr_gpu_trace_name(job, name);
    return api->trace_begin(name);
}

static void end(void *argument, uint64_t trace_id) { ((const cr_gpu_api *)argument)->trace_end(trace_id); }

void cr_gpu_trace(cr_queue *queue, const cr_gpu_api *api) {
    if (api->traced()) cr_queue_trace(queue, &(cr_trace){begin, end, (void *)(uintptr_t)api});
}
