/* libcured's arrays of answers against a fake daemon: what is asked for, where the parts go, and what a hostile daemon may not do. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const float six[] = {1, 2, 3, 4, 5, 6};
static const cured_axis rows = {2, 3, 1};
static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMAX};

static cured_call *start(const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_reduce_buffer(conn, CURED_F32, ops, 2, six, 6, o, &call, &error) == CURED_OK, "%s", error.text);
    return call;
}

static cured_options with_axis(void) {
    cured_options o = CURED_OPTIONS_INIT;
    o.axis = &rows;
    return o;
}

static uint32_t taken_stream(void) {
    cr_frame h;
    const uint8_t *p;
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    return h.stream;
}

/* The whole call, its one DATA too. */
static uint32_t taken_call(void) {
    cr_frame h;
    const uint8_t *p;
    uint32_t stream = taken_stream();
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    return stream;
}

static void part(uint32_t stream, uint32_t op, uint64_t first, const void *values, size_t bytes) {
    fake_part(&f, stream, &(cr_wire_part){.op = op, .first = first, .values = values, .values_len = bytes});
}

static void end(uint32_t stream, uint32_t sum_dtype) {
    uint8_t p[256];
    static cr_wire_result r;
    r = (cr_wire_result){.count = 6, .result_count = 2};
    r.results[0].op = CURED_OP_SUM;
    r.results[0].dtype = sum_dtype;
    r.results[1].op = CURED_OP_ARGMAX;
    r.results[1].dtype = CURED_U64;
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(&r, p, sizeof p));
}

static const double sums[] = {6, 15};
static const uint64_t at[] = {2, 2};

START_TEST(parts_in_any_order) {
    cr_frame h;
    const uint8_t *p;
    cr_wire_call m;
    cr_error e;
    cured_options o = with_axis();
    cured_call *call = start(&o);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_int_eq(cr_wire_unpack_call(p, h.length, &m, &e), CR_OK);
    ck_assert(m.reduce.has_axis && m.reduce.outer == 2 && m.reduce.n == 3 && m.reduce.inner == 1);
    ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
    part(h.stream, 0, 1, &sums[1], 8);
    part(h.stream, 1, 0, at, 16);
    part(h.stream, 1, 2, NULL, 0); /* of nothing: allowed */
    part(h.stream, 0, 0, &sums[0], 8);
    end(h.stream, CURED_F64);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    cured_dtype dtype;
    uint64_t count;
    const void *values = cured_call_array(call, 0, &dtype, &count);
    ck_assert(dtype == CURED_F64 && count == 2);
    ck_assert_mem_eq(values, sums, sizeof sums);
    values = cured_call_array(call, 1, &dtype, &count);
    ck_assert(dtype == CURED_U64 && count == 2);
    ck_assert_mem_eq(values, at, sizeof at);
    ck_assert_ptr_null(cured_call_array(call, 2, &dtype, &count));
    ck_assert(dtype == CURED_DTYPE_DEFAULT && count == 0);
    ck_assert_ptr_null(cured_call_value(call, 0));
    ck_assert_uint_eq(cured_call_count(call), 6);
    cured_call_free(call);
}
END_TEST

struct seen {
    int parts;
    bool cancel, free;
    double sums[2];
    cured_call *call;
};

static void on_part(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user) {
    struct seen *s = user;
    s->parts++;
    if (index == 0) memcpy(s->sums + first, values, count * 8);
    if (s->cancel) cured_cancel(call);
    if (s->free) cured_call_free(call);
}

START_TEST(own_memory_and_callback) {
    struct seen s = {0};
    double mine[2] = {0, 0};
    uint64_t index[2];
    void *results[] = {mine, index};
    cured_options o = with_axis();
    o.on_part = on_part;
    o.user = &s;
    for (int own = 0; own < 2; own++) {
        o.results = own ? results : NULL;
        memset(&s, 0, sizeof s);
        cured_call *call = start(&o);
        uint32_t stream = taken_call();
        part(stream, 0, 0, sums, 16);
        part(stream, 1, 0, at, 16);
        end(stream, CURED_F64);
        ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
        ck_assert_int_eq(s.parts, 2);
        ck_assert_mem_eq(s.sums, sums, 16);
        ck_assert_ptr_eq(cured_call_array(call, 0, NULL, NULL), own ? mine : NULL);
        if (own) ck_assert(memcmp(mine, sums, 16) == 0 && memcmp(index, at, 16) == 0);
        cured_call_free(call);
    }
}
END_TEST

