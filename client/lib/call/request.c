/* request: the functions that start calls: arguments are checked here, once, before anything is queued.
 *
 * Thread: the one that uses the connection. Owner: the program owns the call it gets. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/call/call.h"
#include "client/lib/call/keyed.h"
#include "client/lib/call/outputs.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/partial.h"
#include "kernels/core/dtype.h"

enum { DEFAULT_RETRY_WAIT_MS = 10000 };

static void set_times(cr_cl_calls *calls, cured_call *call, uint32_t timeout_ms) {
    call->start_ns = cr_now_ns();
    if (timeout_ms == 0) return;
    call->deadline_ns = call->start_ns + timeout_ms * UINT64_C(1000000);
    cr_cl_calls_wake_at(calls, call->deadline_ns);
}

cured_call *cr_cl_new_call(cr_cl_calls *calls, call_kind kind, size_t op_count, const cured_options *o,
                           cr_error *error) {
    cr_cl_fork_check(calls);
    if (calls->dead != NULL) {
        *error = *calls->dead;
        return NULL;
    }
    if (calls->last_stream == UINT32_MAX) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "this connection has used all its stream numbers: connect again");
        return NULL;
    }
    cured_call *call = calloc(1, sizeof *call + op_count * sizeof call->values[0]);
    if (call == NULL) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
        return NULL;
    }
    call->calls = calls;
    call->kind = kind;
    call->fd = -1;
    call->declared = call->elements = UINT64_MAX;
    call->answers = 1;
    call->value_count = (uint32_t)op_count;
    call->retries_left = o->retries;
    call->max_wait_ms = o->max_retry_wait_ms != 0 ? o->max_retry_wait_ms : DEFAULT_RETRY_WAIT_MS;
    call->on_done = o->on_done;
    call->on_progress = o->on_progress;
    call->user = o->user;
    call->request.progress_ms = o->on_progress != NULL ? o->progress_ms : 0;
    call->request.kind = kind == KIND_INFO       ? CR_CALL_INFO
                         : kind == KIND_STATS    ? CR_CALL_STATS
                         : kind == KIND_SLOW_LOG ? CR_CALL_SLOW_LOG
                         : kind == KIND_RELOAD   ? CR_CALL_RELOAD
                         : kind == KIND_CONFIG   ? CR_CALL_CONFIG
                                                 : CR_CALL_REDUCE;
    set_times(calls, call, o->timeout_ms);
    cr_list_init(&call->queue);
    cr_list_append(&calls->all, &call->all);
    return call;
}

/* A call that asks for ops: what reduce and merge have in common. */
static cured_call *new_ops_call(cr_cl_calls *calls, call_kind kind, const cured_op *ops, size_t op_count,
                                const cured_options *o, cr_error *error) {
    if (cr_cl_check_ops(ops, op_count, error) != CR_OK) return NULL;
    cured_call *call = cr_cl_new_call(calls, kind, op_count, o, error);
    if (call == NULL) return NULL;
    cr_wire_reduce *r = &call->request.reduce;
    r->nan = (uint32_t)o->nan;
    r->overflow = (uint32_t)o->overflow;
    r->result_dtype = (uint32_t)o->result_dtype;
    r->ddof = o->ddof;
    r->want_partial = o->partial;
    r->source = CR_SOURCE_STREAM;
    r->op_count = (uint32_t)op_count;
    for (size_t i = 0; i < op_count; i++) {
        r->ops[i] = (uint32_t)ops[i];
        call->values[i].op = (uint8_t)ops[i];
    }
    return call;
}

static cr_status set_offsets(cured_call *call, const cured_options *o, cr_error *error) {
    const cured_offsets *given = o->offsets;
    if (o->axis != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: they go with no axis; leave out one of them");
    call->geometry = CR_GEOMETRY_OFFSETS;
    cr_status status = cr_cl_array_check(call, o, error);
    if (status == CR_OK)
        status = cr_offsets_make(&call->offsets, given->data, given->count, (cr_dtype)given->dtype, error);
    if (status != CR_OK) return status;
    call->answers = call->offsets.count;
    call->span = cr_offsets_span(&call->offsets);
    return CR_OK;
}

/* A partial by key, which has no positions. */
static cr_status set_keys_partial(cured_call *call, const cured_options *o, cr_error *error) {
    if (o->results != NULL || o->outputs != NULL || o->on_part != NULL || o->statuses)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: results, outputs, on_part and statuses are for answers; give them when it is finished "
                       "(cured_by_key_finish)");
    call->request.reduce.unplaced = true;
    return CR_OK;
}

