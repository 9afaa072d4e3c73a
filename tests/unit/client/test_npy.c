/* .npy headers: what NumPy writes, what it may write, and what nobody should. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"
#include "tests/unit/check_main.h"

static cured_error error;

/* A header of that version around `text`; its length. */
static size_t header(uint8_t *out, int version, const char *text) {
    size_t n = strlen(text), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++) out[i] = (uint8_t)(n >> (i - 8) * 8);
    memcpy(out + prefix, text, n);
    return prefix + n;
}

static cured_status parse(int version, const char *text, npy_header *h) {
    uint8_t bytes[4096];
    size_t n = header(bytes, version, text), need;
    uint8_t *exact = malloc(n); /* so that a read beyond is seen */
    memcpy(exact, bytes, n);
    cured_status s = npy_parse(exact, n, h, &need, &error);
    if (s == CURED_OK) ck_assert_uint_eq(need, n);
    free(exact);
    return s;
}

static const struct good {
    const char *text;
    cured_dtype dtype;
    uint64_t count;
    bool fortran;
} goods[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }          \n", CURED_F32, 3, false},
    {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }\n", CURED_F64, 12, true},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", CURED_U8, 1, false},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }\n", CURED_BOOL, 0, false},
    {"{'descr': '|i1', 'fortran_order': False, 'shape': (1099511627776, 1099511627776, 0), }\n", CURED_I8, 0, false},
    {"{'descr': '=i2', 'fortran_order': False, 'shape': (2, 2, 2), }\n", CURED_I16, 8, false},
    {"{'descr': '>u1', 'fortran_order': False, 'shape': (2,), }\n", CURED_U8, 2, false},
    {"{\"descr\":\"<u8\",\"shape\":(5L,),\"fortran_order\":False}", CURED_U64, 5, false},
    {"{'shape': (2,3), 'descr': '<f2', 'fortran_order': False}", CURED_F16, 6, false},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (7,), }\n", CURED_DTYPE_DEFAULT, 7, false},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }\n", CURED_F32, 3, false},
};

START_TEST(accepted) {
    const struct good *g = &goods[_i];
    for (int version = 1; version <= 3; version++) {
        npy_header h;
        ck_assert_msg(parse(version, g->text, &h) == CURED_OK, "%s: %s", g->text, error.text);
        ck_assert_int_eq(h.dtype, g->dtype);
        ck_assert_uint_eq(h.count, g->count);
        ck_assert_int_eq(h.fortran_order, g->fortran);
        ck_assert_int_eq(h.big_endian, strchr(g->text, '>') != NULL && strstr(g->text, "u1") == NULL);
        ck_assert_uint_eq(h.data_offset, (version == 1 ? 10 : 12) + strlen(g->text));
    }
}
END_TEST

static const struct bad {
    const char *text;
    cured_status code;
    const char *says;
} bads[] = {
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED, "complex"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED, "objects"},
    {"{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED, "strings"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED, "dates"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED, "floats"},
    {"{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,), }", CURED_UNIMPLEMENTED,
     "structures"},
    {"{'descr': '<x4', 'fortran_order': False, 'shape': (3,), }", CURED_INVALID_ARGUMENT, "<x4"},
    {"{'descr': '', 'fortran_order': False, 'shape': (3,), }", CURED_INVALID_ARGUMENT, "dtype"},
    {"{'descr': '<', 'fortran_order': False, 'shape': (3,), }", CURED_INVALID_ARGUMENT, "dtype"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", CURED_INVALID_ARGUMENT, "key other"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", CURED_INVALID_ARGUMENT, "twice"},
    {"{'descr': '<f4', 'fortran_order': False}", CURED_INVALID_ARGUMENT, "missing"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", CURED_INVALID_ARGUMENT, "fortran_order"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", CURED_INVALID_ARGUMENT, "follows"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", CURED_INVALID_ARGUMENT, "tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", CURED_INVALID_ARGUMENT, "dimension"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", CURED_INVALID_ARGUMENT, "comma"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", CURED_INVALID_ARGUMENT, "dimension"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", CURED_INVALID_ARGUMENT, "2^63"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 2)}", CURED_INVALID_ARGUMENT, "elements"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", CURED_INVALID_ARGUMENT, "elements"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", CURED_INVALID_ARGUMENT, "shape"},
    {"", CURED_INVALID_ARGUMENT, "dictionary"},
    {"{", CURED_INVALID_ARGUMENT, "key"},
    {"{'descr", CURED_INVALID_ARGUMENT, "key"},
    {"{'de\\x73cr': '<f4'}", CURED_INVALID_ARGUMENT, "key"},
    {"{'descr': '<f4\033[31m', 'fortran_order': False, 'shape': (3,)}", CURED_INVALID_ARGUMENT, "short string"},
};

START_TEST(refused) {
    npy_header h = {.count = 4711};
    cured_status s = parse(1 + _i % 3, bads[_i].text, &h);
    ck_assert_msg(s == bads[_i].code, "%s: %s", bads[_i].text, cured_status_name(s));
    ck_assert_msg(strstr(error.text, bads[_i].says) != NULL, "'%s' does not say '%s'", error.text, bads[_i].says);
    ck_assert_uint_eq(h.count, 4711);
}
END_TEST

