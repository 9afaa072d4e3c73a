/* f8: sums of floats of one byte on every instruction set, beside sums that are made here element by element: of each of the 256 bytes
 * alone, and of blocks of which none, one or all hold what is not finite, with vectors that are not whole at their ends.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { BLOCK = 16384, LONGEST = 5 * BLOCK + 77 };

static const char *const sets[] = {"portable", "avx2", "avx512"};
static const cr_dtype dtypes[] = {CR_F8_E4M3, CR_F8_E5M2};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint8_t data[LONGEST];
static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* By the formats' definitions (OCP OFP8): no infinities in E4M3, whose NaN is one magnitude. */
static double value_of(cr_dtype dtype, uint8_t bits) {
    const int mantissa = dtype == CR_F8_E4M3 ? 3 : 2, bias = dtype == CR_F8_E4M3 ? 7 : 15;
    const int magnitude = bits & 0x7f, field = magnitude >> mantissa, fraction = magnitude & ((1 << mantissa) - 1);
    double value =
        field == 0 ? ldexp(fraction, 1 - bias - mantissa) : ldexp((1 << mantissa) + fraction, field - bias - mantissa);
    if (dtype == CR_F8_E4M3 ? magnitude == 0x7f : magnitude > 0x7c) value = NAN;
    if (dtype == CR_F8_E5M2 && magnitude == 0x7c) value = INFINITY;
    return bits & 0x80 ? -value : value;
}

static double answer(const cr_partial *p, cr_op op) {
    const cr_finish_opts opts = {.nan = CR_NAN_SKIP};
    cr_value value;
    double x;
    uint64_t count;
    cr_partial_finish(p, op, &opts, &value);
    ck_assert_msg(value.error.code == CR_OK && value.len == 8, "op %d: %s", (int)op, value.error.text);
    memcpy(&x, value.bytes, sizeof x);
    memcpy(&count, value.bytes, sizeof count);
    return value.dtype == CR_U64 ? (double)count : x;
}

/* Sums of the numbers are below 2^53 units of the types' grids, so that float64 holds them; those of squares have 128 bits. */
static void assert_sums(cr_dtype dtype, const uint8_t *p, size_t n, const char *what) {
    const int grid = dtype == CR_F8_E4M3 ? 9 : 16; /* its unit is 2^-grid */
    double sum = 0, magnitudes = 0, nans = 0, infinities = 0;
    __int128 squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = value_of(dtype, p[i]);
        nans += isnan(x) != 0;
        infinities += isinf(x) != 0;
        if (!isfinite(x)) continue;
        sum += x;
        magnitudes += fabs(x);
        squares += (__int128)ldexp(x, grid) * (__int128)ldexp(x, grid);
    }
    cr_partial partial;
    cr_partial_init(&partial, dtype, CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_COUNTS);
    cr_cpu_fold(&partial, p, n, 0);
    ck_assert_msg(answer(&partial, CR_OP_COUNT_NAN) == nans, "%s: count_nan of %zu", what, n);
    ck_assert_msg(answer(&partial, CR_OP_COUNT_INF) == infinities, "%s: count_inf of %zu", what, n);
    if (infinities != 0) return;
    ck_assert_msg(answer(&partial, CR_OP_SUM) == sum, "%s: sum of %zu", what, n);
    ck_assert_msg(answer(&partial, CR_OP_NORM1) == magnitudes, "%s: norm1 of %zu", what, n);
    ck_assert_msg(answer(&partial, CR_OP_SUMSQ) == ldexp((double)squares, -2 * grid), "%s: sumsq of %zu", what, n);
}

static uint8_t draw_finite(cr_dtype dtype) {
    for (;;) {
        const uint8_t bits = (uint8_t)(draw() >> 20);
        if (isfinite(value_of(dtype, bits))) return bits;
    }
}

static void try_blocks(cr_dtype dtype, const char *what) {
    static const size_t lengths[] = {1, 63, 64, 65, 1000, BLOCK, BLOCK + 1, LONGEST};
    for (int odd = -1; odd < 7;
         odd++) { /* in which block; the last three: in the last vector, in all, and among them an infinity */
        for (size_t i = 0; i < LONGEST; i++) {
            const bool here = odd >= 5   ? draw() % 50 == 0
                              : odd == 4 ? i == LONGEST - 1
                                         : odd >= 0 && i / BLOCK == (size_t)odd && draw() % 99 == 0;
            data[i] = !here                             ? draw_finite(dtype)
                      : odd == 6 && dtype == CR_F8_E5M2 ? (uint8_t)(0x7c | (draw() & 0x80))
                                                        : (uint8_t)(0x7f | (draw() & 0x80));
        }
        for (size_t k = 0; k < COUNT(lengths); k++) assert_sums(dtype, data + LONGEST - lengths[k], lengths[k], what);
        assert_sums(dtype, data, LONGEST - 5, what);
    }
}

START_TEST(sums_are_those_of_the_elements) {
    cr_error error;
    if (cr_cpu_select(sets[_i], &error) != CR_OK) return; /* the machine lacks it */
    for (size_t t = 0; t < COUNT(dtypes); t++) {
        for (unsigned bits = 0; bits < 256; bits++) {
            memset(data, (int)bits, 3 * BLOCK);
            assert_sums(dtypes[t], data, 1, sets[_i]);
            assert_sums(dtypes[t], data, 2 * BLOCK + 100, sets[_i]);
        }
        try_blocks(dtypes[t], sets[_i]);
    }
}
END_TEST

CR_CHECK_MAIN("kernels/f8") { tcase_add_loop_test(tc, sums_are_those_of_the_elements, 0, COUNT(sets)); }
