/* record: the one place where requests are counted: calls at their end, and what needs no call.
 *
 * Thread: the loop's. Owner: the call; the stats copy what they keep. */
#include "base/clock.h"
#include "base/metrics.h"
#include "server/call/call.h"

/* Each use has a reason of its name. */
static cr_reason reason_of_use(cr_use use) {
    switch (use) {
#define CR_USE(name)    \
    case CR_USE_##name: \
        return CR_REASON_##name;
#include "proto/use.def"
#undef CR_USE
        case CR_USES:
            break;
    }
    return CR_REASON_memory;
}

/* What was short. CR_REASONS: nothing; it failed on its way. */
static cr_reason reason_of(cr_calls *calls, cr_status code) {
    const cr_use use = calls->admission.short_of;
    switch (code) {
        case CR_RESOURCE_EXHAUSTED:
            calls->admission.short_of = CR_USES;
            return reason_of_use(use);
        case CR_UNAVAILABLE:
            return calls->draining ? CR_REASON_draining : CR_REASONS;
        case CR_UNAUTHENTICATED:
        case CR_PERMISSION_DENIED:
            return CR_REASON_credential;
        case CR_INVALID_ARGUMENT:
        case CR_UNIMPLEMENTED:
        case CR_NOT_FOUND:
        case CR_ALREADY_EXISTS:
        case CR_FAILED_PRECONDITION:
            return CR_REASON_request;
        default:
            return CR_REASONS;
    }
}

cr_method cr_call_method(const cr_call *call) {
    static const uint8_t methods[] = {
        [CR_CALL_REDUCE] = CR_METHOD_reduce,         [CR_CALL_INFO] = CR_METHOD_info,
        [CR_CALL_MERGE] = CR_METHOD_merge,           [CR_CALL_REGISTER] = CR_METHOD_register,
        [CR_CALL_UNREGISTER] = CR_METHOD_unregister, [CR_CALL_STATS] = CR_METHOD_stats,
        [CR_CALL_SLOW_LOG] = CR_METHOD_slow_log,     [CR_CALL_RELOAD] = CR_METHOD_reload,
        [CR_CALL_CONFIG] = CR_METHOD_config};
    if (call->method) return (cr_method)call->method;
    return call->request.kind < sizeof methods ? (cr_method)methods[call->request.kind] : CR_METHOD_unknown;
}

/* A small array in one frame is as good as inline. */
static cr_given given_of(const cr_call *call) {
    const bool in_grpc = call->peer->spoken == CR_SPOKEN_grpc && call->method != CR_METHOD_reduce_stream;
    if (in_grpc && call->request.kind == CR_CALL_REDUCE) return CR_GIVEN_inline;
    switch (call->request.reduce.source) {
        case CR_SOURCE_DESCRIPTOR:
            return CR_GIVEN_descriptor;
        case CR_SOURCE_REGION:
        case CR_SOURCE_REGIONS:
            return CR_GIVEN_region;
        case CR_SOURCE_INLINE:
            return CR_GIVEN_inline;
        case CR_SOURCE_STREAM:
            break;
    }
    return call->on_loop && call->received <= CR_INLINE_BYTES ? CR_GIVEN_inline : CR_GIVEN_stream;
}

static void fill_stages(const cr_call *call, const cr_answer *answer, uint64_t now_ns, uint64_t *stages) {
    const cr_wire_timing *timing = answer ? answer->timing : NULL;
    for (uint32_t i = 0; i < CR_STAGES; i++) stages[i] = CR_NO_STAGE;
    stages[CR_STAGE_total] = now_ns - call->arrived_ns;
    if (call->closed_ns && !call->on_loop) stages[CR_STAGE_receive] = call->closed_ns - call->arrived_ns;
    if (!timing) return;
    stages[CR_STAGE_queue] = timing->queue_ns;
    stages[CR_STAGE_run] = timing->run_ns;
    if (call->job) stages[CR_STAGE_send] = now_ns - call->job->done_ns;
}

static uint32_t lanes_of(const cr_call *call) {
    return call->job ? atomic_load_explicit(&call->job->lanes, memory_order_relaxed) : 0;
}

static uint64_t folded_bytes_of(const cr_call *call) {
    if (call->on_loop) return call->received;
    return call->job && call->input == CR_FOLDED ? call->job->folded_bytes : 0;
}

