/* histogram: buckets and percentiles. Thread: the loop's. Owner: see histogram.h. */
#include "server/stats/histogram.h"

#include <string.h>

/* The steps of a power of ten, in ns. */
#define DECADE(ns) (ns), (ns)*5 / 4, (ns)*3 / 2, (ns)*2, (ns)*5 / 2, (ns)*3, (ns)*4, (ns)*5, (ns)*6, (ns)*8
static const uint64_t bounds[CR_HISTOGRAM_BUCKETS] = {
    DECADE(1000ull),      DECADE(10000ull),      DECADE(100000ull),      DECADE(1000000ull), DECADE(10000000ull),
    DECADE(100000000ull), DECADE(1000000000ull), DECADE(10000000000ull), UINT64_MAX};

uint64_t cr_histogram_bound(uint32_t bucket) { return bounds[bucket]; }

/* Where to begin, by the highest bit of a time and the two below it: the exponent and the fraction of a double. */
enum { KEYS = 64 * 4, ZERO_EXPONENT = 1023, KEY_SHIFT = 50 };
static uint8_t begins[KEYS];

/* ns: up to INT64_MAX, because conversions of signed numbers are one instruction. Above 2^53 it is rounded, far behind the last
 * bound but one. */
static inline uint32_t key_of(uint64_t ns) {
    const double number = (double)(int64_t)(ns | 1);
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint32_t)(bits >> KEY_SHIFT) - ZERO_EXPONENT * 4;
}

static void __attribute__((constructor)) fill_begins(void) {
    for (uint32_t key = 2 * 4; key < KEYS; key++) {
        const uint64_t least = (uint64_t)(4 + key % 4) << (key / 4 - 2);
        while (least > bounds[begins[key]]) begins[key]++;
    }
}

static inline void add(cr_histogram *h, uint64_t ns) {
    uint32_t at = begins[key_of(ns)];
    while (ns > bounds[at]) at++; /* the last bound is above every time */
    h->sum_ns += ns;
    h->counts[at]++;
}

void cr_histogram_add(cr_histogram *h, uint64_t ns) { add(h, ns < INT64_MAX ? ns : INT64_MAX); }

void cr_histogram_add_all(cr_histogram *h, const uint32_t *ns, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) add(h, ns[i]);
}

uint64_t cr_histogram_count(const cr_histogram *h) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS; i++) count += h->counts[i];
    return count;
}

void cr_histogram_since(const cr_histogram *now, const cr_histogram *before, cr_histogram *to) {
    to->sum_ns = now->sum_ns - before->sum_ns;
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS; i++) to->counts[i] = now->counts[i] - before->counts[i];
}

uint64_t cr_histogram_part(const cr_histogram *h, uint32_t part) {
    const double wanted = (double)cr_histogram_count(h) * part / 1000;
    double below = 0;
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS; i++) {
        const double here = (double)h->counts[i];
        if (here == 0 || below + here < wanted) {
            below += here;
            continue;
        }
        const double low = i ? (double)cr_histogram_bound(i - 1) : 0;
        if (i == CR_HISTOGRAM_BUCKETS - 1) return (uint64_t)low;
        return (uint64_t)(low + ((double)cr_histogram_bound(i) - low) * (wanted - below) / here);
    }
    return 0;
}

void cr_histogram_take(cr_histogram *to, cr_histogram *from) {
    to->sum_ns += from->sum_ns;
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS; i++) to->counts[i] += from->counts[i];
    *from = (cr_histogram){0};
}
