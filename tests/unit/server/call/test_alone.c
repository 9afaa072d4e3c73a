/* Uploads that have the loop and the workers to themselves: the loop folds them as they come. Whoever else is there gets the
 * workers' turns as before. */
#include <stdlib.h>
#include <unistd.h>

#include "server/call/call.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { NUMBERS = 5 * MIB / 4 + 13, FRAME = MIB / 2 + 6 /* elements lie across frames */ };

static uint32_t *data;
static uint64_t sum;

static void begin(void) {
    setup();
    data = numbers(NUMBERS, &sum);
}

static void end(void) {
    free(data);
    teardown();
}

/* Bytes that the workers folded. */
static uint64_t by_workers(void) { return cr_lane_cpu.info(calls.lanes.lanes[0]).bytes; }

/* DATA of the array's bytes from `from` to `to`, the last with END. */
static void queue_data(client *c, uint32_t stream, size_t from, size_t to) {
    for (size_t at = from, n; at < to; at += n) {
        n = to - at < FRAME ? to - at : FRAME;
        queue_frame(c, CR_FRAME_DATA, at + n == NUMBERS * 4 ? CR_FLAG_END : 0, stream, (const char *)data + at, n);
    }
}

static const cr_upload *first_upload(void) {
    ck_assert(!cr_list_empty(&calls.filling));
    return cr_container(calls.filling.next, cr_upload, filling);
}

/* What the workers were given is folded: who is alone from here on finds them idle. */
static void let_workers_end(void) {
    while (!cr_queue_idle(calls.queue, first_upload()->job)) usleep(100);
}

static void send_all(client *c, size_t most) {
    while (c->out_len) step(c, most, SIZE_MAX);
}

/* Whatever the socket brings at a time. */
START_TEST(the_loop_folds_it) {
    static const size_t steps[] = {SIZE_MAX, 100003, 4099, 65536};
    client *c = new_client();
    stop_clock(true); /* no fold takes long, and no upload idles */
    queue_call(c, 1, _i % 2 ? 4 * (uint64_t)NUMBERS : UINT64_MAX);
    queue_data(c, 1, 0, NUMBERS * 4);
    send_all(c, steps[_i]);
    finish(c, 1);
    stop_clock(false);
    ck_assert_msg(c->answers == 1, "%s", c->message);
    ck_assert_uint_eq(c->sum[1], sum);
    ck_assert_uint_eq(by_workers(), 0);
    ck_assert_uint_eq(metric_now(CR_M_input_bytes_total), NUMBERS * 4);
    free_client(c);
}
END_TEST

