/* widen: the partial of elements in a narrow type, widened, is that of the same elements in the wide one: every pair of types, all families
 * but products of floats. And which type is common to which.
 *
 * Thread: main. */
#include <check.h>
#include <string.h>

#include "kernels/core/round.h"
#include "kernels/core/serial.h"
#include "kernels/core/widen.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 3000, TYPES = CR_DTYPE_INPUTS + 1 };

static uint64_t state = 88172645463325252u;
static cr_share share;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static bool is_float(cr_dtype dtype) { return cr_dtype_kind(dtype) == CR_KIND_FLOAT; }

/* The element as C casts it. */
static uint64_t cast(cr_dtype dtype, cr_dtype wide, uint64_t bits) {
    const unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    if (dtype == wide) return bits;
    if (is_float(dtype)) {
        const double value = cr_float_value(dtype, bits);
        const float narrow = (float)value;
        uint32_t as_float;
        uint64_t as_double;
        memcpy(&as_float, &narrow, sizeof narrow);
        memcpy(&as_double, &value, sizeof value);
        return wide == CR_F64 ? as_double : as_float;
    }
    return cr_dtype_kind(dtype) == CR_KIND_SINT ? (uint64_t)((int64_t)(bits << (64 - width)) >> (64 - width)) : bits;
}

static size_t packed(const cr_partial *p, uint64_t base, uint8_t *out) {
    cr_error e = {CR_OK, ""};
    ck_assert_msg(cr_share_make(&share, p, base, &e) == CR_OK, "%s", e.text);
    const size_t bytes = cr_share_pack(&share, out, CR_SERIAL_MAX_BYTES);
    ck_assert_msg(cr_share_unpack(out, bytes, &share, &e) == CR_OK, "%s", e.text);
    return bytes;
}

static void same(cr_dtype dtype, cr_dtype wide, size_t n, int kind) {
    static uint8_t x[8 * LONGEST], y[8 * LONGEST], a[CR_SERIAL_MAX_BYTES], b[CR_SERIAL_MAX_BYTES];
    static cr_partial narrow, whole;
    const uint32_t placed = CR_FAM_DIGEST | (is_float(dtype) ? CR_FAM_BITS | CR_FAM_PROD : 0); /* not widened */
    const uint32_t families = CR_FAM_SINGLE & ~placed;
    const size_t size = cr_dtype_size(dtype);
    cr_error e = {CR_OK, ""};
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = dtype == CR_BOOL ? draw() & 1 : kind == 0 ? draw() : draw() & draw() & draw();
        if (kind == 2 && i % 3 != 0) bits = 0;
        memcpy(x + i * size, &bits, size);
        bits = 0;
        memcpy(&bits, x + i * size, size);
        bits = cast(dtype, wide, bits);
        memcpy(y + i * cr_dtype_size(wide), &bits, cr_dtype_size(wide));
    }
    cr_partial_init(&narrow, dtype, families);
    cr_partial_init(&whole, wide, families);
    cr_cpu_fold(&narrow, x, n, 77);
    cr_cpu_fold(&whole, y, n, 77);
    if (kind != 0) { /* one that was sent */
        packed(&narrow, 77, a);
        narrow = share.partial;
    }
    ck_assert_int_eq(cr_partial_widen(&narrow, wide, &e), CR_OK);
    const size_t bytes = packed(&whole, 77, b);
    const size_t got = packed(&narrow, 77, a);
    ck_assert_msg(got == bytes, "%s to %s, %zu elements of kind %d: %zu and %zu bytes", cr_dtype_name(dtype),
                  cr_dtype_name(wide), n, kind, got, bytes);
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s to %s, %zu elements of kind %d", cr_dtype_name(dtype),
                  cr_dtype_name(wide), n, kind);
}

START_TEST(every_pair) {
    for (int dtype = 1; dtype < TYPES; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        for (int wide = 1; wide < TYPES; wide++) {
            cr_dtype common = CR_DTYPE_NONE;
            cr_error e;
            if (cr_widen_common(1u << dtype | 1u << wide, &common, &e) != CR_OK || common != (cr_dtype)wide) continue;
            for (int round = 0; round < 30; round++)
                same((cr_dtype)dtype, (cr_dtype)wide, (size_t[]){0, 1, 3, 100, LONGEST}[round % 5], round % 3);
        }
    }
}
END_TEST

START_TEST(what_is_common) {
    static const struct {
        uint32_t types;
        cr_dtype wide;
    } rows[] = {
        {1u << CR_F16, CR_F16},
        {1u << CR_F16 | 1u << CR_BF16, CR_F32},
        {1u << CR_BF16 | 1u << CR_F32, CR_F32},
        {1u << CR_BF16 | 1u << CR_F64, CR_F64},
        {1u << CR_BOOL | 1u << CR_U8, CR_U8},
        {1u << CR_BOOL | 1u << CR_I8, CR_I8},
        {1u << CR_U8 | 1u << CR_I8, CR_I16},
        {1u << CR_U16 | 1u << CR_I8, CR_I32},
        {1u << CR_U32 | 1u << CR_I64, CR_I64},
        {1u << CR_BOOL | 1u << CR_U64, CR_U64},
        {1u << CR_U64 | 1u << CR_I8, CR_DTYPE_NONE},
        {1u << CR_U8 | 1u << CR_F64, CR_DTYPE_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_dtype wide = CR_DTYPE_NONE;
        cr_error e = {CR_OK, ""};
        const cr_status status = cr_widen_common(rows[i].types, &wide, &e);
        ck_assert_int_eq(status, rows[i].wide != CR_DTYPE_NONE ? CR_OK : CR_INVALID_ARGUMENT);
        if (status == CR_OK) ck_assert_int_eq(wide, rows[i].wide);
    }
}
END_TEST

START_TEST(products_of_floats) {
    static cr_partial p;
    cr_error e = {CR_OK, ""};
    cr_partial_init(&p, CR_F32, CR_FAM_PROD);
    ck_assert_int_eq(cr_partial_widen(&p, CR_F32, &e), CR_OK);
    ck_assert_int_eq(cr_partial_widen(&p, CR_F64, &e), CR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(e.text, "cast the arrays to f64") != NULL, "%s", e.text);
}
END_TEST

CR_CHECK_MAIN("widen") {
    tcase_add_test(tc, every_pair);
    tcase_add_test(tc, what_is_common);
    tcase_add_test(tc, products_of_floats);
}
