/* lane: one thread per GPU, which makes all calls of that device. It keeps every stream busy with a work (work.h). It
 * looks at the works all the time while one is under way, and sleeps when none is. In between it does what other
 * threads ask of the device (errand.c).
 *
 *   in use ── a sticky error, or no answer in time ──► lost: all claims go back, and the lane only refuses ──► closed
 *
 * Thread: the lane's; open, info and close on main's. Owner: main. */
#include "server/lanes/gpu/lane.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/lanes/gpu/internal.h"

enum {
    LOOK_NS = 100 * 1000, /* after so long without news the thread naps between looks: the workers need the cores */
    NAP_NS = 20 * 1000,
    AHEAD_NS = 50 * 1000,     /* so long before a large work is done the loop is woken */
    EVENTS_NS = 1000 * 1000,  /* events are looked at at least so often */
    END_MS = 1000,            /* at the lane's end nobody looks sooner whether its thread is in a call */
    DEVICE_BYTES_A_NS = 2000, /* a GPU folds at least so much of its own memory; then a nap would be long */
};

static cr_gpu_lane *own(const cr_lane *lane) { return (cr_gpu_lane *)(uintptr_t)lane; }

uint32_t cr_gpu_running(const cr_gpu_lane *lane) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lane->work_count; i++) count += lane->works[i].state == CR_WORK_RUNNING;
    return count;
}

/* The device is lost. First nobody claims for it any more, then its claims go back. */
static void lose(cr_gpu_lane *lane, cr_gpu_error kind, const char *why) {
    cr_gpu_count_error(lane, kind);
    cr_fail(&lane->lost_error, CR_UNAVAILABLE, "%s %u (%s) is lost: %s", lane->api->name, lane->options.ordinal,
            lane->device.name, why);
    atomic_store(&lane->lost, true);
    cr_error_log("%s; %u works go back to the queue", lane->lost_error.text, cr_gpu_running(lane));
    cr_metric_sub(gpus, 1);
    cr_metric_add(gpus_lost_total, 1);
    cr_queue_gpu_goes(lane->options.queue, lane->options.ordinal);
    for (uint32_t i = 0; i < lane->work_count; i++) cr_gpu_work_abandon(lane, &lane->works[i]);
    cr_gpu_inputs_lose(lane);
    if (lane->options.lost) lane->options.lost(lane->options.lost_argument);
}

static bool overdue(const cr_gpu_lane *lane, const cr_gpu_work *work, uint64_t now) {
    return work->state == CR_WORK_RUNNING && now > work->started_ns &&
           now - work->started_ns > lane->options.timeout_ms * 1000000;
}

/* Whether the device was lost in its last call, or is too late with an answer. Before it is called late the thread
 * looks once more, because the thread itself may have been away. */
static bool check_lost(cr_gpu_lane *lane, bool *moved) {
    if (lane->api->lost(lane->gpu)) {
        lose(lane, CR_GPU_ERROR_sticky, "its driver says so");
        return true;
    }
    const uint64_t now = cr_now_ns();
    for (uint32_t i = 0; i < lane->work_count; i++) {
        if (!overdue(lane, &lane->works[i], now)) continue;
        const bool done = cr_gpu_work_advance(lane, &lane->works[i]);
        *moved |= done;
        if (done || lane->api->lost(lane->gpu)) continue;
        char why[96];
        snprintf(why, sizeof why, "no answer within gpu_timeout_ms, %llu ms",
                 (unsigned long long)lane->options.timeout_ms);
        lane->hung = true;
        lose(lane, CR_GPU_ERROR_timeout, why);
        return true;
    }
    return false;
}

static bool gone(const cr_gpu_lane *lane) { return lane->api->lost(lane->gpu); }

/* Bytes of the GPU's own memory that the work folds in one go, also with answers that stay there; 0: it does something
 * else. *pace: of such works. */
static uint64_t folds_own(cr_gpu_lane *lane, const cr_gpu_work *work, cr_gpu_pace **pace) {
    const bool axis =
        work->kind == &cr_gpu_kind_axis && work->as.axis.phase == CR_AXIS_ANSWERS && work->as.axis.asked.to;
    *pace = axis ? &lane->axis_pace : &lane->pace;
    if (work->state != CR_WORK_RUNNING || work->queued_bytes) return 0;
    return axis || work->kind == &cr_gpu_kind_chunks ? work->bytes : 0;
}

