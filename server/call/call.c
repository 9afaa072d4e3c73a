/* call: checks a request, brings its input to the lanes or folds it here, and answers once.
 *
 * Thread: the loop's. Owner: its connection. */
#include "server/call/call.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fold.h"
#include "server/base/clock.h"
#include "server/base/metrics.h"
#include "server/call/axis.h"
#include "server/call/check.h"
#include "server/call/merge.h"
#include "server/call/outputs.h"
#include "server/engine/feed.h"
#include "server/engine/job_axis.h"
#include "server/engine/named.h"
#include "server/memory/region.h"
#include "server/native/regions.h"
#include "server/native/reply.h"

typedef unsigned long long ull;

enum {
    GRANT_BYTES = 1024 * 1024, /* CREDIT goes out in steps of this */
    PROGRESS_MIN_MS = 10,
};

cr_call *cr_call_find(cr_conn *conn, uint32_t stream) { return cr_streams_find(&conn->streams, stream); }

/* The call is over: it leaves its connection and lets its job go. A job that is not done yet (a lane or a file still holds
 * it) stays admitted: what it holds is not free for others before it is. */
static void call_free(cr_call *call) {
    cr_conn *conn = call->conn;
    cr_server *server = conn->server;
    cr_outputs_drop(call);
    cr_regions_forget(call);
    cr_admit_answered(&call->ticket);
    free(call->merge);
    if (call->job && call->job_done) {
        cr_job_free(call->job);
        cr_admit_over(&server->admission, &call->ticket);
    } else if (call->job) {
        call->job->owner = NULL;
        call->job->admitted_bytes = call->ticket.bytes;
        call->job->admitted_state = call->ticket.state_bytes;
        if (call->held) {
            cr_upload_drop(call);
            cr_queue_unhold(server->queue, call->job);
        }
    } else {
        cr_admit_over(&server->admission, &call->ticket);
    }
    cr_timer_stop(&server->timers, &call->deadline);
    cr_timer_stop(&server->timers, &call->progress);
    cr_list_remove(&call->link);
    cr_streams_remove(&conn->streams, call->stream);
    if (conn->payload_call == call) conn->payload_call = NULL;
    cr_metric_sub(calls, 1);
    free(call);
}

void cr_call_drop(cr_call *call) {
    if (call->job) cr_queue_stop(call->conn->server->queue, call->job, NULL);
    call_free(call);
}

void cr_call_fail(cr_call *call, const cr_error *error) {
    cr_metric_add(calls_failed, 1);
    cr_reply_status(call->conn, call->stream, error); /* first: error may be the job's, which goes with the call */
    cr_call_drop(call);
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
    cr_server *server = call->conn->server;
    cr_timer_set(&server->timers, timer, cr_now_ms() + call->request.progress_ms);
    if (cr_conn_backlog(call->conn) >= CR_BACKLOG_BYTES) return; /* nobody reads: not one more */
    cr_wire_progress m = {0, 0};
    if (call->job) {
        cr_progress now = cr_queue_progress(server->queue, call->job);
        m = (cr_wire_progress){now.folded_bytes, now.total_bytes};
    }
    cr_reply_progress(call->conn, call->stream, &m);
}

/* The job that the lanes work on; the call holds it. kept: the region its input lies in, NULL: none. */
static cr_status make_job(cr_call *call, const cr_kept *kept, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    call->job = cr_job_new(call->dtype, call->families);
    if (!call->job) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
    call->job->owner = call;
    call->job->wants = call->wants;
    for (uint32_t i = 0; i < r->op_count; i++) call->job->ops |= cr_ops_of(r->ops[i]);
    call->job->base = r->first;
    call->held = true;
    if (r->has_axis) {
        cr_status status = cr_axis_attach(call, kept && kept->region.way == CR_REGION_DEVICE, error);
        if (status != CR_OK) return status;
    }
    if (r->kernel[0]) {
        cr_status status = cr_named_attach(call->job, r->kernel, r->ops, r->op_count, error);
        if (status != CR_OK) return status;
    }
    cr_lanes_place(&call->conn->server->lanes, call->job);
    if (r->source == CR_SOURCE_STREAM && r->length_known)
        cr_queue_set_total(call->conn->server->queue, call->job, r->length);
    return CR_OK;
}

