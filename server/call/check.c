/* check: the checks. Thread: the loop's. Owner: the call. */
#include "server/call/check.h"

#include "engine/job_axis.h"
#include "kernels/core/ask.h"
#include "kernels/core/keyed.h"
#include "kernels/ladder/ladder.h"
#include "server/call/beside.h"
#include "server/call/block.h"
#include "server/call/ranked.h"

typedef unsigned long long ull;

cr_geometry cr_call_geometry(const cr_call *call) { return call->geometry; }

uint64_t cr_call_answers(const cr_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_wire_beside *keys;
    const cr_job_axis *merged = call->request.kind == CR_CALL_MERGE && call->job ? call->job->axis : NULL;
    if (merged) return merged->spec.shape.outer;
    switch (call->geometry) {
        case CR_GEOMETRY_AXIS:
            return r->outer * r->inner;
        case CR_GEOMETRY_OFFSETS:
            return cr_beside_of(call, CR_BESIDE_SEGMENTS)->asked.count - 1;
        case CR_GEOMETRY_KEYS:
            keys = &cr_beside_of(call, CR_BESIDE_KEYS)->asked;
            return keys->groups * keys->columns;
        case CR_GEOMETRY_WHOLE:
            break;
    }
    return 1;
}

const char *cr_call_asks(const cr_call *call) {
    static const char *const asks[] = {"it asks", "axis: its shape asks", "offsets: they ask", "keys: they ask"};
    return asks[call->geometry];
}

static cr_geometry geometry_of(const cr_wire_reduce *r) {
    return r->has_keys       ? CR_GEOMETRY_KEYS
           : r->has_segments ? CR_GEOMETRY_OFFSETS
           : r->has_axis     ? CR_GEOMETRY_AXIS
                             : CR_GEOMETRY_WHOLE;
}

/* What is asked, as kernels/core sees it. */
static cr_ask ask_of(const cr_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    return (cr_ask){.dtype = call->dtype,
                    .ops = r->ops,
                    .op_count = r->op_count,
                    .geometry = call->geometry,
                    .shape = {r->outer, r->n, r->inner},
                    .statuses = r->statuses,
                    .partial = r->want_partial,
                    .folded = call->request.kind == CR_CALL_MERGE,
                    .unplaced = r->unplaced,
                    .masked = r->has_mask,
                    .rereads = call->request.kind == CR_CALL_REDUCE,
                    .block = call->block != NULL,
                    .second = r->has_second,
                    .first = r->first,
                    .finish = call->finish};
}

cr_status cr_check_ops(cr_call *call, cr_error *error) {
    cr_needs needs;
    cr_ask ask = ask_of(call);
    cr_status status = cr_ask_ops(&ask, &needs, error);
    call->families = needs.families;
    call->wants = needs.wants;
    return status;
}

static cr_status check_outputs(const cr_call *call, cr_error *error) {
    if (!call->request.reduce.outputs) return CR_OK;
    if (call->request.reduce.want_partial)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs: a partial is not written; leave out one of them");
    if (call->geometry != CR_GEOMETRY_WHOLE) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "outputs: only arrays of answers are written; give axis, segments or keys");
}

static cr_status check_length(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    size_t size = cr_dtype_size(call->dtype);
    bool stream = r->source == CR_SOURCE_STREAM;
    if (stream && r->length_known && r->length % size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "bytes: %llu is not a multiple of %zu, the size of %s",
                       (ull)r->length, size, cr_dtype_name(call->dtype));
    uint64_t expected = r->outer * r->n * r->inner; /* cr_shape_check came before */
    if (r->has_axis && r->length_known && (stream ? r->length / size : r->length) != expected)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: its shape has %llu elements, the input %llu", (ull)expected,
                       (ull)(stream ? r->length / size : r->length));
    const uint64_t block = call->block ? call->block->at.count : 0;
    if (call->block && r->length_known && (stream ? r->length / size : r->length) != block)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: the block has %llu elements, the input %llu", (ull)block,
                       (ull)(stream ? r->length / size : r->length));
    return CR_OK;
}

cr_status cr_check_finish(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (r->nan > CR_NAN_SKIP) return cr_fail(error, CR_INVALID_ARGUMENT, "nan: %u is not a policy", r->nan);
    if (r->overflow > CR_OVERFLOW_WRAP)
        return cr_fail(error, CR_INVALID_ARGUMENT, "overflow: %u is not a rule", r->overflow);
    call->finish = (cr_finish_opts){.nan = (cr_nan_policy)r->nan,
                                    .overflow = (cr_overflow)r->overflow,
                                    .result_dtype = (cr_dtype)r->result_dtype,
                                    .ddof = r->ddof};
    return CR_OK;
}

