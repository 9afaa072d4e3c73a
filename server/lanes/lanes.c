/* lanes: opening, choosing, losing. Thread: see lanes.h. Owner: the server. */
#include "server/lanes/lanes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/lanes/gpu/lane.h"

static void set_reason(cr_lanes *lanes, const char *backend, const char *reason) {
    lanes->backend = backend;
    snprintf(lanes->reason, sizeof lanes->reason, "%s", reason);
}

/* How many GPUs to open. 0: why says why none. */
static uint32_t usable_gpus(cr_lanes *lanes, const cr_lanes_options *o, cr_error *why) {
    if (o->config->backend == CR_BACKEND_CPU) {
        cr_fail(why, CR_FAILED_PRECONDITION, "backend cpu was asked for");
        return 0;
    }
    if (!o->gpu) {
        cr_fail(why, CR_FAILED_PRECONDITION, "%s", o->no_gpu);
        return 0;
    }
    uint32_t count = cr_gpu_count(o->gpu, o->config->gpu_start_timeout_ms, &lanes->left_behind, why);
    return count < CR_MAX_LANES - 1 ? count : CR_MAX_LANES - 1;
}

static void on_lost(void *argument) {
    cr_lanes *lanes = argument;
    atomic_store(&lanes->news, true);
    lanes->wake(lanes->wake_argument);
}

/* With fewer cores a worker that looks mostly stands in the way of the client or the loop: calls for a region took 52 µs instead
 * of 29 on two cores, where another program had one of them. */
enum { CORES_FOR_LOOKING_WORKERS = 4 };

static cr_status open_cpu(cr_lanes *lanes, const cr_lanes_options *o, bool measure, cr_error *error) {
    cr_lane_options options = {.queue = o->queue,
                               .workers = (uint32_t)o->config->cpu_workers,
                               .isa = cr_config_word(o->config, "cpu_isa"),
                               .seats = cr_cores() < CORES_FOR_LOOKING_WORKERS ? NULL : &lanes->seats,
                               .spin_ns = o->config->spin_us * 1000};
    if (measure) options.scratch = cr_slabs_memory(o->slabs, &options.scratch_bytes);
    cr_status status = cr_lane_cpu.open(&options, &lanes->lanes[0], error);
    if (status != CR_OK) return status;
    lanes->types[0] = &cr_lane_cpu;
    lanes->count = 1;
    lanes->workers = cr_lane_cpu.info(lanes->lanes[0]).workers;
    return CR_OK;
}

static cr_status open_gpu(cr_lanes *lanes, const cr_lanes_options *o, uint32_t ordinal, double *bus, cr_error *error) {
    const cr_config *c = o->config;
    cr_lane_options options = {.queue = o->queue,
                               .seats = &lanes->seats,
                               .spin_ns = c->spin_us * 1000,
                               .gpu = o->gpu,
                               .ordinal = ordinal,
                               .streams = (uint32_t)c->gpu_streams,
                               .chunk_bytes = c->gpu_chunk_bytes,
                               .min_bytes = c->gpu_min_bytes,
                               .timeout_ms = c->gpu_timeout_ms,
                               .start_timeout_ms = c->gpu_start_timeout_ms,
                               .probe = o->probe,
                               .cpu_rate = cr_lane_cpu.info(lanes->lanes[0]).all_rate,
                               .lost = on_lost,
                               .lost_argument = lanes};
    cr_lane *lane;
    cr_status status = cr_lane_gpu.open(&options, &lane, error);
    lanes->left_behind |= status == CR_DEADLINE_EXCEEDED;
    if (status != CR_OK) return status;
    const cr_gpu_rates *rates = cr_lane_gpu_rates(lane);
    cr_lane_info info = cr_lane_gpu.info(lane);
    const uint64_t from = cr_gpu_from(rates);
    if (!lanes->gpus || from < lanes->gpu_from) lanes->gpu_from = from; /* each lane then looks at its own rates */
    *bus += rates->pinned;
    if (!lanes->gpus) {
        cr_metric_add(gpu_pinned_bytes_per_second, rates->pinned);
        cr_metric_add(gpu_staged_bytes_per_second, rates->staged);
        cr_metric_add(gpu_launch_ns, rates->launch_s * 1e9);
    }
    cr_info("%s %u (%s): %.1f GB/s pinned, %.1f staged, a small fold %.1f us; %u streams of %llu MiB", info.name,
            ordinal, info.device, rates->pinned / 1e9, rates->staged / 1e9, rates->launch_s * 1e6, info.workers,
            (unsigned long long)(c->gpu_chunk_bytes >> 20));
    lanes->types[lanes->count] = &cr_lane_gpu;
    lanes->lanes[lanes->count++] = lane;
    lanes->gpus++;
    return CR_OK;
}

