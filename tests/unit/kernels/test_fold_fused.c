/* fold_fused: families folded together leave the same state, to the last bit, as each folded alone, on every instruction
 * set, over runs of blocks that the windows take, just miss, or leave to the separate folds.
 *
 * Thread: main. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/big.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 40000, ARRAYS = 200 };

static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static uint64_t below(uint64_t n) { return (draw() >> 8) % n; }

/* A float type's shape. */
struct shape {
    cr_dtype dtype;
    unsigned mantissa, top; /* bits of the significand; the exponent field of infinities */
};
static const struct shape shapes[] = {{CR_F32, 23, 255}, {CR_F64, 52, 2047}, {CR_F16, 10, 31}, {CR_BF16, 7, 255}};

static uint64_t number(const struct shape *s, uint64_t sign, uint64_t field, uint64_t digits) {
    uint64_t fraction = ((uint64_t)1 << s->mantissa) - 1;
    return sign << (8 * cr_dtype_size(s->dtype) - 1) | field << s->mantissa | (digits & fraction);
}

/* How the elements of a run are drawn: about which exponent, how far below it, with what signs, and what is strewn in. */
struct manner {
    uint64_t high, window, digits;
    unsigned signs; /* 0: none, 1: all, 2: both */
    unsigned zeros, specials;
    bool steady; /* as much as the exponent allows, but for a few at the window's other end */
};

static struct manner draw_manner(const struct shape *s) {
    static const uint64_t narrow[] = {0,  1,  5,  18, 19, 20, 21, 22, 23, 24, 25,  26,
                                      27, 28, 29, 31, 32, 33, 34, 35, 36, 60, 2000};
    static const uint64_t wide[] = {0, 1, 5, 17, 18, 19, 20, 21, 22, 23, 24, 39, 40, 41, 42, 43, 44, 45, 60, 2000};
    /* In the middle; the lowest; the highest; and for f64 where products stop being exact as pairs. */
    const uint64_t ends[] = {s->top / 2,
                             s->top / 2 + 20,
                             below(3),
                             s->top - 1 - below(3),
                             s->top / 2 - s->top * 21 / 100,
                             s->top / 2 + s->top * 21 / 100,
                             s->top / 2 - 430 % s->top,
                             below(s->top)};
    struct manner m = {.high = ends[below(8)] % s->top,
                       .window = s->mantissa == 52 ? wide[below(sizeof wide / sizeof wide[0])]
                                                   : narrow[below(sizeof narrow / sizeof narrow[0])],
                       .digits = below(3) == 0 ? 0
                                 : below(2)    ? UINT64_MAX
                                               : 1,
                       .signs = (unsigned)below(3)};
    m.steady = below(3) == 0;
    if (m.steady && below(2)) m.digits = UINT64_MAX;
    if (below(3) == 0) m.zeros = (unsigned)below(4);
    if (below(6) == 0) m.specials = (unsigned)below(3);
    return m;
}

static uint64_t element(const struct shape *s, const struct manner *m) {
    uint64_t sign = m->signs == 2 ? below(2) : m->signs, r = draw() % 1000;
    if (m->zeros != 0 && (m->zeros == 3 || r < m->zeros * m->zeros * 100)) return number(s, sign, 0, 0);
    if (m->specials != 0 && r < m->specials) return number(s, sign, s->top, below(2) ? draw() : 0);
    uint64_t down = below(4) ? below(3) : m->window, digits = draw() & m->digits;
    if (m->steady) down = r % 50 ? 0 : m->window;
    if (m->steady && down == 0) digits = m->digits;
    return number(s, sign, m->high > down ? m->high - down : 0, digits);
}

static size_t draw_array(const struct shape *s, uint8_t *to) {
    size_t size = cr_dtype_size(s->dtype), n = 1 + (size_t)below(LONGEST), run = 0;
    struct manner m = {0};
    for (size_t i = 0; i < n; i++) {
        if (run-- == 0) {
            struct manner next = draw_manner(s);
            /* Most often a little above or below what came before: just inside or outside the window that it left. */
            if (i > 0 && below(3)) next.high = (m.high + below(12) + s->top - 6) % s->top;
            m = next;
            run = (size_t)(below(2) ? below(300) : 4096 + below(9000));
        }
        uint64_t bits = element(s, &m);
        memcpy(to + i * size, &bits, size);
    }
    return n;
}

