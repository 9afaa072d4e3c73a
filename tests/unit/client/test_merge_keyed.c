/* Merges of partials by key: what a daemon is asked, how its answers come, what one that is too old is not asked and a hostile one may not
 * send; and the same in this process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cured/by_key.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { N = 4, GROUPS = 3, ROOM = 4096 };
static const double elements[N] = {1.5, 2, 4, -1};
static const int32_t key[N] = {2, 0, 2, 2};
static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MAX};
static const double sums[GROUPS] = {2, 0, 4.5}, greatest[GROUPS] = {2, 0, 4};
static uint8_t first[ROOM], second[ROOM], wanted[ROOM];
static cured_bytes parts[2];
static size_t wanted_bytes;

static size_t make(uint8_t *to, int from, int count, uint64_t groups) {
    cured_conn *here;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    const cured_keys keys = {key + from, (uint64_t)count, CURED_I32, groups, 1, false};
    size_t bytes;
    o.keys = &keys;
    o.partial = true;
    OK(cured_connect("embedded:", NULL, &here, NULL));
    OK(cured_reduce_buffer(here, CURED_F64, ops, 2, elements + from, (uint64_t)count, &o, &call, &error));
    OK(cured_wait(call, NULL));
    const void *got = cured_call_partial(call, &bytes);
    ck_assert_uint_lt(bytes, ROOM);
    memcpy(to, got, bytes);
    cured_call_free(call);
    cured_close(here);
    return bytes;
}

static void make_parts(void) {
    void *merged;
    parts[0] = (cured_bytes){first, make(first, 0, 1, GROUPS)};
    parts[1] = (cured_bytes){second, make(second, 1, N - 1, GROUPS)};
    OK(cured_by_key_merge(parts, 2, &merged, &wanted_bytes, &error));
    memcpy(wanted, merged, wanted_bytes);
    cured_by_key_free(merged);
}

static cured_call *start(cured_conn *on, const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_merge(on, parts, 2, ops, 2, o, &call, &error) == CURED_OK, "%s", error.text);
    return call;
}

/* A call that waited for WELCOME. */
static cured_call *welcome_again(const cured_options *o, bool granted) {
    static const char *const features[] = {"statuses", "keyed", "merge_keyed"};
    make_parts();
    connect_again();
    cured_call *call = start(conn, o);
    welcome_with("merge_keyed", features, 2 + granted);
    return call;
}

/* The CALL, and both records. */
static uint32_t asked(bool partial, bool statuses) {
    cr_frame h;
    const uint8_t *p;
    const cr_wire_call m = expect(CR_CALL_MERGE, &h);
    const size_t all = 8 + parts[0].bytes + parts[1].bytes;
    const uint32_t stream = h.stream;
    ck_assert(m.reduce.keyed && m.reduce.want_partial == partial && m.reduce.statuses == statuses &&
              m.reduce.length_known);
    ck_assert_uint_eq(m.reduce.length, all);
    do fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    while (!(h.flags & CR_FLAG_END));
    ck_assert_uint_eq(h.length, all);
    ck_assert_mem_eq(p + 4, first, parts[0].bytes);
    ck_assert_mem_eq(p + 8 + parts[0].bytes, second, parts[1].bytes);
    return stream;
}

static void part(uint32_t stream, uint32_t op, uint64_t at, const void *bytes, size_t n, const uint8_t *statuses,
                 size_t count) {
    const cr_wire_part m = {
        .op = op, .first = at, .values = bytes, .values_len = n, .statuses = statuses, .statuses_len = count};
    fake_part(&f, stream, &m);
}

static void end_by(uint32_t stream, const cr_wire_result *r) {
    static uint8_t p[1024];
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(r, p, sizeof p));
}

START_TEST(a_partial_comes) {
    cured_options o = CURED_OPTIONS_INIT;
    const cr_wire_result last = {.count = N};
    size_t bytes;
    o.partial = true;
    cured_call *call = welcome_again(&o, true);
    const uint32_t stream = asked(true, false);
    for (size_t at = 0; at < wanted_bytes; at += 50)
        part(stream, 0, at, wanted + at, wanted_bytes - at < 50 ? wanted_bytes - at : 50, NULL, 0);
    end_by(stream, &last);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    const void *got = cured_call_partial(call, &bytes);
    ck_assert_uint_eq(bytes, wanted_bytes);
    ck_assert_mem_eq(got, wanted, bytes);
    ck_assert_uint_eq(cured_call_count(call), N);
    cured_call_free(call);
}
END_TEST

