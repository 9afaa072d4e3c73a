/* axis: a stream's work when the job's answers are an array: claims of whole blocks, which the device answers by one launch. The answers
 * come back in memory of the stream's, and are copied to the job's outputs before its claims are given back: the lane waits for no client,
 * since a job whose answers nobody takes offers no claims (job/axis.h).
 *
 *   copied (host memory) ──► axis ──► answers ──► outputs ──► claims folded
 *                                └──► an integer that does not fit: its column is fetched, and folded here, for what the CPU would say
 *
 *   device memory, no kernel ──► fetched ──► folded here, like a worker's claim
 *
 * Thread: the lane's; cr_gpu_axis_place and cr_gpu_axis_takes_claims any. Owner: the lane. */
#include <string.h>

#include "kernels/cpu/fold.h"
#include "server/base/clock.h"
#include "server/base/metrics.h"
#include "server/job/axis.h"
#include "server/lanes/gpu/internal.h"

enum {
    FETCH_BYTES = 1024 * 1024,      /* of one column at a time */
    FETCH_PIECES = 32 * 1024,       /* of one that is not contiguous */
    WHOLE_BYTES = 16 * 1024 * 1024, /* of a block in host memory */
    ANSWER_COST = 16,               /* of a byte of answers, in bytes of input */
    CLAIMS_EACH = 4,                /* blocks for each worker, at least, where workers may not cut them */
    EMIT_BYTES = 1024 * 1024,       /* of answers that are copied before others have their turn */
};

/* Blocks of a job's. */
static bool takes(const cr_gpu_api *api, const cr_axis_spec *spec, uint64_t blocks) {
    const cr_gpu_axis asked = {.dtype = spec->dtype,
                               .shape = {blocks, spec->shape.n, spec->shape.inner},
                               .ops = spec->ops,
                               .op_count = spec->op_count,
                               .finish = spec->finish};
    return api->axis_takes(&asked);
}

bool cr_gpu_axis_takes_claims(const cr_gpu_api *api, const cr_job *job) {
    const cr_axis *axis = job->axis;
    if (!axis->block) return true; /* nobody computes anything */
    uint64_t blocks = job->claim_most / cr_job_unit(job), last = axis->spec.shape.outer % blocks;
    return takes(api, &axis->spec, blocks) && (!last || takes(api, &axis->spec, last));
}

/* A claim may be of one block. With the CPU beside it the GPU takes what has few answers for its input: they come back over the bus, and are copied by one thread. Blocks
 * that are cut go into states, which are the CPU's. */
void cr_gpu_axis_place(const cr_gpu_api *api, cr_job *job, const cr_gpu_placing *placing) {
    cr_axis *axis = job->axis;
    const cr_shape *shape = &axis->spec.shape;
    const bool beside = placing->kinds & CR_BY_CPU;
    uint64_t bytes = axis->block * job->element,
             most = placing->chunk_bytes < WHOLE_BYTES ? placing->chunk_bytes : WHOLE_BYTES;
    if (!axis->block || bytes > most || !(placing->kinds & CR_BY_GPU) || !takes(api, &axis->spec, 1)) return;
    if (shape->inner > CR_AXIS_GPU_OUTPUT_BYTES / axis->answer_bytes) return;
    if (beside && shape->n * job->element < ANSWER_COST * axis->answer_bytes) return;
    job->gpu_from = placing->gpu_from;
    if (job->grain == axis->block)
        job->kinds = placing->kinds;
    else if (!beside || shape->outer >= (uint64_t)placing->workers * CLAIMS_EACH)
        axis->whole_kinds = placing->kinds;
}

/* To the staging buffer. */
static void start_by_host(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < batch->claim_count && batch->fate == CR_BATCH_GOOD; i++) {
        const cr_claim *claim = &batch->claims[i];
        if (lane->api->fetch(batch->stream, batch->staging + at, claim->data, claim->bytes, claim->bytes, 1,
                             &batch->error) != CR_OK)
            batch->fate = CR_BATCH_UNFIT;
        at += claim->bytes;
    }
}