static bool advance(cr_gpu_lane *lane, cr_gpu_work *work) {
    cr_gpu_pace *pace;
    const uint64_t bytes = folds_own(lane, work, &pace), started = work->started_ns;
    if (!cr_gpu_work_advance(lane, work)) return false;
    if (bytes) cr_gpu_learn(pace, bytes, cr_now_ns() - started);
    return true;
}

/* Wakes the loop shortly before a large work is done. */
static void announce(cr_gpu_lane *lane) {
    for (uint32_t i = 0; i < lane->work_count && lane->lookout.most_ns; i++) {
        cr_gpu_work *work = &lane->works[i];
        cr_gpu_pace *pace;
        const uint64_t bytes = folds_own(lane, work, &pace);
        if (!bytes || work->announced) continue;
        work->announced = cr_gpu_nearly_done(*pace, bytes, cr_now_ns() - work->started_ns, AHEAD_NS);
        if (work->announced) cr_queue_announce(lane->options.queue);
    }
}

/* One look at everything; true when something moved. start: idle streams may begin something. */
static bool look(cr_gpu_lane *lane, bool offered, bool start) {
    bool moved = false;
    for (uint32_t i = 0; i < lane->work_count && !gone(lane); i++)
        if (lane->works[i].state != CR_WORK_IDLE) moved |= advance(lane, &lane->works[i]);
    for (uint32_t i = 0; i < lane->work_count && start && (offered || moved) && !gone(lane); i++) {
        if (lane->works[i].state != CR_WORK_IDLE) continue;
        if (!cr_gpu_work_begin(lane, &lane->works[i])) break;
        moved = true;
    }
    announce(lane);
    if (offered || moved || lane->ops_left) moved |= cr_gpu_inputs_look(lane);
    return moved;
}

/* Looks for an offer, and then sleeps until there is one. False: the queue is closed. */
static bool await_offer(cr_gpu_lane *lane, uint32_t seen) {
    cr_queue *queue = lane->options.queue;
    cr_look look;
    if (!lane->lookout.most_ns) return cr_queue_sleep(queue, seen);
    const uint64_t since = cr_now_ns();
    if (cr_lookout_begin(&lane->lookout, &look, since)) {
        while (cr_queue_offers(queue) == seen && cr_look_on(&look, cr_now_ns())) sched_yield();
        cr_lookout_end(&lane->lookout, &look);
    }
    const bool open = cr_queue_sleep(queue, seen);
    const uint64_t now = cr_now_ns();
    cr_lookout_waited(&lane->lookout, now - since, now);
    return open;
}

/* With nothing under way: sleeps until something is offered, or until the events of other processes are to be looked
 * at again. The longer these have kept their jobs waiting, the longer it sleeps. False: the queue is closed. */
static bool rest(cr_gpu_lane *lane, uint32_t seen, uint64_t waited_ns) {
    cr_queue *queue = lane->options.queue;
    uint64_t nap = waited_ns / 16;
    if (!lane->waiting || atomic_load(&lane->lost)) return await_offer(lane, seen);
    if (waited_ns < LOOK_NS) return true;
    if (nap < NAP_NS) nap = NAP_NS;
    return cr_queue_doze(queue, seen, nap < EVENTS_NS ? nap : EVENTS_NS);
}

/* How long to look without naps for what is under way. */
static uint64_t patience(const cr_gpu_lane *lane) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < lane->work_count; i++) {
        const cr_gpu_work *work = &lane->works[i];
        if (work->state != CR_WORK_IDLE) bytes += work->bytes - work->queued_bytes;
    }
    const uint64_t look = lane->options.spin_ns > LOOK_NS ? lane->options.spin_ns : LOOK_NS;
    return look + bytes / DEVICE_BYTES_A_NS;
}

