/* call: states, admission, and the one answer. Thread: the loop's. Owner: see front.h. */
#include "server/call/call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/named.h"
#include "engine/sink.h"
#include "server/call/beside.h"
#include "server/call/block.h"
#include "server/call/check.h"
#include "server/call/gather.h"
#include "server/call/ranked.h"
#include "server/call/shed.h"

enum { PROGRESS_MIN_MS = 10 };

/* See call.h: what may follow each state, itself included, and which outputs go with each input. */
static const uint8_t input_next[CR_INPUT_STATES] = {
    [CR_AWAITING] = 1 << CR_AWAITING | 1 << CR_RECEIVING | 1 << CR_CLOSED,
    [CR_RECEIVING] = 1 << CR_RECEIVING | 1 << CR_CLOSED,
    [CR_CLOSED] = 1 << CR_CLOSED | 1 << CR_FOLDED,
    [CR_FOLDED] = 1 << CR_FOLDED,
};
static const uint8_t output_next[CR_OUTPUT_STATES] = {
    [CR_NONE] = 1 << CR_NONE | 1 << CR_SENDING | 1 << CR_OVER,
    [CR_SENDING] = 1 << CR_SENDING | 1 << CR_OVER,
    [CR_OVER] = 0, /* nothing happens to a call that is over */
};
static const uint8_t outputs_with[CR_INPUT_STATES] = {
    [CR_AWAITING] = 1 << CR_NONE | 1 << CR_OVER,
    [CR_RECEIVING] = 1 << CR_NONE | 1 << CR_SENDING | 1 << CR_OVER,
    [CR_CLOSED] = 1 << CR_NONE | 1 << CR_SENDING | 1 << CR_OVER,
    [CR_FOLDED] = 1 << CR_NONE | 1 << CR_SENDING | 1 << CR_OVER,
};

bool cr_call_may_move(const cr_call *call, cr_input_state input, cr_output_state output) {
    return input_next[call->input] & 1 << input && output_next[call->output] & 1 << output &&
           outputs_with[input] & 1 << output && (input != CR_FOLDED || call->job);
}

/* From now on the client keeps its slot as long as it brings or takes more than others, or there are plenty. */
static void wait_for_client(cr_call *call) {
    cr_calls *calls = call->calls;
    if (!cr_list_empty(&call->wait.link)) return;
    cr_patience_begin(&calls->patience, &call->wait);
    if (!calls->window.slot)
        cr_timer_set(&calls->timers, &calls->window, cr_now_ms() + calls->config->stall_timeout_ms);
}

void cr_call_window_over(cr_timer *window) {
    cr_calls *calls = cr_container(window, cr_calls, window);
    cr_patience_turn(&calls->patience);
    if (atomic_load_explicit(&cr_metrics[CR_M_calls], memory_order_relaxed))
        cr_timer_set(&calls->timers, window, cr_now_ms() + calls->config->stall_timeout_ms);
}

void cr_call_move(cr_call *call, cr_input_state input, cr_output_state output) {
    assert(cr_call_may_move(call, input, output));
    const bool waits = output != CR_OVER && (input == CR_RECEIVING || call->outputs.output);
    if (input == CR_RECEIVING && call->input != CR_RECEIVING) wait_for_client(call);
    if (!waits && !cr_list_empty(&call->wait.link)) cr_patience_end(&call->wait);
    call->input = input;
    call->output = output;
}

static bool holds_job(const cr_call *call) { return call->job && call->input < CR_CLOSED; }

/* The call leaves its job, if that is not back: what a lane or a file still holds stays admitted until it is free for others. */
static void leave_job(cr_call *call) {
    cr_job *job = call->job;
    job->owner = NULL;
    cr_admit_answered(&call->ticket);
    job->ticket = call->ticket;
    cr_upload_drop(&call->upload);
    if (holds_job(call)) cr_queue_unhold(call->calls->queue, job);
}

/* Everything of a call that is over. */
static void call_free(cr_call *call) {
    cr_calls *calls = call->calls;
    assert(call->output == CR_OVER);
    cr_outputs_drop(&call->outputs);
    cr_call_gathers(call) ? cr_gather_drop(call) : free(call->merge);
    cr_block_drop(call);
    cr_ranked_drop(call);
    if (call->sink) call->sink->free(call->sink);
    if (cr_beside_drop(call)) {
        assert(!call->job);
    } else if (call->job && call->input != CR_FOLDED) {
        leave_job(call);
    } else {
        if (call->job) cr_list_remove(&call->job->done); /* while its answers are written piece by piece */
        cr_shed_over(calls, call->job, &call->ticket);
    }
    cr_timer_stop(&calls->timers, &call->deadline);
    cr_timer_stop(&calls->timers, &call->progress);
    cr_list_remove(&call->open);
    free(call);
}

