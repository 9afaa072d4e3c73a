/* serial_prod: products as bytes: there and back, the same bytes for any split, and a refusal of what no array gives. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { BLOCK = CR_PROD_BLOCK, RANGE = 24, PRODUCT = RANGE + 16, NODES = PRODUCT + 28, CAP = CR_SERIAL_MAX_BYTES };

static uint8_t bytes[CAP], other[CAP];
static cr_share share, next;

static void share_of(cr_share *s, cr_dtype dtype, const void *x, uint64_t n, uint64_t base) {
    cr_partial p;
    cr_error error;
    cr_partial_init(&p, dtype, CR_FAM_PROD);
    cr_cpu_fold(&p, x, n, base);
    ck_assert_msg(cr_share_make(s, &p, base, &error) == CR_OK, "%s", error.text);
}

static const float *numbers(uint64_t n) {
    static float x[40 * BLOCK];
    for (uint64_t i = 0; i < n; i++) x[i] = 1.0f + (float)(i * 2654435761u % 1000) / 2048;
    return x;
}

static cr_status take(const uint8_t *in, size_t len) {
    cr_error error = {CR_OK, ""};
    cr_status status = cr_share_unpack(in, len, &next, &error);
    ck_assert((status == CR_OK) == (error.text[0] == '\0'));
    return status;
}

START_TEST(floats_go_there_and_back) {
    const float *x = numbers(20 * BLOCK);
    for (uint64_t n = 0; n <= 20 * BLOCK; n += 1777) {
        share_of(&share, CR_F32, x, n, 3 * BLOCK);
        size_t len = cr_share_pack(&share, bytes, CAP);
        ck_assert_uint_ne(len, 0);
        ck_assert_int_eq(take(bytes, len), CR_OK);
        ck_assert_uint_eq(cr_share_pack(&next, other, CAP), len);
        ck_assert_int_eq(memcmp(bytes, other, len), 0);
        for (size_t cut = 0; cut < len; cut += 5) ck_assert_int_ne(take(bytes, cut), CR_OK);
        ck_assert_int_ne(take(bytes, len + 1), CR_OK);
    }
}
END_TEST

START_TEST(parts_in_any_order_give_the_bytes_of_the_whole) {
    enum { PARTS = 9, N = 37 * BLOCK + 100 };
    static const uint64_t cuts[PARTS + 1] = {0, 1, 5, 6, 13, 16, 17, 30, 31, 38};
    const float *x = numbers(38 * BLOCK);
    share_of(&share, CR_F32, x, N, 0);
    size_t len = cr_share_pack(&share, bytes, CAP);
    for (unsigned step = 1; step < PARTS; step++) {
        if (step == 3 || step == 6) continue; /* the others visit all nine */
        static cr_share sum;
        for (unsigned i = 0, at = 0; i < PARTS; i++, at = (at + step) % PARTS) {
            uint64_t begin = cuts[at] * BLOCK, end = cuts[at + 1] * BLOCK < N ? cuts[at + 1] * BLOCK : N;
            share_of(i ? &next : &sum, CR_F32, x + begin, end - begin, begin);
            cr_error error;
            if (i) ck_assert_msg(cr_share_merge(&sum, &next, &error) == CR_OK, "%s", error.text);
        }
        ck_assert_uint_eq(cr_share_pack(&sum, other, CAP), len);
        ck_assert_int_eq(memcmp(bytes, other, len), 0);
    }
}
END_TEST

static uint64_t get(size_t at) {
    uint64_t value;
    memcpy(&value, bytes + at, 8);
    return value;
}

static cr_status with(size_t at, uint64_t value, size_t width, size_t len) {
    memcpy(other, bytes, len);
    memcpy(other + at, &value, width);
    return take(other, len);
}

static cr_status with_double(size_t at, double value, size_t len) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return with(at, bits, 8, len);
}

