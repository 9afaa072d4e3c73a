/* wire: messages of the connection and of requests (HELLO, WELCOME, CALL) between protobuf
 * and plain structs; the replies are in wire_reply.c. Unpacking allocates from a scratch area on the stack only, so the
 * worst a hostile message can do is not to fit.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include "proto/wire.h"

#include <string.h>

#include "proto/wire_internal.h"

static void *scratch_alloc(void *data, size_t size) {
    cr_wire_scratch *s = data;
    const size_t align = alignof(max_align_t);
    if (size > sizeof s->bytes) return NULL;
    size = (size + align - 1) / align * align;
    if (size > sizeof s->bytes - s->used) return NULL;
    void *p = s->bytes + s->used;
    s->used += size;
    return p;
}

static void scratch_free(void *data, void *p) {
    (void)data;
    (void)p;
}

/* What cr_wire_check has taken, into *s. */
static void *unpack(cr_wire_scratch *s, const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len,
                    cr_error *error) {
    s->allocator = (ProtobufCAllocator){.alloc = scratch_alloc, .free = scratch_free, .allocator_data = s};
    s->used = 0;
    void *m = protobuf_c_message_unpack(type, &s->allocator, len, in);
    if (m == NULL)
        cr_fail(error, CR_INVALID_ARGUMENT, "%s is not a valid protobuf message, or needs more than %d bytes unpacked",
                type->short_name, CR_WIRE_SCRATCH_BYTES);
    return m;
}

void *cr_wire_parse(cr_wire_scratch *s, const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len,
                    cr_error *error) {
    return cr_wire_check(type, in, len, error) == CR_OK ? unpack(s, type, in, len, error) : NULL;
}

cr_status cr_wire_parse_request(cr_wire_scratch *s, const ProtobufCMessageDescriptor *type, bool is_grpc,
                                const uint8_t *in, size_t len, void **m, cr_error *error) {
    cr_status status = cr_wire_check(type, in, len, error);
    if (status == CR_OK) status = cr_wire_check_known(type, is_grpc, in, len, error);
    *m = status == CR_OK ? unpack(s, type, in, len, error) : NULL;
    return status == CR_OK && *m == NULL ? CR_INVALID_ARGUMENT : status;
}

size_t cr_wire_emit(const ProtobufCMessage *m, uint8_t *out, size_t cap) {
    if (protobuf_c_message_get_packed_size(m) > cap) return 0;
    return protobuf_c_message_pack(m, out);
}

