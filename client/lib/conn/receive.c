/* receive: reads in bulk, cuts into frames and hands each to the call it belongs to. The daemon is not trusted: lengths,
 * numbers and the shape of every answer are checked, and what does not fit ends the connection.
 *
 * Thread: the one that uses the connection. Owner: the bytes stay in the connection's buffer; values are copied. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/lib/internal.h"
#include "kernels/core/axis.h"

static void broken(cured_conn *conn, const char *what, const char *detail) {
    cr_error e;
    cr_fail(&e, CR_INTERNAL, "the daemon broke the protocol: %s%s%s", what, detail[0] != '\0' ? ": " : "", detail);
    cr_cl_conn_broken(conn, &e);
}

static void on_welcome(cured_conn *conn, const uint8_t *in, uint32_t len) {
    cr_wire_welcome w;
    cr_error e;
    if (cr_wire_unpack_welcome(in, len, &w, &e) != CR_OK) {
        broken(conn, "bad WELCOME", e.text);
        return;
    }
    if (w.version < CR_WIRE_VERSION_MIN || w.version > CR_WIRE_VERSION_MAX) {
        cr_fail(&e, CR_UNIMPLEMENTED, "the daemon speaks protocol version %u, this library %d to %d", w.version,
                CR_WIRE_VERSION_MIN, CR_WIRE_VERSION_MAX);
        cr_cl_conn_broken(conn, &e);
        return;
    }
    const cr_wire_limits *limits = &w.limits; /* 0: not told */
    if ((limits->credit_bytes != 0 && limits->credit_bytes < CR_CREDIT_INITIAL_BYTES) ||
        (limits->data_bytes != 0 && limits->data_bytes < CR_DATA_MAX_BYTES)) {
        broken(conn, "bad WELCOME", "credit_bytes or data_bytes is less than version 1 promises");
        return;
    }
    conn->welcomed = true;
    conn->attempt_deadline_ns = 0;
    conn->attempts = conn->failures = 0;
    conn->circuit_ns = 0;
    cr_cl_conn_watch(conn, cr_now_ns());
    memcpy(conn->server, w.server, sizeof conn->server);
    if (limits->credit_bytes != 0) conn->credit = limits->credit_bytes;
    conn->has_statuses = cr_wire_has_feature(w.features, w.feature_count, CR_FEATURE_STATUSES);
    conn->has_outputs = cr_wire_has_feature(w.features, w.feature_count, CR_FEATURE_OUTPUTS);
    cr_cl_calls_held(conn);
}

static bool value_fits(uint32_t dtype, uint32_t len) {
    if (dtype == CR_BIGINT) return len >= 9 && len <= CR_WIRE_VALUE_BYTES;
    return dtype >= CR_BOOL && dtype <= CR_I128 && len == cr_dtype_size((cr_dtype)dtype);
}

