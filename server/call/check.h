/* check: what can be said about a reduce request before a byte of its array is read.
 *
 * Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_CHECK_H
#define CURED_SERVER_CALL_CHECK_H

#include "server/call/call.h"

/* Checks types, ops, options, shape and declared length; fills the call's dtype, finish and families. */
cr_status cr_request_check(cr_call *call, cr_error *error);
/* Its parts, for a merge, whose dtype is known only when its first partial is there. */
cr_status cr_request_check_finish(cr_call *call, cr_error *error);
cr_status cr_request_check_ops(cr_call *call, cr_error *error);

/* Admits the call with the length of its input, where only its file or region said that. RESOURCE_EXHAUSTED. */
cr_status cr_request_charge(cr_call *call, cr_error *error);

#endif
