/* A request is not checked again where it comes by the bytes of the last one. What it is answered must not depend on what was asked
 * before it, by whomever. */
#include <string.h>

#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { PAYLOAD = 128 };

static const uint32_t data[3] = {1, 2, UINT32_MAX};

typedef struct outcome {
    uint32_t status;
    uint64_t value;
} outcome;

/* Requests that differ by little: in what they ask, in what is wrong with them, and in whether they may be remembered. */
static const struct {
    const char *name;
    bool remembered, no_value; /* of the answer only the status is looked at */
    cr_wire_reduce reduce;
} cases[] = {
#define ASKED .source = CR_SOURCE_STREAM, .op_count = 1, .length_known = true
    {"sum", true, false, {ASKED, .length = 12, .dtype = CR_U32, .ops = {CR_OP_SUM}}},
    {"mean", true, false, {ASKED, .length = 12, .dtype = CR_U32, .ops = {CR_OP_MEAN}}},
    {"sum of i32", true, false, {ASKED, .length = 12, .dtype = CR_I32, .ops = {CR_OP_SUM}}},
    {"sum of u8", true, false, {ASKED, .length = 12, .dtype = CR_U8, .ops = {CR_OP_SUM}}},
    {"two ops",
     true,
     false,
     {.source = CR_SOURCE_STREAM, .op_count = 2, .length = 12, .dtype = CR_U32, .ops = {CR_OP_SUM, CR_OP_MEAN}}},
    {"of any length", true, false, {.source = CR_SOURCE_STREAM, .op_count = 1, .dtype = CR_U32, .ops = {CR_OP_SUM}}},
    {"too long", true, false, {ASKED, .length = 16, .dtype = CR_U32, .ops = {CR_OP_SUM}}},
    {"too short", true, false, {ASKED, .length = 8, .dtype = CR_U32, .ops = {CR_OP_SUM}}},
    {"no multiple", false, false, {ASKED, .length = 10, .dtype = CR_U32, .ops = {CR_OP_SUM}}},
    {"no type", false, false, {ASKED, .length = 12, .dtype = 200, .ops = {CR_OP_SUM}}},
    {"no op", false, false, {ASKED, .length = 12, .dtype = CR_U32, .ops = {99}}},
    {"no policy", false, false, {ASKED, .length = 12, .dtype = CR_U32, .nan = 9, .ops = {CR_OP_SUM}}},
    {"a kernel", false, false, {ASKED, .length = 12, .dtype = CR_U32, .kernel = "v0", .ops = {CR_OP_SUM}}},
    {"an axis",
     false,
     true,
     {ASKED, .length = 12, .dtype = CR_U32, .ops = {CR_OP_SUM}, .has_axis = true, .outer = 1, .n = 3, .inner = 1}},
#undef ASKED
};
enum { CASES = sizeof cases / sizeof *cases };

static void queue_case(client *c, uint32_t stream, int i) {
    uint8_t payload[PAYLOAD];
    const cr_wire_call call = {.kind = CR_CALL_REDUCE, .reduce = cases[i].reduce};
    queue_frame(c, CR_FRAME_CALL, 0, stream, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, stream, data, sizeof data);
}

static outcome outcome_of(const client *c, uint32_t stream, int i) {
    return (outcome){c->status[stream], cases[i].no_value || c->status[stream] ? 0 : c->sum[stream]};
}

static void check_same(outcome came, outcome wanted, int before, int i) {
    ck_assert_msg(came.status == wanted.status && came.value == wanted.value,
                  "%s behind %s: status %u, value %#llx; alone: status %u, value %#llx", cases[i].name,
                  cases[before].name, came.status, (unsigned long long)came.value, wanted.status,
                  (unsigned long long)wanted.value);
}

START_TEST(no_answer_depends_on_the_last_request) {
    outcome alone[CASES];
    for (int i = 0; i < CASES; i++) {
        client *c = new_client();
        calls.again.bytes = 0;
        queue_case(c, 1, i);
        finish(c, 1);
        alone[i] = outcome_of(c, 1, i);
        ck_assert_msg((calls.again.bytes != 0) == cases[i].remembered, "%s", cases[i].name); /* or nothing is shown */
        free_client(c);
    }
    ck_assert_uint_eq(alone[0].value, (uint64_t)UINT32_MAX + 3);
    ck_assert_uint_ne(alone[0].value, alone[1].value);
    for (int a = 0; a < CASES; a++)
        for (int b = 0; b < CASES; b++) {
            client *c = new_client(), *other = new_client();
            queue_case(c, 1, a);
            queue_case(c, 2, b);
            queue_case(c, 3, a);
            queue_case(c, 4, a);
            finish(c, 4);
            queue_case(other, 1, b);
            finish(other, 1);
            check_same(outcome_of(c, 2, b), alone[b], a, b);
            check_same(outcome_of(c, 3, a), alone[a], b, a);
            check_same(outcome_of(c, 4, a), alone[a], a, a);
            check_same(outcome_of(other, 1, b), alone[b], a, b);
            free_client(c);
            free_client(other);
        }
}
END_TEST

/* Whether a kernel runs is up to the GPU, and how long its array may be to an option. */
START_TEST(what_depends_on_more_than_bytes_is_asked_each_time) {
    client *c = new_client();
    uint8_t payload[PAYLOAD];
    const cr_wire_call call = {.kind = CR_CALL_REDUCE,
                               .reduce = {.source = CR_SOURCE_STREAM,
                                          .op_count = 1,
                                          .dtype = CR_F32,
                                          .length_known = true,
                                          .length = 12,
                                          .kernel = "v0_baseline",
                                          .ops = {CR_OP_SUM}}};
    const size_t n = cr_wire_pack_call(&call, payload, sizeof payload);
    calls.again.bytes = 0;
    calls.runs_kernels = true;
    config.max_kernel_bytes = 1024;
    queue_frame(c, CR_FRAME_CALL, 0, 1, payload, n);
    for (int i = 0; i < 10; i++) step(c, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(metric_now(CR_M_calls), 1); /* its checks are over */
    ck_assert_uint_eq(calls.again.bytes, 0);
    queue_frame(c, CR_FRAME_CANCEL, 0, 1, NULL, 0);
    finish(c, 1);
    calls.runs_kernels = false;
    queue_frame(c, CR_FRAME_CALL, 0, 2, payload, n);
    finish(c, 2);
    ck_assert_uint_eq(c->status[2], CR_FAILED_PRECONDITION);
    free_client(c);
}
END_TEST

CR_CHECK_MAIN("server/again") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_answer_depends_on_the_last_request);
    tcase_add_test(tc, what_depends_on_more_than_bytes_is_asked_each_time);
}