static void serve(cr_gpu_lane *lane) {
    cr_queue *queue = lane->options.queue;
    uint32_t looked = cr_queue_offers(queue) - 1; /* the first look is at everything */
    uint64_t news_ns = cr_now_ns();
    for (;;) {
        uint32_t seen = cr_queue_offers(queue);
        bool lost = atomic_load(&lane->lost), asked = atomic_load(&lane->asking), moved = false, late = false;
        if (!lost) {
            moved = look(lane, seen != looked || lane->waiting, !asked);
            lost = check_lost(lane, &late);
            moved |= late;
        }
        if (!asked) looked = seen;
        if (late) looked = seen - 1; /* a stream is idle since this turn's look at the line */
        if (!cr_gpu_running(lane)) {
            if (asked || atomic_load(&lane->asking)) /* also since this turn began, for which a work may be parked */
                cr_gpu_errands_run(lane, lost);
            else if (!moved && !rest(lane, seen, cr_now_ns() - news_ns))
                return;
            if (moved || !lane->waiting) news_ns = cr_now_ns();
        } else if (moved) {
            news_ns = cr_now_ns();
        } else if (cr_now_ns() - news_ns > patience(lane)) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
}

static cr_status open_device(cr_gpu_lane *lane, cr_error *error) {
    const cr_lane_options *o = &lane->options;
    cr_status status = lane->api->open(o->ordinal, &lane->gpu, error);
    if (status != CR_OK) return status;
    lane->device = *lane->api->info(lane->gpu);
    if (o->seats) lane->lookout = (cr_lookout){.seats = o->seats, .most_ns = o->spin_ns};
    if (o->spin_ns) lane->api->linger(lane->gpu, o->spin_ns);
    for (uint32_t i = 0; i < lane->work_count && status == CR_OK; i++)
        status = cr_gpu_work_open(lane, &lane->works[i], error);
    if (status == CR_OK) status = lane->api->stream_open(lane->gpu, 1, &lane->kernel_stream, error);
    lane->rates = (cr_gpu_rates){.cpu = o->cpu_rate, .chunk_bytes = o->chunk_bytes, .min_bytes = o->min_bytes};
    const cr_gpu_work *first = &lane->works[0];
    if (status == CR_OK)
        status = cr_gpu_measure(lane->api, first->stream, first->device, first->staging, o->chunk_bytes, &lane->rates,
                                error);
    return status;
}

/* A lost device may only be closed; one that does not answer would keep us waiting, and is left to the end of the
 * process. */
static void close_device(cr_gpu_lane *lane) {
    bool lost = atomic_load(&lane->lost) || (lane->gpu && lane->api->lost(lane->gpu));
    for (uint32_t i = 0; i < lane->work_count && !lost; i++) cr_gpu_work_close(lane, &lane->works[i]);
    if (lane->kernel_stream && !lost) lane->api->stream_close(lane->kernel_stream);
    cr_gpu_unpin_all(lane);
    free(lane->hand.scratch);
    if (lane->gpu && !lane->hung) lane->api->close(lane->gpu);
}

static void *lane_main(void *argument) {
    cr_gpu_lane *lane = argument;
    cr_error error = {CR_OK, ""};
    cr_gpu_watch_begin(lane);
    cr_status status = open_device(lane, &error);
    pthread_mutex_lock(&lane->mutex);
    lane->opened = true;
    const bool given_up = lane->given_up;
    pthread_mutex_unlock(&lane->mutex);
    while (given_up) pause();
    if (status == CR_OK) {
        cr_metric_add(gpus, 1);
        cr_queue_gpu_comes(lane->options.queue, lane->options.ordinal);
    }
    pthread_mutex_lock(&lane->mutex);
    lane->started = true;
    lane->start_status = status;
    lane->start_error = error;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->mutex);
    if (status == CR_OK) {
        serve(lane);
        if (!atomic_load(&lane->lost)) {
            cr_metric_sub(gpus, 1);
            cr_queue_gpu_goes(lane->options.queue, lane->options.ordinal);
            cr_fail(&lane->lost_error, CR_UNAVAILABLE, "the server is shutting down");
            cr_gpu_inputs_lose(lane);
        }
    }
    pthread_mutex_lock(&lane->mutex);
    lane->ended = true;
    pthread_mutex_unlock(&lane->mutex);
    cr_gpu_errands_run(lane, true); /* what was asked just before */
    close_device(lane);
    pthread_mutex_lock(&lane->mutex);
    lane->over = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->mutex);
    return NULL;
}

bool cr_lane_gpu_watch(cr_lane *opaque) {
    cr_gpu_lane *lane = own(opaque);
    char why[96];
    if (!cr_gpu_watch_take(lane)) return false;
    snprintf(why, sizeof why, "a call of its driver has not returned within gpu_timeout_ms, %llu ms",
             (unsigned long long)lane->options.timeout_ms);
    lane->hung = lane->stuck = true;
    if (lane->start_status == CR_OK && !atomic_load(&lane->lost)) lose(lane, CR_GPU_ERROR_hang, why);
    cr_gpu_errands_lose(lane);
    return true;
}

void cr_lane_gpu_attend(cr_lane *lane, bool attended) { atomic_store(&own(lane)->attended, attended); }