static void fold_by_host(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    cr_queue *queue = lane->options.queue;
    batch->error.code = CR_OK;
    uint64_t at = 0;
    for (uint32_t i = 0; i < batch->claim_count && batch->error.code == CR_OK; i++) {
        cr_claim claim = batch->claims[i];
        claim.data = batch->staging + at;
        at += claim.bytes;
        cr_axis_fold(queue, &lane->hand, &claim, &batch->error);
    }
    cr_axis_let_go(queue, &lane->hand); /* another stream's claim may be the next */
    if (batch->error.code != CR_OK) batch->fate = CR_BATCH_BROKEN;
}

uint64_t cr_gpu_axis_wants(const cr_gpu_lane *lane, const cr_job *job) {
    if (!job->axis || !job->axis->by_host) return UINT64_MAX;
    for (uint32_t i = 0; i < lane->batch_count; i++) {
        const cr_gpu_batch *batch = &lane->batches[i];
        if (!batch->busy || batch->many) continue;
        const cr_axis *axis = batch->claims[0].job->axis;
        if (axis && axis->by_host) return 0; /* one at a time, so that others do not wait for long */
    }
    uint64_t bytes = job->claim_bytes > CR_CLAIM_LEAST_BYTES ? job->claim_bytes : CR_CLAIM_LEAST_BYTES;
    if (bytes > CR_CLAIM_MOST_BYTES) bytes = CR_CLAIM_MOST_BYTES;
    return bytes < lane->options.chunk_bytes ? bytes : lane->options.chunk_bytes;
}

void cr_gpu_axis_start(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_job *job = batch->claims[0].job;
    if (job->axis->by_host) {
        start_by_host(lane, batch);
        return;
    }
    const cr_axis_spec *spec = &job->axis->spec;
    const uint8_t *data = NULL;
    uint64_t at = 0;
    batch->fetching = batch->emitting = false;
    for (uint32_t i = 0; i < batch->claim_count && batch->fate == CR_BATCH_GOOD; i++) {
        const uint8_t *loaded = cr_gpu_batch_load(lane, batch, &batch->claims[i], at);
        if (i == 0) data = loaded;
        at += batch->claims[i].bytes;
    }
    cr_gpu_batch_copy(lane, batch);
    if (batch->fate != CR_BATCH_GOOD) return;
    const uint64_t block = job->axis->block;
    batch->axis = (cr_gpu_axis){.dtype = spec->dtype,
                                .shape = {at / job->element / block, spec->shape.n, spec->shape.inner},
                                .data = data,
                                .first = batch->claims[0].index / block * spec->shape.inner,
                                .ops = spec->ops,
                                .op_count = spec->op_count,
                                .finish = spec->finish};
    if (lane->api->axis(batch->stream, &batch->axis, &batch->error) != CR_OK) batch->fate = CR_BATCH_UNFIT;
}

/* The next of the column's elements. False: there are none, or nobody wants them any more. */
static bool fetch_on(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_gpu_axis *axis = &batch->axis;
    const uint64_t element = cr_dtype_size(axis->dtype), n = axis->shape.n, inner = axis->shape.inner;
    uint64_t count = n - batch->fetched, most = inner == 1 ? FETCH_BYTES / element : FETCH_PIECES;
    if (count > most) count = most;
    if (!count || cr_queue_stopped(lane->options.queue, batch->claims[0].job)) return false;
    uint64_t from = (batch->failed / inner * n + batch->fetched) * inner + batch->failed % inner;
    const uint8_t *data = (const uint8_t *)axis->data + from * element;
    bool row = inner == 1;
    cr_error error;
    if (lane->api->fetch(batch->stream, batch->staging, data, row ? count * element : element, inner * element,
                         row ? 1 : count, &error) != CR_OK)
        return false;
    batch->fetching = true;
    batch->fetch_count = count;
    batch->started_ns = cr_now_ns();
    return true;
}

bool cr_gpu_axis_unpark(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (atomic_load(&lane->asking)) return false;
    batch->parked = false;
    fetch_on(lane, batch); /* if not, it ends as it is */
    return true;
}

