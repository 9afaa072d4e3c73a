/* libcured's ops by rank, in the caller's process: every way in answers alike, beside other ops, by one thread and by several; what has
 * to be kept is kept up to a bound; and what is refused is said. The property run has the numbers. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { MANY = 3 * 1000 * 1000 + 1, PIECE = 100 * 1000 };

static const cured_op ops[] = {CURED_OP_MEDIAN, CURED_OP_SUM, CURED_OP_QUANTILE, CURED_OP_ARGMAX, CURED_OP_QUANTILE};
static const double parameters[] = {-1, 7, 0.25, 0, 1}; /* of ops that take none it does not matter */
enum { OPS = sizeof ops / sizeof ops[0] };

static float *data;

static void setup(void) {
    data = malloc(MANY * sizeof *data);
    uint64_t at = 12345;
    for (size_t i = 0; i < MANY; i++) {
        at = (at + 1000003) % MANY; /* each number once: MANY is no multiple of the step */
        data[i] = (float)at;
    }
}

static void teardown(void) { free(data); }

static double number(const cured_call *call, size_t i) {
    double x = -1;
    OK(cured_value_double(cured_call_value(call, i), &x));
    return x;
}

static int file_of(const void *from, size_t bytes) {
    const int fd = memfd_create("quantiles", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, from, bytes), (ssize_t)bytes);
    return fd;
}

static cured_call *by_stream(cured_conn *conn, const cured_options *o, uint64_t declared) {
    cured_call *call;
    OK(cured_reduce_stream_begin(conn, CURED_F32, ops, OPS, declared, o, &call, NULL));
    for (size_t i = 0; i < MANY; i += PIECE) {
        const size_t now = MANY - i < PIECE ? MANY - i : PIECE;
        OK(cured_stream_write(call, data + i, now * sizeof *data, NULL));
        OK(cured_stream_drain(call, NULL));
    }
    OK(cured_stream_end(call, NULL));
    return call;
}

static cured_call *start(cured_conn *conn, int way, const cured_options *o) {
    cured_call *call = NULL;
    if (way == 0) OK(cured_reduce_buffer(conn, CURED_F32, ops, OPS, data, MANY, o, &call, NULL));
    if (way == 1) call = by_stream(conn, o, CURED_UNKNOWN_LENGTH);
    if (way == 2) call = by_stream(conn, o, MANY * sizeof *data);
    if (way == 3) {
        const int fd = file_of(data, MANY * sizeof *data);
        OK(cured_reduce_fd(conn, CURED_F32, ops, OPS, fd, 0, CURED_TO_END, o, &call, NULL));
        close(fd);
    }
    return call;
}

START_TEST(every_way_in_answers_alike) {
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        cured_conn *conn;
        cured_connect_options c = CURED_CONNECT_OPTIONS_INIT;
        cured_options o = CURED_OPTIONS_INIT;
        c.threads = threads;
        o.parameters = parameters;
        OK(cured_connect("embedded:", &c, &conn, NULL));
        for (int way = 0; way < 4; way++) {
            cured_call *call = start(conn, way, &o);
            cured_error error;
            ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
            ck_assert_uint_eq(cured_call_count(call), MANY);
            ck_assert_double_eq(number(call, 0), (MANY - 1) / 2);
            ck_assert_double_eq(number(call, 1), (double)MANY * (MANY - 1) / 2);
            ck_assert_double_eq(number(call, 2), (MANY - 1) / 4.0);
            ck_assert_double_eq(data[(size_t)number(call, 3)], MANY - 1);
            ck_assert_double_eq(number(call, 4), MANY - 1);
            cured_call_free(call);
        }
        cured_close(conn);
    }
}
END_TEST

