/* health: grpc.health.v1 (gRPC's "Health Checking Protocol"). SERVING while /healthz/ready says so.
 *
 * Thread: the loop's. Owner: the stream. */
#ifndef CURED_SERVER_GRPC_HEALTH_H
#define CURED_SERVER_GRPC_HEALTH_H

#include "server/grpc/stream.h"

bool cr_health_check(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole);
/* Stays, and hears of changes. */
bool cr_health_watch(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole);
/* Once a turn: tells those that watch of a change. */
void cr_health_look(cr_grpc *grpc);
/* The door closes. */
void cr_health_forget(cr_grpc *grpc);

#endif