/* What only a call with an array has. */
static void fill_array(const cr_call *call, cr_record *r) {
    const cr_wire_reduce *asked = &call->request.reduce;
    r->given = given_of(call);
    r->dtype = cr_dtype_is_input(call->dtype) ? call->dtype : CR_DTYPE_NONE;
    for (uint32_t i = 0; i < asked->op_count; i++) r->ops |= cr_ops_of(asked->ops[i]);
    r->bytes = r->given == CR_GIVEN_descriptor || r->given == CR_GIVEN_region ? folded_bytes_of(call) : call->received;
    r->bytes += call->pieces.bytes;
    r->lanes = call->pieces.lanes | lanes_of(call);
    r->on_loop = call->on_loop || call->merge || call->upload.fed;
}

static void end(cr_call *call, const cr_error *error, cr_status code, const cr_answer *answer) {
    const uint64_t now_ns = call->on_loop ? call->calls->last_ns : cr_now_ns();
    cr_record r = {.peer = call->peer, .method = cr_call_method(call), .refused = CR_REASONS, .code = code};
    r.ended_ms = now_ns / 1000000;
    if (error) {
        r.refused = call->refused ? (cr_reason)call->refused : reason_of(call->calls, code);
        r.why = error->text;
    }
    if (call->request.kind == CR_CALL_REDUCE || call->request.kind == CR_CALL_MERGE) fill_array(call, &r);
    fill_stages(call, answer, now_ns, r.stages);
    cr_stats_end(&call->calls->stats, &r);
}

/* Most calls. False: it is to be looked at. */
static bool answer_small(const cr_call *call, const cr_answer *answer) {
    const cr_wire_reduce *asked = &call->request.reduce;
    const bool streamed = call->method == CR_METHOD_reduce_stream || given_of(call) != CR_GIVEN_inline;
    cr_ops ops = 0;
    for (uint32_t i = 0; i < asked->op_count; i++) ops |= (cr_ops)1 << asked->ops[i]; /* checked */
    return !streamed && cr_stats_small_end(&call->calls->stats, call->peer->owner, call->calls->last_ns, answer->timing,
                                           call->dtype, ops, call->received);
}

/* A piece of a call is over: what it did is the call's. */
static void add_piece(cr_call *whole, const cr_call *piece, const cr_answer *answer) {
    const cr_wire_timing *timing = answer ? answer->timing : NULL;
    const uint64_t begun_ns = timing ? piece->arrived_ns + timing->queue_ns : 0;
    whole->pieces.bytes += folded_bytes_of(piece);
    whole->pieces.lanes |= lanes_of(piece);
    if (begun_ns && (!whole->pieces.begun_ns || begun_ns < whole->pieces.begun_ns)) whole->pieces.begun_ns = begun_ns;
}

void cr_record_answered(cr_call *call, const cr_answer *answer) {
    const bool failed = answer && answer->kind == CR_ANSWER_FAILED;
    if (call->whole) {
        add_piece(call->whole, call, answer);
        return;
    }
    if (failed)
        cr_metric_add(calls_failed, 1);
    else if (answer)
        cr_metric_own_add(call->calls->counts, calls_ok, 1);
    if (call->on_loop && answer && !failed && answer_small(call, answer)) return;
    end(call, failed ? answer->error : NULL, failed ? answer->error->code : answer ? CR_OK : CR_CANCELLED, answer);
}

void cr_record_refused(cr_call *call, const cr_error *error) {
    if (call->whole) return;
    cr_metric_add(calls_failed, 1);
    end(call, error, error->code, NULL);
}

void cr_calls_count_request(cr_calls *calls, const cr_peer *peer, cr_method method, uint64_t arrived_ms,
                            const cr_error *error) {
    const uint64_t now_ms = cr_now_ms();
    cr_record r = {.peer = peer, .method = method, .refused = CR_REASONS, .ended_ms = now_ms};
    for (uint32_t i = 0; i < CR_STAGES; i++) r.stages[i] = CR_NO_STAGE;
    r.stages[CR_STAGE_total] = (now_ms - arrived_ms) * 1000000;
    if (error) {
        cr_metric_add(calls_failed, 1);
        r.code = error->code;
        r.refused = reason_of(calls, error->code);
        r.why = error->text;
    }
    cr_stats_end(&calls->stats, &r);
}
