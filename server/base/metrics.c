/* metrics: storage and names of the counters. Thread: any. Owner: the process. */
#include "server/base/metrics.h"

_Atomic uint64_t cr_metrics[CR_METRIC_COUNT];

const char *cr_metric_name(cr_metric metric) {
    static const char *const names[] = {
#define CR_METRIC(name, help) #name,
#include "server/base/metrics.def"
#undef CR_METRIC
    };
    return metric < CR_METRIC_COUNT ? names[metric] : "unknown";
}
