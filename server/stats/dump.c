/* dump: the stats and the slowest calls, as lines of the log. Thread: the loop's. Owner: nobody; nothing is kept. */
#include <stdio.h>

#include "base/log.h"
#include "server/stats/stats.h"

static void totals(cr_log_level level, const cr_wire_stats *m) {
    const cr_log_field fields[] = {
        {"uptime_ms", NULL, m->uptime_ms},      {"requests", NULL, m->requests_total},
        {"failed", NULL, m->failed_total},      {"bytes", NULL, m->bytes_total},
        {"in_flight", NULL, m->in_flight},      {"queue_depth", NULL, m->queue_depth},
        {"window_ms", NULL, m->window_ms},      {"window_requests", NULL, m->window_requests},
        {"window_bytes", NULL, m->window_bytes}};
    cr_log_fields(level, "stats", fields, sizeof fields / sizeof fields[0]);
}

static void names(cr_log_level level, const char *message, const cr_wire_names *of) {
    cr_log_field fields[CR_WIRE_MAX_NAMED];
    for (uint32_t i = 0; i < of->count; i++) fields[i] = (cr_log_field){of->items[i].name, NULL, of->items[i].value};
    if (of->count) cr_log_fields(level, message, fields, of->count);
}

static void rows(cr_log_level level, const cr_wire_stats *m) {
    for (uint32_t i = 0; i < m->request_count; i++) {
        const cr_wire_requests *r = &m->requests[i];
        const cr_log_field fields[] = {{"method", r->method, 0},
                                       {"source", r->source, 0},
                                       {"status", cr_status_name((cr_status)r->code), 0},
                                       {"count", NULL, r->count}};
        cr_log_fields(level, "stats requests", fields, 4);
    }
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const cr_wire_stage *s = &m->stages[i];
        const cr_log_field fields[] = {{"stage", s->name, 0},
                                       {"count", NULL, s->count},
                                       {"p50_us", NULL, s->p50_ns / 1000},
                                       {"p90_us", NULL, s->p90_ns / 1000},
                                       {"p99_us", NULL, s->p99_ns / 1000}};
        cr_log_fields(level, "stats stage", fields, 5);
    }
    for (uint32_t i = 0; i < m->lane_count; i++) {
        const cr_wire_lane_stats *l = &m->lanes[i];
        const cr_log_field fields[] = {
            {"lane", l->name, 0},      {"device", l->device, 0},        {"lost", NULL, l->lost},
            {"bytes", NULL, l->bytes}, {"launches", NULL, l->launches}, {"busy_ms", NULL, l->busy_ns / 1000000}};
        cr_log_fields(level, "stats lane", fields, 6);
    }
    for (uint32_t i = 0; i < m->user_count; i++) {
        const cr_wire_user *u = &m->users[i];
        const cr_log_field fields[] = {{"user", u->name, 0},
                                       {"connections", NULL, u->used.connections},
                                       {"calls", NULL, u->used.calls},
                                       {"bytes", NULL, u->used.bytes},
                                       {"regions", NULL, u->used.regions}};
        cr_log_fields(level, "stats user", fields, 5);
    }
}

static void slow(cr_log_level level, const cr_wire_slow_log *log) {
    for (uint32_t i = 0; i < log->count; i++) {
        const cr_wire_slow_call *c = &log->calls[i];
        const cr_log_field fields[] = {{"age_s", NULL, c->age_ms / 1000},
                                       {"conn", NULL, c->connection},
                                       {"user", c->user, 0},
                                       {"pid", NULL, c->pid},
                                       {"client", c->client, 0},
                                       {"method", c->method, 0},
                                       {"source", c->source, 0},
                                       {"ops", c->ops, 0},
                                       {"dtype", c->dtype, 0},
                                       {"bytes", NULL, c->bytes},
                                       {"status", cr_status_name((cr_status)c->code), 0},
                                       {"receive_us", NULL, c->receive_ns / 1000},
                                       {"queue_us", NULL, c->queue_ns / 1000},
                                       {"run_us", NULL, c->run_ns / 1000},
                                       {"send_us", NULL, c->send_ns / 1000},
                                       {"total_us", NULL, c->total_ns / 1000},
                                       {"lanes", c->lanes, 0}};
        cr_log_fields(level, "slow call", fields, sizeof fields / sizeof fields[0]);
    }
}

void cr_stats_dump(cr_stats *stats) {
    static cr_wire_stats m; /* the loop's */
    static cr_wire_slow_log log;
    const cr_stats_asker everybody = {.all = true};
    const cr_log_level level = cr_log_least(); /* it was asked for */
    cr_stats_snapshot(stats, &everybody, &m);
    cr_stats_slow(stats, &everybody, &log);
    totals(level, &m);
    rows(level, &m);
    names(level, "stats ops", &m.ops);
    names(level, "stats input bytes", &m.dtypes);
    names(level, "stats rejected", &m.rejected);
    names(level, "stats connections", &m.connections);
    slow(level, &log);
}
