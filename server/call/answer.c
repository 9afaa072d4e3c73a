/* answer: packs ReduceResponse, fills InfoResponse. Thread: the loop's. Owner: the caller. */
#include "server/call/answer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

static void fill_value(cr_wire_op_result *to, const cr_value *value) {
    to->op = (uint32_t)value->op;
    to->status = (uint32_t)value->error.code;
    to->dtype = 0;
    to->value_len = to->at_len = 0;
    to->inexact = false;
    to->message[0] = 0;
    if (value->error.code != CR_OK) {
        memcpy(to->message, value->error.text, sizeof to->message);
        return;
    }
    to->dtype = (uint32_t)value->dtype;
    to->value_len = value->len;
    memcpy(to->value, value->bytes, sizeof to->value);
    to->at_len = value->at_len;
    memcpy(to->at, value->at, sizeof to->at);
}

static void fill_values(cr_wire_result *m, const cr_answer *answer, const uint32_t *ops) {
    m->count = answer->partial->n;
    for (uint32_t i = 0; i < m->result_count; i++) {
        cr_value value;
        cr_partial_finish(answer->partial, (cr_op)ops[i], answer->finish, &value);
        fill_value(&m->results[i], &value);
    }
}

static void fill_finished(cr_wire_result *m, const cr_answer *answer) {
    m->count = answer->count;
    for (uint32_t i = 0; i < m->result_count; i++) {
        fill_value(&m->results[i], &answer->values[i]);
        m->results[i].inexact = answer->values[i].error.code == CR_OK && !answer->exact[i];
    }
}

static void fill_partial(cr_wire_result *m, const cr_share *share) {
    static _Thread_local uint8_t bytes[CR_SERIAL_MAX_BYTES];
    m->count = share->partial.n;
    m->result_count = 0;
    m->partial = bytes;
    m->partial_len = cr_share_pack(share, bytes, sizeof bytes);
}

/* Elements of the op's first answer without a value, at most. */
static uint64_t elements_of(const cr_answer *answer, uint32_t op) {
    const cr_axis_spec *spec = answer->spec;
    switch (answer->geometry) {
        case CR_GEOMETRY_OFFSETS:
            return answer->missing_of[op];
        case CR_GEOMETRY_KEYS:
            return spec->shape.n * spec->shape.inner;
        case CR_GEOMETRY_WHOLE:
        case CR_GEOMETRY_AXIS:
            break;
    }
    return spec->shape.n;
}

static void fill_array(cr_wire_result *m, const cr_answer *answer) {
    const cr_axis_spec *spec = answer->spec;
    const cr_axis_missing *missing = answer->missing;
    const uint64_t answers = spec->shape.outer * spec->shape.inner;
    const bool some = spec->mask_line != 0 || answer->geometry == CR_GEOMETRY_KEYS; /* who knows which */
    cr_error why;
    /* By offsets n is what all segments have together, and by key the rows of all groups. */
    m->count = answer->geometry == CR_GEOMETRY_AXIS ? answers * spec->shape.n : spec->shape.n * spec->shape.inner;
    m->result_count = spec->op_count;
    for (uint32_t i = 0; i < spec->op_count; i++) {
        const cr_dtype dtype = cr_axis_dtype(spec->ops[i], spec->dtype, &spec->finish);
        const uint64_t of = missing[i].count ? elements_of(answer, i) : 0;
        cr_axis_say(&missing[i], spec->ops[i], dtype, of, some, answers, &why);
        m->results[i].op = (uint32_t)spec->ops[i];
        m->results[i].status = (uint32_t)why.code;
        m->results[i].dtype = (uint32_t)dtype;
        m->results[i].value_len = m->results[i].at_len = 0;
        m->results[i].inexact = false;
        memcpy(m->results[i].message, why.text, sizeof m->results[i].message);
    }
}

const uint8_t *cr_answer_pack(const cr_answer *answer, const cr_wire_reduce *asked, size_t *bytes) {
    static _Thread_local uint8_t packed[CR_HEAD_MAX_BYTES];
    cr_wire_result m;
    m.timing = *answer->timing;
    m.result_count = asked->op_count;
    m.partial = NULL;
    m.written = 0;
    switch (answer->kind) {
        case CR_ANSWER_VALUES:
            fill_values(&m, answer, asked->ops);
            break;
        case CR_ANSWER_FINISHED:
            fill_finished(&m, answer);
            break;
        case CR_ANSWER_PARTIAL:
            fill_partial(&m, answer->share);
            break;
        case CR_ANSWER_ARRAY:
            fill_array(&m, answer);
            m.written = answer->written;
            break;
        case CR_ANSWER_FAILED:
        case CR_ANSWER_DONE:
            assert(false);
    }
    *bytes = cr_wire_pack_result(&m, packed, sizeof packed);
    assert(*bytes);
    return packed;
}

