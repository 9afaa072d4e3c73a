/* kernel: requests that name a kernel of the ladder (kernels/ladder): what can be asked, and the way to the device and back.
 *
 * Such a call is no reduction of the ordinary kind: its whole input goes to device memory, one kernel alone folds it for each
 * op, and the values come back finished, some of them inexact. No claims, no partial, no CPU.
 * Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_KERNEL_H
#define CURED_SERVER_CALL_KERNEL_H

#include "server/call/call.h"

/* Whether the request, which was checked otherwise, can be answered by the kernel it names: the name (NOT_FOUND), ops and type
 * (UNIMPLEMENTED), options (INVALID_ARGUMENT), and last whether there is a CUDA device at all (FAILED_PRECONDITION). OK for a
 * request that names none. */
cr_status cr_kernel_check(const cr_call *call, cr_error *error);

#endif
