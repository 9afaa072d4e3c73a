/* expose: the text exposition format of Prometheus: families of metrics.def, then those of family.def.
 *
 * Thread: the loop's. Owner: the caller's buffer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernels/core/dtype.h"
#include "proto/text.h"
#include "server/stats/process.h"
#include "server/stats/stats.h"

typedef struct out {
    cr_stats *stats;
    cr_text to;
    const char *family; /* being written */
} out;

#define put(o, ...) cr_text_put(&(o)->to, __VA_ARGS__)

static void head(out *o, const char *family, const char *type, const char *help) {
    o->family = family;
    put(o, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, type);
}

/* A sample without labels, or with one. */
static void whole(out *o, const char *label, const char *value, uint64_t number) {
    if (label)
        put(o, "%s{%s=\"%s\"} %" PRIu64 "\n", o->family, label, value, number);
    else
        put(o, "%s %" PRIu64 "\n", o->family, number);
}

static void decimal(out *o, const char *label, const char *value, double number) {
    if (label)
        put(o, "%s{%s=\"%s\"} %.9g\n", o->family, label, value, number);
    else
        put(o, "%s %.9g\n", o->family, number);
}

/* ---- histograms ---- */

/* Buckets at 1, 2.5 and 5 times the powers of ten from 10 us to 1 s, and at 10 s. */
static bool is_shown(uint32_t bucket) {
    const uint32_t step = bucket % CR_HISTOGRAM_STEPS, decade = bucket / CR_HISTOGRAM_STEPS;
    if (decade == 7) return step == 0;
    return decade >= 1 && decade < 6 ? step == 0 || step == 4 || step == 7 : decade == 6 && step == 0;
}

static void histogram(out *o, const char *label, const char *value, const cr_histogram *h) {
    uint64_t count = 0;
    char labels[64] = "";
    if (label) snprintf(labels, sizeof labels, "%s=\"%s\",", label, value);
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS - 1; i++) {
        count += h->counts[i];
        if (is_shown(i))
            put(o, "%s_bucket{%sle=\"%.9g\"} %" PRIu64 "\n", o->family, labels, (double)cr_histogram_bound(i) / 1e9,
                count);
    }
    count += h->counts[CR_HISTOGRAM_BUCKETS - 1];
    put(o, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", o->family, labels, count);
    if (label) snprintf(labels, sizeof labels, "{%s=\"%s\"}", label, value);
    put(o, "%s_sum%s %.9g\n%s_count%s %" PRIu64 "\n", o->family, labels, (double)h->sum_ns / 1e9, o->family, labels,
        count);
}

static void write_stages(out *o) {
    for (uint32_t i = 0; i < CR_STAGES; i++) histogram(o, "stage", cr_stage_names[i], &o->stats->now.stages[i]);
}

static void write_turns(out *o) { histogram(o, NULL, NULL, &o->stats->turns); }

/* ---- requests ---- */

/* Writes the requests that came at least once. Answered requests of reduce have a line from the start. */
static void write_requests(out *o) {
    for (uint32_t m = 0; m < CR_METHODS; m++)
        for (uint32_t i = 0; i < CR_GIVENS; i++)
            for (uint32_t c = 0; c < CR_STATS_STATUSES; c++) {
                const uint64_t n = o->stats->requests[m][i][c];
                if (!n && !(m == CR_METHOD_reduce && i != CR_GIVEN_none && c == CR_OK)) continue;
                put(o, "%s{method=\"%s\",source=\"%s\",code=\"%s\"} %" PRIu64 "\n", o->family, cr_method_names[m],
                    cr_given_names[i], cr_status_name((cr_status)c), n);
            }
}

static void write_ops(out *o) {
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
        whole(o, "op", cr_op_name(op), o->stats->ops[op]);
}

static void write_input_bytes(out *o) {
    for (uint32_t i = CR_DTYPE_NONE + 1; i <= CR_DTYPE_INPUTS; i++)
        if (cr_dtype_is_input((cr_dtype)i)) whole(o, "dtype", cr_dtype_name((cr_dtype)i), o->stats->input_bytes[i]);
}

