/* libcured in the caller's process: arrays of more columns than have states in a gigabyte, from memory, files and regions. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

START_TEST(wide_arrays_go_strip_by_strip) {
#if defined(__SANITIZE_THREAD__)
    enum {
        FROM = 1,
        WAYS = 2
    }; /* by several workers; by the other ways one alone touches a gigabyte of states, slowly */
#else
    enum { FROM = 0, WAYS = 3 };
#endif
    enum { WIDE = 170003 };
    const cured_axis axis = {1, 2, WIDE};
    const cured_op var = CURED_OP_VAR;
    double *data = malloc(2 * WIDE * sizeof *data);
    int fd = memfd_create("wide", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (int i = 0; i < WIDE; i++) {
        data[i] = i % 97;
        data[WIDE + i] = i % 97 + 2 * (i % 13);
    }
    ck_assert_int_eq(write(fd, data, 2 * WIDE * sizeof *data), 2 * WIDE * sizeof *data);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    for (int way = FROM; way < WAYS; way++) {
        cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
        cured_conn *conn = NULL;
        options.threads = 1 + 2 * (way % 2);
        OK(cured_connect("embedded:", &options, &conn, NULL));
        cured_options o = CURED_OPTIONS_INIT;
        cured_region *region = NULL;
        cured_call *call = NULL;
        uint64_t count;
        o.axis = &axis;
        OK(cured_region_fd(conn, fd, &region, NULL));
        if (way == 0) OK(cured_reduce_buffer(conn, CURED_F64, &var, 1, data, 2 * WIDE, &o, &call, NULL));
        if (way == 1) OK(cured_reduce_fd(conn, CURED_F64, &var, 1, fd, 0, 2 * WIDE, &o, &call, NULL));
        if (way == 2) OK(cured_region_reduce(region, CURED_F64, &var, 1, 0, 2 * WIDE, &o, &call, NULL));
        OK(cured_wait(call, NULL));
        const double *answers = cured_call_array(call, 0, NULL, &count);
        ck_assert_uint_eq(count, WIDE);
        for (int i = 0; i < WIDE; i++)
            if (answers[i] != (i % 13) * (i % 13)) ck_abort_msg("way %d: answer %d is %g", way, i, answers[i]);
        cured_call_free(call);
        cured_region_free(region);
        cured_close(conn);
    }
    close(fd);
    free(data);
}
END_TEST

/* Few rows of many columns are one claim where they lie in memory; a file's come in pieces. */
START_TEST(few_rows_give_every_answer) {
    enum { WIDE = 300007, ALL = 3 * WIDE };
    const cured_axis axis = {1, 3, WIDE};
    const cured_op sum = CURED_OP_SUM;
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_options o = CURED_OPTIONS_INIT;
    cured_conn *conn;
    cured_call *direct, *given;
    uint64_t count, also;
    float *data = malloc(ALL * sizeof *data);
    int fd = memfd_create("rows", MFD_CLOEXEC);
    for (int i = 0; i < ALL; i++) data[i] = (float)(i % 9973) * (i % 5 == 0 ? 0x1p-60f : 1.0f);
    ck_assert_int_eq(write(fd, data, ALL * sizeof *data), ALL * sizeof *data);
    options.threads = 1 + 2 * (uint32_t)_i;
    OK(cured_connect("embedded:", &options, &conn, NULL));
    o.axis = &axis;
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, ALL, &o, &direct, NULL));
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 0, ALL, &o, &given, NULL));
    OK(cured_wait(direct, NULL));
    OK(cured_wait(given, NULL));
    const double *a = cured_call_array(direct, 0, NULL, &count), *b = cured_call_array(given, 0, NULL, &also);
    ck_assert_uint_eq(count, WIDE);
    ck_assert_uint_eq(also, WIDE);
    for (int i = 0; i < WIDE; i++) { /* of three at most one is small, and what is added last is rounded */
        double x = (double)data[i], y = (double)data[WIDE + i], z = (double)data[2 * WIDE + i];
        const double want = i % 5 == 0 ? y + z + x : (WIDE + i) % 5 == 0 ? x + z + y : x + y + z;
        if (a[i] != want || b[i] != want) ck_abort_msg("answer %d is %g and %g", i, a[i], b[i]);
    }
    cured_call_free(direct);
    cured_call_free(given);
    cured_close(conn);
    close(fd);
    free(data);
}
END_TEST

CR_CHECK_MAIN("client/embedded_wide") {
    tcase_add_test(tc, wide_arrays_go_strip_by_strip);
    tcase_add_loop_test(tc, few_rows_give_every_answer, 0, 2);
}
