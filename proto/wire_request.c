/* wire_request: what requests must be beyond what their rows say, and what a Call says beside its struct: pieces and outputs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire_table.h"

const cr_beside_names cr_beside_names_of[CR_BESIDES] = {
#define CR_BESIDE(field, KIND, message, name) {#field, #message, name},
#include "proto/beside.def"
#undef CR_BESIDE
};

bool cr_wire_takes_beside(const cr_wire_reduce *m) {
    bool any = false;
    for (int kind = 0; kind < CR_BESIDES; kind++) any |= m->has_beside[kind];
    return any;
}

/* ---- packing ---- */

size_t cr_wire_pack_call(const cr_wire_call *m, uint8_t *out, size_t cap) {
    return cr_wire_write(&cr_message_call, m, NULL, out, cap);
}

size_t cr_wire_pack_pieces(const cr_wire_call *m, const cr_wire_piece *pieces, uint8_t *out, size_t cap) {
    cr_wire_aside aside;
    cr_wire_call call = *m;
    call.reduce.pieces = m->reduce.length < CR_CALL_MAX_PIECES ? (uint32_t)m->reduce.length : CR_CALL_MAX_PIECES;
    call.reduce.outputs = call.reduce.parameters = call.reduce.axes = 0;
    call.reduce.has_layout = false;
    for (uint32_t i = 0; i < call.reduce.pieces; i++)
        aside.pieces[i] =
            (cr_wire_piece_row){pieces[i].region, pieces[i].offset, pieces[i].count, !pieces[i].to_end, true};
    return cr_wire_write(&cr_message_call, &call, &aside, out, cap);
}

size_t cr_wire_pack_more(const cr_wire_call *m, const cr_wire_more *more, uint8_t *out, size_t cap) {
    cr_wire_aside aside;
    cr_wire_call call = *m;
    const uint32_t ops = m->reduce.op_count < CR_CALL_MAX_OPS ? m->reduce.op_count : CR_CALL_MAX_OPS;
    if (m->kind != CR_CALL_REDUCE) return cr_wire_pack_call(m, out, cap); /* where reduce is, others have a region */
    call.reduce.pieces = call.reduce.parameters = 0;
    call.reduce.has_layout = more->layout;
    call.reduce.axes = more->layout ? more->layout->axes : 0;
    for (uint32_t i = 0; i < call.reduce.axes; i++)
        aside.axes[i] = (cr_wire_axis_row){more->layout->shape[i], more->layout->start[i], more->layout->extent[i]};
    call.reduce.outputs = more->outputs ? ops : 0;
    for (uint32_t i = 0; more->parameters && i < ops; i++) {
        const cr_wire_parameter *p = &more->parameters[i];
        if (p->given) aside.parameters[call.reduce.parameters++] = (cr_wire_parameter_row){i, p->method, p->share};
    }
    for (int kind = 0; kind < CR_BESIDES; kind++) {
        cr_wire_beside *const to = &aside.beside[kind];
        call.reduce.has_beside[kind] = more->beside && more->beside[kind].source;
        if (!call.reduce.has_beside[kind]) continue;
        *to = more->beside[kind];
        to->by_stream = to->source == CR_SOURCE_STREAM;
        to->by_descriptor = to->source == CR_SOURCE_DESCRIPTOR;
        if (to->source != CR_SOURCE_REGION) to->region = 0;
    }
    for (uint32_t i = 0; i < call.reduce.outputs; i++)
        aside.outputs[i] = (cr_wire_output_row){i, more->outputs[i].region, more->outputs[i].offset};
    return cr_wire_write(&cr_message_call, &call, &aside, out, cap);
}

/* ---- checks ---- */

static cr_status check_ops(const cr_wire_reduce *m, cr_error *error) {
    if (m->op_count < 1 || m->op_count > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ops has %u entries, must have 1 to %d", m->op_count,
                       CR_CALL_MAX_OPS);
    for (uint32_t i = 0; i < m->op_count; i++)
        for (uint32_t j = 0; j < i && m->parameters == 0; j++) /* else whoever knows ops says which may come again */
            if (m->ops[j] == m->ops[i])
                return cr_fail(error, CR_INVALID_ARGUMENT, "ops names op %u twice, limit is once", m->ops[i]);
    return CR_OK;
}