/* The one answer, which may lie in the job; NULL: none. */
static void finish(cr_call *call, const cr_answer *answer) {
    cr_call_move(call, call->input, CR_OVER);
    if (!call->whole) cr_metric_own_add(call->calls->counts, calls, -1);
    cr_record_answered(call, answer);
    if (answer) call->front->answer(call, answer);
    if (call->job && (!answer || answer->kind == CR_ANSWER_FAILED)) cr_queue_stop(call->calls->queue, call->job, NULL);
    call_free(call);
}

void cr_call_cancel(cr_call *call, const cr_error *error) {
    cr_answer answer = {.kind = CR_ANSWER_FAILED, .error = error};
    finish(call, error ? &answer : NULL);
}

void cr_call_fail(cr_call *call, const cr_error *error) { cr_call_cancel(call, error); }

void cr_call_done(cr_call *call) { finish(call, &(cr_answer){.kind = CR_ANSWER_DONE}); }

/* ---- beginning ---- */

enum { AT_HAND_BYTES = 1032 };
_Static_assert(sizeof(cr_call) <= AT_HAND_BYTES - CR_FRONT_BYTES, "malloc keeps what a native call takes at hand");

cr_call *cr_call_new(cr_calls *calls, const cr_front *front, cr_peer *peer) {
    cr_call *call = malloc(sizeof *call + front->bytes);
    if (!call) return NULL;
    memset(call, 0, offsetof(cr_call, request)); /* the request is filled by whoever asks */
    memset(call->own, 0, front->bytes);
    call->calls = calls;
    call->front = front;
    call->peer = peer;
    call->arrived_ns = calls->read_ns;
    call->request.kind = 0;
    cr_upload_init(&call->upload, calls);
    cr_list_init(&call->wait.link);
    return call;
}

cr_wire_call *cr_call_request(cr_call *call) { return &call->request; }
void *cr_call_front(cr_call *call) { return call->own; }

void cr_call_refuse(cr_call *call, const cr_error *error) {
    cr_record_refused(call, error);
    cr_block_drop(call);
    cr_ranked_drop(call);
    free(call);
}

void cr_call_set_method(cr_call *call, cr_method method) { call->method = (uint8_t)method; }

/* Of the other kinds request.reduce means nothing. */
static bool takes_array(const cr_call *call) {
    return call->request.kind == CR_CALL_REDUCE || call->request.kind == CR_CALL_MERGE;
}

static void deadline_fired(cr_timer *timer) {
    cr_call *call = cr_container(timer, cr_call, deadline);
    cr_error error;
    cr_fail(&error, CR_DEADLINE_EXCEEDED, "timeout_ms: %u ms passed before the answer was ready",
            call->request.timeout_ms);
    cr_call_fail(call, &error);
}

static void progress_fired(cr_timer *timer) {
    cr_call *call = cr_container(timer, cr_call, progress);
    cr_calls *calls = call->calls;
    cr_timer_set(&calls->timers, timer, cr_now_ms() + call->request.progress_ms);
    cr_wire_progress m = {0, 0};
    if (call->job) {
        uint32_t over;
        const uint32_t reads = cr_ranked_reads(call, &over);
        cr_progress now = cr_queue_progress(calls->queue, call->job);
        m = (cr_wire_progress){over * now.total_bytes + now.folded_bytes, reads * now.total_bytes};
    }
    call->front->progress(call, &m);
}

static cr_status start_timers(cr_call *call, cr_error *error) {
    cr_timers *timers = &call->calls->timers;
    uint32_t timeout = call->request.timeout_ms, progress = call->request.progress_ms;
    call->deadline.fire = deadline_fired;
    call->progress.fire = progress_fired;
    if (progress && progress < PROGRESS_MIN_MS) call->request.progress_ms = progress = PROGRESS_MIN_MS;
    uint64_t now = timeout || progress ? cr_now_ms() : 0;
    if ((!timeout || cr_timer_set(timers, &call->deadline, now + timeout)) &&
        (!progress || cr_timer_set(timers, &call->progress, now + progress)))
        return CR_OK;
    cr_timer_stop(timers, &call->deadline);
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call's timers");
}

