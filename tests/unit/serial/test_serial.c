/* kernels/core/serial: one state, one byte string (golden/, written by hand from docs/PARTIALS.md), whatever was cut and merged
 * how, and a sentence for everything that is not such a string. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/protocol/hex.h"
#include "tests/unit/check_main.h"

enum {
    CAP = CR_SERIAL_MAX_BYTES,
    SUMS = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ,
    MOST = SUMS | CR_FAM_EXTREMA | CR_FAM_COUNTS,
};

static cr_share a, b;
static cr_error error;

static void fold(cr_share *share, cr_dtype dtype, uint32_t families, const void *data, uint64_t n, uint64_t base) {
    cr_partial p;
    cr_partial_init(&p, dtype, families);
    cr_cpu_fold(&p, data, n, base == CR_UNPLACED ? 7 : base);
    ck_assert_msg(cr_share_make(share, &p, base, &error) == CR_OK, "%s", error.text);
}

/* ---- golden ---- */

static const uint8_t u8s[] = {1, 2};
static const int64_t i64s[] = {INT64_MIN, INT64_MIN, -5};
static const float f32s[] = {1, -0.0f, NAN, INFINITY, 3.5f, -1};
static const double f64s[] = {0x1p-1074, 0x1p1023};
static const uint8_t bools[] = {0, 7, 1};

static const struct golden {
    const char *name;
    cr_dtype dtype;
    uint32_t families;
    const void *data;
    uint64_t n, base;
} goldens[] = {
    {"u8-sum-extrema", CR_U8, CR_FAM_SUM | CR_FAM_EXTREMA, u8s, 2, 0},
    {"i64-sum-bits", CR_I64, CR_FAM_SUM | CR_FAM_BITS, i64s, 3, UINT64_C(1) << 40},
    {"f32-all", CR_F32, MOST, f32s, 6, 10},
    {"f64-sum", CR_F64, CR_FAM_SUM, f64s, 2, 0},
    {"bool-counts-bits", CR_BOOL, CR_FAM_COUNTS | CR_FAM_BITS, bools, 3, 0},
    {"u16-empty", CR_U16, MOST | CR_FAM_BITS, NULL, 0, 0},
    {"f32-unplaced", CR_F32, MOST, f32s, 6, CR_UNPLACED},
};
enum { GOLDENS = sizeof goldens / sizeof goldens[0] };

static void check_bytes(const cr_share *share, const uint8_t *want, size_t len) {
    static uint8_t got[CAP];
    ck_assert_uint_eq(cr_share_pack(share, got, sizeof got), len);
    ck_assert_mem_eq(got, want, len);
    for (size_t cap = 0; cap < len; cap++) ck_assert_uint_eq(cr_share_pack(share, got, cap), 0);
}

START_TEST(golden) {
    const struct golden *g = &goldens[_i];
    uint8_t want[1024];
    size_t len = hex_read(g->name, want, sizeof want);
    fold(&a, g->dtype, g->families, g->data, g->n, g->base);
    check_bytes(&a, want, len);
    memset(&b, 0xa5, sizeof b);
    ck_assert_msg(cr_share_unpack(want, len, &b, &error) == CR_OK, "%s", error.text);
    check_bytes(&b, want, len);
    /* each element apart, the last first */
    size_t size = cr_dtype_size(g->dtype);
    fold(&a, g->dtype, g->families, NULL, 0, g->base == CR_UNPLACED ? CR_UNPLACED : 0);
    for (uint64_t i = g->n; i-- > 0;) {
        fold(&b, g->dtype, g->families, (const uint8_t *)g->data + i * size, 1,
             g->base == CR_UNPLACED ? CR_UNPLACED : g->base + i);
        ck_assert_msg(cr_share_merge(&a, &b, &error) == CR_OK, "%s", error.text);
    }
    check_bytes(&a, want, len);
}
END_TEST

