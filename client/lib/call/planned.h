/* planned: calls of arrays whose walk is planned already (kernels/core/strided.h), for bindings.
 *
 * Thread: the one that uses the connection. Owner: the program owns the call. */
#ifndef CURED_CLIENT_LIB_CALL_PLANNED_H
#define CURED_CLIENT_LIB_CALL_PLANNED_H

#include "cured/cured.h"
#include "kernels/core/strided.h"

/* Starts the call of an array and its plan, which has no mask; both are copied. Of options, axis is the plan's, and mask in its order. */
cured_status cr_cl_reduce_plan(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                               const cr_strided *array, const cr_strided_plan *plan, const cured_options *options,
                               cured_call **call, cured_error *error);

#endif
