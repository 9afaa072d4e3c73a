/* outputs: from the job's list to parts. Thread: the loop's. Owner: the call. */
#include "server/call/outputs.h"

#include <stdlib.h>

bool cr_outputs_next(cr_outputs *o, cr_queue *queue, cr_job *job, bool folded, cr_error *error) {
    error->code = CR_OK;
    if (o->output) return true;
    o->output = cr_queue_output(queue, job);
    if (o->output || !folded) return o->output != NULL;
    if (cr_job_axis_packs(job->axis))
        o->output = cr_job_axis_packed_next(job->axis, error);
    else if (job->axis->spec.shape.n == 0) /* what nobody needs to compute is made here */
        o->output = cr_job_axis_empty_next(job->axis, error);
    return o->output != NULL;
}

/* Ops whose answers all have values, where statuses are all that goes out. */
static void skip(cr_outputs *o, const cr_job *job) {
    const cr_output *output = o->output;
    while (job->sink && o->sent < output->count * job->axis->spec.op_count && o->sent % output->count == 0 &&
           !(output->missing >> o->sent / output->count & 1))
        o->sent += output->count;
}

/* The same of statuses alone. */
static void statuses_part(cr_outputs *o, const cr_job *job, uint64_t most, cr_part *part) {
    const cr_output *output = o->output;
    const uint32_t op = (uint32_t)(o->sent / output->count);
    const uint64_t at = o->sent % output->count;
    const uint8_t *statuses = cr_output_statuses(output, job->axis, op) + at;
    o->lent = most < output->count - at ? most : output->count - at;
    *part = (cr_part){op, output->first + at, statuses, 0, statuses, o->lent};
}

bool cr_outputs_part(cr_outputs *o, const cr_job *job, uint64_t most, cr_part *part) {
    const cr_output *output = o->output;
    skip(o, job);
    if (job->sink) {
        statuses_part(o, job, most, part);
        return o->lent > 0;
    }
    uint32_t op = (uint32_t)(o->sent / output->count);
    uint64_t at = o->sent % output->count, width = job->axis->width[op];
    const uint8_t *values = output->data, *statuses = cr_output_statuses(output, job->axis, op);
    for (uint32_t k = 0; k < op; k++) values += output->count * job->axis->width[k];
    o->lent = most / width < output->count - at ? most / width : output->count - at;
    *part = (cr_part){op,
                      output->first + at,
                      values + at * width,
                      o->lent * width,
                      statuses ? statuses + at : NULL,
                      statuses ? o->lent : 0};
    return o->lent > 0;
}

uint64_t cr_outputs_sent(cr_outputs *o, cr_queue *queue, cr_job *job, bool folded) {
    cr_output *output = o->output;
    const uint64_t each = cr_job_axis_packs(job->axis) ? 1 : job->axis->spec.op_count;
    const size_t width = job->sink ? 0 : job->axis->width[o->sent / output->count];
    const uint64_t bytes = o->lent * (width + job->axis->spec.statuses);
    o->bytes_sent += bytes;
    o->sent += o->lent;
    o->lent = 0;
    skip(o, job);
    if (o->sent < output->count * each) return bytes;
    o->output = NULL;
    o->sent = 0;
    o->bytes_done += output->bytes;
    if (!folded && !job->sink) cr_queue_sent(queue, job, output->bytes);
    free(output);
    return bytes;
}

/* Whether the client's reading holds the job up, and with it the array: not in strips, where all of it is kept, and not where answers are
 * written, or all of them may wait. */
static bool answers_early(const cr_job *job) {
    if (!job || !job->axis || cr_job_axis_is_empty(job->axis) || !job->may_pause || cr_job_axis_in_strips(job))
        return false;
    return !cr_axis_by_offsets(&job->axis->spec) || job->axis->spec.offsets.data; /* gone: all came */
}

/* By offsets: those of the segments that came whole, but for empty ones at the end of what came. */
static uint64_t segments_due(const cr_job *job, uint64_t received, bool *more) {
    const cr_job_axis *axis = job->axis;
    const cr_offsets *offsets = &axis->spec.offsets;
    const uint64_t came = received / job->element, first = cr_offsets_find(offsets, came);
    *more = came != axis->till || received % job->element != 0;
    if (came >= axis->till) return offsets->count * axis->answer_bytes;
    const bool ends = cr_offsets_at(offsets, first) == came;
    if (ends && received % job->element == 0) *more = false;
    return (ends || first == 0 ? first : first - 1) * axis->answer_bytes;
}

/* Bytes of answers to the whole blocks that came, and *more: whether a part of a block came too. */
static uint64_t answers_due(const cr_job *job, uint64_t received, bool *more) {
    const cr_job_axis *axis = job->axis;
    if (cr_axis_by_offsets(&axis->spec)) return segments_due(job, received, more);
    uint64_t block = axis->block * job->element;
    *more = received % block != 0;
    return received / block * axis->spec.shape.inner * axis->answer_bytes;
}

bool cr_outputs_room(const cr_outputs *o, const cr_job *job, uint64_t received) {
    bool more;
    if (!answers_early(job)) return true;
    return answers_due(job, received, &more) <= o->bytes_sent + CR_JOB_AXIS_PENDING_BYTES;
}

bool cr_outputs_flow(const cr_outputs *o, const cr_job *job, uint64_t received) {
    bool more;
    if (!answers_early(job)) return true;
    uint64_t due = answers_due(job, received, &more), most = o->bytes_done + CR_JOB_AXIS_PENDING_BYTES;
    /* The job pauses once so much waits, in whole outputs, as the queue counts; something is left to claim then, or all is
     * answered. */
    return more ? due < most : due <= most;
}

void cr_outputs_drop(cr_outputs *o) {
    free(o->output);
    o->output = NULL;
}