uint64_t cr_wire_beside_bytes(const cr_wire_beside *b) {
    if (b->element) return b->count < UINT64_MAX / b->element ? b->count * b->element : UINT64_MAX;
    if (b->count > UINT64_MAX - 7 || b->first > UINT64_MAX - 7 - b->count) return UINT64_MAX;
    return b->bits ? (b->first + b->count + 7) / 8 : b->first + b->count;
}

/* Where its bytes are; 0: nothing or too much says so. */
static cr_wire_source source_of(const cr_wire_beside *b) {
    if (b->by_stream + b->by_descriptor + (b->region != 0) != 1) return (cr_wire_source)0;
    return b->by_stream ? CR_SOURCE_STREAM : b->by_descriptor ? CR_SOURCE_DESCRIPTOR : CR_SOURCE_REGION;
}

static cr_status check_beside(const cr_wire_reduce *m, const cr_wire_aside *aside, cr_error *error) {
    for (int kind = 0; kind < CR_BESIDES; kind++) {
        const cr_wire_beside *b = &aside->beside[kind];
        const char *const message = cr_beside_names_of[kind].message;
        if (!m->has_beside[kind]) continue;
        if (source_of(b) == 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: give one of stream, file_descriptor and region", message);
        if (b->by_stream && b->offset != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s.offset is %llu, and a stream begins at 0", message,
                           (unsigned long long)b->offset);
        if (kind == CR_BESIDE_MASK && cr_wire_beside_bytes(b) == UINT64_MAX)
            return cr_fail(error, CR_INVALID_ARGUMENT, "Mask.first and Mask.count add up to more than 2^64");
    }
    return CR_OK;
}

/* outputs NULL: they are only checked. */
static cr_status check_outputs(const cr_wire_reduce *m, const cr_wire_aside *aside, cr_wire_output *outputs,
                               cr_error *error) {
    uint64_t seen = 0;
    if (m->outputs == 0) return CR_OK;
    if (m->outputs != m->op_count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs has %u entries, must have none, or one for each of %u ops",
                       m->outputs, m->op_count);
    for (uint32_t i = 0; i < m->outputs; i++) {
        const cr_wire_output_row *from = &aside->outputs[i];
        if (from->op >= m->op_count)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].op is %u, there are %u ops", i, from->op,
                           m->op_count);
        if (seen >> from->op & 1)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].op is %u, which came before", i, from->op);
        if (from->region == 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].region is 0, no region's number", i);
        seen |= UINT64_C(1) << from->op;
        if (outputs != NULL) outputs[from->op] = (cr_wire_output){from->region, from->offset};
    }
    return CR_OK;
}

/* parameters NULL: they are only checked. */
static cr_status check_parameters(const cr_wire_reduce *m, const cr_wire_aside *aside, cr_wire_parameter *parameters,
                                  cr_error *error) {
    uint64_t seen = 0;
    for (uint32_t i = 0; parameters != NULL && i < CR_CALL_MAX_OPS; i++)
        parameters[i] = (cr_wire_parameter){.given = false};
    if (m->parameters > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "parameters has %u entries, limit is %d", m->parameters,
                       CR_CALL_MAX_OPS);
    for (uint32_t i = 0; i < m->parameters; i++) {
        const cr_wire_parameter_row *from = &aside->parameters[i];
        if (from->op >= m->op_count)
            return cr_fail(error, CR_INVALID_ARGUMENT, "parameters[%u].op is %u, there are %u ops", i, from->op,
                           m->op_count);
        if (seen >> from->op & 1)
            return cr_fail(error, CR_INVALID_ARGUMENT, "parameters[%u].op is %u, which came before", i, from->op);
        seen |= UINT64_C(1) << from->op;
        if (parameters != NULL) parameters[from->op] = (cr_wire_parameter){true, from->share, from->method};
    }
    return CR_OK;
}

static cr_status check_layout(const cr_wire_reduce *m, cr_error *error) {
    if (m->axes <= CR_CALL_MAX_AXES) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "layout has %u axes, limit is %d", m->axes, CR_CALL_MAX_AXES);
}