START_TEST(golden_gap) {
    const int8_t left[] = {-1, 4}, right[] = {9};
    uint8_t want[256];
    size_t len = hex_read("i8-gap", want, sizeof want);
    for (int order = 0; order < 2; order++) {
        fold(order ? &b : &a, CR_I8, CR_FAM_EXTREMA, left, 2, 0);
        fold(order ? &a : &b, CR_I8, CR_FAM_EXTREMA, right, 1, 5);
        ck_assert_int_eq(cr_share_merge(&a, &b, &error), CR_OK);
        check_bytes(&a, want, len);
    }
    ck_assert_int_eq(cr_share_unpack(want, len, &b, &error), CR_OK);
    check_bytes(&b, want, len);
}
END_TEST

/* ---- canonical ---- */

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Random bits, some of them small numbers, so that sums cancel. */
static void fill(uint8_t *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)(next() >> 24);
    if (next() % 3 == 0)
        for (size_t i = 0; i < bytes; i += 1 + next() % 8) data[i] = 0;
}

START_TEST(any_cut_any_order) {
    enum { MAX = 300, PIECES = 8 };
    static cr_share pieces[PIECES];
    static uint8_t data[MAX * 8], want[CAP];
    cr_dtype dtype = (cr_dtype)_i;
    size_t size = cr_dtype_size(dtype);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    for (int turn = 0; turn < 60; turn++) {
        uint32_t families = (uint32_t)next() & (floats ? MOST : MOST | CR_FAM_BITS);
        uint64_t n = next() % (MAX + 1), base = next() % 3 == 0 ? 0 : next() >> 2, at = 0;
        uint32_t count = 1 + next() % PIECES;
        fill(data, n * size);
        fold(&a, dtype, families, data, n, base);
        size_t len = cr_share_pack(&a, want, sizeof want);
        ck_assert_uint_ne(len, 0);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t end = i + 1 == count ? n : at + next() % (n - at + 1);
            fold(&pieces[i], dtype, families, data + at * size, end - at, base + at);
            at = end;
        }
        while (count > 1) { /* two random ones become one, sometimes by way of bytes */
            uint32_t i = (uint32_t)(next() % count), j = (uint32_t)(next() % (count - 1));
            static uint8_t bytes[CAP];
            if (j >= i) j++;
            if (next() % 2) {
                size_t k = cr_share_pack(&pieces[j], bytes, sizeof bytes);
                ck_assert_msg(cr_share_unpack(bytes, k, &pieces[j], &error) == CR_OK, "%s", error.text);
            }
            ck_assert_msg(cr_share_merge(&pieces[i], &pieces[j], &error) == CR_OK, "%s", error.text);
            pieces[j] = pieces[--count];
        }
        check_bytes(&pieces[0], want, len);
    }
}
END_TEST

START_TEST(unplaced_any_order) {
    enum { MAX = 300 };
    static uint8_t data[MAX * 8], want[CAP];
    cr_dtype dtype = (cr_dtype)_i;
    size_t size = cr_dtype_size(dtype);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    for (int turn = 0; turn < 60; turn++) {
        uint32_t families = (uint32_t)next() & (floats ? MOST : CR_FAM_SINGLE & ~CR_FAM_DIGEST);
        uint64_t n = next() % (MAX + 1), first = n ? next() % n : 0, step = n ? 1 + next() % n : 1;
        fill(data, n * size);
        fold(&a, dtype, families, data, n, CR_UNPLACED);
        size_t len = cr_share_pack(&a, want, sizeof want);
        fold(&a, dtype, families, NULL, 0, CR_UNPLACED);
        for (uint64_t done = 0, at = first; done < n;
             at = at + step < n ? at + step : 0) { /* in turns, from anywhere */
            uint64_t end = at + step < n ? at + step : n;
            if (at < first && end > first) end = first;
            fold(&b, dtype, families, data + at * size, end - at, CR_UNPLACED);
            ck_assert_msg(cr_share_merge(&a, &b, &error) == CR_OK, "%s", error.text);
            done += end - at;
        }
        check_bytes(&a, want, len);
    }
}
END_TEST