static void write_rejected(out *o) {
    for (uint32_t i = 0; i < CR_REASONS; i++) whole(o, "reason", cr_reason_names[i], o->stats->rejected[i]);
}

/* ---- what is held ---- */

static void write_connections(out *o) {
    for (uint32_t i = 0; i < CR_SPOKENS; i++) whole(o, "front", cr_spoken_names[i], o->stats->connections[i]);
}

static void write_loop_connections(out *o) {
    const cr_stats_sources *s = &o->stats->sources;
    uint64_t home = 0;
    char loop[16];
    for (uint32_t i = 0; i < CR_SPOKENS; i++) home += o->stats->connections[i];
    for (uint32_t i = 0; i < s->annexes; i++) home -= s->guests(s->gather_argument, i);
    for (uint32_t i = 0; i <= s->annexes; i++) {
        snprintf(loop, sizeof loop, "%u", i);
        whole(o, "loop", loop, i ? s->guests(s->gather_argument, i - 1) : home);
    }
}

static void write_pool_bytes(out *o) {
    cr_pool pools[CR_POOLS];
    cr_stats_pools(o->stats, pools);
    for (uint32_t i = 0; i < CR_POOLS; i++) {
        put(o, "%s{pool=\"%s\",state=\"used\"} %" PRIu64 "\n", o->family, pools[i].name, pools[i].used);
        put(o, "%s{pool=\"%s\",state=\"free\"} %" PRIu64 "\n", o->family, pools[i].name,
            pools[i].total > pools[i].used ? pools[i].total - pools[i].used : 0);
    }
}

static void write_regions(out *o) {
    for (uint32_t i = 0; i < CR_REGION_KINDS; i++) whole(o, "kind", cr_region_kind_names[i], o->stats->regions[i]);
}

static void write_region_bytes(out *o) {
    for (uint32_t i = 0; i < CR_REGION_KINDS; i++) whole(o, "kind", cr_region_kind_names[i], o->stats->region_bytes[i]);
}

/* ---- lanes ---- */

enum { LANE_NAME = CR_NAME_MAX_BYTES };

/* Calls write for each lane, or for each GPU, with its name. */
static void each_lane(out *o, bool gpus, void (*write)(out *o, const char *name, const cr_lane_info *info)) {
    const cr_lanes *lanes = o->stats->sources.lanes;
    for (uint32_t i = gpus; lanes && i < lanes->count; i++) {
        char name[LANE_NAME];
        const cr_lane_info info = lanes->types[i]->info(lanes->lanes[i]);
        write(o, cr_stats_lane_name(lanes, i, name, sizeof name), &info);
    }
}

static void lane_bytes(out *o, const char *name, const cr_lane_info *info) { whole(o, "lane", name, info->bytes); }
static void lane_launches(out *o, const char *name, const cr_lane_info *info) {
    whole(o, "lane", name, info->launches);
}
static void lane_busy(out *o, const char *name, const cr_lane_info *info) {
    decimal(o, "lane", name, (double)info->busy_ns / 1e9);
}
static void lane_workers(out *o, const char *name, const cr_lane_info *info) { whole(o, "lane", name, info->workers); }
static void gpu_healthy(out *o, const char *name, const cr_lane_info *info) { whole(o, "gpu", name, !info->lost); }

static void gpu_errors(out *o, const char *name, const cr_lane_info *info) {
    for (uint32_t i = 0; i < CR_GPU_ERRORS; i++)
        put(o, "%s{gpu=\"%s\",kind=\"%s\"} %" PRIu64 "\n", o->family, name, cr_gpu_error_names[i], info->errors[i]);
}

static void write_lane_bytes(out *o) { each_lane(o, false, lane_bytes); }
static void write_lane_launches(out *o) { each_lane(o, false, lane_launches); }
static void write_lane_busy(out *o) { each_lane(o, false, lane_busy); }
static void write_lane_workers(out *o) { each_lane(o, false, lane_workers); }
static void write_gpu_healthy(out *o) { each_lane(o, true, gpu_healthy); }
static void write_gpu_errors(out *o) { each_lane(o, true, gpu_errors); }

