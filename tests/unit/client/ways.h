/* ways: what tests of calls share: a connection, to this process with threads or to the daemon at CURED_TEST_ADDRESS, and the ways in which
 * an array of f32 comes in.
 *
 * Thread: the test's. Included by one test program each. */
#ifndef CURED_TESTS_UNIT_CLIENT_WAYS_H
#define CURED_TESTS_UNIT_CLIENT_WAYS_H

#include <check.h>
#include <stdlib.h>

#include "cured/cured.h"

/* NULL: this process answers. */
static inline const char *of_daemon(void) { return getenv("CURED_TEST_ADDRESS"); }

static inline cured_conn *connect_threads(uint32_t threads) {
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_conn *conn = NULL;
    options.threads = threads;
    ck_assert_int_eq(cured_connect(of_daemon() != NULL ? of_daemon() : "embedded:", &options, &conn, NULL), CURED_OK);
    return conn;
}

/* The call by way 0 to 3: from memory, a file, a region, or a stream of one piece; it is done, and good. */
static inline cured_call *run_way(cured_conn *conn, int way, int fd, cured_region *region, const cured_op *ops,
                                  size_t op_count, const float *data, uint64_t n, const cured_options *o) {
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    if (way == 0) cured_reduce_buffer(conn, CURED_F32, ops, op_count, data, n, o, &call, &error);
    if (way == 1) cured_reduce_fd(conn, CURED_F32, ops, op_count, fd, 0, CURED_TO_END, o, &call, &error);
    if (way == 2) cured_region_reduce(region, CURED_F32, ops, op_count, 0, CURED_TO_END, o, &call, &error);
    if (way == 3) {
        cured_reduce_stream_begin(conn, CURED_F32, ops, op_count, n * sizeof *data, o, &call, &error);
        if (call != NULL) ck_assert_int_eq(cured_stream_write(call, data, n * sizeof *data, NULL), CURED_OK);
    }
    ck_assert_msg(call != NULL, "%s", error.text);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    return call;
}

#endif