START_TEST(unplaced_has_a_constant_size) {
    uint8_t bytes[CAP];
    fold(&a, CR_F64, CR_FAM_SUM | CR_FAM_EXTREMA, f64s, 2, CR_UNPLACED);
    size_t len = cr_share_pack(&a, bytes, sizeof bytes);
    b = a;
    for (int i = 1; i < 8 * CR_SHARE_MAX_RANGES; i++) ck_assert_int_eq(cr_share_merge(&a, &b, &error), CR_OK);
    ck_assert_uint_le(cr_share_pack(&a, bytes, sizeof bytes), len + 4);
    ck_assert_uint_eq(a.partial.n, UINT64_C(16) * CR_SHARE_MAX_RANGES);
}
END_TEST

START_TEST(unplaced_answers) {
    const uint32_t indices[] = {CR_OP_ARGMIN, CR_OP_ARGMAX}, others[] = {CR_OP_MIN, CR_OP_MAX, CR_OP_NORMINF};
    fold(&a, CR_F32, MOST, f32s, 6, CR_UNPLACED);
    ck_assert_int_eq(cr_share_answers(&a, others, 3, true, &error), CR_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cr_share_answers(&a, indices + i, 1, true, &error), CR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, "without a position") != NULL, "%s", error.text);
    }
    fold(&a, CR_F32, MOST, f32s, 6, 0);
    ck_assert_int_eq(cr_share_answers(&a, indices, 2, true, &error), CR_OK);
    ck_assert_int_eq(cr_share_unplaced_takes(CR_OP_PROD, CR_F16, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_share_unplaced_takes(CR_OP_PROD, CR_I64, &error), CR_OK);
}
END_TEST

/* ---- refused ---- */

