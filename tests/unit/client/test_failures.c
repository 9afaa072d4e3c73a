/* libcured when things go wrong: lost connections, a daemon that breaks the protocol. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const cured_op sum = CURED_OP_SUM;
static const float three[] = {1, 2, 3};

static cured_call *start(const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

START_TEST(connection_lost_and_made_anew) {
    cured_call *stream, *call;
    cr_frame h;
    const uint8_t *p;
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 12, NULL, &stream, &error), CURED_OK);
    call = start(NULL);
    fake_settle(&f, conn);
    fake_drop(&f);
    ck_assert_int_eq(cured_process(conn, &error), CURED_UNAVAILABLE);
    ck_assert_int_eq(cured_call_status(stream, &error), CURED_UNAVAILABLE);
    ck_assert(!cured_call_done(call));
    ck_assert_int_eq(cured_fd(conn), -1);
    cured_call_free(stream);
    for (int i = 0; i < 60000 && cured_fd(conn) < 0; i++) {
        usleep(1000);
        cured_process(conn, NULL);
    }
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_uint_eq(h.stream, 1);
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    fake_sum(&f, 1, 6);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_int_eq(cured_conn_status(conn, NULL), CURED_OK);
    cured_call_free(call);
}
END_TEST

/* Lost in the middle of a frame: the next connection starts with HELLO, not with the rest. */
START_TEST(lost_in_the_middle_of_a_frame) {
    enum { BYTES = 1 << 20 };
    uint8_t *data = calloc(1, BYTES);
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    size_t n = 0;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, BYTES / 4, NULL, &call, &error), CURED_OK);
    cured_process(conn, NULL);
    fake_drop(&f);
    for (int i = 0; i < 60000 && (cured_fd(conn) < 0 || i == 0); i++) {
        usleep(1000);
        cured_process(conn, NULL);
    }
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    for (; n < BYTES; n += h.length) fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert_uint_eq(n, BYTES);
    fake_welcome(&f);
    fake_sum_of(&f, 1, 0, BYTES / 4);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    cured_call_free(call);
    free(data);
}
END_TEST

START_TEST(nobody_there_any_more) {
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    o.retries = 2;
    call = start(&o);
    fake_drop(&f);
    close(f.listener);
    f.listener = -1;
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNAVAILABLE);
    ck_assert_uint_eq(cured_call_retries(call), 2);
    cured_call_free(call);
    cured_conn *other;
    ck_assert_int_eq(cured_connect(f.address, NULL, &other, &error), CURED_UNAVAILABLE);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(strstr(error.text, "refused"));
}
END_TEST

START_TEST(daemon_says_goodbye) {
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = 0;
    cured_call *call = start(&o);
    fake_settle(&f, conn);
    fake_status(&f, 0, CR_UNAVAILABLE, 0, "shutting down");
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNAVAILABLE);
    ck_assert_str_eq(error.text, "shutting down");
    cured_call_free(call);
}
END_TEST

/* The daemon closes while the client still sends: its reason is read all the same. */
START_TEST(reason_is_read_before_the_socket_error) {
    cured_options o = CURED_OPTIONS_INIT;
    uint8_t *data = calloc(1, 1 << 20);
    cured_call *call;
    o.retries = 0;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 1 << 18, &o, &call, &error), CURED_OK);
    cured_process(conn, NULL);
    fake_status(&f, 0, CR_INVALID_ARGUMENT, 0, "frame flags are odd");
    fake_drop(&f);
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "frame flags are odd");
    cured_call_free(call);
    free(data);
    /* and the connection stays as it is */
    ck_assert_int_eq(cured_conn_status(conn, NULL), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, NULL, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_fd(conn), -1);
    ck_assert_int_eq(cured_timeout_ms(conn), -1);
}
END_TEST

