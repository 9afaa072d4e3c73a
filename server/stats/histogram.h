/* histogram: how long things took, counted by powers of ten in ten steps each, from 1 us to 80 s.
 *
 * Steps are 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten, so that a percentile is off by an eighth at most, and that
 * Prometheus' buckets (1, 2.5, 5) are sums of whole ones.
 * Thread: the loop's. Owner: whoever embeds it; all zero is an empty one. */
#ifndef CURED_SERVER_STATS_HISTOGRAM_H
#define CURED_SERVER_STATS_HISTOGRAM_H

#include <stdint.h>

enum {
    CR_HISTOGRAM_STEPS = 10,
    CR_HISTOGRAM_DECADES = 8,
    CR_HISTOGRAM_BUCKETS = CR_HISTOGRAM_STEPS * CR_HISTOGRAM_DECADES + 1
};

/* counts[i]: of what took at most cr_histogram_bound(i), and more than the bound before; the last has the rest. */
typedef struct cr_histogram {
    uint64_t sum_ns;
    uint64_t counts[CR_HISTOGRAM_BUCKETS];
} cr_histogram;

void cr_histogram_add(cr_histogram *histogram, uint64_t ns);
/* Many of them, in fewer instructions each. */
void cr_histogram_add_all(cr_histogram *histogram, const uint32_t *ns, uint32_t count);
/* What is in `from` comes to `to`. */
void cr_histogram_take(cr_histogram *to, cr_histogram *from);
/* In ns; UINT64_MAX of the last bucket. */
uint64_t cr_histogram_bound(uint32_t bucket);
uint64_t cr_histogram_count(const cr_histogram *histogram);
/* to = now - before, of two states of one histogram. */
void cr_histogram_since(const cr_histogram *now, const cr_histogram *before, cr_histogram *to);
/* What `part` of a thousand took at most, in ns, evened out within its bucket; 0 of an empty one. */
uint64_t cr_histogram_part(const cr_histogram *histogram, uint32_t part);

#endif
