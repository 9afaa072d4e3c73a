/* open: connections whose calls are answered in the caller's process, if the library was built with kernels (CURED_EMBEDDED).
 *
 * Thread: the one that uses the connection. Owner: the connection, until the table's close. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_OPEN_H
#define CURED_CLIENT_LIB_EMBEDDED_OPEN_H

#include "client/lib/call/calls.h"
#include "proto/status.h"

#define CR_CL_EMBEDDED "embedded:"

/* By as many threads as cured_connect_options.threads says. UNIMPLEMENTED: the library was built without kernels. */
cr_status cr_cl_embedded_open(cr_cl_calls *calls, uint32_t threads, cr_error *error);

#endif
