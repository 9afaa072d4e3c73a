/* metrics: the daemon's counters and gauges (metrics.def), relaxed atomics that any thread may touch.
 *
 * Thread: any. Owner: the process; there is one set. */
#ifndef CURED_SERVER_BASE_METRICS_H
#define CURED_SERVER_BASE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum cr_metric {
#define CR_METRIC(name, help) CR_M_##name,
#include "server/base/metrics.def"
#undef CR_METRIC
    CR_METRIC_COUNT,
} cr_metric;

extern _Atomic uint64_t cr_metrics[CR_METRIC_COUNT];

const char *cr_metric_name(cr_metric metric);

#define cr_metric_add(name, amount) \
    ((void)atomic_fetch_add_explicit(&cr_metrics[CR_M_##name], (uint64_t)(amount), memory_order_relaxed))
#define cr_metric_sub(name, amount) \
    ((void)atomic_fetch_sub_explicit(&cr_metrics[CR_M_##name], (uint64_t)(amount), memory_order_relaxed))

#endif
