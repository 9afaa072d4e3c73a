/* loop: its turns. Thread: the loop's. Owner: main. */
#include "server/loop/loop.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "server/base/clock.h"
#include "server/call/call.h"
#include "server/call/outputs.h"
#include "server/native/frames.h"
#include "server/native/regions.h"

static void on_clock(uv_timer_t *timer) {
    cr_server *server = timer->data;
    server->clock_set = UINT64_MAX;
    cr_timers_run(&server->timers, cr_now_ms());
}

static cr_conn *next_granted(cr_server *server) {
    pthread_mutex_lock(&server->grants_mutex);
    cr_list *node = cr_list_pop(&server->grants);
    pthread_mutex_unlock(&server->grants_mutex);
    return node ? cr_container(node, cr_conn, grant) : NULL;
}

static void on_wake(uv_async_t *wake) {
    cr_server *server = wake->data;
    cr_list done;
    server->came = true;
    for (cr_job *job; (job = cr_queue_news(server->queue));)
        if (job->owner && cr_call_measured(job->owner) && job->axis) cr_outputs_send(job->owner);
    cr_queue_completed(server->queue, &done);
    for (cr_list *node; (node = cr_list_pop(&done));) cr_call_job_done(server, cr_container(node, cr_job, done));
    for (cr_conn *conn; (conn = next_granted(server));) cr_conn_granted(conn);
    cr_regions_news(server);
    if (cr_lanes_check(&server->lanes) && server->lane_lost) server->lane_lost(server);
}

void cr_server_wake(void *argument) {
    cr_server *server = argument;
    uv_async_send(&server->wake);
}

/* No call runs and every answer is written. */
static bool quiet(const cr_server *server) {
    for (cr_list *node = server->connections.next; node != &server->connections; node = node->next) {
        const cr_conn *conn = cr_container(node, cr_conn, link);
        if (conn->streams.open || cr_conn_backlog(conn)) return false;
    }
    return true;
}

static void on_looking(uv_idle_t *looking) { (void)looking; }

/* An idle handle keeps the loop from sleeping: it only looks what there is. */
static void look_or_sleep(cr_server *server) {
    const uint64_t spin_ns = server->config->spin_us * 1000;
    const bool looks = uv_is_active((uv_handle_t *)&server->looking);
    if (!spin_ns && !looks) return;
    const uint64_t now = cr_now_ns();
    if (server->came) server->look_until = now + spin_ns;
    server->came = false;
    if (now >= server->look_until)
        uv_idle_stop(&server->looking);
    else if (!looks)
        uv_idle_start(&server->looking, on_looking);
}

/* Writes the replies of this turn. A client that reads them at once makes its connection dirty again: that is for the next
 * turn, because others come first. */
static void flush_dirty(cr_server *server) {
    cr_list now;
    cr_list_init(&now);
    cr_list_move(&now, &server->dirty);
    for (cr_list *node; (node = cr_list_pop(&now));) cr_conn_flush(cr_container(node, cr_conn, dirty));
    if (!cr_list_empty(&server->dirty)) uv_async_send(&server->wake);
}

/* Before the loop sleeps: every reply is on its way, and the clock is set to the next timer. */
static void on_prepare(uv_prepare_t *prepare) {
    cr_server *server = prepare->data;
    flush_dirty(server);
    uint64_t next = cr_timers_next(&server->timers);
    if (next != server->clock_set) {
        uint64_t now = cr_now_ms();
        server->clock_set = next;
        if (next == UINT64_MAX)
            uv_timer_stop(&server->clock);
        else
            uv_timer_start(&server->clock, on_clock, next > now ? next - now : 0, 0);
    }
    look_or_sleep(server);
    if (server->draining && server->drained && quiet(server)) {
        void (*drained)(cr_server *) = server->drained;
        server->drained = NULL;
        drained(server);
    }
}