/* It asks about the daemon, and is wanted above all when there is no room. */
static bool is_plain(const cr_call *call) {
    const cr_wire_kind kind = call->request.kind;
    return kind == CR_CALL_INFO || kind == CR_CALL_STATS || kind == CR_CALL_SLOW_LOG || kind == CR_CALL_RELOAD ||
           kind == CR_CALL_CONFIG;
}

cr_status cr_call_admit(cr_call *call, cr_error *error) {
    cr_calls *calls = call->calls;
    const cr_wire_reduce *r = &call->request.reduce;
    bool known = takes_array(call) && r->length_known;
    uint64_t bytes = known ? r->length : 0;
    if (known && r->source != CR_SOURCE_STREAM) {
        size_t size = cr_dtype_size((cr_dtype)r->dtype);
        bytes = size && bytes <= UINT64_MAX / size ? bytes * size : UINT64_MAX;
    }
    if (calls->draining && call->request.kind != CR_CALL_UNREGISTER)
        return cr_fail(error, CR_UNAVAILABLE, "the server is shutting down");
    if (is_plain(call)) {
        cr_admit_always(&calls->admission, call->peer, &call->ticket);
    } else {
        cr_status status = cr_admit_call(&calls->admission, call->peer, bytes, &call->ticket, error);
        if (status == CR_RESOURCE_EXHAUSTED &&
            (cr_call_make_room(call, CR_USE_calls, 1) || cr_call_make_room(call, CR_USE_bytes, bytes)))
            status = cr_admit_call(&calls->admission, call->peer, bytes, &call->ticket, error);
        if (status != CR_OK) return status;
    }
    if (start_timers(call, error) != CR_OK) {
        cr_admit_over(&calls->admission, &call->ticket);
        return error->code;
    }
    cr_list_append(&calls->open, &call->open);
    if (!call->whole) cr_metric_own_add(calls->counts, calls, 1);
    return CR_OK;
}

bool cr_call_begin(cr_call *call, const cr_wire_beside *beside) {
    cr_error error;
    bool merges = call->request.kind == CR_CALL_MERGE;
    if (call->checked) return true;
    if (cr_beside_ask(call, beside, &error) == CR_OK &&
        (merges ? cr_check_finish(call, &error) : cr_check_reduce(call, &error)) == CR_OK)
        return true;
    cr_call_fail(call, &error);
    return false;
}

/* ---- answers ---- */

void cr_call_answer_partial(cr_call *call, const cr_partial *partial, const cr_wire_timing *timing) {
    const cr_wire_reduce *r = &call->request.reduce;
    static _Thread_local cr_share share; /* 19 KiB */
    cr_error error;
    cr_answer answer = {.kind = CR_ANSWER_VALUES, .timing = timing, .partial = partial, .finish = &call->finish};
    if (r->want_partial) {
        const cr_status status = call->block
                                     ? cr_share_make_block(&share, partial, &call->block->at, &error)
                                     : cr_share_make(&share, partial, r->unplaced ? CR_UNPLACED : r->first, &error);
        if (status != CR_OK) {
            cr_call_fail(call, &error);
            return;
        }
        answer.kind = CR_ANSWER_PARTIAL;
        answer.share = &share;
    }
    finish(call, &answer);
}

void cr_call_is_piece(cr_call *piece, cr_call *whole) { piece->whole = whole; }

void cr_call_split(cr_call *call) { cr_call_move(call, CR_CLOSED, call->output); }

void cr_call_merged(cr_call *call, const cr_share *sum) {
    const uint64_t took = cr_now_ns() - call->arrived_ns, begun_ns = call->pieces.begun_ns;
    const uint64_t waited = begun_ns > call->arrived_ns ? begun_ns - call->arrived_ns : 0;
    const uint64_t queue_ns = waited < took ? waited : took;
    cr_wire_timing timing = {queue_ns, took - queue_ns, took};
    cr_answer answer = {.kind = call->request.reduce.want_partial ? CR_ANSWER_PARTIAL : CR_ANSWER_VALUES,
                        .timing = &timing,
                        .partial = &sum->partial,
                        .finish = &call->finish,
                        .share = sum};
    cr_call_move(call, CR_CLOSED, call->output);
    finish(call, &answer);
}

