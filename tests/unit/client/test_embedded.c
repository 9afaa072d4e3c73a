/* libcured in the caller's process: every way in gives the answers of one fold of the whole, whoever folds, and the promises of
 * cured.h hold: cancelling, deadlines, progress, event loops, forks. What the answers are the property tests know. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/all_ops.h"
#include "tests/unit/client/ways.h"

enum { BIG = 2100 * 1000 + 17 }; /* f32: 8.4 MB, above what is folded without the pool */

#define OK(call) ck_assert_int_eq(call, CURED_OK)

static const uint32_t thread_counts[] = {1, 3};

static float *make(size_t count) {
    float *data = malloc((count + 1) * sizeof *data);
    uint32_t x = 1;
    for (size_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = ((float)(x >> 8) - 8388608.0f) * (i % 5 == 0 ? 1e-20f : 1.0f / 8388608.0f);
    }
    return data;
}

static void wait_ok(cured_call *call) {
    cured_error error = {CURED_OK, 0, ""};
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
}

static void assert_equal(const cured_value *a, const cured_value *b) {
    size_t a_bytes, b_bytes;
    const void *x = cured_value_bytes(a, &a_bytes), *y = cured_value_bytes(b, &b_bytes);
    ck_assert_int_eq(cured_value_op(a), cured_value_op(b));
    ck_assert_int_eq(cured_value_status(a, NULL), cured_value_status(b, NULL));
    ck_assert_int_eq(cured_value_dtype(a), cured_value_dtype(b));
    ck_assert_uint_eq(a_bytes, b_bytes);
    ck_assert_msg(a_bytes == 0 || memcmp(x, y, a_bytes) == 0, "op %s", cured_op_name(cured_value_op(a)));
}

static void assert_same(const cured_call *a, const cured_call *b, size_t ops) {
    ck_assert_uint_eq(cured_call_count(a), cured_call_count(b));
    for (size_t i = 0; i < ops; i++) assert_equal(cured_call_value(a, i), cured_call_value(b, i));
}

/* The answer of pieces that are small enough to need no job, merged. */
static void expect_merged(cured_conn *conn, const float *data, size_t count, cured_call **merged) {
    enum { STEP = 200 * 1024 / 4096 * 4096 };
    size_t parts = count / STEP + 1;
    cured_bytes *bytes = calloc(parts, sizeof *bytes);
    cured_call **calls = calloc(parts, sizeof *calls);
    for (size_t i = 0; i < parts; i++) {
        cured_options o = CURED_OPTIONS_INIT;
        size_t left = count - i * STEP;
        o.partial = true;
        o.first = i * STEP;
        OK(cured_reduce_buffer(conn, CURED_F32, all_ops, ALL_OPS, data + i * STEP, left < STEP ? left : STEP, &o,
                               &calls[i], NULL));
        wait_ok(calls[i]);
        bytes[i].data = cured_call_partial(calls[i], &bytes[i].bytes);
    }
    OK(cured_merge(conn, bytes, parts, all_ops, ALL_OPS, NULL, merged, NULL));
    wait_ok(*merged);
    for (size_t i = 0; i < parts; i++) cured_call_free(calls[i]);
    free(calls);
    free(bytes);
}

static int temporary(const void *data, size_t bytes) {
    char name[] = "/tmp/cured-embedded-XXXXXX";
    int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    unlink(name);
    ck_assert_int_eq(write(fd, data, bytes), (ssize_t)bytes);
    return fd;
}

static cured_call *stream(cured_conn *conn, const void *data, size_t bytes, size_t step, bool known) {
    cured_call *call;
    OK(cured_reduce_stream_begin(conn, CURED_F32, all_ops, ALL_OPS, known ? bytes : CURED_UNKNOWN_LENGTH, NULL, &call,
                                 NULL));
    for (size_t at = 0; at < bytes; at += step) {
        size_t now = bytes - at < step ? bytes - at : step;
        OK(cured_stream_write(call, (const char *)data + at, now, NULL));
        OK(cured_stream_drain(call, NULL));
    }
    OK(cured_stream_end(call, NULL));
    return call;
}

