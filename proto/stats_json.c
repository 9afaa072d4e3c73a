/* stats_json: StatsResponse and SlowLogResponse as one JSON object.
 *
 * Thread: any; nothing here holds state. Owner: the caller's buffer. */
#include <inttypes.h>

#include "proto/text.h"
#include "proto/wire_stats.h"
#include "proto/wire_table.h"

typedef struct out {
    cr_text to;
    bool first; /* nothing stands before the next member of its object or array */
} out;

#define put(o, ...) cr_text_put(&(o)->to, __VA_ARGS__)

/* A string. A byte of a longer character, as \u00XX, would be a character of its own, and maybe one that commands terminals. */
static void quote(out *o, const char *text) {
    put(o, "\"");
    for (size_t n; *text; text += n) {
        const size_t good = cr_wire_printable(text, SIZE_MAX); /* ends at its NUL */
        n = good ? good : 1;
        if (!good)
            put(o, "?");
        else if (*text == '"' || *text == '\\')
            put(o, "\\u%04x", *text);
        else
            put(o, "%.*s", (int)n, text);
    }
    put(o, "\"");
}

static void key(out *o, const char *name) {
    if (!o->first) put(o, ",");
    o->first = false;
    if (!name) return;
    quote(o, name);
    put(o, ":");
}

static void open(out *o, const char *name, const char *bracket) {
    key(o, name);
    put(o, "%s", bracket);
    o->first = true;
}

static void close(out *o, const char *bracket) {
    put(o, "%s", bracket);
    o->first = false;
}

static void number(out *o, const char *name, uint64_t value) {
    key(o, name);
    put(o, "%" PRIu64, value);
}

static void text(out *o, const char *name, const char *value) {
    key(o, name);
    quote(o, value);
}

static void truth(out *o, const char *name, bool value) {
    key(o, name);
    put(o, value ? "true" : "false");
}

static void names(out *o, const char *name, const cr_wire_names *of) {
    open(o, name, "{");
    for (uint32_t i = 0; i < of->count; i++) number(o, of->items[i].name, of->items[i].value);
    close(o, "}");
}

static void requests(out *o, const cr_wire_stats *m) {
    open(o, "requests", "[");
    for (uint32_t i = 0; i < m->request_count; i++) {
        const cr_wire_requests *r = &m->requests[i];
        open(o, NULL, "{");
        text(o, "method", r->method);
        text(o, "source", r->source);
        text(o, "code", cr_status_name((cr_status)r->code));
        number(o, "count", r->count);
        close(o, "}");
    }
    close(o, "]");
}

static void stages(out *o, const cr_wire_stats *m) {
    open(o, "stages", "{");
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const cr_wire_stage *s = &m->stages[i];
        open(o, s->name, "{");
        number(o, "count", s->count);
        number(o, "sum_ns", s->sum_ns);
        number(o, "p50_ns", s->p50_ns);
        number(o, "p90_ns", s->p90_ns);
        number(o, "p99_ns", s->p99_ns);
        close(o, "}");
    }
    close(o, "}");
}

static void lanes(out *o, const cr_wire_stats *m) {
    open(o, "lanes", "[");
    for (uint32_t i = 0; i < m->lane_count; i++) {
        const cr_wire_lane_stats *lane = &m->lanes[i];
        open(o, NULL, "{");
        text(o, "name", lane->name);
        text(o, "device", lane->device);
        number(o, "workers", lane->workers);
        truth(o, "lost", lane->lost);
        number(o, "bytes", lane->bytes);
        number(o, "launches", lane->launches);
        number(o, "busy_ns", lane->busy_ns);
        number(o, "memory_used", lane->memory_used);
        number(o, "memory_bytes", lane->memory_bytes);
        if (lane->has_temperature) number(o, "temperature_c", lane->temperature_c);
        if (lane->has_utilization) number(o, "utilization_percent", lane->utilization_percent);
        number(o, "errors", lane->errors);
        close(o, "}");
    }
    close(o, "]");
}

static void held(out *o, const char *name, const cr_wire_held *m) {
    open(o, name, "{");
#define CR_USE(use) number(o, #use, m->use);
#include "proto/use.def"
#undef CR_USE
    close(o, "}");
}