size_t cr_wire_printable(const char *text) {
    const unsigned char *in = (const unsigned char *)text;
    if (in[0] < 0x80) return in[0] >= 0x20 && in[0] != 0x7f;
    size_t n = in[0] >= 0xf0 ? 4 : in[0] >= 0xe0 ? 3 : 2;
    uint32_t c = in[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((in[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (in[i] & 0x3fu);
    }
    const uint32_t least = n == 2 ? 0xa0 : n == 3 ? 0x800 : 0x10000; /* below 0xa0: the control characters of Latin 1 */
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return in[0] >= 0xc2 && in[0] <= 0xf4 && c >= least && c <= 0x10ffff && !surrogate ? n : 0;
}

void cr_wire_copy_text(char *out, size_t cap, const char *in) {
    size_t at = 0;
    while (*in != '\0') {
        size_t n = cr_wire_printable(in);
        size_t len = n != 0 ? n : 1;
        if (at + len + 1 > cap) break; /* cut before a character, never inside one */
        if (n != 0)
            memcpy(out + at, in, n);
        else
            out[at] = '?';
        at += len;
        in += len;
    }
    out[at] = '\0';
}

cr_status cr_wire_copy_name(char out[CR_NAME_MAX_BYTES + 1], const char *in, const char *field, cr_error *error) {
    size_t len = strlen(in);
    if (len > CR_NAME_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %zu bytes, limit is %d", field, len, CR_NAME_MAX_BYTES);
    cr_wire_copy_text(out, CR_NAME_MAX_BYTES + 1, in);
    return CR_OK;
}

uint32_t cr_wire_copy_features(char out[CR_WIRE_MAX_FEATURES][CR_NAME_MAX_BYTES + 1], size_t n, char *const *in) {
    uint32_t count = 0;
    for (size_t i = 0; i < n && count < CR_WIRE_MAX_FEATURES; i++)
        if (strlen(in[i]) <= CR_NAME_MAX_BYTES) cr_wire_copy_text(out[count++], CR_NAME_MAX_BYTES + 1, in[i]);
    return count;
}

/* protobuf-c wants char *, and reads only. */
static size_t feature_pointers(char *out[CR_WIRE_MAX_FEATURES],
                               const char in[CR_WIRE_MAX_FEATURES][CR_NAME_MAX_BYTES + 1], uint32_t count) {
    size_t n = count < CR_WIRE_MAX_FEATURES ? count : CR_WIRE_MAX_FEATURES;
    for (size_t i = 0; i < n; i++) out[i] = (char *)(uintptr_t)in[i];
    return n;
}

void cr_wire_limits_out(const cr_wire_limits *m, Cured__V1__Limits *p) {
    cured__v1__limits__init(p);
    p->head_bytes = m->head_bytes;
    p->data_bytes = m->data_bytes;
    p->ops = m->ops;
    p->credit_bytes = m->credit_bytes;
    p->jobs_per_connection = m->jobs_per_connection;
    p->input_bytes = m->input_bytes;
    p->regions_per_connection = m->regions_per_connection;
    p->region_bytes = m->region_bytes;
}

void cr_wire_limits_in(const Cured__V1__Limits *p, cr_wire_limits *m) {
    memset(m, 0, sizeof *m);
    if (p == NULL) return;
    m->head_bytes = p->head_bytes;
    m->data_bytes = p->data_bytes;
    m->ops = p->ops;
    m->credit_bytes = p->credit_bytes;
    m->jobs_per_connection = p->jobs_per_connection;
    m->input_bytes = p->input_bytes;
    m->regions_per_connection = p->regions_per_connection;
    m->region_bytes = p->region_bytes;
}

size_t cr_wire_pack_hello(const cr_wire_hello *m, uint8_t *out, size_t cap) {
    char *features[CR_WIRE_MAX_FEATURES];
    Cured__V1__Hello p = CURED__V1__HELLO__INIT;
    p.version_min = m->version_min;
    p.version_max = m->version_max;
    p.n_features = feature_pointers(features, m->features, m->feature_count);
    p.features = features;
    p.client = (char *)(uintptr_t)m->client;
    p.token = (char *)(uintptr_t)m->token;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_hello(const uint8_t *in, size_t len, cr_wire_hello *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__Hello *p = cr_wire_parse(&scratch, &cured__v1__hello__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    if (p->version_min == 0 || p->version_min > p->version_max)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "Hello.version_min is %u and version_max %u, must be 1 <= min <= max", p->version_min,
                       p->version_max);
    m->version_min = p->version_min;
    m->version_max = p->version_max;
    m->feature_count = cr_wire_copy_features(m->features, p->n_features, p->features);
    const size_t token = strlen(p->token);
    if (token > CR_TOKEN_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "Hello.token has %zu bytes, limit is %d", token, CR_TOKEN_MAX_BYTES);
    memcpy(m->token, p->token, token + 1);
    return cr_wire_copy_name(m->client, p->client, "Hello.client", error);
}

size_t cr_wire_pack_welcome(const cr_wire_welcome *m, uint8_t *out, size_t cap) {
    char *features[CR_WIRE_MAX_FEATURES];
    Cured__V1__Limits limits;
    cr_wire_limits_out(&m->limits, &limits);
    Cured__V1__Welcome p = CURED__V1__WELCOME__INIT;
    p.version = m->version;
    p.n_features = feature_pointers(features, m->features, m->feature_count);
    p.features = features;
    p.server = (char *)(uintptr_t)m->server;
    p.limits = &limits;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_welcome(const uint8_t *in, size_t len, cr_wire_welcome *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__Welcome *p = cr_wire_parse(&scratch, &cured__v1__welcome__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->version = p->version;
    m->feature_count = cr_wire_copy_features(m->features, p->n_features, p->features);
    cr_wire_limits_in(p->limits, &m->limits);
    return cr_wire_copy_name(m->server, p->server, "Welcome.server", error);
}

static void input_out(const cr_wire_reduce *m, Cured__V1__Input *input, Cured__V1__StreamInput *stream,
                      Cured__V1__DescriptorInput *descriptor, Cured__V1__RegionInput *region) {
    if (m->source == CR_SOURCE_STREAM) {
        input->source_case = CURED__V1__INPUT__SOURCE_STREAM;
        input->stream = stream;
        if (m->length_known) {
            stream->length_case = CURED__V1__STREAM_INPUT__LENGTH_BYTES;
            stream->bytes = m->length;
        } else {
            stream->length_case = CURED__V1__STREAM_INPUT__LENGTH_UNKNOWN;
            stream->unknown = 1;
        }
    } else if (m->source == CR_SOURCE_DESCRIPTOR) {
        input->source_case = CURED__V1__INPUT__SOURCE_FILE_DESCRIPTOR;
        input->file_descriptor = descriptor;
        descriptor->offset = m->offset;
        if (m->length_known) {
            descriptor->length_case = CURED__V1__DESCRIPTOR_INPUT__LENGTH_COUNT;
            descriptor->count = m->length;
        } else {
            descriptor->length_case = CURED__V1__DESCRIPTOR_INPUT__LENGTH_TO_END;
            descriptor->to_end = 1;
        }
    } else if (m->source == CR_SOURCE_REGION) {
        input->source_case = CURED__V1__INPUT__SOURCE_REGION;
        input->region = region;
        region->region = m->region;
        region->offset = m->offset;
        if (m->length_known) {
            region->length_case = CURED__V1__REGION_INPUT__LENGTH_COUNT;
            region->count = m->length;
        } else {
            region->length_case = CURED__V1__REGION_INPUT__LENGTH_TO_END;
            region->to_end = 1;
        }
    }
}

static size_t ops_out(const cr_wire_reduce *r, Cured__V1__Op ops[CR_CALL_MAX_OPS]) {
    size_t n = r->op_count < CR_CALL_MAX_OPS ? r->op_count : CR_CALL_MAX_OPS;
    for (size_t i = 0; i < n; i++) ops[i] = (Cured__V1__Op)r->ops[i];
    return n;
}

static size_t pack_reduce(const cr_wire_reduce *r, Cured__V1__RegionsInput *regions, Cured__V1__Output **outputs,
                          Cured__V1__Call *call, uint8_t *out, size_t cap) {
    Cured__V1__Op ops[CR_CALL_MAX_OPS];
    Cured__V1__StreamInput stream = CURED__V1__STREAM_INPUT__INIT;
    Cured__V1__DescriptorInput descriptor = CURED__V1__DESCRIPTOR_INPUT__INIT;
    Cured__V1__RegionInput region = CURED__V1__REGION_INPUT__INIT;
    Cured__V1__Input input = CURED__V1__INPUT__INIT;
    Cured__V1__Axis axis = CURED__V1__AXIS__INIT;
    Cured__V1__ReduceRequest p = CURED__V1__REDUCE_REQUEST__INIT;
    p.dtype = (Cured__V1__Dtype)r->dtype;
    p.n_ops = ops_out(r, ops);
    p.ops = ops;
    p.nan = (Cured__V1__NanPolicy)r->nan;
    p.result_dtype = (Cured__V1__Dtype)r->result_dtype;
    p.ddof = r->ddof;
    p.overflow = (Cured__V1__Overflow)r->overflow;
    p.partial = r->want_partial;
    p.unplaced = r->unplaced;
    p.statuses = r->statuses;
    p.first = r->first;
    p.kernel = (char *)(uintptr_t)r->kernel;
    p.input = &input;
    input_out(r, &input, &stream, &descriptor, &region);
    if (regions != NULL) {
        input.source_case = CURED__V1__INPUT__SOURCE_REGIONS;
        input.regions = regions;
    }
    if (outputs != NULL) {
        p.n_outputs = p.n_ops;
        p.outputs = outputs;
    }
    if (r->has_axis) {
        axis.outer = r->outer;
        axis.n = r->n;
        axis.inner = r->inner;
        p.axis = &axis;
    }
    call->request_case = CURED__V1__CALL__REQUEST_REDUCE;
    call->reduce = &p;
    return cr_wire_emit(&call->base, out, cap);
}

static size_t pack_merge(const cr_wire_reduce *r, Cured__V1__Call *call, uint8_t *out, size_t cap) {
    Cured__V1__Op ops[CR_CALL_MAX_OPS];
    Cured__V1__StreamInput stream = CURED__V1__STREAM_INPUT__INIT;
    Cured__V1__Input unused = CURED__V1__INPUT__INIT;
    Cured__V1__MergeRequest p = CURED__V1__MERGE_REQUEST__INIT;
    p.n_ops = ops_out(r, ops);
    p.ops = ops;
    p.nan = (Cured__V1__NanPolicy)r->nan;
    p.result_dtype = (Cured__V1__Dtype)r->result_dtype;
    p.ddof = r->ddof;
    p.overflow = (Cured__V1__Overflow)r->overflow;
    p.partial = r->want_partial;
    input_out(r, &unused, &stream, NULL, NULL);
    p.input = &stream;
    call->request_case = CURED__V1__CALL__REQUEST_MERGE;
    call->merge = &p;
    return cr_wire_emit(&call->base, out, cap);
}

static size_t pack_any_call(const cr_wire_call *m, uint8_t *out, size_t cap) {
    Cured__V1__InfoRequest info = CURED__V1__INFO_REQUEST__INIT;
    Cured__V1__StatsRequest stats = CURED__V1__STATS_REQUEST__INIT;
    Cured__V1__SlowLogRequest slow_log = CURED__V1__SLOW_LOG_REQUEST__INIT;
    Cured__V1__ReloadRequest reload = CURED__V1__RELOAD_REQUEST__INIT;
    Cured__V1__ConfigRequest config = CURED__V1__CONFIG_REQUEST__INIT;
    Cured__V1__Call p = CURED__V1__CALL__INIT;
    p.timeout_ms = m->timeout_ms;
    p.progress_ms = m->progress_ms;
    if (m->kind == CR_CALL_REDUCE) return pack_reduce(&m->reduce, NULL, NULL, &p, out, cap);
    if (m->kind == CR_CALL_MERGE) return pack_merge(&m->reduce, &p, out, cap);
    if (m->kind == CR_CALL_REGISTER || m->kind == CR_CALL_UNREGISTER) return cr_wire_emit_region(m, &p, out, cap);
    if (m->kind == CR_CALL_INFO) {
        p.request_case = CURED__V1__CALL__REQUEST_INFO;
        p.info = &info;
    } else if (m->kind == CR_CALL_STATS) {
        p.request_case = CURED__V1__CALL__REQUEST_STATS;
        p.stats = &stats;
    } else if (m->kind == CR_CALL_RELOAD) {
        p.request_case = CURED__V1__CALL__REQUEST_RELOAD;
        p.reload = &reload;
    } else if (m->kind == CR_CALL_CONFIG) {
        p.request_case = CURED__V1__CALL__REQUEST_CONFIG;
        p.config = &config;
    } else {
        p.request_case = CURED__V1__CALL__REQUEST_SLOW_LOG;
        p.slow_log = &slow_log;
    }
    return cr_wire_emit(&p.base, out, cap);
}

size_t cr_wire_pack_call(const cr_wire_call *m, uint8_t *out, size_t cap) {
    const size_t plain = cr_wire_write_plain_call(m, NULL, out, cap);
    return plain ? plain : pack_any_call(m, out, cap);
}

size_t cr_wire_emit_reduce(const cr_wire_call *m, Cured__V1__RegionsInput *regions, Cured__V1__Output **outputs,
                           uint8_t *out, size_t cap) {
    Cured__V1__Call p = CURED__V1__CALL__INIT;
    p.timeout_ms = m->timeout_ms;
    p.progress_ms = m->progress_ms;
    return pack_reduce(&m->reduce, regions, outputs, &p, out, cap);
}

static cr_status stream_in(const Cured__V1__StreamInput *p, cr_wire_reduce *m, cr_error *error) {
    m->source = CR_SOURCE_STREAM;
    m->offset = 0;
    m->length_known = p->length_case == CURED__V1__STREAM_INPUT__LENGTH_BYTES;
    m->length = m->length_known ? p->bytes : 0;
    if (!m->length_known && (p->length_case != CURED__V1__STREAM_INPUT__LENGTH_UNKNOWN || !p->unknown))
        return cr_fail(error, CR_INVALID_ARGUMENT, "StreamInput.length is missing: give bytes, or unknown = true");
    return CR_OK;
}

static cr_status ops_in(const Cured__V1__Op *ops, size_t n, cr_wire_reduce *m, cr_error *error) {
    if (n < 1 || n > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ops has %zu entries, must have 1 to %d", n, CR_CALL_MAX_OPS);
    m->op_count = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        m->ops[i] = (uint32_t)ops[i];
        for (size_t j = 0; j < i; j++)
            if (m->ops[j] == m->ops[i])
                return cr_fail(error, CR_INVALID_ARGUMENT, "ops names op %u twice, limit is once", m->ops[i]);
    }
    return CR_OK;
}

cr_status cr_wire_reduce_in(const Cured__V1__ReduceRequest *p, bool may_lack_input, cr_wire_reduce *m,
                            cr_error *error) {
    m->dtype = (uint32_t)p->dtype;
    m->result_dtype = (uint32_t)p->result_dtype;
    m->nan = (uint32_t)p->nan;
    m->overflow = (uint32_t)p->overflow;
    m->ddof = p->ddof;
    m->want_partial = p->partial;
    m->unplaced = p->unplaced;
    m->statuses = p->statuses;
    m->first = p->first;
    m->has_axis = p->axis != NULL;
    m->outer = p->axis ? p->axis->outer : 0;
    m->n = p->axis ? p->axis->n : 0;
    m->inner = p->axis ? p->axis->inner : 0;
    cr_status status = cr_wire_copy_name(m->kernel, p->kernel, "ReduceRequest.kernel", error);
    if (status == CR_OK) status = ops_in(p->ops, p->n_ops, m, error);
    if (status == CR_OK) status = cr_wire_outputs_in(p, m, NULL, error);
    if (status != CR_OK) return status;
    const Cured__V1__Input *input = p->input;
    if (input != NULL && input->source_case == CURED__V1__INPUT__SOURCE_STREAM && input->stream != NULL)
        return stream_in(input->stream, m, error);
    if (input != NULL && input->source_case == CURED__V1__INPUT__SOURCE_FILE_DESCRIPTOR &&
        input->file_descriptor != NULL)
        return cr_wire_descriptor_in(input->file_descriptor, m, error);
    if (input != NULL && input->source_case == CURED__V1__INPUT__SOURCE_REGION && input->region != NULL)
        return cr_wire_region_in(input->region, m, error);
    if (input != NULL && input->source_case == CURED__V1__INPUT__SOURCE_REGIONS && input->regions != NULL)
        return cr_wire_regions_in(input->regions, m, NULL, error);
    m->source = CR_SOURCE_INLINE;
    m->length_known = input != NULL && input->source_case == CURED__V1__INPUT__SOURCE_INLINE;
    m->length = m->length_known ? input->inline_ : 0;
    if (m->length_known || (input == NULL && may_lack_input)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "ReduceRequest.input is missing: give stream, file_descriptor, region or regions");
}

cr_status cr_wire_merge_in(const Cured__V1__MergeRequest *p, cr_wire_reduce *m, cr_error *error) {
    m->dtype = 0;
    m->result_dtype = (uint32_t)p->result_dtype;
    m->nan = (uint32_t)p->nan;
    m->overflow = (uint32_t)p->overflow;
    m->ddof = p->ddof;
    m->want_partial = p->partial;
    m->unplaced = m->statuses = false;
    m->first = 0;
    m->kernel[0] = '\0';
    m->has_axis = false;
    m->outer = m->n = m->inner = 0;
    m->outputs = 0;
    cr_status status = ops_in(p->ops, p->n_ops, m, error);
    if (status != CR_OK || p->input != NULL) return status == CR_OK ? stream_in(p->input, m, error) : status;
    m->source = CR_SOURCE_INLINE;
    m->length_known = false;
    m->length = 0;
    return CR_OK;
}

/* Requests without fields; 0: it is another one. */
static cr_wire_kind plain_kind(const Cured__V1__Call *p) {
    const int asked = (int)p->request_case;
    if (asked == CURED__V1__CALL__REQUEST_INFO && p->info != NULL) return CR_CALL_INFO;
    if (asked == CURED__V1__CALL__REQUEST_STATS && p->stats != NULL) return CR_CALL_STATS;
    if (asked == CURED__V1__CALL__REQUEST_SLOW_LOG && p->slow_log != NULL) return CR_CALL_SLOW_LOG;
    if (asked == CURED__V1__CALL__REQUEST_CONFIG && p->config != NULL) return CR_CALL_CONFIG;
    return asked == CURED__V1__CALL__REQUEST_RELOAD && p->reload != NULL ? CR_CALL_RELOAD : (cr_wire_kind)0;
}

static cr_status unpack_any_call(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    cr_wire_scratch scratch;
    void *parsed;
    cr_status status = cr_wire_parse_request(&scratch, &cured__v1__call__descriptor, false, in, len, &parsed, error);
    if (status != CR_OK) return status;
    const Cured__V1__Call *p = parsed;
    if (p->timeout_ms > CR_TIMEOUT_MAX_MS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "Call.timeout_ms is %u, limit is %d", p->timeout_ms,
                       CR_TIMEOUT_MAX_MS);
    m->timeout_ms = p->timeout_ms;
    m->progress_ms = p->progress_ms;
    m->kind = plain_kind(p);
    if (m->kind != 0) return CR_OK;
    if (p->request_case == CURED__V1__CALL__REQUEST_REDUCE && p->reduce != NULL) {
        m->kind = CR_CALL_REDUCE;
        return cr_wire_reduce_in(p->reduce, false, &m->reduce, error);
    }
    if (p->request_case == CURED__V1__CALL__REQUEST_MERGE && p->merge != NULL) {
        m->kind = CR_CALL_MERGE;
        if (p->merge->input == NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "MergeRequest.input is missing");
        return cr_wire_merge_in(p->merge, &m->reduce, error);
    }
    if (p->request_case == CURED__V1__CALL__REQUEST_REGISTER_REGION && p->register_region != NULL) {
        m->kind = CR_CALL_REGISTER;
        return cr_wire_register_in(p->register_region, &m->region, error);
    }
    if (p->request_case == CURED__V1__CALL__REQUEST_UNREGISTER_REGION && p->unregister_region != NULL) {
        m->kind = CR_CALL_UNREGISTER;
        return cr_wire_unregister_in(p->unregister_region, &m->region, error);
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "Call.request is missing or unknown (PROTOCOL.md lists what there is)");
}

cr_status cr_wire_unpack_call(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    return cr_wire_read_plain_call(in, len, m) ? CR_OK : unpack_any_call(in, len, m, error);
}
