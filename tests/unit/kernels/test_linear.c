/* linear: vectors of parts of an array add up to the vector of the whole, for every type, in any cut; as many as 2^31 - 1 of them; and what
 * no partials add up to is refused.
 *
 * Thread: main. */
#include <check.h>
#include <string.h>

#include "kernels/core/linear.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 5000, PARTS = 7, WORDS = 1024 };

static uint64_t state = 88172645463325252u;
static cr_share share;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static const uint32_t linear_families = CR_FAM_KNOWN_SUMS | CR_FAM_COUNTS | CR_FAM_EXTREMA;

static size_t packed(const cr_partial *p, uint8_t *out) {
    cr_error e;
    ck_assert_msg(cr_share_make(&share, p, CR_UNPLACED, &e) == CR_OK, "%s", e.text);
    return cr_share_pack(&share, out, CR_SERIAL_MAX_BYTES);
}

static void same(const cr_partial *p, const cr_partial *q) {
    static uint8_t a[CR_SERIAL_MAX_BYTES], b[CR_SERIAL_MAX_BYTES];
    const size_t bytes = packed(p, a);
    cr_error e = {CR_OK, ""};
    ck_assert_uint_eq(packed(q, b), bytes);
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s", cr_dtype_name((cr_dtype)p->dtype));
    ck_assert_msg(cr_share_unpack(a, bytes, &share, &e) == CR_OK, "%s", e.text);
}

static void add(int64_t *into, const int64_t *from, size_t n, bool greatest) {
    for (size_t i = 0; i < n; i++) into[i] = !greatest ? into[i] + from[i] : into[i] > from[i] ? into[i] : from[i];
}

/* Fold parts apart, add their vectors, and read those. */
static void add_up(cr_dtype dtype, const uint8_t *x, size_t n) {
    static int64_t sums[WORDS], all[WORDS];
    static cr_partial whole, part, read;
    const size_t size = cr_dtype_size(dtype), count = cr_linear_sums(dtype, linear_families);
    int64_t maxima[CR_LINEAR_MAXIMA], greatest[CR_LINEAR_MAXIMA];
    cr_error e;
    cr_partial_init(&whole, dtype, linear_families);
    cr_cpu_fold(&whole, x, n, 0);
    ck_assert_uint_le(count, WORDS);
    for (size_t k = 0, at = 0; k < PARTS; k++) {
        const size_t now = k + 1 < PARTS ? draw() % (n - at + 1) : n - at;
        cr_partial_init(&part, dtype, linear_families);
        cr_cpu_fold(&part, x + at * size, now, at);
        sums[count] = 77;
        cr_linear_write(&part, k ? sums : all, k ? maxima : greatest);
        if (k) ck_assert_int_eq(sums[count], 77);
        if (k) add(all, sums, count, false);
        if (k) add(greatest, maxima, CR_LINEAR_MAXIMA, true);
        at += now;
    }
    ck_assert_msg(cr_linear_read(dtype, linear_families, all, greatest, &read, &e) == CR_OK, "%s", e.text);
    same(&whole, &read);
}

START_TEST(parts_add_up) {
    static uint8_t x[8 * LONGEST];
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        for (int round = 0; round < 40; round++) {
            const size_t size = cr_dtype_size((cr_dtype)dtype), n = (size_t[]){0, 1, 3, LONGEST}[round % 4];
            for (size_t i = 0; i < n; i++) {
                uint64_t bits = dtype == CR_BOOL ? draw() & 1 : round % 8 < 4 ? draw() : draw() & draw() & draw();
                if (round >= 32 && i % 3) bits = 0; /* equal elements, and zeros */
                memcpy(x + i * size, &bits, size);
            }
            add_up((cr_dtype)dtype, x, n);
        }
    }
}
END_TEST

/* A vector times 2^31 - 1 is that of so many equal partials. */
START_TEST(as_many_as_promised) {
    static const double values[] = {-0x1.fffffffffffffp1023, 0x1p-1074, -1.5, 0x1.23456789abcdep300};
    static int64_t sums[WORDS];
    static cr_partial once, all, doubled, read;
    int64_t maxima[CR_LINEAR_MAXIMA];
    cr_error e;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        cr_partial_init(&once, CR_F64, linear_families);
        cr_cpu_fold(&once, &values[v], 1, 0);
        cr_partial_init(&all, CR_F64, linear_families);
        doubled = once;
        for (int bit = 0; bit < 31; bit++) { /* each bit of 2^31 - 1 is set */
            cr_partial_merge(&all, &doubled);
            const cr_partial copy = doubled;
            cr_partial_merge(&doubled, &copy);
        }
        cr_linear_write(&once, sums, maxima);
        for (size_t i = 0; i < cr_linear_sums(CR_F64, linear_families); i++) {
            const __int128 product = (__int128)sums[i] * (int64_t)CR_LINEAR_ADDED;
            sums[i] = (int64_t)product;
            ck_assert(sums[i] == product);
        }
        ck_assert_msg(cr_linear_read(CR_F64, linear_families, sums, maxima, &read, &e) == CR_OK, "%s", e.text);
        same(&all, &read);
    }
}
END_TEST

