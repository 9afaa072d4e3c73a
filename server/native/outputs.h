/* outputs: the regions that a call wants its answers along an axis written to.
 *
 * Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_NATIVE_OUTPUTS_H
#define CURED_SERVER_NATIVE_OUTPUTS_H

#include "server/native/front.h"

/* For a checked call with outputs: finds their regions, and gives the call its sink. payload: of its CALL. */
cr_status cr_outputs_open(cr_stream *stream, const uint8_t *payload, size_t bytes, cr_error *error);

#endif
