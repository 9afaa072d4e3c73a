/* wire_region: what is said of descriptors and regions, in inputs and in Register and Unregister, between protobuf and plain structs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire.h"
#include "proto/wire_internal.h"

/* protobuf-c wants uint8_t *, and reads only. */
static ProtobufCBinaryData bytes_out(const uint8_t *bytes, size_t len) {
    return (ProtobufCBinaryData){.len = len, .data = (uint8_t *)(uintptr_t)bytes};
}

static size_t emit_register(const cr_wire_region *m, Cured__V1__Call *call, uint8_t *out, size_t cap) {
    Cured__V1__DescriptorRegion descriptor = CURED__V1__DESCRIPTOR_REGION__INIT;
    Cured__V1__ShmRegion shm = CURED__V1__SHM_REGION__INIT;
    Cured__V1__CudaIpcRegion ipc = CURED__V1__CUDA_IPC_REGION__INIT;
    Cured__V1__CudaDescriptorRegion passed = CURED__V1__CUDA_DESCRIPTOR_REGION__INIT;
    Cured__V1__RegisterRequest p = CURED__V1__REGISTER_REQUEST__INIT;
    p.region = m->id;
    p.writable = m->writable;
    switch (m->kind) {
        case CR_SHARED_DESCRIPTOR:
            p.source_case = CURED__V1__REGISTER_REQUEST__SOURCE_FILE_DESCRIPTOR;
            p.file_descriptor = &descriptor;
            break;
        case CR_SHARED_NAME:
            p.source_case = CURED__V1__REGISTER_REQUEST__SOURCE_SHM;
            p.shm = &shm;
            shm.name = (char *)(uintptr_t)m->name;
            break;
        case CR_SHARED_CUDA_IPC:
            p.source_case = CURED__V1__REGISTER_REQUEST__SOURCE_CUDA_IPC;
            p.cuda_ipc = &ipc;
            ipc.device = bytes_out(m->device, sizeof m->device);
            ipc.handle = bytes_out(m->handle, sizeof m->handle);
            ipc.offset = m->offset;
            ipc.bytes = m->bytes;
            ipc.event = bytes_out(m->event, m->has_event ? sizeof m->event : 0);
            break;
        case CR_SHARED_CUDA_DESCRIPTOR:
            p.source_case = CURED__V1__REGISTER_REQUEST__SOURCE_CUDA_DESCRIPTOR;
            p.cuda_descriptor = &passed;
            passed.device = bytes_out(m->device, sizeof m->device);
            passed.offset = m->offset;
            passed.bytes = m->bytes;
            passed.pointer = bytes_out(m->handle, m->has_handle ? sizeof m->handle : 0);
            passed.event = bytes_out(m->event, m->has_event ? sizeof m->event : 0);
            break;
    }
    call->request_case = CURED__V1__CALL__REQUEST_REGISTER_REGION;
    call->register_region = &p;
    return cr_wire_emit(&call->base, out, cap);
}

size_t cr_wire_emit_region(const cr_wire_call *m, Cured__V1__Call *call, uint8_t *out, size_t cap) {
    if (m->kind == CR_CALL_REGISTER) return emit_register(&m->region, call, out, cap);
    Cured__V1__UnregisterRequest p = CURED__V1__UNREGISTER_REQUEST__INIT;
    p.region = m->region.id;
    call->request_case = CURED__V1__CALL__REQUEST_UNREGISTER_REGION;
    call->unregister_region = &p;
    return cr_wire_emit(&call->base, out, cap);
}

static cr_status take_bytes(const ProtobufCBinaryData *p, const char *field, uint8_t *to, size_t len, bool *has,
                            cr_error *error) {
    bool empty_is_fine = has != NULL;
    memset(to, 0, len);
    if (has != NULL) *has = p->len != 0;
    if (p->len == 0 && empty_is_fine) return CR_OK;
    if (p->len != len)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %zu bytes, must have %zu", field, p->len, len);
    memcpy(to, p->data, len);
    return CR_OK;
}

static cr_status take_name(const char *name, cr_wire_region *m, cr_error *error) {
    size_t len = strlen(name);
    if (len > CR_SHM_NAME_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ShmRegion.name has %zu bytes, limit is %d", len,
                       CR_SHM_NAME_MAX_BYTES);
    if (len < 2 || name[0] != '/' || strchr(name + 1, '/') != NULL || strcmp(name, "/.") == 0 ||
        strcmp(name, "/..") == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "ShmRegion.name must be one slash and a name without any, as for shm_open");
    memcpy(m->name, name, len + 1);
    return CR_OK;
}

