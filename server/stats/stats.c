/* stats: counting a request, and the copies that windows are made of. Thread: the loop's. Owner: see stats.h. */
#include "server/stats/stats.h"

#include <string.h>

#include "server/base/clock.h"

void cr_stats_init(cr_stats *s, const cr_stats_sources *sources) {
    memset(s, 0, sizeof *s);
    s->sources = *sources;
    s->log_timer.fire = cr_stats_log_left_out;
    s->now.at_ms = s->started_ms = cr_now_ms();
    for (uint32_t i = 0; i < CR_STATS_STEPS; i++) s->steps[i].at_ms = s->started_ms;
    s->step_ns = (s->started_ms + CR_STATS_STEP_MS) * 1000000;
}

void cr_stats_turn(cr_stats *s, uint64_t now_ms) {
    cr_stats_flush(s);
    if (now_ms < s->now.at_ms + CR_STATS_STEP_MS) return;
    /* After a pause in which nothing was counted every copy is the same. */
    const uint64_t behind = (now_ms - s->now.at_ms) / CR_STATS_STEP_MS;
    s->now.at_ms += behind * CR_STATS_STEP_MS;
    for (uint64_t i = behind < CR_STATS_STEPS ? behind : CR_STATS_STEPS; i-- > 0;) {
        s->steps[s->step] = s->now;
        s->steps[s->step].at_ms -= i * CR_STATS_STEP_MS;
        s->step = (s->step + 1) % CR_STATS_STEPS;
    }
    s->step_ns = (s->now.at_ms + CR_STATS_STEP_MS) * 1000000;
    cr_stats_forget_slow(s, now_ms);
}

static bool has_array(cr_method method) {
    return method == CR_METHOD_reduce || method == CR_METHOD_reduce_stream || method == CR_METHOD_merge;
}

void cr_stats_end(cr_stats *s, const cr_record *r) {
    if (r->ended_ms >= s->now.at_ms + CR_STATS_STEP_MS) cr_stats_turn(s, r->ended_ms);
    const bool wanted = s->slow_owner && s->slow_owner != r->peer->owner;
    if ((wanted || r->stages[CR_STAGE_total] > s->slow_bar_ns) && has_array(r->method)) cr_stats_keep_slow(s, r);
    s->requests[r->method][r->given][r->code]++;
    const cr_config *config = s->sources.config;
    if (config && config->log_calls && (r->code != CR_OK || config->log_calls != CR_LOG_CALLS_FAILED))
        cr_stats_log(s, r);
    s->now.requests++;
    if (r->refused < CR_REASONS) s->rejected[r->refused]++;
    if (r->code != CR_OK) {
        s->now.failed++;
        return;
    }
    if (!has_array(r->method)) return;
    s->now.bytes += r->bytes;
    s->input_bytes[r->dtype] += r->bytes;
    for (cr_ops left = r->ops; left; left &= left - 1) s->ops[__builtin_ctzll(left)]++;
    for (uint32_t i = 0; i < CR_STAGES; i++)
        if (r->stages[i] != CR_NO_STAGE) cr_histogram_add(&s->now.stages[i], r->stages[i]);
}

void cr_stats_flush(cr_stats *s) {
    s->requests[CR_METHOD_reduce][CR_GIVEN_inline][CR_OK] += s->small_count;
    s->now.requests += s->small_count;
    for (uint32_t i = 0; i < s->small_count; i++) {
        const cr_stats_sample *sample = &s->small[i];
        s->now.bytes += sample->bytes;
        s->input_bytes[sample->dtype] += sample->bytes;
        for (cr_ops left = sample->ops; left; left &= left - 1) s->ops[__builtin_ctzll(left)]++;
        cr_histogram_add(&s->now.stages[CR_STAGE_queue], sample->queue_ns);
        cr_histogram_add(&s->now.stages[CR_STAGE_run], sample->run_ns);
        cr_histogram_add(&s->now.stages[CR_STAGE_total], (uint64_t)sample->queue_ns + sample->run_ns);
    }
    s->small_count = 0;
}

bool cr_stats_small_end(cr_stats *s, const cr_stats_small *small) {
    const cr_config *config = s->sources.config;
    const cr_wire_timing *t = small->timing;
    if (small->now_ns >= s->step_ns || t->total_ns > s->slow_bar_ns || !config ||
        config->log_calls > CR_LOG_CALLS_FAILED || (s->slow_owner && s->slow_owner != small->owner))
        return false;
    if (t->queue_ns > UINT32_MAX || t->run_ns > UINT32_MAX) return false;
    cr_stats_sample *sample = &s->small[s->small_count++];
    *sample = (cr_stats_sample){(uint32_t)t->queue_ns, (uint32_t)t->run_ns, (uint32_t)small->bytes,
                                (uint32_t)small->dtype, 0};
    for (uint32_t i = 0; i < small->op_count; i++) sample->ops |= cr_ops_of(small->ops[i]);
    if (s->small_count == CR_STATS_SAMPLES) cr_stats_flush(s);
    return true;
}

void cr_stats_region(cr_stats *s, cr_region_kind kind, int64_t count, int64_t bytes) {
    s->regions[kind] += (uint64_t)count;
    s->region_bytes[kind] += (uint64_t)bytes;
}

void cr_stats_rejected(cr_stats *s, cr_reason reason) { s->rejected[reason]++; }
