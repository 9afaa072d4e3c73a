/* array: the answers of a call that has many of each op: where they go, and that each comes exactly once. The daemon is not trusted: one
 * bit for each answer says whether it was there.
 *
 * All that the daemon may send is granted at the start: its place is known, and a CREDIT that had to wait behind DATA of the
 * same connection could be what the daemon needs before it can take more DATA. The socket holds the daemon back.
 *
 * Thread: the one that uses the connection. Owner: the call; results that the program gave stay the program's. */
#ifndef CURED_CLIENT_LIB_CALL_ARRAY_H
#define CURED_CLIENT_LIB_CALL_ARRAY_H

#include "cured/cured.h"
#include "proto/wire.h"

typedef struct cr_cl_array cr_cl_array;

/* Whether the options suit many answers, as the call's geometry has them. */
cr_status cr_cl_array_check(const cured_call *call, const cured_options *o, cr_error *error);
/* Makes call->array, for call->answers of each op, from the request and the options. */
cr_status cr_cl_array_make(cured_call *call, const cured_options *o, cr_error *error);
/* Of a call with outputs, which were not to be written after all: memory for what is known of parts, a bit an answer. Zeroing it for
 * nothing took 0.3 ms of a call for 32 million answers. False: there is none. */
bool cr_cl_array_expect_parts(cr_cl_array *array);
/* Nothing has come yet: for each try. */
void cr_cl_array_reset(cr_cl_array *array);
/* Takes a part and hands it to on_part, which may free the call. What is wrong with it, or NULL. */
const char *cr_cl_array_take(cured_call *call, const cr_wire_part *part);
/* Where all answers of each op go, to be filled at once; false: they do not all lie in memory, or on_part is to see them. */
bool cr_cl_array_places(cr_cl_array *array, void *out[]); /* out: CR_AXIS_PLACES; statuses behind the values */
/* Those places have been filled: says which answers have no value. */
void cr_cl_array_filled(cured_call *call);
/* NULL: no. */
bool cr_cl_array_wants_statuses(const cr_cl_array *array);
/* At the end: what is missing or does not agree, or NULL. */
const char *cr_cl_array_check_end(const cured_call *call, const cr_wire_result *result);
/* Bytes of one of the op's answers, and of all. Memory of the library's own for them all, where the program has none; false: there is
 * none. */
size_t cr_cl_array_size(const cr_cl_array *array, uint32_t op);
uint64_t cr_cl_array_bytes(const cr_cl_array *array, uint32_t op);
bool cr_cl_array_own(cr_cl_array *array);
const void *cr_cl_array_values(const cr_cl_array *array, uint32_t op);
/* Whether options.results were given. */
bool cr_cl_array_has_results(const cr_cl_array *array);
/* What the daemon may send beyond the window that every stream starts with. */
uint64_t cr_cl_array_credit(const cr_cl_array *array);
/* True when a part went to the program already, so that the call cannot start over. */
bool cr_cl_array_handed_over(const cr_cl_array *array);
void cr_cl_array_free(cr_cl_array *array);

#endif
