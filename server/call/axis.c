/* axis: see axis.h. Thread: the loop's. Owner: the call. */
#include "server/call/axis.h"

#include "server/engine/job_axis.h"

/* Of a checked request. */
static void axis_of(const cr_call *call, cr_axis_spec *spec) {
    const cr_wire_reduce *r = &call->request.reduce;
    *spec = (cr_axis_spec){.dtype = call->dtype,
                           .shape = {r->outer, r->n, r->inner},
                           .families = call->families,
                           .op_count = r->op_count,
                           .finish = call->finish};
    for (uint32_t i = 0; i < r->op_count; i++) spec->ops[i] = (cr_op)r->ops[i];
}

cr_status cr_axis_attach(cr_call *call, bool on_device, cr_error *error) {
    cr_server *server = call->conn->server;
    const cr_config *c = server->config;
    uint64_t most = c->max_state_bytes_per_connection;
    cr_axis_spec spec;
    axis_of(call, &spec);
    if (c->max_state_bytes < most) most = c->max_state_bytes;
    cr_status status = on_device ? cr_job_axis_make_on_device(call->job, &spec, most, error)
                                 : cr_job_axis_make(call->job, &spec, server->lanes.workers, most, error);
    if (status == CR_OK && on_device && !cr_lanes_axis(&server->lanes, call->job))
        status = cr_job_axis_make_by_host(call->job, most, error);
    if (status != CR_OK) return status;
    return cr_admit_state(&server->admission, call->job->axis->memory, &call->ticket, error);
}