/* Frames that no daemon may send. */
static const struct wrong {
    const char *name;
    bool before_welcome;
    size_t len;
    const char *bytes;
} wrongs[] = {
    {"magic", false, 16, "CS\1\7\0\0\0\0\1\0\0\0\0\0\0\0"},
    {"HELLO from a daemon", false, 16, "CR\1\1\0\0\0\0\0\0\0\0\0\0\0\0"},
    {"version 9", false, 16, "CR\11\7\0\0\0\0\1\0\0\0\0\0\0\0"},
    {"an unknown call", false, 16, "CR\1\7\1\0\0\0\2\0\0\0\0\0\0\0"},
    {"RESULT without END", false, 16, "CR\1\7\0\0\0\0\1\0\0\0\0\0\0\0"},
    {"RESULT of 1 MiB", false, 16, "CR\1\7\1\0\0\0\1\0\0\0\0\0\20\0"},
    {"RESULT without answers", false, 16, "CR\1\7\1\0\0\0\1\0\0\0\0\0\0\0"},
    {"RESULT that is no protobuf", false, 18, "CR\1\7\1\0\0\0\1\0\0\0\2\0\0\0\xff\xff"},
    {"RESULT of another op", false, 20, "CR\1\7\1\0\0\0\1\0\0\0\4\0\0\0\12\2\10\2"},
    {"f64 of no bytes", false, 22, "CR\1\7\1\0\0\0\1\0\0\0\6\0\0\0\12\4\10\1\40\15"},
    {"an at of 8 bytes for f32", false, 35, "CR\1\7\1\0\0\0\1\0\0\0\23\0\0\0\12\21\10\1\40\2\52\1\1\62\10abcdefgh"},
    {"STATUS OK", false, 16, "CR\1\10\1\0\0\0\1\0\0\0\0\0\0\0"},
    {"STATUS without END", false, 18, "CR\1\10\0\0\0\0\1\0\0\0\2\0\0\0\10\3"},
    {"WELCOME twice", false, 18, "CR\1\2\0\0\0\0\0\0\0\0\2\0\0\0\10\1"},
    {"CREDIT that is no protobuf", false, 17, "CR\1\11\0\0\0\0\1\0\0\0\1\0\0\0\xff"},
    {"RESULT before WELCOME", true, 16, "CR\1\7\1\0\0\0\1\0\0\0\0\0\0\0"},
    {"version 2 in WELCOME", true, 18, "CR\1\2\0\0\0\0\0\0\0\0\2\0\0\0\10\2"},
    {"an at of a sum", false, 40,
     "CR\1\7\1\0\0\0\1\0\0\0\30\0\0\0\12\24\10\1\40\15*\10\0\0\0\0\0\0\0\0\62\4\0\0\0\0\20\3"},
    {"a bool of 2", false, 27, "CR\1\7\1\0\0\0\1\0\0\0\13\0\0\0\12\7\10\1\40\1*\1\2\20\3"},
    {"credit_bytes of 1", true, 22, "CR\1\2\0\0\0\0\0\0\0\0\6\0\0\0\10\1\42\2\40\1"},
    {"data_bytes of 1", true, 22, "CR\1\2\0\0\0\0\0\0\0\0\6\0\0\0\10\1\42\2\20\1"},
    {"a NUL in STATUS", false, 23, "CR\1\10\1\0\0\0\1\0\0\0\7\0\0\0\10\3\22\3n\0o"},
    {"an op of 33 bits", false, 38,
     "CR\1\7\1\0\0\0\1\0\0\0\26\0\0\0\12\22\10\201\200\200\200\20\40\15*\10\0\0\0\0\0\0\0\0\20\3"},
    {"i128 for a sum of f32", false, 42,
     "CR\1\7\1\0\0\0\1\0\0\0\32\0\0\0\12\26\10\1\40\16*\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\3"},
    {"an integer of 9 bytes for a sum of f32", false, 35,
     "CR\1\7\1\0\0\0\1\0\0\0\23\0\0\0\12\17\10\1\40\17*\11\0\0\0\0\0\0\0\0\0\20\3"},
    {"a sum of f32 in f32", false, 30, "CR\1\7\1\0\0\0\1\0\0\0\16\0\0\0\12\12\10\1\40\14*\4\0\0\0\0\20\3"},
    {"a count of 4 for 3 elements", false, 34,
     "CR\1\7\1\0\0\0\1\0\0\0\22\0\0\0\12\16\10\1\40\15*\10\0\0\0\0\0\0\0\0\20\4"},
    {"no count", false, 32, "CR\1\7\1\0\0\0\1\0\0\0\20\0\0\0\12\16\10\1\40\15*\10\0\0\0\0\0\0\0\0"},
    {"WELCOME that is no protobuf", true, 17, "CR\1\2\0\0\0\0\0\0\0\0\1\0\0\0\xff"},
};
enum { WRONGS = sizeof wrongs / sizeof wrongs[0] };

