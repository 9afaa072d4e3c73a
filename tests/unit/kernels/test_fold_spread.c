/* fold_spread: sums and sums of squares of floats whose exponents lie far apart, on every instruction set: long runs of windows from one exponent to
 * all of them, with zeros, subnormals, NaNs and infinities, held against additions to the limbs element by element.
 *
 * Thread: main. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/big.h"
#include "kernels/core/float.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 120000, ARRAYS = 60 };

static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static uint64_t below(uint64_t n) { return (draw() >> 8) % n; }

struct shape {
    cr_dtype dtype;
    unsigned mantissa, top; /* bits of the significand; the exponent field of infinities */
    int lowest;             /* the place of the significand's last bit in subnormals, above the grid */
};
static const struct shape shapes[] = {{CR_F32, 23, 255, 0}, {CR_BF16, 7, 255, 16}, {CR_F64, 52, 2047, 0}};

/* Runs of a few thousand elements: each has its highest exponent, a window below it or that window's two ends alone, and perhaps
 * specials. */
static size_t draw_array(const struct shape *s, uint8_t *to) {
    static const uint64_t windows[] = {1, 20, 60, 90, 150, 200, 220, 226, 227, 228, 229, 230, 235, 240, 300, 2046};
    size_t size = cr_dtype_size(s->dtype), n = 1 + (size_t)below(LONGEST), run = 0;
    uint64_t high = 0, window = 1, specials = 0, digits = UINT64_MAX;
    unsigned sign = (unsigned)(8 * size - 1);
    bool ends = false;
    for (size_t i = 0; i < n; i++) {
        if (run-- == 0) {
            run = (size_t)below(30000);
            high = below(3) ? below(s->top) : s->top - 1;
            window = 1 + windows[below(sizeof windows / sizeof windows[0])] % (high + 1);
            specials = below(2) ? 0 : below(4) ? 1 : 300; /* of 2,000 */
            digits = below(4) ? UINT64_MAX : 0;
            ends = below(4) == 0;
        }
        uint64_t field = high - (ends ? below(2) * (window - 1) : below(window)),
                 fraction = draw() & digits & (((uint64_t)1 << s->mantissa) - 1);
        if (specials != 0 && below(2000) < specials) {
            field = below(2) ? s->top : 0;
            if (below(2)) fraction = 0;
        }
        uint64_t bits = below(2) << sign | field << s->mantissa | fraction;
        memcpy(to + i * size, &bits, size);
    }
    return n;
}

static void add_one(const struct shape *s, cr_partial *p, uint64_t bits) {
    unsigned field = (unsigned)(bits >> s->mantissa) & s->top, sign = 8 * (unsigned)cr_dtype_size(s->dtype) - 1;
    bool negative = bits >> sign;
    uint64_t fraction = bits & (((uint64_t)1 << s->mantissa) - 1), significand;
    if (field == s->top) {
        for (unsigned at = CR_AT_SUM; at <= CR_AT_SUMSQ; at++) {
            cr_specials *special = &p->sums[at].special;
            *(fraction != 0 ? &special->nans : negative ? &special->ninfs : &special->pinfs) += 1;
        }
        return;
    }
    significand = fraction | (uint64_t)(field != 0) << s->mantissa;
    unsigned bit = (unsigned)s->lowest + (field == 0 ? 0 : field - 1);
    cr_partial_put(p, CR_AT_SUM, negative ? -(__int128)significand : significand, bit);
    cr_partial_put(p, CR_AT_SUMABS, significand, bit);
    cr_partial_put(p, CR_AT_SUMSQ, (__int128)significand * significand, 2 * bit);
}

static void check_sum(const cr_partial *a, const cr_partial *b, cr_sum_at at) {
    const unsigned limbs = cr_sum_limbs(at, (cr_dtype)a->dtype);
    const cr_specials *x = &a->sums[at].special, *y = &b->sums[at].special;
    cr_big one, other;
    bool negative = cr_big_from_limbs(&one, a->sums[at].limbs, limbs);
    ck_assert_int_eq(negative, cr_big_from_limbs(&other, b->sums[at].limbs, limbs));
    ck_assert_int_eq(cr_big_compare(&one, &other), 0);
    ck_assert_uint_eq(x->nans, y->nans);
    ck_assert_uint_eq(x->pinfs, y->pinfs);
    ck_assert_uint_eq(x->ninfs, y->ninfs);
}

START_TEST(any_spread_is_exact) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    const struct shape *s = &shapes[_i];
    size_t size = cr_dtype_size(s->dtype);
    uint8_t *x = malloc(LONGEST * size);
    for (int array = 0; array < ARRAYS; array++) {
        size_t n = draw_array(s, x);
        cr_partial expected;
        cr_partial_init(&expected, s->dtype, CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ);
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = 0;
            memcpy(&bits, x + i * size, size);
            add_one(s, &expected, bits);
        }
        for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
            if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
            cr_partial p, squares;
            size_t cut = (size_t)below(n + 1);
            cr_partial_init(&p, s->dtype, CR_FAM_SUM | CR_FAM_SUMABS);
            cr_cpu_fold(&p, x, cut, 0);
            cr_cpu_fold(&p, x + cut * size, n - cut, cut);
            check_sum(&p, &expected, CR_AT_SUM);
            check_sum(&p, &expected, CR_AT_SUMABS);
            cr_partial_init(&squares, s->dtype, CR_FAM_SUMSQ);
            cr_cpu_fold(&squares, x, cut, 0);
            cr_cpu_fold(&squares, x + cut * size, n - cut, cut);
            check_sum(&squares, &expected, CR_AT_SUMSQ);
        }
    }
    cr_cpu_select(NULL, NULL);
    free(x);
}
END_TEST

CR_CHECK_MAIN("kernels/fold_spread") {
    tcase_add_loop_test(tc, any_spread_is_exact, 0, sizeof shapes / sizeof shapes[0]);
    tcase_set_timeout(tc, 300);
}
