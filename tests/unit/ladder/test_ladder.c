/* test_ladder: the list of the ladder's kernels, what may be asked of them, and the values made of what they bring back.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ladder/total.h"
#include "tests/unit/check_main.h"

START_TEST(names_are_the_documents) {
    static const char *const names[] = {"v0_baseline",
                                        "v1_no_divergence",
                                        "v2_no_bank_conflict",
                                        "v3_add_during_load",
                                        "v4_unroll_last_warp",
                                        "v5_completely_unroll",
                                        "v6_multi_add",
                                        "v7_shuffle",
                                        "warp_atomic",
                                        "warp_atomic_flat",
                                        "block_atomic",
                                        "block_host",
                                        "multi_pass",
                                        "grid_stride_shuffle",
                                        "hybrid",
                                        "streams"};
    ck_assert_uint_eq(cr_ladder_count(), sizeof names / sizeof names[0]);
    for (uint32_t i = 0; i < cr_ladder_count(); i++) {
        ck_assert_str_eq(cr_ladder_at(i)->name, names[i]);
        ck_assert_uint_gt(strlen(cr_ladder_at(i)->what), 20);
        ck_assert_uint_eq(cr_ladder_find(names[i]), i);
    }
    ck_assert_ptr_null(cr_ladder_at(cr_ladder_count()));
    ck_assert_uint_eq(cr_ladder_find("v7"), cr_ladder_count());
    ck_assert_uint_eq(cr_ladder_find(""), cr_ladder_count());
}
END_TEST

START_TEST(what_may_be_asked) {
    cr_error e;
    ck_assert_int_eq(cr_ladder_check("v9_magic", CR_OP_SUM, CR_F32, &e), CR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "v9_magic"));
    ck_assert_int_eq(cr_ladder_check("v7_shuffle", CR_OP_VAR, CR_F32, &e), CR_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(e.text, "var"));
    ck_assert_int_eq(cr_ladder_check("v7_shuffle", CR_OP_SUM, CR_BF16, &e), CR_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(e.text, "bf16"));
    ck_assert_int_eq(cr_ladder_check("streams", CR_OP_COUNT_NONZERO, CR_F16, &e), CR_OK);
    ck_assert(cr_ladder_exact(CR_OP_SUM, CR_I64) && cr_ladder_exact(CR_OP_MIN, CR_F32) &&
              cr_ladder_exact(CR_OP_ANY, CR_F16));
    ck_assert(!cr_ladder_exact(CR_OP_SUM, CR_F16) && !cr_ladder_exact(CR_OP_PROD, CR_F64));
}
END_TEST

static cr_value value(cr_op op, cr_dtype dtype, uint64_t n, cr_ladder_total total) {
    const cr_ladder_job job = {"v7_shuffle", op, dtype, NULL, n};
    cr_value v;
    cr_ladder_value(&job, &total, &v);
    ck_assert_int_eq(v.op, op);
    return v;
}

static void is(cr_value v, cr_dtype dtype, const void *bytes, size_t len) {
    ck_assert_msg(v.error.code == CR_OK, "%s", v.error.text);
    ck_assert_int_eq(v.dtype, dtype);
    ck_assert_uint_eq(v.len, len);
    ck_assert_mem_eq(v.bytes, bytes, len);
}

static void is_word(cr_value v, cr_dtype dtype, uint64_t bits) { is(v, dtype, &bits, cr_dtype_size(dtype)); }

START_TEST(sums_of_any_size) {
    const __int128 one = 1;
    is_word(value(CR_OP_SUM, CR_I32, 3, (cr_ladder_total){.sum = -5}), CR_I64, (uint64_t)-5);
    is_word(value(CR_OP_SUM, CR_I64, 3, (cr_ladder_total){.sum = -(one << 63)}), CR_I64, (uint64_t)1 << 63);
    __int128 more = (one << 63) + 7, less = -(one << 100) - 1;
    is(value(CR_OP_SUM, CR_I64, 3, (cr_ladder_total){.sum = more}), CR_BIGINT, &more, 9);
    is(value(CR_OP_SUM, CR_I64, 3, (cr_ladder_total){.sum = less}), CR_BIGINT, &less, 13);
}
END_TEST

START_TEST(floats_as_they_are) {
    double x = 1.5, zero = 0;
    is(value(CR_OP_SUM, CR_F32, 3, (cr_ladder_total){.real = x}), CR_F64, &x, 8);
    is(value(CR_OP_PROD, CR_F16, 3, (cr_ladder_total){.real = -0.0}), CR_F64, &zero, 8);
    is_word(value(CR_OP_SUM, CR_F64, 3, (cr_ladder_total){.real = -NAN}), CR_F64, 0x7ff8000000000000);
    is_word(value(CR_OP_PROD, CR_F64, 3, (cr_ladder_total){.real = -INFINITY}), CR_F64, 0xfff0000000000000);
}
END_TEST

START_TEST(extrema_from_keys) {
    is_word(value(CR_OP_MAX, CR_I32, 2, (cr_ladder_total){.key = 0x80000007}), CR_I32, 7);
    is_word(value(CR_OP_MIN, CR_I32, 2, (cr_ladder_total){.key = 0x7ffffff8}), CR_I32, 7);
    /* The ends of an integer type look like a NaN's key, and are none. */
    is_word(value(CR_OP_MAX, CR_I32, 2, (cr_ladder_total){.key = UINT64_MAX}), CR_I32, 0x7fffffff);
    is_word(value(CR_OP_MIN, CR_I64, 2, (cr_ladder_total){.key = UINT64_MAX}), CR_I64, (uint64_t)1 << 63);
    is_word(value(CR_OP_MAX, CR_F32, 2, (cr_ladder_total){.key = UINT64_MAX}), CR_F32, 0x7fc00000);
    is_word(value(CR_OP_MIN, CR_F16, 2, (cr_ladder_total){.key = UINT64_MAX}), CR_F16, 0x7e00);
    is_word(value(CR_OP_MAX, CR_F32, 2, (cr_ladder_total){.key = 0xbf800000}), CR_F32, 0x3f800000);
    is_word(value(CR_OP_MIN, CR_F32, 2, (cr_ladder_total){.key = 0x80000000}), CR_F32, 0x80000000); /* -0 */
    is_word(value(CR_OP_MAX, CR_F16, 2, (cr_ladder_total){.key = 0xbc000000}), CR_F16, 0x3c00);
    is_word(value(CR_OP_MIN, CR_F16, 2, (cr_ladder_total){.key = 0xbc000000}), CR_F16, 0xbc00);
}
END_TEST

