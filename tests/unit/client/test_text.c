/* Values as text, numbers and hex: known cases, and reading back for whole types and many random values. */
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/value.h"
#include "tests/unit/check_main.h"

#define TEXT(dtype, type, value, want)                                                \
    do {                                                                              \
        type v_ = (type)(value);                                                      \
        char t_[CURED_TEXT_BYTES];                                                    \
        ck_assert_int_eq(cured_text(dtype, &v_, sizeof v_, t_, sizeof t_), CURED_OK); \
        ck_assert_str_eq(t_, want);                                                   \
    } while (0)

START_TEST(known_values) {
    TEXT(CURED_F64, double, 0.1, "0.1");
    TEXT(CURED_F64, double, 1.0 / 3, "0.3333333333333333");
    TEXT(CURED_F64, double, 5e-324, "5e-324");
    TEXT(CURED_F64, double, 1.7976931348623157e308, "1.7976931348623157e+308");
    TEXT(CURED_F64, double, -0.0, "-0");
    TEXT(CURED_F64, double, 0.0, "0");
    TEXT(CURED_F64, double, 123456789, "123456789");
    TEXT(CURED_F64, double, (double)INFINITY, "inf");
    TEXT(CURED_F64, double, -(double)INFINITY, "-inf");
    TEXT(CURED_F64, double, (double)NAN, "nan");
    TEXT(CURED_F64, double, -(double)NAN, "nan");
    TEXT(CURED_F32, float, 0.1f, "0.1");
    TEXT(CURED_F32, float, 16777216.0f, "16777216");
    TEXT(CURED_F32, float, 3.4028234663852886e38f, "3.4028235e+38");
    TEXT(CURED_F16, uint16_t, 0x2e66, "0.1");
    TEXT(CURED_F16, uint16_t, 0x7bff, "65504");
    TEXT(CURED_F64, double, 100, "100");
    TEXT(CURED_F64, double, 1e15, "1000000000000000");
    TEXT(CURED_F64, double, 1e16, "1e+16");
    TEXT(CURED_F64, double, 0.0001, "0.0001");
    TEXT(CURED_F64, double, 0.00001234, "1.234e-05");
    TEXT(CURED_F64, double, -1234.5, "-1234.5");
    TEXT(CURED_F16, uint16_t, 0x0001, "6e-08");
    TEXT(CURED_F16, uint16_t, 0x7c00, "inf");
    TEXT(CURED_F16, uint16_t, 0xfc00, "-inf");
    TEXT(CURED_F16, uint16_t, 0x7e00, "nan");
    TEXT(CURED_BF16, uint16_t, 0x3dcd, "0.1");
    TEXT(CURED_BF16, uint16_t, 0x7f7f, "3.39e+38");
    TEXT(CURED_BF16, uint16_t, 0x8000, "-0");
    TEXT(CURED_BOOL, uint8_t, 0, "false");
    TEXT(CURED_BOOL, uint8_t, 2, "true");
    TEXT(CURED_U8, uint8_t, 255, "255");
    TEXT(CURED_I8, int8_t, -128, "-128");
    TEXT(CURED_U16, uint16_t, 65535, "65535");
    TEXT(CURED_I16, int16_t, -32768, "-32768");
    TEXT(CURED_U32, uint32_t, UINT32_MAX, "4294967295");
    TEXT(CURED_I32, int32_t, INT32_MIN, "-2147483648");
    TEXT(CURED_U64, uint64_t, UINT64_MAX, "18446744073709551615");
    TEXT(CURED_I64, int64_t, INT64_MIN, "-9223372036854775808");
    TEXT(CURED_I64, int64_t, 1000000000, "1000000000");
    TEXT(CURED_I64, int64_t, 0, "0");
}
END_TEST

static void wide(const char *want, size_t len, const uint8_t *bytes) {
    char text[CURED_TEXT_BYTES];
    ck_assert_int_eq(cured_text(len == 16 ? CURED_I128 : CURED_BIGINT, bytes, len, text, sizeof text), CURED_OK);
    ck_assert_str_eq(text, want);
}

START_TEST(wide_integers) {
    uint8_t b[32] = {0};
    b[8] = 1;
    wide("18446744073709551616", 9, b);
    memset(b, 0xff, sizeof b);
    wide("-1", 16, b);
    wide("-1", 32, b);
    b[31] = 0x7f; /* 2^255 - 1 */
    wide("57896044618658097711785492504343953926634992332820282019728792003956564819967", 32, b);
    memset(b, 0, sizeof b);
    b[31] = 0x80; /* -2^255 */
    wide("-57896044618658097711785492504343953926634992332820282019728792003956564819968", 32, b);
    memset(b, 0, sizeof b);
    b[15] = 0x80;
    wide("-170141183460469231731687303715884105728", 16, b);
    wide("170141183460469231731687303715884105728", 17, b);
}
END_TEST

/* All values of the 16-bit types read back through an independent decoder. */
static double half_value(uint16_t bits) {
    int e = bits >> 10 & 31, m = bits & 1023;
    double v = e == 0 ? m * exp2(-24) : (1 + m / 1024.0) * exp2(e - 15);
    return bits & 0x8000 ? -v : v;
}