bool cr_call_measured(cr_call *call) {
    cr_error error;
    if (cr_request_charge(call, &error) == CR_OK) return true;
    cr_call_fail(call, &error);
    return false;
}

/* Of kept, whose use is taken over, or of a descriptor, which is. */
static cr_status start_feed(cr_call *call, cr_kept *kept, int descriptor, cr_error *error) {
    cr_server *server = call->conn->server;
    const cr_wire_reduce *r = &call->request.reduce;
    cr_feed_options options = {.files = server->files,
                               .slabs = server->slabs,
                               .queue = server->queue,
                               .max_bytes = server->config->max_input_bytes,
                               .input = {1, {{.kept = kept, .descriptor = descriptor, .offset = r->offset}}},
                               .client = call->conn->peer.process,
                               .to_end = !r->length_known,
                               .count = r->length,
                               .expects = r->has_axis,
                               .expected = r->outer * r->n * r->inner};
    cr_status status = cr_feed_start(call->job, &options, error);
    if (status == CR_OK) call->held = false;
    return status == CR_OK && kept ? cr_request_charge(call, error) : status;
}

static cr_status start_descriptor(cr_call *call, int descriptor, cr_error *error) {
    cr_status status = cr_region_readable(descriptor, error);
    if (status == CR_OK) status = make_job(call, NULL, error);
    if (status == CR_OK) return start_feed(call, NULL, descriptor, error);
    cr_files_close(call->conn->server->files, descriptor);
    return status;
}

cr_status cr_call_start_region(cr_call *call, cr_kept *kept, cr_error *error) {
    cr_status status = make_job(call, kept, error);
    if (status != CR_OK) return status;
    cr_kept_use(kept);
    return start_feed(call, kept, -1, error);
}

static uint32_t descriptors_of(const cr_wire_call *request) {
    if (request->kind == CR_CALL_REDUCE) return request->reduce.source == CR_SOURCE_DESCRIPTOR;
    if (request->kind != CR_CALL_REGISTER) return 0;
    return request->region.kind == CR_SHARED_DESCRIPTOR || request->region.kind == CR_SHARED_CUDA_DESCRIPTOR;
}

/* Descriptors the frame brought beyond what the request uses: closed, and the call fails. */
static cr_status take_descriptors(cr_call *call, uint32_t count, int *descriptor, cr_error *error) {
    uint32_t wanted = descriptors_of(&call->request);
    *descriptor = -1;
    for (uint32_t i = 0; i < count; i++) {
        int taken = cr_conn_take_descriptor(call->conn);
        if (count == wanted)
            *descriptor = taken;
        else
            cr_files_close(call->conn->server->files, taken);
    }
    if (count == wanted) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "descriptors: %u came with CALL, this call takes %u", count, wanted);
}

/* Of the other kinds request.reduce means nothing. */
static bool takes_array(const cr_call *call) {
    return call->request.kind == CR_CALL_REDUCE || call->request.kind == CR_CALL_MERGE;
}

static cr_status admit(cr_call *call, cr_error *error) {
    cr_server *server = call->conn->server;
    const cr_wire_reduce *r = &call->request.reduce;
    bool known = takes_array(call) && r->length_known;
    uint64_t bytes = known ? r->length : 0;
    if (known && r->source != CR_SOURCE_STREAM) {
        size_t size = cr_dtype_size((cr_dtype)r->dtype);
        bytes = size && bytes <= UINT64_MAX / size ? bytes * size : UINT64_MAX;
    }
    if (server->draining && call->request.kind != CR_CALL_UNREGISTER)
        return cr_fail(error, CR_UNAVAILABLE, "the server is shutting down");
    if (call->request.kind == CR_CALL_INFO) {
        cr_admit_always(&server->admission, &call->conn->peer, &call->ticket);
        return CR_OK;
    }
    return cr_admit_call(&server->admission, &call->conn->peer, bytes, &call->ticket, error);
}

