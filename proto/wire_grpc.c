/* wire_grpc: the requests of gRPC. They are the native protocol's, without the Call around them, and may have the array (or the
 * partials) within; what calls this has cut those off.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include "proto/wire.h"
#include "proto/wire_internal.h"

cr_status cr_wire_unpack_reduce(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    const ProtobufCMessageDescriptor *type = &cured__v1__reduce_request__descriptor;
    cr_wire_scratch scratch;
    void *p;
    m->progress_ms = 0;
    m->kind = CR_CALL_REDUCE;
    if (cr_wire_read_plain_reduce(in, len, &m->reduce)) return CR_OK;
    cr_status status = cr_wire_parse_request(&scratch, type, true, in, len, &p, error);
    return status == CR_OK ? cr_wire_reduce_in(p, true, &m->reduce, error) : status;
}

cr_status cr_wire_unpack_merge(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    const ProtobufCMessageDescriptor *type = &cured__v1__merge_request__descriptor;
    cr_wire_scratch scratch;
    void *p;
    m->progress_ms = 0;
    m->kind = CR_CALL_MERGE;
    cr_status status = cr_wire_parse_request(&scratch, type, true, in, len, &p, error);
    return status == CR_OK ? cr_wire_merge_in(p, &m->reduce, error) : status;
}

cr_status cr_wire_unpack_head(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    const ProtobufCMessageDescriptor *type = &cured__v1__reduce_chunk__descriptor;
    cr_wire_scratch scratch;
    void *parsed;
    cr_status status = cr_wire_parse_request(&scratch, type, true, in, len, &parsed, error);
    if (status != CR_OK) return status;
    const Cured__V1__ReduceChunk *p = parsed;
    m->progress_ms = p->progress_ms;
    m->kind = CR_CALL_REDUCE;
    if (p->chunk_case != CURED__V1__REDUCE_CHUNK__CHUNK_HEAD || p->head == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceChunk has neither head nor data");
    if (p->head->data.len != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceRequest.data: ReduceStream takes it as ReduceChunk.data");
    return cr_wire_reduce_in(p->head, true, &m->reduce, error);
}

/* Of a request without fields. */
static cr_status unpack_plain(const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len, cr_error *error) {
    cr_wire_scratch scratch;
    void *p;
    return cr_wire_parse_request(&scratch, type, true, in, len, &p, error);
}

cr_status cr_wire_unpack_info_request(const uint8_t *in, size_t len, cr_error *error) {
    return unpack_plain(&cured__v1__info_request__descriptor, in, len, error);
}

cr_status cr_wire_unpack_stats_request(const uint8_t *in, size_t len, cr_error *error) {
    return unpack_plain(&cured__v1__stats_request__descriptor, in, len, error);
}

cr_status cr_wire_unpack_slow_log_request(const uint8_t *in, size_t len, cr_error *error) {
    return unpack_plain(&cured__v1__slow_log_request__descriptor, in, len, error);
}
