/* libcured by offsets, in the caller's process or asking the daemon at CURED_TEST_ADDRESS: every way in, by one thread and by several, answers each segment as that segment alone is
 * answered; and what is wrong with offsets is said. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { MOST = 2300 * 1000 + 17, SEGMENTS = 60000 }; /* f32: above what is folded without the pool */

static const cured_op ops[] = {CURED_OP_SUM,    CURED_OP_VAR,       CURED_OP_MIN,
                               CURED_OP_ARGMAX, CURED_OP_COUNT_NAN, CURED_OP_PROD};
enum { OPS = sizeof ops / sizeof ops[0] };

static float data[MOST];
static uint8_t mask_bytes[MOST];
static int64_t borders[SEGMENTS + 1];
static uint64_t results[OPS][SEGMENTS];

static uint32_t draw(void) {
    static uint32_t x = 1;
    return (x = x * 1664525u + 1013904223u) >> 8;
}

/* How the lengths come: alike, half in one, some long and some empty, one segment. Returns how many segments there are. */
static uint64_t make(int mixture, uint64_t n) {
    uint64_t count = 0, end = 0;
    for (uint64_t i = 0; i < n; i++) {
        data[i] = ((float)draw() - 8388608.0f) * (i % 5 == 0 ? 1e-20f : 1.0f / 8388608.0f);
        mask_bytes[i] = draw() % 3 != 0;
    }
    borders[0] = (int64_t)(end = mixture == 0 ? 0 : n / 7);
    while (count < SEGMENTS && end < n - n / 9) {
        uint64_t length = mixture == 0      ? 37
                          : mixture == 1    ? (count == 5 ? n / 2 : 3)
                          : draw() % 4 == 0 ? 0
                                            : 1u << draw() % 20;
        if (mixture == 3) length = n / 2;
        if (length > n - end) length = n - end;
        borders[++count] = (int64_t)(end += length);
    }
    return count;
}

static void on_part(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user) {
    const size_t size = cured_dtype_size(cured_axis_dtype(ops[index], CURED_F32, CURED_DTYPE_DEFAULT));
    (void)call;
    *(uint64_t *)user += count;
    for (uint64_t i = 0; i < count; i++) memcpy(&results[index][first + i], (const uint8_t *)values + i * size, size);
}

/* Answer i of op k, as on_part or the library's own array has it; and of the segment alone. */
static void compare(const cured_call *call, uint64_t count, bool parts, const cured_mask *mask) {
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t begin = (uint64_t)borders[i], n = (uint64_t)borders[i + 1] - begin;
        cured_options o = CURED_OPTIONS_INIT;
        cured_mask own = {mask_bytes, n, begin, CURED_MASK_BYTES, false};
        cured_values *want = NULL;
        if (mask != NULL) o.mask = &own;
        if (count > 2000 && n < 100 && i % 101 != 0) continue; /* a sample of the short ones */
        OK(cured_reduce_here(CURED_F32, ops, OPS, data + begin, n, &o, &want, NULL));
        for (size_t k = 0; k < OPS; k++) {
            cured_dtype type = cured_axis_dtype(ops[k], CURED_F32, CURED_DTYPE_DEFAULT);
            const size_t size = cured_dtype_size(type);
            const uint8_t *got = parts ? (const uint8_t *)&results[k][i]
                                       : (const uint8_t *)cured_call_array(call, k, NULL, NULL) + i * size;
            const cured_value *value = cured_values_get(want, k);
            const cured_status status = cured_value_status(value, NULL);
            ck_assert_int_eq(cured_call_array_statuses(call, k, NULL)[i], status);
            size_t bytes;
            const void *x = cured_value_bytes(value, &bytes);
            if (status == CURED_OK)
                ck_assert_msg(memcmp(got, x, size) == 0, "%s of segment %llu", cured_op_name(ops[k]),
                              (unsigned long long)i);
        }
        cured_values_free(want);
    }
}

