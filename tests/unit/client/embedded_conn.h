/* A connection whose calls this process answers, by so many threads. Included by one test program each. */
#ifndef CURED_TESTS_UNIT_CLIENT_EMBEDDED_CONN_H
#define CURED_TESTS_UNIT_CLIENT_EMBEDDED_CONN_H

#include <check.h>

#include "cured/cured.h"

static inline cured_conn *connect_as(uint32_t threads) {
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_conn *conn = NULL;
    options.threads = threads;
    ck_assert_int_eq(cured_connect("embedded:", &options, &conn, NULL), CURED_OK);
    return conn;
}

#endif
