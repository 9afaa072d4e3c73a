/* libcured's searches: medians and quantiles of an array in parts, whose counts come by every way in, by one thread and by several, under
 * masks, in any order, have the bits of the whole; and what is no search is refused. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_msg((call) == CURED_OK, "%s", error.text)

enum { N = 2400 * 1000, OPS = 4, WAYS = 4 };

static const cured_op ops[OPS] = {CURED_OP_MEDIAN, CURED_OP_QUANTILE, CURED_OP_QUANTILE, CURED_OP_QUANTILE};
static const double shares[OPS] = {0, 0.1, 1.0 / 3, 1};
static const cured_op median = CURED_OP_MEDIAN;
static float data[N];
static uint8_t marks[N];
static cured_error error;

static void setup(void) {
    uint32_t x = 1;
    for (size_t i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)x * (i % 5 ? 1 : 1e-20f);
        marks[i] = x >> 16 & 1;
    }
}

static cured_options options_of(const cured_mask *mask) {
    cured_options o = CURED_OPTIONS_INIT;
    o.mask = mask;
    o.parameters = shares;
    return o;
}

/* The counts of a part by a way in are added to sum. */
static void count_part(cured_conn *conn, int way, cured_bytes asked, size_t first, size_t n, bool masked, uint64_t *sum,
                       size_t words) {
    const cured_mask mask = {.data = marks + first, .count = n, .kind = CURED_MASK_BYTES};
    cured_options o = CURED_OPTIONS_INIT;
    cured_region *region = NULL;
    size_t count;
    o.asked = &asked;
    if (masked) o.mask = &mask;
    const int fd = memfd_create("part", MFD_CLOEXEC);
    ck_assert(fd >= 0 && write(fd, data + first, n * sizeof *data) == (ssize_t)(n * sizeof *data));
    if (way == 2) OK(cured_region_fd(conn, fd, &region, &error));
    cured_call *call = run_way(conn, way, fd, region, &median, 1, data + first, n, &o);
    const uint64_t *counts = cured_call_counts(call, &count);
    ck_assert_uint_eq(count, words);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) kept += !masked || marks[first + i];
    ck_assert_uint_eq(cured_call_count(call), kept);
    ck_assert_ptr_null(cured_call_value(call, 0));
    for (size_t i = 0; i < words; i++) sum[i] += counts[i];
    cured_call_free(call);
    cured_region_free(region);
    close(fd);
}

static void same_values(const cured_values *values, const cured_call *whole) {
    for (size_t i = 0; i < OPS; i++) {
        size_t bytes, more;
        const void *a = cured_value_bytes(cured_values_get(values, i), &bytes);
        const void *b = cured_value_bytes(cured_call_value(whole, i), &more);
        ck_assert_uint_eq(bytes, more);
        ck_assert_mem_eq(a, b, bytes);
        ck_assert_int_eq(cured_value_op(cured_values_get(values, i)), ops[i]);
    }
}

START_TEST(parts_are_the_whole) {
    for (int kind = 0; kind < 4; kind++) {
        cured_conn *conn = connect_threads(kind & 1 ? 3 : 1);
        const cured_mask all = {.data = marks, .count = N, .kind = CURED_MASK_BYTES};
        const cured_options o = options_of(kind & 2 ? &all : NULL), plain = options_of(NULL);
        cured_call *whole = run_way(conn, 0, -1, NULL, ops, OPS, data, N, &o);
        cured_search *search;
        cured_values *values;
        size_t words, reads = 0;
        OK(cured_search_begin(CURED_F32, ops, OPS, &plain, &search, &error));
        ck_assert_int_eq(cured_search_values(search, &values, NULL), CURED_FAILED_PRECONDITION);
        for (cured_bytes asked; asked = cured_search_asked(search, &words), words != 0; reads++) {
            uint64_t *sum = calloc(words, sizeof *sum);
            const size_t cuts[] = {0, 1, 1001, 90000, 90000, N - 2100 * 1000,
                                   N}; /* the last beyond what one thread takes */
            for (size_t i = 0; i < 6; i++) {
                const size_t part = (i * 5 + reads) % 6, n = cuts[part + 1] - cuts[part];
                count_part(conn, n != 0 ? (int)((part + reads) % WAYS) : 0, asked, cuts[part], n, kind & 2, sum, words);
            }
            ck_assert_int_eq(cured_search_next(search, sum, words - 1, &error), CURED_INVALID_ARGUMENT);
            OK(cured_search_next(search, sum, words, &error));
            free(sum);
        }
        ck_assert_uint_eq(reads, 3);
        ck_assert_int_eq(cured_search_next(search, NULL, 0, &error), CURED_INVALID_ARGUMENT);
        OK(cured_search_values(search, &values, &error));
        same_values(values, whole);
        cured_values_free(values);
        cured_search_free(search);
        cured_call_free(whole);
        cured_close(conn);
    }
}
END_TEST

static void refused(cured_conn *conn, const cured_op *of, size_t op_count, cured_dtype dtype, cured_options o,
                    const char *says) {
    cured_call *call;
    cured_status status = cured_reduce_buffer(conn, dtype, of, op_count, data, 1000, &o, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    ck_assert_int_ne(status, CURED_OK);
    ck_assert_msg(strstr(error.text, says) != NULL, "'%s' does not say '%s'", error.text, says);
    cured_call_free(call);
}

START_TEST(what_is_no_search) {
    cured_conn *conn = connect_threads(1);
    const cured_op sum = CURED_OP_SUM;
    const cured_axis axis = {10, 100, 1};
    cured_options o = CURED_OPTIONS_INIT;
    cured_search *search;
    size_t words;
    ck_assert_int_eq(cured_search_begin(CURED_F32, &sum, 1, NULL, &search, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "op sum is not searched for") != NULL, "%s", error.text);
    o.result_dtype = CURED_I32;
    ck_assert_int_eq(cured_search_begin(CURED_F32, &median, 1, &o, &search, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_search_begin((cured_dtype)99, &median, 1, NULL, &search, &error), CURED_INVALID_ARGUMENT);
    OK(cured_search_begin(CURED_F32, &median, 1, NULL, &search, &error));
    cured_bytes asked = cured_search_asked(search, &words);
    o = (cured_options)CURED_OPTIONS_INIT;
    o.asked = &asked;
    refused(conn, &sum, 1, CURED_F32, o, "median alone");
    refused(conn, ops, 2, CURED_F32, o, "median alone");
    refused(conn, &median, 1, CURED_I32, o, "asked: it counts elements of f32, the input has i32");
    o.axis = &axis;
    refused(conn, &median, 1, CURED_F32, o, "whole arrays");
    o.axis = NULL;
    o.partial = true;
    refused(conn, &median, 1, CURED_F32, o, "partial");
    o.partial = false;
    uint8_t wrong[CURED_ERROR_BYTES];
    for (size_t i = 0; i < asked.bytes; i++) { /* each byte that another cannot stand for */
        memcpy(wrong, asked.data, asked.bytes);
        wrong[i] ^= 0x40;
        const cured_bytes bad = {wrong, asked.bytes};
        o.asked = &bad;
        refused(conn, &median, 1, CURED_F32, o, "asked: ");
    }
    const cured_bytes cut = {asked.data, asked.bytes - 1};
    o.asked = &cut;
    refused(conn, &median, 1, CURED_F32, o, "not what a read of quantiles counts");
    cured_search_free(search);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/search") {
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, parts_are_the_whole);
    tcase_add_test(tc, what_is_no_search);
}
