/* outputs: see outputs.h. Thread, owner: see there. */
#include "client/lib/call/outputs.h"

#include <stdlib.h>

#include "client/lib/call/beside.h"
#include "client/lib/call/regions.h"

enum { PACKED_BYTES = CR_CL_HEAD_BYTES + CR_CALL_MAX_OPS * 32 }; /* the longest CALL with outputs */

struct cr_outputs {
    uint32_t count; /* of regions that are kept */
    bool written;   /* this try asks the daemon to write */
    cured_region *regions[CR_CALL_MAX_OPS];
    cr_wire_output wire[CR_CALL_MAX_OPS];
    uint8_t packed[PACKED_BYTES];
};

cr_status cr_cl_outputs_make(cured_call *call, const cured_options *o, cr_error *error) {
    cr_status status = CR_OK;
    if (o->outputs == NULL) return CR_OK;
    if (call->array == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs: only answers along an axis are written; set axis");
    if (o->on_part != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs: no answer comes here for on_part; leave out one of them");
    call->outputs = calloc(1, sizeof *call->outputs); /* freed with the call from here on */
    if (call->outputs == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    for (uint32_t i = 0; status == CR_OK && i < call->value_count; i++) {
        cured_region *region = o->outputs[i].region;
        status = region != NULL ? cr_cl_region_keep(region, &call->calls->regions, i, o->results != NULL, error)
                                : cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].region is NULL", i);
        if (status != CR_OK) break;
        call->outputs->regions[i] = region;
        call->outputs->wire[i] = (cr_wire_output){cr_cl_region_source(region)->id, o->outputs[i].offset};
        call->outputs->count = i + 1;
    }
    return status;
}

cr_status cr_cl_outputs_ensure(const cured_call *call, cr_error *error) {
    for (uint32_t i = 0; call->outputs != NULL && i < call->outputs->count; i++)
        if (cr_cl_region_ensure(call->outputs->regions[i], error) != CR_OK) return error->code;
    return CR_OK;
}

bool cr_cl_outputs_opening(const cured_call *call) {
    const cr_error *why;
    for (uint32_t i = 0; call->outputs != NULL && i < call->outputs->count; i++)
        if (cr_cl_region_is(call->outputs->regions[i], &why) == CR_REGION_OPENING) return true;
    return false;
}

cr_status cr_cl_outputs_choose(cured_call *call, cr_error *error) {
    struct cr_outputs *outputs = call->outputs;
    cr_status status = CR_OK;
    const cr_error *why;
    if (outputs == NULL) return CR_OK;
    if (!call->calls->has[CR_FEATURE_OUTPUTS])
        status = cr_fail(error, CR_UNIMPLEMENTED,
                         "outputs: this daemon is too old to write answers into regions; give results, too");
    for (uint32_t i = 0; status == CR_OK && i < outputs->count; i++) {
        if (cr_cl_region_is(outputs->regions[i], &why) == CR_REGION_OPEN) continue;
        status = cr_fail(error, why->code, "outputs[%u]: %.200s", i, why->text);
    }
    outputs->written = status == CR_OK;
    if (outputs->written || !cr_cl_array_has_results(call->array)) return status;
    if (cr_cl_array_expect_parts(call->array)) return CR_OK; /* results are where answers that are sent go */
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the answers that are sent");
}

bool cr_cl_outputs_written(const cured_call *call) { return call->outputs != NULL && call->outputs->written; }

size_t cr_cl_outputs_pack(cured_call *call, const uint8_t **packed) {
    *packed = call->outputs->packed;
    return cr_cl_beside_pack(call, call->outputs->wire, call->outputs->packed, PACKED_BYTES);
}

bool cr_cl_outputs_get(const cured_call *call, uint32_t op, cr_cl_output *output) {
    const struct cr_outputs *outputs = call->outputs;
    if (outputs == NULL || op >= outputs->count) return false;
    *output = (cr_cl_output){outputs->regions[op], outputs->wire[op].offset};
    return true;
}

void cr_cl_outputs_release(cured_call *call) {
    if (call->outputs == NULL) return;
    for (uint32_t i = 0; i < call->outputs->count; i++) cr_cl_region_release(call->outputs->regions[i]);
    call->outputs->count = 0;
}

void cr_cl_outputs_free(cured_call *call) {
    cr_cl_outputs_release(call);
    free(call->outputs);
}
