/* outputs: the regions that the answers along an axis are written to: kept while the call is under way, and named in its CALL.
 *
 * Thread: the one that uses the connection. Owner: the call. */
#ifndef CURED_CLIENT_LIB_CALL_OUTPUTS_H
#define CURED_CLIENT_LIB_CALL_OUTPUTS_H

#include "cured/cured.h"
#include "proto/status.h"

/* Makes call->outputs, which keeps them; none where the options name none. */
cr_status cr_cl_outputs_make(cured_call *call, const cured_options *o, cr_error *error);
/* Sees to it that the daemon has been told of them on this connection. */
cr_status cr_cl_outputs_ensure(const cured_call *call, cr_error *error);
/* Whether their registrations are still to be answered. */
bool cr_cl_outputs_opening(const cured_call *call);
/* Decides whether this try asks the daemon to write. FAILED: it cannot, and nothing else can be done. */
cr_status cr_cl_outputs_choose(cured_call *call, cr_error *error);
/* Whether it does. */
bool cr_cl_outputs_written(const cured_call *call);
/* Packs the CALL; its length, and where it lies. */
size_t cr_cl_outputs_pack(cured_call *call, const uint8_t **packed);
/* The op's place; false: there is none. */
typedef struct cr_cl_output {
    cured_region *region;
    uint64_t offset;
} cr_cl_output;
bool cr_cl_outputs_get(const cured_call *call, uint32_t op, cr_cl_output *output);
/* The call is done: its uses of the regions end. */
void cr_cl_outputs_release(cured_call *call);
void cr_cl_outputs_free(cured_call *call);

#endif