START_TEST(lengths_are_as_documented) {
    static const struct {
        cr_dtype dtype;
        size_t sum, squares;
    } rows[] = {{CR_F16, 4, 5}, {CR_BF16, 11, 20}, {CR_F32, 11, 20}, {CR_F64, 68, 134}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_uint_eq(cr_linear_sums(rows[i].dtype, CR_FAM_SUM), 1 + rows[i].sum + 3);
        ck_assert_uint_eq(cr_linear_sums(rows[i].dtype, CR_FAM_SUMSQ), 1 + rows[i].squares + 3);
    }
    ck_assert_uint_eq(cr_linear_sums(CR_I32, CR_FAM_SUM), 1 + 5);
    ck_assert_uint_eq(cr_linear_sums(CR_I32, CR_FAM_SUMSQ | CR_FAM_COUNTS), 1 + 7 + 2);
    ck_assert_uint_eq(cr_linear_sums(CR_F64, CR_FAM_EXTREMA), 1);
    ck_assert_uint_eq(cr_linear_maxima(CR_FAM_EXTREMA | CR_FAM_SUM), CR_LINEAR_MAXIMA);
    ck_assert_uint_eq(cr_linear_maxima(CR_FAM_SUM), 0);
}
END_TEST

/* Read, or refused by what is told of a sum, or by who reads its bytes. */
static bool refused(uint32_t families, const int64_t *sums, const int64_t *maxima) {
    static uint8_t bytes[CR_SERIAL_MAX_BYTES];
    static cr_partial p;
    cr_error e = {CR_OK, ""};
    if (cr_linear_read(CR_F32, families, sums, maxima, &p, &e) != CR_OK) return e.text[0] != 0;
    if (cr_share_make(&share, &p, CR_UNPLACED, &e) != CR_OK) return true;
    const size_t n = cr_share_pack(&share, bytes, sizeof bytes);
    return n == 0 || cr_share_unpack(bytes, n, &share, &e) != CR_OK;
}

START_TEST(what_cannot_be_is_refused) {
    int64_t maxima[CR_LINEAR_MAXIMA] = {0, 0, INT64_MIN, INT64_MIN};
    int64_t sum[1 + 11 + 3] = {2, 1}, counts[3] = {2, 1, 2};
    ck_assert(!refused(CR_FAM_SUM, sum, maxima));
    ck_assert(!refused(CR_FAM_COUNTS, counts, maxima));
    for (unsigned i = 0; i < 15; i++) {
        int64_t bad[15];
        memcpy(bad, sum, sizeof bad);
        bad[i] = i == 0 ? -1 : i > 11 ? 3 : INT64_MAX;
        if (i == 0 || i > 9) ck_assert(refused(CR_FAM_SUM, bad, maxima));
        bad[i] = INT64_MIN;
        if (i == 0 || i > 9) ck_assert(refused(CR_FAM_SUM, bad, maxima));
        refused(CR_FAM_SUM, bad, maxima); /* whatever it is, nothing breaks */
    }
    counts[1] = 3;
    ck_assert(refused(CR_FAM_COUNTS, counts, maxima));
    ck_assert(refused(CR_FAM_EXTREMA, sum, maxima)); /* two elements, and no extremum */
    maxima[0] = 2;
    ck_assert(refused(CR_FAM_EXTREMA, sum, maxima)); /* added, not compared */
    maxima[0] = 1;
    maxima[2] = INT64_MAX; /* no key of an f32 */
    ck_assert(refused(CR_FAM_EXTREMA, sum, maxima));
    ck_assert(refused(CR_FAM_PROD, sum, maxima));
    ck_assert(refused(CR_FAM_BITS, sum, maxima));
    for (int round = 0; round < 20000; round++) {
        int64_t any[WORDS / 8];
        for (size_t i = 0; i < sizeof any / sizeof *any; i++) any[i] = (int64_t)(draw() >> draw() % 64);
        for (size_t i = 0; i < CR_LINEAR_MAXIMA; i++) maxima[i] = (int64_t)(draw() >> draw() % 64);
        refused(CR_FAM_SUM | CR_FAM_SUMSQ | CR_FAM_COUNTS | CR_FAM_EXTREMA, any, maxima);
    }
}
END_TEST

CR_CHECK_MAIN("kernels/linear") {
    tcase_add_test(tc, parts_add_up);
    tcase_add_test(tc, as_many_as_promised);
    tcase_add_test(tc, lengths_are_as_documented);
    tcase_add_test(tc, what_cannot_be_is_refused);
}