static cr_status set_keys(cured_call *call, uint64_t elements, const cured_options *o, cr_error *error) {
    const cured_keys *given = o->keys;
    cr_keys *keys = &call->keys;
    if (o->axis != NULL || o->offsets != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: they go with no axis and no offsets; leave out one of them");
    *keys = (cr_keys){given->data, given->count, given->groups, given->columns, (cr_dtype)given->dtype, given->drop};
    call->geometry = CR_GEOMETRY_KEYS;
    cr_status status = cr_cl_array_check(call, o, error);
    if (status == CR_OK) status = cr_keys_check(keys, (cr_dtype)call->request.reduce.dtype, error);
    if (status == CR_OK && o->partial) status = set_keys_partial(call, o, error);
    if (status != CR_OK) return status;
    call->answers = cr_keys_answers(keys);
    call->elements = cr_keys_elements(keys);
    if (elements != UINT64_MAX && elements != call->elements)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "keys: %llu rows of %llu columns have %llu elements, the input has %llu",
                       (unsigned long long)keys->count, (unsigned long long)keys->columns,
                       (unsigned long long)call->elements, (unsigned long long)elements);
    return CR_OK;
}

static cr_status set_axis(cured_call *call, const cured_options *o, cr_error *error) {
    cr_wire_reduce *r = &call->request.reduce;
    const cr_shape shape = {o->axis->outer, o->axis->n, o->axis->inner};
    r->has_axis = true;
    r->outer = shape.outer;
    r->n = shape.n;
    r->inner = shape.inner;
    call->geometry = CR_GEOMETRY_AXIS;
    cr_status status = cr_cl_array_check(call, o, error);
    if (status == CR_OK) status = cr_shape_check(&shape, (cr_dtype)r->dtype, error);
    if (status != CR_OK) return status;
    call->answers = cr_shape_answers(&shape);
    call->elements = cr_shape_elements(&shape);
    return CR_OK;
}

/* elements: how many the input has; UINT64_MAX: not known yet. */
static cr_status set_place(cured_call *call, uint64_t elements, const cured_options *o, cr_error *error) {
    cr_wire_reduce *r = &call->request.reduce;
    r->first = o->first;
    r->unplaced = o->unplaced;
    if (o->kernel != NULL) strcpy(r->kernel, o->kernel); /* its length was checked with the options */
    cr_status status = o->keys != NULL      ? set_keys(call, elements, o, error)
                       : o->offsets != NULL ? set_offsets(call, o, error)
                       : o->axis != NULL    ? set_axis(call, o, error)
                                            : CR_OK;
    if (status == CR_OK && call->geometry != CR_GEOMETRY_WHOLE && !o->partial)
        status = cr_cl_array_make(call, o, error);
    if (status == CR_OK) status = cr_cl_outputs_make(call, o, error);
    if (status == CR_OK && call->geometry == CR_GEOMETRY_AXIS && elements != UINT64_MAX && elements != call->elements)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: its shape has %llu elements, the input %llu",
                       (unsigned long long)call->elements, (unsigned long long)elements);
    return status;
}