static void check_limbs(const int64_t *a, const int64_t *b, unsigned limbs) {
    cr_big x, y;
    bool x_negative = cr_big_from_limbs(&x, a, limbs), y_negative = cr_big_from_limbs(&y, b, limbs);
    ck_assert_int_eq(x_negative, y_negative);
    ck_assert_int_eq(cr_big_compare(&x, &y), 0);
}

static void check_specials(const cr_specials *a, const cr_specials *b) {
    ck_assert_uint_eq(a->nans, b->nans);
    ck_assert_uint_eq(a->pinfs, b->pinfs);
    ck_assert_uint_eq(a->ninfs, b->ninfs);
}

/* What one family holds in both. */
static void check_family(const cr_partial *a, const cr_partial *b, uint32_t family, cr_dtype dtype) {
    ck_assert_uint_eq(a->n, b->n);
    if (family & CR_FAM_SUMS) {
        const cr_sum_at at = cr_sum_of(family);
        check_limbs(a->sums[at].limbs, b->sums[at].limbs, cr_sum_limbs(at, dtype));
        check_specials(&a->sums[at].special, &b->sums[at].special);
        return;
    }
    switch (family) {
        case CR_FAM_EXTREMA:
            ck_assert_uint_eq(a->first_nan, b->first_nan);
            ck_assert_uint_eq(a->min.index, b->min.index);
            ck_assert_uint_eq(a->max.index, b->max.index);
            if (a->min.index == UINT64_MAX) break;
            ck_assert_uint_eq(a->min.key, b->min.key);
            ck_assert_uint_eq(a->max.key, b->max.key);
            break;
        default:
            ck_assert_uint_eq(a->nans, b->nans);
            ck_assert_uint_eq(a->nonzero, b->nonzero);
            break;
    }
}

/* Folds [0, n) as two pieces, the later first. */
static void fold_both(cr_partial *p, cr_dtype dtype, uint32_t families, const uint8_t *x, size_t n, size_t cut,
                      uint64_t base) {
    cr_partial_init(p, dtype, families);
    cr_cpu_fold(p, x + cut * cr_dtype_size(dtype), n - cut, base + cut);
    cr_cpu_fold(p, x, cut, base);
}

/* The extrema and counts one element after the other, for check_family. */
static void count_singly(cr_partial *p, const struct shape *s, const uint8_t *x, size_t n, uint64_t base) {
    const unsigned width = 8 * (unsigned)cr_dtype_size(s->dtype);
    const uint64_t top = (uint64_t)1 << (width - 1), infinity = number(s, 0, s->top, 0);
    cr_partial_init(p, s->dtype, CR_FAM_EXTREMA | CR_FAM_COUNTS);
    p->n = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, x + i * (width / 8), width / 8);
        uint64_t magnitude = bits & (top - 1), key = bits & top ? (top - 1) - magnitude : top | bits;
        p->nonzero += magnitude != 0;
        if (magnitude > infinity) {
            p->nans++;
            if (p->first_nan == UINT64_MAX) p->first_nan = base + i;
            continue;
        }
        if (p->min.index == UINT64_MAX || key < p->min.key) p->min = (cr_extremum){key, base + i};
        if (p->max.index == UINT64_MAX || key > p->max.key) p->max = (cr_extremum){key, base + i};
    }
}

