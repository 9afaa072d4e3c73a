/* wire_stats: StatsResponse and SlowLogResponse of cured.proto as plain structs, and both as JSON.
 *
 * The daemon fills them (server/stats), and its admin page and cured-client show them.
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#ifndef CURED_PROTO_WIRE_STATS_H
#define CURED_PROTO_WIRE_STATS_H

#include "proto/wire.h"

enum {
    CR_WIRE_MAX_REQUESTS = 128, /* rows of method, source and code; more are not told */
    CR_WIRE_MAX_STAGES = 8,
    CR_WIRE_MAX_NAMED = 32, /* ops, dtypes, reasons, fronts */
    CR_WIRE_MAX_POOLS = 8,
    CR_WIRE_MAX_SLOW = 32,
    CR_WIRE_WORD_BYTES = 24, /* names that the daemon chooses */
};

typedef char cr_wire_word[CR_WIRE_WORD_BYTES];

typedef struct cr_wire_requests {
    cr_wire_word method, source;
    uint32_t code; /* gRPC's */
    uint64_t count;
} cr_wire_requests;

/* In the window. */
typedef struct cr_wire_stage {
    cr_wire_word name;
    uint64_t count, sum_ns, p50_ns, p90_ns, p99_ns;
} cr_wire_stage;

typedef struct cr_wire_named {
    cr_wire_word name;
    uint64_t value;
} cr_wire_named;

typedef struct cr_wire_names {
    uint32_t count;
    cr_wire_named items[CR_WIRE_MAX_NAMED];
} cr_wire_names;

typedef struct cr_wire_lane_stats {
    char name[CR_NAME_MAX_BYTES + 1], device[CR_NAME_MAX_BYTES + 1]; /* "cpu", "cuda0" */
    uint32_t workers;
    bool lost;
    uint64_t bytes, launches, busy_ns;  /* since the start; busy of all workers together */
    uint64_t memory_used, memory_bytes; /* of a GPU; 0: not known */
    bool has_temperature, has_utilization;
    uint32_t temperature_c, utilization_percent;
    uint64_t errors;
} cr_wire_lane_stats;

typedef struct cr_wire_pool {
    cr_wire_word name;
    uint64_t used_bytes, total_bytes;
} cr_wire_pool;

typedef struct cr_wire_stats {
    char version[CR_NAME_MAX_BYTES + 1], backend[CR_NAME_MAX_BYTES + 1], backend_reason[CR_ERROR_TEXT];
    uint64_t uptime_ms;
    uint64_t in_flight, queue_depth;
    uint64_t requests_total, failed_total, bytes_total; /* since the start */
    uint64_t window_ms, window_requests, window_failed, window_bytes;
    uint32_t request_count, stage_count, lane_count, pool_count, user_count;
    cr_wire_requests requests[CR_WIRE_MAX_REQUESTS];
    cr_wire_stage stages[CR_WIRE_MAX_STAGES];
    cr_wire_names ops, dtypes, rejected, connections;
    cr_wire_lane_stats lanes[CR_WIRE_MAX_LANES];
    cr_wire_pool pools[CR_WIRE_MAX_POOLS];
    cr_wire_user users[CR_WIRE_MAX_USERS];
} cr_wire_stats;

typedef struct cr_wire_slow_call {
    uint64_t age_ms;     /* since its end */
    uint64_t connection; /* its number */
    bool has_uid;
    uint32_t uid, pid;
    char client[CR_NAME_MAX_BYTES + 1]; /* the name it gave itself, printable */
    char user[CR_NAME_MAX_BYTES + 1];   /* "uid 1000", "tcp 192.0.2.1" */
    cr_wire_word front, transport, method, source, dtype;
    char ops[64];   /* "sum,mean", cut to fit */
    char lanes[64]; /* "cpu,cuda0" */
    uint32_t code;
    uint64_t bytes;
    uint64_t receive_ns, queue_ns, run_ns, send_ns, total_ns; /* 0: it had no such stage */
} cr_wire_slow_call;

typedef struct cr_wire_slow_log {
    uint32_t count;
    cr_wire_slow_call calls[CR_WIRE_MAX_SLOW]; /* the slowest first */
} cr_wire_slow_log;

size_t cr_wire_pack_stats(const cr_wire_stats *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_stats(const uint8_t *in, size_t len, cr_wire_stats *m, cr_error *error);
size_t cr_wire_pack_slow_log(const cr_wire_slow_log *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_slow_log(const uint8_t *in, size_t len, cr_wire_slow_log *m, cr_error *error);

/* One JSON object without line breaks, NUL-terminated: what /stats.json and `cured-client stats --json` give. log NULL: without
 * "slow". 64-bit numbers are numbers. Its length; 0: it does not fit. CR_WIRE_JSON_BYTES is enough. */
enum { CR_WIRE_JSON_BYTES = 128 * 1024 };
size_t cr_wire_slow_json(const cr_wire_slow_log *log, char *out, size_t cap);   /* {"slow":[…]} */
size_t cr_wire_settings_json(const cr_wire_settings *m, char *out, size_t cap); /* {"config":[…]} */
size_t cr_wire_stats_json(const cr_wire_stats *m, const cr_wire_slow_log *log, char *out, size_t cap);

#endif