/* What counts of the input. */
static cr_status set_mask(cured_call *call, uint64_t elements, const cured_options *o, cr_error *error) {
    if (o->mask == NULL) return CR_OK;
    if (o->partial && !o->unplaced && o->keys == NULL && o->layout == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: a partial under one has no position: set unplaced");
    call->mask_count = o->mask->count;
    return cr_cl_take_mask(o->mask, elements, &call->mask, error);
}

static cr_status set_second(cured_call *call, uint64_t elements, const cured_options *o, cr_error *error) {
    if (o->second == NULL) return CR_OK;
    if (o->layout != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "second: not with layout; reduce parts that lie one after the other");
    if (call->kind == KIND_STREAM && elements == UINT64_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: a stream beside one says its length when it begins");
    call->second = *o->second;
    call->has_second = true;
    return cr_cl_check_second(o->second, (cured_dtype)call->request.reduce.dtype, elements, error);
}

static cr_status set_block(cured_call *call, uint64_t elements, const cured_block *layout, cr_error *error) {
    if (layout == NULL) return CR_OK;
    cr_cl_block *block = call->block = malloc(sizeof *block);
    if (block == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a block");
    cr_status status = cr_layout_make(&block->at, layout->dims, layout->shape, layout->start, layout->extent, error);
    if (status == CR_OK && elements != UINT64_MAX && elements != block->at.count)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "layout: the block has %llu elements, the input %llu",
                         (unsigned long long)block->at.count, (unsigned long long)elements);
    if (status != CR_OK) return status;
    block->wire.axes = (uint32_t)layout->dims; /* cr_layout_make knows the limit */
    for (size_t i = 0; i < layout->dims; i++) {
        block->wire.shape[i] = layout->shape[i];
        block->wire.start[i] = layout->start[i];
        block->wire.extent[i] = layout->extent[i];
    }
    return CR_OK;
}

/* What a search asks of the call in place of answers. */
static cr_status set_asked(cured_call *call, const cured_options *o, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (o->asked == NULL) return CR_OK;
    if (call->ranked == NULL || r->op_count != 1 || call->geometry != CR_GEOMETRY_WHOLE || o->partial)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "asked: it goes with the op median alone, of whole arrays, and without partial");
    if (call->calls->local == NULL)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "asked: a daemon counts for no search, such as medians and quantiles of arrays in parts; a "
                       "connection to \"embedded:\" does, in this process");
    call->ranked->counts_only = true;
    cr_status status = cr_quantile_unpack(&call->ranked->asked, o->asked->data, o->asked->bytes, error);
    if (status != CR_OK || call->ranked->asked.dtype == (cr_dtype)r->dtype) return status;
    return cr_fail(error, CR_INVALID_ARGUMENT, "asked: it counts elements of %s, the input has %s",
                   cr_dtype_name(call->ranked->asked.dtype), cr_dtype_name((cr_dtype)r->dtype));
}