START_TEST(together_as_alone) {
    static const uint32_t families[] = {CR_FAM_SUM, CR_FAM_SUMABS, CR_FAM_SUMSQ, CR_FAM_EXTREMA, CR_FAM_COUNTS};
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    enum { FAMILIES = sizeof families / sizeof families[0] };
    const struct shape *shape = &shapes[_i];
    uint8_t *memory = malloc(64 + LONGEST * 8);
    ck_assert_ptr_nonnull(memory);
    for (int turn = 0; turn < ARRAYS; turn++) {
        uint8_t *x = memory + below(64);
        size_t n = draw_array(shape, x), cut = (size_t)below(n + 1);
        uint64_t base = below(2) ? 0 : ((uint64_t)1 << 63) - n; /* the last index is 2^63 − 1 */
        cr_partial alone[FAMILIES], together, singly;
        count_singly(&singly, shape, x, n, base);
        cr_cpu_select("portable", NULL);
        for (int i = 0; i < FAMILIES; i++) fold_both(&alone[i], shape->dtype, families[i], x, n, cut, base);
        for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
            if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
            for (int i = 0; i < FAMILIES; i++) {
                fold_both(&together, shape->dtype, families[i], x, n, cut, base);
                check_family(&together, &alone[i], families[i], shape->dtype);
                if (families[i] & (CR_FAM_EXTREMA | CR_FAM_COUNTS))
                    check_family(&together, &singly, families[i], shape->dtype);
            }
            for (uint32_t set = 1; set < 1 << FAMILIES; set++) {
                uint32_t mask = 0;
                if (set % 4 != (uint32_t)turn % 4) continue; /* each set with a quarter of the arrays */
                for (int i = 0; i < FAMILIES; i++) mask |= set >> i & 1 ? families[i] : 0;
                fold_both(&together, shape->dtype, mask, x, n, cut, base);
                for (int i = 0; i < FAMILIES; i++) {
                    if (mask & families[i]) check_family(&together, &alone[i], families[i], shape->dtype);
                }
            }
        }
    }
    cr_cpu_select(NULL, NULL);
    free(memory);
}
END_TEST

/* Integers: every set of families, over values of the whole range, few values, and the ends of the range. */
START_TEST(integers_together_as_alone) {
    static const uint32_t families[] = {CR_FAM_SUM, CR_FAM_SUMABS, CR_FAM_SUMSQ, CR_FAM_EXTREMA, CR_FAM_COUNTS};
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    enum { FAMILIES = sizeof families / sizeof families[0] };
    const cr_dtype dtype = (cr_dtype)_i;
    const size_t size = cr_dtype_size(dtype);
    uint8_t *memory = malloc(64 + LONGEST * 8);
    ck_assert_ptr_nonnull(memory);
    for (int turn = 0; turn < 6; turn++) {
        const uint8_t masks[] = {0xff, 0x81, 0x80, 0x01, 0x00, 0x0f};
        uint8_t *x = memory + below(64);
        size_t n = 1 + (size_t)below(LONGEST), cut = (size_t)below(n + 1);
        for (size_t i = 0; i < n * size; i++) x[i] = (uint8_t)draw() & masks[turn];
        if (turn == 2) memset(x, 0xff, n * size / 2);
        cr_partial alone[FAMILIES], together;
        cr_cpu_select("portable", NULL);
        for (int i = 0; i < FAMILIES; i++) fold_both(&alone[i], dtype, families[i], x, n, cut, 7);
        for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
            if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
            for (uint32_t set = 1; set < 1 << FAMILIES; set++) {
                uint32_t mask = 0;
                for (int i = 0; i < FAMILIES; i++) mask |= set >> i & 1 ? families[i] : 0;
                fold_both(&together, dtype, mask, x, n, cut, 7);
                for (int i = 0; i < FAMILIES; i++) {
                    if (mask & families[i]) check_family(&together, &alone[i], families[i], dtype);
                }
            }
        }
    }
    cr_cpu_select(NULL, NULL);
    free(memory);
}
END_TEST

/* The sum of n squares or values of m·2^e: exactly m·n·2^e, or m²·n·2^2e, on the grid given. */
static void check_multiple(const int64_t *limb, unsigned limbs, uint64_t m, int e, uint64_t n, bool square, int grid) {
    cr_big expected, by, got;
    cr_big_set(&expected, m);
    if (square) {
        cr_big_set(&by, m);
        cr_big copy = expected;
        cr_big_multiply(&expected, &copy, &by);
    }
    cr_big_set(&by, n);
    cr_big copy = expected;
    cr_big_multiply(&expected, &copy, &by);
    cr_big_shift_left(&expected, (unsigned)((square ? 2 * e : e) - grid));
    ck_assert(!cr_big_from_limbs(&got, limb, limbs));
    ck_assert_int_eq(cr_big_compare(&got, &expected), 0);
}

/* More additions than a lane holds between two flushes, of the largest that the window takes: one block of 1/4, by which
 * the window is chosen, and then nothing but the largest. */