START_TEST(every_way_in) {
    static const uint64_t lengths[] = {10, 100 * 1000, MOST};
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)(_i % 2));
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const uint64_t n = lengths[l], count = make(_i / 2, n);
        cured_region *region = NULL;
        const int fd = memfd_create("offsets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(write(fd, data, n * sizeof *data), (ssize_t)(n * sizeof *data));
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        OK(cured_region_fd(conn, fd, &region, NULL));
        for (int way = n == MOST ? _i % 3 : 0; way < 8; way += n == MOST ? 3 * CHECK_SPARSE : 1) {
            const cured_offsets offsets = {borders, count + 1, CURED_I64};
            const cured_mask mask = {mask_bytes, n, 0, CURED_MASK_BYTES, false};
            cured_options o = CURED_OPTIONS_INIT;
            uint64_t parts = 0;
            o.offsets = &offsets;
            o.statuses = true;
            o.user = &parts;
            if (way / 4) o.on_part = on_part;
            if (way % 3 == 1) o.mask = &mask;
            cured_call *call = run_way(conn, way % 4, fd, region, ops, OPS, data, n, &o);
            ck_assert_uint_eq(cured_call_count(call), (uint64_t)(borders[count] - borders[0]));
            if (way / 4) ck_assert_uint_eq(parts, count * OPS);
            compare(call, count, way / 4 != 0, o.mask);
            cured_call_free(call);
        }
        cured_region_free(region);
        close(fd);
    }
    cured_close(conn);
}
END_TEST

static void refused(cured_conn *conn, const cured_offsets *offsets, const cured_options *others, cured_status status,
                    const char *text) {
    cured_options o = *others;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    cured_status got;
    o.offsets = offsets;
    got = cured_reduce_buffer(conn, CURED_F32, ops, 3, data, 10, &o, &call, &error);
    if (call != NULL) got = cured_wait(call, &error);
    cured_call_free(call);
    ck_assert_msg(strcmp(error.text, text) == 0, "%s, not: %s", error.text, text);
    ck_assert_int_eq(got, status);
}

START_TEST(what_is_wrong_is_said) {
    static const int32_t good[] = {0, 3, 10}, falls[] = {0, 3, 2}, negative[] = {-1, 3}, beyond[] = {0, 5, 11},
                         empty[] = {0, 4, 4, 10};
    const cured_axis axis = {1, 10, 1};
    cured_conn *conn = connect_threads(1);
    cured_options o = CURED_OPTIONS_INIT;
    const cured_status no = CURED_INVALID_ARGUMENT;
    refused(conn, &(cured_offsets){falls, 3, CURED_I32}, &o, no, "offsets[2] is 2, below the 3 before it");
    refused(conn, &(cured_offsets){negative, 2, CURED_I32}, &o, no, "offsets[0] is -1, must not be negative");
    refused(conn, &(cured_offsets){beyond, 3, CURED_I32}, &o, no,
            "offsets[2] is 11, beyond element 10, where the input ends");
    refused(conn, &(cured_offsets){good, 3, CURED_F32}, &o, no,
            "offsets: their dtype is f32, must be i32, i64, u32 or u64");
    refused(conn, &(cured_offsets){good, 0, CURED_I32}, &o, no,
            "offsets: there are none; n segments have n + 1 of them, so at least 1");
    refused(conn, &(cured_offsets){NULL, 3, CURED_I32}, &o, no, "offsets: data is NULL with a count above 0");
    refused(conn, &(cured_offsets){empty, 4, CURED_I32}, &o, no, "output 1: min of no elements has no value");
    o.axis = &axis;
    refused(conn, &(cured_offsets){good, 3, CURED_I32}, &o, no, "offsets: they go with no axis; leave out one of them");
    o.axis = NULL;
    o.partial = true;
    refused(conn, &(cured_offsets){good, 3, CURED_I32}, &o, no, "partial: there are none by offsets");
    o.partial = false;
    o.first = 3;
    refused(conn, &(cured_offsets){good, 3, CURED_I32}, &o, no, "first: it has no meaning by offsets");
    o.first = 0;
    cured_close(conn);
}
END_TEST

