/* sink_region: a sink of registered regions: each op's answers go to a place in one of them.
 *
 * Thread: made on the loop; see sink.h. Owner: the job; the sink has a use of each region. */
#ifndef CURED_ENGINE_SINK_REGION_H
#define CURED_ENGINE_SINK_REGION_H

#include "engine/memory/kept.h"
#include "engine/sink.h"

typedef struct cr_sink_place {
    cr_kept *kept; /* open, writable */
    uint64_t offset, bytes;
} cr_sink_place;

/* For places that cr_range_outputs has checked: whether their regions can be written now; then takes a use of each. NULL: error says
 * why not. */
cr_sink *cr_sink_region_new(const cr_sink_place *places, uint32_t count, cr_error *error);

#endif
