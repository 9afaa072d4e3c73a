/* sum_driver: sums the cases that sum_property.py writes to its standard input, by cured_sum.c, and prints what came out.
 *
 * A case is cut over ranks at random; a rank adds its elements in pieces, by threads' sums that are merged, and with a stride; packs are
 * added in any order, and renormalised or not. It goes so on every instruction set that this machine has, in every rounding mode, with and
 * without denormals taken for zero. libcured sums the whole array (cured_reduce_here). The first answer is printed; another's only where
 * it differs. Arrays end where their allocation ends, so that a sanitizer sees every access beyond them.
 *
 * Thread: one. Owner: this file. */
#include <fenv.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "cured/cured.h"
#include "tests/property/cases.h"
#include "tests/property/sum_ways.h"

enum { MAGIC = 0x6d757363, MAX_RANKS = 9, MAX_STRIDE = 4 };

/* As sum_property.py packs it. */
typedef struct header {
    uint32_t magic, op, type, unused;
    uint64_t n, order;
} header;

/* An array whose elements lie stride apart, the first at `first`. */
typedef struct lying {
    uint8_t *memory;
    const uint8_t *first;
    int64_t stride;
} lying;

const sum_ways sum_ways_2 = SUM_WAYS;
static const sum_ways *const all_ways[] = {&sum_ways_2, &sum_ways_1, &sum_ways_0};

static lying lay(const uint8_t *raw, uint64_t n, size_t size) {
    lying a = {.stride = next_random(3) ? 1 : (int64_t)next_random(2 * MAX_STRIDE + 1) - MAX_STRIDE};
    if (a.stride == 0) a.stride = 1;
    const uint64_t apart = (uint64_t)(a.stride < 0 ? -a.stride : a.stride);
    const uint64_t bytes = n == 0 ? 0 : ((n - 1) * apart + 1) * size;
    a.memory = must(malloc(bytes + 1)); /* the end of the array is not that of the allocation by this byte alone */
    memset(a.memory, 0x7f, bytes);
    uint8_t *first = a.memory + (a.stride < 0 && n ? (n - 1) * apart * size : 0);
    for (uint64_t i = 0; i < n; i++) memcpy(first + (int64_t)(i * size) * a.stride, raw + i * size, size);
    a.first = first;
    return a;
}

static const void *at(const lying *a, uint64_t i, size_t size) { return a->first + (int64_t)(i * size) * a->stride; }

/* Round modes, and denormals taken for zero. */
static void spoil_floats(void) {
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    fesetround(modes[next_random(4)]);
#if defined(__x86_64__)
    if (next_random(2)) _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    if (next_random(2)) __asm__ volatile("msr fpcr, %0" : : "r"(state | 0x03000000)); /* FZ, DN */
#endif
}

static int add(const sum_ways *w, cured_sum *s, const header *h, const lying *x, const lying *y, uint64_t from,
               uint64_t n) {
    const size_t size = h->type == CURED_SUM_F64 ? 8 : 4;
    const void *p = at(x, from, size), *q = at(y, from, size);
    if (h->op == CURED_SUM_PRODUCTS && h->type == CURED_SUM_F64)
        return w->add_products_f64(s, n, p, x->stride, q, y->stride);
    if (h->op == CURED_SUM_PRODUCTS) return w->add_products_f32(s, n, p, x->stride, q, y->stride);
    return h->type == CURED_SUM_F64 ? w->add_f64(s, n, p, x->stride) : w->add_f32(s, n, p, x->stride);
}

/* One rank's pack. */
static void rank_pack(const sum_ways *w, const header *h, const lying *x, const lying *y, uint64_t from, uint64_t n,
                      int64_t *pack) {
    cured_sum own, other;
    const int op = (int)h->op, type = (int)h->type;
    int bad = w->begin(&own, op, type) | w->begin(&other, op, type);
    for (uint64_t done = 0; done < n;) {
        const uint64_t now = next_random(3) ? n - done : 1 + next_random(n - done);
        bad |= add(w, next_random(2) ? &own : &other, h, x, y, from + done, now);
        done += now;
    }
    bad |= w->merge(&own, &other) | w->pack(&own, pack);
    if (bad) printf("!a function failed\n");
}