/* pieces NULL: they are only checked. */
static cr_status check_pieces(const cr_wire_reduce *m, const cr_wire_aside *aside, cr_wire_piece *pieces,
                              cr_error *error) {
    if (m->pieces < 1 || m->pieces > CR_CALL_MAX_PIECES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "RegionsInput.pieces has %u entries, must have 1 to %d", m->pieces,
                       CR_CALL_MAX_PIECES);
    for (uint32_t i = 0; i < m->pieces; i++) {
        const cr_wire_piece_row *from = &aside->pieces[i];
        const bool counted = from->length_known, to_end = !counted && from->open;
        if (pieces != NULL) pieces[i] = (cr_wire_piece){from->region, from->offset, to_end, counted ? from->length : 0};
        if (to_end && i + 1 < m->pieces)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "RegionsInput.pieces[%u] has to_end, which only the last piece may: give its count", i);
        if (!counted && !to_end)
            return cr_fail(error, CR_INVALID_ARGUMENT, "RegionsInput.pieces[%u].length is missing: give count", i);
    }
    return CR_OK;
}

static cr_status check_length(cr_wire_reduce *m, const char *what, cr_error *error) {
    if (m->length_known) return CR_OK;
    m->length = 0;
    return m->open ? CR_OK : cr_fail(error, CR_INVALID_ARGUMENT, "%s", what);
}

static cr_status check_input(cr_wire_reduce *m, const cr_wire_aside *aside, bool may_lack_input, cr_error *error) {
    switch (m->source) {
        case CR_SOURCE_STREAM:
            return check_length(m, "StreamInput.length is missing: give bytes, or unknown = true", error);
        case CR_SOURCE_DESCRIPTOR:
            return check_length(m, "DescriptorInput.length is missing: give count, or to_end = true", error);
        case CR_SOURCE_REGION:
            return check_length(m, "RegionInput.length is missing: give count, or to_end = true", error);
        case CR_SOURCE_REGIONS:
            m->length = m->pieces;
            return check_pieces(m, aside, NULL, error);
        case CR_SOURCE_INLINE:
            m->length_known = true;
            return CR_OK;
    }
    m->source = CR_SOURCE_INLINE;
    if (!m->has_input && may_lack_input) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "ReduceRequest.input is missing: give stream, file_descriptor, region or regions");
}

static cr_status check_reduce(cr_wire_reduce *m, const cr_wire_aside *aside, bool may_lack_input, cr_error *error) {
    cr_status status = cr_wire_check_text("ReduceRequest.kernel", m->kernel_bytes, CR_NAME_MAX_BYTES, error);
    if (status == CR_OK) status = check_ops(m, error);
    if (status == CR_OK) status = check_parameters(m, aside, NULL, error);
    if (status == CR_OK) status = check_outputs(m, aside, NULL, error);
    if (status == CR_OK) status = check_layout(m, error);
    if (status == CR_OK) status = check_beside(m, aside, error);
    return status == CR_OK ? check_input(m, aside, may_lack_input, error) : status;
}

static cr_status check_merge(cr_wire_reduce *m, bool may_lack_input, cr_error *error) {
    if (!m->has_input && !may_lack_input) return cr_fail(error, CR_INVALID_ARGUMENT, "MergeRequest.input is missing");
    m->source = m->has_input ? CR_SOURCE_STREAM : CR_SOURCE_INLINE;
    const cr_status status = check_ops(m, error);
    return status == CR_OK && m->has_input ? check_input(m, NULL, false, error) : status;
}

static cr_status check_bytes(const char *kind, const char *field, uint32_t came, uint32_t expected, cr_error *error) {
    if (came == expected) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s.%s has %u bytes, must have %u", kind, field, came, expected);
}

/* Device memory: its handle, or the pointer in a pool, which there need not be; an event need never be. */
static cr_status check_device(cr_wire_region *m, cr_error *error) {
    const bool is_ipc = m->kind == CR_SHARED_CUDA_IPC;
    const char *const kind = is_ipc ? "CudaIpcRegion" : "CudaDescriptorRegion";
    m->has_handle = is_ipc || m->handle_bytes != 0;
    m->has_event = m->event_bytes != 0;
    cr_status status = check_bytes(kind, "device", m->device_bytes, sizeof m->device, error);
    if (status == CR_OK && m->has_handle)
        status = check_bytes(kind, is_ipc ? "handle" : "pointer", m->handle_bytes, sizeof m->handle, error);
    if (status == CR_OK && m->has_event) status = check_bytes(kind, "event", m->event_bytes, sizeof m->event, error);
    if (status != CR_OK) return status;
    if (m->bytes == 0) return cr_fail(error, CR_INVALID_ARGUMENT, "bytes: a region of device memory has at least 1");
    if (m->offset > UINT64_MAX - m->bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offset: %llu and %llu bytes end beyond 2^64",
                       (unsigned long long)m->offset, (unsigned long long)m->bytes);
    return CR_OK;
}

