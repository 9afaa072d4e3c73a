/* stats: counting a request, and the copies that windows are made of. Thread: the loop's. Owner: see stats.h. */
#include "server/stats/stats.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/stats/process.h"

void cr_stats_init(cr_stats *s, const cr_stats_sources *sources) {
    memset(s, 0, sizeof *s);
    s->sources = *sources;
    s->log_timer.fire = cr_stats_log_left_out;
    s->log_factor = cr_hash_factor();
    s->now.at_ms = s->started_ms = cr_now_ms();
    s->started_s = cr_process_clock_s();
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

static inline void count_array(cr_stats *s, cr_dtype dtype, cr_ops ops, uint64_t bytes) {
    s->now.bytes += bytes;
    s->input_bytes[dtype] += bytes;
    for (; ops; ops &= ops - 1) s->ops[__builtin_ctzll(ops)]++;
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
    count_array(s, r->dtype, r->ops, r->bytes);
    for (uint32_t i = 0; i < CR_STAGES; i++)
        if (r->stages[i] != CR_NO_STAGE) cr_histogram_add(&s->now.stages[i], r->stages[i]);
}

void cr_stats_flush(cr_stats *s) {
    cr_stats_samples *small = &s->small;
    s->requests[CR_METHOD_reduce][CR_GIVEN_inline][CR_OK] += small->count;
    s->now.requests += small->count;
    uint32_t total_ns[CR_STATS_SAMPLES];
    for (uint32_t i = 0; i < small->count; i++) {
        total_ns[i] = small->queue_ns[i] + small->run_ns[i];
        count_array(s, (cr_dtype)small->dtypes[i], small->ops[i], small->bytes[i]);
    }
    cr_histogram_add_all(&s->now.stages[CR_STAGE_queue], small->queue_ns, small->count);
    cr_histogram_add_all(&s->now.stages[CR_STAGE_run], small->run_ns, small->count);
    cr_histogram_add_all(&s->now.stages[CR_STAGE_total], total_ns, small->count);
    small->count = 0;
}

void cr_stats_gather(cr_stats *s) {
    cr_stats_flush(s);
    if (s->sources.gather) s->sources.gather(s->sources.gather_argument);
}

static void add_all(uint64_t *to, uint64_t *others, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *to; i++) to[i] += others[i];
    memset(others, 0, bytes);
}

void cr_stats_add(cr_stats *to, cr_stats *others) {
    cr_stats_flush(others);
    add_all(to->requests[0][0], others->requests[0][0], sizeof to->requests);
    add_all(to->ops, others->ops, sizeof to->ops);
    add_all(to->input_bytes, others->input_bytes, sizeof to->input_bytes);
    add_all(to->rejected, others->rejected, sizeof to->rejected);
    add_all(&to->now.requests, &others->now.requests, sizeof to->now.requests);
    add_all(&to->now.failed, &others->now.failed, sizeof to->now.failed);
    add_all(&to->now.bytes, &others->now.bytes, sizeof to->now.bytes);
    for (uint32_t i = 0; i < CR_STAGES; i++) cr_histogram_take(&to->now.stages[i], &others->now.stages[i]);
    cr_histogram_take(&to->turns, &others->turns);
    cr_stats_add_slow(to, others);
}

void cr_stats_region(cr_stats *s, cr_region_kind kind, int64_t count, int64_t bytes) {
    s->regions[kind] += (uint64_t)count;
    s->region_bytes[kind] += (uint64_t)bytes;
}

void cr_stats_rejected(cr_stats *s, cr_reason reason) { s->rejected[reason]++; }