/* Whole rows of 1.2 MB, and a block of columns, are longer than a piece of a file or stream. */
START_TEST(blocks_are_kept_until_they_are_whole) {
    const cured_op median = CURED_OP_MEDIAN;
    const uint64_t n = 300000, rows = 9;
    cured_conn *conn;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    for (int way = 0; way < 3; way++) {
        for (int columns = 0; columns < 2; columns++) {
            const cured_axis axis = {columns ? 1 : rows, columns ? rows : n, columns ? n : 1};
            double *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
            void *results[] = {want};
            cured_options o = CURED_OPTIONS_INIT;
            cured_call *call;
            cured_error error;
            o.axis = &axis;
            o.results = results;
            OK(cured_reduce_buffer(conn, CURED_F32, &median, 1, data, n * rows, &o, &call, NULL));
            OK(cured_wait(call, NULL));
            cured_call_free(call);
            results[0] = got;
            if (way == 0) {
                const int fd = file_of(data, n * rows * sizeof *data);
                OK(cured_reduce_fd(conn, CURED_F32, &median, 1, fd, 0, CURED_TO_END, &o, &call, NULL));
                close(fd);
            } else {
                OK(cured_reduce_stream_begin(conn, CURED_F32, &median, 1,
                                             way == 1 ? n * rows * sizeof *data : CURED_UNKNOWN_LENGTH, &o, &call,
                                             NULL));
                OK(cured_stream_write(call, data, n * rows * sizeof *data, NULL));
                OK(cured_stream_end(call, NULL));
            }
            ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
            cured_call_free(call);
            ck_assert_mem_eq(got, want, (columns ? n : rows) * sizeof *want);
            free(want);
            free(got);
        }
    }
    cured_close(conn);
}
END_TEST

static void refused(cured_conn *conn, const cured_op *asked, size_t count, const cured_options *o, const char *words) {
    cured_call *call;
    cured_error error;
    cured_status status = cured_reduce_buffer(conn, CURED_F32, asked, count, data, 10, o, &call, &error);
    if (call != NULL) status = cured_wait(call, &error);
    ck_assert_int_ne(status, CURED_OK);
    ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
    cured_call_free(call);
}

START_TEST(what_is_refused_is_said) {
    const cured_op median = CURED_OP_MEDIAN, quantile = CURED_OP_QUANTILE, sum = CURED_OP_SUM;
    const cured_op twice[] = {CURED_OP_MEDIAN, CURED_OP_MEDIAN};
    const double wrong = 1.5, right = 0.5;
    cured_conn *conn;
    cured_call *call;
    cured_error error;
    cured_values *values;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    cured_options o = CURED_OPTIONS_INIT, p = CURED_OPTIONS_INIT, q = CURED_OPTIONS_INIT, m = CURED_OPTIONS_INIT;
    o.parameters = &wrong;
    refused(conn, &quantile, 1, &o, "parameters[0] is 1.5, a quantile's is 0 to 1");
    p.partial = true;
    refused(conn, &median, 1, &p, "partial: op median has none");
    q.parameters = &right;
    refused(conn, &sum, 1, &q, "parameters: none of the ops takes it");
    refused(conn, &median, 1, &q, "parameters: none of the ops takes it");
    m.method = (cured_method)5;
    refused(conn, &quantile, 1, &m, "method is 5");
    m.method = CURED_METHOD_LOWER;
    refused(conn, &median, 1, &m, "method: none of the ops takes it");
    refused(conn, twice, 2, NULL, "ops names median twice");
    OK(cured_reduce_stream_begin(conn, CURED_F32, &median, 1, (uint64_t)1 << 31, NULL, &call, NULL));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "a stream is kept, and has 1073741824 bytes at most"));
    cured_call_free(call);
    OK(cured_reduce_here(CURED_F32, &quantile, 1, data, 100, &q, &values, NULL));
    cured_values_free(values);
    cured_close(conn);
}
END_TEST

/* Nothing of a call that is cancelled between two reads, or within one, stays behind. */
START_TEST(a_call_can_be_cancelled_at_any_turn) {
    cured_conn *conn;
    cured_connect_options c = CURED_CONNECT_OPTIONS_INIT;
    c.threads = 2;
    OK(cured_connect("embedded:", &c, &conn, NULL));
    for (int turns = 0; turns < 40; turns++) {
        cured_call *call;
        const int fd = file_of(data, MANY * sizeof *data);
        OK(cured_reduce_fd(conn, CURED_F32, ops, OPS, fd, 0, CURED_TO_END, NULL, &call, NULL));
        close(fd);
        for (int i = 0; i < turns; i++) OK(cured_process(conn, NULL));
        cured_cancel(call);
        cured_call_free(call);
    }
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/quantiles") {
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_way_in_answers_alike);
    tcase_add_test(tc, blocks_are_kept_until_they_are_whole);
    tcase_add_test(tc, what_is_refused_is_said);
    tcase_add_test(tc, a_call_can_be_cancelled_at_any_turn);
}
