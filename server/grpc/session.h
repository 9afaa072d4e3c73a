/* session: what nghttp2 is told, and tells.
 *
 * Thread: the loop's. Owner: the connection. */
#ifndef CURED_SERVER_GRPC_SESSION_H
#define CURED_SERVER_GRPC_SESSION_H

#include "server/grpc/stream.h"

/* The callbacks and options of all sessions. False: there is no memory. */
bool cr_session_setup(cr_grpc *grpc);
/* The connection's session, with its SETTINGS ready to go. False: there is no memory. */
bool cr_session_open(cr_grpc_conn *conn);
/* All that came has been looked at: clients need not send the rest of requests that were answered meanwhile. */
void cr_session_spare_rests(cr_grpc_conn *conn);

#endif