/* An integer does not fit, and the GPU only says which. The CPU can say what it is: in host memory it is given the claims; of the device's
 * memory the lane folds that column. True: its elements are on their way. */
static bool begin_fetch(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    const cr_job *job = batch->claims[0].job;
    if (job->device < 0 || batch->failed >= batch->axis.shape.outer * batch->axis.shape.inner) return false;
    cr_partial_init(&batch->column, job->dtype, job->families);
    batch->fetched = 0;
    return fetch_on(lane, batch);
}

/* What was fetched is there. True: more is under way. */
static bool fold_fetched(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    batch->fetching = false;
    cr_cpu_fold(&batch->column, batch->staging, batch->fetch_count, batch->fetched);
    batch->fetched += batch->fetch_count;
    const cr_axis_spec *spec = &batch->claims[0].job->axis->spec;
    batch->parked =
        atomic_load(&lane->asking) && batch->fetched < spec->shape.n; /* a column may be as long as memory */
    if (batch->parked || fetch_on(lane, batch)) return true;
    if (batch->fetched < spec->shape.n) return false;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        uint8_t answer[16];
        cr_error error;
        if (cr_axis_store(&batch->column, spec->ops[k], &spec->finish, batch->axis.first + batch->failed, answer,
                          &error) == CR_OK)
            continue;
        batch->error = error;
        break;
    }
    return false;
}

/* Copies some of the answers, which lie side by side, claim by claim: other streams wait meanwhile. True: there are more. */
static bool emit_on(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    cr_job *job = batch->claims[0].job;
    const cr_axis *axis = job->axis;
    const uint64_t inner = axis->spec.shape.inner, element = job->element;
    /* Of host memory, which others may do when the device is lost, no answer goes out before all do. */
    uint64_t room = job->device < 0 ? UINT64_MAX : EMIT_BYTES / axis->answer_bytes + 1;
    for (; room && batch->emit_claim < batch->claim_count; batch->emit_claim++, batch->emitted = 0) {
        const cr_claim *claim = &batch->claims[batch->emit_claim];
        const uint64_t count = claim->bytes / element / axis->block * inner - batch->emitted;
        const uint64_t now = count < room ? count : room;
        if (cr_axis_emit(lane->options.queue, job, claim->index / axis->block * inner + batch->emitted, now,
                         batch->answers, &batch->error) != CR_OK) {
            batch->fate = CR_BATCH_BROKEN;
            return false;
        }
        for (uint32_t k = 0; k < axis->spec.op_count; k++)
            batch->answers[k] = (const uint8_t *)batch->answers[k] + now * axis->width[k];
        batch->emitted += now;
        room -= now;
        if (now < count) break;
    }
    batch->started_ns = cr_now_ns();
    return batch->emit_claim < batch->claim_count && !cr_queue_stopped(lane->options.queue, job);
}

/* What the device was asked for is done. True: there is more to do. */
static bool take_answers(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    cr_status status = lane->api->axis_result(batch->stream, batch->answers, &batch->failed, &batch->error);
    if (status == CR_OUT_OF_RANGE && batch->claims[0].job->device >= 0) {
        batch->fate = CR_BATCH_BROKEN;
        return begin_fetch(lane, batch);
    }
    if (status != CR_OK)
        batch->fate = CR_BATCH_UNFIT;
    else if (!cr_gpu_batch_all_checked(batch))
        batch->fate = CR_BATCH_BROKEN;
    if (batch->fate != CR_BATCH_GOOD) return false;
    batch->emitting = true;
    batch->emit_claim = 0;
    batch->emitted = 0;
    return emit_on(lane, batch);
}

bool cr_gpu_axis_done(cr_gpu_lane *lane, cr_gpu_batch *batch) {
    if (batch->claims[0].job->axis->by_host) {
        if (batch->fate == CR_BATCH_GOOD) fold_by_host(lane, batch);
        return true;
    }
    bool more = batch->fetching                ? fold_fetched(lane, batch)
                : batch->fate != CR_BATCH_GOOD ? false
                : batch->emitting              ? emit_on(lane, batch)
                                               : take_answers(lane, batch);
    return !more;
}
