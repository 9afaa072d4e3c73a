/* wire_stats: StatsResponse and SlowLogResponse between protobuf and plain structs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include "proto/wire_stats.h"

#include <string.h>

#include "proto/wire_internal.h"

/* protobuf-c wants char *, and reads only. */
#define TEXT(from) ((char *)(uintptr_t)(from))
#define COPY(to, from) cr_wire_copy_text(to, sizeof(to), from)

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Rows of a name and a number, with what they point at. */
typedef struct names_out {
    Cured__V1__Counter rows[CR_WIRE_MAX_NAMED];
    Cured__V1__Counter *pointers[CR_WIRE_MAX_NAMED];
} names_out;

static Cured__V1__Counter **put_names(const cr_wire_names *m, names_out *out, size_t *count) {
    *count = least(m->count, CR_WIRE_MAX_NAMED);
    for (size_t i = 0; i < *count; i++) {
        cured__v1__counter__init(&out->rows[i]);
        out->rows[i].name = TEXT(m->items[i].name);
        out->rows[i].value = m->items[i].value;
        out->pointers[i] = &out->rows[i];
    }
    return out->pointers;
}

static void take_names(Cured__V1__Counter *const *from, size_t count, cr_wire_names *m) {
    m->count = (uint32_t)least(count, CR_WIRE_MAX_NAMED);
    for (uint32_t i = 0; i < m->count; i++) {
        COPY(m->items[i].name, from[i]->name);
        m->items[i].value = from[i]->value;
    }
}

/* What a StatsResponse points at. */
typedef struct stats_out {
    Cured__V1__Window window;
    Cured__V1__StageTimes stages[CR_WIRE_MAX_STAGES], *stage_pointers[CR_WIRE_MAX_STAGES];
    Cured__V1__RequestCount requests[CR_WIRE_MAX_REQUESTS], *request_pointers[CR_WIRE_MAX_REQUESTS];
    names_out ops, dtypes, rejected, connections;
    Cured__V1__LaneStats lanes[CR_WIRE_MAX_LANES], *lane_pointers[CR_WIRE_MAX_LANES];
    Cured__V1__Pool pools[CR_WIRE_MAX_POOLS], *pool_pointers[CR_WIRE_MAX_POOLS];
    cr_wire_user_out users[CR_WIRE_MAX_USERS];
    Cured__V1__User *user_pointers[CR_WIRE_MAX_USERS];
} stats_out;

static void put_window(const cr_wire_stats *m, Cured__V1__StatsResponse *p, stats_out *out) {
    cured__v1__window__init(&out->window);
    out->window.ms = m->window_ms;
    out->window.requests = m->window_requests;
    out->window.failed = m->window_failed;
    out->window.bytes = m->window_bytes;
    p->window = &out->window;
    p->n_stages = least(m->stage_count, CR_WIRE_MAX_STAGES);
    p->stages = out->stage_pointers;
    for (size_t i = 0; i < p->n_stages; i++) {
        const cr_wire_stage *from = &m->stages[i];
        Cured__V1__StageTimes *to = out->stage_pointers[i] = &out->stages[i];
        cured__v1__stage_times__init(to);
        to->stage = TEXT(from->name);
        to->count = from->count;
        to->sum_ns = from->sum_ns;
        to->p50_ns = from->p50_ns;
        to->p90_ns = from->p90_ns;
        to->p99_ns = from->p99_ns;
    }
}

static void put_requests(const cr_wire_stats *m, Cured__V1__StatsResponse *p, stats_out *out) {
    p->n_counts = least(m->request_count, CR_WIRE_MAX_REQUESTS);
    p->counts = out->request_pointers;
    for (size_t i = 0; i < p->n_counts; i++) {
        Cured__V1__RequestCount *to = out->request_pointers[i] = &out->requests[i];
        cured__v1__request_count__init(to);
        to->method = TEXT(m->requests[i].method);
        to->source = TEXT(m->requests[i].source);
        to->code = m->requests[i].code;
        to->count = m->requests[i].count;
    }
}