static const struct refusal {
    const char *golden;
    size_t at;
    uint8_t bytes[2];
    const char *says;
} refusals[] = {
    {"u8-sum-extrema", 0, {0x44, 0x50}, "not one"},
    {"u8-sum-extrema", 3, {0, 9}, "not an input type"},
    {"u8-sum-extrema", 3, {14, 9}, "not an input type"},
    {"u8-sum-extrema", 4, {9, 0x80}, "families that are not known"},
    {"u8-sum-extrema", 6, {0, 1}, "families that are not known"},
    {"u8-sum-extrema", 14, {0, 0x80}, "head is out of bounds"},    /* n beyond 2^63 */
    {"u8-sum-extrema", 16, {0x01, 0x04}, "head is out of bounds"}, /* 1,025 ranges */
    {"u8-sum-extrema", 20, {1, 0}, "head is out of bounds"},
    {"u8-sum-extrema", 8, {3, 0}, "add up"},
    {"u8-sum-extrema", 16, {0, 0}, "add up"},
    {"u8-sum-extrema", 32, {3, 0}, "add up"},
    {"u8-sum-extrema", 32, {0, 0}, "empty"},
    {"u8-sum-extrema", 30, {0xff, 0xff}, "beyond 2^63"},
    {"u8-sum-extrema", 38, {0, 0x80}, "beyond 2^63"},
    {"i8-gap", 40, {2, 0}, "rising and apart"}, /* neighbours are one range */
    {"i8-gap", 40, {1, 0}, "rising and apart"},
    {"i8-gap", 40, {0, 0}, "rising and apart"},
    {"u8-sum-extrema", 40, {2, 0}, "canonical"}, /* sign */
    {"u8-sum-extrema", 40, {0, 5}, "canonical"}, /* beyond the last digit */
    {"u8-sum-extrema", 44, {0, 0}, "canonical"}, /* a digit of 0 */
    {"u8-sum-extrema", 42, {0xff, 0}, "canonical"},
    {"u8-sum-extrema", 46, {0, 1}, "larger than its elements"},
    {"u8-sum-extrema", 48, {3, 0}, "contradict"}, /* min above max */
    {"u8-sum-extrema", 56, {2, 0}, "outside its ranges"},
    {"u8-sum-extrema", 48, {0, 1}, "not a value of its type"},
    {"u8-sum-extrema", 80, {0xfe, 0xff}, "first NaN"},
    {"u16-empty", 24, {1, 0}, "canonical"}, /* minus nothing */
    {"u16-empty", 36, {1, 0}, "canonical"}, /* a key of nothing */
    {"u16-empty", 68, {0, 0}, "first NaN"},
    {"u16-empty", 84, {1, 0}, "non-zeros"},
    {"u16-empty", 92, {0xfe, 0xff}, "bits contradict"},
    {"u16-empty", 94, {1, 0}, "bits contradict"},
    {"f32-all", 40, {6, 0}, "NaNs and infinities"}, /* and an infinity */
    {"f32-all", 48, {6, 0}, "NaNs and infinities"},
    {"f32-all", 96, {1, 0}, "canonical"}, /* magnitudes are not negative */
    {"f32-all", 154, {0xc0, 0xff}, "not a value of its type"},
    {"f32-unplaced", 4, {0x5f, 0}, "product of floats"},
    {"f32-unplaced", 16, {1, 0}, "head is out of bounds"}, /* a range */
    {"f32-unplaced", 20, {0, 0}, "head is out of bounds"}, /* version 2 with a position */
    {"f32-unplaced", 20, {3, 0}, "head is out of bounds"},
    {"f32-unplaced", 128, {1, 0}, "outside its ranges"},
    {"f32-unplaced", 152, {1, 0}, "first NaN"},
    {"bool-counts-bits", 40, {1, 0}, "non-zeros"}, /* a NaN among bools */
    {"bool-counts-bits", 48, {4, 0}, "non-zeros"},
    {"bool-counts-bits", 64, {2, 0}, "bits contradict"},
    {"bool-counts-bits", 56, {2, 0}, "bits contradict"},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

START_TEST(refuses) {
    const struct refusal *r = &refusals[_i];
    uint8_t in[1024];
    size_t len = hex_read(r->golden, in, sizeof in);
    memcpy(in + r->at, r->bytes, 2);
    ck_assert_msg(cr_share_unpack(in, len, &a, &error) == CR_INVALID_ARGUMENT, "%s at %zu was taken", r->golden, r->at);
    ck_assert_msg(strstr(error.text, r->says) != NULL, "'%s' does not say '%s'", error.text, r->says);
}
END_TEST

START_TEST(refuses_other_lengths_and_versions) {
    uint8_t in[1025];
    for (int i = 0; i < GOLDENS; i++) {
        size_t len = hex_read(goldens[i].name, in, sizeof in);
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *exact = malloc(cut + 1);
            memcpy(exact, in, cut);
            ck_assert_int_eq(cr_share_unpack(exact, cut, &a, &error), CR_INVALID_ARGUMENT);
            ck_assert_str_ne(error.text, "");
            free(exact);
        }
        in[len] = 0;
        ck_assert_int_eq(cr_share_unpack(in, len + 1, &a, &error), CR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, "follow") != NULL, "%s", error.text);
        int own = goldens[i].base == CR_UNPLACED ? 2 : 1;
        for (int version = 0; version < 256; version++) {
            const bool known = version >= CR_SERIAL_VERSION && version <= CR_SERIAL_BLOCK_VERSION;
            const cr_status want = version == own ? CR_OK : known ? CR_INVALID_ARGUMENT : CR_UNIMPLEMENTED;
            in[2] = (uint8_t)version;
            ck_assert_int_eq(cr_share_unpack(in, len, &a, &error), want);
        }
    }
}
END_TEST

