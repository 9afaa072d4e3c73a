/* take: what the daemon says of calls: every answer, status and credit finds its call here. The daemon is not trusted: numbers, types
 * and the shape of every answer are checked, and what does not fit ends the connection.
 *
 * Thread: the one that uses the connection. Owner: the bytes stay in the connection's buffer; values are copied. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/call/beside.h"
#include "client/lib/call/call.h"
#include "client/lib/call/keyed.h"
#include "client/lib/call/regions.h"
#include "client/lib/error.h"
#include "kernels/core/axis.h"

static bool value_fits(uint32_t dtype, uint32_t len) {
    if (dtype == CR_BIGINT) return len >= 9 && len <= CR_WIRE_VALUE_BYTES;
    return len != 0 && len == cr_dtype_size((cr_dtype)dtype);
}

/* Whether an answer is of the type that was asked for. An exact sum of integers that no 64 bits hold is a wider one. */
static bool type_fits(const cured_call *call, cr_op op, uint32_t dtype) {
    const cr_finish_opts opts = {.result_dtype = (cr_dtype)call->request.reduce.result_dtype};
    cr_dtype asked = cr_axis_dtype(op, (cr_dtype)call->input_dtype, &opts);
    bool grows = cr_op_grows(op) && opts.result_dtype == CR_DTYPE_NONE && cr_dtype_kind(asked) != CR_KIND_FLOAT;
    return call->input_dtype == 0 || dtype == (uint32_t)asked || (grows && dtype == CR_BIGINT);
}

/* Copies one op's answer; a sentence when it is none. */
static const char *take_value(const cured_call *call, struct cured_value *v, const cr_wire_op_result *r) {
    uint8_t input_dtype = call->input_dtype;
    if (r->op != v->op) return "the answer is to another op than asked for";
    v->status = r->status <= CR_STATUS_MAX ? (cr_status)r->status : CR_UNKNOWN;
    if (r->status != 0) {
        v->message = r->message[0] != '\0' ? strdup(r->message) : NULL;
        return NULL;
    }
    if (!type_fits(call, (cr_op)v->op, r->dtype)) return "a value is not of the type asked for";
    if (!value_fits(r->dtype, r->value_len)) return "the length of a value does not belong to its type";
    if (r->dtype == CR_BOOL && r->value[0] > 1) return "a bool is neither 0 nor 1";
    if (r->at_len != 0 && (!cr_op_is_index((cr_op)v->op) || r->at_len != cr_dtype_size((cr_dtype)input_dtype)))
        return "the length of an element does not belong to its type";
    v->dtype = (uint8_t)r->dtype;
    v->len = r->value_len;
    memcpy(v->bytes, r->value, sizeof v->bytes);
    v->at_dtype = input_dtype;
    v->at_len = r->at_len;
    v->inexact = r->inexact;
    memcpy(v->at, r->at, sizeof v->at);
    return NULL;
}

/* Whether a program finds the element in its array. Partials may be of any place in a whole. */
static bool index_fits(const cured_call *call, const struct cured_value *v, uint64_t count) {
    uint64_t index;
    if (v->status != CR_OK || call->request.kind == CR_CALL_MERGE) return true;
    if (!cr_op_is_index((cr_op)v->op)) return true;
    memcpy(&index, v->bytes, sizeof index);
    if (call->mask.kind != CR_MASK_NONE) count = call->mask_count;
    return index - call->request.reduce.first < count;
}

/* One value for each op, or a sentence. */
static const char *take_values(cured_call *call, const cr_wire_result *r) {
    if (r->result_count != call->value_count) return "it has another number of answers than ops were asked for";
    for (uint32_t i = 0; i < r->result_count; i++) {
        const char *wrong = take_value(call, &call->values[i], &r->results[i]);
        if (wrong != NULL) return wrong;
        if (!index_fits(call, &call->values[i], r->count)) return "an index is of no element of the input";
    }
    return NULL;
}

/* What is wrong with an answer to so many elements, or NULL. Those of partials and to the end of a file only the daemon counts. */
static const char *check_count(const cured_call *call, uint64_t count) {
    const cr_wire_reduce *r = &call->request.reduce;
    bool streams = call->kind == KIND_BUFFER || call->kind == KIND_STREAM;
    if ((streams || cr_cl_beside_sends(call)) && !call->end_sent) return "it came before the end of the input";
    if (call->request.kind == CR_CALL_MERGE || (!streams && !r->length_known)) return NULL;
    uint64_t asked = streams ? call->handed / cr_dtype_size((cr_dtype)r->dtype) : r->length;
    if (call->geometry == CR_GEOMETRY_OFFSETS) asked = call->span;
    const bool masked = call->mask.kind != CR_MASK_NONE && call->geometry == CR_GEOMETRY_WHOLE;
    return count == asked || (masked && count < asked) ? NULL : "it is of another number of elements than asked for";
}

