/* libcured's calls against a fake daemon: what goes over the wire, and what comes back. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const cured_op sum = CURED_OP_SUM;
static const float three[] = {1, 2, 3};

static cured_call *start(const void *data, uint64_t count, const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, count, o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

START_TEST(hello_and_call_go_without_waiting) {
    fake g;
    cured_conn *c;
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    cr_wire_hello hello;
    fake_start(&g);
    ck_assert_int_eq(cured_connect(g.address, NULL, &c, &error), CURED_OK);
    ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, NULL, &call, &error), CURED_OK);
    cured_process(c, NULL);
    fake_accept(&g);
    ck_assert(fake_read(&g));
    ck_assert(fake_take(&g, &h, &p) && h.type == CR_FRAME_HELLO);
    ck_assert_int_eq(cr_wire_unpack_hello(p, h.length, &hello, NULL), CR_OK);
    ck_assert_str_eq(hello.client, "libcured/" CURED_VERSION);
    ck_assert(fake_take(&g, &h, &p) && h.type == CR_FRAME_CALL && h.stream == 1);
    ck_assert(fake_take(&g, &h, &p) && h.type == CR_FRAME_DATA && h.stream == 1 && h.flags == CR_FLAG_END);
    ck_assert_uint_eq(h.length, sizeof three);
    ck_assert_mem_eq(p, three, sizeof three);
    fake_welcome(&g);
    fake_sum(&g, 1, 6.0);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_str_eq(cured_server(c), "fake/1");
    cured_call_free(call);
    cured_close(c);
    fake_stop(&g);
}
END_TEST

START_TEST(answer) {
    cr_frame h;
    char text[CURED_TEXT_BYTES];
    double d;
    cured_options o = CURED_OPTIONS_INIT;
    o.nan = CURED_NAN_SKIP;
    o.ddof = 2;
    o.result_dtype = CURED_F64;
    o.timeout_ms = 60000;
    cured_call *call = start(three, 3, &o);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_FAILED_PRECONDITION);
    ck_assert_ptr_null(cured_call_value(call, 0));
    cr_wire_call m = expect_call(&h);
    ck_assert_uint_eq(m.reduce.dtype, CURED_F32);
    ck_assert_uint_eq(m.reduce.nan, 1);
    ck_assert_uint_eq(m.reduce.ddof, 2);
    ck_assert_uint_eq(m.reduce.result_dtype, CURED_F64);
    ck_assert(m.reduce.length_known && m.reduce.length == 12);
    ck_assert(m.timeout_ms > 0 && m.timeout_ms <= 60000);
    fake_sum(&f, h.stream, 0.1);
    turns(call);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_count(call), 3);
    ck_assert_uint_eq(cured_call_timing(call).run_ns, 2);
    const cured_value *v = cured_call_find(call, CURED_OP_SUM);
    ck_assert_ptr_eq(v, cured_call_value(call, 0));
    ck_assert_ptr_null(cured_call_value(call, 1));
    ck_assert_ptr_null(cured_call_find(call, CURED_OP_MIN));
    ck_assert_int_eq(cured_value_double(v, &d), CURED_OK);
    ck_assert(d == 0.1);
    ck_assert_int_eq(cured_value_text(v, text, sizeof text), CURED_OK);
    ck_assert_str_eq(text, "0.1");
    cured_call_free(call);
}
END_TEST

/* A kernel asked for by name goes out with the call, and what it says of its answer comes back. */
START_TEST(kernel_by_name) {
    cr_frame h;
    uint8_t payload[256];
    char name[CR_NAME_MAX_BYTES + 2];
    cured_options o = CURED_OPTIONS_INIT;
    o.kernel = "v7_shuffle";
    for (int inexact = 0; inexact < 2; inexact++) {
        cured_call *call = start(three, 3, &o);
        cr_wire_call m = expect_call(&h);
        ck_assert_str_eq(m.reduce.kernel, "v7_shuffle");
        const cr_wire_result r = {
            .count = 3,
            .result_count = 1,
            .results = {{.op = CURED_OP_SUM, .dtype = CURED_F64, .value_len = 8, .inexact = inexact}}};
        size_t n = cr_wire_pack_result(&r, payload, sizeof payload);
        fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, h.stream, payload, n);
        ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
        ck_assert_int_eq(cured_value_exact(cured_call_value(call, 0)), !inexact);
        cured_call_free(call);
        fake_expect(&f, conn, CR_FRAME_DATA, &h, (const uint8_t *[]){NULL});
    }
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    o.kernel = name;
    cured_call *call;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, &o, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(call);
    ck_assert_ptr_nonnull(strstr(error.text, "kernel"));
}
END_TEST