START_TEST(refuses_to_merge) {
    static uint8_t before[CAP], after[CAP];
    fold(&a, CR_U8, CR_FAM_SUM, u8s, 2, 10);
    size_t len = cr_share_pack(&a, before, sizeof before);
    const struct {
        cr_dtype dtype;
        uint32_t families;
        uint64_t n, base;
        const char *says;
    } others[] = {
        {CR_I8, CR_FAM_SUM, 2, 20, "u8, another of i8"}, {CR_U8, CR_FAM_COUNTS, 2, 20, "different ops"},
        {CR_U8, CR_FAM_SUM, 2, 10, "from 10 on"},        {CR_U8, CR_FAM_SUM, 2, 11, "from 11 on"},
        {CR_U8, CR_FAM_SUM, 2, 9, "from 10 on"},         {CR_U8, CR_FAM_SUM, 2, CR_UNPLACED, "another has none"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        fold(&b, others[i].dtype, others[i].families, u8s, others[i].n, others[i].base);
        ck_assert_int_eq(cr_share_merge(&a, &b, &error), CR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, others[i].says) != NULL, "%s", error.text);
        ck_assert_uint_eq(cr_share_pack(&a, after, sizeof after), len);
        ck_assert_mem_eq(before, after, len);
    }
    fold(&a, CR_U8, CR_FAM_COUNTS, u8s, 1, 0);
    for (uint64_t i = 1; i <= CR_SHARE_MAX_RANGES; i++) {
        fold(&b, CR_U8, CR_FAM_COUNTS, u8s, 1, 2 * i);
        cr_status want = i == CR_SHARE_MAX_RANGES ? CR_RESOURCE_EXHAUSTED : CR_OK;
        ck_assert_int_eq(cr_share_merge(&a, &b, &error), want);
    }
    ck_assert_uint_eq(a.partial.n, CR_SHARE_MAX_RANGES);
    fold(&b, CR_U8, CR_FAM_COUNTS, u8s, 1, 1); /* fills a gap: one range less */
    ck_assert_int_eq(cr_share_merge(&a, &b, &error), CR_OK);
    ck_assert_uint_eq(a.range_count, CR_SHARE_MAX_RANGES - 1);
}
END_TEST

START_TEST(makes_within_bounds) {
    cr_partial p;
    cr_partial_init(&p, CR_U8, CR_FAM_COUNTS);
    cr_cpu_fold(&p, u8s, 2, 0);
    ck_assert_int_eq(cr_share_make(&a, &p, INT64_MAX - 2, &error), CR_OK);
    ck_assert_int_eq(cr_share_make(&a, &p, INT64_MAX - 1, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_share_make(&a, &p, UINT64_MAX - 1, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_share_make(&a, &p, CR_UNPLACED, &error), CR_OK);
    p.n = UINT64_C(1) << 63;
    ck_assert_int_eq(cr_share_make(&a, &p, CR_UNPLACED, &error), CR_INVALID_ARGUMENT);
    cr_partial_init(&p, CR_F32, CR_FAM_PROD);
    ck_assert_int_eq(cr_share_make(&a, &p, CR_UNPLACED, &error), CR_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("serial") {
    tcase_add_loop_test(tc, golden, 0, GOLDENS);
    tcase_add_test(tc, golden_gap);
    tcase_add_loop_test(tc, any_cut_any_order, CR_BOOL, CR_F64 + 1);
    tcase_add_loop_test(tc, unplaced_any_order, CR_BOOL, CR_F64 + 1);
    tcase_add_test(tc, unplaced_has_a_constant_size);
    tcase_add_test(tc, unplaced_answers);
    tcase_add_loop_test(tc, refuses, 0, REFUSALS);
    tcase_add_test(tc, refuses_other_lengths_and_versions);
    tcase_add_test(tc, refuses_to_merge);
    tcase_add_test(tc, makes_within_bounds);
}