/* Opens what can be opened, *bus bytes a second together; with none, error holds the reason of the last. */
static void open_gpus(cr_lanes *lanes, const cr_lanes_options *o, uint32_t count, double *bus, cr_error *error) {
    for (uint32_t ordinal = 0; ordinal < count; ordinal++) {
        cr_error why;
        if (open_gpu(lanes, o, ordinal, bus, &why) == CR_OK) continue;
        cr_warn("%s %u is not used: %s", o->gpu->name, ordinal, why.text);
        cr_fail(error, CR_FAILED_PRECONDITION, "%s %u cannot be used: %s", o->gpu->name, ordinal, why.text);
    }
}

/* Which shared memory is worth slabs, beside the CPU; gpu_min_bytes says it instead. */
static void weigh_slabs(cr_lanes *lanes, const cr_lanes_options *o, const cr_lane_info *cpu, double bus) {
    const cr_shared_rates rates = {.read = cpu->shared_rate, .slabs = cpu->slab_rate, .cpu = cpu->all_rate, .bus = bus};
    lanes->slabs_from = o->config->gpu_min_bytes ? lanes->gpu_from : cr_gpu_slabs_from(&rates, lanes->gpu_from);
    cr_metric_add(cpu_bytes_per_second, cpu->all_rate);
    cr_metric_add(shared_bytes_per_second, cpu->shared_rate);
    cr_metric_add(slab_bytes_per_second, cpu->slab_rate);
    if (lanes->kinds & CR_BY_CPU)
        cr_info("shared memory: %.1f GB/s by the workers, %.1f by slabs; %s", rates.read / 1e9, rates.slabs / 1e9,
                lanes->slabs_from == UINT64_MAX ? "it is the workers'" : "GPUs take their part");
}

static void open_nvml(cr_lanes *lanes) {
    char uuids[CR_NVML_GPUS][CR_NVML_UUID_BYTES];
    for (uint32_t i = 0; i < lanes->gpus; i++)
        snprintf(uuids[i], sizeof uuids[i], "%s", cr_lane_gpu_device(lanes->lanes[1 + i])->uuid);
    lanes->nvml = cr_nvml_open(uuids, lanes->gpus);
}

static void pin_slabs(cr_lanes *lanes, cr_slabs *slabs) {
    cr_pinner pinner = cr_lanes_pinner(lanes);
    cr_error error;
    if (cr_slabs_pin(slabs, &pinner, &error) != CR_OK)
        cr_warn("the slabs are not pinned, and reach the GPU more slowly: %s", error.text);
}

cr_status cr_lanes_open(cr_lanes *lanes, const cr_lanes_options *o, cr_error *error) {
    cr_error why = {CR_OK, ""};
    *lanes = (cr_lanes){.gpu = o->gpu,
                        .chunk_bytes = o->config->gpu_chunk_bytes,
                        .kinds = CR_BY_CPU,
                        .wake = o->wake,
                        .wake_argument = o->wake_argument};
    cr_seats_init(&lanes->seats, cr_cores());
    pthread_mutex_init(&lanes->pins_mutex, NULL);
    cr_list_init(&lanes->pins);
    uint32_t count = usable_gpus(lanes, o, &why);
    bool forced = o->config->backend == CR_BACKEND_CUDA;
    if (!count && forced) return cr_fail(error, CR_FAILED_PRECONDITION, "backend: cuda is asked for, and %s", why.text);
    cr_status status = open_cpu(lanes, o, count && !forced, error);
    if (status != CR_OK) return status;
    cr_lane_info cpu = cr_lane_cpu.info(lanes->lanes[0]);
    double bus = 0;
    open_gpus(lanes, o, count, &bus, &why);
    if (!lanes->gpus && forced)
        return cr_fail(error, CR_FAILED_PRECONDITION, "backend: cuda is asked for, and %s", why.text);
    if (lanes->gpus) {
        char text[96];
        snprintf(text, sizeof text, "%u GPU%s in use%s", lanes->gpus, lanes->gpus == 1 ? " is" : "s are",
                 forced ? "; backend cuda was asked for" : ", beside the CPU");
        set_reason(lanes, o->gpu->name, text);
        lanes->kinds = forced ? CR_BY_GPU : CR_BY_CPU | CR_BY_GPU;
        if (forced) lanes->gpu_from = 1;
        weigh_slabs(lanes, o, &cpu, bus);
        pin_slabs(lanes, o->slabs);
        for (uint32_t i = 1; i < lanes->count; i++) cr_lane_gpu_attend(lanes->lanes[i], true);
        lanes->hook = cr_lanes_device_hook(lanes);
        open_nvml(lanes);
    } else {
        set_reason(lanes, "cpu", why.text);
    }
    cr_info("backend %s (%s): %u workers, %s, %.1f GB/s hot f32 sum", lanes->backend, lanes->reason, cpu.workers,
            cpu.device, cpu.bytes_per_second / 1e9);
    return CR_OK;
}

