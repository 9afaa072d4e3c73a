/* libcured on two arrays, in the caller's process: every way in, whole, along an axis, by offsets, strided and in partials, answers as the
 * sums of exact products do; what is wrong with a second array is said, and ops and arrays that do not go together are refused. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "cured/strided.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { MOST = 2100 * 1000 + 17 }; /* f32: above what is folded without the pool */

static const cured_op ops[] = {CURED_OP_DOT, CURED_OP_SQDIST, CURED_OP_AVERAGE};
enum { OPS = sizeof ops / sizeof ops[0] };

/* Small integers, so that float64 adds what is wanted without rounding. */
static float data[MOST], other[MOST];
static uint8_t mask_bytes[MOST];

static void make(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        data[i] = (float)((int)(i * 7919 % 2001) - 1000);
        other[i] = (float)((int)(i * 104729 % 301) - 100);
        mask_bytes[i] = i % 3 != 0;
    }
}

/* Of elements first, first + step, …: what each op is. */
static void want(uint64_t first, uint64_t step, uint64_t n, bool masked, double to[OPS]) {
    double dot = 0, apart = 0, weights = 0;
    for (uint64_t i = first, k = 0; k < n; i += step, k++) {
        if (masked && !mask_bytes[i]) continue;
        dot += (double)data[i] * other[i];
        apart += ((double)data[i] - other[i]) * ((double)data[i] - other[i]);
        weights += other[i];
    }
    to[0] = dot;
    to[1] = apart;
    to[2] = dot / weights;
}

static void same(const cured_call *call, const double wanted[OPS]) {
    for (size_t k = 0; k < OPS; k++) {
        double got = 0;
        OK(cured_value_double(cured_call_value(call, k), &got));
        ck_assert_msg(memcmp(&got, &wanted[k], sizeof got) == 0, "%s: %.17g, not %.17g", cured_op_name(ops[k]), got,
                      wanted[k]);
    }
}

static int file_of(uint64_t n) {
    const int fd = memfd_create("pairs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(write(fd, data, n * sizeof *data), (ssize_t)(n * sizeof *data));
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

START_TEST(every_way_in) {
    static const uint64_t lengths[] = {1, 1000, 300 * 1000, MOST};
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)_i);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const uint64_t n = lengths[l];
        make(n);
        const int fd = file_of(n);
        cured_region *region = NULL;
        OK(cured_region_fd(conn, fd, &region, NULL));
        for (int way = 0; way < 8; way++) {
            const cured_second second = {other, n, CURED_F32};
            const cured_mask mask = {mask_bytes, n, 0, CURED_MASK_BYTES, false};
            double wanted[OPS];
            cured_options o = CURED_OPTIONS_INIT;
            o.second = &second;
            if (way >= 4 && n > 1) o.mask = &mask;
            want(0, 1, n, o.mask != NULL, wanted);
            cured_call *call = run_way(conn, way % 4, fd, region, ops, OPS, data, n, &o);
            same(call, wanted);
            cured_call_free(call);
        }
        cured_region_free(region);
        close(fd);
    }
    cured_close(conn);
}
END_TEST

/* Along each axis of (outer, n, inner), from memory and as a stream. */
START_TEST(along_an_axis) {
    static const cured_axis shapes[] = {{1, 5000, 1}, {300, 70, 1}, {5, 40, 33}, {1, 2000, 700}, {3, 1, 9}};
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)_i);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const cured_axis *axis = &shapes[s];
        const uint64_t n = axis->outer * axis->n * axis->inner;
        const cured_second second = {other, n, CURED_F32};
        make(n);
        for (int way = 0; way < 4; way += 3) {
            cured_options o = CURED_OPTIONS_INIT;
            o.second = &second;
            o.axis = axis;
            cured_call *call = run_way(conn, way, -1, NULL, ops, OPS, data, n, &o);
            for (uint64_t at = 0; at < axis->outer * axis->inner; at++) {
                double wanted[OPS];
                want(at / axis->inner * axis->n * axis->inner + at % axis->inner, axis->inner, axis->n, false, wanted);
                for (size_t k = 0; k < OPS; k++) {
                    uint64_t count;
                    const double *got = cured_call_array(call, k, NULL, &count);
                    ck_assert_uint_eq(count, axis->outer * axis->inner);
                    ck_assert_mem_eq(&got[at], &wanted[k], sizeof wanted[k]);
                }
            }
            cured_call_free(call);
        }
    }
    cured_close(conn);
}
END_TEST

