/* regions: the calls that tell the daemon of regions (register.c), and the calls that reduce them (pieces.c).
 *
 * A region is registered by a call of its own, which goes out before the first reduction that names it, and again before the
 * first one on every connection that was made anew; nothing waits for its answer. The library keeps what it needs to do so (a
 * duplicate of the descriptor).
 *
 * Thread: the one that uses the connection. Owner: a call keeps the regions that it names until it is done. */
#ifndef CURED_CLIENT_LIB_CALL_REGIONS_H
#define CURED_CLIENT_LIB_CALL_REGIONS_H

#include "client/lib/call/calls.h"
#include "cured/cured.h"
#include "proto/status.h"

/* register.c. Of a region whose connection is not closed. */
cr_cl_calls *cr_cl_region_calls(const cured_region *region);
/* Sees to it that the daemon has been told of the region on this connection. */
cr_status cr_cl_region_ensure(cured_region *region, cr_error *error);
/* A use of the region ends. After the last one the daemon is told, and the region is gone. */
void cr_cl_region_release(cured_region *region);

/* pieces.c: the same for all regions that a call of KIND_REGION reads. */
cr_status cr_cl_regions_ensure(cured_call *call, cr_error *error);
void cr_cl_regions_release(cured_call *call);
/* Whether the call is about a writable region: it waits for WELCOME, because older daemons know no such thing. */
bool cr_cl_regions_writable(const cured_call *call);
/* Why a region that the call reads is not there; NULL: all may be. */
const cr_error *cr_cl_regions_error(const cured_call *call);
/* Packs the CALL of several regions into call->owned; its length. */
size_t cr_cl_regions_pack(cured_call *call);

#endif