START_TEST(long_runs_at_the_top_of_the_window) {
    enum { N = 1 << 20 };
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    double *wide = malloc(N * sizeof *wide);
    float *narrow = malloc(N * sizeof *narrow);
    const uint64_t m32 = ((uint64_t)1 << 24) - 1, m64 = ((uint64_t)1 << 53) - (1 << 20);
    for (size_t i = 0; i < N; i++) {
        narrow[i] = (float)m32 * (i < 4096 ? 1 : 4);
        wide[i] = (double)m64 * (i < 2048 ? 1 : 4);
    }
    for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        cr_partial p;
        cr_partial_init(&p, CR_F32, CR_FAM_SUM | CR_FAM_SUMSQ);
        cr_cpu_fold(&p, narrow, N, 0);
        check_multiple(p.sums[CR_AT_SUM].limbs, cr_sum_limbs(CR_AT_SUM, CR_F32), m32, 0, 4096 + (N - 4096) * 4ull,
                       false, cr_sum_grid(CR_AT_SUM, CR_F32));
        check_multiple(p.sums[CR_AT_SUMSQ].limbs, cr_sum_limbs(CR_AT_SUMSQ, CR_F32), m32, 0, 4096 + (N - 4096) * 16ull,
                       true, cr_sum_grid(CR_AT_SUMSQ, CR_F32));
        cr_partial_init(&p, CR_F64, CR_FAM_SUM | CR_FAM_SUMSQ);
        cr_cpu_fold(&p, wide, N, 0);
        check_multiple(p.sums[CR_AT_SUM].limbs, cr_sum_limbs(CR_AT_SUM, CR_F64), m64, 0, 2048 + (N - 2048) * 4ull,
                       false, cr_sum_grid(CR_AT_SUM, CR_F64));
        check_multiple(p.sums[CR_AT_SUMSQ].limbs, cr_sum_limbs(CR_AT_SUMSQ, CR_F64), m64, 0, 2048 + (N - 2048) * 16ull,
                       true, cr_sum_grid(CR_AT_SUMSQ, CR_F64));
    }
    cr_cpu_select(NULL, NULL);
    free(wide);
    free(narrow);
}
END_TEST

/* Squares of bfloat16 whose rests are nearly half a unit, all of one sign, beside ones of a few low bits: the lanes that add up
 * rests are as full as they can be. Held against elements folded one by one. */
START_TEST(rests_of_squares_fill_their_lanes) {
    enum { N = 8192, HIGH = 150 };
    static uint16_t x[N];
    for (int high = HIGH; high < HIGH + 2; high++) {
        for (int down = 26; down <= 40; down++) {
            for (int near = 17; near <= 23; near++) {
                for (int i = 0; i < N; i++) x[i] = (uint16_t)((high - near) << 7 | 0x7f);
                x[5] = (uint16_t)(high << 7 | 0x7f);
                for (int i = 100; i < 108; i += 3) x[i] = (uint16_t)((high - down) << 7 | 1);
                cr_partial expected, p;
                cr_partial_init(&expected, CR_BF16, CR_FAM_SUMSQ);
                for (int i = 0; i < 200; i++) cr_cpu_fold(&expected, x + i, 1, (uint64_t)i);
                cr_partial_init(&p, CR_BF16, CR_FAM_SUMSQ);
                cr_cpu_fold(&p, x + 200, 1, 200);
                for (int twice = 200; twice < N; twice++) cr_partial_merge(&expected, &p);
                cr_partial_init(&p, CR_BF16, CR_FAM_SUMSQ);
                cr_cpu_fold(&p, x, N, 0);
                check_limbs(p.sums[CR_AT_SUMSQ].limbs, expected.sums[CR_AT_SUMSQ].limbs,
                            cr_sum_limbs(CR_AT_SUMSQ, CR_BF16));
            }
        }
    }
}
END_TEST

CR_CHECK_MAIN("kernels/fold_fused") {
    tcase_add_loop_test(tc, together_as_alone, 0, sizeof shapes / sizeof shapes[0]);
    tcase_add_loop_test(tc, integers_together_as_alone, CR_BOOL, CR_I64 + 1);
    tcase_add_test(tc, rests_of_squares_fill_their_lanes);
    tcase_add_test(tc, long_runs_at_the_top_of_the_window);
}