uint32_t cr_answer_retry_ms(const cr_error *error) {
    return error->code == CR_RESOURCE_EXHAUSTED || error->code == CR_UNAVAILABLE ? CR_RETRY_AFTER_MS : 0;
}

void cr_answer_limits(const cr_calls *calls, cr_wire_limits *limits) {
    const cr_config *config = calls->config;
    *limits = (cr_wire_limits){.head_bytes = CR_HEAD_MAX_BYTES,
                               .data_bytes = CR_DATA_MAX_BYTES,
                               .ops = CR_CALL_MAX_OPS,
                               .jobs_per_connection = (uint32_t)config->max_jobs_per_connection,
                               .credit_bytes = CR_CREDIT_INITIAL_BYTES,
                               .input_bytes = config->max_input_bytes,
                               .regions_per_connection = (uint32_t)config->max_regions_per_connection,
                               .region_bytes = config->max_region_bytes};
}

static const cr_wire_info *info_for(const cr_calls *calls, const cr_peer *peer) {
    const cr_lanes *lanes = &calls->lanes;
    static cr_wire_info m; /* 20 KiB; the loop's */
    memset(&m, 0, sizeof m);
    snprintf(m.version, sizeof m.version, "%s", calls->version);
    snprintf(m.backend, sizeof m.backend, "%s", lanes->backend);
    snprintf(m.backend_reason, sizeof m.backend_reason, "%s", lanes->reason);
    m.uptime_ms = cr_now_ms() - calls->started_ms;
    m.lane_count = lanes->count;
    for (uint32_t i = 0; i < m.lane_count; i++) {
        cr_lane_info info = lanes->types[i]->info(lanes->lanes[i]);
        snprintf(m.lanes[i].name, sizeof m.lanes[i].name, "%s", info.name);
        snprintf(m.lanes[i].device, sizeof m.lanes[i].device, "%s%s", info.lost ? "lost: " : "", info.device);
        m.lanes[i].workers = info.workers;
        m.lanes[i].bytes_per_second = info.bytes_per_second;
    }
    _Static_assert((int)CR_METRIC_COUNT <= (int)CR_WIRE_MAX_COUNTERS, "Info has room for every metric");
    _Static_assert((int)CR_MAX_LANES <= (int)CR_WIRE_MAX_LANES, "Info has room for every lane");
    m.counter_count = CR_METRIC_COUNT;
    for (uint32_t i = 0; i < CR_METRIC_COUNT; i++) {
        snprintf(m.counters[i].name, sizeof m.counters[i].name, "%s", cr_metric_name((cr_metric)i));
        m.counters[i].value = atomic_load_explicit(&cr_metrics[i], memory_order_relaxed);
    }
    cr_answer_limits(calls, &m.limits);
    const cr_stats_asker asker = cr_stats_asker_of(peer);
    m.user_count = cr_stats_users(&calls->admission, &asker, m.users);
    return &m;
}

static const cr_wire_settings *settings_of(const cr_config *config) {
    static cr_wire_settings m; /* 43 KiB; the loop's */
    cr_setting setting;
    for (m.count = 0; m.count < CR_WIRE_MAX_OPTIONS && cr_config_setting(config, m.count, &setting); m.count++) {
        cr_wire_setting *to = &m.items[m.count];
        snprintf(to->key, sizeof to->key, "%s", setting.key);
        snprintf(to->value, sizeof to->value, "%.*s", (int)sizeof to->value - 1, setting.value);
        snprintf(to->origin, sizeof to->origin, "%s", setting.origin);
        to->reloads = setting.reloads;
        to->pending = setting.pending;
    }
    return &m;
}

size_t cr_answer_plain(cr_calls *calls, const cr_peer *peer, cr_wire_kind kind, uint8_t *out, size_t cap) {
    static cr_wire_stats stats; /* 25 KiB and 20 KiB; the loop's */
    static cr_wire_slow_log slow;
    const cr_stats_asker asker = cr_stats_asker_of(peer);
    if (kind == CR_CALL_CONFIG) return cr_wire_pack_settings(settings_of(calls->config), out, cap);
    if (kind == CR_CALL_INFO) cr_stats_gather(&calls->stats);
    if (kind == CR_CALL_INFO) return cr_wire_pack_info(info_for(calls, peer), out, cap);
    if (kind == CR_CALL_STATS) {
        cr_stats_snapshot(&calls->stats, &asker, &stats);
        return cr_wire_pack_stats(&stats, out, cap);
    }
    cr_stats_slow(&calls->stats, &asker, &slow);
    return cr_wire_pack_slow_log(&slow, out, cap);
}
