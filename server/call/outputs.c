/* outputs: from the job's list to RESULT frames. Thread: the loop's. Owner: the call. */
#include "server/call/outputs.h"

#include <stdlib.h>

#include "server/engine/job_axis.h"
#include "server/native/reply.h"

enum { PART_BYTES = 64 * 1024 };

/* The next answers to send: what is under way, what lanes made, or (n = 0) what nobody needs to compute. */
static bool next_output(cr_call *call, cr_error *error) {
    cr_job_axis *axis = call->job->axis;
    error->code = CR_OK;
    if (call->output) return true;
    call->output_sent = 0;
    call->output = cr_queue_output(call->conn->server->queue, call->job);
    if (!call->output && call->job_done && axis->spec.shape.n == 0) call->output = cr_job_axis_empty_next(axis, error);
    return call->output != NULL;
}

/* One frame: as many answers of one op as fit a part and the credit. False: not even one does. */
static bool send_part(cr_call *call) {
    const cr_job_axis *axis = call->job->axis;
    cr_output *output = call->output;
    uint32_t op = (uint32_t)(call->output_sent / output->count);
    uint64_t at = call->output_sent % output->count, width = axis->width[op];
    const uint8_t *values = output->data;
    for (uint32_t k = 0; k < op; k++) values += output->count * axis->width[k];
    uint64_t most = call->reply_credit < PART_BYTES ? call->reply_credit : PART_BYTES;
    uint64_t count = most / width < output->count - at ? most / width : output->count - at;
    if (!count) return false;
    if (!cr_reply_part(call->conn, call->stream, op, output->first + at, values + at * width, count * width))
        return false;
    call->reply_credit -= count * width;
    call->answers_sent += count * width;
    call->output_sent += count;
    return true;
}

/* Bytes of answers to the whole blocks that came, and *more: whether a part of a block came too. */
static uint64_t answers_due(const cr_call *call, bool *more) {
    const cr_job_axis *axis = call->job->axis;
    uint64_t block = axis->block * call->job->element;
    *more = call->received % block != 0;
    return call->received / block * axis->spec.shape.inner * axis->answer_bytes;
}

bool cr_outputs_room(const cr_call *call) {
    bool more;
    if (!call->job || !call->job->axis || !call->job->axis->block) return true;
    return answers_due(call, &more) <= call->answers_sent + CR_AXIS_PENDING_BYTES;
}

bool cr_outputs_flow(const cr_call *call) {
    bool more;
    if (!call->job || !call->job->axis || !call->job->axis->block) return true;
    uint64_t due = answers_due(call, &more), most = call->answers_done + CR_AXIS_PENDING_BYTES;
    /* The job pauses once so much waits, in whole outputs, as the queue counts; something is left to claim then, or all is answered. */
    return more ? due < most : due <= most;
}

/* Everything that could be sent was. */
static void grant_again(cr_call *call) {
    if (call->held) cr_call_grant(call);
}

void cr_outputs_send(cr_call *call) {
    cr_queue *queue = call->conn->server->queue;
    cr_error error;
    while (next_output(call, &error)) {
        if (cr_conn_backlog(call->conn) >= CR_BACKLOG_BYTES || !send_part(call)) {
            grant_again(call);
            return;
        }
        cr_output *output = call->output;
        if (call->output_sent < output->count * call->job->axis->spec.op_count) continue;
        call->output = NULL;
        call->answers_done += output->bytes;
        if (!call->job_done) cr_queue_sent(queue, call->job, output->bytes);
        free(output);
    }
    if (error.code != CR_OK)
        cr_call_fail(call, &error);
    else if (call->job_done)
        cr_call_answer_job(call);
    else
        grant_again(call);
}

void cr_outputs_credit(cr_call *call, uint64_t bytes) {
    if (call->request.kind != CR_CALL_REDUCE || !call->request.reduce.has_axis) return;
    call->reply_credit = bytes > UINT64_MAX - call->reply_credit ? UINT64_MAX : call->reply_credit + bytes;
    if (call->job) cr_outputs_send(call); /* none yet: the CREDIT came before the array */
}

void cr_outputs_resume(cr_conn *conn) {
    for (cr_list *node = conn->calls.next, *next; node != &conn->calls; node = next) {
        next = node->next;
        cr_call *call = cr_container(node, cr_call, link);
        if (call->output || call->job_done) cr_outputs_send(call);
        if (cr_conn_backlog(conn) >= CR_BACKLOG_BYTES) return;
    }
}

void cr_outputs_drop(cr_call *call) {
    free(call->output);
    call->output = NULL;
}