/* What ops by rank ask. */
static cr_status set_ranked(cured_call *call, const cured_options *o, cr_error *error) {
    cr_quantile_item items[CURED_MAX_OPS];
    bool any;
    const cr_wire_reduce *r = &call->request.reduce;
    cr_status status = cr_cl_take_items(r->ops, r->op_count, o, items, &any, error);
    if (status != CR_OK || !any) return status;
    call->ranked = calloc(1, sizeof *call->ranked);
    if (call->ranked == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    memcpy(call->ranked->items, items, sizeof items);
    return CR_OK;
}

cured_call *cr_cl_new_reduce(cr_cl_calls *calls, call_kind kind, cured_dtype dtype, const cured_op *ops,
                             size_t op_count, uint64_t elements, const cured_options *options, cr_error *error) {
    cured_options o;
    if (cr_cl_take_options(options, &o, error) != CR_OK) return NULL;
    if (!cr_dtype_is_input((cr_dtype)dtype)) {
        cr_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
        return NULL;
    }
    cured_call *call = new_ops_call(calls, kind, ops, op_count, &o, error);
    if (call == NULL) return NULL;
    call->request.reduce.dtype = call->input_dtype = (uint8_t)dtype;
    if (set_place(call, elements, &o, error) == CR_OK && set_mask(call, elements, &o, error) == CR_OK &&
        set_second(call, elements, &o, error) == CR_OK && set_block(call, elements, o.layout, error) == CR_OK &&
        set_ranked(call, &o, error) == CR_OK && set_asked(call, &o, error) == CR_OK)
        return call;
    cr_list_remove(&call->all);
    cr_cl_call_destroy(call);
    return NULL;
}

cured_status cured_reduce_buffer(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                 const void *data, uint64_t count, const cured_options *options, cured_call **out,
                                 cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    size_t size = cured_dtype_size(dtype);
    if (size != 0 && count > PTRDIFF_MAX / size) /* CURED_TO_END is among them */
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is %llu, limit is %zu elements of %s in memory",
                          (unsigned long long)count, PTRDIFF_MAX / size, cured_dtype_name(dtype));
    if (data == NULL && count != 0) return cr_cl_fail(error, CR_INVALID_ARGUMENT, "data is NULL with a count above 0");
    cured_call *call = cr_cl_new_reduce(cr_cl_calls_of(conn), KIND_BUFFER, dtype, ops, op_count, count, options, &e);
    if (call == NULL) return cr_cl_give(error, &e, 0);
    call->data = data;
    call->data_bytes = call->declared = call->handed = count * size;
    call->request.reduce.length_known = true;
    call->request.reduce.length = call->data_bytes;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

cured_status cured_reduce_fd(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count, int fd,
                             uint64_t offset, uint64_t count, const cured_options *options, cured_call **out,
                             cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    if (cr_cl_calls_of(conn)->tcp)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "a descriptor can be passed over a Unix socket only");
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return cr_cl_fail(error, errno == EBADF ? CR_INVALID_ARGUMENT : CR_RESOURCE_EXHAUSTED,
                          "cannot duplicate descriptor %d: %s", fd, strerror(errno));
    cured_call *call = cr_cl_new_reduce(cr_cl_calls_of(conn), KIND_FD, dtype, ops, op_count, count, options, &e);
    if (call == NULL) {
        close(copy);
        return cr_cl_give(error, &e, 0);
    }
    call->fd = copy;
    call->request.reduce.source = CR_SOURCE_DESCRIPTOR;
    call->request.reduce.offset = offset;
    call->request.reduce.length_known = count != CURED_TO_END;
    call->request.reduce.length = count != CURED_TO_END ? count : 0;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

cured_status cured_reduce_stream_begin(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                       uint64_t bytes, const cured_options *options, cured_call **out,
                                       cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    size_t size = cured_dtype_size(dtype);
    if (bytes != CURED_UNKNOWN_LENGTH && size > 1 && bytes % size != 0)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "%llu bytes are not a multiple of %zu, the size of %s",
                          (unsigned long long)bytes, size, cured_dtype_name(dtype));
    uint64_t count = bytes != CURED_UNKNOWN_LENGTH && size != 0 ? bytes / size : UINT64_MAX;
    cured_call *call = cr_cl_new_reduce(cr_cl_calls_of(conn), KIND_STREAM, dtype, ops, op_count, count, options, &e);
    if (call == NULL) return cr_cl_give(error, &e, 0);
    call->declared = bytes;
    call->request.reduce.length_known = bytes != CURED_UNKNOWN_LENGTH;
    call->request.reduce.length = bytes != CURED_UNKNOWN_LENGTH ? bytes : 0;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

/* The records of a merge: each partial behind its length, in the order of their places. NULL: no memory, or more than one CALL can say. */
static uint8_t *records(const cured_bytes *partials, size_t count, uint64_t *bytes) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (partials[i].bytes > UINT32_MAX) return NULL;
        total += 4 + partials[i].bytes;
    }
    size_t *order = cr_cl_merge_order(partials, count);
    uint8_t *out = order != NULL ? malloc((size_t)total + 1) : NULL, *at = out;
    for (size_t i = 0; out != NULL && i < count; i++) {
        const cured_bytes *next = &partials[order[i]];
        for (int shift = 0; shift < 32; shift += 8) *at++ = (uint8_t)(next->bytes >> shift);
        if (next->bytes != 0) memcpy(at, next->data, next->bytes);
        at += next->bytes;
    }
    free(order);
    *bytes = total;
    return out;
}

cr_keyed_bytes cr_cl_record_next(const uint8_t **at) {
    uint32_t bytes;
    memcpy(&bytes, *at, sizeof bytes);
    const cr_keyed_bytes record = {*at + sizeof bytes, le32toh(bytes)};
    *at = record.data + record.length;
    return record;
}