static cr_status start_timers(cr_call *call, cr_error *error) {
    cr_timers *timers = &call->conn->server->timers;
    uint32_t timeout = call->request.timeout_ms, progress = call->request.progress_ms;
    call->deadline.fire = deadline_fired;
    call->progress.fire = progress_fired;
    if (progress && progress < PROGRESS_MIN_MS) call->request.progress_ms = progress = PROGRESS_MIN_MS;
    uint64_t now = timeout || progress ? cr_now_ms() : 0;
    if ((timeout && !cr_timer_set(timers, &call->deadline, now + timeout)) ||
        (progress && !cr_timer_set(timers, &call->progress, now + progress)))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call's timers");
    return CR_OK;
}

static cr_call *call_new(cr_conn *conn, uint32_t stream) {
    cr_call *call = malloc(sizeof *call);
    if (!call) return NULL;
    memset(call, 0, offsetof(cr_call, request));
    memset((char *)call + offsetof(cr_call, dtype), 0, sizeof *call - offsetof(cr_call, dtype));
    call->conn = conn;
    call->stream = stream;
    call->credit = call->reply_credit = CR_CREDIT_INITIAL_BYTES;
    cr_list_init(&call->upload.filling);
    cr_list_init(&call->in_region);
    return call;
}

static bool answer_info(cr_call *call) {
    cr_conn *conn = call->conn;
    uint32_t stream = call->stream;
    cr_metric_add(calls_ok, 1);
    call_free(call);
    return cr_reply_info(conn, stream);
}

void cr_call_answered(cr_call *call) {
    cr_metric_add(calls_ok, 1);
    call_free(call);
}

/* What the request asks for begins. descriptor is taken over. */
static cr_status begin(cr_call *call, int descriptor, cr_error *error) {
    if (call->request.kind == CR_CALL_REGISTER) return cr_regions_register(call, descriptor, error);
    if (call->request.kind == CR_CALL_UNREGISTER) return cr_regions_unregister(call, error);
    if (call->request.kind == CR_CALL_MERGE) return cr_request_check_finish(call, error);
    cr_status status = cr_request_check(call, error);
    if (status != CR_OK && descriptor >= 0) cr_files_close(call->conn->server->files, descriptor);
    if (status == CR_OK && descriptor >= 0) return start_descriptor(call, descriptor, error);
    if (status == CR_OK && call->request.reduce.source == CR_SOURCE_REGION) return cr_regions_reduce(call, error);
    return status;
}

bool cr_call_begin(cr_conn *conn, const cr_frame *frame, const uint8_t *head) {
    cr_error error;
    int descriptor = -1;
    cr_call *call = call_new(conn, frame->stream);
    if (!call || !cr_streams_add(&conn->streams, frame->stream, call)) {
        free(call);
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
        return cr_conn_fail(conn, &error);
    }
    call->arrived_ns = conn->server->read_ns;
    cr_status status = cr_wire_unpack_call(head, frame->length, &call->request, &error);
    if (status != CR_OK) call->request.kind = 0;
    cr_error more;
    if (take_descriptors(call, frame->descriptors, &descriptor, &more) != CR_OK && status == CR_OK)
        error = more, status = more.code;
    if (status == CR_OK) status = admit(call, &error);
    if (status != CR_OK) {
        if (descriptor >= 0) cr_files_close(conn->server->files, descriptor);
        cr_metric_add(calls_failed, 1);
        cr_streams_remove(&conn->streams, frame->stream);
        free(call);
        return cr_reply_status(conn, frame->stream, &error);
    }
    /* From here on the call is counted, and ends by call_free. */
    cr_list_append(&conn->calls, &call->link);
    cr_metric_add(calls, 1);
    if (call->request.kind == CR_CALL_INFO) return answer_info(call);
    status = start_timers(call, &error);
    if (status == CR_OK)
        status = begin(call, descriptor, &error);
    else if (descriptor >= 0)
        cr_files_close(conn->server->files, descriptor);
    if (status != CR_OK)
        cr_call_fail(call, &error);
    else if (takes_array(call) && call->request.reduce.source == CR_SOURCE_STREAM && frame->flags & CR_FLAG_END)
        cr_call_end(call);
    return conn->state == CR_CONN_OPEN;
}

