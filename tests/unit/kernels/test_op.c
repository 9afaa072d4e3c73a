/* op: names, and what exists for (op, dtype). */
#include <check.h>
#include <string.h>

#include "kernels/core/op.h"
#include "tests/unit/check_main.h"

START_TEST(names_go_both_ways) {
    for (cr_op i = cr_op_next(CR_OP_NONE); i != CR_OP_NONE; i = cr_op_next(i)) {
        cr_op op = CR_OP_NONE;
        ck_assert_int_eq(cr_op_parse(cr_op_name((cr_op)i), &op, NULL), CR_OK);
        ck_assert_int_eq(op, i);
    }
    cr_op op = CR_OP_NONE;
    ck_assert_int_eq(cr_op_parse("avg", &op, NULL), CR_INVALID_ARGUMENT);
    ck_assert_str_eq(cr_op_name((cr_op)77), "none");
}
END_TEST

START_TEST(supports_is_one_predicate) {
    cr_error error;
    for (int i = CR_BOOL; i <= CR_DTYPE_INPUTS; i++) {
        if (!cr_dtype_is_input((cr_dtype)i)) continue;
        ck_assert_int_eq(cr_op_supports(CR_OP_SUM, (cr_dtype)i, NULL), CR_OK);
        ck_assert_int_eq(cr_op_supports(CR_OP_STD, (cr_dtype)i, NULL), CR_OK);
    }
    ck_assert_int_eq(cr_op_supports(CR_OP_BIT_AND, CR_F32, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "bit_and"));
    ck_assert_ptr_nonnull(strstr(error.text, "f32"));
    ck_assert_int_eq(cr_op_supports(CR_OP_BIT_AND, CR_BOOL, NULL), CR_OK);
    ck_assert_int_eq(cr_op_supports((cr_op)0, CR_F32, NULL), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_op_supports(CR_OP_SUM, CR_I128, NULL), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_op_supports((cr_op)99, CR_F32, NULL), CR_UNIMPLEMENTED);
}
END_TEST

START_TEST(needs_follow_the_kind) {
    ck_assert_uint_eq(cr_op_needs(CR_OP_COUNT, CR_I32), 0);
    ck_assert_uint_eq(cr_op_needs(CR_OP_COUNT, CR_F32), CR_FAM_COUNTS);
    ck_assert_uint_eq(cr_op_needs(CR_OP_VAR, CR_U8), CR_FAM_SUM | CR_FAM_SUMSQ);
}
END_TEST

/* An op that needs the extrema wants some of them, and an index only with its value. */
START_TEST(wants_follow_the_needs) {
    for (cr_op i = cr_op_next(CR_OP_NONE); i != CR_OP_NONE; i = cr_op_next(i)) {
        uint32_t wants = cr_op_wants((cr_op)i);
        ck_assert_int_eq(wants != 0, cr_op_needs((cr_op)i, CR_F32) == CR_FAM_EXTREMA);
        if (wants & CR_WANTS_ARGMIN) ck_assert(wants & CR_WANTS_MIN);
        if (wants & CR_WANTS_ARGMAX) ck_assert(wants & CR_WANTS_MAX);
    }
    ck_assert_uint_eq(cr_op_wants(CR_OP_MAX), CR_WANTS_MAX);
    ck_assert_uint_eq(cr_op_wants(CR_OP_NORMINF), CR_WANTS_MIN | CR_WANTS_MAX);
}
END_TEST

START_TEST(sets_hold_ids_up_to_63) {
    cr_ops all = 0;
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        ck_assert(!cr_ops_has(all, op));
        all |= cr_ops_of(op);
        ck_assert(cr_ops_has(all, op));
        for (uint32_t other = 1; other < CR_OP_IDS; other++)
            ck_assert_int_eq(cr_ops_has(cr_ops_of(op), other), (uint32_t)op == other);
    }
    for (uint32_t id = 0; id < CR_OP_IDS; id++)
        if (strcmp(cr_op_name((cr_op)id), "none") == 0) ck_assert_uint_eq(cr_ops_of(id), 0);
    static const uint32_t no_ids[] = {0, 64, 65, 96, 128, UINT32_MAX};
    for (size_t i = 0; i < sizeof no_ids / sizeof *no_ids; i++) {
        ck_assert_uint_eq(cr_ops_of(no_ids[i]), 0);
        ck_assert(!cr_ops_has(all, no_ids[i]));
    }
}
END_TEST

CR_CHECK_MAIN("kernels/op") {
    tcase_add_test(tc, names_go_both_ways);
    tcase_add_test(tc, supports_is_one_predicate);
    tcase_add_test(tc, needs_follow_the_kind);
    tcase_add_test(tc, wants_follow_the_needs);
    tcase_add_test(tc, sets_hold_ids_up_to_63);
}
