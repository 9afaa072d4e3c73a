/* libcured's statuses of answers along an axis: when they are asked for, what a program reads, and what a hostile daemon may not do;
 * and the same of this process. */
#include <string.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

static const int64_t four[] = {INT64_MAX, 1, 2, 3};
static const cured_axis rows = {2, 2, 1};
static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MAX};
static const int64_t sums[] = {0, 5}, most[] = {INT64_MAX, 3};
static const uint8_t statuses[] = {CURED_OUT_OF_RANGE, CURED_OK};

static cured_options with_statuses(void) {
    cured_options o = CURED_OPTIONS_INIT;
    o.axis = &rows;
    o.statuses = true;
    return o;
}

static cured_call *start(const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_reduce_buffer(conn, CURED_I64, ops, 2, four, 4, o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

/* The whole call, its one DATA too: whether it asks for statuses. */
static bool taken_call(uint32_t *stream) {
    cr_frame h;
    const uint8_t *p;
    cr_wire_call m;
    cr_error e;
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_int_eq(cr_wire_unpack_call(p, h.length, &m, &e), CR_OK);
    *stream = h.stream;
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    return m.reduce.statuses;
}

/* WELCOME of a daemon that has the feature, in place of the fixture's. */
static void welcome_again(bool granted) {
    static const char *const features[] = {"statuses"};
    cr_frame h;
    const uint8_t *payload;
    connect_again();
    cured_options o = with_statuses();
    cured_call *call = start(&o); /* waits for WELCOME */
    welcome_with("statuses", features, granted);
    uint32_t stream;
    ck_assert(taken_call(&stream) == granted);
    cured_call_free(call);
    fake_expect(&f, conn, CR_FRAME_CANCEL, &h, &payload);
}

static void part(uint32_t stream, uint32_t op, const void *values, const uint8_t *with, size_t count) {
    const cr_wire_part m = {.op = op, .values = values, .values_len = 16, .statuses = with, .statuses_len = count};
    fake_part(&f, stream, &m);
}

static void end(uint32_t stream, cr_status of_sum) {
    static uint8_t p[1024];
    static cr_wire_result r;
    r = (cr_wire_result){.count = 4, .result_count = 2};
    r.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_I64, .status = of_sum};
    r.results[1] = (cr_wire_op_result){.op = CURED_OP_MAX, .dtype = CURED_I64};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(&r, p, sizeof p));
}

static void check_answers(cured_call *call) {
    uint64_t missing;
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_mem_eq(cured_call_array(call, 0, NULL, NULL), sums, sizeof sums);
    ck_assert_mem_eq(cured_call_array(call, 1, NULL, NULL), most, sizeof most);
    ck_assert_mem_eq(cured_call_array_statuses(call, 0, &missing), statuses, 2);
    ck_assert_uint_eq(missing, 1);
    ck_assert_int_eq(cured_call_array_status(call, 0, &error), CURED_OUT_OF_RANGE);
    ck_assert_str_eq(error.text, "output 0: the sum does not fit i64; 1 of 2 answers have no value");
    ck_assert_mem_eq(cured_call_array_statuses(call, 1, &missing), "\0\0", 2);
    ck_assert_uint_eq(missing, 0);
    ck_assert_int_eq(cured_call_array_status(call, 1, &error), CURED_OK);
    ck_assert_ptr_null(cured_call_array_statuses(call, 2, &missing));
    ck_assert_int_eq(cured_call_array_status(call, 2, &error), CURED_FAILED_PRECONDITION);
    cured_call_free(call);
}

START_TEST(a_status_for_each) {
    cured_options o = with_statuses();
    uint32_t stream;
    welcome_again(true);
    cured_call *call = start(&o);
    ck_assert(taken_call(&stream));
    part(stream, 0, sums, statuses, 2);
    part(stream, 1, most, NULL, 0);
    end(stream, CR_OUT_OF_RANGE);
    check_answers(call);
    o.statuses = false; /* who does not ask */
    call = start(&o);
    ck_assert(!taken_call(&stream));
    fake_status(&f, stream, CR_OUT_OF_RANGE, 0, "output 0");
    ck_assert_int_eq(cured_wait(call, &error), CURED_OUT_OF_RANGE);
    ck_assert_ptr_null(cured_call_array_statuses(call, 0, NULL));
    cured_call_free(call);
}
END_TEST

START_TEST(an_old_daemon_is_asked_as_before) {
    cured_options o = with_statuses();
    uint32_t stream;
    uint64_t missing;
    welcome_again(false);
    cured_call *call = start(&o);
    ck_assert(!taken_call(&stream));
    part(stream, 0, most, NULL, 0);
    part(stream, 1, most, NULL, 0);
    end(stream, CR_OK);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_mem_eq(cured_call_array_statuses(call, 0, &missing), "\0\0", 2);
    ck_assert_int_eq(cured_call_array_status(call, 0, &error), CURED_OK);
    cured_call_free(call);
}
END_TEST

START_TEST(hostile_statuses) {
    static const uint8_t none[] = {200, 0};
    for (int i = 0; i < 5; i++) {
        cured_options o = with_statuses();
        uint32_t stream;
        welcome_again(true);
        o.statuses = i != 3;
        cured_call *call = start(&o);
        taken_call(&stream);
        part(stream, 0, sums, i == 0 ? none : statuses, i == 1 ? 1 : 2);
        part(stream, 1, most, NULL, 0);
        end(stream, i == 2 ? CR_OK : CR_OUT_OF_RANGE);
        ck_assert_int_eq(cured_wait(call, &error), i == 4 ? CURED_OK : CURED_INTERNAL);
        cured_call_free(call);
    }
}
END_TEST

static uint8_t seen[2];

static void on_part(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user) {
    (void)values, (void)user;
    if (index == 0) memcpy(seen + first, cured_call_array_statuses(call, 0, NULL) + first, count);
}

START_TEST(in_this_process) {
    cured_conn *own;
    cured_call *call;
    cured_options o = with_statuses();
    OK(cured_connect("embedded:", NULL, &own, &error));
    OK(cured_reduce_buffer(own, CURED_I64, ops, 2, four, 4, &o, &call, &error));
    check_answers(call);
    o.on_part = on_part; /* which takes a job */
    OK(cured_reduce_buffer(own, CURED_I64, ops, 2, four, 4, &o, &call, &error));
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_mem_eq(seen, statuses, 2);
    ck_assert_int_eq(cured_call_array_status(call, 0, &error), CURED_OUT_OF_RANGE);
    cured_call_free(call);
    const cured_axis none = {2, 0, 1};
    o.on_part = NULL;
    o.axis = &none;
    OK(cured_reduce_buffer(own, CURED_I64, ops, 2, four, 0, &o, &call, &error));
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_int_eq(cured_call_array_status(call, 0, &error), CURED_OK);
    ck_assert_int_eq(cured_call_array_status(call, 1, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "output 0: max of no elements has no value; 2 of 2 answers have none");
    cured_call_free(call);
    o.statuses = false;
    OK(cured_reduce_buffer(own, CURED_I64, ops, 2, four, 0, &o, &call, &error));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    cured_call_free(call);
    cured_close(own);
}
END_TEST

CR_CHECK_MAIN("statuses") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_status_for_each);
    tcase_add_test(tc, an_old_daemon_is_asked_as_before);
    tcase_add_test(tc, hostile_statuses);
    tcase_add_test(tc, in_this_process);
}