START_TEST(every_way_in_gives_the_same) {
    float *data = make(BIG);
    cured_conn *conn = connect_threads(thread_counts[_i]);
    cured_call *expected, *call;
    expect_merged(conn, data, BIG, &expected);
    OK(cured_reduce_buffer(conn, CURED_F32, all_ops, ALL_OPS, data, BIG, NULL, &call, NULL));
    wait_ok(call);
    assert_same(expected, call, ALL_OPS);
    cured_call_free(call);
    int fd = temporary(data, BIG * sizeof *data);
    OK(cured_reduce_fd(conn, CURED_F32, all_ops, ALL_OPS, fd, 0, CURED_TO_END, NULL, &call, NULL));
    wait_ok(call);
    assert_same(expected, call, ALL_OPS);
    cured_call_free(call);
    for (int known = 0; known < 2; known++) {
        call = stream(conn, data, BIG * sizeof *data, 3 * 1000 * 1000 + 1, known);
        wait_ok(call);
        assert_same(expected, call, ALL_OPS);
        cured_call_free(call);
    }
    cured_call_free(expected);
    cured_close(conn);
    close(fd);
    free(data);
}
END_TEST

START_TEST(regions_are_read_in_place) {
    cured_conn *conn = connect_threads(thread_counts[_i]);
    cured_array *array;
    cured_region *sealed, *file;
    cured_call *expected, *call, *left;
    float *data = make(BIG);
    OK(cured_array_alloc(CURED_F32, BIG, &array, NULL));
    memcpy(cured_array_data(array), data, BIG * sizeof *data);
    int fd = temporary(data, BIG * sizeof *data);
    OK(cured_region_fd(conn, cured_array_fd(array), &sealed, NULL));
    OK(cured_region_fd(conn, fd, &file, NULL));
    OK(cured_region_wait(sealed, NULL));
    ck_assert_uint_eq(cured_region_bytes(sealed), BIG * sizeof *data);
    expect_merged(conn, data + 1, BIG - 2, &expected);
    for (int i = 0; i < 2; i++) {
        OK(cured_region_reduce(i == 0 ? sealed : file, CURED_F32, all_ops, ALL_OPS, sizeof *data, BIG - 2, NULL, &call,
                               NULL));
        OK(cured_region_unregister(i == 0 ? sealed : file, NULL, &left, NULL));
        ck_assert(!cured_call_done(left));
        wait_ok(left);
        ck_assert(cured_call_done(call));
        assert_same(expected, call, ALL_OPS);
        cured_call_free(call);
        cured_call_free(left);
    }
    cured_call_free(expected);
    cured_region_free(sealed);
    cured_region_free(file);
    cured_array_free(array);
    cured_close(conn);
    close(fd);
    free(data);
}
END_TEST

/* ---- along an axis ---- */

struct parts {
    uint64_t count;
    double *values;
};

static void take_part(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user) {
    struct parts *p = user;
    (void)call;
    ck_assert_uint_eq(index, 0);
    memcpy(p->values + first, values, count * sizeof *p->values);
    p->count += count;
}

static void check_axis(cured_conn *conn, const float *data, cured_axis axis) {
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMAX, CURED_OP_PROD};
    const cured_op sum = CURED_OP_SUM;
    uint64_t answers = axis.outer * axis.inner, elements = answers * axis.n;
    struct parts parts = {0, malloc((answers + 1) * sizeof(double))};
    cured_options o = CURED_OPTIONS_INIT, p = CURED_OPTIONS_INIT;
    cured_call *direct, *given, *parted, *part;
    o.axis = p.axis = &axis;
    p.on_part = take_part;
    p.user = &parts;
    int fd = temporary(data, elements * sizeof *data);
    OK(cured_reduce_buffer(conn, CURED_F32, ops, 3, data, elements, &o, &direct, NULL));
    OK(cured_reduce_fd(conn, CURED_F32, ops, 3, fd, 0, CURED_TO_END, &o, &given, NULL));
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, elements, &p, &parted, NULL));
    wait_ok(direct);
    wait_ok(given);
    wait_ok(parted);
    ck_assert_uint_eq(parts.count, answers);
    for (size_t k = 0; k < 3; k++) {
        cured_dtype dtype;
        uint64_t count;
        const void *a = cured_call_array(direct, k, &dtype, &count), *b = cured_call_array(given, k, NULL, NULL);
        ck_assert_uint_eq(count, answers);
        ck_assert(memcmp(a, b, count * cured_dtype_size(dtype)) == 0);
        if (k == 0) ck_assert(memcmp(a, parts.values, count * sizeof(double)) == 0);
    }
    for (uint64_t o_ = 0; axis.inner == 1 && o_ < axis.outer; o_ += axis.outer / 3 + 1) {
        double one;
        OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data + o_ * axis.n, axis.n, NULL, &part, NULL));
        wait_ok(part);
        OK(cured_value_double(cured_call_value(part, 0), &one));
        ck_assert(memcmp(&one, &parts.values[o_], sizeof one) == 0);
        cured_call_free(part);
    }
    for (int i = 0; i < 3; i++) cured_call_free((cured_call *[]){direct, given, parted}[i]);
    free(parts.values);
    close(fd);
}

