/* pairs: sums of products and of squared differences of whole arrays give the same bytes with their fast way and without, for data that
 * it takes, takes after another look, places anchors for again, or leaves: of every type of floats, with and without a mask, on every
 * instruction set.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 3 * 4096 + 1024 + 37, MOST_SIZE = 8 };

static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* From 1 to 2, of either sign. */
static double about_one(void) {
    const double x = 1 + (double)(draw() >> 11) * 0x1p-53;
    return draw() % 2 ? x : -x;
}

static double plain(size_t i) { return (void)i, about_one(); }
static double zeros(size_t i) { return i % 3000 < 1500 && draw() % 2 ? 0 : about_one(); }
static double all_zeros(size_t i) { return i > 9000 ? about_one() : 0; }
static double far_apart(size_t i) { return (void)i, ldexp(about_one(), (int)(draw() % 60) - 30); }
static double anywhere(size_t i) { return (void)i, ldexp(about_one(), (int)(draw() % 270) - 140); }
static double wanders(size_t i) { return ldexp(about_one(), (int)(i / 1500 % 9) * 25 - 100); }
static double one_nan(size_t i) { return i == 5000 ? (double)NAN : about_one(); }
static double infinities(size_t i) {
    return i % 4999 == 4998 ? (double)INFINITY : i % 3001 == 3000 ? -(double)INFINITY : about_one();
}
static double outlier(size_t i) { return i == 6000 ? 0x1p120 : i == 2500 ? 0x1p-120 : about_one(); }
static double tiny(size_t i) { return ldexp(about_one(), -126 - (int)(i % 20)); }
static double faint(size_t i) { return (void)i, ldexp(about_one(), -69); } /* products are float32's subnormals */
static double huge(size_t i) { return (void)i, ldexp(about_one(), 126); }
static double powers(size_t i) { return ldexp(1, (int)(i % 24) - 12); }
/* One in 64 less, or more, the further on: from inside a window to beyond its ends. */
static double falls(size_t i) { return ldexp(about_one(), i % 64 == 7 ? -(int)(i / 256) : 0); }
static double rises(size_t i) { return ldexp(about_one(), i % 64 == 7 ? (int)(i / 512) : 0); }

static const struct {
    const char *name;
    double (*of)(size_t i);
} kinds[] = {{"plain", plain},       {"zeros", zeros},     {"all zeros", all_zeros}, {"far apart", far_apart},
             {"anywhere", anywhere}, {"wanders", wanders}, {"one NaN", one_nan},     {"infinities", infinities},
             {"outlier", outlier},   {"tiny", tiny},       {"faint", faint},         {"huge", huge},
             {"powers", powers},     {"falls", falls},     {"rises", rises}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* x as an element of dtype: of f32 and f64 rounded, of narrower types any bits near it. */
static void put(cr_dtype dtype, double x, uint8_t *to) {
    const float f = (float)x;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
        case CR_F64:
            memcpy(to, &x, sizeof x);
            break;
        case CR_F32:
            memcpy(to, &f, sizeof f);
            break;
        case CR_BF16:
            half = (uint16_t)(bits >> 16);
            memcpy(to, &half, sizeof half);
            break;
        default: { /* the exponent's lowest bits, and as many of the fraction */
            const bool f16 = dtype == CR_F16, e5m2 = dtype == CR_F8_E5M2;
            const unsigned mantissa = f16 ? 10 : e5m2 ? 2 : 3, exponent = f16 || e5m2 ? 5 : 4;
            const uint32_t mask = ((uint32_t)1 << (mantissa + exponent)) - 1, sign = bits >> 31;
            const uint32_t code = x == 0 ? 0 : bits >> (23 - mantissa) & mask;
            half = (uint16_t)(sign << (mantissa + exponent) | code);
            memcpy(to, &half, f16 ? 2 : 1);
        }
    }
}