START_TEST(answers_come) {
    cured_options o = CURED_OPTIONS_INIT;
    double sum[GROUPS], most[GROUPS];
    const uint8_t statuses[GROUPS] = {0, CURED_INVALID_ARGUMENT, 0};
    void *const results[] = {sum, most};
    cr_wire_result last = {.count = N, .result_count = 2};
    last.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_F64};
    last.results[1] = (cr_wire_op_result){.op = CURED_OP_MAX, .dtype = CURED_F64, .status = CURED_INVALID_ARGUMENT};
    strcpy(last.results[1].message, "output 1: max of no elements has no value");
    o.results = results;
    o.statuses = true;
    cured_call *call = welcome_again(&o, true);
    const uint32_t stream = asked(false, true);
    part(stream, 1, 0, greatest, sizeof greatest, statuses, GROUPS);
    part(stream, 0, 0, sums, sizeof sums, NULL, 0);
    end_by(stream, &last);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_mem_eq(sum, sums, sizeof sums);
    ck_assert_mem_eq(most, greatest, sizeof most);
    ck_assert_int_eq(cured_call_array_statuses(call, 1, NULL)[1], CURED_INVALID_ARGUMENT);
    cured_call_free(call);
}
END_TEST

/* ---- on_part ---- */

static double taken[2][GROUPS];
static uint64_t takes;
static int ends_at; /* on_part frees the call with this one; 0: it does not */

static void on_part(cured_call *call, size_t index, uint64_t at, const void *values, uint64_t count, void *user) {
    ck_assert(index < 2 && at < GROUPS && count <= GROUPS - at);
    memcpy(taken[index] + at, values, count * sizeof taken[0][0]);
    takes += count;
    if (ends_at != 0 && --ends_at == 0) {
        *(cured_call **)user = NULL;
        cured_call_free(call);
    }
}

static cured_options by_parts(cured_call **call) {
    cured_options o = CURED_OPTIONS_INIT;
    o.on_part = on_part;
    o.user = call;
    o.statuses = true;
    takes = 0;
    ends_at = 0;
    memset(taken, 0xff, sizeof taken);
    return o;
}

static void check_parts(cured_call *call) {
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_uint_eq(takes, 2 * GROUPS);
    ck_assert_mem_eq(taken[0], sums, sizeof sums);
    ck_assert_mem_eq(taken[1], greatest, sizeof greatest);
    ck_assert_int_eq(cured_call_array_statuses(call, 1, NULL)[1], CURED_INVALID_ARGUMENT);
    ck_assert_uint_eq(cured_call_count(call), N);
    cured_call_free(call);
}

START_TEST(answers_come_by_parts) {
    const uint8_t statuses[GROUPS] = {0, CURED_INVALID_ARGUMENT, 0};
    const cured_options o = by_parts(NULL);
    cr_wire_result last = {.count = N, .result_count = 2};
    last.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_F64};
    last.results[1] = (cr_wire_op_result){.op = CURED_OP_MAX, .dtype = CURED_F64, .status = CURED_INVALID_ARGUMENT};
    strcpy(last.results[1].message, "output 1: max of no elements has no value");
    cured_call *call = welcome_again(&o, true);
    const uint32_t stream = asked(false, true);
    part(stream, 1, 0, greatest, sizeof greatest, statuses, GROUPS);
    part(stream, 0, 1, sums + 1, 2 * sizeof sums[0], NULL, 0);
    part(stream, 0, 0, sums, sizeof sums[0], NULL, 0);
    end_by(stream, &last);
    check_parts(call);
}
END_TEST

START_TEST(answers_come_by_parts_here) {
    cured_conn *here;
    cured_call *call;
    make_parts();
    OK(cured_connect("embedded:", NULL, &here, &error));
    cured_options o = by_parts(&call);
    check_parts(start(here, &o));
    double sum[GROUPS], most[GROUPS];
    void *const results[] = {sum, most};
    o = by_parts(&call);
    o.results = results;
    check_parts(start(here, &o));
    ck_assert_mem_eq(sum, sums, sizeof sums);
    ck_assert_mem_eq(most, greatest, sizeof most);
    o = by_parts(&call);
    ends_at = 1; /* the first part is the last */
    call = start(here, &o);
    while (call != NULL) OK(cured_process(here, &error));
    ck_assert_uint_eq(takes, GROUPS);
    o = by_parts(&call);
    o.statuses = false;
    call = start(here, &o);
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "output 1: max of no elements has no value"));
    cured_call_free(call);
    cured_close(here);
}
END_TEST