static double by_ranks(const sum_ways *w, const header *h, const lying *x, const lying *y) {
    int64_t total[CURED_SUM_MOST_NUMBERS] = {0}, pack[CURED_SUM_MOST_NUMBERS];
    const size_t numbers = cured_sum_numbers((int)h->op, (int)h->type);
    const uint64_t ranks = 1 + next_random(MAX_RANKS);
    double value = 0;
    uint64_t from = 0;
    for (uint64_t rank = 0; rank < ranks; rank++) {
        const uint64_t left = h->n - from, now = rank + 1 == ranks ? left : next_random(left + 1);
        rank_pack(w, h, x, y, from, now, pack);
        for (size_t i = 0; i < numbers; i++) total[i] += pack[i];
        if (next_random(4) == 0 && w->renormalise((int)h->op, (int)h->type, total)) printf("!renormalise failed\n");
        from += now;
    }
    if ((uint64_t)total[0] != h->n) printf("!n is %lld\n", (long long)total[0]);
    if (w->finish((int)h->op, (int)h->type, total, &value)) printf("!finish failed\n");
    return value;
}

/* The whole array, by libcured. */
static uint64_t by_libcured(const header *h, const uint8_t *x, const uint8_t *y) {
    const cured_dtype dtype = h->type == CURED_SUM_F64 ? CURED_F64 : CURED_F32;
    const cured_second second = {y, h->n, dtype};
    const cured_op op = h->op == CURED_SUM_VALUES    ? CURED_OP_SUM
                        : h->op == CURED_SUM_SQUARES ? CURED_OP_SUMSQ
                                                     : CURED_OP_DOT;
    cured_options options = CURED_OPTIONS_INIT;
    cured_values *values = NULL;
    cured_error error;
    double value = 0;
    uint64_t bits;
    if (op == CURED_OP_DOT) options.second = &second;
    if (cured_reduce_here(dtype, &op, 1, x, h->n, &options, &values, &error) != CURED_OK)
        printf("!libcured: %s\n", error.text);
    else if (cured_value_double(cured_values_get(values, 0), &value) != CURED_OK)
        printf("!libcured's answer is no double\n");
    memcpy(&bits, &value, sizeof bits);
    cured_values_free(values);
    return bits;
}

static void run(const header *h, const uint8_t *raw, const uint8_t *other) {
    const size_t size = h->type == CURED_SUM_F64 ? 8 : 4;
    const uint64_t whole = by_libcured(h, raw, other);
    random_state = h->order | 1;
    const lying x = lay(raw, h->n, size), y = lay(other, h->n, size);
    printf("%016llx\n", (unsigned long long)whole);
    for (size_t i = 0; i < sizeof all_ways / sizeof all_ways[0]; i++) {
        uint64_t bits;
        if (i != 0 && strcmp(all_ways[i]->isa(), all_ways[i - 1]->isa()) == 0) continue;
        fenv_t before;
        fegetenv(&before);
        spoil_floats();
        const double value = by_ranks(all_ways[i], h, &x, &y);
        fesetenv(&before);
        memcpy(&bits, &value, sizeof bits);
        if (bits != whole) printf("!%s by ranks: %016llx\n", all_ways[i]->isa(), (unsigned long long)bits);
    }
    free(x.memory);
    free(y.memory);
}

int main(void) {
    header h;
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        const size_t size = h.type == CURED_SUM_F64 ? 8 : 4;
        if (h.magic != MAGIC || h.n > 1 << 24) return 2;
        uint8_t *raw = must(malloc(h.n * size + 1)), *other = must(malloc(h.n * size + 1));
        read_all(raw, h.n * size);
        read_all(other, h.n * size);
        run(&h, raw, other);
        printf(".\n");
        free(raw);
        free(other);
    }
    return 0;
}
