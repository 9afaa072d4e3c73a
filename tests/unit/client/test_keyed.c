/* Partials by key that a daemon sends in parts: what is asked, how the parts come together, what a daemon that is too old is not asked, and
 * what a hostile one may not send. */
#include <string.h>
#include <unistd.h>

#include "cured/by_key.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { N = 4, GROUPS = 3 };
static const double elements[N] = {1.5, 2, 4, -1};
static const int32_t key[N] = {2, 0, 2, 2};
static const cured_keys keys = {key, N, CURED_I32, GROUPS, 1, false};
static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_COUNT};
static uint8_t wanted[4096];
static size_t wanted_bytes;

static cured_call *start(cured_conn *on) {
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    o.keys = &keys;
    o.partial = true;
    ck_assert_msg(cured_reduce_buffer(on, CURED_F64, ops, 2, elements, N, &o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

/* What this process makes of the same elements. */
static void make_wanted(void) {
    cured_conn *here;
    OK(cured_connect("embedded:", NULL, &here, NULL));
    cured_call *call = start(here);
    OK(cured_wait(call, NULL));
    const void *bytes = cured_call_partial(call, &wanted_bytes);
    ck_assert_uint_lt(wanted_bytes, sizeof wanted - 64);
    memcpy(wanted, bytes, wanted_bytes);
    cured_call_free(call);
    cured_close(here);
}

static const char *const features[] = {"keys", "keyed"};

/* Of a daemon with keys, and with such partials or without. */
static void welcome(bool granted) { welcome_with("keyed", features, 1 + granted); }

/* The call that waited for WELCOME. */
static cured_call *welcome_again(bool granted) {
    connect_again();
    cured_call *call = start(conn);
    welcome(granted);
    return call;
}

static uint32_t asked(void) {
    cr_frame h;
    const uint8_t *p;
    cr_wire_call m;
    cr_error e;
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_int_eq(cr_wire_unpack_call(p, h.length, &m, &e), CR_OK);
    ck_assert(m.reduce.has_keys && m.reduce.want_partial && m.reduce.unplaced);
    const uint32_t stream = h.stream;
    do fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    while (!(h.flags & CR_FLAG_END));
    return stream;
}

static void part(uint32_t stream, uint64_t at, const uint8_t *bytes, size_t n, uint32_t op) {
    const cr_wire_part m = {.op = op, .first = at, .values = bytes, .values_len = n};
    fake_part(&f, stream, &m);
}

static void end_by(uint32_t stream, const cr_wire_result *r) {
    static uint8_t p[1024];
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(r, p, sizeof p));
}

static void end(uint32_t stream) {
    const cr_wire_result r = {.count = N};
    end_by(stream, &r);
}

START_TEST(parts_come_together) {
    make_wanted();
    cured_call *call = welcome_again(true);
    for (size_t step = 1; step <= wanted_bytes; step += 37) {
        const uint32_t stream = asked();
        for (size_t at = 0; at < wanted_bytes; at += step)
            part(stream, at, wanted + at, wanted_bytes - at < step ? wanted_bytes - at : step, 0);
        end(stream);
        ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
        size_t bytes;
        const void *got = cured_call_partial(call, &bytes);
        ck_assert_uint_eq(bytes, wanted_bytes);
        ck_assert_mem_eq(got, wanted, bytes);
        cured_call_free(call);
        call = start(conn);
    }
    cured_call_free(call);
}
END_TEST

/* What came before the connection was lost is void. */
START_TEST(another_try_begins_anew) {
    size_t bytes;
    make_wanted();
    cured_call *call = welcome_again(true);
    part(asked(), 0, wanted, 40, 0);
    fake_settle(&f, conn);
    fake_drop(&f);
    for (int i = 0; i < 60000 && (cured_fd(conn) < 0 || i == 0); i++) {
        usleep(1000);
        cured_process(conn, NULL);
    }
    welcome(true);
    const uint32_t stream = asked();
    part(stream, 0, wanted, wanted_bytes, 0);
    end(stream);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_uint_eq(cured_call_retries(call), 1);
    const void *got = cured_call_partial(call, &bytes);
    ck_assert_uint_eq(bytes, wanted_bytes);
    ck_assert_mem_eq(got, wanted, bytes);
    cured_call_free(call);
}
END_TEST

START_TEST(an_old_daemon_is_not_asked) {
    cured_call *call = welcome_again(false);
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(error.text, "too old to make one by key"));
    cured_call_free(call);
}
END_TEST

/* One that takes keys and a second array, and not both together. */
START_TEST(an_old_daemon_is_not_asked_for_pairs) {
    static const char *const both[] = {"keys", "second", "keyed_pairs"};
    static const cured_op dot = CURED_OP_DOT;
    static const cured_second second = {elements, N, CURED_F64};
    for (unsigned granted = 0; granted < 2; granted++) {
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call;
        o.keys = &keys;
        o.second = &second;
        connect_again();
        OK(cured_reduce_buffer(conn, CURED_F64, &dot, 1, elements, N, &o, &call, NULL));
        welcome_with("keyed", both, 2 + granted);
        if (granted) {
            cr_frame h;
            const uint8_t *p;
            fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
            cured_cancel(call);
        } else {
            ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
            ck_assert_str_eq(error.text,
                             "second: this daemon is too old to reduce two arrays by key; a connection to "
                             "\"embedded:\" does, in this process");
        }
        cured_call_free(call);
    }
}
END_TEST

/* One that takes offsets and keys, and answers no medians by them. */
START_TEST(an_old_daemon_is_not_asked_for_medians) {
    static const char *const all[] = {"segments", "keys", "ranked_many"};
    static const cured_op median = CURED_OP_MEDIAN;
    static const int64_t borders[] = {0, 1, N};
    static const cured_offsets offsets = {borders, 3, CURED_I64};
    for (unsigned round = 0; round < 4; round++) {
        const unsigned granted = round & 1;
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call;
        if (round < 2)
            o.offsets = &offsets;
        else
            o.keys = &keys;
        connect_again();
        OK(cured_reduce_buffer(conn, CURED_F64, &median, 1, elements, N, &o, &call, NULL));
        welcome_with("ranked_many", all, 2 + granted);
        if (granted) {
            cr_frame h;
            const uint8_t *p;
            fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
            cured_cancel(call);
        } else {
            ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
            ck_assert_str_eq(error.text,
                             "ops: this daemon is too old to answer medians and quantiles by offsets and by key; a "
                             "connection to \"embedded:\" does, in this process");
        }
        cured_call_free(call);
    }
}
END_TEST

/* The sentence that ends the connection. */
static const char *const hostile[] = {
    "the parts are no partial by key",                           /* none came */
    "the parts are no partial by key",                           /* one, and it is cut within its head */
    "it does not follow the last one",                           /* a gap */
    "it does not follow the last one",                           /* twice the same */
    "it is of no partial",                                       /* of a second op */
    "the partial is longer than so many elements make it",       /* too long */
    "the partial is of other elements or groups than asked for", /* other groups */
    "the partial is of other elements or groups than asked for", /* another type */
    "it has answers, and a partial by key was asked for",        /* at the end, too */
    "it has answers, and a partial by key was asked for",        /* a partial in place of parts */
    "it has answers, and a partial by key was asked for",        /* bytes in regions that were not named */
    "it is of another number of elements than asked for",
};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

START_TEST(hostile_parts) {
    static uint8_t bytes[50000];
    make_wanted();
    cured_call *call = welcome_again(true);
    const uint32_t stream = asked();
    memcpy(bytes, wanted, wanted_bytes);
    if (_i == 1) part(stream, 0, bytes, 20, 0);
    if (_i == 2) part(stream, 1, bytes, 20, 0);
    for (int twice = 0; _i == 3 && twice < 2; twice++) part(stream, 0, bytes, 20, 0);
    if (_i == 4) part(stream, 0, bytes, wanted_bytes, 1);
    if (_i == 5) part(stream, 0, bytes, sizeof bytes, 0);
    if (_i == 6) bytes[8]++;
    if (_i == 7) bytes[3] = CURED_F32;
    if (_i >= 6 && _i != 9) part(stream, 0, bytes, wanted_bytes, 0);
    cr_wire_result last = {.count = _i == 11 ? N - 1 : N, .result_count = _i == 8, .written = _i == 10};
    last.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_F64};
    if (_i == 9) last.partial = bytes;
    if (_i == 9) last.partial_len = wanted_bytes;
    end_by(stream, &last);
    ck_assert_int_ne(cured_wait(call, &error), CURED_OK);
    ck_assert_msg(strstr(error.text, hostile[_i]) != NULL, "%d: %s", _i, error.text);
    cured_call_free(call);
}
END_TEST

CR_CHECK_MAIN("client/keyed") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, parts_come_together);
    tcase_add_test(tc, another_try_begins_anew);
    tcase_add_test(tc, an_old_daemon_is_not_asked);
    tcase_add_test(tc, an_old_daemon_is_not_asked_for_pairs);
    tcase_add_test(tc, an_old_daemon_is_not_asked_for_medians);
    tcase_add_loop_test(tc, hostile_parts, 0, HOSTILE);
}