START_TEST(in_groups) {
    enum { GROUPS = 5 };
    static const uint64_t lengths[] = {GROUPS, 1000, 300 * 1000};
    static uint8_t key[300 * 1000];
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)_i);
    for (uint64_t i = 0; i < sizeof key; i++) key[i] = i % GROUPS;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const uint64_t n = lengths[l];
        const cured_second second = {other, n, CURED_F32};
        const cured_mask mask = {mask_bytes, n, 0, CURED_MASK_BYTES, false};
        const cured_keys keys = {key, n, CURED_U8, GROUPS, 1, false};
        make(n);
        const int fd = file_of(n);
        cured_region *region = NULL;
        OK(cured_region_fd(conn, fd, &region, NULL));
        for (int way = 0; way < 8; way++) {
            double wanted[OPS];
            cured_options o = CURED_OPTIONS_INIT;
            o.second = &second;
            o.keys = &keys;
            if (way / 4) o.mask = &mask;
            cured_call *call = run_way(conn, way % 4, fd, region, ops, OPS, data, n, &o);
            for (uint64_t group = 0; group < GROUPS; group++) {
                want(group, GROUPS, n / GROUPS, way / 4, wanted);
                for (size_t k = 0; k < OPS; k++) {
                    uint64_t count;
                    const double *got = cured_call_array(call, k, NULL, &count);
                    ck_assert_uint_eq(count, GROUPS);
                    const bool nan = wanted[k] != wanted[k] && got[group] != got[group];
                    ck_assert_msg(nan || memcmp(&got[group], &wanted[k], sizeof *got) == 0, "%s of group %d: %.17g",
                                  cured_op_name(ops[k]), (int)group, got[group]);
                }
            }
            cured_call_free(call);
        }
        cured_region_free(region);
        close(fd);
    }
    cured_close(conn);
}
END_TEST

