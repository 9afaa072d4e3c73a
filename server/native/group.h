/* group: one array in several regions, which may lie on different GPUs. Each piece is reduced by a call of its own, to a partial,
 * where it lies; the partials are merged and answer the client's call.
 *
 * The calls of the pieces are let in like any others, and count against the limits of their connection. The first that fails fails the
 * client's call, and the others are cancelled.
 *
 * Thread: the loop's. Owner: the group is the stream's of the client's call, and goes with it. */
#ifndef CURED_SERVER_NATIVE_GROUP_H
#define CURED_SERVER_NATIVE_GROUP_H

#include "server/native/front.h"

/* Begins a call of CR_SOURCE_REGIONS, which is checked; payload: its CALL. The call may be gone. */
void cr_group_begin(cr_stream *stream, const uint8_t *payload, size_t bytes);
/* The client's call is over: calls of its pieces end. Nothing for a stream without a group. */
void cr_group_drop(cr_stream *stream);
/* How far all pieces are; false: the stream has no group. */
bool cr_group_progress(const cr_stream *stream, cr_wire_progress *sum);

#endif
