/* histogram: buckets and percentiles. Thread: the loop's. Owner: see histogram.h. */
#include "server/stats/histogram.h"

/* The steps of a power of ten, in ns. */
#define DECADE(ns) (ns), (ns)*5 / 4, (ns)*3 / 2, (ns)*2, (ns)*5 / 2, (ns)*3, (ns)*4, (ns)*5, (ns)*6, (ns)*8
static const uint64_t bounds[CR_HISTOGRAM_BUCKETS - 1] = {
    DECADE(1000ull),     DECADE(10000ull),     DECADE(100000ull),     DECADE(1000000ull),
    DECADE(10000000ull), DECADE(100000000ull), DECADE(1000000000ull), DECADE(10000000000ull)};

uint64_t cr_histogram_bound(uint32_t bucket) { return bucket < CR_HISTOGRAM_BUCKETS - 1 ? bounds[bucket] : UINT64_MAX; }

enum { KEYS = 64 * 4 };

/* Where to begin, by the highest bit of a time and the two below it. */
static uint8_t begins[KEYS];

static uint32_t key_of(uint64_t ns) {
    const uint32_t high = 63 - (uint32_t)__builtin_clzll(ns | 4);
    return high << 2 | (uint32_t)(ns >> (high - 2) & 3);
}

static void __attribute__((constructor)) fill_begins(void) {
    for (uint32_t key = 2 * 4; key < KEYS; key++) {
        const uint64_t least = (uint64_t)(4 + key % 4) << (key / 4 - 2);
        while (begins[key] < CR_HISTOGRAM_BUCKETS - 1 && least > bounds[begins[key]]) begins[key]++;
    }
}

void cr_histogram_add(cr_histogram *h, uint64_t ns) {
    uint32_t at = begins[key_of(ns)];
    while (at < CR_HISTOGRAM_BUCKETS - 1 && ns > bounds[at]) at++;
    h->sum_ns += ns;
    h->counts[at]++;
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