START_TEST(daemon_breaks_the_protocol) {
    const struct wrong *w = &wrongs[_i];
    fake g;
    cured_conn *c;
    cured_call *call;
    fake_start(&g);
    ck_assert_int_eq(cured_connect(g.address, NULL, &c, &error), CURED_OK);
    fake_accept(&g);
    if (!w->before_welcome) fake_welcome(&g);
    ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, NULL, &call, &error), CURED_OK);
    cured_process(c, NULL);
    fake_send_raw(&g, w->bytes, w->len);
    cured_status s = cured_wait(call, &error);
    ck_assert_msg(s == CURED_INTERNAL || s == CURED_UNIMPLEMENTED, "%s: %s", w->name, cured_status_name(s));
    ck_assert_str_ne(error.text, "");
    ck_assert_int_eq(cured_conn_status(c, NULL), s);
    cured_call_free(call);
    ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, NULL, &call, &error), s);
    cured_close(c);
    fake_stop(&g);
}
END_TEST

/* A stream of any length: no answer comes before its end, and the count is what was sent. */
START_TEST(answer_to_another_stream) {
    static const struct {
        bool ended;
        uint64_t count;
        cured_status status;
    } cases[] = {{false, 3, CURED_INTERNAL}, {true, 2, CURED_INTERNAL}, {true, 3, CURED_OK}};
    cured_call *call;
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, CURED_UNKNOWN_LENGTH, NULL, &call, &error),
                     CURED_OK);
    ck_assert_int_eq(cured_stream_write(call, three, sizeof three, &error), CURED_OK);
    if (cases[_i].ended) ck_assert_int_eq(cured_stream_end(call, &error), CURED_OK);
    fake_settle(&f, conn);
    fake_sum_of(&f, 1, 6, cases[_i].count);
    ck_assert_int_eq(cured_wait(call, &error), cases[_i].status);
    cured_call_free(call);
}
END_TEST

/* A sum of integers is of their 64 bits or wider, unless another type was asked for. */
START_TEST(type_of_another_sum) {
    static const struct {
        cured_dtype asked, told;
        uint8_t bytes;
        cured_status status;
    } cases[] = {
        {CURED_DTYPE_DEFAULT, CURED_I64, 8, CURED_OK},
        {CURED_DTYPE_DEFAULT, CURED_BIGINT, 9, CURED_OK},
        {CURED_DTYPE_DEFAULT, CURED_U64, 8, CURED_INTERNAL},
        {CURED_DTYPE_DEFAULT, CURED_I128, 16, CURED_INTERNAL},
        {CURED_I128, CURED_I128, 16, CURED_OK},
        {CURED_I128, CURED_BIGINT, 9, CURED_INTERNAL},
        {CURED_F32, CURED_F32, 4, CURED_OK},
        {CURED_F32, CURED_F64, 8, CURED_INTERNAL},
    };
    static const int32_t data[] = {1, 2, 3};
    uint8_t payload[256];
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    o.result_dtype = cases[_i].asked;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_I32, &sum, 1, data, 3, &o, &call, &error), CURED_OK);
    fake_settle(&f, conn);
    static cr_wire_result r;
    r = (cr_wire_result){.count = 3, .result_count = 1};
    r.results[0].op = CURED_OP_SUM;
    r.results[0].dtype = cases[_i].told;
    r.results[0].value_len = cases[_i].bytes;
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, 1, payload, cr_wire_pack_result(&r, payload, sizeof payload));
    ck_assert_int_eq(cured_wait(call, &error), cases[_i].status);
    cured_call_free(call);
}
END_TEST

