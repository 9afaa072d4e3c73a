/* snapshot: StatsResponse, for whoever asks. Thread: the loop's. Owner: the caller's struct. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernels/core/dtype.h"
#include "server/stats/stats.h"

const char *cr_stats_lane_name(const cr_lanes *lanes, uint32_t lane, char *name, size_t cap) {
    const cr_lane_info info = lanes->types[lane]->info(lanes->lanes[lane]);
    if (lane)
        snprintf(name, cap, "%s%u", info.name, info.ordinal);
    else
        snprintf(name, cap, "%s", info.name);
    return name;
}

void cr_stats_pools(const cr_stats *s, cr_pool pools[CR_POOLS]) {
    const cr_config *c = s->sources.config;
    pools[0] = (cr_pool){"slabs", cr_metric_get(slabs_used) * CR_SLAB_BYTES, c ? c->slabs * CR_SLAB_BYTES : 0};
    pools[1] = (cr_pool){"axis", cr_metric_get(state_bytes), c ? c->max_state_bytes : 0};
}

static void word(cr_wire_word to, const char *text) { snprintf(to, CR_WIRE_WORD_BYTES, "%s", text); }

/* Every op has a place among the rows, and so has every type. */
enum {
    OPS = 0
#define CR_OP(...) +1
#include "kernels/core/op.def"
#undef CR_OP
};
_Static_assert((int)OPS <= (int)CR_WIRE_MAX_NAMED && (int)CR_DTYPE_INPUTS <= (int)CR_WIRE_MAX_NAMED,
               "rows that find no place are not told");

/* A row more, unless its value is 0. */
static void name(cr_wire_names *to, const char *text, uint64_t value) {
    if (!value || to->count == CR_WIRE_MAX_NAMED) return;
    word(to->items[to->count].name, text);
    to->items[to->count++].value = value;
}

static void fill_requests(const cr_stats *s, cr_wire_stats *m) {
    for (uint32_t method = 0; method < CR_METHODS; method++)
        for (uint32_t input = 0; input < CR_GIVENS; input++)
            for (uint32_t code = 0; code < CR_STATS_STATUSES; code++) {
                const uint64_t count = s->requests[method][input][code];
                if (!count || m->request_count == CR_WIRE_MAX_REQUESTS) continue;
                cr_wire_requests *to = &m->requests[m->request_count++];
                word(to->method, cr_method_names[method]);
                word(to->source, cr_given_names[input]);
                to->code = code;
                to->count = count;
            }
}

static void fill_window(const cr_stats *s, uint64_t now_ms, cr_wire_stats *m) {
    const cr_stats_sums *before = &s->steps[s->step];
    m->requests_total = s->now.requests;
    m->failed_total = s->now.failed;
    m->bytes_total = s->now.bytes;
    m->window_ms = now_ms - before->at_ms;
    m->window_requests = s->now.requests - before->requests;
    m->window_failed = s->now.failed - before->failed;
    m->window_bytes = s->now.bytes - before->bytes;
    m->stage_count = CR_STAGES;
    for (uint32_t i = 0; i < CR_STAGES; i++) {
        cr_histogram h;
        cr_histogram_since(&s->now.stages[i], &before->stages[i], &h);
        m->stages[i] = (cr_wire_stage){.count = cr_histogram_count(&h),
                                       .sum_ns = h.sum_ns,
                                       .p50_ns = cr_histogram_part(&h, 500),
                                       .p90_ns = cr_histogram_part(&h, 900),
                                       .p99_ns = cr_histogram_part(&h, 990)};
        word(m->stages[i].name, cr_stage_names[i]);
    }
}

static void fill_names(const cr_stats *s, cr_wire_stats *m) {
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
        name(&m->ops, cr_op_name(op), s->ops[op]);
    for (uint32_t i = 0; i <= CR_DTYPE_INPUTS; i++) name(&m->dtypes, cr_dtype_name((cr_dtype)i), s->input_bytes[i]);
    for (uint32_t i = 0; i < CR_REASONS; i++) name(&m->rejected, cr_reason_names[i], s->rejected[i]);
    for (uint32_t i = 0; i < CR_SPOKENS; i++) name(&m->connections, cr_spoken_names[i], s->connections[i]);
}

