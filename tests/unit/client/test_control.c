/* libcured's calls from the program's side, against a fake daemon: streams, cancelling, time-outs, callbacks. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

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

START_TEST(stream_of_known_length) {
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 13, NULL, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 12, NULL, &call, &error), CURED_OK);
    cr_wire_call m = expect_call(&h);
    ck_assert(m.reduce.length_known && m.reduce.length == 12);
    ck_assert_int_eq(cured_stream_write(call, three, 5, &error), CURED_OK);
    ck_assert_uint_eq(cured_stream_pending(call), 5);
    ck_assert_int_eq(cured_stream_write(call, three, 1, &error), CURED_FAILED_PRECONDITION);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == 5 && h.flags == 0);
    ck_assert_uint_eq(cured_stream_pending(call), 0);
    ck_assert_int_eq(cured_stream_end(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_stream_write(call, three, 8, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_stream_write(call, (const char *)three + 5, 7, &error), CURED_OK);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == 7 && h.flags == CR_FLAG_END);
    ck_assert_int_eq(cured_stream_end(call, &error), CURED_OK);
    fake_sum(&f, 1, 6);
    turns(call);
    ck_assert_int_eq(cured_stream_write(call, three, 1, &error), CURED_FAILED_PRECONDITION);
    cured_call_free(call);
    /* nothing at all is a stream, too */
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 0, NULL, &call, &error), CURED_OK);
    expect_call(&h);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == 0 && h.flags == CR_FLAG_END);
    cured_call_free(call);
}
END_TEST

START_TEST(stream_of_unknown_length) {
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, CURED_UNKNOWN_LENGTH, NULL, &call, &error),
                     CURED_OK);
    cr_wire_call m = expect_call(&h);
    ck_assert(!m.reduce.length_known);
    ck_assert_int_eq(cured_stream_write(call, three, 12, &error), CURED_OK);
    ck_assert_int_eq(cured_stream_drain(call, &error), CURED_OK);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == 12 && h.flags == 0);
    ck_assert_int_eq(cured_stream_end(call, &error), CURED_OK);
    ck_assert_int_eq(cured_stream_write(call, three, 1, &error), CURED_FAILED_PRECONDITION);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == 0 && h.flags == CR_FLAG_END);
    fake_status(&f, 1, CR_DATA_LOSS, 0, "lost");
    turns(call);
    ck_assert_int_eq(cured_stream_write(call, three, 1, &error), CURED_DATA_LOSS);
    cured_call_free(call);
}
END_TEST

/* The rest of a begun frame goes out as zeros, so that the caller's buffer is free at once, then CANCEL. */
START_TEST(cancel_in_the_middle_of_a_frame) {
    enum { BYTES = 1 << 20 };
    uint8_t *data = malloc(BYTES);
    cr_frame h;
    const uint8_t *p;
    memset(data, 0xff, BYTES);
    cured_call *call = start(data, BYTES / 4, NULL);
    cured_process(conn, NULL); /* fills the socket */
    cured_call *other = start(three, 3, NULL);
    cured_cancel(call);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_CANCELLED);
    memset(data, 0x55, BYTES);
    free(data);
    cured_call_free(call);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert_uint_eq(h.length, BYTES);
    ck_assert_uint_eq(p[0], 0xff);
    ck_assert_uint_eq(p[BYTES - 1], 0);
    bool cancelled = false, called = false;
    while (!cancelled || !called) { /* in either order */
        cured_process(conn, NULL);
        fake_read(&f);
        if (!fake_take(&f, &h, &p)) continue;
        cancelled = cancelled || (h.type == CR_FRAME_CANCEL && h.stream == 1);
        called = called || (h.type == CR_FRAME_DATA && h.stream == 2);
    }
    fake_status(&f, 1, CR_CANCELLED, 0, "as you wish"); /* for a call that is gone: ignored */
    fake_sum(&f, 2, 6);
    turns(other);
    ck_assert_int_eq(cured_call_status(other, NULL), CURED_OK);
    cured_call_free(other);
}
END_TEST

START_TEST(cancel_before_anything_was_sent) {
    cr_frame h;
    const uint8_t *p;
    cured_call *call = start(three, 3, NULL);
    cured_cancel(call);
    cured_cancel(call);
    cured_call *other = start(three, 3, NULL);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_uint_eq(h.stream, 2); /* nothing was said about 1 */
    cured_call_free(call);
    cured_call_free(other); /* cancels */
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    fake_expect(&f, conn, CR_FRAME_CANCEL, &h, &p);
    ck_assert_uint_eq(h.stream, 2);
}
END_TEST