static cr_status check_name(const cr_wire_region *m, cr_error *error) {
    const char *const name = m->name;
    const cr_status fits = cr_wire_check_text("ShmRegion.name", m->name_bytes, CR_SHM_NAME_MAX_BYTES, error);
    if (fits != CR_OK) return fits;
    if (strlen(name) >= 2 && name[0] == '/' && strchr(name + 1, '/') == NULL && strcmp(name, "/.") != 0 &&
        strcmp(name, "/..") != 0)
        return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "ShmRegion.name must be one slash and a name without any, as for shm_open");
}

static cr_status check_register(cr_wire_region *m, cr_error *error) {
    if (m->id == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "RegisterRequest.region is 0, must be the number of a new region");
    switch (m->kind) {
        case CR_SHARED_DESCRIPTOR:
            return CR_OK;
        case CR_SHARED_NAME:
            return check_name(m, error);
        case CR_SHARED_CUDA_IPC:
        case CR_SHARED_CUDA_DESCRIPTOR:
            return check_device(m, error);
    }
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "RegisterRequest.source is missing: give file_descriptor, shm, cuda_ipc or cuda_descriptor");
}

static cr_status check_call(cr_wire_call *m, const cr_wire_aside *aside, cr_error *error) {
    if (m->timeout_ms > CR_TIMEOUT_MAX_MS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "Call.timeout_ms is %u, limit is %d", m->timeout_ms,
                       CR_TIMEOUT_MAX_MS);
    switch (m->kind) {
        case CR_CALL_REDUCE:
            return check_reduce(&m->reduce, aside, false, error);
        case CR_CALL_MERGE:
            return check_merge(&m->reduce, false, error);
        case CR_CALL_REGISTER:
            return check_register(&m->region, error);
        case CR_CALL_UNREGISTER:
            if (m->region.id) return CR_OK;
            return cr_fail(error, CR_INVALID_ARGUMENT, "UnregisterRequest.region is 0, no region's number");
        case CR_CALL_INFO:
        case CR_CALL_STATS:
        case CR_CALL_SLOW_LOG:
        case CR_CALL_RELOAD:
        case CR_CALL_CONFIG:
            return CR_OK;
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "Call.request is missing or unknown (PROTOCOL.md lists what there is)");
}

/* ---- unpacking ---- */

cr_status cr_wire_unpack_call(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    cr_wire_aside aside;
    const cr_status status = cr_wire_read(&cr_message_call, CR_READ_OWN, in, len, m, &aside, error);
    return status == CR_OK ? check_call(m, &aside, error) : status;
}

cr_status cr_wire_unpack_pieces(const uint8_t *in, size_t len, cr_wire_piece pieces[CR_CALL_MAX_PIECES],
                                cr_error *error) {
    cr_wire_aside aside;
    cr_wire_call call;
    const cr_status status = cr_wire_read(&cr_message_call, CR_READ_ANY, in, len, &call, &aside, error);
    if (status != CR_OK) return status;
    if (call.kind != CR_CALL_REDUCE || call.reduce.source != CR_SOURCE_REGIONS)
        return cr_fail(error, CR_INTERNAL, "the call has no pieces");
    return check_pieces(&call.reduce, &aside, pieces, error);
}

cr_status cr_wire_unpack_outputs(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS],
                                 cr_error *error) {
    cr_wire_aside aside;
    cr_wire_call call;
    const cr_status status = cr_wire_read(&cr_message_call, CR_READ_ANY, in, len, &call, &aside, error);
    if (status != CR_OK) return status;
    if (call.kind != CR_CALL_REDUCE || call.reduce.op_count > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INTERNAL, "the call has no outputs");
    return check_outputs(&call.reduce, &aside, outputs, error);
}

/* A request again, with what is beside its struct. */
static cr_status read_again(cr_wire_form form, const uint8_t *in, size_t len, cr_wire_call *call, cr_wire_aside *aside,
                            cr_error *error) {
    const cr_wire_message *const types[] = {&cr_message_call, &cr_message_reduce_request, &cr_message_reduce_chunk};
    void *const into = form == CR_FORM_REDUCE ? (void *)&call->reduce : call;
    return cr_wire_read(types[form], CR_READ_ANY, in, len, into, aside, error);
}