static double brain_value(uint16_t bits) {
    uint32_t wide_bits = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide_bits, sizeof v);
    return (double)v;
}

static void reads_back16(cured_dtype dtype, double (*value)(uint16_t), uint16_t exponent_mask) {
    for (uint32_t i = 0; i <= UINT16_MAX; i++) {
        uint16_t bits = (uint16_t)i;
        char text[CURED_TEXT_BYTES];
        if ((bits & exponent_mask) == exponent_mask) continue;
        ck_assert_int_eq(cured_text(dtype, &bits, 2, text, sizeof text), CURED_OK);
        double read = strtod(text, NULL), exact = value(bits);
        ck_assert_int_eq(signbit(read) != 0, bits >> 15);
        /* nearer to this value than to its neighbours */
        for (int step = -1; step <= 1; step += 2) {
            uint16_t other = (uint16_t)(bits + step);
            if ((bits & 0x7fff) == 0 || (other & exponent_mask) == exponent_mask || (other ^ bits) >> 15) continue;
            ck_assert_msg(fabs(read - exact) <= fabs(read - value(other)), "%s is not 0x%04x", text, bits);
        }
    }
}

START_TEST(all_halves_read_back) {
    reads_back16(CURED_F16, half_value, 0x7c00);
    reads_back16(CURED_BF16, brain_value, 0x7f80);
}
END_TEST

START_TEST(random_floats_read_back) {
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        char text[CURED_TEXT_BYTES], shorter[400];
        double d;
        float s;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(&d, &x, sizeof d);
        uint32_t low = (uint32_t)x;
        memcpy(&s, &low, sizeof s);
        if (isfinite(d)) {
            ck_assert_int_eq(cured_text(CURED_F64, &d, sizeof d, text, sizeof text), CURED_OK);
            ck_assert(strtod(text, NULL) == d);
        }
        if (isfinite(s)) {
            ck_assert_int_eq(cured_text(CURED_F32, &s, sizeof s, text, sizeof text), CURED_OK);
            ck_assert(strtof(text, NULL) == s);
            int digits = 0; /* one digit fewer is not enough */
            for (const char *p = text; *p != '\0' && *p != 'e'; p++)
                digits += *p >= '0' && *p <= '9' && (digits || *p > '0');
            if (digits > 1 && text[strlen(text) - 1] != '0' && strchr(text, '.') != NULL) {
                snprintf(shorter, sizeof shorter, "%.*g", digits - 1, (double)s);
                ck_assert_msg(strtof(shorter, NULL) != s, "%s is as good as %s", shorter, text);
            }
        }
    }
}
END_TEST