static void put_lanes(const cr_wire_stats *m, Cured__V1__StatsResponse *p, stats_out *out) {
    p->n_lanes = least(m->lane_count, CR_WIRE_MAX_LANES);
    p->lanes = out->lane_pointers;
    for (size_t i = 0; i < p->n_lanes; i++) {
        const cr_wire_lane_stats *from = &m->lanes[i];
        Cured__V1__LaneStats *to = out->lane_pointers[i] = &out->lanes[i];
        cured__v1__lane_stats__init(to);
        to->name = TEXT(from->name);
        to->device = TEXT(from->device);
        to->workers = from->workers;
        to->lost = from->lost;
        to->bytes = from->bytes;
        to->launches = from->launches;
        to->busy_ns = from->busy_ns;
        to->memory_used = from->memory_used;
        to->memory_bytes = from->memory_bytes;
        to->errors = from->errors;
        to->temperature_case = from->has_temperature ? CURED__V1__LANE_STATS__TEMPERATURE_TEMPERATURE_C : 0;
        to->temperature_c = from->temperature_c;
        to->utilization_case = from->has_utilization ? CURED__V1__LANE_STATS__UTILIZATION_UTILIZATION_PERCENT : 0;
        to->utilization_percent = from->utilization_percent;
    }
    p->n_pools = least(m->pool_count, CR_WIRE_MAX_POOLS);
    p->pools = out->pool_pointers;
    for (size_t i = 0; i < p->n_pools; i++) {
        Cured__V1__Pool *to = out->pool_pointers[i] = &out->pools[i];
        cured__v1__pool__init(to);
        to->name = TEXT(m->pools[i].name);
        to->used_bytes = m->pools[i].used_bytes;
        to->total_bytes = m->pools[i].total_bytes;
    }
}

size_t cr_wire_pack_stats(const cr_wire_stats *m, uint8_t *to, size_t cap) {
    stats_out out;
    Cured__V1__StatsResponse p = CURED__V1__STATS_RESPONSE__INIT;
    p.version = TEXT(m->version);
    p.backend = TEXT(m->backend);
    p.backend_reason = TEXT(m->backend_reason);
    p.uptime_ms = m->uptime_ms;
    p.in_flight = m->in_flight;
    p.queue_depth = m->queue_depth;
    p.requests = m->requests_total;
    p.failed = m->failed_total;
    p.bytes = m->bytes_total;
    put_window(m, &p, &out);
    put_requests(m, &p, &out);
    p.ops = put_names(&m->ops, &out.ops, &p.n_ops);
    p.input_bytes = put_names(&m->dtypes, &out.dtypes, &p.n_input_bytes);
    p.rejected = put_names(&m->rejected, &out.rejected, &p.n_rejected);
    p.connections = put_names(&m->connections, &out.connections, &p.n_connections);
    put_lanes(m, &p, &out);
    p.n_users = cr_wire_users_out(m->users, m->user_count, out.users, out.user_pointers);
    p.users = out.user_pointers;
    return cr_wire_emit(&p.base, to, cap);
}

static void take_window(const Cured__V1__StatsResponse *p, cr_wire_stats *m) {
    if (p->window) {
        m->window_ms = p->window->ms;
        m->window_requests = p->window->requests;
        m->window_failed = p->window->failed;
        m->window_bytes = p->window->bytes;
    }
    m->stage_count = (uint32_t)least(p->n_stages, CR_WIRE_MAX_STAGES);
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const Cured__V1__StageTimes *from = p->stages[i];
        m->stages[i] = (cr_wire_stage){.count = from->count,
                                       .sum_ns = from->sum_ns,
                                       .p50_ns = from->p50_ns,
                                       .p90_ns = from->p90_ns,
                                       .p99_ns = from->p99_ns};
        COPY(m->stages[i].name, from->stage);
    }
    m->request_count = (uint32_t)least(p->n_counts, CR_WIRE_MAX_REQUESTS);
    for (uint32_t i = 0; i < m->request_count; i++) {
        COPY(m->requests[i].method, p->counts[i]->method);
        COPY(m->requests[i].source, p->counts[i]->source);
        m->requests[i].code = p->counts[i]->code <= CR_STATUS_MAX ? p->counts[i]->code : CR_UNKNOWN;
        m->requests[i].count = p->counts[i]->count;
    }
}