cr_status cr_wire_unpack_parameters(cr_wire_form form, const uint8_t *in, size_t len,
                                    cr_wire_parameter parameters[CR_CALL_MAX_OPS], cr_error *error) {
    cr_wire_aside aside;
    cr_wire_call call;
    const cr_status status = read_again(form, in, len, &call, &aside, error);
    return status == CR_OK ? check_parameters(&call.reduce, &aside, parameters, error) : status;
}

cr_status cr_wire_unpack_layout(cr_wire_form form, const uint8_t *in, size_t len, cr_wire_layout *layout,
                                cr_error *error) {
    cr_wire_aside aside;
    cr_wire_call call;
    cr_status status = read_again(form, in, len, &call, &aside, error);
    if (status == CR_OK) status = check_layout(&call.reduce, error);
    if (status != CR_OK) return status;
    layout->axes = call.reduce.axes;
    for (uint32_t i = 0; i < layout->axes; i++) {
        layout->shape[i] = aside.axes[i].shape;
        layout->start[i] = aside.axes[i].start;
        layout->extent[i] = aside.axes[i].extent;
    }
    return CR_OK;
}

cr_status cr_wire_unpack_besides(cr_wire_form form, const uint8_t *in, size_t len, cr_wire_beside beside[CR_BESIDES],
                                 cr_error *error) {
    cr_wire_aside aside;
    cr_wire_call call;
    const cr_status status = read_again(form, in, len, &call, &aside, error);
    if (status != CR_OK) return status;
    for (int kind = 0; kind < CR_BESIDES; kind++) {
        beside[kind] = (cr_wire_beside){.count = 0};
        if (!call.reduce.has_beside[kind]) continue;
        beside[kind] = aside.beside[kind];
        beside[kind].source = source_of(&aside.beside[kind]);
    }
    return CR_OK;
}

/* ---- of gRPC: the same without the Call around them; what calls this has cut off the array (or the partials) within ---- */

cr_status cr_wire_unpack_reduce(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    cr_wire_aside aside;
    m->progress_ms = 0;
    m->kind = CR_CALL_REDUCE;
    const cr_status status =
        cr_wire_read(&cr_message_reduce_request, CR_READ_OF_GRPC, in, len, &m->reduce, &aside, error);
    return status == CR_OK ? check_reduce(&m->reduce, &aside, true, error) : status;
}

cr_status cr_wire_unpack_merge(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    m->progress_ms = 0;
    m->kind = CR_CALL_MERGE;
    const cr_status status = cr_wire_read(&cr_message_merge_request, CR_READ_OF_GRPC, in, len, &m->reduce, NULL, error);
    return status == CR_OK ? check_merge(&m->reduce, true, error) : status;
}

cr_status cr_wire_unpack_head(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    cr_wire_aside aside;
    const cr_status status = cr_wire_read(&cr_message_reduce_chunk, CR_READ_OF_GRPC, in, len, m, &aside, error);
    if (status != CR_OK) return status;
    if (m->kind != CR_CALL_REDUCE) return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceChunk has neither head nor data");
    if (m->reduce.data_bytes != 0 || m->reduce.beside_bytes != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceRequest.%s: ReduceStream takes it as ReduceChunk.data",
                       m->reduce.data_bytes != 0 ? "data" : "beside");
    return check_reduce(&m->reduce, &aside, true, error);
}

/* Requests without fields: there is nothing to fill. */
cr_status cr_wire_unpack_info_request(const uint8_t *in, size_t len, cr_error *error) {
    cr_wire_call unused;
    return cr_wire_read(&cr_message_info_request, CR_READ_OF_GRPC, in, len, &unused, NULL, error);
}

cr_status cr_wire_unpack_stats_request(const uint8_t *in, size_t len, cr_error *error) {
    cr_wire_call unused;
    return cr_wire_read(&cr_message_stats_request, CR_READ_OF_GRPC, in, len, &unused, NULL, error);
}

cr_status cr_wire_unpack_slow_log_request(const uint8_t *in, size_t len, cr_error *error) {
    cr_wire_call unused;
    return cr_wire_read(&cr_message_slow_log_request, CR_READ_OF_GRPC, in, len, &unused, NULL, error);
}