/* False: no memory, and the call is done. */
static bool take_partial(cured_call *call, const cr_wire_result *r) {
    call->partial = malloc(r->partial_len);
    if (call->partial == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the partial");
        return false;
    }
    memcpy(call->partial, r->partial, r->partial_len);
    call->partial_bytes = r->partial_len;
    return true;
}

/* *error says what is wrong with the answer. */
static cr_status bad_result(cr_error *error) {
    const cr_error detail = *error;
    return cr_cl_broken(error, "bad RESULT", detail.text);
}

static cr_status take_reduced(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    cr_wire_result r;
    if (cr_wire_unpack_result(in, len, &r, error) != CR_OK) return bad_result(error);
    const char *wrong = check_count(call, r.count);
    const bool good = wrong == NULL, keyed = cr_cl_keyed_asks(call),
               partial = call->request.reduce.want_partial && !keyed;
    if (good && call->array != NULL)
        wrong = cr_cl_array_check_end(call, &r);
    else if (good && keyed)
        wrong = cr_cl_keyed_check_end(call, &r);
    else if (good && !partial)
        wrong = take_values(call, &r);
    else if (good && (r.partial == NULL || r.partial_len == 0 || r.partial_len > CURED_PARTIAL_BYTES))
        wrong = "the partial is missing, or longer than its limit";
    if (wrong != NULL) return cr_cl_broken(error, "bad RESULT", wrong);
    if (partial && !take_partial(call, &r)) return CR_OK;
    call->count = r.count;
    call->timing = (cured_timing){r.timing.queue_ns, r.timing.run_ns, r.timing.total_ns};
    cr_cl_call_finish(call, CR_OK, 0, "");
    return CR_OK;
}

static cr_status take_part(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    cr_wire_part part;
    if (cr_wire_unpack_part(in, len, &part, error) != CR_OK) return bad_result(error);
    const bool of_array = call->array != NULL;
    const char *wrong =
        of_array ? cr_cl_array_take(call, &part) : cr_cl_keyed_take(call, &part); /* may free the call */
    if (wrong == NULL) return CR_OK;
    return cr_cl_broken(error, of_array ? "bad part of an array" : "bad part of a partial", wrong);
}

static cr_status take_registered(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    cr_wire_registered r;
    if (call->kind == KIND_REGISTER && cr_wire_unpack_registered(in, len, &r, error) != CR_OK) return bad_result(error);
    if (call->kind == KIND_REGISTER && call->region != NULL) cr_cl_region_is_open(call->region, &r);
    cr_cl_call_finish(call, CR_OK, 0, "");
    return CR_OK;
}

static cr_status take_result(cured_call *call, const cr_frame *f, const uint8_t *in, cr_error *error) {
    switch (call->kind) {
        case KIND_REGISTER:
        case KIND_UNREGISTER:
            return take_registered(call, in, f->length, error);
        case KIND_INFO:
        case KIND_STATS:
        case KIND_SLOW_LOG:
        case KIND_RELOAD:
        case KIND_CONFIG:
            return cr_cl_call_take_account(call, in, f->length, error) == CR_OK ? CR_OK : bad_result(error);
        case KIND_BUFFER:
        case KIND_FD:
        case KIND_STREAM:
        case KIND_REGION:
        case KIND_PING: /* which has no number: a daemon cannot name it */
            break;
    }
    if (!(f->flags & CR_FLAG_END)) return take_part(call, in, f->length, error);
    return take_reduced(call, in, f->length, error);
}

static cr_status take_status(cured_call *call, const cr_frame *f, const uint8_t *in, cr_error *error) {
    cr_wire_status s;
    cr_error e;
    if (cr_wire_unpack_status(in, f->length, &s, &e) != CR_OK) return cr_cl_broken(error, "bad STATUS", e.text);
    if (call == NULL) return CR_OK;
    /* Nobody cancels a reduction but this side: the daemon says so of one whose region was not registered in time. */
    bool late = call->kind == KIND_REGION && s.code == CR_CANCELLED;
    if (late) s.code = CR_DEADLINE_EXCEEDED;
    bool lacks_region = late || (call->kind == KIND_REGION && s.code == CR_NOT_FOUND);
    const cr_error *why = lacks_region ? cr_cl_regions_error(call) : NULL;
    if (s.code == CR_OK) return cr_cl_broken(error, "STATUS OK without a result", "");
    if (why != NULL) /* the call crossed with the refusal of its region, which says more */
        cr_cl_call_failed(call, why->code, 0, why->text);
    else
        cr_cl_call_failed(call, s.code, s.retry_after_ms, s.message);
    return CR_OK;
}

