/* beside: what a call sends to a daemon beside its array, and before it: rows of proto/beside.def. See "Masks" of PROTOCOL.md. The second
 * of an array in DATA goes in turn with that ("Pairs").
 *
 * Thread: the one that uses the connection. Owner: nothing is copied; the bytes are the program's. */
#ifndef CURED_CLIENT_LIB_CALL_BESIDE_H
#define CURED_CLIENT_LIB_CALL_BESIDE_H

#include "client/lib/call/call.h"

/* Whether there is something, for a daemon. */
bool cr_cl_beside_sends(const cured_call *call);
/* A try begins: nothing of it is sent. */
void cr_cl_beside_restart(cured_call *call);
/* Once call->beside_len is 0: the next kind's bytes, if one has any. */
void cr_cl_beside_next(cured_call *call);
/* Whether no kind has bytes behind those in call->beside. */
bool cr_cl_beside_is_last(const cured_call *call);
/* Whether ops have parameters, for a daemon. */
bool cr_cl_beside_asks(const cured_call *call);
/* Whether the daemon, which is known by now, takes all that. */
cr_status cr_cl_beside_check(const cured_call *call, cr_error *error);
/* Whether the second array comes in DATA in turn with the first. If so, *is_second says which of them is next, and *bytes how many of its
 * bytes may come before the other's. */
bool cr_cl_beside_in_turn(const cured_call *call, bool *is_second, uint64_t *bytes);
/* The CALL with what is beside it; outputs: NULL, or one for each op. */
size_t cr_cl_beside_pack(const cured_call *call, const cr_wire_output *outputs, uint8_t *out, size_t cap);

#endif