/* Whether bytes more array bytes are what the call declared. */
static cr_status check_data(cr_call *call, uint32_t bytes, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (!takes_array(call) || r->source != CR_SOURCE_STREAM)
        return cr_fail(error, CR_INVALID_ARGUMENT, "DATA: this call takes no DATA, its input is no stream");
    if (call->job && !call->held) return cr_fail(error, CR_INVALID_ARGUMENT, "DATA: it came after END");
    uint64_t shaped = r->has_axis ? r->outer * r->n * r->inner * cr_dtype_size(call->dtype) : 0;
    if (r->has_axis && bytes > shaped - call->received)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: its shape has %llu elements, more bytes came than those take",
                       (ull)(r->outer * r->n * r->inner));
    if (r->length_known && bytes > r->length - call->received)
        return cr_fail(error, CR_INVALID_ARGUMENT, "bytes: %llu were declared, more came", (ull)r->length);
    if (r->length_known) return CR_OK;
    return cr_admit_growth(&call->conn->server->admission, &call->ticket, call->received + bytes, error);
}

/* Something that can take the array bytes of a first DATA. */
static cr_status make_place(cr_call *call, const cr_frame *frame, cr_error *error) {
    if (call->request.kind == CR_CALL_MERGE) return cr_merge_begin(call, error);
    if (call->job || cr_call_can_inline(call, frame)) return CR_OK;
    return make_job(call, NULL, error);
}

bool cr_call_data(cr_call *call, const cr_frame *frame, bool *take) {
    cr_error error;
    *take = false;
    if (frame->length > call->credit) {
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "DATA: %u bytes on stream %u exceed its credit of %llu", frame->length,
                frame->stream, (ull)call->credit);
        return cr_conn_fail(call->conn, &error);
    }
    cr_conn *conn = call->conn;
    cr_status status = check_data(call, frame->length, &error);
    if (status == CR_OK && frame->length) status = make_place(call, frame, &error);
    if (status != CR_OK) {
        cr_call_fail(call, &error);
        return conn->state == CR_CONN_OPEN;
    }
    call->credit -= frame->length;
    call->received += frame->length;
    call->to_grant += frame->length;
    *take = true;
    return frame->flags & CR_FLAG_END || cr_call_grant(call);
}

bool cr_call_grant(cr_call *call) {
    if (call->to_grant < GRANT_BYTES || !cr_outputs_room(call)) return true;
    uint64_t grant = call->to_grant;
    call->to_grant = 0;
    call->credit += grant;
    return cr_reply_credit(call->conn, call->stream, grant);
}

bool cr_call_can_inline(const cr_call *call, const cr_frame *frame) {
    return !call->job && call->request.kind == CR_CALL_REDUCE && !call->request.reduce.has_axis &&
           !call->request.reduce.kernel[0] && call->received == 0 && frame->flags & CR_FLAG_END &&
           frame->length <= CR_INLINE_BYTES;
}

/* Answers from a partial that nobody else touches. The call is gone afterwards. */
static void answer(cr_call *call, const cr_partial *partial, const cr_wire_timing *timing) {
    const cr_wire_reduce *r = &call->request.reduce;
    static cr_share share; /* the loop's: 19 KiB */
    cr_error error;
    if (r->want_partial && cr_share_make(&share, partial, r->first, &error) != CR_OK) {
        cr_call_fail(call, &error);
        return;
    }
    cr_metric_add(calls_ok, 1);
    if (r->want_partial)
        cr_reply_partial(call->conn, call->stream, &share, timing);
    else
        cr_reply_result(call->conn, call->stream, partial, r->ops, r->op_count, &call->finish, timing);
    call_free(call);
}