/* What is folded keeps its place in the array. */
START_TEST(indices_count_from_the_begin) {
    uint8_t payload[128];
    cr_wire_call call = {.kind = CR_CALL_REDUCE};
    call.reduce = (cr_wire_reduce){.dtype = CR_U32, .op_count = 1, .ops = {CR_OP_ARGMAX}, .source = CR_SOURCE_STREAM};
    client *c = new_client();
    stop_clock(true);
    data[NUMBERS - 5] = UINT32_MAX;
    queue_frame(c, CR_FRAME_CALL, 0, 1, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    queue_data(c, 1, 0, NUMBERS * 4);
    finish(c, 1);
    stop_clock(false);
    ck_assert_uint_eq(c->sum[1], NUMBERS - 5);
    ck_assert_uint_eq(by_workers(), 0);
    free_client(c);
}
END_TEST

/* A fold at a time is bounded, because others may come meanwhile, and the first is small, because nothing is known of it. */
START_TEST(no_more_than_a_bound_at_once) {
    client *c = new_tcp_client();
    uint64_t before, most = 0, first = 0;
    stop_clock(true);
    queue_call(c, 1, 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, NUMBERS * 4);
    while (c->answers == 0) {
        before = metric_now(CR_M_input_bytes_total);
        step(c, SIZE_MAX, SIZE_MAX);
        const uint64_t now = metric_now(CR_M_input_bytes_total) - before;
        if (!first) first = now;
        if (now > most) most = now;
    }
    stop_clock(false);
    ck_assert_uint_eq(c->sum[1], sum);
    ck_assert_uint_le(first, 128 * 1024);
    ck_assert_uint_gt(most, 128 * 1024);
    ck_assert_uint_le(most, 256 * 1024);
    free_client(c);
}
END_TEST

/* Two at once: no slab of either may wait, so the workers have both. */
START_TEST(not_beside_another_upload) {
    client *c = new_client(), *other = new_client();
    stop_clock(true); /* or its slab is sealed, because it idles */
    queue_call(other, 1, 4 * (uint64_t)NUMBERS);
    queue_data(other, 1, 0, 30000);
    send_all(other, SIZE_MAX);
    while (cr_list_empty(&calls.filling) || first_upload()->filled < 30000) turn();
    queue_call(c, 1, 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, NUMBERS * 4);
    while (c->answers == 0) {
        step(c, SIZE_MAX, SIZE_MAX);
        let_workers_end(); /* or the other's slab is taken, because all are full */
    }
    ck_assert_uint_eq(c->sum[1], sum);
    ck_assert_uint_eq(by_workers(), NUMBERS * 4);
    let_workers_end();
    queue_data(other, 1, 30000, NUMBERS * 4); /* alone from here on */
    step(other, 30000, SIZE_MAX);             /* a go in which it is told that nobody else went */
    finish(other, 1);
    stop_clock(false);
    ck_assert_uint_eq(other->sum[1], sum);
    ck_assert_uint_lt(by_workers(), 2 * (uint64_t)NUMBERS * 4);
    free_client(c);
    free_client(other);
}
END_TEST

/* Another connection has its goes between: it waits for no folds. */
START_TEST(not_while_others_have_their_goes) {
    client *c = new_client(), *other = new_client();
    stop_clock(true);
    queue_call(c, 1, 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, NUMBERS * 4);
    while (c->answers == 0) {
        const cr_upload *up = cr_container(calls.filling.next, cr_upload, filling);
        if (_i == 1 && calls.filling.next != &calls.filling && up->offered) { /* alone from here on */
            while (up->offered) step(c, 30000, SIZE_MAX);                     /* until that slab is full */
            let_workers_end();
            finish(c, 1);
            break;
        }
        queue_frame(other, CR_FRAME_PING, 0, 0, "ping", 4);
        const size_t n = other->out_len - other->out_off;
        ck_assert_int_eq(send(other->fd, other->out + other->out_off, n, 0), (ssize_t)n);
        other->out_len = other->out_off = 0;
        step(c, 30000, SIZE_MAX);
        step(other, 0, SIZE_MAX);
    }
    stop_clock(false);
    ck_assert_uint_eq(c->sum[1], sum);
    if (_i == 0) ck_assert_uint_gt(by_workers(), NUMBERS * 2);
    if (_i == 1) ck_assert_uint_lt(by_workers(), NUMBERS * 2);
    ck_assert_uint_gt(other->pongs, 0);
    free_client(c);
    free_client(other);
}
END_TEST

/* Folding took longer than the bytes took to come, again and again: the workers go on. Once is no matter. */
START_TEST(not_what_takes_long) {
    client *c = new_client();
    stop_clock(true);
    queue_call(c, 1, 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, NUMBERS * 4);
    while (metric_now(CR_M_input_bytes_total) < MIB) step(c, SIZE_MAX, SIZE_MAX);
    cr_upload *up = cr_container(calls.filling.next, cr_upload, filling);
    up->heavy = CR_UPLOAD_HEAVY - 1;
    while (metric_now(CR_M_input_bytes_total) < 2 * MIB) step(c, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(up->heavy, 0);
    ck_assert_uint_eq(by_workers(), 0);
    const uint64_t here = metric_now(CR_M_input_bytes_total);
    up->heavy = CR_UPLOAD_HEAVY;
    finish(c, 1);
    stop_clock(false);
    ck_assert_uint_eq(c->sum[1], sum);
    ck_assert_uint_eq(by_workers(), NUMBERS * 4 - here);
    free_client(c);
}
END_TEST

/* A client that pauses keeps no slab, wherever it stops; what comes then is folded as before. */
START_TEST(a_pause_gives_the_slab_back) {
    static const size_t stops[] = {1, 40001, 64 * 1024, 100002, 3 * MIB + 3};
    client *c = new_client();
    queue_call(c, 1, 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, stops[_i]);
    send_all(c, SIZE_MAX);
    while (metric_now(CR_M_slabs_used)) turn();
    queue_data(c, 1, stops[_i], NUMBERS * 4);
    finish(c, 1);
    ck_assert_uint_eq(c->sum[1], sum);
    free_client(c);
}
END_TEST

/* Cancelled, or its client gone, or too much: teardown finds everything given back. */
START_TEST(it_ends_in_the_middle) {
    client *c = new_client();
    queue_call(c, 1, _i == 2 ? MIB : 4 * (uint64_t)NUMBERS);
    queue_data(c, 1, 0, 2 * MIB + 1);
    if (_i == 0) queue_frame(c, CR_FRAME_CANCEL, 0, 1, NULL, 0);
    if (_i == 1) {
        for (int i = 0; i < 6; i++) step(c, SIZE_MAX, SIZE_MAX);
        free_client(c);
        while (metric_now(CR_M_connections)) turn();
        return;
    }
    finish(c, 1);
    ck_assert_uint_eq(c->status[1], _i == 0 ? CR_CANCELLED : CR_INVALID_ARGUMENT);
    ck_assert_uint_eq(c->answers, 0);
    free_client(c);
}
END_TEST

CR_CHECK_MAIN("server/alone") {
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, the_loop_folds_it, 0, 4);
    tcase_add_test(tc, indices_count_from_the_begin);
    tcase_add_test(tc, no_more_than_a_bound_at_once);
    tcase_add_test(tc, not_beside_another_upload);
    tcase_add_loop_test(tc, not_while_others_have_their_goes, 0, 2);
    tcase_add_test(tc, not_what_takes_long);
    tcase_add_loop_test(tc, a_pause_gives_the_slab_back, 0, 5);
    tcase_add_loop_test(tc, it_ends_in_the_middle, 0, 3);
}