START_TEST(axes_give_every_answer) {
    static const cured_axis shapes[] = {{3, 5, 1},       {1000, 300, 1}, {1, 900, 2333}, {5, 40, 3001},
                                        {2, 1050003, 1}, {70000, 2, 1},  {7, 11, 64}};
    cured_conn *conn = connect_threads(thread_counts[_i]);
    float *data = make(BIG + 40);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_axis(conn, data, shapes[i]);
    cured_axis none = {4, 0, 3};
    cured_options o = CURED_OPTIONS_INIT;
    const cured_op op = CURED_OP_SUM;
    cured_call *call;
    uint64_t count;
    o.axis = &none;
    OK(cured_reduce_buffer(conn, CURED_F32, &op, 1, NULL, 0, &o, &call, NULL));
    wait_ok(call);
    const double *zeros = cured_call_array(call, 0, NULL, &count);
    ck_assert_uint_eq(count, 12);
    for (int i = 0; i < 12; i++) ck_assert(zeros[i] == 0);
    cured_call_free(call);
    free(data);
    cured_close(conn);
}
END_TEST

/* ---- promises ---- */

static int done_calls;

static void count_done(cured_call *call, void *user) {
    (void)user;
    done_calls++;
    cured_call_free(call);
}

START_TEST(an_event_loop_drives_it) {
    cured_conn *conn = connect_threads(thread_counts[_i]);
    float *data = make(BIG);
    const cured_op op = CURED_OP_SUM;
    cured_options o = CURED_OPTIONS_INIT;
    int turns = done_calls = 0;
    o.on_done = count_done;
    for (int i = 0; i < 4; i++) {
        cured_call *call;
        OK(cured_reduce_buffer(conn, CURED_F32, &op, 1, data, i % 2 ? BIG : 100, &o, &call, NULL));
    }
    ck_assert_int_eq(done_calls, 0); /* starting a call runs no callback */
    for (; done_calls < 4; turns++) {
        struct pollfd p = {.fd = cured_fd(conn), .events = cured_events(conn)};
        ck_assert_int_lt(turns, 10000);
        poll(&p, 1, cured_timeout_ms(conn));
        OK(cured_process(conn, NULL));
    }
    if (thread_counts[_i] == 1) ck_assert_int_gt(turns, 3); /* each turn is bounded; a pool may do with fewer */
    ck_assert_int_eq(cured_timeout_ms(conn), -1);
    free(data);
    cured_close(conn);
}
END_TEST

static void cancel_self(cured_call *call, uint64_t done, uint64_t total, void *user) {
    ck_assert_uint_le(done, total);
    (*(int *)user)++;
    cured_cancel(call);
}

static bool cancelled(cured_call *call) { return cured_call_status(call, NULL) == CURED_CANCELLED; }

static bool over(cured_call *call) { return cured_call_done(call) && cured_call_status(call, NULL) == CURED_OK; }