static void users(out *o, const cr_wire_stats *m) {
    open(o, "users", "[");
    for (uint32_t i = 0; i < m->user_count; i++) {
        open(o, NULL, "{");
        text(o, "name", m->users[i].name);
        truth(o, "own", m->users[i].own);
        held(o, "used", &m->users[i].used);
        held(o, "limit", &m->users[i].limit);
        close(o, "}");
    }
    close(o, "]");
}

static void pools(out *o, const cr_wire_stats *m) {
    open(o, "pools", "[");
    for (uint32_t i = 0; i < m->pool_count; i++) {
        open(o, NULL, "{");
        text(o, "name", m->pools[i].name);
        number(o, "used_bytes", m->pools[i].used_bytes);
        number(o, "total_bytes", m->pools[i].total_bytes);
        close(o, "}");
    }
    close(o, "]");
}

static void stage(out *o, const char *name, uint64_t ns) {
    if (ns) number(o, name, ns);
}

static void slow(out *o, const cr_wire_slow_log *log) {
    open(o, "slow", "[");
    for (uint32_t i = 0; i < log->count; i++) {
        const cr_wire_slow_call *c = &log->calls[i];
        open(o, NULL, "{");
        number(o, "age_ms", c->age_ms);
        number(o, "connection", c->connection);
        text(o, "user", c->user);
        if (c->has_uid) number(o, "uid", c->uid);
        if (c->has_uid) number(o, "pid", c->pid);
        text(o, "client", c->client);
        text(o, "front", c->front);
        text(o, "transport", c->transport);
        text(o, "method", c->method);
        text(o, "source", c->source);
        text(o, "ops", c->ops);
        text(o, "dtype", c->dtype);
        text(o, "lanes", c->lanes);
        text(o, "code", cr_status_name((cr_status)c->code));
        number(o, "bytes", c->bytes);
        stage(o, "receive_ns", c->receive_ns);
        stage(o, "queue_ns", c->queue_ns);
        stage(o, "run_ns", c->run_ns);
        stage(o, "send_ns", c->send_ns);
        stage(o, "total_ns", c->total_ns);
        close(o, "}");
    }
    close(o, "]");
}

size_t cr_wire_stats_json(const cr_wire_stats *m, const cr_wire_slow_log *log, char *to, size_t cap) {
    out o = {{.at = to, .cap = cap}, .first = true};
    open(&o, NULL, "{");
    text(&o, "version", m->version);
    text(&o, "backend", m->backend);
    text(&o, "backend_reason", m->backend_reason);
    number(&o, "uptime_ms", m->uptime_ms);
    number(&o, "in_flight", m->in_flight);
    number(&o, "queue_depth", m->queue_depth);
    number(&o, "requests_total", m->requests_total);
    number(&o, "failed_total", m->failed_total);
    number(&o, "bytes_total", m->bytes_total);
    open(&o, "window", "{");
    number(&o, "ms", m->window_ms);
    number(&o, "requests", m->window_requests);
    number(&o, "failed", m->window_failed);
    number(&o, "bytes", m->window_bytes);
    close(&o, "}");
    stages(&o, m);
    requests(&o, m);
    names(&o, "ops", &m->ops);
    names(&o, "dtypes", &m->dtypes);
    names(&o, "rejected", &m->rejected);
    names(&o, "connections", &m->connections);
    lanes(&o, m);
    pools(&o, m);
    users(&o, m);
    if (log) slow(&o, log);
    close(&o, "}");
    return o.to.full ? 0 : o.to.used;
}

size_t cr_wire_slow_json(const cr_wire_slow_log *log, char *to, size_t cap) {
    out o = {{.at = to, .cap = cap}, .first = true};
    open(&o, NULL, "{");
    slow(&o, log);
    close(&o, "}");
    return o.to.full ? 0 : o.to.used;
}

size_t cr_wire_settings_json(const cr_wire_settings *m, char *to, size_t cap) {
    out o = {{.at = to, .cap = cap}, .first = true};
    open(&o, NULL, "{");
    open(&o, "config", "[");
    for (uint32_t i = 0; i < m->count; i++) {
        open(&o, NULL, "{");
        text(&o, "key", m->items[i].key);
        text(&o, "value", m->items[i].value);
        text(&o, "origin", m->items[i].origin);
        truth(&o, "reloads", m->items[i].reloads);
        truth(&o, "pending", m->items[i].pending);
        close(&o, "}");
    }
    close(&o, "]");
    close(&o, "}");
    return o.to.full ? 0 : o.to.used;
}
