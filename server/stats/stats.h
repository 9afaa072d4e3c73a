/* stats: what the daemon knows about its calls: counts by label, times of their stages, the slowest of them.
 *
 * Every request ends in one cr_stats_end (server/call/record.c), whichever door it came by. Each loop has counts of its own, which it
 * alone writes and reads, so they are plain numbers. Those of annexes are added to the first loop's while they stand still
 * (native/annex.h). What other threads count is in base/metrics.def and in the lanes.
 *
 * Percentiles and rates are of the last minute: the counts are copied every CR_STATS_STEP_MS, and the window is the difference
 * between now and the oldest copy.
 *
 * Thread: the loop's. Owner: the calls of a loop embed it. */
#ifndef CURED_SERVER_STATS_STATS_H
#define CURED_SERVER_STATS_STATS_H

#include "base/config.h"
#include "base/names.h"
#include "base/timers.h"
#include "engine/memory/slab.h"
#include "kernels/core/op.h"
#include "proto/wire_stats.h"
#include "server/admit/admission.h"
#include "server/lanes/lanes.h"
#include "server/stats/histogram.h"

enum {
    CR_STATS_STATUSES = 17,
    CR_STATS_STEPS = 6,
    CR_STATS_STEP_MS = 10000,
    CR_STATS_SLOW_MOST = CR_WIRE_MAX_SLOW, /* of the last hour */
};

/* A stage that a call did not have. */
#define CR_NO_STAGE UINT64_MAX

/* One request at its end. Lent. */
typedef struct cr_record {
    const cr_peer *peer;
    cr_method method;
    cr_given given;
    cr_status code;
    cr_reason refused; /* CR_REASONS: it was not for want of something */
    cr_dtype dtype;
    cr_ops ops;
    uint64_t bytes;                       /* of input that came, or was read */
    uint32_t lanes;                       /* that took part: see cr_job */
    bool on_loop;                         /* folded there, all or some of it */
    uint64_t ended_ms, stages[CR_STAGES]; /* in ns; CR_NO_STAGE */
    const char *why;                      /* the sentence of an error; NULL: none */
} cr_record;

/* What else the numbers come from; each outlives the stats. NULL in tests that have none. */
typedef struct cr_stats_sources {
    const char *version;
    const cr_config *config;
    const cr_admission *admission;
    const cr_lanes *lanes;
    cr_timers *timers;
    void (*gather)(void *argument); /* adds what others have counted, by cr_stats_add; NULL: there are no others */
    uint64_t (*guests)(void *argument, uint32_t annex); /* how many connections each of the others has, from 0 on */
    uint32_t annexes;                                   /* others that there are */
    void *gather_argument;
} cr_stats_sources;

/* A limit on lines of the log. */
typedef struct cr_stats_bucket {
    uint64_t since_ms, used, left_out;
} cr_stats_bucket;
enum { CR_STATS_LOG_BITS = 8 };

/* The counts that a window is made of. */
typedef struct cr_stats_sums {
    uint64_t at_ms, requests, failed, bytes;
    cr_histogram stages[CR_STAGES]; /* of reduce, reduce_stream and merge that were answered */
} cr_stats_sums;

/* One of the slowest calls. */
typedef struct cr_slow {
    uint64_t total_ns, ended_ms, owner;
    cr_wire_slow_call call;
} cr_slow;

/* Small calls that are not counted yet. */
enum { CR_STATS_SAMPLES = 64 };
typedef struct cr_stats_samples {
    uint32_t count;
    uint32_t queue_ns[CR_STATS_SAMPLES], run_ns[CR_STATS_SAMPLES], bytes[CR_STATS_SAMPLES];
    uint8_t dtypes[CR_STATS_SAMPLES];
    cr_ops ops[CR_STATS_SAMPLES];
} cr_stats_samples;

typedef struct cr_stats {
    cr_stats_sources sources;
    uint64_t started_ms;
    double started_s; /* the same by the clock of the wall, which may be set meanwhile: read once */
    uint64_t requests[CR_METHODS][CR_GIVENS][CR_STATS_STATUSES];
    uint64_t ops[CR_OP_IDS], input_bytes[CR_DTYPE_INPUTS + 1], rejected[CR_REASONS];
    uint64_t connections[CR_SPOKENS]; /* open now */
    uint64_t regions[CR_REGION_KINDS], region_bytes[CR_REGION_KINDS];
    cr_stats_samples small; /* counted together: each alone would miss the cache a dozen times */
    cr_stats_sums now, steps[CR_STATS_STEPS];
    uint32_t step;                    /* the oldest */
    uint64_t step_ns;                 /* when the next copy is due */
    cr_histogram turns;               /* of the loop, in which something came: from there to its end */
    cr_slow slow[CR_STATS_SLOW_MOST]; /* in no order */
    uint32_t slow_count;
    uint64_t slow_bar_ns; /* what takes less is not among the slowest, */
    uint64_t slow_owner; /* unless it is of another user than this one, who has more than half of the places; 0: none */
    uint64_t small_most_ns; /* slow_bar_ns, as far as a sample can say it */
    cr_stats_bucket log_users[1 << CR_STATS_LOG_BITS], log_all, log_answered;
    uint64_t log_factor; /* of log_users */
    uint64_t left_out;   /* lines, since that was told */
    cr_timer log_timer;
} cr_stats;