/* Below a power of two floats lie twice as close as above it, so the fewest digits may be those above the value, not the nearest. */
START_TEST(powers_of_two_have_the_fewest_digits) {
    static const struct {
        cured_dtype dtype;
        int power;
        const char *text;
    } cases[] = {
        {CURED_F64, -957, "8.209073602596753e-289"},
        {CURED_F64, -788, "6.142758149716505e-238"},
        {CURED_F64, -489, "6.256509672447191e-148"},
        {CURED_F64, 122, "5.316911983139664e+36"},
        {CURED_F64, 863, "6.150157786156811e+259"},
        {CURED_F32, -96, "1.2621775e-29"},
        {CURED_F32, 87, "1.5474251e+26"},
        {CURED_F32, 90, "1.2379401e+27"},
        {CURED_F64, -1074, "5e-324"},
        {CURED_F64, 0, "1"},
        {CURED_F64, 60, "1.152921504606847e+18"},
        {CURED_F32, 30, "1073741824"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[CURED_TEXT_BYTES];
        const double d = ldexp(1, cases[i].power);
        const float f = (float)d;
        const bool wide = cases[i].dtype == CURED_F64;
        ck_assert_int_eq(cured_text(cases[i].dtype, wide ? (const void *)&d : &f, wide ? 8 : 4, text, sizeof text),
                         CURED_OK);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

START_TEST(sizes_must_belong) {
    char text[CURED_TEXT_BYTES];
    uint64_t v = 0;
    ck_assert_int_eq(cured_text(CURED_F64, &v, 4, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_U8, &v, 0, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_BIGINT, &v, 33, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_BIGINT, &v, 0, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_DTYPE_DEFAULT, &v, 8, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text((cured_dtype)99, &v, 8, text, sizeof text), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_U64, &v, 8, text, 1), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_text(CURED_U64, &v, 8, text, 2), CURED_OK);
}
END_TEST

static cured_value make(cured_dtype dtype, size_t len, const void *bytes) {
    cured_value v = {.op = CURED_OP_SUM, .dtype = (uint8_t)dtype, .len = (uint8_t)len};
    memcpy(v.bytes, bytes, len);
    return v;
}

START_TEST(as_numbers) {
    int64_t i;
    uint64_t u;
    double d;
    int64_t minus = -5;
    cured_value v = make(CURED_I64, 8, &minus);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OK);
    ck_assert_int_eq(i, -5);
    ck_assert_int_eq(cured_value_uint64(&v, &u), CURED_OUT_OF_RANGE);
    ck_assert_int_eq(cured_value_double(&v, &d), CURED_OK);
    ck_assert(d == -5);
    uint64_t big = UINT64_MAX;
    v = make(CURED_U64, 8, &big);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OUT_OF_RANGE);
    ck_assert_int_eq(cured_value_uint64(&v, &u), CURED_OK);
    ck_assert_uint_eq(u, big);
    ck_assert_int_eq(cured_value_double(&v, &d), CURED_OUT_OF_RANGE);
    ck_assert(d == 0x1p64);
    int8_t small = -1;
    v = make(CURED_I8, 1, &small);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OK);
    ck_assert_int_eq(i, -1);
    uint8_t bytes[32];
    memset(bytes, 0xff, sizeof bytes);
    v = make(CURED_BIGINT, 32, bytes);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OK);
    ck_assert_int_eq(i, -1);
    bytes[17] = 0xfe;
    v = make(CURED_BIGINT, 32, bytes);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OUT_OF_RANGE);
    memset(bytes, 0, sizeof bytes);
    bytes[15] = 0x80; /* 2^127 in 17 bytes: not the negative number of 16 */
    v = make(CURED_BIGINT, 17, bytes);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_OUT_OF_RANGE);
    ck_assert_int_eq(cured_value_double(&v, &d), CURED_OK);
    ck_assert(d == 0x1p127);
    uint8_t yes = 1;
    v = make(CURED_BOOL, 1, &yes);
    ck_assert_int_eq(cured_value_uint64(&v, &u), CURED_OK);
    ck_assert_uint_eq(u, 1);
    double half = 0.5;
    char text[CURED_TEXT_BYTES];
    v = make(CURED_F64, 8, &half);
    ck_assert_int_eq(cured_value_int64(&v, &i), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_value_hex(&v, text, sizeof text), CURED_OK);
    ck_assert_str_eq(text, "0x1p-1");
    v.status = CR_OUT_OF_RANGE;
    ck_assert_int_eq(cured_value_double(&v, &d), CURED_OUT_OF_RANGE);
    ck_assert_int_eq(cured_value_text(&v, text, sizeof text), CURED_OUT_OF_RANGE);
}
END_TEST

START_TEST(any_locale) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) found = setlocale(LC_ALL, names[i]) != NULL;
    if (!found) fprintf(stderr, "any_locale: no locale with a decimal comma is installed; only \"C\" was tried\n");
    TEXT(CURED_F64, double, 0.1, "0.1");
    TEXT(CURED_F32, float, -1.5e-7f, "-1.5e-07");
    TEXT(CURED_F16, uint16_t, 0x2e66, "0.1");
}
END_TEST

START_TEST(names) {
    ck_assert_str_eq(cured_version(), CURED_VERSION);
    ck_assert_str_eq(cured_status_name(CURED_DATA_LOSS), "DATA_LOSS");
    ck_assert_ptr_null(cured_status_name((cured_status)17));
    ck_assert_str_eq(cured_dtype_name(CURED_BF16), "bf16");
    ck_assert_str_eq(cured_dtype_name(CURED_BIGINT), "int");
    ck_assert_ptr_null(cured_dtype_name((cured_dtype)0));
    ck_assert_str_eq(cured_op_name(CURED_OP_COUNT_NAN), "count_nan");
    ck_assert_ptr_null(cured_op_name((cured_op)0));
    ck_assert_ptr_null(cured_op_name((cured_op)63));
    ck_assert_uint_eq(cured_dtype_size(CURED_I128), 16);
    ck_assert_uint_eq(cured_dtype_size(CURED_BIGINT), 0);
    size_t n = 0;
    for (; cured_op_list(n) != NULL; n++) {
        cured_op op;
        ck_assert_int_eq(cured_op_parse(cured_op_list(n), &op, NULL), CURED_OK);
        ck_assert_str_eq(cured_op_name(op), cured_op_list(n));
    }
    ck_assert_uint_ge(n, 21);
    cured_dtype d;
    cured_error e;
    ck_assert_int_eq(cured_dtype_parse("float32", &d, NULL), CURED_OK);
    ck_assert_int_eq(d, CURED_F32);
    ck_assert_int_eq(cured_dtype_parse("complex64", &d, &e), CURED_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(e.text, "complex64"));
}
END_TEST

CR_CHECK_MAIN("text") {
    tcase_add_test(tc, known_values);
    tcase_add_test(tc, wide_integers);
    tcase_add_test(tc, all_halves_read_back);
    tcase_add_test(tc, random_floats_read_back);
    tcase_add_test(tc, powers_of_two_have_the_fewest_digits);
    tcase_add_test(tc, sizes_must_belong);
    tcase_add_test(tc, as_numbers);
    tcase_add_test(tc, any_locale);
    tcase_add_test(tc, names);
}
