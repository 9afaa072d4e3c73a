/* turn: what the calls of a loop share, and what a wake brings them. Thread: the loop's. Owner: main. */
#include <sys/resource.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "server/call/beside.h"
#include "server/call/call.h"
#include "server/call/shed.h"

void cr_calls_init(cr_calls *calls, void (*wake)(void *argument), void *wake_argument) {
    calls->started_ms = cr_now_ms();
    if (!calls->counts) calls->counts = cr_metrics;
    calls->wake = wake;
    calls->wake_argument = wake_argument;
    calls->sealing.fire = cr_upload_seal_idle;
    calls->window.fire = cr_call_window_over;
    cr_patience_init(&calls->patience);
    cr_list_init(&calls->open);
    cr_list_init(&calls->done);
    cr_list_init(&calls->writing);
    cr_list_init(&calls->filling);
    cr_list_init(&calls->granted);
    cr_list_init(&calls->extras);
    cr_list_init(&calls->shed);
    cr_timers_init(&calls->timers);
    cr_admit_init(&calls->admission);
    pthread_mutex_init(&calls->mutex, NULL);
    cr_stats_init(&calls->stats, &(cr_stats_sources){.version = calls->version,
                                                     .config = calls->config,
                                                     .admission = &calls->admission,
                                                     .lanes = &calls->lanes,
                                                     .timers = &calls->timers});
    cr_calls_limit(calls);
}

void cr_calls_free(cr_calls *calls) {
    cr_upload_granted(calls); /* slabs for uploads that are gone */
    cr_beside_turn(calls);
    cr_shed_turn(calls);
    cr_timers_free(&calls->timers);
    cr_admit_free(&calls->admission);
    pthread_mutex_destroy(&calls->mutex);
}

void cr_calls_limit(cr_calls *calls) {
    const cr_config *config = calls->config;
    cr_admission *a = &calls->admission;
    const struct {
        cr_use use;
        uint64_t most, per_user;
    } limits[] = {
        {CR_USE_connections, config->max_connections, config->max_connections_per_user},
        {CR_USE_calls, config->max_jobs, config->max_jobs_per_user},
        {CR_USE_bytes, config->max_bytes_in_flight, config->max_bytes_in_flight_per_user},
        {CR_USE_state_bytes, config->max_state_bytes, config->max_state_bytes_per_user},
        {CR_USE_regions, config->max_regions, config->max_regions_per_user},
        {CR_USE_region_bytes, config->max_total_region_bytes, config->max_region_bytes_per_user},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        a->most[limits[i].use] = limits[i].most;
        a->most_per_user[limits[i].use] = limits[i].per_user;
    }
    a->most_per_user[CR_USE_descriptors] = config->max_waiting_descriptors_per_user;
    a->max_calls_per_connection = config->max_jobs_per_connection;
    a->max_input_bytes = config->max_input_bytes;
    a->max_state_bytes_per_connection = config->max_state_bytes_per_connection;
    a->max_regions_per_connection = config->max_regions_per_connection;
    a->max_region_bytes = config->max_region_bytes;
    struct rlimit files = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    cr_admit_limit_descriptors(a, files.rlim_cur);
}

bool cr_calls_goes(cr_calls *calls, const void *connection, bool others) {
    const bool alone = calls->went == connection;
    calls->went = connection;
    calls->pressed = !alone || others;
    return alone;
}

void cr_calls_look(cr_calls *calls) { calls->read_ns = calls->last_ns = cr_now_ns(); }

/* A job came back from the lanes. Its call may be over. */
static void job_done(cr_calls *calls, cr_job *job) {
    if (job->owner) {
        cr_call_folded(job->owner);
        return;
    }
    cr_ticket ticket = job->ticket;
    cr_shed_over(calls, job, &ticket);
}

bool cr_calls_turn(cr_calls *calls, uint64_t most_ns) {
    const uint64_t now = cr_now_ns();
    bool in_time = true;
    cr_list done;
    /* First, because until then a slab is nobody's; its bytes wait for their connection's turn. */
    for (cr_upload *up; (up = cr_upload_granted(calls));) {
        cr_call *call = cr_container(up, cr_call, upload);
        call->front->room(call);
    }
    cr_beside_turn(calls);
    cr_shed_turn(calls);
    for (cr_job *job; in_time && (job = cr_queue_news(calls->queue)); in_time = cr_now_ns() < now + most_ns / 2)
        if (job->owner) cr_call_has_parts(job->owner);
    cr_list *piece = cr_list_pop(&calls->writing); /* however many there are, others wait for one piece only */
    if (piece) job_done(calls, cr_container(piece, cr_job, done));
    cr_queue_completed(calls->queue, &done);
    for (cr_list *node; (node = cr_list_pop(&done));) cr_list_append(&calls->done, node);
    while (!cr_list_empty(&calls->done)) {
        job_done(calls, cr_container(cr_list_pop(&calls->done), cr_job, done));
        if (cr_now_ns() >= now + most_ns) return true;
    }
    return !in_time || !cr_list_empty(&calls->writing);
}