START_TEST(many_in_flight_answered_backwards) {
    enum { N = 300 };
    cured_call *calls[N];
    cr_frame h;
    const uint8_t *p;
    for (int i = 0; i < N; i++) calls[i] = start(three, 3, NULL);
    for (uint32_t i = 1; i <= N; i++) {
        fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
        ck_assert_uint_eq(h.stream, i);
        fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
        ck_assert_uint_eq(h.stream, i);
    }
    for (uint32_t i = N; i >= 1; i--) {
        fake_sum(&f, i, i);
        if (i % 50 == 0) cured_process(conn, NULL);
    }
    for (int i = 0; i < N; i++) {
        double d;
        ck_assert_int_eq(cured_wait(calls[i], &error), CURED_OK);
        ck_assert_int_eq(cured_value_double(cured_call_value(calls[i], 0), &d), CURED_OK);
        ck_assert(d == i + 1);
        cured_call_free(calls[i]);
    }
}
END_TEST

/* 10 MiB: 4 go at once, the rest as credit comes; the bytes arrive as they were, END with the last. */
START_TEST(credit_is_kept) {
    enum { BYTES = 10 << 20 };
    uint8_t *data = malloc(BYTES), *got = malloc(BYTES);
    size_t n = 0;
    cr_frame h;
    const uint8_t *p;
    for (size_t i = 0; i < BYTES; i++) data[i] = (uint8_t)(i * 7 + (i >> 12));
    cured_call *call = start(data, BYTES / 4, NULL);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    fake_settle(&f, conn);
    while (fake_take(&f, &h, &p)) {
        ck_assert_uint_eq(h.flags, 0);
        memcpy(got + n, p, h.length);
        n += h.length;
    }
    ck_assert_uint_eq(n, CR_CREDIT_INITIAL_BYTES);
    fake_credit(&f, 1, 5);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert_uint_eq(h.length, 5);
    memcpy(got + n, p, 5);
    n += 5;
    fake_credit(&f, 1, UINT64_MAX);
    fake_credit(&f, 1, UINT64_MAX); /* saturates */
    while (n < BYTES) {
        fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
        memcpy(got + n, p, h.length);
        n += h.length;
        ck_assert_uint_eq(h.flags, n == BYTES ? CR_FLAG_END : 0);
    }
    ck_assert_mem_eq(got, data, BYTES);
    fake_sum_of(&f, 1, 1, BYTES / 4);
    turns(call);
    cured_call_free(call);
    free(data);
    free(got);
}
END_TEST

