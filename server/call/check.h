/* check: what can be said about a request before a byte of its array is read.
 *
 * Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_CHECK_H
#define CURED_SERVER_CALL_CHECK_H

#include "server/call/call.h"

/* Checks types, ops, options, shape, kernel and declared length; fills the call's dtype, finish and families. */
cr_status cr_check_reduce(cr_call *call, cr_error *error);
/* Its parts, for a merge, whose dtype is known only when its first partial is there. */
cr_status cr_check_finish(cr_call *call, cr_error *error);
cr_status cr_check_ops(cr_call *call, cr_error *error);

#endif