START_TEST(calls_end_when_they_are_told) {
    cured_conn *conn = connect_threads(thread_counts[_i]);
    float *data = make(BIG);
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call, *others[3];
    cured_error error;
    int told = 0;
    for (int i = 0; i < 3; i++)
        OK(cured_reduce_buffer(conn, CURED_F32, all_ops, ALL_OPS, data, BIG, NULL, &others[i], NULL));
    cured_process(conn, NULL);
    cured_cancel(others[1]);
    ck_assert(over(others[1]) || cancelled(others[1])); /* a pool may have been done with it */
    cured_call_free(others[0]);
    o.timeout_ms = 1;
    OK(cured_reduce_stream_begin(conn, CURED_F32, all_ops, ALL_OPS, 8, &o, &call, NULL));
    ck_assert_int_eq(cured_wait(call, &error), CURED_DEADLINE_EXCEEDED); /* its bytes never come */
    cured_call_free(call);
    o.timeout_ms = 0;
    o.progress_ms = 1;
    o.on_progress = cancel_self;
    o.user = &told;
    OK(cured_reduce_stream_begin(conn, CURED_F32, all_ops, ALL_OPS, BIG * sizeof *data, &o, &call, NULL));
    for (int i = 0; i < 60000 && !cured_call_done(call); i++) {
        if (cured_stream_pending(call) == 0) cured_stream_write(call, data, 4, NULL);
        usleep(1000);
        cured_process(conn, NULL);
    }
    ck_assert_int_eq(told, 1);
    ck_assert_int_eq(cured_call_status(call, NULL), CURED_CANCELLED);
    cured_call_free(call);
    wait_ok(others[2]);
    cured_call_free(others[1]);
    cured_call_free(others[2]);
    OK(cured_reduce_buffer(conn, CURED_F32, all_ops, ALL_OPS, data, BIG, NULL, &others[0], NULL));
    OK(cured_reduce_stream_begin(conn, CURED_F32, all_ops, ALL_OPS, 8, NULL, &call, NULL));
    cured_process(conn, NULL);
    cured_close(conn);
    ck_assert(over(others[0]) || cancelled(others[0]));
    ck_assert(cancelled(call));
    cured_call_free(call);
    cured_call_free(others[0]);
    free(data);
}
END_TEST

START_TEST(a_child_goes_on_by_itself) {
    const char *sanitizer = getenv("CURED_TEST_SANITIZE");
    if (_i == 1 && sanitizer != NULL && *sanitizer) {
        puts(
            "skipped: the sanitizers' own locks may be held when a process that has threads forks, and its child then "
            "waits for ever");
        return;
    }
    cured_conn *conn = connect_threads(thread_counts[_i]);
    float *data = make(BIG);
    const cured_op op = CURED_OP_SUM;
    cured_call *before, *call;
    OK(cured_reduce_stream_begin(conn, CURED_F32, &op, 1, CURED_UNKNOWN_LENGTH, NULL, &before, NULL));
    OK(cured_stream_write(before, data, BIG * sizeof *data, NULL));
    cured_process(conn, NULL);
    pid_t child = fork();
    if (child == 0) {
        bool good = cured_reduce_buffer(conn, CURED_F32, &op, 1, data, BIG, NULL, &call, NULL) == CURED_OK &&
                    cured_wait(call, NULL) == CURED_OK && cured_call_status(before, NULL) == CURED_CANCELLED;
        cured_call_free(call);
        cured_call_free(before);
        cured_close(conn);
        _exit(good ? 0 : 1);
    }
    int status;
    ck_assert(cured_stream_drain(before, NULL) == CURED_OK && cured_stream_end(before, NULL) == CURED_OK);
    wait_ok(before);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cured_call_free(before);
    cured_close(conn);
    free(data);
}
END_TEST

static void expect_failure(cured_call *call, cured_status status, const char *word) {
    cured_error error;
    ck_assert_int_eq(cured_wait(call, &error), status);
    ck_assert_msg(strstr(error.text, word) != NULL, "%s", error.text);
    cured_call_free(call);
}