START_TEST(callbacks_may_end_the_call) {
    for (int how = 0; how < 2; how++) {
        struct seen s = {.cancel = how == 0, .free = how == 1};
        cured_options o = with_axis();
        cr_frame h;
        const uint8_t *p;
        o.on_part = on_part;
        o.user = &s;
        cured_call *call = start(&o);
        uint32_t stream = taken_stream();
        fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
        part(stream, 0, 0, sums, 16);
        part(stream, 1, 0, at, 16); /* for a call that is over: dropped */
        for (int i = 0; i < 3; i++) cured_process(conn, NULL);
        ck_assert_int_eq(s.parts, 1);
        fake_expect(&f, conn, CR_FRAME_CANCEL, &h, &p);
        ck_assert_uint_eq(h.stream, stream);
        ck_assert_int_eq(cured_conn_status(conn, NULL), CURED_OK);
        if (how == 0) {
            ck_assert_int_eq(cured_call_status(call, NULL), CURED_CANCELLED);
            ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
            cured_call_free(call);
        }
    }
}
END_TEST

enum { HOSTILE = 12 };

/* Each ends the connection with a sentence, and nothing is written where it does not belong. */
static void be_hostile(int kind, uint32_t stream) {
    static const double three[3];
    switch (kind) {
        case 0:
            return part(stream, 2, 0, sums, 8); /* no such op */
        case 1:
            return part(stream, 0, 0, three, 24); /* too many */
        case 2:
            return part(stream, 0, 2, sums, 8); /* behind the last */
        case 3:
            return part(stream, 0, UINT64_MAX, sums, 16);
        case 4:
            return part(stream, 0, 0, sums, 12); /* half an answer */
        case 5:
            part(stream, 0, 0, sums, 16);
            return part(stream, 0, 1, sums, 8); /* twice */
        case 6:
            part(stream, 0, 0, sums, 16);
            return end(stream, CURED_F64); /* missing */
        case 7:
            part(stream, 0, 0, sums, 16);
            part(stream, 1, 0, at, 16);
            return end(stream, CURED_I64); /* another type */
        case 8:
            return fake_send(&f, CR_FRAME_RESULT, 0, stream, "\xff\xff", 2);
        case 9:
            return part(stream, 1, 0, (const uint64_t[]){2, 3}, 16); /* an index beyond the axis */
        case 10:
            return part(stream, 1, 1, (const uint64_t[]){UINT64_MAX}, 8); /* none, though NaNs are not skipped */
        default:
            return part(stream, 31, 0, sums, 8);
    }
}

START_TEST(hostile_daemons) {
    cured_options o = with_axis();
    cured_call *call = start(&o);
    be_hostile(_i, taken_stream());
    ck_assert_int_eq(cured_wait(call, &error), CURED_INTERNAL);
    ck_assert_msg(strstr(error.text, "broke the protocol") != NULL, "%s", error.text);
    ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
    cured_call_free(call);
}
END_TEST

/* Of nothing but NaNs there is no index. */
START_TEST(no_index_of_skipped_nans) {
    const uint64_t none[] = {UINT64_MAX, 2};
    cured_options o = with_axis();
    o.nan = CURED_NAN_SKIP;
    cured_call *call = start(&o);
    uint32_t stream = taken_call();
    part(stream, 0, 0, sums, 16);
    part(stream, 1, 0, none, 16);
    end(stream, CURED_F64);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_mem_eq(cured_call_array(call, 1, NULL, NULL), none, sizeof none);
    cured_call_free(call);
}
END_TEST

START_TEST(no_parts_for_others) {
    cured_call *call = start(NULL);
    part(taken_stream(), 0, 0, sums, 8);
    ck_assert_int_eq(cured_wait(call, &error), CURED_INTERNAL);
    cured_call_free(call);
}
END_TEST

/* All that can come is granted with the CALL, and large parts are read. */
START_TEST(large_parts_and_credit) {
    enum { N = 1 << 20, STEP = 1 << 17 }; /* 8 MiB, a MiB at a time less the head */
    static const cured_op sum = CURED_OP_SUM;
    const cured_axis each = {N, 1, 1};
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    cr_frame h;
    const uint8_t *p;
    uint64_t granted = 0;
    float *in = calloc(N, sizeof *in);
    double *want = malloc(N * sizeof *want);
    for (int i = 0; i < N; i++) want[i] = i;
    o.axis = &each;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, in, N, &o, &call, &error), CURED_OK);
    uint32_t stream = taken_stream();
    fake_expect(&f, conn, CR_FRAME_CREDIT, &h, &p);
    ck_assert_uint_eq(h.stream, stream);
    ck_assert_int_eq(cr_wire_unpack_credit(p, h.length, &granted, NULL), CR_OK);
    ck_assert_uint_eq(granted, N * 8 - CR_CREDIT_INITIAL_BYTES);
    uint8_t *frame = malloc(CR_FRAME_HEADER_BYTES + CR_DATA_MAX_BYTES);
    for (uint64_t i = 0; i < N;) {
        uint64_t n = N - i < STEP - 8 ? N - i : STEP - 8;
        cr_wire_part m = {.first = i, .values_len = n * 8};
        size_t head = cr_wire_pack_part_head(&m, frame + CR_FRAME_HEADER_BYTES, 64);
        cr_frame fr = {.type = CR_FRAME_RESULT, .stream = stream, .length = (uint32_t)(head + n * 8)};
        cr_frame_put(frame, &fr);
        memcpy(frame + CR_FRAME_HEADER_BYTES + head, want + i, n * 8);
        for (size_t sent = 0, len = CR_FRAME_HEADER_BYTES + fr.length; sent < len;) {
            size_t piece = len - sent < 65536 ? len - sent : 65536;
            fake_send_raw(&f, frame + sent, piece);
            sent += piece;
            cured_process(conn, NULL);
        }
        i += n;
    }
    fake_settle(&f, conn); /* takes the rest of the input */
    uint8_t small[64];
    cr_wire_result *r = calloc(1, sizeof *r);
    r->count = N;
    r->result_count = 1;
    r->results[0].op = CURED_OP_SUM;
    r->results[0].dtype = CURED_F64;
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, small, cr_wire_pack_result(r, small, sizeof small));
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_int_eq(memcmp(cured_call_array(call, 0, NULL, NULL), want, N * 8), 0);
    cured_call_free(call);
    free(frame);
    free(in);
    free(want);
    free(r);
}
END_TEST

