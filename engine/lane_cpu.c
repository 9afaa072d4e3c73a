/* lane_cpu: worker threads that fold on the CPU.
 *
 * Thread: one worker each; open and close on main's. Owner: main. */
#include <pthread.h>
#include <stdlib.h>

#include "base/cores.h"
#include "engine/lane_cpu_rates.h"
#include "engine/memory/guard.h"
#include "engine/memory/kept.h"
#include "engine/worker.h"
#include "kernels/cpu/fold.h"

typedef struct worker {
    cr_lane *lane;
    pthread_t thread;
    cr_worker own;
} worker;

struct cr_lane {
    cr_lane_options options;
    double rate, all_rate, shared_rate, slab_rate;
    cr_lane_meter meter;
    uint32_t started;
    worker workers[];
};

static void fold_claim(worker *w, cr_queue *queue) {
    cr_worker *own = &w->own;
    cr_turn *turn = &own->turn;
    const cr_claim *claim = &turn->claim;
    cr_segment *segment = claim->segment;
    if (!segment->mapped) {
        cr_worker_fold(own, queue);
        return;
    }
    const uint64_t reach = cr_claim_reach(claim);
    cr_guard_enter_shared(claim->data, reach, segment->kept ? &segment->kept->lost : NULL);
    cr_worker_fold(own, queue);
    if (cr_guard_leave())
        cr_fail(&turn->error, CR_DATA_LOSS,
                "descriptor: the file was cut, or got holes, or its storage failed while it was read");
    else if (turn->error.code == CR_OK)
        segment->still(segment, (uint64_t)(claim->data - segment->data) + reach, &turn->error);
}

static void *worker_main(void *argument) {
    worker *w = argument;
    const cr_lane_options *o = &w->lane->options;
    while (cr_worker_next(&w->own, o->queue, o->workers, true)) fold_claim(w, o->queue);
    cr_worker_end(&w->own, o->queue);
    return NULL;
}

/* The loop has a core of its own, where there are enough. On two, two workers fold up to twice as much beside a loop that is
 * idle, and one that is not gets its turn from the scheduler within a few ms. */
static uint32_t default_workers(void) {
    const uint32_t cores = cr_cores();
    return cores > 2 ? cores - 1 : cores;
}

static void cpu_close(cr_lane *lane) {
    for (uint32_t i = 0; i < lane->started; i++) pthread_join(lane->workers[i].thread, NULL);
    free(lane);
}

static cr_status cpu_open(const cr_lane_options *options, cr_lane **out, cr_error *error) {
    cr_status status = cr_cpu_select(options->isa, error);
    if (status != CR_OK) return status;
    uint32_t workers = options->workers ? options->workers : default_workers();
    cr_lane *lane = calloc(1, sizeof *lane + workers * sizeof lane->workers[0]);
    if (!lane) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cpu_workers: no memory for %u", workers);
    lane->options = *options;
    lane->options.workers = workers;
    lane->rate = cr_cpu_rate_hot();
    if (options->scratch) {
        lane->all_rate = cr_cpu_rate_all(&lane->options);
        lane->shared_rate = cr_cpu_rate_shared(&lane->options);
        lane->slab_rate = cr_cpu_rate_slabs(&lane->options);
    }
    if (options->seats) cr_queue_look_out(options->queue, options->seats, options->spin_ns);
    for (; lane->started < workers; lane->started++) {
        worker *own = &lane->workers[lane->started];
        own->lane = lane;
        own->own.turn.meter = &lane->meter;
        if (pthread_create(&own->thread, NULL, worker_main, own) != 0) break;
    }
    if (lane->started == workers) {
        *out = lane;
        return CR_OK;
    }
    status =
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "cpu_workers: cannot start thread %u of %u", lane->started + 1, workers);
    cr_queue_close(options->queue);
    cpu_close(lane);
    return status;
}

static cr_lane_info cpu_info(const cr_lane *lane) {
    return (cr_lane_info){.name = "cpu",
                          .device = cr_cpu_isa(),
                          .workers = lane->started,
                          .bytes_per_second = lane->rate,
                          .all_rate = lane->all_rate,
                          .shared_rate = lane->shared_rate,
                          .slab_rate = lane->slab_rate,
                          .bytes = cr_meter_get(&lane->meter.bytes),
                          .launches = cr_meter_get(&lane->meter.launches),
                          .busy_ns = cr_meter_get(&lane->meter.busy_ns)};
}

const cr_lane_type cr_lane_cpu = {"cpu", cpu_open, cpu_info, cpu_close};
