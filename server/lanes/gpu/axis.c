/* axis: whole blocks of a job along an axis, which the device answers by one launch. The answers come back in memory
 * of the stream's. They are copied to the job's outputs before the claims are given back. The lane waits for no
 * client, since a job whose answers nobody takes offers no claims (engine/job_axis.h).
 *
 *   host memory: copied ──► ANSWERS ──► EMIT, all at once ──► finish
 *   device memory: ──► ANSWERS ──► EMIT, piece by piece ──► finish
 *                         ├──► the kernels have put them where the client wants them ──► finish
 *                         └──► an integer does not fit: COLUMN, piece by piece ──► finish
 *
 * In the COLUMN the integer's elements are fetched and folded here, because the GPU only says which integer does not
 * fit, and the error says its value as the CPU does. Of host memory the CPU is given the claims instead.
 * Thread: the lane's. Owner: the lane. */
#include <assert.h>

#include "engine/job_axis.h"
#include "engine/sink.h"
#include "kernels/cpu/fold.h"
#include "server/lanes/gpu/internal.h"

enum {
    FETCH_BYTES = 1024 * 1024, /* of one column at a time */
    FETCH_PIECES = 32 * 1024,  /* of one that is not contiguous */
    EMIT_BYTES = 1024 * 1024,  /* of answers that are copied before others have their turn */
};

static bool takes(const cr_job *job) { return job->axis != NULL; }

/* Where the device puts answers from number `first` on; NULL: in memory of the stream's. */
static void *const *places(cr_gpu_axis_work *own, const cr_job *job, uint64_t first) {
    const cr_job_axis *axis = job->axis;
    if (!job->sink || job->sink->device < 0) return NULL;
    for (uint32_t k = 0; k < axis->spec.op_count; k++)
        own->to[k] = job->sink->place(job->sink, k, first * axis->width[k]);
    return own->to;
}

static void start(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_job *job = work->claims[0].job;
    const cr_axis_spec *spec = &job->axis->spec;
    const bool over_bus = cr_gpu_few(work->bytes) && work->claim_count == 1; /* side by side they are one reduction */
    const uint8_t *data = NULL;
    uint64_t at = 0;
    work->as.axis.phase = CR_AXIS_ANSWERS;
    for (uint32_t i = 0; i < work->claim_count && work->fate == CR_FATE_GOOD; i++) {
        const uint8_t *loaded = cr_gpu_load(lane, work, &work->claims[i], work->device + at, at, over_bus);
        if (i == 0) data = loaded;
        at += work->claims[i].bytes;
    }
    cr_gpu_copy_noted(lane, work);
    if (work->fate != CR_FATE_GOOD) return;
    const uint64_t block = job->axis->block, first = work->claims[0].index / block * spec->shape.inner;
    work->as.axis.asked = (cr_gpu_axis){.dtype = spec->dtype,
                                        .shape = {at / job->element / block, spec->shape.n, spec->shape.inner},
                                        .data = data,
                                        .first = first,
                                        .ops = spec->ops,
                                        .op_count = spec->op_count,
                                        .finish = spec->finish,
                                        .to = places(&work->as.axis, job, first)};
    if (lane->api->axis(work->stream, &work->as.axis.asked, &work->error) != CR_OK) work->fate = CR_FATE_UNFIT;
}

/* The next of the column's elements. False: there are none, or the device refuses. */
static bool fetch_on(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_axis_work *own = &work->as.axis;
    const cr_gpu_axis *axis = &own->asked;
    const uint64_t element = cr_dtype_size(axis->dtype), n = axis->shape.n, inner = axis->shape.inner;
    const uint64_t most = inner == 1 ? FETCH_BYTES / element : FETCH_PIECES, left = n - own->fetched;
    const uint64_t count = left < most ? left : most;
    const uint64_t from = (own->failed / inner * n + own->fetched) * inner + own->failed % inner;
    const uint8_t *data = (const uint8_t *)axis->data + from * element;
    const bool row = inner == 1;
    cr_error error;
    assert(count * element <= FETCH_BYTES);
    if (!count || lane->api->fetch(work->stream, work->staging, data, row ? count * element : element, inner * element,
                                   row ? 1 : count, &error) != CR_OK)
        return false;
    own->fetch_count = count;
    cr_gpu_work_progress(work);
    return true;
}

