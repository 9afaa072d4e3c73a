/* What most of libcured's tests begin with: a fake daemon, a connection to it, and turns of that connection.
 *
 * Thread: the test's. Included by one test program each, so what is here is its own. */
#ifndef CURED_TESTS_UNIT_CLIENT_CONNECTED_H
#define CURED_TESTS_UNIT_CLIENT_CONNECTED_H

#include <check.h>

#include "tests/unit/client/fake.h"

static fake f;
static cured_conn *conn;
static cured_error error;

static inline void setup(void) {
    fake_start(&f);
    conn = fake_connect(&f);
}

static inline void teardown(void) {
    cured_close(conn);
    fake_stop(&f);
}

/* Until the call is done, without waiting. */
static inline void turns(cured_call *call) {
    for (int i = 0; i < 1000 && !cured_call_done(call); i++) cured_process(conn, NULL);
    ck_assert(cured_call_done(call));
}

/* The CALL that comes next. */
static inline cr_wire_call expect_call(cr_frame *frame) {
    const uint8_t *p;
    cr_wire_call m;
    cr_error e;
    fake_expect(&f, conn, CR_FRAME_CALL, frame, &p);
    ck_assert_msg(cr_wire_unpack_call(p, frame->length, &m, &e) == CR_OK, "%s", e.text);
    return m;
}

/* The same, of one kind. */
static inline cr_wire_call expect(cr_wire_kind kind, cr_frame *frame) {
    cr_wire_call m = expect_call(frame);
    ck_assert_int_eq(m.kind, kind);
    return m;
}

#endif