static cr_status take_progress(cured_call *call, const cr_frame *f, const uint8_t *in, cr_error *error) {
    cr_wire_progress p;
    cr_error e;
    if (cr_wire_unpack_progress(in, f->length, &p, &e) != CR_OK) return cr_cl_broken(error, "bad PROGRESS", e.text);
    if (call != NULL && call->on_progress != NULL)
        call->on_progress(call, p.bytes_done, p.bytes_total, call->user); /* may cancel or free it */
    return CR_OK;
}

static cr_status take_credit(cured_call *call, const cr_frame *f, const uint8_t *in, cr_error *error) {
    uint64_t bytes;
    cr_error e;
    if (cr_wire_unpack_credit(in, f->length, &bytes, &e) != CR_OK) return cr_cl_broken(error, "bad CREDIT", e.text);
    if (call == NULL) return CR_OK;
    call->credit = bytes > UINT64_MAX - call->credit ? UINT64_MAX : call->credit + bytes;
    cr_cl_call_more(call);
    return CR_OK;
}

static void take_pong(cr_cl_calls *calls, const cr_frame *f, const uint8_t *in) {
    uint64_t id;
    if (f->length != sizeof id) return;
    memcpy(&id, in, sizeof id);
    if (id == 0 || id > calls->last_ping) return; /* no PING of ours: not worth a walk through all calls */
    for (cr_list *l = calls->all.next; l != &calls->all; l = l->next) {
        cured_call *call = cr_container(l, cured_call, all);
        if (call->kind != KIND_PING || call->state != CALL_ACTIVE || call->ping_id != id) continue;
        cr_cl_call_finish(call, CR_OK, 0, "");
        return;
    }
}

/* Whether more of the answer follows it. Of a call that is over nobody knows. */
static bool ends(const cr_frame *f, const cured_call *call) {
    if (f->flags & CR_FLAG_END) return true;
    const bool in_parts = call == NULL || call->array != NULL || cr_cl_keyed_asks(call);
    return f->type == CR_FRAME_RESULT ? in_parts : f->type != CR_FRAME_STATUS;
}

cr_status cr_cl_calls_take(cr_cl_calls *calls, const cr_frame *f, const uint8_t *in, cr_error *error) {
    if (f->stream > calls->last_stream)
        return cr_cl_broken(error, "a frame for a call that was never made", cr_frame_name(f->type));
    cured_call *call = cr_cl_call_lookup(calls, f->stream);
    if (!ends(f, call)) return cr_cl_broken(error, "an answer in more than one part", cr_frame_name(f->type));
    switch ((cr_frame_type)f->type) {
        case CR_FRAME_RESULT:
            return call != NULL ? take_result(call, f, in, error) : CR_OK;
        case CR_FRAME_STATUS:
            return take_status(call, f, in, error);
        case CR_FRAME_PROGRESS:
            return take_progress(call, f, in, error);
        case CR_FRAME_CREDIT:
            return take_credit(call, f, in, error);
        case CR_FRAME_PONG:
            take_pong(calls, f, in);
            return CR_OK;
        case CR_FRAME_WELCOME: /* the connection's own */
        case CR_FRAME_PING:
        case CR_FRAME_HELLO: /* cr_frame_get takes none of these from a daemon */
        case CR_FRAME_CALL:
        case CR_FRAME_DATA:
        case CR_FRAME_CANCEL:
            return CR_OK;
    }
    return CR_OK;
}

cr_status cr_cl_calls_take_long(const cr_cl_calls *calls, const cr_frame *f, cured_call **of, cr_error *error) {
    const cured_call *call = *of = cr_cl_call_lookup(calls, f->stream);
    bool asked = call == NULL || call->array != NULL || call->request.reduce.want_partial;
    if (f->type == CR_FRAME_RESULT && f->stream <= calls->last_stream && asked) return CR_OK;
    return cr_cl_broken(error, "an answer is longer than its limit", cr_frame_name(f->type));
}