static size_t packed(cr_dtype dtype, uint32_t families, const cr_view *view, size_t n, uint8_t *out) {
    static cr_share share;
    cr_partial p;
    cr_partial_init(&p, dtype, families);
    cr_cpu_fold_view(&p, view, n, 0);
    ck_assert_int_eq(cr_share_make(&share, &p, 0, NULL), CR_OK);
    return cr_share_pack(&share, out, CR_SERIAL_MAX_BYTES);
}

static const size_t lengths[] = {1023, 1024, 1025, 4096, 5120, 2 * 4096 + 1023, LONGEST};

static void same_bytes(cr_dtype dtype, const char *first, const char *second, cr_view view) {
    static uint8_t want[CR_SERIAL_MAX_BYTES], got[CR_SERIAL_MAX_BYTES];
    static const uint32_t sets[] = {CR_FAM_DOT, CR_FAM_SQDIST, CR_FAM_DOT | CR_FAM_WEIGHTS};
    for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
        const size_t n = lengths[draw() % (sizeof lengths / sizeof *lengths)];
        cr_fast_switch_off(UINT64_C(1) << CR_FAST_PAIRS);
        const size_t bytes = packed(dtype, sets[set], &view, n, want);
        cr_fast_switch_off(0);
        const bool same = packed(dtype, sets[set], &view, n, got) == bytes && memcmp(want, got, bytes) == 0;
        ck_assert_msg(same, "%s, families %#x, %s with %s, %zu elements, mask %d", cr_dtype_name(dtype), sets[set],
                      first, second, n, (int)view.mask.kind);
    }
}

static void every_kind(cr_dtype dtype) {
    static uint8_t x[LONGEST * MOST_SIZE + 1], y[LONGEST * MOST_SIZE + 3], mask[LONGEST];
    const size_t size = cr_dtype_size(dtype);
    for (size_t i = 0; i < LONGEST; i++) mask[i] = i / 4096 % 2 != 0 || draw() % 4 != 0;
    for (unsigned a = 0; a < KINDS; a++) {
        for (size_t i = 0; i < LONGEST; i++) put(dtype, kinds[a].of(i), x + 1 + i * size);
        for (unsigned b = 0; b < KINDS; b++) {
            if (a != b && a != 0 && b != 0 && draw() % (2 * CHECK_SPARSE) != 0) continue;
            for (size_t i = 0; i < LONGEST; i++) put(dtype, kinds[b].of(i), y + 3 + i * size);
            cr_view view = cr_view_plain(x + 1);
            view.second = y + 3;
            same_bytes(dtype, kinds[a].name, kinds[b].name, view);
            view.mask = (cr_mask){.kind = CR_MASK_BYTES, .data = mask};
            same_bytes(dtype, kinds[a].name, kinds[b].name, view);
        }
    }
}

START_TEST(same_without_the_fast_way) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    static const cr_dtype dtypes[] = {CR_F32, CR_BF16, CR_F16, CR_F8_E4M3, CR_F8_E5M2, CR_F64};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    state += (uint64_t)check_seed(1) << 8;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) every_kind(dtypes[d]);
    cr_cpu_select(NULL, NULL);
}
END_TEST

/* As much as running anchors can hold, for so long that they have to be emptied. */
START_TEST(many_at_the_top) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    const size_t n = (size_t)300 * 4096;
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return;
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = i < 1024 ? 1 : 0x1.fffffep3f;
    cr_view view = cr_view_plain((const uint8_t *)x);
    view.second = view.data;
    static uint8_t want[CR_SERIAL_MAX_BYTES], got[CR_SERIAL_MAX_BYTES];
    const size_t bytes = packed(CR_F32, CR_FAM_DOT, &view, n, got);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_PAIRS);
    ck_assert_uint_eq(packed(CR_F32, CR_FAM_DOT, &view, n, want), bytes);
    cr_fast_switch_off(0);
    ck_assert_int_eq(memcmp(want, got, bytes), 0);
    free(x);
    cr_cpu_select(NULL, NULL);
}
END_TEST

CR_CHECK_MAIN("kernels/pairs") {
    tcase_add_loop_test(tc, many_at_the_top, 0, 3);
    tcase_add_loop_test(tc, same_without_the_fast_way, 0, 3);
    tcase_set_timeout(tc, 300);
}
