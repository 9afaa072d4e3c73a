/* place: which jobs along an axis GPUs may claim from.
 *
 * Thread: any. Owner: nobody; nothing here holds state. */
#include "engine/job_axis.h"
#include "engine/sink.h"
#include "server/lanes/gpu/lane.h"

enum {
    WHOLE_BYTES = 16 * 1024 * 1024, /* of a block in host memory */
    ANSWER_COST = 16,               /* of a byte of answers, in bytes of input */
    CLAIMS_EACH = 4,                /* blocks for each worker, at least, where workers may not cut them */
};

/* Whether the device answers so many blocks at once. It does not say of each answer whether that has a value. */
static bool takes(const cr_gpu_api *api, const cr_axis_spec *spec, uint64_t blocks) {
    for (uint32_t k = 0; spec->statuses && k < spec->op_count; k++)
        if (cr_axis_may_lack(spec->ops[k], spec->dtype, &spec->finish)) return false;
    const cr_gpu_axis asked = {.dtype = spec->dtype,
                               .shape = {blocks, spec->shape.n, spec->shape.inner},
                               .ops = spec->ops,
                               .op_count = spec->op_count,
                               .finish = spec->finish};
    return api->axis_takes(&asked);
}

bool cr_gpu_axis_takes_claims(const cr_gpu_api *api, const cr_job *job) {
    const cr_job_axis *axis = job->axis;
    if (cr_job_axis_is_empty(axis)) return true; /* nobody computes anything */
    if (axis->spec.statuses && job->sink && job->sink->device >= 0)
        return false; /* kernels write there, and no statuses */
    uint64_t blocks = job->claim_most / cr_job_unit(job), last = axis->spec.shape.outer % blocks;
    return takes(api, &axis->spec, blocks) && (!last || takes(api, &axis->spec, last));
}

/* A claim may be of one block. With the CPU beside it the GPU takes what has few answers for its input, because the
 * answers come back over the bus and are copied by one thread. Blocks that are cut go into states, which are the
 * CPU's, and so is what comes in strips. */
void cr_gpu_axis_place(const cr_gpu_api *api, cr_job *job, const cr_gpu_placing *placing) {
    cr_job_axis *axis = job->axis;
    const cr_shape *shape = &axis->spec.shape;
    const bool beside = placing->kinds & CR_BY_CPU;
    uint64_t bytes = axis->block * job->element,
             most = placing->chunk_bytes < WHOLE_BYTES ? placing->chunk_bytes : WHOLE_BYTES;
    if (cr_job_axis_is_empty(axis) || axis->strips > 1 || bytes > most || !(placing->kinds & CR_BY_GPU) ||
        !takes(api, &axis->spec, 1))
        return;
    if (shape->inner > CR_JOB_AXIS_GPU_OUTPUT_BYTES / axis->answer_bytes) return;
    if (beside && shape->n * job->element < ANSWER_COST * axis->answer_bytes) return;
    job->gpu_from = placing->gpu_from;
    if (job->grain == axis->block)
        job->kinds = placing->kinds;
    else if (!beside || shape->outer >= (uint64_t)placing->workers * CLAIMS_EACH)
        axis->whole_kinds = placing->kinds;
}
