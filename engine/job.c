/* job: birth, steps and end of a job. Thread: see job.h. Owner: the loop. */
#include "engine/job.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/job_axis.h"
#include "engine/sink.h"

static _Atomic uint64_t numbers;

/* All members but the partial, which is long and has a beginning of its own. */
static void clear(cr_job *job) {
    const size_t partial = offsetof(cr_job, partial), behind = partial + sizeof job->partial;
    memset(job, 0, partial);
    memset((char *)job + behind, 0, sizeof *job - behind);
}

cr_job *cr_job_new(cr_dtype dtype, uint32_t families) {
    cr_job *job = malloc(sizeof *job);
    if (!job) return NULL;
    clear(job);
    job->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
    job->dtype = dtype;
    job->families = families;
    job->wants = CR_WANTS_ALL;
    job->element = (uint32_t)cr_dtype_size(dtype);
    job->mask.kind = CR_MASK_NONE;
    job->grain = cr_partial_grain(dtype, families);
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) cr_waiting_init(&job->ready[kind]);
    job->kinds = CR_BY_CPU;
    job->device = -1;
    cr_list_init(&job->done);
    cr_list_init(&job->segments);
    cr_list_init(&job->unfolded);
    job->state = CR_JOB_OPEN;
    job->holds = 1;
    job->in_order = job->grain > 1;
    job->error.code = CR_OK;
    cr_partial_init(&job->partial, dtype, families);
    cr_list_init(&job->outputs);
    cr_list_init(&job->news);
    atomic_init(&job->lanes, 0);
    job->opened_ns = cr_now_ns();
    cr_metric_add(jobs, 1);
    return job;
}

void cr_job_move(cr_job *job, cr_job_state next) {
    static const bool legal[CR_JOB_STATES][CR_JOB_STATES] = {
        [CR_JOB_OPEN] = {[CR_JOB_STOPPING] = true, [CR_JOB_DONE] = true},
        [CR_JOB_STOPPING] = {[CR_JOB_DONE] = true},
    };
    assert(legal[job->state][next]);
    (void)legal;
    job->state = next;
}

void cr_job_free(cr_job *job) {
    if (!job) return;
    assert(job->state == CR_JOB_DONE && cr_list_empty(&job->segments) && cr_list_empty(&job->unfolded));
    assert(cr_list_empty(&job->news));
    for (int kind = 0; kind < CR_LANE_KINDS; kind++) assert(!cr_waiting_in_line(&job->ready[kind]));
    for (cr_list *node; (node = cr_list_pop(&job->outputs));) free(cr_container(node, cr_output, link));
    if (job->axis) cr_job_axis_free(job->axis);
    if (job->sink) job->sink->free(job->sink);
    for (cr_held *held = job->held, *next; held; held = next) {
        next = held->next;
        held->release(held);
    }
    free(job->named);
    cr_metric_sub(jobs, 1);
    free(job);
}

uint64_t cr_job_beside_bytes(const cr_job *job) {
    uint64_t sum = 0;
    for (const cr_held *held = job->held; held; held = held->next) sum += held->left;
    return sum;
}

bool cr_job_empty_step(cr_job *job) {
    for (cr_held *held = job->held; held; held = held->next)
        if (held->left) return held->empty(held) || held->next;
    return false;
}

bool cr_job_over_step(cr_job *job) { return cr_job_empty_step(job) || (job->axis && cr_job_axis_over_step(job->axis)); }

uint64_t cr_job_unwanted_bytes(const cr_job *job) {
    uint64_t bytes = job->axis && cr_job_axis_has_states(job->axis) ? job->axis->memory : 0;
    if (job->axis) bytes += job->axis->packed_bytes;
    for (const cr_list *node = job->outputs.next; node != &job->outputs; node = node->next)
        bytes += cr_container(node, cr_output, link)->bytes;
    return bytes;
}

void cr_segment_init(cr_segment *segment, cr_job *job, const void *data, uint64_t index) {
    *segment = (cr_segment){.job = job, .data = data, .index = index};
    cr_list_init(&segment->link);
}