/* Of a partial by key the length shows at the end. */
static cr_status check_keyed(const cr_call *call, cr_error *error) {
    const cr_wire_beside *keys = &cr_beside_of(call, CR_BESIDE_KEYS)->asked;
    const cr_keyed of = {call->dtype, call->families, keys->groups, keys->columns, 0};
    const uint64_t most = call->calls->config->max_answer_bytes,
                   bytes = cr_keyed_most(&of, keys->count * keys->columns);
    if (call->request.reduce.statuses)
        return cr_fail(error, CR_INVALID_ARGUMENT, "statuses: they are for answers, and partial asks for none");
    if (bytes <= most) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "keys: their partial may come to have %llu bytes, which exceed max_answer_bytes, %llu; reduce some "
                   "groups at a time (drop leaves the others out)",
                   (ull)bytes, (ull)most);
}

/* Along an axis without elements few bytes, or none, can ask for any number of answers. */
static cr_status check_answers(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    uint64_t most = call->calls->config->max_answer_bytes, answers = cr_call_answers(call), width = 0;
    if (r->want_partial) return check_keyed(call, error);
    for (uint32_t i = 0; i < r->op_count; i++)
        width += cr_dtype_size(cr_axis_dtype((cr_op)r->ops[i], call->dtype, &call->finish)) + r->statuses;
    if (!width || answers <= most / width) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s for %llu answers of %llu bytes, which exceed max_answer_bytes, %llu",
                   cr_call_asks(call), (ull)answers, (ull)width, (ull)most);
}

/* first and axis, where they are given. */
static cr_status check_place(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (r->has_mask && r->want_partial && !r->unplaced && !r->has_layout)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: a partial under one has no position: set unplaced");
    if (r->has_keys && r->want_partial && !r->unplaced)
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: a partial by key has no position: set unplaced");
    cr_ask ask = ask_of(call);
    cr_status status = cr_ask_place(&ask, &(cr_needs){call->families, call->wants}, error);
    if (status == CR_OK && r->has_axis) status = cr_shape_check(&ask.shape, call->dtype, error);
    if (status == CR_OK) status = cr_beside_check(call, error);
    return status == CR_OK && ask.geometry != CR_GEOMETRY_WHOLE ? check_answers(call, error) : status;
}

/* The kernels know one answer a call, over the whole array, by the default rules. */
static cr_status check_options(const cr_wire_reduce *r, cr_error *error) {
    const char *other = r->has_axis                        ? "axis"
                        : r->has_mask                      ? "mask"
                        : r->has_segments                  ? "offsets"
                        : r->has_keys                      ? "keys"
                        : r->has_second                    ? "second"
                        : r->want_partial                  ? "partial"
                        : r->first                         ? "first"
                        : r->nan                           ? "nan"
                        : r->overflow                      ? "overflow"
                        : r->ddof                          ? "ddof"
                        : r->result_dtype != CR_DTYPE_NONE ? "result_dtype"
                                                           : NULL;
    return other ? cr_fail(error, CR_INVALID_ARGUMENT, "kernel: %s goes with no %s", r->kernel, other) : CR_OK;
}

/* A request that names a kernel is no reduction of the ordinary kind: its whole input goes to device memory, one kernel alone
 * folds it for each op, and the values come back finished, some of them inexact. In this order: the name (NOT_FOUND), ops and
 * type (UNIMPLEMENTED), options (INVALID_ARGUMENT), and whether there is a CUDA device (FAILED_PRECONDITION). */
static cr_status check_kernel(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_calls *calls = call->calls;
    if (!r->kernel[0]) return CR_OK;
    for (uint32_t i = 0; i < r->op_count; i++) {
        cr_status status = cr_ladder_check(r->kernel, (cr_op)r->ops[i], call->dtype, error);
        if (status != CR_OK) return status;
    }
    cr_status status = check_options(r, error);
    if (status != CR_OK) return status;
    if (r->source == CR_SOURCE_STREAM && r->length_known && r->length > calls->config->max_kernel_bytes)
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "kernel: %llu bytes exceed max_kernel_bytes, %llu; without a kernel's name there is no such limit",
            (ull)r->length, (ull)calls->config->max_kernel_bytes);
    if (calls->runs_kernels) return CR_OK;
    return cr_fail(error, CR_FAILED_PRECONDITION, "kernel: %s runs on a CUDA device, and there is none here: %s",
                   r->kernel, calls->lanes.reason);
}

cr_status cr_check_reduce(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    call->dtype = (cr_dtype)r->dtype;
    call->geometry = geometry_of(r);
    if (!cr_dtype_is_input(call->dtype))
        return cr_fail(error,
                       r->dtype > CR_DTYPE_INPUTS && r->dtype <= INT32_MAX ? CR_UNIMPLEMENTED : CR_INVALID_ARGUMENT,
                       "dtype: %u is not an input type of this version", r->dtype);
    cr_status status = cr_check_finish(call, error);
    if (status == CR_OK) status = cr_check_ops(call, error);
    if (status == CR_OK) status = cr_ranked_check(call, error);
    if (status == CR_OK) status = check_place(call, error);
    if (status == CR_OK) status = cr_ranked_check_block(call, error);
    if (status == CR_OK) status = check_outputs(call, error);
    if (status == CR_OK) status = check_kernel(call, error);
    return status == CR_OK ? check_length(call, error) : status;
}