/* A try that fails is void: the next starts from nothing. With parts in the program's hands there is no next. */
START_TEST(tried_again_from_the_start) {
    struct seen s = {0};
    cured_options o = with_axis();
    cured_call *call = start(&o);
    uint32_t stream = taken_call();
    part(stream, 0, 0, sums, 16);
    fake_status(&f, stream, CR_RESOURCE_EXHAUSTED, 0, "later");
    uint32_t again = taken_call();
    ck_assert_uint_ne(again, stream);
    part(again, 0, 0, sums, 16);
    part(again, 1, 0, at, 16);
    end(again, CURED_F64);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    ck_assert_uint_eq(cured_call_retries(call), 1);
    cured_call_free(call);
    o.on_part = on_part;
    o.user = &s;
    call = start(&o);
    stream = taken_call();
    part(stream, 0, 0, sums, 16);
    fake_status(&f, stream, CR_RESOURCE_EXHAUSTED, 0, "later");
    ck_assert_int_eq(cured_wait(call, &error), CURED_RESOURCE_EXHAUSTED);
    cured_call_free(call);
}
END_TEST

START_TEST(arguments) {
    cured_call *call;
    cured_options o = with_axis();
    void *results[] = {NULL, NULL};
#define REFUSED(says)                                                                                                  \
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, ops, 2, six, 6, &o, &call, &error), CURED_INVALID_ARGUMENT); \
    ck_assert_ptr_null(call);                                                                                          \
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);                                                 \
    o = with_axis()
    o.partial = true;
    REFUSED("partial");
    o.first = 1;
    REFUSED("first");
    o.results = results;
    REFUSED("results[0]");
    o.max_result_bytes = 16;
    REFUSED("max_result_bytes is 16");
    o.result_dtype = CURED_BIGINT;
    REFUSED("fixed size");
    cured_axis shape = {UINT64_MAX, UINT64_MAX, 2};
    o.axis = &shape;
    REFUSED("too large");
    shape = (cured_axis){UINT64_C(1) << 40, 0, 1}; /* a terabyte of answers to nothing */
    o.axis = &shape;
    REFUSED("max_result_bytes");
    shape = (cured_axis){2, 2, 1};
    o.axis = &shape;
    REFUSED("shape has 4 elements, the input 6");
    o.axis = NULL;
    o.first = UINT64_C(1) << 63;
    REFUSED("2^63");
    cured_process(conn, NULL);
    fake_read(&f);
    ck_assert_uint_eq(f.len, f.at); /* nothing of all this was sent */
    ck_assert_int_eq(cured_axis_dtype(CURED_OP_SUM, CURED_I8, CURED_DTYPE_DEFAULT), CURED_I64);
    ck_assert_int_eq(cured_axis_dtype(CURED_OP_SUM, CURED_I8, CURED_I128), CURED_I128);
    ck_assert_int_eq(cured_axis_dtype(CURED_OP_NORMINF, CURED_I8, CURED_DTYPE_DEFAULT), CURED_U8);
    ck_assert_int_eq(cured_axis_dtype(CURED_OP_BIT_OR, CURED_F32, CURED_DTYPE_DEFAULT), CURED_DTYPE_DEFAULT);
    ck_assert_int_eq(cured_axis_dtype((cured_op)99, CURED_F32, CURED_DTYPE_DEFAULT), CURED_DTYPE_DEFAULT);
}
END_TEST

CR_CHECK_MAIN("arrays") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, parts_in_any_order);
    tcase_add_test(tc, own_memory_and_callback);
    tcase_add_test(tc, callbacks_may_end_the_call);
    tcase_add_loop_test(tc, hostile_daemons, 0, HOSTILE);
    tcase_add_test(tc, no_index_of_skipped_nans);
    tcase_add_test(tc, no_parts_for_others);
    tcase_add_test(tc, large_parts_and_credit);
    tcase_add_test(tc, tried_again_from_the_start);
    tcase_add_test(tc, arguments);
}
