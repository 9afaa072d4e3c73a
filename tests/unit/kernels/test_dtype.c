/* dtype: names, sizes, kinds, and what is refused by name. */
#include <check.h>
#include <string.h>

#include "kernels/core/dtype.h"
#include "tests/unit/check_main.h"

START_TEST(every_name_parses_to_its_type) {
    static const char *const numpy[] = {"bool",    "uint8",  "int8",  "uint16",        "int16",      "uint32",
                                        "int32",   "uint64", "int64", "float16",       "bfloat16",   "float32",
                                        "float64", "",       "",      "float8_e4m3fn", "float8_e5m2"};
    for (int i = CR_BOOL; i <= CR_DTYPE_INPUTS; i++) {
        if (!cr_dtype_is_input((cr_dtype)i)) continue;
        cr_dtype dtype = CR_DTYPE_NONE;
        ck_assert_int_eq(cr_dtype_parse(cr_dtype_name((cr_dtype)i), &dtype, NULL), CR_OK);
        ck_assert_int_eq(dtype, i);
        ck_assert_int_eq(cr_dtype_parse(numpy[i - 1], &dtype, NULL), CR_OK);
        ck_assert_int_eq(dtype, i);
        ck_assert(cr_dtype_is_input(dtype));
    }
}
END_TEST

START_TEST(safetensors_names) {
    static const char *const names[] = {"BOOL", "U8",   "I8",  "U16", "I16", "U32", "I32",     "U64",    "I64",
                                        "F16",  "BF16", "F32", "F64", "",    "",    "F8_E4M3", "F8_E5M2"};
    for (int i = CR_BOOL; i <= CR_DTYPE_INPUTS; i++)
        if (cr_dtype_is_input((cr_dtype)i)) ck_assert_int_eq(cr_dtype_of_safetensors(names[i - 1]), i);
    ck_assert_int_eq(cr_dtype_of_safetensors(""), CR_DTYPE_NONE);
    ck_assert_int_eq(cr_dtype_of_safetensors("F8_E4M3FNUZ"), CR_DTYPE_NONE);
}
END_TEST

/* NumPy's codes and C's names. i8 and u8 are ours unless a byte order says that they are NumPy's. */
START_TEST(other_names) {
    static const struct {
        const char *name;
        cr_dtype dtype;
    } names[] = {{"f4", CR_F32},   {"<f4", CR_F32}, {"=f8", CR_F64}, {"double", CR_F64}, {"single", CR_F32},
                 {"half", CR_F16}, {"<i8", CR_I64}, {"i8", CR_I8},   {"<u8", CR_U64},    {"u8", CR_U8},
                 {"|b1", CR_BOOL}, {">u1", CR_U8},  {"i4", CR_I32},  {"<u2", CR_U16}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_dtype dtype = CR_DTYPE_NONE;
        ck_assert_int_eq(cr_dtype_parse(names[i].name, &dtype, NULL), CR_OK);
        ck_assert_int_eq(dtype, names[i].dtype);
    }
    cr_dtype dtype = CR_DTYPE_NONE;
    cr_error error;
    ck_assert_int_eq(cr_dtype_parse(">f4", &dtype, &error), CR_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(error.text, "big-endian"));
    ck_assert_int_eq(cr_dtype_parse("float", &dtype, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "f32 or f64"));
    ck_assert_int_eq(cr_dtype_parse("<", &dtype, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_dtype_parse("<<f4", &dtype, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(dtype, CR_DTYPE_NONE);
}
END_TEST

/* NumPy's names and codes lead back to the type; bf16 and the types of a byte have neither. */
START_TEST(numpy) {
    for (int i = 1; i <= CR_DTYPE_INPUTS; i++) {
        cr_dtype dtype = CR_DTYPE_NONE;
        const char *name = cr_dtype_numpy((cr_dtype)i), *code = cr_dtype_code((cr_dtype)i);
        const bool unknown = i == CR_BF16 || i > CR_F64;
        ck_assert_int_eq(name == NULL, unknown);
        ck_assert_int_eq(code == NULL, unknown);
        if (name == NULL) continue;
        ck_assert_int_eq(cr_dtype_parse(name, &dtype, NULL), CR_OK);
        ck_assert_int_eq(dtype, i);
        ck_assert_int_eq(cr_dtype_of_code(code), i);
    }
    ck_assert_int_eq(cr_dtype_of_code(""), CR_DTYPE_NONE);
    ck_assert_int_eq(cr_dtype_of_code("V2"), CR_DTYPE_NONE);
    ck_assert_ptr_null(cr_dtype_numpy(CR_I128));
    ck_assert_ptr_null(cr_dtype_numpy(CR_DTYPE_NONE));
}
END_TEST

START_TEST(refusals_name_what_was_asked) {
    cr_dtype dtype = CR_DTYPE_NONE;
    cr_error error;
    ck_assert_int_eq(cr_dtype_parse("complex64", &dtype, &error), CR_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(error.text, "complex64"));
    ck_assert_int_eq(cr_dtype_parse("float8_e4m3", &dtype, &error), CR_UNIMPLEMENTED);
    ck_assert_int_eq(cr_dtype_parse("f33", &dtype, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "f33"));
    ck_assert_int_eq(cr_dtype_parse("", &dtype, NULL), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(dtype, CR_DTYPE_NONE);
}
END_TEST

START_TEST(sizes_and_kinds) {
    ck_assert_uint_eq(cr_dtype_size(CR_BF16), 2);
    ck_assert_uint_eq(cr_dtype_size(CR_F64), 8);
    ck_assert_uint_eq(cr_dtype_size(CR_I128), 16);
    ck_assert_uint_eq(cr_dtype_size(CR_BIGINT), 0);
    ck_assert_uint_eq(cr_dtype_size((cr_dtype)99), 0);
    ck_assert_int_eq(cr_dtype_kind(CR_U16), CR_KIND_UINT);
    ck_assert_int_eq(cr_dtype_kind(CR_BOOL), CR_KIND_BOOL);
    ck_assert_int_eq(cr_dtype_kind(CR_DTYPE_NONE), CR_KIND_NONE);
    ck_assert(!cr_dtype_is_input(CR_I128) && !cr_dtype_is_input(CR_DTYPE_NONE) && !cr_dtype_is_input((cr_dtype)-1));
}
END_TEST

CR_CHECK_MAIN("kernels/dtype") {
    tcase_add_test(tc, every_name_parses_to_its_type);
    tcase_add_test(tc, safetensors_names);
    tcase_add_test(tc, other_names);
    tcase_add_test(tc, numpy);
    tcase_add_test(tc, refusals_name_what_was_asked);
    tcase_add_test(tc, sizes_and_kinds);
}