START_TEST(a_stream_that_is_too_short) {
    static const int32_t borders_of[] = {0, 3, 10};
    const cured_offsets offsets = {borders_of, 3, CURED_I32};
    cured_conn *conn = connect_threads(1);
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error;
    o.offsets = &offsets;
    OK(cured_reduce_stream_begin(conn, CURED_F32, ops, 1, CURED_UNKNOWN_LENGTH, &o, &call, NULL));
    OK(cured_stream_write(call, data, 9 * sizeof *data, NULL));
    OK(cured_stream_end(call, NULL));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "offsets: the last is 10, and 9 elements came");
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

/* Offsets change between the call and its first fold: what lies before the first of them was cut off. A product is folded in blocks, which
 * begin with a segment. */
START_TEST(offsets_that_changed) {
    static const int64_t lower[] = {0, 1, 8, 1000, 99992, 99999};
    enum { N = 300 * 1000, FROM = 100 * 1000 };
    if (of_daemon() != NULL) return;
    cured_conn *conn = connect_threads(1);
    make(3, N);
    uint8_t *own = calloc(1, N); /* so that a sanitizer sees what is read outside */
    for (size_t way = 0; way < 2 * sizeof lower / sizeof lower[0]; way++) {
        const cured_mask mask = {own, N, 0, way % 3 ? CURED_MASK_BITS : CURED_MASK_BYTES, true};
        const cured_offsets offsets = {borders, 2, CURED_I64};
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call = NULL;
        cured_error error;
        borders[0] = FROM;
        borders[1] = N;
        o.offsets = &offsets;
        o.mask = &mask;
        OK(cured_reduce_buffer(conn, CURED_F32, ops, way % 2 ? 1 : OPS, data, N, &o, &call, &error));
        borders[0] = lower[way / 2];
        ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, "the offsets changed while they were read") != NULL, "%s", error.text);
        cured_call_free(call);
    }
    free(own);
    cured_close(conn);
}
END_TEST

#if !defined(__SANITIZE_THREAD__)
static _Atomic bool over;

static void *change(void *argument) {
    const uint64_t count = *(const uint64_t *)argument;
    for (uint64_t i = 0; !atomic_load(&over); i++) {
        const uint64_t at = draw() % (count + 1);
        const int64_t was = borders[at];
        ((volatile int64_t *)borders)[at] = i % 3 == 0 ? -1 : i % 3 == 1 ? INT64_MAX : was / 2;
        ((volatile int64_t *)borders)[at] = was;
    }
    return NULL;
}

/* Another thread writes offsets all the time: any answer, or INVALID_ARGUMENT, and nothing outside the input is read. */
START_TEST(offsets_that_change) {
    if (of_daemon() != NULL) return; /* it would be told other segments than were asked for */
    cured_conn *conn = connect_threads(3);
    uint64_t count = make(2, MOST);
    pthread_t thread;
    atomic_store(&over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, change, &count), 0);
    for (int round = 0; round < 60; round++) {
        const uint64_t n = round % 2 ? MOST : 200 * 1000;
        const cured_offsets offsets = {borders, count + 1, CURED_I64};
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call = NULL;
        cured_error error;
        float *own = malloc(n * sizeof *own); /* so that a sanitizer sees what is read behind it */
        memcpy(own, data, n * sizeof *own);
        o.offsets = &offsets;
        o.statuses = round % 3 == 0;
        OK(cured_reduce_buffer(conn, CURED_F32, ops, round % 5 ? 1 : OPS, own, n, &o, &call, &error));
        const cured_status status = cured_wait(call, &error);
        ck_assert_msg(status == CURED_OK || status == CURED_INVALID_ARGUMENT, "%s", error.text);
        cured_call_free(call);
        free(own);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    cured_close(conn);
}
END_TEST
#endif

CR_CHECK_MAIN("client_offsets") {
    tcase_add_loop_test(tc, every_way_in, 0, 8);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, a_stream_that_is_too_short);
    tcase_add_test(tc, offsets_that_changed);
#if !defined(__SANITIZE_THREAD__) /* which finds the race that the test is about */
    tcase_add_test(tc, offsets_that_change);
#endif
}