START_TEST(products_and_their_end) {
    is_word(value(CR_OP_PROD, CR_I32, 2, (cr_ladder_total){.magnitude = 6, .negative = 1}), CR_I64, (uint64_t)-6);
    is_word(value(CR_OP_PROD, CR_I64, 2, (cr_ladder_total){.magnitude = 0, .negative = 1}), CR_I64, 0);
    is_word(value(CR_OP_PROD, CR_I64, 2, (cr_ladder_total){.magnitude = (uint64_t)1 << 63, .negative = 1}), CR_I64,
            (uint64_t)1 << 63);
    cr_value v = value(CR_OP_PROD, CR_I64, 2, (cr_ladder_total){.magnitude = (uint64_t)1 << 63});
    ck_assert_int_eq(v.error.code, CR_OUT_OF_RANGE);
    v = value(CR_OP_PROD, CR_I64, 2, (cr_ladder_total){.magnitude = UINT64_MAX});
    ck_assert_int_eq(v.error.code, CR_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(v.error.text, "64 bits"));
}
END_TEST

START_TEST(logic_and_nothing) {
    is_word(value(CR_OP_ANY, CR_F32, 4, (cr_ladder_total){.truths = 1}), CR_BOOL, 1);
    is_word(value(CR_OP_ALL, CR_F32, 4, (cr_ladder_total){.truths = 3}), CR_BOOL, 0);
    is_word(value(CR_OP_ALL, CR_I64, 4, (cr_ladder_total){.truths = 4}), CR_BOOL, 1);
    is_word(value(CR_OP_COUNT_NONZERO, CR_I32, 4, (cr_ladder_total){.truths = 3}), CR_U64, 3);
    is_word(value(CR_OP_SUM, CR_I32, 0, (cr_ladder_total){.magnitude = 1}), CR_I64, 0);
    is_word(value(CR_OP_PROD, CR_I32, 0, (cr_ladder_total){.magnitude = 1}), CR_I64, 1);
    is_word(value(CR_OP_ALL, CR_I32, 0, (cr_ladder_total){.magnitude = 1}), CR_BOOL, 1);
    is_word(value(CR_OP_ANY, CR_I32, 0, (cr_ladder_total){.magnitude = 1}), CR_BOOL, 0);
    ck_assert_int_eq(value(CR_OP_MIN, CR_F32, 0, (cr_ladder_total){.magnitude = 1}).error.code, CR_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("kernels/ladder") {
    tcase_add_test(tc, names_are_the_documents);
    tcase_add_test(tc, what_may_be_asked);
    tcase_add_test(tc, sums_of_any_size);
    tcase_add_test(tc, floats_as_they_are);
    tcase_add_test(tc, extrema_from_keys);
    tcase_add_test(tc, products_and_their_end);
    tcase_add_test(tc, logic_and_nothing);
}