static cr_status check_bytes(uint64_t offset, uint64_t bytes, cr_error *error) {
    if (bytes == 0) return cr_fail(error, CR_INVALID_ARGUMENT, "bytes: a region of device memory has at least 1");
    if (offset > UINT64_MAX - bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offset: %llu and %llu bytes end beyond 2^64",
                       (unsigned long long)offset, (unsigned long long)bytes);
    return CR_OK;
}

static cr_status ipc_in(const Cured__V1__CudaIpcRegion *p, cr_wire_region *m, cr_error *error) {
    m->kind = CR_SHARED_CUDA_IPC;
    m->offset = p->offset;
    m->bytes = p->bytes;
    cr_status status = take_bytes(&p->device, "CudaIpcRegion.device", m->device, sizeof m->device, NULL, error);
    if (status == CR_OK)
        status = take_bytes(&p->handle, "CudaIpcRegion.handle", m->handle, sizeof m->handle, NULL, error);
    m->has_handle = true;
    if (status == CR_OK)
        status = take_bytes(&p->event, "CudaIpcRegion.event", m->event, sizeof m->event, &m->has_event, error);
    return status == CR_OK ? check_bytes(m->offset, m->bytes, error) : status;
}

static cr_status passed_in(const Cured__V1__CudaDescriptorRegion *p, cr_wire_region *m, cr_error *error) {
    m->kind = CR_SHARED_CUDA_DESCRIPTOR;
    m->offset = p->offset;
    m->bytes = p->bytes;
    cr_status status = take_bytes(&p->device, "CudaDescriptorRegion.device", m->device, sizeof m->device, NULL, error);
    if (status == CR_OK)
        status =
            take_bytes(&p->pointer, "CudaDescriptorRegion.pointer", m->handle, sizeof m->handle, &m->has_handle, error);
    if (status == CR_OK)
        status = take_bytes(&p->event, "CudaDescriptorRegion.event", m->event, sizeof m->event, &m->has_event, error);
    return status == CR_OK ? check_bytes(m->offset, m->bytes, error) : status;
}

cr_status cr_wire_register_in(const Cured__V1__RegisterRequest *p, cr_wire_region *m, cr_error *error) {
    m->id = p->region;
    m->writable = p->writable;
    m->name[0] = '\0';
    m->has_handle = m->has_event = false;
    m->offset = m->bytes = 0;
    if (p->region == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "RegisterRequest.region is 0, must be the number of a new region");
    if (p->source_case == CURED__V1__REGISTER_REQUEST__SOURCE_FILE_DESCRIPTOR && p->file_descriptor != NULL) {
        m->kind = CR_SHARED_DESCRIPTOR;
        return CR_OK;
    }
    if (p->source_case == CURED__V1__REGISTER_REQUEST__SOURCE_SHM && p->shm != NULL) {
        m->kind = CR_SHARED_NAME;
        return take_name(p->shm->name, m, error);
    }
    if (p->source_case == CURED__V1__REGISTER_REQUEST__SOURCE_CUDA_IPC && p->cuda_ipc != NULL)
        return ipc_in(p->cuda_ipc, m, error);
    if (p->source_case == CURED__V1__REGISTER_REQUEST__SOURCE_CUDA_DESCRIPTOR && p->cuda_descriptor != NULL)
        return passed_in(p->cuda_descriptor, m, error);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "RegisterRequest.source is missing: give file_descriptor, shm, cuda_ipc or cuda_descriptor");
}

cr_status cr_wire_unregister_in(const Cured__V1__UnregisterRequest *p, cr_wire_region *m, cr_error *error) {
    m->id = p->region;
    if (p->region == 0) return cr_fail(error, CR_INVALID_ARGUMENT, "UnregisterRequest.region is 0, no region's number");
    return CR_OK;
}