/* Rows that are turned round are pairs with the second array's elements at the same places. */
START_TEST(strided) {
    enum { ROWS = 20, COLUMNS = 50 };
    const uint64_t shape[2] = {ROWS, COLUMNS};
    const int64_t strides[2] = {COLUMNS * 4, -4};
    const cured_strided array = {.data = data + COLUMNS - 1, .dims = 2, .shape = shape, .strides = strides, .axes = 2};
    const cured_second second = {other, ROWS * COLUMNS, CURED_F32};
    cured_options o = CURED_OPTIONS_INIT;
    cured_conn *conn = connect_threads(1);
    cured_call *call = NULL;
    cured_error error;
    uint64_t count;
    make(ROWS * COLUMNS);
    o.second = &second;
    ck_assert_msg(cured_reduce_strided(conn, CURED_F32, ops, 1, &array, &o, &call, &error) == CURED_OK, "%s",
                  error.text);
    OK(cured_wait(call, NULL));
    const double *got = cured_call_array(call, 0, NULL, &count);
    ck_assert_uint_eq(count, ROWS);
    for (uint64_t r = 0; r < ROWS; r++) {
        double wanted = 0;
        for (uint64_t k = 0; k < COLUMNS; k++)
            wanted += (double)data[r * COLUMNS + COLUMNS - 1 - k] * other[r * COLUMNS + k];
        ck_assert_double_eq(got[r], wanted);
    }
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

/* Parts merge in any order, and any of the ops is finished from them. */
START_TEST(partials) {
    enum { PARTS = 3, N = 3000 };
    uint8_t packed[PARTS][4096];
    cured_bytes parts[PARTS];
    cured_conn *conn = connect_threads(1);
    double wanted[OPS];
    make(N);
    want(0, 1, N, false, wanted);
    for (int k = 0; k < PARTS; k++) {
        const cured_second second = {other + k * 1000, 1000, CURED_F32};
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call = NULL;
        size_t bytes;
        o.second = &second;
        o.partial = true;
        o.first = (uint64_t)k * 1000;
        OK(cured_reduce_buffer(conn, CURED_F32, ops, OPS, data + k * 1000, 1000, &o, &call, NULL));
        OK(cured_wait(call, NULL));
        const void *partial = cured_call_partial(call, &bytes);
        ck_assert_uint_le(bytes, sizeof packed[k]);
        memcpy(packed[k], partial, bytes);
        parts[PARTS - 1 - k] = (cured_bytes){packed[k], bytes};
        cured_call_free(call);
    }
    cured_call *call = NULL;
    OK(cured_merge(conn, parts, PARTS, ops, OPS, NULL, &call, NULL));
    OK(cured_wait(call, NULL));
    same(call, wanted);
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

typedef struct refusal {
    cured_op op;
    cured_second second;
    bool given, keys, layout;
    const char *says;
} refusal;

static void refused(cured_conn *conn, const refusal *r) {
    static const int32_t keys[4];
    static const uint64_t lengths[1] = {8}, starts[1], extents[1] = {4};
    const cured_keys by_key = {.data = keys, .count = 4, .groups = 1, .columns = 1, .dtype = CURED_I32};
    const cured_block block = {1, lengths, starts, extents};
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    if (r->given) o.second = &r->second;
    if (r->keys) o.keys = &by_key;
    if (r->layout) o.layout = &block;
    o.partial = r->layout;
    if (cured_reduce_buffer(conn, CURED_F32, &r->op, 1, data, 4, &o, &call, &error) == CURED_OK)
        cured_wait(call, &error);
    ck_assert_int_ne(error.code, CURED_OK);
    ck_assert_msg(strstr(error.text, r->says) != NULL, "%s, not %s", error.text, r->says);
    cured_call_free(call);
}

START_TEST(refusals) {
    static const refusal all[] = {
        {CURED_OP_DOT, {NULL, 0, CURED_F32}, false, false, false, "op dot is of two arrays, and only one is given"},
        {CURED_OP_SUM, {other, 4, CURED_F32}, true, false, false, "op sum is of one array"},
        {CURED_OP_DOT, {other, 3, CURED_F32}, true, false, false, "it has 3 elements, the input 4"},
        {CURED_OP_DOT,
         {other, 4, CURED_F64},
         true,
         false,
         false,
         "it is of f64, the input of f32; convert one of them"},
        {CURED_OP_DOT, {NULL, 4, CURED_F32}, true, false, false, "data is NULL with a count above 0"},
        {CURED_OP_DOT, {other, 3, CURED_F32}, true, true, false, "it has 3 elements, the input 4"},
        {CURED_OP_DOT, {other, 4, CURED_F32}, true, false, true, "second: not with layout"},
    };
    cured_conn *conn = connect_threads(1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) refused(conn, &all[i]);
    cured_close(conn);
}
END_TEST

START_TEST(here) {
    const cured_second second = {other, 1000, CURED_F32};
    cured_options o = CURED_OPTIONS_INIT;
    cured_values *values = NULL;
    double wanted[OPS], got;
    make(1000);
    want(0, 1, 1000, false, wanted);
    o.second = &second;
    OK(cured_reduce_here(CURED_F32, ops, OPS, data, 1000, &o, &values, NULL));
    for (size_t k = 0; k < OPS; k++) {
        OK(cured_value_double(cured_values_get(values, k), &got));
        ck_assert_double_eq(got, wanted[k]);
    }
    cured_values_free(values);
    ck_assert_int_eq(cured_reduce_here(CURED_F32, ops, OPS, data, 999, &o, &values, NULL), CURED_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("client/pairs") {
    tcase_add_loop_test(tc, every_way_in, 0, 2);
    tcase_add_loop_test(tc, along_an_axis, 0, 2);
    tcase_add_loop_test(tc, in_groups, 0, 2);
    tcase_add_test(tc, strided);
    tcase_add_test(tc, partials);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, here);
    tcase_set_timeout(tc, 300);
}