/* An index is one of the elements, which begin with `first`: a program may look there. */
START_TEST(index_of_no_element) {
    static const struct {
        uint64_t first, index;
        cured_status status;
    } cases[] = {{0, 2, CURED_OK},     {0, 3, CURED_INTERNAL},    {0, UINT64_MAX, CURED_INTERNAL},
                 {100, 102, CURED_OK}, {100, 99, CURED_INTERNAL}, {100, 103, CURED_INTERNAL}};
    static const cured_op argmax = CURED_OP_ARGMAX;
    uint8_t payload[256];
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    o.first = cases[_i].first;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &argmax, 1, three, 3, &o, &call, &error), CURED_OK);
    fake_settle(&f, conn);
    static cr_wire_result r;
    r = (cr_wire_result){.count = 3, .result_count = 1};
    r.results[0] = (cr_wire_op_result){.op = CURED_OP_ARGMAX, .dtype = CURED_U64, .value_len = 8, .at_len = 4};
    memcpy(r.results[0].value, &cases[_i].index, sizeof cases[_i].index);
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, 1, payload, cr_wire_pack_result(&r, payload, sizeof payload));
    ck_assert_int_eq(cured_wait(call, &error), cases[_i].status);
    cured_call_free(call);
}
END_TEST

START_TEST(pings_are_answered) {
    enum { N = 500 };
    int pongs = 0;
    cr_frame h;
    const uint8_t *p;
    for (int i = 0; i < N; i++) {
        fake_send(&f, CR_FRAME_PING, 0, 0, &i, sizeof i);
        if (i % 50 == 0) fake_settle(&f, conn);
    }
    fake_settle(&f, conn);
    for (; fake_take(&f, &h, &p); pongs++) {
        ck_assert_uint_eq(h.type, CR_FRAME_PONG);
        ck_assert_uint_eq(h.length, sizeof pongs);
        ck_assert_mem_eq(p, &pongs, sizeof pongs);
    }
    ck_assert_int_eq(pongs, N);
}
END_TEST

/* More PINGs than there is room to answer, while a frame that the daemon does not read blocks the way. */
START_TEST(pings_without_end) {
    uint8_t *data = calloc(1, 1 << 20);
    cured_call *call;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 1 << 18, NULL, &call, &error), CURED_OK);
    for (int i = 0; i < 1000 && cured_process(conn, &error) == CURED_OK; i++)
        for (int k = 0; k < 20; k++) fake_send(&f, CR_FRAME_PING, 0, 0, data, 64);
    ck_assert_int_eq(cured_conn_status(conn, &error), CURED_INTERNAL);
    ck_assert_ptr_nonnull(strstr(error.text, "PING"));
    ck_assert_int_eq(cured_call_status(call, NULL), CURED_INTERNAL);
    cured_call_free(call);
    free(data);
}
END_TEST

/* A daemon that never stops to talk keeps no call from its deadline. */
START_TEST(talk_without_end) {
    static const struct {
        cr_frame_type type;
        uint32_t stream;
        size_t len;
    } talk[] = {{CR_FRAME_CREDIT, 1, 0}, {CR_FRAME_PROGRESS, 1, 0}, {CR_FRAME_PONG, 0, 8}, {CR_FRAME_CREDIT, 1, 2}};
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    o.timeout_ms = 20;
    o.progress_ms = 1;
    ck_assert_int_eq(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, 12, &o, &call, &error), CURED_OK);
    fake_settle(&f, conn);
    for (int i = 0; i < 10000000 && !cured_call_done(call); i++) {
        size_t k = (size_t)i % 4;
        fake_send(&f, talk[k].type, 0, talk[k].stream, "\10\1\0\0\0\0\0", talk[k].len);
        ck_assert_int_eq(cured_process(conn, NULL), CURED_OK);
    }
    ck_assert_int_eq(cured_call_status(call, &error), CURED_DEADLINE_EXCEEDED);
    cured_call_free(call);
}
END_TEST

