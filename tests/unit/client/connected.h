/* What most of libcured's tests begin with: a fake daemon, a connection to it, and turns of that connection.
 *
 * Thread: the test's. Included by one test program each, so what is here is its own. */
#ifndef CURED_TESTS_UNIT_CLIENT_CONNECTED_H
#define CURED_TESTS_UNIT_CLIENT_CONNECTED_H

#include <check.h>
#include <string.h>

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

/* In place of the fixture's connection one that knows nothing of its daemon yet. */
static inline void connect_again(void) {
    cured_close(conn);
    fake_drop(&f);
    ck_assert_msg(cured_connect(f.address, NULL, &conn, &error) == CURED_OK, "%s", error.text);
}

/* Takes that connection. HELLO, which comes alone until WELCOME is there, offers the feature; WELCOME grants count of features. */
static inline void welcome_with(const char *offered, const char *const features[], uint32_t count) {
    cr_frame h;
    const uint8_t *payload;
    uint8_t p[256];
    cr_wire_hello hello;
    cr_wire_welcome w = {.version = 1, .server = "fake/1", .feature_count = count};
    for (uint32_t i = 0; i < count; i++) strcpy(w.features[i], features[i]);
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &payload);
    ck_assert_int_eq(cr_wire_unpack_hello(payload, h.length, &hello, NULL), CR_OK);
    ck_assert(cr_wire_has_feature(hello.features, hello.feature_count, offered));
    fake_settle(&f, conn);
    ck_assert_msg(!fake_take(&f, &h, &payload), "%s came before WELCOME", cr_frame_name(h.type));
    fake_send(&f, CR_FRAME_WELCOME, 0, 0, p, cr_wire_pack_welcome(&w, p, sizeof p));
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