START_TEST(refused_during_the_upload) {
    enum { BYTES = 3 << 20 };
    uint8_t *data = calloc(1, BYTES);
    cr_frame h;
    const uint8_t *p;
    size_t sent = 0;
    cured_call *call = start(data, BYTES / 4, NULL);
    cured_process(conn, NULL);
    fake_status(&f, 1, CR_INVALID_ARGUMENT, 0, "dtype is odd");
    turns(call);
    free(data);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "dtype is odd");
    cured_call_free(call);
    cured_call *other = start(three, 3, NULL);
    fake_settle(&f, conn);
    while (fake_take(&f, &h, &p) && h.stream == 1) sent += h.length;
    ck_assert_uint_lt(sent, BYTES); /* it stopped at the end of a frame */
    ck_assert_uint_eq(h.stream, 2);
    fake_sum(&f, 2, 6);
    turns(other);
    cured_call_free(other);
}
END_TEST

START_TEST(timeout_ends_a_call_and_tells) {
    cr_frame h;
    const uint8_t *p;
    cured_options o = CURED_OPTIONS_INIT;
    o.timeout_ms = 1;
    cured_call *call = start(three, 3, &o);
    ck_assert_int_eq(cured_wait(call, &error), CURED_DEADLINE_EXCEEDED);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    fake_expect(&f, conn, CR_FRAME_CANCEL, &h, &p);
    cured_call_free(call);
    ck_assert_int_eq(cured_timeout_ms(conn), -1);
}
END_TEST

START_TEST(closing_with_calls_in_flight) {
    fake g;
    cured_call *calls[2];
    fake_start(&g);
    cured_conn *c = fake_connect(&g);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, NULL, &calls[i], &error), CURED_OK);
    cured_process(c, NULL);
    cured_close(c);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cured_call_status(calls[i], &error), CURED_CANCELLED);
        ck_assert_int_eq(cured_wait(calls[i], NULL), CURED_CANCELLED);
        cured_cancel(calls[i]);
        cured_call_free(calls[i]);
    }
    fake_stop(&g);
}
END_TEST

static int done_calls, progress_calls;
static cured_call *chained;

static void count_done(cured_call *call, void *user) {
    done_calls++;
    ck_assert_ptr_eq(user, &done_calls);
    ck_assert(cured_call_done(call));
    ck_assert_int_eq(cured_process(conn, NULL), CURED_FAILED_PRECONDITION);
    if (chained == NULL) {
        chained = start(three, 3, NULL);
        ck_assert_int_eq(cured_wait(chained, NULL), CURED_FAILED_PRECONDITION);
    }
    cured_call_free(call);
}

static void cancel_on_progress(cured_call *call, uint64_t done, uint64_t total, void *user) {
    (void)user;
    progress_calls++;
    ck_assert_uint_eq(done, 10);
    ck_assert_uint_eq(total, 20);
    cured_call_free(call);
}

START_TEST(callbacks) {
    cr_frame h;
    uint8_t p[64];
    const uint8_t *q;
    cured_options o = CURED_OPTIONS_INIT;
    o.on_done = count_done;
    o.user = &done_calls;
    start(three, 3, &o);
    start(three, 3, &o);
    fake_settle(&f, conn);
    fake_sum(&f, 2, 1);
    fake_sum(&f, 1, 1);
    ck_assert_int_eq(cured_process(conn, NULL), CURED_OK);
    ck_assert_int_eq(done_calls, 2);
    fake_settle(&f, conn); /* the call that a callback started is on its way */
    fake_sum(&f, 3, 1);
    turns(chained);
    cured_call_free(chained);
    while (fake_take(&f, &h, &q)) continue;
    o = (cured_options)CURED_OPTIONS_INIT;
    o.on_progress = cancel_on_progress;
    o.progress_ms = 100;
    start(three, 3, &o);
    ck_assert_uint_eq(expect_call(&h).progress_ms, 100);
    cr_wire_progress m = {10, 20};
    size_t n = cr_wire_pack_progress(&m, p, sizeof p);
    fake_send(&f, CR_FRAME_PROGRESS, 0, 4, p, n);
    fake_send(&f, CR_FRAME_PROGRESS, 0, 4, p, n); /* nobody is there any more */
    fake_settle(&f, conn);
    ck_assert_int_eq(progress_calls, 1);
}
END_TEST

CR_CHECK_MAIN("control") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, cancel_in_the_middle_of_a_frame);
    tcase_add_test(tc, cancel_before_anything_was_sent);
    tcase_add_test(tc, refused_during_the_upload);
    tcase_add_test(tc, stream_of_known_length);
    tcase_add_test(tc, stream_of_unknown_length);
    tcase_add_test(tc, callbacks);
    tcase_add_test(tc, timeout_ends_a_call_and_tells);
    tcase_add_test(tc, closing_with_calls_in_flight);
}