START_TEST(what_is_wrong_is_said) {
    cured_conn *conn = connect_threads(1);
    const float data[] = {1, 2, 3, 4};
    const cured_op sum = CURED_OP_SUM, bits = CURED_OP_BIT_AND;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    OK(cured_reduce_buffer(conn, CURED_F32, &bits, 1, data, 4, NULL, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "bit_and");
    o.ddof = 1;
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 4, &o, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "ddof");
    o.ddof = 0;
    o.kernel = "v0_baseline";
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 4, &o, &call, NULL));
    expect_failure(call, CURED_FAILED_PRECONDITION, "CUDA");
    int fd = temporary(data, 15);
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 0, CURED_TO_END, NULL, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "15 bytes");
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 4, 9, NULL, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "count");
    close(fd);
    fd = open("/", O_RDONLY);
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 0, 1, NULL, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "regular file");
    close(fd);
    OK(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, CURED_UNKNOWN_LENGTH, NULL, &call, NULL));
    OK(cured_stream_write(call, data, 7, NULL));
    OK(cured_stream_end(call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "7 bytes");
    const cured_bytes junk = {"junk", 4};
    OK(cured_merge(conn, &junk, 1, &sum, 1, NULL, &call, NULL));
    expect_failure(call, CURED_INVALID_ARGUMENT, "partial");
    cured_connect_options many = CURED_CONNECT_OPTIONS_INIT;
    cured_conn *none;
    many.threads = 2000;
    ck_assert_int_eq(cured_connect("embedded:", &many, &none, NULL), CURED_INVALID_ARGUMENT);
    cured_close(conn);
}
END_TEST

START_TEST(it_says_who_it_is) {
    cured_conn *conn = connect_threads(0);
    cured_call *call;
    ck_assert(strncmp(cured_server(conn), "embedded/", 9) == 0);
    OK(cured_connected(conn, NULL));
    ck_assert(cured_passes_fd(conn));
    OK(cured_info(conn, NULL, &call, NULL));
    wait_ok(call);
    ck_assert_str_eq(cured_call_info(call)->backend, "cpu");
    ck_assert_uint_ge(cured_call_info(call)->lanes[0].workers, 1);
    cured_call_free(call);
    OK(cured_ping(conn, NULL, &call, NULL));
    wait_ok(call);
    cured_call_free(call);
    /* What only a daemon has. */
    static const struct {
        cured_status (*ask)(cured_conn *, const cured_options *, cured_call **, cured_error *), says;
    } daemons[] = {{cured_reload, CURED_FAILED_PRECONDITION},
                   {cured_config, CURED_FAILED_PRECONDITION},
                   {cured_stats, CURED_UNIMPLEMENTED},
                   {cured_slow_log, CURED_UNIMPLEMENTED}};
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++) {
        cured_error error;
        OK(daemons[i].ask(conn, NULL, &call, NULL));
        ck_assert_int_eq(cured_wait(call, &error), daemons[i].says);
        ck_assert_msg(strncmp(error.text, "embedded: ", 10) == 0, "%s", error.text);
        cured_call_free(call);
    }
    cured_close(conn);
}
END_TEST

static void *other_thread(void *argument) {
    cured_conn *conn = connect_threads(2);
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMIN};
    cured_call *call, *expected = argument;
    float *data = make(BIG);
    for (int i = 0; i < 3; i++) {
        OK(cured_reduce_buffer(conn, CURED_F32, ops, 2, data, BIG, NULL, &call, NULL));
        wait_ok(call);
        assert_same(expected, call, 2);
        cured_call_free(call);
    }
    free(data);
    cured_close(conn);
    return NULL;
}

START_TEST(connections_are_independent) {
    cured_conn *conn = connect_threads(1);
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMIN};
    float *data = make(BIG);
    cured_call *expected;
    pthread_t threads[2];
    OK(cured_reduce_buffer(conn, CURED_F32, ops, 2, data, BIG, NULL, &expected, NULL));
    wait_ok(expected);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, other_thread, expected);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    cured_call_free(expected);
    free(data);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("embedded") {
    tcase_add_loop_test(tc, every_way_in_gives_the_same, 0, 2);
    tcase_add_loop_test(tc, regions_are_read_in_place, 0, 2);
    tcase_add_loop_test(tc, axes_give_every_answer, 0, 2);
    tcase_add_loop_test(tc, an_event_loop_drives_it, 0, 2);
    tcase_add_loop_test(tc, calls_end_when_they_are_told, 0, 2);
    tcase_add_loop_test(tc, a_child_goes_on_by_itself, 0, 2);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, it_says_who_it_is);
    tcase_add_test(tc, connections_are_independent);
}