bool cr_lane_gpu_await_end(cr_lane *opaque) {
    cr_gpu_lane *lane = own(opaque);
    const uint64_t step = lane->options.timeout_ms / 4 + 1;
    for (bool over = false; !over && !lane->stuck;) {
        const struct timespec until = cr_gpu_until(step > END_MS ? step : END_MS);
        int late = 0;
        pthread_mutex_lock(&lane->mutex);
        while (!lane->over && late != ETIMEDOUT) late = pthread_cond_timedwait(&lane->changed, &lane->mutex, &until);
        over = lane->over;
        pthread_mutex_unlock(&lane->mutex);
        if (!over) cr_lane_gpu_watch(opaque);
    }
    return !lane->hung;
}

static void gpu_close(cr_lane *opaque) {
    cr_gpu_lane *lane = own(opaque);
    cr_lane_gpu_await_end(opaque);
    if (lane->stuck) return; /* its thread may still look at it */
    pthread_join(lane->thread, NULL);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->mutex);
    cr_gpu_probe_free(lane->probe);
    free(lane);
}

/* Waits for the device, but no longer than the limit: then the lane stays behind with its thread. */
static cr_status await_start(cr_gpu_lane *lane, cr_lane **out, cr_error *error) {
    const uint64_t limit = lane->options.start_timeout_ms;
    const struct timespec until = cr_gpu_until(limit);
    int late = 0;
    pthread_mutex_lock(&lane->mutex);
    while (!lane->started && (lane->opened || late != ETIMEDOUT))
        late = limit && !lane->opened ? pthread_cond_timedwait(&lane->changed, &lane->mutex, &until)
                                      : pthread_cond_wait(&lane->changed, &lane->mutex);
    lane->given_up = !lane->started;
    cr_status status = lane->start_status;
    if (status != CR_OK) *error = lane->start_error;
    const bool given_up = lane->given_up;
    pthread_mutex_unlock(&lane->mutex);
    if (given_up) {
        pthread_detach(lane->thread);
        return cr_fail(error, CR_DEADLINE_EXCEEDED, "it was not ready within gpu_start_timeout_ms, %llu ms",
                       (unsigned long long)limit);
    }
    *out = (cr_lane *)(void *)lane;
    if (status != CR_OK && !cr_lane_gpu_await_end(*out))
        status = cr_fail(error, CR_DEADLINE_EXCEEDED, "it could not be opened, and does not let go of its driver");
    if (status != CR_OK) gpu_close(*out);
    return status;
}

static cr_status gpu_open(const cr_lane_options *options, cr_lane **out, cr_error *error) {
    cr_gpu_lane *lane = calloc(1, sizeof *lane + options->streams * sizeof lane->works[0]);
    if (!lane) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the lane of a GPU");
    lane->options = *options;
    cr_gpu_watch_table(options->gpu, &lane->watched);
    lane->api = &lane->watched;
    lane->work_count = options->streams;
    if (options->probe && !(lane->probe = cr_gpu_probe_new(options->probe, options->ordinal, options->timeout_ms))) {
        free(lane);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the lane of a GPU");
    }
    pthread_mutex_init(&lane->mutex, NULL);
    cr_gpu_cond_init(&lane->changed);
    cr_gpu_trace(options->queue, options->gpu);
    cr_list_init(&lane->pins);
    cr_list_init(&lane->errands);
    if (pthread_create(&lane->thread, NULL, lane_main, lane) != 0) {
        cr_gpu_probe_free(lane->probe);
        free(lane);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot start the thread of a GPU");
    }
    return await_start(lane, out, error);
}

static cr_lane_info gpu_info(const cr_lane *opaque) {
    cr_gpu_lane *lane = own(opaque);
    cr_lane_info info = {.name = lane->api->name,
                         .device = lane->device.name,
                         .workers = lane->work_count,
                         .ordinal = lane->options.ordinal,
                         .bytes_per_second = lane->rates.pinned,
                         .bytes = cr_meter_get(&lane->meter.bytes),
                         .launches = cr_meter_get(&lane->meter.launches),
                         .busy_ns = cr_meter_get(&lane->meter.busy_ns),
                         .lost = atomic_load(&lane->lost) ? lane->lost_error.text : NULL};
    for (uint32_t i = 0; i < CR_GPU_ERRORS; i++) info.errors[i] = cr_meter_get(&lane->errors[i]);
    return info;
}

cr_gpu_phases *cr_lane_gpu_phases(cr_lane *lane) { return &own(lane)->phases; }

const cr_gpu_rates *cr_lane_gpu_rates(const cr_lane *lane) { return &own(lane)->rates; }

const cr_lane_type cr_lane_gpu = {"gpu", gpu_open, gpu_info, gpu_close};