cured_status cured_merge(cured_conn *conn, const cured_bytes *partials, size_t count, const cured_op *ops,
                         size_t op_count, const cured_options *options, cured_call **out, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *out = NULL;
    if (cr_cl_take_options(options, &o, &e) != CR_OK || cr_cl_check_partials(partials, count, &e) != CR_OK)
        return cr_cl_give(error, &e, 0);
    if (o.axis != NULL || o.offsets != NULL || o.keys != NULL || o.first != 0 || o.kernel != NULL ||
        o.outputs != NULL || o.layout != NULL || o.second != NULL)
        return cr_cl_fail(
            error, CR_INVALID_ARGUMENT,
            "axis, offsets, keys, second, first, kernel, outputs and layout have no meaning when partials are merged");
    cured_call *call = new_ops_call(cr_cl_calls_of(conn), KIND_BUFFER, ops, op_count, &o, &e);
    if (call == NULL) return cr_cl_give(error, &e, 0);
    call->request.kind = CR_CALL_MERGE;
    call->owned = records(partials, count, &call->data_bytes);
    if (call->owned == NULL) {
        cr_list_remove(&call->all);
        cr_cl_call_destroy(call);
        return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu partials", count);
    }
    call->data = call->owned;
    call->declared = call->handed = call->data_bytes;
    if (cr_cl_keyed_merge(call, &o, &e) != CR_OK) {
        cr_list_remove(&call->all);
        cr_cl_call_destroy(call);
        return cr_cl_give(error, &e, 0);
    }
    /* Whatever is wrong with them the daemon says; the type is needed to understand its answer. */
    if (count != 0 && partials[0].bytes > 3) call->input_dtype = ((const uint8_t *)partials[0].data)[3];
    if (!cr_dtype_is_input((cr_dtype)call->input_dtype)) call->input_dtype = 0;
    call->request.reduce.length_known = true;
    call->request.reduce.length = call->data_bytes;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

static cured_status start_plain(cured_conn *conn, call_kind kind, const cured_options *options, cured_call **out,
                                cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *out = cr_cl_take_options(options, &o, &e) == CR_OK ? cr_cl_new_call(cr_cl_calls_of(conn), kind, 0, &o, &e) : NULL;
    if (*out != NULL) cr_cl_call_submit(*out);
    return cr_cl_give(error, &e, 0);
}

cured_status cured_info(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_INFO, options, call, error);
}

cured_status cured_config(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_CONFIG, options, call, error);
}

cured_status cured_reload(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_RELOAD, options, call, error);
}

cured_status cured_stats(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_STATS, options, call, error);
}

cured_status cured_slow_log(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_SLOW_LOG, options, call, error);
}

cured_status cured_ping(cured_conn *conn, const cured_options *options, cured_call **call, cured_error *error) {
    return start_plain(conn, KIND_PING, options, call, error);
}

/* That the program writes. */
static bool is_stream(const cured_call *call) { return call->kind == KIND_STREAM && call->gather == NULL; }

cured_status cured_stream_write(cured_call *call, const void *data, size_t bytes, cured_error *error) {
    if (!is_stream(call)) return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the call is not a stream");
    if (call->state == CALL_DONE)
        return call->error.code != CR_OK ? cured_call_status(call, error)
                                         : cr_cl_fail(error, CR_FAILED_PRECONDITION, "the call is done");
    if (call->end_wanted) return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the stream was ended");
    if (cured_stream_pending(call) != 0)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "%zu bytes of the piece before are pending, limit is 0",
                          cured_stream_pending(call));
    if (bytes > call->declared - call->handed)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "%zu bytes are more than the %llu left of the %llu declared",
                          bytes, (unsigned long long)(call->declared - call->handed),
                          (unsigned long long)call->declared);
    if (data == NULL && bytes != 0) return cr_cl_fail(error, CR_INVALID_ARGUMENT, "data is NULL with bytes above 0");
    if (bytes != 0) {
        call->source = data;
        call->source_len = bytes;
        call->handed += bytes;
        if (call->state == CALL_ACTIVE) call->calls->way->more(call);
    }
    return cr_cl_fail(error, CR_OK, "%s", "");
}

size_t cured_stream_pending(const cured_call *call) {
    if (call->state == CALL_DONE) return 0;
    return call->source_len + (call->body_is_input ? call->body_len - call->body_pos : 0);
}

cured_status cured_stream_end(cured_call *call, cured_error *error) {
    if (!is_stream(call)) return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the call is not a stream");
    if (call->state == CALL_DONE) return cr_cl_fail(error, CR_OK, "%s", "");
    if (call->declared != CURED_UNKNOWN_LENGTH && call->handed < call->declared)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "%llu bytes were handed over, %llu were declared",
                          (unsigned long long)call->handed, (unsigned long long)call->declared);
    call->end_wanted = true;
    if (call->state == CALL_ACTIVE) call->calls->way->more(call);
    return cr_cl_fail(error, CR_OK, "%s", "");
}