/* Everything that the answer of a job needs is there (and sent, for an array). The call is gone afterwards. */
static void answer_job(cr_call *call) {
    cr_job *job = call->job;
    uint64_t first = job->first_claim_ns ? job->first_claim_ns : job->done_ns;
    uint64_t opened = job->opened_ns;
    cr_ranked_begun(call, &opened, &first);
    cr_wire_timing timing = {first - opened, job->done_ns - first, job->done_ns - call->arrived_ns};
    cr_answer answer = {.kind = CR_ANSWER_ARRAY, .timing = &timing};
    if (job->axis) {
        answer.spec = &job->axis->spec;
        answer.geometry = call->geometry;
        answer.missing = job->axis->missing;
        answer.missing_of = job->axis->missing_of;
        if (job->sink) answer.written = cr_job_axis_value_bytes(job->axis);
    } else if (job->named) {
        if (!job->folded_bytes) cr_named_empty(job);
        answer.kind = CR_ANSWER_FINISHED;
        answer.values = job->named->values;
        answer.exact = job->named->exact;
        answer.count = job->partial.n;
    } else if (call->ranked) {
        cr_ranked_answer(call, &answer);
    } else {
        cr_call_answer_partial(call, &job->partial, &timing);
        return;
    }
    finish(call, &answer);
}

/* The length of its input is known by now: it is admitted with it. False: that was too much, and the call is gone. */
static bool measured(cr_call *call) {
    cr_error error;
    if (cr_call_charge(call, &error) == CR_OK) return true;
    cr_call_fail(call, &error);
    return false;
}

void cr_call_has_parts(cr_call *call) {
    if (measured(call) && call->job->axis) call->front->parts(call);
}

void cr_call_folded(cr_call *call) {
    if (call->job->error.code == CR_OK && cr_ranked_again(call)) return;
    if (call->geometry == CR_GEOMETRY_OFFSETS) cr_job_axis_leave_offsets(call->job->axis);
    if (!cr_shed_job(call->calls, call->job)) cr_call_shed(call);
}

void cr_call_shed(cr_call *call) {
    cr_call_move(call, CR_FOLDED, call->output);
    if (call->job->error.code != CR_OK)
        cr_call_fail(call, &call->job->error);
    else if (!measured(call))
        return;
    else if (call->job->axis)
        call->front->parts(call);
    else
        answer_job(call);
}

/* Along an axis without elements: what nobody needs to compute, a piece each time that the job comes up. The statuses of a piece go
 * out before the next is written. */
static cr_pull write_empty(cr_call *call) {
    cr_error error = {CR_OK, ""};
    bool more;
    if (!cr_list_empty(&call->job->done)) return CR_LATER;
    if (cr_job_axis_empty_write(call->job, &more, &call->outputs.output, &error) != CR_OK) {
        cr_call_fail(call, &error);
        return CR_PULLED;
    }
    if (more) {
        cr_list_append(&call->calls->writing, &call->job->done);
        call->calls->wake(call->calls->wake_argument); /* room in the socket may have brought it here, and not a turn */
        return CR_LATER;
    }
    answer_job(call);
    return CR_PULLED;
}

void cr_call_sink(cr_call *call, cr_sink *sink) { call->sink = sink; }

cr_pull cr_call_part(cr_call *call, uint64_t most, cr_part *part) {
    cr_error error;
    bool folded = call->input == CR_FOLDED;
    if (!call->job || !call->job->axis) return CR_LATER;
    if (call->job->sink && folded && call->job->axis->spec.shape.n == 0 && !call->outputs.output)
        return write_empty(call);
    if (cr_outputs_next(&call->outputs, call->calls->queue, call->job, folded, &error)) {
        const bool lent = cr_outputs_part(&call->outputs, call->job, most, part);
        if (!lent) wait_for_client(call);
        if (lent) cr_call_move(call, call->input, CR_SENDING);
        return lent ? CR_PART : CR_LATER;
    }
    if (!folded && call->input != CR_RECEIVING) cr_patience_end(&call->wait); /* for the lanes */
    if (error.code == CR_OK && !folded) return CR_LATER;
    if (error.code == CR_OK)
        answer_job(call);
    else
        cr_call_fail(call, &error);
    return CR_PULLED;
}

bool cr_call_is_folded(const cr_call *call) { return call->input == CR_FOLDED; }

size_t cr_call_answer_bytes(const cr_call *call, uint32_t op) {
    if (call->request.reduce.want_partial) return 1; /* by key */
    return cr_dtype_size(cr_axis_dtype((cr_op)call->request.reduce.ops[op], call->dtype, &call->finish));
}

void cr_call_sent(cr_call *call) {
    uint64_t sent = cr_outputs_sent(&call->outputs, call->calls->queue, call->job, call->input == CR_FOLDED);
    if (!cr_list_empty(&call->wait.link)) cr_patience_brought(&call->calls->patience, &call->wait, sent);
}