START_TEST(descriptors_travel_with_their_call) {
    enum { N = 5 };
    char path[128];
    cured_call *calls[N];
    cr_frame h;
    const uint8_t *p;
    struct stat want, got;
    snprintf(path, sizeof path, "%s/data", f.dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    fstat(fd, &want);
    cured_call *first = start(three, 3, NULL);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(
            cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 128, i == 0 ? CURED_TO_END : 7, NULL, &calls[i], &error),
            CURED_OK);
    close(fd);
    unlink(path);
    fake_settle(&f, conn);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert_int_eq(f.fd_count, N);
    size_t base = f.received - (f.len - f.at); /* position of the next frame on the connection */
    for (int i = 0; i < N; i++) {
        cr_wire_call m = expect_call(&h);
        ck_assert_uint_eq(h.descriptors, 1);
        ck_assert_uint_eq(h.flags, CR_FLAG_END);
        ck_assert_uint_eq(m.reduce.source, CR_SOURCE_DESCRIPTOR);
        ck_assert_uint_eq(m.reduce.offset, 128);
        ck_assert_int_eq(m.reduce.length_known, i != 0);
        ck_assert(f.fd_begin[i] <= base && base < f.fd_end[i]);
        fstat(f.fds[i], &got);
        ck_assert_uint_eq(got.st_ino, want.st_ino);
        base += CR_FRAME_HEADER_BYTES + h.length;
    }
    for (int i = 0; i < N; i++) {
        fake_sum_of(&f, (uint32_t)(i + 2), i, 7);
        turns(calls[i]);
        ck_assert_int_eq(cured_call_status(calls[i], &error), CURED_OK);
        cured_call_free(calls[i]);
    }
    cured_call_free(first);
    ck_assert_int_eq(cured_reduce_fd(conn, CURED_F32, &sum, 1, -1, 0, 1, NULL, &calls[0], &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(calls[0]);
}
END_TEST

START_TEST(arguments) {
    cured_call *call = (cured_call *)&f;
    const cured_op twice[] = {CURED_OP_SUM, CURED_OP_MIN, CURED_OP_SUM}, none = (cured_op)0, high = (cured_op)63;
    cured_options o = CURED_OPTIONS_INIT;
#define REFUSED(...)                                                                                 \
    ck_assert_int_eq(cured_reduce_buffer(conn, __VA_ARGS__, &call, &error), CURED_INVALID_ARGUMENT); \
    ck_assert_ptr_null(call);                                                                        \
    ck_assert_str_ne(error.text, "")
    REFUSED(CURED_F32, &sum, 0, three, 3, NULL);
    REFUSED(CURED_F32, &sum, 33, three, 3, NULL);
    REFUSED(CURED_F32, twice, 3, three, 3, NULL);
    REFUSED(CURED_F32, &none, 1, three, 3, NULL);
    REFUSED(CURED_F32, &high, 1, three, 3, NULL);
    REFUSED(CURED_DTYPE_DEFAULT, &sum, 1, three, 3, NULL);
    REFUSED(CURED_I128, &sum, 1, three, 3, NULL);
    REFUSED(CURED_F32, &sum, 1, NULL, 3, NULL);
    REFUSED(CURED_F64, &sum, 1, three, UINT64_MAX / 8 + 1, NULL);
    o.timeout_ms = 86400001;
    REFUSED(CURED_F32, &sum, 1, three, 3, &o);
    o = (cured_options)CURED_OPTIONS_INIT;
    o.nan = (cured_nan)2;
    REFUSED(CURED_F32, &sum, 1, three, 3, &o);
    o = (cured_options)CURED_OPTIONS_INIT;
    o.result_dtype = (cured_dtype)18;
    REFUSED(CURED_F32, &sum, 1, three, 3, &o);
    /* nothing of all this was sent */
    cured_process(conn, NULL);
    fake_read(&f);
    ck_assert_uint_eq(f.len, f.at);
    /* an empty array needs no pointer */
    call = start(NULL, 0, NULL);
    cured_call_free(call);
}
END_TEST

CR_CHECK_MAIN("calls") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, hello_and_call_go_without_waiting);
    tcase_add_test(tc, answer);
    tcase_add_test(tc, kernel_by_name);
    tcase_add_test(tc, many_in_flight_answered_backwards);
    tcase_add_test(tc, credit_is_kept);
    tcase_add_test(tc, descriptors_travel_with_their_call);
    tcase_add_test(tc, arguments);
}