static void take_lanes(const Cured__V1__StatsResponse *p, cr_wire_stats *m) {
    m->lane_count = (uint32_t)least(p->n_lanes, CR_WIRE_MAX_LANES);
    for (uint32_t i = 0; i < m->lane_count; i++) {
        const Cured__V1__LaneStats *from = p->lanes[i];
        m->lanes[i] = (cr_wire_lane_stats){.workers = from->workers,
                                           .lost = from->lost,
                                           .bytes = from->bytes,
                                           .launches = from->launches,
                                           .busy_ns = from->busy_ns,
                                           .memory_used = from->memory_used,
                                           .memory_bytes = from->memory_bytes,
                                           .errors = from->errors};
        m->lanes[i].has_temperature = from->temperature_case == CURED__V1__LANE_STATS__TEMPERATURE_TEMPERATURE_C;
        if (m->lanes[i].has_temperature) m->lanes[i].temperature_c = from->temperature_c;
        m->lanes[i].has_utilization = from->utilization_case == CURED__V1__LANE_STATS__UTILIZATION_UTILIZATION_PERCENT;
        if (m->lanes[i].has_utilization) m->lanes[i].utilization_percent = from->utilization_percent;
        COPY(m->lanes[i].name, from->name);
        COPY(m->lanes[i].device, from->device);
    }
    m->pool_count = (uint32_t)least(p->n_pools, CR_WIRE_MAX_POOLS);
    for (uint32_t i = 0; i < m->pool_count; i++) {
        COPY(m->pools[i].name, p->pools[i]->name);
        m->pools[i].used_bytes = p->pools[i]->used_bytes;
        m->pools[i].total_bytes = p->pools[i]->total_bytes;
    }
}

cr_status cr_wire_unpack_stats(const uint8_t *in, size_t len, cr_wire_stats *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__StatsResponse *p = cr_wire_parse(&scratch, &cured__v1__stats_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    memset(m, 0, sizeof *m);
    COPY(m->version, p->version);
    COPY(m->backend, p->backend);
    COPY(m->backend_reason, p->backend_reason);
    m->uptime_ms = p->uptime_ms;
    m->in_flight = p->in_flight;
    m->queue_depth = p->queue_depth;
    m->requests_total = p->requests;
    m->failed_total = p->failed;
    m->bytes_total = p->bytes;
    /* Lists are cut, not refused: a newer server may have more to tell. */
    take_window(p, m);
    take_names(p->ops, p->n_ops, &m->ops);
    take_names(p->input_bytes, p->n_input_bytes, &m->dtypes);
    take_names(p->rejected, p->n_rejected, &m->rejected);
    take_names(p->connections, p->n_connections, &m->connections);
    take_lanes(p, m);
    m->user_count = cr_wire_users_in(p->users, p->n_users, m->users);
    return CR_OK;
}

/* ---- the slowest ---- */

size_t cr_wire_pack_slow_log(const cr_wire_slow_log *m, uint8_t *out, size_t cap) {
    Cured__V1__SlowCall calls[CR_WIRE_MAX_SLOW], *pointers[CR_WIRE_MAX_SLOW];
    Cured__V1__SlowLogResponse p = CURED__V1__SLOW_LOG_RESPONSE__INIT;
    p.n_calls = least(m->count, CR_WIRE_MAX_SLOW);
    p.calls = pointers;
    for (size_t i = 0; i < p.n_calls; i++) {
        const cr_wire_slow_call *from = &m->calls[i];
        Cured__V1__SlowCall *to = pointers[i] = &calls[i];
        cured__v1__slow_call__init(to);
#define CR_SLOW_TEXT(name) to->name = TEXT(from->name);
#define CR_SLOW_NUMBER(name) to->name = from->name;
#include "proto/slow.def"
#undef CR_SLOW_TEXT
#undef CR_SLOW_NUMBER
    }
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_slow_log(const uint8_t *in, size_t len, cr_wire_slow_log *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__SlowLogResponse *p =
        cr_wire_parse(&scratch, &cured__v1__slow_log_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    memset(m, 0, sizeof *m);
    m->count = (uint32_t)least(p->n_calls, CR_WIRE_MAX_SLOW);
    for (uint32_t i = 0; i < m->count; i++) {
        const Cured__V1__SlowCall *from = p->calls[i];
        cr_wire_slow_call *to = &m->calls[i];
#define CR_SLOW_TEXT(name) COPY(to->name, from->name);
#define CR_SLOW_NUMBER(name) to->name = from->name;
#include "proto/slow.def"
#undef CR_SLOW_TEXT
#undef CR_SLOW_NUMBER
        if (to->code > CR_STATUS_MAX) to->code = CR_UNKNOWN;
    }
    return CR_OK;
}