/* ---- Deadlines in this process ---- */

enum { MANY = 20000 };
static double many[MANY];
static int32_t each[MANY];

/* A partial by key of many groups; or one of one element, without keys. */
static void *make_large(bool keyed, size_t *bytes) {
    cured_conn *here;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    for (int32_t i = 0; i < MANY; i++) {
        many[i] = i;
        each[i] = i;
    }
    const cured_keys keys = {each, MANY, CURED_I32, MANY, 1, false};
    if (keyed) o.keys = &keys;
    o.partial = true;
    o.unplaced = !keyed;
    OK(cured_connect("embedded:", NULL, &here, NULL));
    OK(cured_reduce_buffer(here, CURED_F64, ops, 2, many, keyed ? MANY : 1, &o, &call, &error));
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    const void *got = cured_call_partial(call, bytes);
    void *copy = malloc(*bytes);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, got, *bytes);
    cured_call_free(call);
    cured_close(here);
    return copy;
}

/* A merge takes several turns, and each looks at the time. It cannot end in the first, and its time is over in the second. */
START_TEST(a_deadline_ends_a_merge_here) {
    static cured_bytes all[MANY];
    const bool keyed = _i != 0;
    size_t bytes;
    void *one = make_large(keyed, &bytes);
    const size_t count = keyed ? 2 : MANY;
    cured_conn *here;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    for (size_t i = 0; i < count; i++) all[i] = (cured_bytes){one, bytes};
    OK(cured_connect("embedded:", NULL, &here, &error));
    o.timeout_ms = 1;
    OK(cured_merge(here, all, count, ops, 2, &o, &call, &error));
    OK(cured_process(here, &error));
    ck_assert(!cured_call_done(call) || cured_call_status(call, NULL) == CURED_DEADLINE_EXCEEDED);
    usleep(5000);
    OK(cured_process(here, &error));
    ck_assert(cured_call_done(call));
    ck_assert_int_eq(cured_call_status(call, &error), CURED_DEADLINE_EXCEEDED);
    cured_call_free(call);
    o.timeout_ms = 0; /* with time enough there are answers */
    OK(cured_merge(here, all, count, ops, 2, &o, &call, &error));
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_uint_eq(cured_call_count(call), keyed ? 2 * MANY : MANY);
    if (keyed) {
        const double *sum = cured_call_array(call, 0, NULL, NULL);
        for (int32_t i = 0; i < MANY; i++) ck_assert(sum[i] == 2.0 * i);
    }
    cured_call_free(call);
    cured_close(here);
    free(one);
}
END_TEST

/* However many parts there are: a turn is of as many cells. */
START_TEST(a_turn_is_as_long_of_many_parts) {
    enum { PARTS = 5000, MOST_TURNS = 40 };
    static cured_bytes all[PARTS];
    cured_conn *here;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    make_parts();
    for (size_t i = 0; i < PARTS; i++) all[i] = parts[0];
    OK(cured_connect("embedded:", NULL, &here, &error));
    OK(cured_merge(here, all, PARTS, ops, 1, &o, &call, &error));
    unsigned turns = 0;
    for (; !cured_call_done(call); turns++) OK(cured_process(here, &error));
    ck_assert_int_eq(cured_call_status(call, &error), CURED_OK);
    ck_assert_uint_gt(turns, 1);
    ck_assert_uint_lt(turns, MOST_TURNS);
    cured_call_free(call);
    cured_close(here);
}
END_TEST

START_TEST(an_old_daemon_is_not_asked) {
    cured_call *call = welcome_again(NULL, false);
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(error.text, "too old to merge those by key"));
    cured_call_free(call);
}
END_TEST

/* The sentence that ends the connection. */
static const char *const hostile[] = {
    "the parts are no partial by key",
    "it does not follow the last one",
    "it is of no partial",
    "the partial is longer than so many elements make it",
    "the partial is of other elements or groups than asked for",
    "it has answers, and a partial by key was asked for",
};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

