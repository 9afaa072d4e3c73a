/* metrics: storage and names of the counters. Thread: any. Owner: the process. */
#include "base/metrics.h"

_Atomic uint64_t cr_metrics[CR_METRIC_COUNT];

enum { GAUGE = false, COUNTER = true };

const cr_metric_row cr_metric_rows[CR_METRIC_COUNT] = {
#define CR_METRIC(name, kind, family, labels, unit, help) {#name, kind, family, labels, unit, help},
#include "base/metrics.def"
#undef CR_METRIC
};

const char *cr_metric_name(cr_metric metric) {
    return metric < CR_METRIC_COUNT ? cr_metric_rows[metric].name : "unknown";
}