START_TEST(what_no_floats_give_is_refused) {
    const float *x = numbers(BLOCK + 9);
    share_of(&share, CR_F32, x, BLOCK + 9, 2 * BLOCK);
    size_t len = cr_share_pack(&share, bytes, CAP);
    ck_assert_uint_eq(len, NODES + 24); /* one node: both blocks */
    ck_assert_int_eq(with(NODES, get(NODES), 8, len), CR_OK);
    ck_assert_int_eq(with(RANGE, 2 * BLOCK + 1, 8, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(RANGE, BLOCK, 8, len), CR_INVALID_ARGUMENT);                    /* would be two nodes */
    ck_assert_int_eq(with(PRODUCT, BLOCK + 10, 8, len), CR_INVALID_ARGUMENT);             /* NaNs */
    ck_assert_int_eq(with(PRODUCT + 8, UINT64_MAX, 8, len), CR_INVALID_ARGUMENT);         /* zeros */
    ck_assert_int_eq(with(PRODUCT + 16, (uint64_t)1 << 63, 8, len), CR_INVALID_ARGUMENT); /* infinities */
    ck_assert_int_eq(with(PRODUCT + 24, 2, 1, len), CR_INVALID_ARGUMENT);                 /* the sign */
    ck_assert_int_eq(with(PRODUCT + 24, 1, 1, len), CR_OK);
    ck_assert_int_eq(with(PRODUCT + 25, 1, 1, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(PRODUCT + 26, 0, 2, len), CR_INVALID_ARGUMENT); /* nodes */
    ck_assert_int_eq(with(PRODUCT + 26, 2, 2, len), CR_INVALID_ARGUMENT);
    static const double heads[] = {2, 0.5, -1.5, 0, NAN, INFINITY, 0x1p-1074};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        ck_assert_int_eq(with_double(NODES, heads[i], len), CR_INVALID_ARGUMENT);
    static const double tails[] = {-0.0, 0x1.8p-53, -0x1.8p-53, NAN, 1, -INFINITY};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
        ck_assert_int_eq(with_double(NODES + 8, tails[i], len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with_double(NODES + 8, 0x1p-54, len), CR_OK);
    memcpy(bytes + NODES, &(double){1}, 8); /* below one, half of the last place is half as much */
    ck_assert_int_eq(with_double(NODES + 8, -0x1p-54, len), CR_OK);
    ck_assert_int_eq(with_double(NODES + 8, -0x1.8p-54, len), CR_INVALID_ARGUMENT);
    memcpy(bytes + NODES, &(double){1 + 0x1p-52}, 8); /* a tie goes to the even neighbour */
    ck_assert_int_eq(with_double(NODES + 8, 0x1p-53, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(NODES + 16, 2 * BLOCK * 128, 8, len), CR_OK);
    ck_assert_int_eq(with(NODES + 16, 2 * BLOCK * 128 + 1, 8, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(NODES + 16, -(uint64_t)(2 * BLOCK * 149), 8, len), CR_OK);
    ck_assert_int_eq(with(NODES + 16, -(uint64_t)(2 * BLOCK * 149 + 1), 8, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(NODES + 16, (uint64_t)INT64_MIN, 8, len), CR_INVALID_ARGUMENT);
    /* Nothing but NaNs: the product is one, and has no sign. */
    static const float nans[] = {NAN, NAN};
    share_of(&share, CR_F32, nans, 2, 0);
    len = cr_share_pack(&share, bytes, CAP);
    ck_assert_int_eq(take(bytes, len), CR_OK);
    ck_assert_int_eq(with(PRODUCT + 24, 1, 1, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with_double(NODES, 1.5, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(NODES + 16, 1, 8, len), CR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(scattered_ranges_are_refused_before_anything_changes) {
    static cr_share sum;
    cr_error error;
    const float *x = numbers(2 * BLOCK);
    share_of(&sum, CR_F32, x, BLOCK, 0);
    for (uint64_t i = 1; i < CR_PROD_NODES; i++) {
        share_of(&next, CR_F32, x, BLOCK, 2 * i * BLOCK);
        ck_assert_int_eq(cr_share_merge(&sum, &next, &error), CR_OK);
    }
    size_t len = cr_share_pack(&sum, bytes, CAP);
    ck_assert_int_eq(take(bytes, len), CR_OK);
    share_of(&next, CR_F32, x, BLOCK, 1000 * BLOCK);
    ck_assert_int_eq(cr_share_merge(&sum, &next, &error), CR_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(error.text, "merge neighbours first"));
    ck_assert_uint_eq(cr_share_pack(&sum, other, CAP), len);
    ck_assert_int_eq(memcmp(bytes, other, len), 0);
    share_of(&next, CR_F32, x, BLOCK, 5 * BLOCK); /* a neighbour of two */
    ck_assert_int_eq(cr_share_merge(&sum, &next, &error), CR_OK);
    /* After an incomplete block nothing may come. */
    share_of(&sum, CR_F32, x, BLOCK + 1, 0);
    ck_assert_int_eq(cr_share_merge(&sum, &next, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "multiples of 4096"));
    cr_partial p;
    cr_partial_init(&p, CR_F32, CR_FAM_PROD);
    cr_cpu_fold(&p, x, BLOCK, 0);
    ck_assert_int_eq(cr_share_make(&sum, &p, 7, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_share_make(&sum, &p, BLOCK, &error), CR_INTERNAL);
}
END_TEST

START_TEST(integers_there_back_and_refused) {
    static const int32_t x[] = {-7, 100000, 2147483647, -1, 0, 12345678};
    int64_t large[40];
    enum { SIGN = PRODUCT + 16, OVER, DIGITS, FIRST = DIGITS + 2 };
    share_of(&share, CR_I32, x, 4, 0);
    size_t len = cr_share_pack(&share, bytes, CAP);
    ck_assert_uint_eq(len, FIRST + 8); /* 7·10^5·2147483647 takes 51 bits */
    ck_assert_int_eq(take(bytes, len), CR_OK);
    ck_assert_int_eq(with(PRODUCT, 5, 8, len), CR_INVALID_ARGUMENT); /* zeros */
    ck_assert_int_eq(with(PRODUCT, 1, 8, len), CR_INVALID_ARGUMENT); /* then the product is 0 modulo 2^64 */
    ck_assert_int_eq(with(PRODUCT + 8, get(PRODUCT + 8) + 1, 8, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(SIGN, 1, 1, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(OVER, 1, 1, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(DIGITS, 1, 2, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(DIGITS, 33, 2, len), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(with(FIRST + 4, 0, 4, len), CR_INVALID_ARGUMENT); /* the highest digit */
    share_of(&share, CR_I32, x, 6, 0);
    len = cr_share_pack(&share, bytes, CAP);
    ck_assert_int_eq(take(bytes, len), CR_OK);
    ck_assert_uint_eq(cr_share_pack(&next, other, CAP), len);
    ck_assert_int_eq(memcmp(bytes, other, len), 0);
    for (size_t cut = 0; cut < len; cut++) ck_assert_int_ne(take(bytes, cut), CR_OK);
    for (size_t i = 0; i < 40; i++) large[i] = INT64_MAX;
    share_of(&share, CR_I64, large, 16, 0);
    len = cr_share_pack(&share, bytes, CAP);
    ck_assert_uint_eq(len, FIRST + 32 * 4);
    ck_assert_int_eq(take(bytes, len), CR_OK);
    share_of(&share, CR_I64, large, 40, 0);
    len = cr_share_pack(&share, bytes, CAP);
    ck_assert_uint_eq(len, FIRST);
    ck_assert_int_eq(take(bytes, len), CR_OK);
    ck_assert(next.partial.prod.over);
    /* 40 elements of 8 bits cannot be beyond 2^1024. */
    ck_assert_int_eq(with(3, CR_I8, 1, len), CR_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("kernels/serial_prod") {
    tcase_add_test(tc, floats_go_there_and_back);
    tcase_add_test(tc, parts_in_any_order_give_the_bytes_of_the_whole);
    tcase_add_test(tc, what_no_floats_give_is_refused);
    tcase_add_test(tc, scattered_ranges_are_refused_before_anything_changes);
    tcase_add_test(tc, integers_there_back_and_refused);
}