void cr_lanes_watch(cr_lanes *lanes) {
    for (uint32_t i = 1; i < lanes->count; i++) cr_lane_gpu_watch(lanes->lanes[i]);
}

bool cr_lanes_close(cr_lanes *lanes, cr_slabs *slabs) {
    bool hung = lanes->left_behind;
    if (lanes->nvml) hung |= !cr_nvml_close(lanes->nvml);
    lanes->nvml = NULL;
    for (uint32_t i = 1; i < lanes->count; i++) cr_lane_gpu_attend(lanes->lanes[i], false);
    if (slabs) cr_slabs_unpin(slabs);
    while (lanes->count) {
        lanes->count--;
        if (lanes->count) hung |= !cr_lane_gpu_await_end(lanes->lanes[lanes->count]);
        lanes->types[lanes->count]->close(lanes->lanes[lanes->count]);
    }
    pthread_mutex_destroy(&lanes->pins_mutex);
    return !hung;
}

bool cr_lanes_axis(const cr_lanes *lanes, const cr_job *job) {
    return lanes->gpu && job->mask.kind == CR_MASK_NONE && cr_gpu_axis_takes_claims(lanes->gpu, job);
}

void cr_lanes_place(const cr_lanes *lanes, cr_job *job) {
    if (job->named) {
        job->kinds = CR_BY_GPU;
        job->gpu_from = 1;
        job->in_order = false; /* it is not folded in pieces */
        return;
    }
    if (job->by_host) return;             /* that was settled with its answers */
    if (job->mask.kind != CR_MASK_NONE) { /* no kernel knows masks */
        job->by_host = !job->axis;        /* along an axis that was settled with it */
        return;
    }
    if (!job->axis && lanes->gpu && !lanes->gpu->fold_takes(job->dtype, job->families)) {
        job->by_host = true;
        return;
    }
    if (job->axis && lanes->gpus) {
        const cr_gpu_placing placing = {.kinds = lanes->kinds,
                                        .workers = lanes->workers,
                                        .gpu_from = lanes->gpu_from,
                                        .chunk_bytes = lanes->chunk_bytes};
        cr_gpu_axis_place(lanes->gpu, job, &placing);
    }
    if (!cr_gpu_takes(job)) return;
    job->kinds = lanes->kinds;
    job->gpu_from = lanes->gpu_from;
    job->slabs_from = lanes->slabs_from;
}

bool cr_lanes_check(cr_lanes *lanes) {
    if (!atomic_exchange(&lanes->news, false)) return false;
    uint32_t lost = 0;
    const char *why = "";
    for (uint32_t i = 1; i < lanes->count; i++) {
        cr_lane_info info = lanes->types[i]->info(lanes->lanes[i]);
        if (!info.lost) continue;
        lost++;
        why = info.lost;
    }
    if (lost == lanes->gpus_lost) return false;
    lanes->gpus_lost = lost;
    if (lost == lanes->gpus) {
        set_reason(lanes, "cpu", why);
        lanes->kinds = CR_BY_CPU;
    } else {
        set_reason(lanes, lanes->backend, why);
    }
    return true;
}