START_TEST(ping_and_info) {
    cured_call *ping, *info;
    cr_frame h;
    const uint8_t *p;
    uint8_t id[8], out[512];
    ck_assert_int_eq(cured_ping(conn, NULL, &ping, &error), CURED_OK);
    fake_expect(&f, conn, CR_FRAME_PING, &h, &p);
    ck_assert_uint_eq(h.length, 8);
    memcpy(id, p, 8);
    fake_send(&f, CR_FRAME_PONG, 0, 0, "otherone", 8);
    fake_send(&f, CR_FRAME_PONG, 0, 0, "x", 1);
    cured_process(conn, NULL);
    ck_assert(!cured_call_done(ping));
    fake_send(&f, CR_FRAME_PONG, 0, 0, id, 8);
    ck_assert_int_eq(cured_wait(ping, &error), CURED_OK);
    ck_assert_uint_gt(cured_call_elapsed_ns(ping), 0);
    ck_assert_ptr_null(cured_call_info(ping));
    cured_call_free(ping);
    ck_assert_int_eq(cured_info(conn, NULL, &info, &error), CURED_OK);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_uint_eq(h.flags, CR_FLAG_END);
    cr_wire_info *m = calloc(1, sizeof *m);
    strcpy(m->version, "9.8.7");
    m->lane_count = 1;
    strcpy(m->lanes[0].name, "cpu");
    m->counter_count = 1;
    m->counters[0] = (cr_wire_counter){"calls", 42};
    m->limits.ops = 32;
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, h.stream, out, cr_wire_pack_info(m, out, sizeof out));
    free(m);
    ck_assert_int_eq(cured_wait(info, &error), CURED_OK);
    const cured_server_info *i = cured_call_info(info);
    ck_assert_str_eq(i->version, "9.8.7");
    ck_assert_uint_eq(i->lane_count, 1);
    ck_assert_str_eq(i->lanes[0].name, "cpu");
    ck_assert_uint_eq(i->counters[0].value, 42);
    ck_assert_uint_eq(i->max_ops, 32);
    cured_call_free(info);
}
END_TEST

/* Answers that arrive a byte at a time, with something to skip in between. */
START_TEST(a_byte_at_a_time) {
    uint8_t all[4096];
    cured_call *call = start(NULL);
    cured_process(conn, NULL);
    fake_read(&f);
    cr_frame skip = {.type = 99, .flags = CR_FLAG_IGNORABLE, .stream = 0, .length = 40};
    cr_frame_put(all, &skip);
    memset(all + 16, 0xee, 40);
    size_t n = 56;
    static cr_wire_result r = {.count = 3, .result_count = 1, .results = {{.op = 1, .dtype = 13, .value_len = 8}}};
    size_t len = cr_wire_pack_result(&r, all + n + 16, 256);
    cr_frame h = {.type = CR_FRAME_RESULT, .flags = CR_FLAG_END, .stream = 1, .length = (uint32_t)len};
    cr_frame_put(all + n, &h);
    n += 16 + len;
    for (size_t i = 0; i < n; i++) {
        ck_assert(!cured_call_done(call));
        fake_send_raw(&f, all + i, 1);
        ck_assert_int_eq(cured_process(conn, &error), CURED_OK);
    }
    ck_assert(cured_call_done(call));
    cured_call_free(call);
}
END_TEST

