/* kernel: the checks of a request that names a kernel. Thread: the loop's. Owner: the call. */
#include "server/call/kernel.h"

#include "kernels/ladder/ladder.h"

/* The kernels know one answer a call, over the whole array, by the default rules. */
static cr_status check_options(const cr_wire_reduce *r, cr_error *error) {
    const char *other = r->has_axis                        ? "axis"
                        : r->want_partial                  ? "partial"
                        : r->first                         ? "first"
                        : r->nan                           ? "nan"
                        : r->overflow                      ? "overflow"
                        : r->ddof                          ? "ddof"
                        : r->result_dtype != CR_DTYPE_NONE ? "result_dtype"
                                                           : NULL;
    return other ? cr_fail(error, CR_INVALID_ARGUMENT, "kernel: %s goes with no %s", r->kernel, other) : CR_OK;
}

cr_status cr_kernel_check(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_server *server = call->conn->server;
    if (!r->kernel[0]) return CR_OK;
    for (uint32_t i = 0; i < r->op_count; i++) {
        cr_status status = cr_ladder_check(r->kernel, (cr_op)r->ops[i], call->dtype, error);
        if (status != CR_OK) return status;
    }
    cr_status status = check_options(r, error);
    if (status != CR_OK || server->runs_kernels) return status;
    return cr_fail(error, CR_FAILED_PRECONDITION, "kernel: %s runs on a CUDA device, and there is none here: %s",
                   r->kernel, server->lanes.reason);
}
