/* libcured in the caller's process: what calls wait for while others stand still, and what none can wait for. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

enum { STREAMS = 12, TURNS = 1000 };

#define OK(call) ck_assert_int_eq(call, CURED_OK)

static const uint32_t thread_counts[] = {1, 3};

static int64_t integer(const cured_call *call) {
    int64_t value = -1;
    OK(cured_value_int64(cured_call_value(call, 0), &value));
    return value;
}

/* Turns until the bytes are taken; far more than any stream needs. */
static void expect_taken(cured_conn *conn, const cured_call *call) {
    for (int i = 0; i < TURNS && cured_stream_pending(call) != 0; i++) cured_process(conn, NULL);
    ck_assert_uint_eq(cured_stream_pending(call), 0);
}

/* Streams that each have a few bytes, and stand still, hold up no other. */
START_TEST(many_streams) {
    static const cured_op sum = CURED_OP_SUM;
    static const uint8_t bytes[] = {1, 2, 3, 4};
    cured_conn *conn = connect_threads(thread_counts[_i]);
    cured_call *calls[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        OK(cured_reduce_stream_begin(conn, CURED_U8, &sum, 1, CURED_UNKNOWN_LENGTH, NULL, &calls[i], NULL));
        OK(cured_stream_write(calls[i], bytes, sizeof bytes, NULL));
        expect_taken(conn, calls[i]);
    }
    for (int i = 0; i < STREAMS; i++) {
        OK(cured_stream_write(calls[i], bytes, (size_t)i % 4, NULL));
        expect_taken(conn, calls[i]);
        OK(cured_stream_end(calls[i], NULL));
        OK(cured_wait(calls[i], NULL));
        ck_assert_int_eq(integer(calls[i]), 10 + (i % 4) * (i % 4 + 1) / 2);
        cured_call_free(calls[i]);
    }
    cured_close(conn);
}
END_TEST

/* Every other part first: together they leave no gap, and before the last ones more than a partial may have. */
START_TEST(many_parts_in_any_order) {
    enum { PARTS = 4000 };
    static const cured_op sum = CURED_OP_SUM;
    static cured_bytes parts[PARTS];
    static cured_call *calls[PARTS];
    cured_conn *conn = connect_threads(1);
    cured_call *merged;
    for (uint32_t i = 0; i < PARTS; i++) {
        const uint32_t at = i < PARTS / 2 ? 2 * i : 2 * i - PARTS + 1;
        cured_options o = CURED_OPTIONS_INIT;
        o.partial = true;
        o.first = at;
        OK(cured_reduce_buffer(conn, CURED_U32, &sum, 1, &at, 1, &o, &calls[i], NULL));
        OK(cured_wait(calls[i], NULL));
        parts[i].data = cured_call_partial(calls[i], &parts[i].bytes);
    }
    OK(cured_merge(conn, parts, PARTS, &sum, 1, NULL, &merged, NULL));
    OK(cured_wait(merged, NULL));
    ck_assert_int_eq(integer(merged), (int64_t)PARTS * (PARTS - 1) / 2);
    for (int i = 0; i < PARTS; i++) cured_call_free(calls[i]);
    cured_call_free(merged);
    cured_close(conn);
}
END_TEST

/* Threads may end other calls, too, while one is dropped whose claim they still fold: those are answered, and nobody looks for them for
 * ever. Which call ends when is up to the machine; without the news of the others a round in some dozens went on for ever. */
START_TEST(calls_that_end_while_another_is_dropped) {
    enum { ROUNDS = 60, CALLS = 3, ELEMENTS = 9 << 20, HANG_MS = 60000 };
    static const cured_op sum = CURED_OP_SUM;
    static uint8_t data[ELEMENTS];
    memset(data, 1, sizeof data);
    cured_conn *conn = connect_threads(thread_counts[_i] + 1);
    for (int round = 0; round < ROUNDS; round++) {
        cured_call *calls[CALLS];
        cured_options o = CURED_OPTIONS_INIT;
        const cured_keys keys = {data, ELEMENTS, CURED_U8, 2, 1, false};
        const int dropped = round % CALLS;
        for (int i = 0; i < CALLS; i++) {
            o.keys = i == dropped && round % 8 < 4 ? &keys : NULL;
            OK(cured_reduce_buffer(conn, CURED_U8, &sum, 1, data, ELEMENTS, &o, &calls[i], NULL));
        }
        for (int turns = round % 7; turns > 0; turns--) cured_process(conn, NULL);
        cured_call_free(calls[dropped]);
        for (int i = 0; i < CALLS; i++) {
            if (i == dropped) continue;
            OK(cured_wait_for(calls[i], HANG_MS, NULL));
            ck_assert_int_eq(integer(calls[i]), ELEMENTS);
            cured_call_free(calls[i]);
        }
    }
    cured_close(conn);
}
END_TEST

START_TEST(cuda_memory_asks_for_a_daemon) {
    cured_conn *conn = connect_threads(1);
    cured_region *region;
    cured_error error;
    const char handle[64] = "";
    cured_cuda_memory memory = {.handle = handle, .fd = -1, .bytes = 64};
    OK(cured_region_cuda(conn, &memory, &region, NULL));
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(error.text, "daemon"));
    cured_call *call;
    const cured_op op = CURED_OP_SUM;
    OK(cured_region_reduce(region, CURED_F32, &op, 1, 0, 4, NULL, &call, NULL));
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
    cured_call_free(call);
    cured_region_free(region);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("embedded_waits") {
    tcase_add_loop_test(tc, many_streams, 0, 2);
    tcase_add_test(tc, many_parts_in_any_order);
    tcase_add_loop_test(tc, calls_that_end_while_another_is_dropped, 0, 2);
    tcase_add_test(tc, cuda_memory_asks_for_a_daemon);
}
