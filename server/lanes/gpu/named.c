/* named: jobs that name a kernel of the ladder. The whole input is brought to device memory of its own, claim by claim, by the
 * lane's ordinary batches; when all is there the kernel runs alone on it, once for each op, and the lane waits for it.
 *
 *   free ──► the first claim: a hold on the job, device memory ──► all input there ──► kernel ──► values; hold given up ──► free
 *
 * What goes wrong is the job's own failure: no CPU can answer for a kernel. Input in the memory of this device is folded where
 * it is, at once.
 * Thread: the lane's. Owner: the lane. */
#include "server/job/kernel.h"
#include "server/lanes/gpu/internal.h"

cr_gpu_run *cr_gpu_run_of(cr_gpu_lane *lane, const cr_job *job) {
    for (uint32_t i = 0; i < CR_GPU_RUNS; i++)
        if (lane->runs[i].job == job) return &lane->runs[i];
    return NULL;
}

bool cr_gpu_run_wants(cr_gpu_lane *lane, const cr_job *job) {
    return cr_gpu_run_of(lane, job) || cr_gpu_run_of(lane, NULL);
}

static cr_status run_kernel(cr_gpu_lane *lane, cr_job *job, const void *data, uint64_t bytes, cr_error *error) {
    cr_kernel_run *run = job->kernel;
    cr_gpu_fold input = {
        .dtype = job->dtype, .families = job->families, .data = data, .n = bytes / job->element, .index = job->base};
    for (uint32_t i = 0; i < run->op_count; i++) {
        cr_status status = lane->api->kernel(lane->kernel_stream, run->name, run->ops[i], &input, &run->values[i],
                                             &run->exact[i], error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

cr_gpu_run *cr_gpu_run_begin(cr_gpu_lane *lane, cr_job *job, cr_error *error) {
    cr_gpu_run *run = cr_gpu_run_of(lane, job);
    if (run) return run;
    run = cr_gpu_run_of(lane, NULL);
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
    *run = (cr_gpu_run){.job = job, .device = device, .bytes = bytes};
    return run;
}

cr_status cr_gpu_run_in_place(cr_gpu_lane *lane, cr_job *job, const void *data, uint64_t bytes, cr_error *error) {
    cr_status status = run_kernel(lane, job, data, bytes, error);
    if (status == CR_OK) cr_queue_kernel_ran(lane->options.queue, job, bytes / job->element);
    return status;
}

/* The job may be gone when this returns. */
static void end(cr_gpu_lane *lane, cr_gpu_run *run, const cr_error *error) {
    cr_job *job = run->job;
    if (run->device && !atomic_load(&lane->lost) && !lane->api->lost(lane->gpu))
        lane->api->device_free(lane->gpu, run->device);
    run->job = NULL;
    if (error) cr_queue_stop(lane->options.queue, job, error);
    cr_queue_unhold(lane->options.queue, job);
}

static bool under_way(const cr_gpu_lane *lane, const cr_job *job) {
    for (uint32_t i = 0; i < lane->batch_count; i++)
        if (lane->batches[i].busy && lane->batches[i].claims[0].job == job) return true;
    return false;
}

bool cr_gpu_run_look(cr_gpu_lane *lane) {
    bool moved = false;
    for (uint32_t i = 0; i < CR_GPU_RUNS && !lane->api->lost(lane->gpu); i++) {
        cr_gpu_run *run = &lane->runs[i];
        if (!run->job || under_way(lane, run->job)) continue;
        bool stopped = cr_queue_stopped(lane->options.queue, run->job);
        if (!stopped && !cr_queue_all_taken(lane->options.queue, run->job)) continue;
        cr_error error;
        cr_status status = stopped ? CR_OK : run_kernel(lane, run->job, run->device, run->bytes, &error);
        if (!stopped && status == CR_OK)
            cr_queue_kernel_ran(lane->options.queue, run->job, run->bytes / run->job->element);
        end(lane, run, status == CR_OK ? NULL : &error);
        moved = true;
    }
    return moved;
}

void cr_gpu_run_lose(cr_gpu_lane *lane) {
    for (uint32_t i = 0; i < CR_GPU_RUNS; i++)
        if (lane->runs[i].job) end(lane, &lane->runs[i], &lane->lost_error);
}