START_TEST(dimensions) {
    char text[1024];
    npy_header h;
    for (int dims = 63; dims <= 65; dims++) {
        strcpy(text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
        for (int i = 0; i < dims; i++) strcat(text, i == 40 ? "2, " : "1, ");
        strcat(text, ")}");
        ck_assert_int_eq(parse(1, text, &h), dims <= NPY_MAX_DIMS ? CURED_OK : CURED_INVALID_ARGUMENT);
        if (dims <= NPY_MAX_DIMS) ck_assert(h.dims == (uint32_t)dims && h.count == 2);
    }
}
END_TEST

/* Fed piece by piece, the parser says how much more it wants, and never wants too much. */
START_TEST(needs) {
    uint8_t bytes[256];
    npy_header h;
    size_t need;
    for (int version = 1; version <= 3; version++) {
        size_t n = header(bytes, version, goods[0].text);
        for (size_t len = 0; len < n; len++) {
            ck_assert_int_eq(npy_parse(bytes, len, &h, &need, &error), CURED_OK);
            ck_assert(need > len && need <= n);
        }
    }
    memcpy(bytes, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    ck_assert_int_eq(npy_parse(bytes, 12, &h, &need, &error), CURED_INVALID_ARGUMENT);
    memcpy(bytes, "\x93NUMPY\x01\x00\xff\xff", 10);
    ck_assert_int_eq(npy_parse(bytes, 10, &h, &need, &error), CURED_INVALID_ARGUMENT);
    bytes[6] = 4;
    ck_assert_int_eq(npy_parse(bytes, 12, &h, &need, &error), CURED_UNIMPLEMENTED);
    bytes[0] = 'X';
    ck_assert_int_eq(npy_parse(bytes, 12, &h, &need, &error), CURED_INVALID_ARGUMENT);
    ck_assert(!npy_is((const uint8_t *)"\x93NUMP", 5));
}
END_TEST

/* The header as NumPy's format has it, and each dtype read back. */
START_TEST(written) {
    static const char want[] = "\x93NUMPY\1\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    uint8_t out[NPY_MAX_WRITTEN];
    uint64_t shape[NPY_MAX_DIMS + 1];
    npy_header h;
    size_t need, n = npy_write(out, CURED_F64, false, 2, (uint64_t[]){2, 3});
    ck_assert_uint_eq(n, 128);
    ck_assert_mem_eq(out, want, sizeof want - 1);
    for (size_t i = sizeof want - 1; i < n; i++) ck_assert_uint_eq(out[i], i + 1 < n ? ' ' : '\n');
    for (int dims = 0; dims <= NPY_MAX_DIMS; dims++) {
        for (int d = CURED_BOOL; d <= CURED_F8_E5M2; d++) {
            if (d == CURED_I128 || d == CURED_BIGINT) continue;
            for (int i = 0; i < dims; i++) shape[i] = i == 1 ? (uint64_t)INT64_MAX : i == 0 && dims > 1 ? 0 : 7;
            n = npy_write(out, (cured_dtype)d, d % 2, (uint32_t)dims, shape);
            ck_assert(n != 0 && n % 64 == 0);
            ck_assert_msg(npy_parse(out, n, &h, &need, &error) == CURED_OK, "%s", error.text);
            ck_assert(need == n && h.dims == (uint32_t)dims && h.fortran_order == d % 2);
            ck_assert_int_eq(h.dtype, d == CURED_BF16 || d == CURED_F8_E4M3 ? CURED_DTYPE_DEFAULT : (cured_dtype)d);
            if (dims != 0) ck_assert_mem_eq(h.shape, shape, (size_t)dims * sizeof shape[0]);
        }
    }
    for (int i = 0; i < NPY_MAX_DIMS; i++) shape[i] = INT64_MAX; /* the longest */
    n = npy_write(out, CURED_F64, true, NPY_MAX_DIMS, shape);
    ck_assert(n != 0 && n <= sizeof out);
    ck_assert_uint_eq(npy_write(out, CURED_I128, false, 0, shape), 0);
    ck_assert_uint_eq(npy_write(out, CURED_BIGINT, false, 0, shape), 0);
    ck_assert_uint_eq(npy_write(out, CURED_DIGEST, true, NPY_MAX_DIMS, shape) % 64, 0);
    ck_assert_uint_eq(npy_write(out, CURED_DTYPE_DEFAULT, false, 0, shape), 0);
    ck_assert_uint_eq(npy_write(out, CURED_F32, false, NPY_MAX_DIMS + 1, shape), 0);
}
END_TEST

CR_CHECK_MAIN("npy") {
    tcase_add_loop_test(tc, accepted, 0, sizeof goods / sizeof goods[0]);
    tcase_add_loop_test(tc, refused, 0, sizeof bads / sizeof bads[0]);
    tcase_add_test(tc, dimensions);
    tcase_add_test(tc, needs);
    tcase_add_test(tc, written);
}
