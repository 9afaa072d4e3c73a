/* pieces: calls that reduce regions: one, or several together. See regions.h.
 *
 * Thread: the one that uses the connection. Owner: a call keeps its regions until it is done. */
#include <stdlib.h>

#include "client/lib/call/call.h"
#include "client/lib/call/regions.h"
#include "client/lib/error.h"

enum { PIECES_BYTES = 1024 }; /* the longest CALL of several regions */

/* What a call of several regions keeps. */
struct cr_pieces {
    cured_region *regions[CR_CALL_MAX_PIECES];
    cr_wire_piece wire[CR_CALL_MAX_PIECES];
    size_t count;
};

static size_t regions_of(const cured_call *call, cured_region *const **regions) {
    *regions = call->pieces != NULL ? call->pieces->regions : &call->region;
    return call->pieces != NULL ? call->pieces->count : 1;
}

bool cr_cl_regions_writable(const cured_call *call) {
    cured_region *const *regions;
    if (call->kind == KIND_REGISTER || call->kind == KIND_UNREGISTER) return call->request.region.writable;
    const size_t count = call->kind == KIND_REGION ? regions_of(call, &regions) : 0;
    for (size_t i = 0; i < count; i++)
        if (cr_cl_region_source(regions[i])->writable) return true;
    return false;
}

const cr_error *cr_cl_regions_error(const cured_call *call) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    const cr_error *why = NULL;
    for (size_t i = 0; i < count && why == NULL; i++) why = cr_cl_region_error(regions[i]);
    return why;
}

cr_status cr_cl_regions_ensure(cured_call *call, cr_error *error) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    for (size_t i = 0; i < count; i++)
        if (cr_cl_region_ensure(regions[i], error) != CR_OK) return error->code;
    return CR_OK;
}

void cr_cl_regions_release(cured_call *call) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    for (size_t i = 0; i < count; i++) cr_cl_region_release(regions[i]);
}

size_t cr_cl_regions_pack(cured_call *call) {
    return cr_wire_pack_pieces(&call->request, call->pieces->wire, call->owned, PIECES_BYTES);
}

cured_status cured_region_reduce(cured_region *region, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                 uint64_t offset, uint64_t count, const cured_options *options, cured_call **out,
                                 cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    if (!cr_cl_region_usable(region))
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
    cured_call *call =
        cr_cl_new_reduce(cr_cl_region_calls(region), KIND_REGION, dtype, ops, op_count, count, options, &e);
    if (call == NULL) return cr_cl_give(error, &e, 0);
    cr_wire_reduce *r = &call->request.reduce;
    r->source = CR_SOURCE_REGION;
    r->region = cr_cl_region_source(region)->id;
    r->offset = offset;
    r->length_known = count != CURED_TO_END;
    r->length = count != CURED_TO_END ? count : 0;
    call->region = region;
    cr_cl_region_use(region);
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

/* The pieces as the wire has them. *elements: of all, CURED_TO_END where that is not known. */
static cr_status take_pieces(const cured_piece *pieces, size_t count, size_t size, struct cr_pieces *out,
                             uint64_t *elements, cr_error *error) {
    const cr_cl_regions *home = cr_cl_region_home(pieces[0].region);
    *elements = 0;
    for (size_t i = 0; i < count; i++) {
        cured_region *region = pieces[i].region;
        uint64_t length = pieces[i].count;
        if (!cr_cl_region_usable(region))
            return cr_fail(error, CR_FAILED_PRECONDITION, "pieces[%zu]: the region, or its connection, is closed", i);
        if (cr_cl_region_home(region) != home)
            return cr_fail(error, CR_INVALID_ARGUMENT, "pieces[%zu]: its region belongs to another connection", i);
        const uint64_t bytes = cured_region_bytes(region);
        if (length == CURED_TO_END && i + 1 < count) {
            if (bytes == 0 || !cr_cl_region_registered(region))
                return cr_fail(error, CR_FAILED_PRECONDITION,
                               "pieces[%zu] goes to the end of a region that is not open: give its count, or call "
                               "cured_region_wait() first",
                               i);
            if (pieces[i].offset > bytes || (bytes - pieces[i].offset) % size != 0)
                return cr_fail(error, CR_INVALID_ARGUMENT,
                               "pieces[%zu]: from byte %llu on the region has no whole elements of %zu bytes", i,
                               (unsigned long long)pieces[i].offset, size);
            length = (bytes - pieces[i].offset) / size;
        }
        out->regions[i] = region;
        out->wire[i] = (cr_wire_piece){cr_cl_region_source(region)->id, pieces[i].offset, length == CURED_TO_END,
                                       length == CURED_TO_END ? 0 : length};
        if (length == CURED_TO_END || length > (uint64_t)INT64_MAX - *elements)
            *elements = CURED_TO_END;
        else
            *elements += length;
    }
    out->count = count;
    return CR_OK;
}

cured_status cured_reduce_regions(const cured_piece *pieces, size_t count, cured_dtype dtype, const cured_op *ops,
                                  size_t op_count, const cured_options *options, cured_call **out, cured_error *error) {
    cr_error e = {CR_OK, ""};
    uint64_t elements;
    *out = NULL;
    const size_t size = cured_dtype_size(dtype);
    if (count < 1 || count > CR_CALL_MAX_PIECES)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is %zu, must be 1 to %d pieces", count,
                          CR_CALL_MAX_PIECES);
    struct cr_pieces *taken = calloc(1, sizeof *taken);
    void *packed = malloc(PIECES_BYTES);
    cured_call *call = NULL;
    if (taken == NULL || packed == NULL)
        cr_fail(&e, CR_RESOURCE_EXHAUSTED, "no memory for %zu pieces", count);
    else if (take_pieces(pieces, count, size != 0 ? size : 1, taken, &elements, &e) == CR_OK)
        call = cr_cl_new_reduce(cr_cl_region_calls(pieces[0].region), KIND_REGION, dtype, ops, op_count, elements,
                                options, &e);
    if (call == NULL) {
        free(taken);
        free(packed);
        return cr_cl_give(error, &e, 0);
    }
    cr_wire_reduce *r = &call->request.reduce;
    r->source = CR_SOURCE_REGIONS;
    r->length_known = false;
    r->length = count;
    call->pieces = taken;
    call->owned = packed;
    call->region = taken->regions[0];
    for (size_t i = 0; i < count; i++) cr_cl_region_use(taken->regions[i]);
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}
