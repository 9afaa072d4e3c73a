/* region: memory that the daemon keeps open for a connection: what it is, who uses it, and whether the daemon knows it. The calls that
 * tell the daemon are call/register.c's; a region hears what came of them.
 *
 * Thread: the one that uses the connection. Owner: the program until cured_region_free; calls that name it keep it. The region
 * owns its Register call. */
#ifndef CURED_CLIENT_LIB_REGION_REGION_H
#define CURED_CLIENT_LIB_REGION_REGION_H

#include "base/list.h"
#include "cured/cured.h"
#include "proto/status.h"
#include "proto/wire.h"

/* The regions of a connection. */
typedef struct cr_cl_regions {
    cr_list all;
    uint64_t epoch; /* rises with every connection that is made anew; the daemon knows no region of an earlier one */
    uint64_t last;  /* the number of the newest region */
} cr_cl_regions;

void cr_cl_regions_init(cr_cl_regions *regions);
/* The connection is closed, and its regions are of no use any more. */
void cr_cl_regions_close(cr_cl_regions *regions);

/* fd is taken over; -1: none is needed. NULL: no memory. */
cured_region *cr_cl_region_new(cr_cl_regions *regions, const cr_wire_region *source, int fd);
/* NULL once the connection is closed. */
cr_cl_regions *cr_cl_region_home(const cured_region *region);
/* What Register says of it. */
const cr_wire_region *cr_cl_region_source(const cured_region *region);
int cr_cl_region_descriptor(const cured_region *region);

/* The program lets go of it: no more calls. */
void cr_cl_region_close(cured_region *region);
/* Whether calls may name it: neither it nor its connection is closed. */
bool cr_cl_region_usable(const cured_region *region);
/* One use more. */
void cr_cl_region_use(cured_region *region);
/* The same for outputs: a region that may be written. has_results: the library may have to fill it. */
cr_status cr_cl_region_keep(cured_region *region, const cr_cl_regions *regions, uint32_t index, bool has_results,
                            cr_error *error);
/* One use less; true: it was the last, and whoever calls frees the region. */
bool cr_cl_region_leave(cured_region *region);
void cr_cl_region_free(cured_region *region);

/* Its registration on this connection is under way or has succeeded. */
bool cr_cl_region_registered(const cured_region *region);
/* The last Register call is of this connection, whatever came of it. */
bool cr_cl_region_current(const cured_region *region);
/* The daemon knows it, and has not been told of its end. */
bool cr_cl_region_known(const cured_region *region);
/* The daemon is told of its end. */
void cr_cl_region_ends(cured_region *region);
/* It is registered from now on by this call, which is not submitted yet. */
void cr_cl_region_opens(cured_region *region, cured_call *opening);
/* The last Register call; NULL: there was none. */
cured_call *cr_cl_region_opening(const cured_region *region);
/* What the daemon says of it. */
void cr_cl_region_is_open(cured_region *region, const cr_wire_registered *r);
/* The same in this process: fd (taken over), and the memory of a sealed one, mapped; NULL: it is read. */
void cr_cl_region_opened(cured_region *region, int fd, void *memory, uint64_t bytes);
/* The Register call is done, with this. */
void cr_cl_region_answered(cured_region *region, const cr_error *error);

/* Of its registration on this connection, for answers that are to be written there: OPEN, or not yet, or *why not. */
typedef enum cr_cl_region_state { CR_REGION_OPENING, CR_REGION_OPEN, CR_REGION_FAILED } cr_cl_region_state;
cr_cl_region_state cr_cl_region_is(const cured_region *region, const cr_error **why);
/* Why it could not be opened; NULL: it may be open. */
const cr_error *cr_cl_region_error(const cured_region *region);
/* What a call reads: *memory NULL: the descriptor. */
int cr_cl_region_view(const cured_region *region, const uint8_t **memory, uint64_t *bytes);

#endif