/* Calls write for each GPU with what NVML said of it last. */
static void each_gpu(out *o, void (*write)(out *o, const char *name, const cr_nvml_reading *r)) {
    const cr_lanes *lanes = o->stats->sources.lanes;
    for (uint32_t i = 1; lanes && lanes->nvml && i < lanes->count; i++) {
        char name[LANE_NAME];
        const cr_nvml_reading r = cr_nvml_read(lanes->nvml, i - 1);
        write(o, cr_stats_lane_name(lanes, i, name, sizeof name), &r);
    }
}

static void gpu_memory(out *o, const char *name, const cr_nvml_reading *r) {
    const uint64_t free = r->memory_bytes - r->memory_used;
    if (!r->has_memory) return;
    put(o, "%s{gpu=\"%s\",state=\"used\"} %" PRIu64 "\n", o->family, name, r->memory_used);
    put(o, "%s{gpu=\"%s\",state=\"free\"} %" PRIu64 "\n", o->family, name, free);
}
static void gpu_temperature(out *o, const char *name, const cr_nvml_reading *r) {
    if (r->has_temperature) whole(o, "gpu", name, r->temperature_c);
}
static void gpu_utilization(out *o, const char *name, const cr_nvml_reading *r) {
    if (r->has_utilization) decimal(o, "gpu", name, r->utilization_percent / 100.0);
}

static void write_gpu_memory(out *o) { each_gpu(o, gpu_memory); }
static void write_gpu_temperature(out *o) { each_gpu(o, gpu_temperature); }
static void write_gpu_utilization(out *o) { each_gpu(o, gpu_utilization); }

/* ---- the daemon and its process ---- */

static void write_uptime(out *o) { decimal(o, NULL, NULL, (double)(cr_now_ms() - o->stats->started_ms) / 1e3); }

static void write_build_info(out *o) {
    const cr_stats_sources *s = &o->stats->sources;
    put(o, "%s{version=\"%s\",backend=\"%s\"} 1\n", o->family, s->version ? s->version : "",
        s->lanes && s->lanes->backend ? s->lanes->backend : "");
}

static void write_process_cpu(out *o) { decimal(o, NULL, NULL, cr_process_cpu_s()); }
static void write_process_start(out *o) { put(o, "%s %.3f\n", o->family, o->stats->started_s); }
static void write_process_resident(out *o) { whole(o, NULL, NULL, cr_process_memory().resident); }
static void write_process_virtual(out *o) { whole(o, NULL, NULL, cr_process_memory().virtual); }
static void write_process_open_fds(out *o) {
    const uint64_t open = cr_process_open_files(cr_metric_get(connections));
    if (open) whole(o, NULL, NULL, open);
}
static void write_process_max_fds(out *o) { whole(o, NULL, NULL, cr_process_most_files()); }

/* ---- all of it ---- */

static void write_metrics(out *o) {
    for (uint32_t i = 0; i < CR_METRIC_COUNT; i++) {
        const cr_metric_row *row = &cr_metric_rows[i];
        const uint64_t number = atomic_load_explicit(&cr_metrics[i], memory_order_relaxed);
        if (!row->family[0]) continue;
        if (!o->family || strcmp(o->family, row->family) != 0)
            head(o, row->family, row->rises ? "counter" : "gauge", row->help);
        if (row->labels[0])
            put(o, "%s{%s} ", row->family, row->labels);
        else
            put(o, "%s ", row->family);
        if (row->unit == 1)
            put(o, "%" PRIu64 "\n", number);
        else
            put(o, "%.9g\n", (double)number * row->unit);
    }
}

size_t cr_stats_expose(cr_stats *stats, char *to, size_t cap) {
    static const struct {
        void (*write)(out *o);
        const char *name, *type, *help;
    } families[] = {
#define CR_FAMILY(function, name, type, help) {write_##function, name, #type, help},
#include "server/stats/family.def"
#undef CR_FAMILY
    };
    out o = {.stats = stats, .to = {.at = to, .cap = cap}};
    cr_stats_gather(stats);
    write_metrics(&o);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        head(&o, families[i].name, families[i].type, families[i].help);
        families[i].write(&o);
    }
    return o.to.full ? 0 : o.to.used;
}
