/* keyed: the partial by key that a daemon sends in parts, one behind the other (PROTOCOL.md, "Keys"). The daemon is not trusted: its bytes
 * are no more than so many elements can give.
 *
 * Thread: the one that uses the connection. Owner: the call has the bytes. */
#ifndef CURED_CLIENT_LIB_CALL_KEYED_H
#define CURED_CLIENT_LIB_CALL_KEYED_H

#include "client/lib/call/call.h"

/* Whether the call asks a daemon for one. */
bool cr_cl_keyed_asks(const cured_call *call);
/* Whether it has a daemon merge some. */
bool cr_cl_keyed_merges(const cured_call *call);
/* Of a merge whose records are ready: the first is by key, so that answers come as those by key do. Takes what its head says. */
cr_status cr_cl_keyed_merge(cured_call *call, const cured_options *o, cr_error *error);
/* Bytes that it has at most. */
uint64_t cr_cl_keyed_most(const cured_call *call);
/* A try begins: nothing has come. */
void cr_cl_keyed_reset(cured_call *call);
/* Takes a part; a sentence when it is none. Without memory for it the call is done. */
const char *cr_cl_keyed_take(cured_call *call, const cr_wire_part *part);
/* All parts came: what is wrong with them, or NULL. */
const char *cr_cl_keyed_check_end(const cured_call *call, const cr_wire_result *result);

#endif