/* Whether an answer is of the type that was asked for. An exact sum of integers that no 64 bits hold is a wider one. */
static bool type_fits(const cured_call *call, cr_op op, uint32_t dtype) {
    const cr_finish_opts opts = {.result_dtype = (cr_dtype)call->request.reduce.result_dtype};
    cr_dtype asked = cr_axis_dtype(op, (cr_dtype)call->input_dtype, &opts);
    bool grows = cr_op_result(op) == CR_RESULT_EXACT && cr_op_closing(op) == CR_CLOSING_SUMS &&
                 opts.result_dtype == CR_DTYPE_NONE && cr_dtype_kind(asked) != CR_KIND_FLOAT;
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
    if (streams && !call->end_sent) return "it came before the end of the input";
    if (call->request.kind == CR_CALL_MERGE || (!streams && !r->length_known)) return NULL;
    uint64_t asked = streams ? call->handed / cr_dtype_size((cr_dtype)r->dtype) : r->length;
    return count == asked ? NULL : "it is of another number of elements than asked for";
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

static void on_reduced(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_wire_result r;
    cr_error e;
    if (cr_wire_unpack_result(in, len, &r, &e) != CR_OK) {
        broken(conn, "bad RESULT", e.text);
        return;
    }
    const char *wrong = check_count(call, r.count);
    bool good = wrong == NULL, partial = call->request.reduce.want_partial;
    if (good && call->array != NULL)
        wrong = cr_cl_array_check_end(call, &r);
    else if (good && !partial)
        wrong = take_values(call, &r);
    else if (good && (r.partial == NULL || r.partial_len == 0 || r.partial_len > CURED_PARTIAL_BYTES))
        wrong = "the partial is missing, or longer than its limit";
    if (wrong != NULL) {
        broken(conn, "bad RESULT", wrong);
        return;
    }
    if (partial && !take_partial(call, &r)) return;
    call->count = r.count;
    call->timing = (cured_timing){r.timing.queue_ns, r.timing.run_ns, r.timing.total_ns};
    cr_cl_call_finish(call, CR_OK, 0, "");
}

static void on_array_part(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_wire_part part;
    cr_error e;
    if (cr_wire_unpack_part(in, len, &part, &e) != CR_OK) {
        broken(conn, "bad RESULT", e.text);
        return;
    }
    const char *wrong = cr_cl_array_take(call, &part); /* may free the call */
    if (wrong != NULL) broken(conn, "bad part of an array", wrong);
}

/* The public form points into a copy of the wire's, in one piece of memory. */
struct info_block {
    cured_server_info info;
    cured_lane lanes[CR_WIRE_MAX_LANES];
    cured_counter counters[CR_WIRE_MAX_COUNTERS];
    cured_user users[CR_WIRE_MAX_USERS];
    cr_wire_info wire;
};

static cured_held held_of(const cr_wire_held *m) {
    return (cured_held){
#define CR_USE(name) .name = m->name,
#include "proto/use.def"
#undef CR_USE
    };
}

bool cr_cl_call_inform(cured_call *call, const cr_wire_info *info) {
    struct info_block *b = malloc(sizeof *b);
    if (b == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
        return false;
    }
    b->wire = *info;
    const cr_wire_info *w = &b->wire;
    for (uint32_t i = 0; i < w->lane_count; i++)
        b->lanes[i] =
            (cured_lane){w->lanes[i].name, w->lanes[i].device, w->lanes[i].workers, w->lanes[i].bytes_per_second};
    for (uint32_t i = 0; i < w->counter_count; i++)
        b->counters[i] = (cured_counter){w->counters[i].name, w->counters[i].value};
    for (uint32_t i = 0; i < w->user_count; i++)
        b->users[i] =
            (cured_user){w->users[i].name, w->users[i].own, held_of(&w->users[i].used), held_of(&w->users[i].limit)};
    b->info = (cured_server_info){
        .version = w->version,
        .backend = w->backend,
        .backend_reason = w->backend_reason,
        .uptime_ms = w->uptime_ms,
        .lane_count = w->lane_count,
        .counter_count = w->counter_count,
        .lanes = b->lanes,
        .counters = b->counters,
        .max_ops = w->limits.ops,
        .max_jobs_per_connection = w->limits.jobs_per_connection,
        .max_input_bytes = w->limits.input_bytes,
        .credit_bytes = w->limits.credit_bytes,
        .max_regions_per_connection = w->limits.regions_per_connection,
        .max_region_bytes = w->limits.region_bytes,
        .user_count = w->user_count,
        .users = b->users,
    };
    call->info = &b->info; /* first member: freed by this pointer */
    return true;
}
_Static_assert(offsetof(struct info_block, info) == 0, "call->info is the block that is freed");

static void on_info(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_error e;
    cr_wire_info info;
    if (cr_wire_unpack_info(in, len, &info, &e) != CR_OK)
        broken(conn, "bad RESULT", e.text);
    else if (cr_cl_call_inform(call, &info))
        cr_cl_call_finish(call, CR_OK, 0, "");
}

/* What cured_reloaded points at; its first member is what is freed. */
struct reloaded_block {
    cured_reloaded reloaded;
    const char *changed[CR_WIRE_MAX_OPTIONS], *restart[CR_WIRE_MAX_OPTIONS];
    cr_wire_reloaded wire;
};

static void on_reloaded(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_error e;
    struct reloaded_block *b = malloc(sizeof *b);
    if (b == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
        return;
    }
    if (cr_wire_unpack_reloaded(in, len, &b->wire, &e) != CR_OK) {
        free(b);
        broken(conn, "bad RESULT", e.text);
        return;
    }
    for (uint32_t i = 0; i < b->wire.changed_count; i++) b->changed[i] = b->wire.changed[i];
    for (uint32_t i = 0; i < b->wire.restart_count; i++) b->restart[i] = b->wire.restart[i];
    b->reloaded = (cured_reloaded){.changed_count = b->wire.changed_count,
                                   .restart_count = b->wire.restart_count,
                                   .changed = b->changed,
                                   .restart = b->restart};
    call->reloaded = &b->reloaded;
    cr_cl_call_finish(call, CR_OK, 0, "");
}
_Static_assert(offsetof(struct reloaded_block, reloaded) == 0, "call->reloaded is the block that is freed");

static void on_json(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_error e;
    if (cr_cl_call_tell(call, in, len, &e) != CR_OK) broken(conn, "bad RESULT", e.text);
}

static void on_region(cured_conn *conn, cured_call *call, const uint8_t *in, uint32_t len) {
    cr_wire_registered r;
    cr_error e;
    if (call->kind == KIND_REGISTER && cr_wire_unpack_registered(in, len, &r, &e) != CR_OK) {
        broken(conn, "bad RESULT", e.text);
        return;
    }
    if (call->kind == KIND_REGISTER) cr_cl_region_registered(call, &r);
    cr_cl_call_finish(call, CR_OK, 0, "");
}

static void on_status(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    cr_wire_status s;
    cr_error e;
    if (cr_wire_unpack_status(in, f->length, &s, &e) != CR_OK) {
        broken(conn, "bad STATUS", e.text);
        return;
    }
    if (f->stream == 0) {
        if (s.code == CR_UNAVAILABLE || s.code == CR_RESOURCE_EXHAUSTED || s.code == CR_DEADLINE_EXCEEDED) {
            cr_cl_conn_lost(conn, s.code == CR_DEADLINE_EXCEEDED ? CR_UNAVAILABLE : s.code, s.retry_after_ms,
                            s.message);
        } else {
            cr_fail(&e, s.code == CR_OK ? CR_UNKNOWN : s.code, "%s", s.message);
            cr_cl_conn_broken(conn, &e);
        }
        return;
    }
    cured_call *call = cr_cl_call_lookup(conn, f->stream);
    if (call == NULL) return;
    /* Nobody cancels a reduction but this side: the daemon says so of one whose region was not registered in time. */
    bool late = call->kind == KIND_REGION && s.code == CR_CANCELLED;
    if (late) s.code = CR_DEADLINE_EXCEEDED;
    bool lacks_region = late || (call->kind == KIND_REGION && s.code == CR_NOT_FOUND);
    const cr_error *why = lacks_region ? cr_cl_region_error(call) : NULL;
    if (s.code == CR_OK)
        broken(conn, "STATUS OK without a result", "");
    else if (why != NULL) /* the call crossed with the refusal of its region, which says more */
        cr_cl_call_failed(call, why->code, 0, why->text);
    else
        cr_cl_call_failed(call, s.code, s.retry_after_ms, s.message);
}

static void on_progress(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    cr_wire_progress p;
    cr_error e;
    cured_call *call = cr_cl_call_lookup(conn, f->stream);
    if (cr_wire_unpack_progress(in, f->length, &p, &e) != CR_OK)
        broken(conn, "bad PROGRESS", e.text);
    else if (call != NULL && call->on_progress != NULL)
        call->on_progress(call, p.bytes_done, p.bytes_total, call->user); /* may cancel or free it */
}

static void on_credit(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    uint64_t bytes;
    cr_error e;
    cured_call *call = cr_cl_call_lookup(conn, f->stream);
    if (cr_wire_unpack_credit(in, f->length, &bytes, &e) != CR_OK) {
        broken(conn, "bad CREDIT", e.text);
        return;
    }
    if (call == NULL) return;
    call->credit = bytes > UINT64_MAX - call->credit ? UINT64_MAX : call->credit + bytes;
    if (cr_list_empty(&call->queue) && cr_cl_call_next_frame(call)) cr_cl_call_enqueue(call);
}

static void on_pong(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    uint64_t id;
    if (f->length != sizeof id) return;
    memcpy(&id, in, sizeof id);
    if (id == 0 || id > conn->last_ping) return; /* no PING of ours: not worth a walk through all calls */
    for (cr_list *l = conn->calls.next; l != &conn->calls; l = l->next) {
        cured_call *call = cr_container(l, cured_call, all);
        if (call->kind != KIND_PING || call->state != CALL_ACTIVE || call->ping_id != id) continue;
        cr_cl_call_finish(call, CR_OK, 0, "");
        return;
    }
}

static void on_frame(cured_conn *conn, const cr_frame *f, const uint8_t *in) {
    if (!conn->welcomed && f->type != CR_FRAME_WELCOME && !(f->type == CR_FRAME_STATUS && f->stream == 0)) {
        broken(conn, "another frame before WELCOME", cr_frame_name(f->type));
        return;
    }
    if (f->stream > conn->last_stream) {
        broken(conn, "a frame for a call that was never made", cr_frame_name(f->type));
        return;
    }
    cured_call *call = cr_cl_call_lookup(conn, f->stream);
    bool part = f->type == CR_FRAME_RESULT && (call == NULL || call->array != NULL);
    if ((f->type == CR_FRAME_RESULT || (f->type == CR_FRAME_STATUS && f->stream != 0)) && !(f->flags & CR_FLAG_END) &&
        !part) {
        broken(conn, "an answer in more than one part", cr_frame_name(f->type));
        return;
    }
    switch ((cr_frame_type)f->type) {
        case CR_FRAME_WELCOME:
            if (conn->welcomed)
                broken(conn, "WELCOME twice", "");
            else
                on_welcome(conn, in, f->length);
            break;
        case CR_FRAME_RESULT:
            if (call != NULL && (call->kind == KIND_REGISTER || call->kind == KIND_UNREGISTER))
                on_region(conn, call, in, f->length);
            else if (call != NULL && call->kind == KIND_RELOAD)
                on_reloaded(conn, call, in, f->length);
            else if (call != NULL && call->kind == KIND_INFO)
                on_info(conn, call, in, f->length);
            else if (call != NULL &&
                     (call->kind == KIND_STATS || call->kind == KIND_SLOW_LOG || call->kind == KIND_CONFIG))
                on_json(conn, call, in, f->length);
            else if (call != NULL && !(f->flags & CR_FLAG_END))
                on_array_part(conn, call, in, f->length);
            else if (call != NULL)
                on_reduced(conn, call, in, f->length);
            break;
        case CR_FRAME_STATUS:
            on_status(conn, f, in);
            break;
        case CR_FRAME_PROGRESS:
            on_progress(conn, f, in);
            break;
        case CR_FRAME_CREDIT:
            on_credit(conn, f, in);
            break;
        case CR_FRAME_PING:
            if (!cr_cl_send_control(conn, CR_FRAME_PONG, in, f->length)) broken(conn, "too many PINGs at once", "");
            break;
        case CR_FRAME_PONG:
            on_pong(conn, f, in);
            break;
        case CR_FRAME_HELLO: /* cr_frame_get takes none of these from a daemon */
        case CR_FRAME_CALL:
        case CR_FRAME_DATA:
        case CR_FRAME_CANCEL:
            break;
    }
}

/* A frame longer than a head may be an array's or a partial's that was asked for, or belong to a call that is over. True: it can be
 * read; otherwise it is skipped, or the connection has ended. */
static bool take_long(cured_conn *conn, const cr_frame *f) {
    cured_call *call = cr_cl_call_lookup(conn, f->stream);
    bool asked = call == NULL || call->array != NULL || call->request.reduce.want_partial;
    if (f->type != CR_FRAME_RESULT || f->stream > conn->last_stream || !asked) {
        broken(conn, "an answer is longer than its limit", cr_frame_name(f->type));
        return false;
    }
    if (call != NULL && conn->in == conn->small) {
        uint8_t *large = malloc(LARGE_IN_BYTES);
        if (large != NULL) {
            memcpy(large, conn->small, conn->in_len);
            conn->in = large;
            conn->in_bytes = LARGE_IN_BYTES;
        } else {
            cr_cl_call_abandon(call, CR_RESOURCE_EXHAUSTED, "no memory for its answer");
            call = NULL;
        }
    }
    if (call == NULL) conn->skip = f->length;
    return call != NULL;
}

/* Handles every whole frame in the buffer; what is left of the next one moves to its start. */
static void cut_frames(cured_conn *conn) {
    size_t pos = 0;
    while (conn->state == CONN_OPEN) {
        size_t left = conn->in_len - pos;
        if (conn->skip != 0) {
            size_t n = conn->skip < left ? (size_t)conn->skip : left;
            conn->skip -= n;
            pos += n;
            left -= n;
        }
        if (left < CR_FRAME_HEADER_BYTES) break;
        cr_frame f;
        cr_error e;
        bool skip;
        if (cr_frame_get(conn->in + pos, false, &f, &skip, &e) != CR_OK) {
            broken(conn, "bad frame", e.text);
            return;
        }
        if (skip) {
            conn->skip = f.length;
            pos += CR_FRAME_HEADER_BYTES;
            continue;
        }
        if (f.length > CR_HEAD_MAX_BYTES && !take_long(conn, &f)) {
            pos += CR_FRAME_HEADER_BYTES;
            continue;
        }
        if (left - CR_FRAME_HEADER_BYTES < f.length) break;
        on_frame(conn, &f, conn->in + pos + CR_FRAME_HEADER_BYTES);
        cr_cl_fork_check(conn); /* a callback may have forked */
        pos += CR_FRAME_HEADER_BYTES + f.length;
    }
    if (conn->state != CONN_OPEN) return; /* the buffer was emptied */
    conn->in_len -= pos;
    if (conn->in_len != 0 && pos != 0) memmove(conn->in, conn->in + pos, conn->in_len);
}

bool cr_cl_receive_once(cured_conn *conn) {
    ssize_t n;
    uint8_t *to = conn->in + conn->in_len;
    const size_t room = conn->in_bytes - conn->in_len;
    do n = conn->tls != NULL ? cr_cl_tls_recv(conn, to, room) : recv(conn->fd, to, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        conn->moved = true;
        conn->in_len += (size_t)n;
        conn->came_ns = cr_now_ns(); /* one time for all answers that came together */
        cut_frames(conn);
        conn->came_ns = 0;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    char text[CR_ERROR_TEXT];
    if (n == 0)
        snprintf(text, sizeof text, "the daemon closed the connection");
    else
        snprintf(text, sizeof text, "the connection to the daemon was lost: %s",
                 cr_cl_tls_why(conn) != NULL ? cr_cl_tls_why(conn) : strerror(errno));
    const bool distrust = n < 0 && cr_cl_tls_shakes(conn) && cr_cl_tls_why(conn) != NULL;
    cr_cl_conn_lost(conn, distrust ? CR_UNAUTHENTICATED : CR_UNAVAILABLE, 0, text);
    return true;
}
