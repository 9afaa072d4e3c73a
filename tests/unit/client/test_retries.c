/* When libcured tries a call again, and when it does not. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cured/strided.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const cured_op sum = CURED_OP_SUM;
static const float three[] = {1, 2, 3};

static cured_call *start_on(cured_conn *c, const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, o, &call, &error) == CURED_OK, "%s", error.text);
    return call;
}

static cured_call *start(const cured_options *o) { return start_on(conn, o); }

/* Turns with sleeps, for what takes its time (retries come after 5 ms and more). */
static void turn_until_sent(void) {
    for (int i = 0; i < 60000; i++) {
        cured_process(conn, NULL);
        if (f.peer < 0) return;
        fake_read(&f);
        if (f.len > f.at) return;
        usleep(1000);
    }
    ck_abort_msg("nothing was sent");
}

START_TEST(retried_when_told_to) {
    cr_frame h;
    const uint8_t *p;
    cured_call *call = start(NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        turn_until_sent();
        fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
        ck_assert_uint_eq(h.stream, i);
        fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
        ck_assert_uint_eq(h.stream, i);
        ck_assert_mem_eq(p, three, sizeof three);
        if (i < 3) fake_status(&f, i, i == 1 ? CR_RESOURCE_EXHAUSTED : CR_UNAVAILABLE, 2, "come back later");
    }
    fake_sum(&f, 3, 6);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_retries(call), 2);
    cured_call_free(call);
}
END_TEST

/* The next frame of the call's try `stream`; what an earlier try has left in the socket is passed over. */
static void next_of(uint32_t stream, cr_frame *h, const uint8_t **p) {
    do {
        while (!fake_take(&f, h, p)) turn_until_sent();
    } while (h->stream != stream);
}

/* What is gathered from memory begins anew with the next try, block by block. */
START_TEST(gathered_anew) {
    enum { N = 600 * 1000 };
    static const uint64_t shape[] = {N};
    static const int64_t strides[] = {-8};
    float *data = malloc(2 * N * sizeof *data);
    cured_call *call = NULL;
    cr_frame h;
    const uint8_t *p;
    for (size_t i = 0; i < 2 * N; i++) data[i] = (float)i;
    const cured_strided array = {data + 2 * N - 2, 1, shape, strides, 0, false};
    ck_assert_int_eq(cured_reduce_strided(conn, CURED_F32, &sum, 1, &array, NULL, &call, &error), CURED_OK);
    for (uint32_t i = 1; i <= 2; i++) {
        size_t got = 0;
        next_of(i, &h, &p);
        ck_assert_int_eq(h.type, CR_FRAME_CALL);
        while (got < (i == 1 ? N / 4 : N)) {
            next_of(i, &h, &p);
            ck_assert_int_eq(h.type, CR_FRAME_DATA);
            for (uint32_t at = 0; at < h.length; at += 4, got++) ck_assert(memcmp(p + at, &data[2 * got], 4) == 0);
            ck_assert_uint_eq(h.flags, got == N ? CR_FLAG_END : 0);
        }
        if (i == 1) fake_status(&f, i, CR_RESOURCE_EXHAUSTED, 2, "come back later");
    }
    fake_sum_of(&f, 2, 1, N);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_retries(call), 1);
    cured_call_free(call);
    free(data);
}
END_TEST