void cr_stats_init(cr_stats *stats, const cr_stats_sources *sources);
/* A request is over. */
void cr_stats_end(cr_stats *stats, const cr_record *record);
/* Counts the small calls that wait for it: before anything is read. */
void cr_stats_flush(cr_stats *stats);
/* The same, and what others have counted. */
void cr_stats_gather(cr_stats *stats);
/* What others counted comes to `to`, and they begin anew: not what is open now, which `to` counts itself. */
void cr_stats_add(cr_stats *to, cr_stats *others);
/* One that was folded on the loop and answered, and is neither slow nor logged: what most small calls are, in fewer steps. It is
 * inline because it is to cost a hundredth of such a call. False: cr_stats_end has to look at it. */
static inline bool cr_stats_small_end(cr_stats *s, uint64_t owner, uint64_t now_ns, const cr_wire_timing *timing,
                                      cr_dtype dtype, cr_ops ops, uint64_t bytes) {
    cr_stats_samples *small = &s->small;
    const uint32_t i = small->count;
    if (now_ns >= s->step_ns || timing->total_ns > s->small_most_ns || !s->sources.config ||
        s->sources.config->log_calls > CR_LOG_CALLS_FAILED || (s->slow_owner && s->slow_owner != owner))
        return false;
    small->queue_ns[i] = (uint32_t)timing->queue_ns;
    small->run_ns[i] = (uint32_t)timing->run_ns;
    small->bytes[i] = (uint32_t)bytes;
    small->dtypes[i] = (uint8_t)dtype;
    small->ops[i] = ops;
    if (++small->count == CR_STATS_SAMPLES) cr_stats_flush(s);
    return true;
}
/* Regions that became more or fewer, and their bytes. */
void cr_stats_region(cr_stats *stats, cr_region_kind kind, int64_t count, int64_t bytes);
/* A connection was refused. */
void cr_stats_rejected(cr_stats *stats, cr_reason reason);
/* For want of a credential: the log has a line, unless log_calls is off. */
void cr_stats_stranger(cr_stats *stats, const cr_peer *peer, const cr_error *why);

/* Who asks, and so what is shown: own: the user whose figures and slow calls are shown, NULL: none; all: of everybody. */
typedef struct cr_stats_asker {
    const cr_user *own;
    bool all;
} cr_stats_asker;

/* What a client may see: its own user; whoever may "admin" sees everybody. */
cr_stats_asker cr_stats_asker_of(const cr_peer *peer);

/* What Stats answers, /stats.json shows, and cured-client top draws. A few microseconds. */
void cr_stats_snapshot(cr_stats *stats, const cr_stats_asker *asker, cr_wire_stats *out);
/* The slowest calls of the last hour, the slowest first. */
void cr_stats_slow(cr_stats *stats, const cr_stats_asker *asker, cr_wire_slow_log *out);

/* What users hold: the asker's own first, then the oldest. Their number. */
uint32_t cr_stats_users(const cr_admission *admission, const cr_stats_asker *asker,
                        cr_wire_user users[CR_WIRE_MAX_USERS]);

/* Both, of everybody, as lines of the log. */
void cr_stats_dump(cr_stats *stats);

/* Everything in the text exposition format of Prometheus (text/plain; version=0.0.4): about 20 KiB, and never more than
 * CR_STATS_EXPOSE_BYTES. Well under 2 ms. Its length; 0: cap is too small. */
enum { CR_STATS_EXPOSE_BYTES = 256 * 1024 };
size_t cr_stats_expose(cr_stats *stats, char *out, size_t cap);

/* Within server/stats. */

/* Memory that is made once, or limited. */
enum { CR_POOLS = 2 };
typedef struct cr_pool {
    const char *name;
    uint64_t used, total;
} cr_pool;
void cr_stats_pools(const cr_stats *stats, cr_pool pools[CR_POOLS]);
/* "cpu", "cuda0": name. */
const char *cr_stats_lane_name(const cr_lanes *lanes, uint32_t lane, char *name, size_t cap);
/* Copies the counts, and lets slow calls go that are older than an hour, when that is due. */
void cr_stats_turn(cr_stats *stats, uint64_t now_ms);
/* What lines and lists say of a request. */
void cr_stats_describe(const cr_stats *stats, const cr_record *record, cr_wire_slow_call *out);
/* call_log.c: writes the request's line, if log_calls wants it and the log's limits let it. */
void cr_stats_log(cr_stats *stats, const cr_record *record);
void cr_stats_log_left_out(cr_timer *timer);
/* slow.c: the request is among the slowest. */
void cr_stats_keep_slow(cr_stats *stats, const cr_record *record);
void cr_stats_forget_slow(cr_stats *stats, uint64_t now_ms);
/* Those of others are among them, or not. */
void cr_stats_add_slow(cr_stats *to, cr_stats *others);

#endif
