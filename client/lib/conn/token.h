/* token: where a connection's token comes from, and where it may go. Thread: the connection's. Owner: the connection. */
#ifndef CURED_CLIENT_LIB_CONN_TOKEN_H
#define CURED_CLIENT_LIB_CONN_TOKEN_H

#include "cured/cured.h"
#include "proto/status.h"

/* Takes the token of the options or the environment, if there is one and the connection's address may see it. */
cr_status cr_cl_token_take(cured_conn *conn, const cured_connect_options *options, bool tls, cr_error *error);

#endif