/* The whole column is folded: the error says what its integer is. */
static void say_value(cr_gpu_work *work) {
    const cr_gpu_axis_work *own = &work->as.axis;
    const cr_axis_spec *spec = &work->claims[0].job->axis->spec;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        uint8_t answer[CR_DIGEST_BYTES];
        cr_error error;
        if (cr_axis_store(&own->column, spec->ops[k], &spec->finish, own->asked.first + own->failed, answer, &error) ==
            CR_OK)
            continue;
        work->error = error;
        return;
    }
}

static bool column_on(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_axis_work *own = &work->as.axis;
    if (own->fetch_count) cr_cpu_fold(&own->column, work->staging, own->fetch_count, own->fetched);
    own->fetched += own->fetch_count;
    own->fetch_count = 0;
    if (own->fetched == own->asked.shape.n) {
        say_value(work);
        return false;
    }
    if (!atomic_load(&lane->asking)) return fetch_on(lane, work);
    cr_gpu_work_move(work, CR_WORK_PARKED); /* a column may be as long as memory */
    return true;
}

static bool begin_column(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_axis_work *own = &work->as.axis;
    const cr_job *job = work->claims[0].job;
    if (own->failed >= own->asked.shape.outer * own->asked.shape.inner) return false;
    own->phase = CR_AXIS_COLUMN;
    own->fetched = own->fetch_count = 0;
    cr_partial_init(&own->column, job->dtype, job->families);
    return fetch_on(lane, work);
}

/* Copies some of the answers, which lie side by side, claim by claim: other streams wait meanwhile. */
static bool emit_on(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_axis_work *own = &work->as.axis;
    cr_job *job = work->claims[0].job;
    const cr_job_axis *axis = job->axis;
    const uint64_t inner = axis->spec.shape.inner, element = job->element;
    uint64_t room = job->device < 0 ? UINT64_MAX : EMIT_BYTES / axis->answer_bytes + 1;
    for (; room && own->emit_claim < work->claim_count; own->emit_claim++, own->emitted = 0) {
        const cr_claim *claim = &work->claims[own->emit_claim];
        const uint64_t count = claim->bytes / element / axis->block * inner - own->emitted;
        const uint64_t now = count < room ? count : room;
        if (cr_job_axis_emit(lane->options.queue, job, claim->index / axis->block * inner + own->emitted, now,
                             own->answers, &work->error) != CR_OK) {
            work->fate = CR_FATE_BROKEN;
            return false;
        }
        for (uint32_t k = 0; k < axis->spec.op_count; k++)
            own->answers[k] = (const uint8_t *)own->answers[k] + now * axis->width[k];
        own->emitted += now;
        room -= now;
        if (now < count) break;
    }
    assert(job->device >= 0 || own->emit_claim == work->claim_count);
    cr_gpu_work_progress(work);
    return own->emit_claim < work->claim_count;
}

/* What the device was asked for is done. */
static bool take_answers(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_axis_work *own = &work->as.axis;
    if (work->fate != CR_FATE_GOOD) return false;
    cr_status status = lane->api->axis_result(work->stream, own->answers, &own->failed, &work->error);
    if (status == CR_OUT_OF_RANGE && work->claims[0].job->device >= 0) {
        work->fate = CR_FATE_BROKEN;
        return begin_column(lane, work);
    }
    if (status != CR_OK) work->fate = CR_FATE_UNFIT;
    cr_gpu_check_all(work);
    if (work->fate != CR_FATE_GOOD || own->asked.to) return false;
    own->phase = CR_AXIS_EMIT;
    own->emit_claim = 0;
    own->emitted = 0;
    return emit_on(lane, work);
}

static bool step(cr_gpu_lane *lane, cr_gpu_work *work) {
    switch (work->as.axis.phase) {
        case CR_AXIS_ANSWERS:
            return take_answers(lane, work);
        case CR_AXIS_EMIT:
            return emit_on(lane, work);
        case CR_AXIS_COLUMN:
            break;
    }
    return column_on(lane, work);
}

static void finish(cr_gpu_lane *lane, cr_gpu_work *work) {
    if (work->fate == CR_FATE_GOOD) cr_gpu_work_count(lane, work->bytes, 1);
    cr_gpu_work_settle(lane, work, NULL, 0);
}

const cr_gpu_kind cr_gpu_kind_axis = {.takes = takes,
                                      .want = cr_gpu_chunk_wants,
                                      .start = start,
                                      .step = step,
                                      .finish = finish,
                                      .abandon = cr_gpu_work_give_back,
                                      .trims = true};