START_TEST(not_retried) {
    static const cr_status codes[] = {CR_INVALID_ARGUMENT, CR_DEADLINE_EXCEEDED, CR_INTERNAL, CR_DATA_LOSS};
    cured_options o = CURED_OPTIONS_INIT;
    uint32_t stream = 0;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        cured_call *call = start(NULL);
        fake_settle(&f, conn);
        fake_status(&f, ++stream, codes[i], 0, "no");
        ck_assert_int_eq(cured_wait(call, &error), (cured_status)codes[i]);
        ck_assert_uint_eq(cured_call_retries(call), 0);
        cured_call_free(call);
    }
    o.retries = 0;
    cured_call *call = start(&o);
    fake_settle(&f, conn);
    fake_status(&f, ++stream, CR_RESOURCE_EXHAUSTED, 77, "full");
    ck_assert_int_eq(cured_wait(call, &error), CURED_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(error.retry_after_ms, 77);
    cured_call_free(call);
    /* no time left for what the daemon asks */
    o.retries = 8;
    o.timeout_ms = 60000;
    call = start(&o);
    fake_settle(&f, conn);
    fake_status(&f, ++stream, CR_RESOURCE_EXHAUSTED, 3600000, "full for an hour");
    ck_assert_int_eq(cured_wait(call, &error), CURED_RESOURCE_EXHAUSTED);
    cured_call_free(call);
    /* streams cannot be sent again */
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 12, NULL, &call, &error), CURED_OK);
    fake_settle(&f, conn);
    fake_status(&f, ++stream, CR_RESOURCE_EXHAUSTED, 0, "full");
    ck_assert_int_eq(cured_wait(call, &error), CURED_RESOURCE_EXHAUSTED);
    cured_call_free(call);
}
END_TEST

/* A cancelled call that waits for its next try is gone: nothing is sent for it. */
START_TEST(cancelled_while_waiting_to_retry) {
    cr_frame h;
    const uint8_t *p;
    cured_options o = CURED_OPTIONS_INIT;
    o.max_retry_wait_ms = UINT32_MAX;
    cured_call *call = start(&o);
    fake_settle(&f, conn);
    fake_status(&f, 1, CR_RESOURCE_EXHAUSTED, 1000000, "full");
    cured_process(conn, NULL);
    ck_assert(!cured_call_done(call));
    ck_assert_int_gt(cured_timeout_ms(conn), 500000);
    cured_call_free(call);
    while (fake_take(&f, &h, &p)) continue;
    fake_settle(&f, conn);
    ck_assert(!fake_take(&f, &h, &p));
}
END_TEST

/* How long a client with a connection of its own waits until it asks again, after a daemon that asks for `advice`. */
static int wait_after(uint32_t advice, uint32_t most) {
    fake g;
    cured_options o = CURED_OPTIONS_INIT;
    o.max_retry_wait_ms = most;
    fake_start(&g);
    cured_conn *c = fake_connect(&g);
    cured_call *call = start_on(c, &o);
    fake_settle(&g, c);
    fake_status(&g, 1, CR_RESOURCE_EXHAUSTED, advice, "full");
    cured_process(c, NULL);
    ck_assert(!cured_call_done(call));
    int ms = cured_timeout_ms(c);
    cured_call_free(call);
    cured_close(c);
    fake_stop(&g);
    return ms;
}

/* A daemon may ask for 49 days. The bounds leave a minute to a slow machine, which only makes the rest shorter. */
START_TEST(no_longer_than_allowed) {
    enum { MINUTE = 60000 };
    ck_assert_int_le(wait_after(UINT32_MAX, 0), 15000);
    int ms = wait_after(UINT32_MAX, 20 * MINUTE);
    ck_assert_int_gt(ms, 19 * MINUTE);
    ck_assert_int_le(ms, 30 * MINUTE + 1);
    /* shorter advice is taken as it is */
    ms = wait_after(10 * MINUTE, 20 * MINUTE);
    ck_assert_int_gt(ms, 9 * MINUTE);
    ck_assert_int_le(ms, 15 * MINUTE + 1);
    /* the same advice does not bring all clients back at once */
    bool differ = false;
    for (int i = 0; i < 20; i++) differ = wait_after(10 * MINUTE, 20 * MINUTE) / 1000 != ms / 1000 || differ;
    ck_assert(differ);
}
END_TEST

CR_CHECK_MAIN("retries") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, retried_when_told_to);
    tcase_add_test(tc, gathered_anew);
    tcase_add_test(tc, not_retried);
    tcase_add_test(tc, cancelled_while_waiting_to_retry);
    tcase_add_test(tc, no_longer_than_allowed);
}
