/* reflection: grpc.reflection.v1 and v1alpha (gRPC's "Server Reflection Protocol"): clients without our .proto, such as grpcurl,
 * learn here what may be called.
 *
 * Thread: the loop's. Owner: the stream. */
#ifndef CURED_SERVER_GRPC_REFLECTION_H
#define CURED_SERVER_GRPC_REFLECTION_H

#include "server/grpc/stream.h"

bool cr_reflection_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole);
void cr_reflection_end(cr_grpc_stream *stream);

#endif