/* After END: whether the array is whole. */
static cr_status check_whole(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    size_t size = cr_dtype_size(call->dtype);
    if (r->length_known && call->received != r->length)
        return cr_fail(error, CR_DATA_LOSS, "bytes: %llu were declared, END came after %llu", (ull)r->length,
                       (ull)call->received);
    if (call->request.kind == CR_CALL_MERGE) return CR_OK;
    if (r->has_axis && call->received != r->outer * r->n * r->inner * size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: its shape has %llu elements of %zu bytes, %llu bytes came",
                       (ull)(r->outer * r->n * r->inner), size, (ull)call->received);
    if (call->received % size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes are not a multiple of %zu, the size of %s",
                       (ull)call->received, size, cr_dtype_name(call->dtype));
    return CR_OK;
}

void cr_call_inline(cr_call *call, const uint8_t *data, uint32_t bytes) {
    cr_error error;
    if (check_whole(call, &error) != CR_OK) {
        cr_call_fail(call, &error);
        return;
    }
    cr_partial partial;
    cr_server *server = call->conn->server;
    cr_partial_init(&partial, call->dtype, call->families);
    cr_partial_want(&partial, call->wants);
    cr_cpu_fold(&partial, data, bytes / cr_dtype_size(call->dtype), call->request.reduce.first);
    uint64_t start = server->last_ns, end = server->last_ns = cr_now_ns();
    cr_wire_timing timing = {start - call->arrived_ns, end - start, end - call->arrived_ns};
    cr_metric_add(calls_inline, 1);
    cr_metric_add(input_bytes_total, bytes);
    answer(call, &partial, &timing);
}

void cr_call_end(cr_call *call) {
    cr_error error;
    cr_status status = check_whole(call, &error);
    if (status == CR_OK && call->request.kind == CR_CALL_MERGE) {
        status = cr_merge_end(call, &error);
        if (status == CR_OK) {
            call_free(call);
            return;
        }
    }
    if (status == CR_OK && !call->job && (call->request.reduce.has_axis || call->request.reduce.kernel[0]))
        status = make_job(call, NULL, &error);
    if (status == CR_OK && !call->job) {
        cr_call_inline(call, NULL, 0);
        return;
    }
    if (status == CR_OK && !cr_upload_finish(call))
        status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for the end of the upload");
    if (status != CR_OK) {
        cr_call_fail(call, &error);
        return;
    }
    cr_upload_drop(call);
    call->held = false;
    cr_queue_unhold(call->conn->server->queue, call->job);
}

/* The times of a finished job, for its answer. */
static cr_wire_timing timing_of(const cr_call *call) {
    const cr_job *job = call->job;
    uint64_t first = job->first_claim_ns ? job->first_claim_ns : job->done_ns;
    return (cr_wire_timing){first - job->opened_ns, job->done_ns - first, job->done_ns - call->arrived_ns};
}

void cr_call_answer_job(cr_call *call) {
    cr_wire_timing timing = timing_of(call);
    if (call->job->axis) {
        cr_metric_add(calls_ok, 1);
        cr_reply_array_end(call->conn, call->stream, &call->job->axis->spec, &timing);
        call_free(call);
    } else if (call->job->named) {
        const cr_named *run = call->job->named;
        if (!call->job->folded_bytes) cr_named_empty(call->job);
        cr_metric_add(calls_ok, 1);
        cr_reply_values(call->conn, call->stream, call->job->partial.n, run->values, run->exact, run->op_count,
                        &timing);
        call_free(call);
    } else {
        answer(call, &call->job->partial, &timing);
    }
}

void cr_call_job_done(cr_server *server, cr_job *job) {
    cr_call *call = job->owner;
    if (!call) {
        cr_ticket ticket = {NULL, job->admitted_bytes, job->admitted_state};
        cr_admit_over(&server->admission, &ticket);
        cr_job_free(job);
        return;
    }
    call->job_done = true;
    if (job->error.code != CR_OK)
        cr_call_fail(call, &job->error);
    else if (!cr_call_measured(call))
        return;
    else if (job->axis)
        cr_outputs_send(call); /* answers when the last of them is out */
    else
        cr_call_answer_job(call);
}