size_t cr_wire_pack_registered(const cr_wire_registered *m, uint8_t *out, size_t cap) {
    Cured__V1__RegisterResponse p = CURED__V1__REGISTER_RESPONSE__INIT;
    p.bytes = m->bytes;
    p.read_only = m->read_only;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_registered(const uint8_t *in, size_t len, cr_wire_registered *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__RegisterResponse *p =
        cr_wire_parse(&scratch, &cured__v1__register_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->bytes = p->bytes;
    m->read_only = p->read_only;
    return CR_OK;
}

cr_status cr_wire_descriptor_in(const Cured__V1__DescriptorInput *p, cr_wire_reduce *m, cr_error *error) {
    m->source = CR_SOURCE_DESCRIPTOR;
    m->offset = p->offset;
    m->length_known = p->length_case == CURED__V1__DESCRIPTOR_INPUT__LENGTH_COUNT;
    m->length = m->length_known ? p->count : 0;
    if (!m->length_known && (p->length_case != CURED__V1__DESCRIPTOR_INPUT__LENGTH_TO_END || !p->to_end))
        return cr_fail(error, CR_INVALID_ARGUMENT, "DescriptorInput.length is missing: give count, or to_end = true");
    return CR_OK;
}

cr_status cr_wire_region_in(const Cured__V1__RegionInput *p, cr_wire_reduce *m, cr_error *error) {
    m->source = CR_SOURCE_REGION;
    m->region = p->region;
    m->offset = p->offset;
    m->length_known = p->length_case == CURED__V1__REGION_INPUT__LENGTH_COUNT;
    m->length = m->length_known ? p->count : 0;
    if (!m->length_known && (p->length_case != CURED__V1__REGION_INPUT__LENGTH_TO_END || !p->to_end))
        return cr_fail(error, CR_INVALID_ARGUMENT, "RegionInput.length is missing: give count, or to_end = true");
    return CR_OK;
}

size_t cr_wire_pack_pieces(const cr_wire_call *m, const cr_wire_piece *pieces, uint8_t *out, size_t cap) {
    Cured__V1__RegionsInput p = CURED__V1__REGIONS_INPUT__INIT;
    Cured__V1__RegionInput each[CR_CALL_MAX_PIECES], *list[CR_CALL_MAX_PIECES];
    p.n_pieces = m->reduce.length < CR_CALL_MAX_PIECES ? (size_t)m->reduce.length : CR_CALL_MAX_PIECES;
    p.pieces = list;
    for (size_t i = 0; i < p.n_pieces; i++) {
        list[i] = &each[i];
        cured__v1__region_input__init(&each[i]);
        each[i].region = pieces[i].region;
        each[i].offset = pieces[i].offset;
        each[i].length_case =
            pieces[i].to_end ? CURED__V1__REGION_INPUT__LENGTH_TO_END : CURED__V1__REGION_INPUT__LENGTH_COUNT;
        if (pieces[i].to_end)
            each[i].to_end = 1;
        else
            each[i].count = pieces[i].count;
    }
    return cr_wire_emit_reduce(m, &p, NULL, out, cap);
}

static cr_status piece_in(const Cured__V1__RegionInput *p, size_t index, bool last, cr_wire_piece *piece,
                          cr_error *error) {
    const bool counted = p->length_case == CURED__V1__REGION_INPUT__LENGTH_COUNT;
    const bool to_end = p->length_case == CURED__V1__REGION_INPUT__LENGTH_TO_END && p->to_end;
    *piece = (cr_wire_piece){p->region, p->offset, to_end, counted ? p->count : 0};
    if (counted || (to_end && last)) return CR_OK;
    if (to_end)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "RegionsInput.pieces[%zu] has to_end, which only the last piece may: give its count", index);
    return cr_fail(error, CR_INVALID_ARGUMENT, "RegionsInput.pieces[%zu].length is missing: give count", index);
}

cr_status cr_wire_regions_in(const Cured__V1__RegionsInput *p, cr_wire_reduce *m,
                             cr_wire_piece pieces[CR_CALL_MAX_PIECES], cr_error *error) {
    cr_wire_piece unused;
    m->source = CR_SOURCE_REGIONS;
    m->region = m->offset = 0;
    m->length_known = false;
    m->length = p->n_pieces;
    if (p->n_pieces < 1 || p->n_pieces > CR_CALL_MAX_PIECES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "RegionsInput.pieces has %zu entries, must have 1 to %d",
                       p->n_pieces, CR_CALL_MAX_PIECES);
    for (size_t i = 0; i < p->n_pieces; i++) {
        const cr_status status =
            piece_in(p->pieces[i], i, i + 1 == p->n_pieces, pieces != NULL ? &pieces[i] : &unused, error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

cr_status cr_wire_unpack_pieces(const uint8_t *in, size_t len, cr_wire_piece pieces[CR_CALL_MAX_PIECES],
                                cr_error *error) {
    cr_wire_scratch scratch;
    cr_wire_reduce ignored;
    const Cured__V1__Call *p = cr_wire_parse(&scratch, &cured__v1__call__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    if (p->request_case != CURED__V1__CALL__REQUEST_REDUCE || p->reduce->input == NULL ||
        p->reduce->input->source_case != CURED__V1__INPUT__SOURCE_REGIONS)
        return cr_fail(error, CR_INTERNAL, "the call has no pieces");
    return cr_wire_regions_in(p->reduce->input->regions, &ignored, pieces, error);
}
