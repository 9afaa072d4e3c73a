/* kernels/core/layout, kernels/cpu/layout and shares of blocks: places, coverage and bytes, against counting by hand; hostile bytes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/layout.h"
#include "tests/protocol/hex.h"
#include "tests/unit/check_main.h"

enum { DIMS = 4, FAMILIES = CR_FAM_SUM | CR_FAM_EXTREMA | CR_FAM_DIGEST };

static cr_share a, b;
static cr_error error;
static cr_layout block;

static uint64_t state = 88172645463325252u;

static uint64_t below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

/* The places of a random block's elements, counted by going through the array. */
START_TEST(places) {
    for (int turn = 0; turn < 300; turn++) {
        uint64_t shape[DIMS], start[DIMS], extent[DIMS], whole = 1, k = 0, cover = 0;
        const unsigned dims = (unsigned)below(DIMS + 1);
        for (unsigned i = 0; i < dims; i++) {
            shape[i] = 1 + below(5);
            start[i] = below(shape[i] + 1);
            extent[i] = below(shape[i] - start[i] + 1);
            whole *= shape[i];
        }
        ck_assert_int_eq(cr_layout_make(&block, dims, shape, start, extent, &error), CR_OK);
        ck_assert_uint_eq(block.whole, whole);
        for (uint64_t place = 0; place < whole; place++) {
            bool in = true;
            uint64_t rest = place;
            for (unsigned i = dims; i-- > 0; rest /= shape[i])
                in &= rest % shape[i] >= start[i] && rest % shape[i] - start[i] < extent[i];
            if (!in) continue;
            ck_assert_uint_eq(cr_layout_place(&block, k++), place);
            cover = cr_digest_add(cover, cr_digest_power(0, place));
        }
        ck_assert_uint_eq(block.count, k);
        ck_assert_uint_eq(cr_layout_cover(&block), cover);
    }
}
END_TEST

START_TEST(series) {
    for (uint64_t n = 0; n < 70; n++) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < n; i++) sum = cr_digest_add(sum, cr_digest_power(1, i));
        ck_assert_uint_eq(cr_digest_series(CR_DIGEST_R2, n), sum);
        ck_assert_uint_eq(cr_digest_series(1, n), n);
        const uint64_t many = UINT64_MAX - n, all = cr_digest_series(CR_DIGEST_R1, many);
        ck_assert_uint_eq(all, cr_digest_cover(0, many));
        ck_assert_uint_eq(cr_digest_add(cr_digest_mul(all, CR_DIGEST_R1 - 1), 1), cr_digest_power(0, many));
    }
}
END_TEST

START_TEST(refused) {
    const uint64_t half = UINT64_C(1) << 32, none = 0, one = 1, most = UINT64_MAX, many[33] = {0};
    const uint64_t huge[] = {half, half}, wide[] = {half, half, 0}, zeros[3] = {0};
    const struct {
        uint64_t dims;
        const uint64_t *shape, *start, *extent;
        const char *says;
    } cases[] = {
        {1, &one, &one, &one, "outside"},
        {1, &one, &most, &one, "outside"},
        {1, &one, &one, &most, "outside"},
        {1, &most, &none, &one, "2^60"},
        {2, huge, zeros, zeros, "2^60"},
        {33, many, many, many, "limit is 32"},
        {UINT64_MAX, many, many, many, "limit is 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(cr_layout_make(&block, cases[i].dims, cases[i].shape, cases[i].start, cases[i].extent, &error),
                         CR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, cases[i].says) != NULL, "%s", error.text);
    }
    ck_assert_int_eq(cr_layout_make(&block, 3, wide, zeros, zeros, &error),
                     CR_OK); /* no elements, whatever the others are */
    ck_assert_uint_eq(block.whole, 0);
}
END_TEST

static void make_golden(void) {
    static const uint64_t shape[] = {2, 3}, start[] = {0, 2}, extent[] = {2, 1};
    static const uint8_t data[] = {1, 2};
    cr_partial p;
    ck_assert_int_eq(cr_layout_make(&block, 2, shape, start, extent, &error), CR_OK);
    cr_partial_init(&p, CR_U8, FAMILIES);
    cr_cpu_fold_layout(&p, &block, data, 1, 0);
    cr_cpu_fold_layout(&p, &block, data + 1, 1, 1);
    ck_assert_msg(cr_share_make_block(&a, &p, &block, &error) == CR_OK, "%s", error.text);
    block.count++;
    ck_assert_int_eq(cr_share_make_block(&b, &p, &block, &error), CR_INVALID_ARGUMENT);
}

START_TEST(golden) {
    uint8_t want[256], got[256];
    const size_t len = hex_read("u8-block", want, sizeof want);
    make_golden();
    ck_assert_uint_eq(cr_share_pack(&a, got, sizeof got), len);
    ck_assert_mem_eq(got, want, len);
    memset(&b, 0xa5, sizeof b);
    ck_assert_msg(cr_share_unpack(want, len, &b, &error) == CR_OK, "%s", error.text);
    ck_assert_uint_eq(cr_share_pack(&b, got, sizeof got), len);
    ck_assert_mem_eq(got, want, len);
    for (size_t cut = 0; cut < len; cut++)
        ck_assert_int_eq(cr_share_unpack(want, cut, &b, &error), CR_INVALID_ARGUMENT);
}
END_TEST

static const struct hostile {
    size_t at;
    uint8_t byte;
    const char *says;
} hostiles[] = {
    {8, 7, "more elements than its whole array"},
    {16, 1, "head is out of bounds"},
    {20, 0, "head is out of bounds"},
    {20, 1, "head is out of bounds"},
    {20, 6, "head is out of bounds"},
    {31, 0x10, "whole array"},
    {48, 6, "outside its ranges"},
    {64, 6, "outside its ranges"},
    {72, 6, "first NaN"},
    {87, 0x20, "canonical"},
    {103, 0x20, "canonical"},
};

START_TEST(hostile) {
    uint8_t in[256];
    const size_t len = hex_read("u8-block", in, sizeof in);
    for (size_t i = 0; i < sizeof hostiles / sizeof hostiles[0]; i++) {
        const struct hostile *h = &hostiles[i];
        const uint8_t before = in[h->at];
        in[h->at] = h->byte;
        if (h->at == 31) in[24] = 7;
        ck_assert_msg(cr_share_unpack(in, len, &b, &error) == CR_INVALID_ARGUMENT, "%zu was taken", h->at);
        ck_assert_msg(strstr(error.text, h->says) != NULL, "%zu: %s", h->at, error.text);
        in[h->at] = before;
        in[24] = 6;
    }
    in[3] = CR_F32;
    in[4] = CR_FAM_PROD;
    ck_assert_int_eq(cr_share_unpack(in, len, &b, &error), CR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "product of floats") != NULL, "%s", error.text);
}
END_TEST

CR_CHECK_MAIN("block") {
    tcase_add_test(tc, places);
    tcase_add_test(tc, series);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, golden);
    tcase_add_test(tc, hostile);
}