static void fill_lanes(const cr_lanes *lanes, cr_wire_stats *m) {
    snprintf(m->backend, sizeof m->backend, "%s", lanes->backend ? lanes->backend : "");
    snprintf(m->backend_reason, sizeof m->backend_reason, "%s", lanes->reason);
    for (; m->lane_count < lanes->count; m->lane_count++) {
        cr_wire_lane_stats *to = &m->lanes[m->lane_count];
        const cr_lane_info info = lanes->types[m->lane_count]->info(lanes->lanes[m->lane_count]);
        cr_stats_lane_name(lanes, m->lane_count, to->name, sizeof to->name);
        snprintf(to->device, sizeof to->device, "%s", info.device);
        to->workers = info.workers;
        to->lost = info.lost != NULL;
        to->bytes = info.bytes;
        to->launches = info.launches;
        to->busy_ns = info.busy_ns;
        for (uint32_t i = 0; i < CR_GPU_ERRORS; i++) to->errors += info.errors[i];
        if (!m->lane_count || !lanes->nvml) continue;
        const cr_nvml_reading gpu = cr_nvml_read(lanes->nvml, m->lane_count - 1);
        to->memory_used = gpu.memory_used;
        to->memory_bytes = gpu.memory_bytes;
        to->has_temperature = gpu.has_temperature;
        to->temperature_c = gpu.temperature_c;
        to->has_utilization = gpu.has_utilization;
        to->utilization_percent = gpu.utilization_percent;
    }
}

void cr_stats_snapshot(cr_stats *s, const cr_stats_asker *asker, cr_wire_stats *m) {
    const uint64_t now_ms = cr_now_ms();
    memset(m, 0, sizeof *m);
    cr_stats_gather(s);
    cr_stats_turn(s, now_ms);
    snprintf(m->version, sizeof m->version, "%s", s->sources.version ? s->sources.version : "");
    m->uptime_ms = now_ms - s->started_ms;
    m->in_flight = cr_metric_get(calls);
    m->queue_depth = cr_metric_get(queue_depth);
    fill_requests(s, m);
    fill_window(s, now_ms, m);
    fill_names(s, m);
    if (s->sources.lanes) fill_lanes(s->sources.lanes, m);
    cr_pool pools[CR_POOLS];
    cr_stats_pools(s, pools);
    for (; m->pool_count < CR_POOLS; m->pool_count++) {
        cr_wire_pool *to = &m->pools[m->pool_count];
        word(to->name, pools[m->pool_count].name);
        to->used_bytes = pools[m->pool_count].used;
        to->total_bytes = pools[m->pool_count].total;
    }
    m->user_count = cr_stats_users(s->sources.admission, asker, m->users);
}

cr_stats_asker cr_stats_asker_of(const cr_peer *peer) {
    return (cr_stats_asker){.own = peer->user, .all = (cr_peer_may(peer) & CR_MAY_admin) != 0};
}

static void fill_user(const cr_admission *a, const cr_user *user, const cr_user *own, cr_wire_user *m) {
    cr_user_name(user, m->name, sizeof m->name);
    m->own = user == own;
#define CR_USE(name)                          \
    m->used.name = user->used[CR_USE_##name]; \
    m->limit.name = cr_admit_share(a, user, CR_USE_##name);
#include "proto/use.def"
#undef CR_USE
}

uint32_t cr_stats_users(const cr_admission *a, const cr_stats_asker *asker, cr_wire_user users[CR_WIRE_MAX_USERS]) {
    uint32_t count = 0;
    if (asker->own) fill_user(a, asker->own, asker->own, &users[count++]);
    if (!a || !asker->all) return count;
    for (const cr_list *node = a->by_age.next; node != &a->by_age && count < CR_WIRE_MAX_USERS; node = node->next) {
        const cr_user *user = cr_container(node, cr_user, link);
        if (user != asker->own) fill_user(a, user, asker->own, &users[count++]);
    }
    return count;
}
