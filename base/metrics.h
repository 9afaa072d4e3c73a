/* metrics: the daemon's counters and gauges (metrics.def), relaxed atomics that any thread may touch. What only the loop counts,
 * by label, is in server/stats.
 *
 * Thread: any. Owner: the process; there is one set. */
#ifndef CURED_BASE_METRICS_H
#define CURED_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum cr_metric {
#define CR_METRIC(name, kind, family, labels, unit, help) CR_M_##name,
#include "base/metrics.def"
#undef CR_METRIC
    CR_METRIC_COUNT,
} cr_metric;

/* A row of metrics.def. */
typedef struct cr_metric_row {
    const char *name;
    bool rises; /* a counter */
    const char *family, *labels;
    double unit;
    const char *help;
} cr_metric_row;

extern _Atomic uint64_t cr_metrics[CR_METRIC_COUNT];
extern const cr_metric_row cr_metric_rows[CR_METRIC_COUNT];

const char *cr_metric_name(cr_metric metric);

#define cr_metric_add_to(counts, name, amount) \
    ((void)atomic_fetch_add_explicit(&(counts)[CR_M_##name], (uint64_t)(amount), memory_order_relaxed))
#define cr_metric_add(name, amount) cr_metric_add_to(cr_metrics, name, amount)
#define cr_metric_sub(name, amount) \
    ((void)atomic_fetch_sub_explicit(&cr_metrics[CR_M_##name], (uint64_t)(amount), memory_order_relaxed))
/* The same in counts of one thread's, that nobody else adds to: a locked addition takes 5 ns, and a small call does several. */
#define cr_metric_own_add(counts, name, amount)                                                                    \
    atomic_store_explicit(&(counts)[CR_M_##name],                                                                  \
                          atomic_load_explicit(&(counts)[CR_M_##name], memory_order_relaxed) + (uint64_t)(amount), \
                          memory_order_relaxed)
#define cr_metric_get(name) atomic_load_explicit(&cr_metrics[CR_M_##name], memory_order_relaxed)

#endif