/* Those of the options; what is counted stays. */
void cr_server_limit(cr_server *server) {
    const cr_config *config = server->config;
    cr_admission *a = &server->admission;
    a->max_connections = config->max_connections;
    a->max_calls = config->max_jobs;
    a->max_calls_per_connection = config->max_jobs_per_connection;
    a->max_input_bytes = config->max_input_bytes;
    a->max_bytes = config->max_bytes_in_flight;
    a->max_state_bytes = config->max_state_bytes;
    a->max_state_bytes_per_connection = config->max_state_bytes_per_connection;
    a->max_regions = config->max_regions;
    a->max_regions_per_connection = config->max_regions_per_connection;
    a->max_region_bytes = config->max_region_bytes;
    struct rlimit files = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    cr_admit_limit_descriptors(a, files.rlim_cur);
}

cr_status cr_server_init(cr_server *server, uv_loop_t *loop, const cr_config *config, cr_error *error) {
    server->loop = loop;
    server->config = config;
    server->started_ms = cr_now_ms();
    server->clock_set = UINT64_MAX;
    cr_server_limit(server);
    cr_list_init(&server->connections);
    cr_list_init(&server->dirty);
    cr_list_init(&server->filling);
    cr_list_init(&server->grants);
    cr_list_init(&server->region_news);
    cr_timers_init(&server->timers);
    pthread_mutex_init(&server->grants_mutex, NULL);
    server->buffer = malloc(CR_FRAME_HEAD_MAX + CR_TURN_BYTES);
    if (!server->buffer) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the read buffer");
    int failed = uv_async_init(loop, &server->wake, on_wake);
    if (failed) return cr_fail(error, CR_INTERNAL, "cannot set up the loop: %s", uv_strerror(failed));
    uv_timer_init(loop, &server->clock);
    uv_timer_init(loop, &server->sealing);
    uv_prepare_init(loop, &server->prepare);
    uv_idle_init(loop, &server->looking);
    server->wake.data = server->clock.data = server->sealing.data = server->prepare.data = server;
    uv_prepare_start(&server->prepare, on_prepare);
    return CR_OK;
}

void cr_server_drain(cr_server *server) {
    server->draining = true;
    uv_async_send(&server->wake); /* so that prepare looks at once */
}

void cr_server_close_all(cr_server *server) {
    cr_error error;
    cr_fail(&error, CR_UNAVAILABLE, "the server is shutting down");
    while (!cr_list_empty(&server->connections)) {
        cr_conn *conn = cr_container(server->connections.next, cr_conn, link);
        cr_conn_fail(conn, &error);
        cr_conn_flush(conn); /* closes it when the peer is gone */
        cr_conn_close(conn);
    }
}

void cr_server_close_handles(cr_server *server) {
    uv_close((uv_handle_t *)&server->wake, NULL);
    uv_close((uv_handle_t *)&server->clock, NULL);
    uv_close((uv_handle_t *)&server->sealing, NULL);
    uv_close((uv_handle_t *)&server->prepare, NULL);
    uv_close((uv_handle_t *)&server->looking, NULL);
}

void cr_server_free(cr_server *server) {
    cr_timers_free(&server->timers);
    pthread_mutex_destroy(&server->grants_mutex);
    free(server->buffer);
    free(server->spare_out);
}

void cr_server_limits(const cr_server *server, cr_wire_limits *limits) {
    *limits = (cr_wire_limits){.head_bytes = CR_HEAD_MAX_BYTES,
                               .data_bytes = CR_DATA_MAX_BYTES,
                               .ops = CR_CALL_MAX_OPS,
                               .jobs_per_connection = (uint32_t)server->config->max_jobs_per_connection,
                               .credit_bytes = CR_CREDIT_INITIAL_BYTES,
                               .input_bytes = server->config->max_input_bytes,
                               .regions_per_connection = (uint32_t)server->config->max_regions_per_connection,
                               .region_bytes = server->config->max_region_bytes};
}
