/* named: jobs that name a kernel of the ladder. The whole input is brought to device memory of the job's own, claim by
 * claim, each a work of its own. When all is there the kernel runs alone on it, once for each op, and the lane waits
 * for it. Other works get their turn between two ops. How long one op takes is bounded by max_kernel_bytes.
 *
 *   free ──► the first claim: a hold on the job, device memory
 *        ──► all input there: the kernel runs ──► values, the hold is given up ──► free
 *
 * What goes wrong is the job's own failure: no CPU can answer for a kernel. Input in the memory of this device is
 * folded where it is, at once.
 * Thread: the lane's; cr_gpu_inputs_lose any. Owner: the lane. */
#include "engine/named.h"

#include "server/lanes/gpu/internal.h"

/* The input of a job; of NULL: a free place. NULL: there is none. */
static cr_gpu_input *input_of(cr_gpu_lane *lane, const cr_job *job) {
    for (uint32_t i = 0; i < CR_GPU_INPUTS; i++)
        if (lane->inputs[i].job == job) return &lane->inputs[i];
    return NULL;
}

static bool takes(const cr_job *job) { return job->named != NULL; }

static uint64_t want(cr_gpu_lane *lane, const cr_job *job, const cr_segment *segment) {
    const uint32_t own = lane->options.ordinal + 1;
    (void)segment;
    if (job->device >= 0) return UINT64_MAX;
    if (job->named->lane && job->named->lane != own) return 0;
    if (!input_of(lane, job) && !input_of(lane, NULL)) return 0;
    job->named->lane = own;
    return lane->options.chunk_bytes;
}

/* For the next op; *ran counts them. */
static cr_status run_kernel(cr_gpu_lane *lane, cr_job *job, const void *data, uint64_t bytes, uint32_t *ran,
                            cr_error *error) {
    cr_named *run = job->named;
    const uint32_t i = *ran;
    cr_gpu_fold input = {
        .dtype = job->dtype, .families = job->families, .data = data, .n = bytes / job->element, .index = job->base};
    cr_status status =
        lane->api->kernel(lane->kernel_stream, run->name, run->ops[i], &input, &run->values[i], &run->exact[i], error);
    if (status == CR_OK && ++*ran == run->op_count) cr_queue_named_ran(lane->options.queue, job, input.n);
    return status;
}

/* On device memory. */
static void run_next(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_claim *claim = &work->claims[0];
    if (run_kernel(lane, claim->job, claim->data, claim->bytes, &work->as.named.ran, &work->error) != CR_OK)
        work->fate = CR_FATE_BROKEN;
}

static bool step(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_job *job = work->claims[0].job;
    if (job->device < 0 || work->fate != CR_FATE_GOOD || work->as.named.ran == job->named->op_count) return false;
    run_next(lane, work);
    cr_gpu_work_progress(work);
    return true;
}

/* The place of a job with a claim in hand, begun if need be. NULL: it cannot be. */
static cr_gpu_input *begin(cr_gpu_lane *lane, cr_job *job, cr_error *error) {
    cr_gpu_input *input = input_of(lane, job);
    if (input) return input;
    input = input_of(lane, NULL);
    uint64_t bytes = job->total_bytes;
    void *device = NULL;
    if (!bytes) {
        cr_fail(error, CR_INVALID_ARGUMENT, "kernel: the length of the array must be known beforehand");
        return NULL;
    }
    if (lane->api->device_alloc(lane->gpu, (size_t)bytes, &device, error) != CR_OK) return NULL;
    if (!cr_queue_hold(lane->options.queue, job)) { /* it has stopped */
        lane->api->device_free(lane->gpu, device);
        cr_fail(error, CR_CANCELLED, "kernel: cancelled");
        return NULL;
    }
    *input = (cr_gpu_input){.job = job, .device = device, .bytes = bytes};
    return input;
}

static void start(cr_gpu_lane *lane, cr_gpu_work *work) {
    const cr_claim *claim = &work->claims[0];
    cr_job *job = claim->job;
    uint64_t at = 0;
    if (job->device >= 0) {
        work->as.named.ran = 0;
        run_next(lane, work);
        return;
    }
    const cr_gpu_input *input = begin(lane, job, &work->error);
    if (!input) work->fate = CR_FATE_BROKEN;
    for (uint32_t i = 0; i < work->claim_count && input; i++) {
        const cr_claim *each = &work->claims[i];
        if (each->index * job->element + each->bytes <= input->bytes) continue;
        cr_fail(&work->error, CR_INVALID_ARGUMENT, "kernel: the array is longer than was said");
        work->fate = CR_FATE_BROKEN;
    }
    for (uint32_t i = 0; i < work->claim_count && work->fate == CR_FATE_GOOD; i++) {
        const cr_claim *each = &work->claims[i];
        cr_gpu_load(lane, work, each, input->device + each->index * job->element, at, false);
        at += each->bytes;
    }
    cr_gpu_copy_noted(lane, work);
}

static void finish(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_check_all(work);
    if (work->fate == CR_FATE_GOOD) cr_gpu_work_count(lane, work->bytes, 1);
    cr_gpu_work_settle(lane, work, NULL, 0);
}

const cr_gpu_kind cr_gpu_kind_named = {
    .takes = takes, .want = want, .start = start, .step = step, .finish = finish, .abandon = cr_gpu_work_give_back};

/* The job may be gone when this returns. */
static void end(cr_gpu_lane *lane, cr_gpu_input *input, const cr_error *error) {
    cr_job *job = input->job;
    if (input->device && !atomic_load(&lane->lost) && !lane->api->lost(lane->gpu))
        lane->api->device_free(lane->gpu, input->device);
    input->job = NULL;
    if (error) cr_queue_stop(lane->options.queue, job, error);
    cr_queue_unhold(lane->options.queue, job);
}

static bool under_way(const cr_gpu_lane *lane, const cr_job *job) {
    for (uint32_t i = 0; i < lane->work_count; i++)
        if (lane->works[i].state != CR_WORK_IDLE && lane->works[i].claims[0].job == job) return true;
    return false;
}

bool cr_gpu_inputs_look(cr_gpu_lane *lane) {
    bool moved = false;
    lane->ops_left = false;
    for (uint32_t i = 0; i < CR_GPU_INPUTS && !lane->api->lost(lane->gpu); i++) {
        cr_gpu_input *input = &lane->inputs[i];
        if (!input->job || under_way(lane, input->job)) continue;
        bool stopped = cr_queue_stopped(lane->options.queue, input->job);
        if (!stopped && !cr_queue_all_taken(lane->options.queue, input->job)) continue;
        cr_error error;
        cr_status status =
            stopped ? CR_OK : run_kernel(lane, input->job, input->device, input->bytes, &input->ran, &error);
        moved = true;
        if (status != CR_OK) cr_gpu_failed(lane, &error);
        if (stopped || status != CR_OK || input->ran == input->job->named->op_count)
            end(lane, input, status == CR_OK ? NULL : &error);
        else
            lane->ops_left = true;
    }
    return moved;
}

void cr_gpu_inputs_lose(cr_gpu_lane *lane) {
    for (uint32_t i = 0; i < CR_GPU_INPUTS; i++)
        if (lane->inputs[i].job) end(lane, &lane->inputs[i], &lane->lost_error);
}