START_TEST(hostile_parts) {
    static uint8_t bytes[50000];
    cured_options o = CURED_OPTIONS_INIT;
    o.partial = true;
    cured_call *call = welcome_again(&o, true);
    const uint32_t stream = asked(true, false);
    cr_wire_result last = {.count = N, .result_count = _i == 5};
    last.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_F64};
    memcpy(bytes, wanted, wanted_bytes);
    if (_i == 0) part(stream, 0, 0, bytes, 20, NULL, 0);
    if (_i == 1) part(stream, 0, 1, bytes, 20, NULL, 0);
    if (_i == 2) part(stream, 1, 0, bytes, 20, NULL, 0);
    if (_i == 3) part(stream, 0, 0, bytes, sizeof bytes, NULL, 0);
    if (_i == 4) bytes[8]++;
    if (_i >= 4) part(stream, 0, 0, bytes, wanted_bytes, NULL, 0);
    end_by(stream, &last);
    ck_assert_int_ne(cured_wait(call, &error), CURED_OK);
    ck_assert_msg(strstr(error.text, hostile[_i]) != NULL, "%d: %s", _i, error.text);
    cured_call_free(call);
}
END_TEST

static void fails(cured_conn *here, const cured_bytes *some, size_t count, const cured_op *asks, const cured_options *o,
                  cured_status status, const char *words) {
    cured_call *call;
    cured_status got = cured_merge(here, some, count, asks, 1, o, &call, &error);
    if (got == CURED_OK) got = cured_wait(call, &error);
    ck_assert_msg(got == status && strstr(error.text, words) != NULL, "%d: %s, not %s", got, error.text, words);
    cured_call_free(call);
}

START_TEST(in_this_process) {
    static const cured_op least = CURED_OP_MIN, sum = CURED_OP_SUM, place = CURED_OP_ARGMAX, most = CURED_OP_MAX;
    static uint8_t more[ROOM];
    cured_conn *here;
    cured_options o = CURED_OPTIONS_INIT;
    size_t bytes;
    make_parts();
    OK(cured_connect("embedded:", NULL, &here, &error));
    o.partial = true;
    cured_call *call = start(here, &o);
    OK(cured_wait(call, &error));
    const void *got = cured_call_partial(call, &bytes);
    ck_assert_uint_eq(bytes, wanted_bytes);
    ck_assert_mem_eq(got, wanted, bytes);
    cured_call_free(call);
    o.partial = false;
    o.statuses = true;
    call = start(here, &o);
    OK(cured_wait(call, &error));
    cured_dtype dtype;
    uint64_t count;
    ck_assert_mem_eq(cured_call_array(call, 0, &dtype, &count), sums, sizeof sums);
    ck_assert(dtype == CURED_F64 && count == GROUPS);
    ck_assert_uint_eq(cured_call_count(call), N);
    ck_assert_int_eq(cured_call_array_statuses(call, 1, NULL)[1], CURED_INVALID_ARGUMENT);
    cured_call_free(call);
    const cured_bytes others[] = {parts[0], {more, make(more, 0, N, GROUPS + 1)}},
                      cut[] = {{first, parts[0].bytes - 1}}, head[] = {{first, 9}};
    fails(here, others, 2, &sum, NULL, CURED_INVALID_ARGUMENT, "one has 3 groups, another 4");
    fails(here, cut, 1, &sum, NULL, CURED_INVALID_ARGUMENT, "cut short");
    fails(here, head, 1, &sum, NULL, CURED_INVALID_ARGUMENT, "cut short");
    fails(here, parts, 2, &place, NULL, CURED_INVALID_ARGUMENT, "argmax");
    fails(here, parts, 2, &most, NULL, CURED_INVALID_ARGUMENT, "max of no elements has no value");
    OK(cured_merge(here, parts, 2, &least, 1, &o, &call, &error)); /* extrema are one family */
    OK(cured_wait(call, &error));
    cured_call_free(call);
    cured_close(here);
}
END_TEST

CR_CHECK_MAIN("client/merge_keyed") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_partial_comes);
    tcase_add_test(tc, answers_come);
    tcase_add_test(tc, answers_come_by_parts);
    tcase_add_test(tc, answers_come_by_parts_here);
    tcase_add_loop_test(tc, a_deadline_ends_a_merge_here, 0, 2);
    tcase_add_test(tc, a_turn_is_as_long_of_many_parts);
    tcase_add_test(tc, an_old_daemon_is_not_asked);
    tcase_add_loop_test(tc, hostile_parts, 0, HOSTILE);
    tcase_add_test(tc, in_this_process);
}