START_TEST(addresses) {
    static const char *const bad[] = {"",
                                      "unix:",
                                      "tcp:",
                                      "tcp:host",
                                      "tcp:host:",
                                      "tcp::1",
                                      "tcp:h:0",
                                      "tcp:h:65536",
                                      "tcp:h:1x",
                                      "tcp:h:-1",
                                      "tcp:[::1:5",
                                      "tcp:[]:5",
                                      "tcp:h:99999999999999999999"};
    cured_conn *c;
    char longest[600];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(cured_connect(bad[i], NULL, &c, &error) == CURED_INVALID_ARGUMENT, "'%s'", bad[i]);
    memset(longest, 'p', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(cured_connect(longest, NULL, &c, &error), CURED_INVALID_ARGUMENT);
    longest[108] = '\0';
    ck_assert_int_eq(cured_connect(longest, NULL, &c, &error), CURED_INVALID_ARGUMENT);
    longest[107] = '\0';
    ck_assert_int_eq(cured_connect(longest, NULL, &c, &error), CURED_UNAVAILABLE);
    cured_connect_options o = CURED_CONNECT_OPTIONS_INIT;
    o.client = longest; /* a name of 107 bytes */
    ck_assert_int_eq(cured_connect(f.address, &o, &c, &error), CURED_INVALID_ARGUMENT);
    setenv("CURED_CONNECT", "unix:/somewhere", 1);
    char text[CURED_ADDRESS_BYTES];
    ck_assert_int_eq(cured_default_address(text, sizeof text, &error), CURED_OK);
    ck_assert_str_eq(text, "unix:/somewhere");
    ck_assert_int_eq(cured_default_address(text, 5, &error), CURED_INVALID_ARGUMENT);
}
END_TEST

/* A TCP port on which nobody listens: the call ends, with the reason. */
START_TEST(tcp_refused) {
    cured_conn *c;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = 0;
    ck_assert_int_eq(cured_connect("tcp:127.0.0.1:1", NULL, &c, &error), CURED_OK);
    ck_assert(!cured_passes_fd(c));
    ck_assert_int_eq(cured_reduce_fd(c, CURED_F32, &sum, 1, 0, 0, 1, NULL, &call, &error), CURED_FAILED_PRECONDITION);
    ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, &o, &call, &error), CURED_OK);
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.text, "refused"));
    ck_assert_int_eq(cured_connected(c, NULL), CURED_UNAVAILABLE);
    cured_call_free(call);
    cured_close(c);
}
END_TEST

/* A daemon that accepts and says nothing. */
START_TEST(connect_timeout) {
    fake g;
    cured_conn *c;
    cured_call *call;
    cured_connect_options co = CURED_CONNECT_OPTIONS_INIT;
    cured_options o = CURED_OPTIONS_INIT;
    co.connect_timeout_ms = 5;
    o.retries = 0;
    fake_start(&g);
    ck_assert_int_eq(cured_connect(g.address, &co, &c, &error), CURED_OK);
    ck_assert_int_eq(cured_reduce_buffer(c, CURED_F32, &sum, 1, three, 3, &o, &call, &error), CURED_OK);
    ck_assert_int_eq(cured_wait(call, &error), CURED_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.text, "5 ms"));
    cured_call_free(call);
    cured_close(c);
    fake_stop(&g);
}
END_TEST

CR_CHECK_MAIN("failures") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, connection_lost_and_made_anew);
    tcase_add_test(tc, lost_in_the_middle_of_a_frame);
    tcase_add_test(tc, nobody_there_any_more);
    tcase_add_test(tc, daemon_says_goodbye);
    tcase_add_test(tc, reason_is_read_before_the_socket_error);
    tcase_add_loop_test(tc, daemon_breaks_the_protocol, 0, WRONGS);
    tcase_add_loop_test(tc, answer_to_another_stream, 0, 3);
    tcase_add_loop_test(tc, type_of_another_sum, 0, 8);
    tcase_add_loop_test(tc, index_of_no_element, 0, 6);
    tcase_add_test(tc, pings_are_answered);
    tcase_add_test(tc, pings_without_end);
    tcase_add_test(tc, talk_without_end);
    tcase_add_test(tc, ping_and_info);
    tcase_add_test(tc, a_byte_at_a_time);
    tcase_add_test(tc, addresses);
    tcase_add_test(tc, tcp_refused);
    tcase_add_test(tc, connect_timeout);
}
