/* libcured's answers in regions: what waits for what, what an old daemon and one that refuses are asked, what a hostile one may not
 * say; and the same of this process. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

#define OK(call) ck_assert_msg((call) == CURED_OK, "%s", error.text)

enum { BYTES = 4096, AT = 64, OTHER = 256 };

static const int64_t four[] = {4, 1, 2, 3}, sums[] = {5, 5}, most[] = {4, 3};
static const cured_axis rows = {2, 2, 1};
static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MAX};
static cured_region *region;
static cured_output outputs[2];
static cured_array *array;
static bool of_gpu; /* the region is a GPU's memory */

static cured_options into(void *const *results) {
    cured_options o = CURED_OPTIONS_INIT;
    o.axis = &rows;
    o.outputs = outputs;
    o.results = results;
    o.retries = 0;
    return o;
}

static void make_region(cured_conn *of) {
    if (array == NULL) OK(cured_array_alloc(CURED_U8, BYTES, &array, &error));
    memset(cured_array_data(array), 0xa5, BYTES);
    const cured_cuda_memory memory = {.handle = cured_array_data(array), .fd = -1, .bytes = BYTES};
    if (of_gpu)
        OK(cured_region_cuda_writable(of, &memory, &region, &error));
    else
        OK(cured_region_fd_writable(of, cured_array_fd(array), &region, &error));
    outputs[0] = (cured_output){region, AT};
    outputs[1] = (cured_output){region, OTHER};
}

static cured_call *start(cured_conn *of, const cured_options *o) {
    cured_call *call;
    OK(cured_reduce_buffer(of, CURED_I64, ops, 2, four, 4, o, &call, &error));
    return call;
}

/* A new connection, to a daemon that grants the feature or not, and a call made before anything was heard of it. */
static cured_call *begin(bool granted, const cured_options *o) {
    static const char *const features[] = {"outputs", "statuses"};
    connect_again();
    make_region(conn);
    cured_call *call = start(conn, o);
    welcome_with("outputs", features, granted ? 2 : 0);
    return call;
}

static void registered_as(uint32_t stream, bool read_only) {
    uint8_t p[32];
    cr_wire_registered m = {BYTES, read_only};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_registered(&m, p, sizeof p));
}

static void registered(uint32_t stream) { registered_as(stream, false); }

/* Register comes alone, because the call waits for its answer. */
static uint32_t taken_register(bool writable, bool alone) {
    cr_frame h, g;
    const uint8_t *p;
    cr_wire_call m = expect(CR_CALL_REGISTER, &h);
    ck_assert_int_eq(m.region.writable, writable);
    fake_settle(&f, conn);
    if (alone) ck_assert_msg(!fake_take(&f, &g, &p), "%s came before the region was open", cr_frame_name(g.type));
    return h.stream;
}

/* The CALL and its DATA: how many outputs it has, which must be those that were asked for. */
static uint32_t taken_call(uint32_t *stream) {
    cr_frame h;
    const uint8_t *p;
    cr_wire_call m;
    cr_wire_output wire[CR_CALL_MAX_OPS];
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_int_eq(cr_wire_unpack_call(p, h.length, &m, NULL), CR_OK);
    if (m.reduce.outputs != 0) {
        ck_assert_int_eq(cr_wire_unpack_outputs(p, h.length, wire, NULL), CR_OK);
        ck_assert(wire[0].offset == AT && wire[1].offset == OTHER && wire[0].region == wire[1].region);
    }
    *stream = h.stream;
    fake_expect(&f, conn, CR_FRAME_DATA, &h, &p);
    ck_assert(h.length == sizeof four && memcmp(p, four, sizeof four) == 0 && h.flags & CR_FLAG_END);
    return m.reduce.outputs;
}

static void part(uint32_t stream, uint32_t op, const void *values) {
    fake_part(&f, stream, &(cr_wire_part){.op = op, .values = values, .values_len = 16});
}

static void end(uint32_t stream, uint64_t written) {
    static uint8_t p[1024];
    static cr_wire_result r;
    r = (cr_wire_result){.count = 4, .result_count = 2, .written = written};
    r.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_I64};
    r.results[1] = (cr_wire_op_result){.op = CURED_OP_MAX, .dtype = CURED_I64};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(&r, p, sizeof p));
}

static void finish(cured_call *call, cured_status status, const char *says) {
    ck_assert_msg(cured_wait(call, &error) == status, "%d: %s", error.code, error.text);
    ck_assert_msg(strstr(error.text, says) != NULL, "'%s' does not say '%s'", error.text, says);
    cured_call_free(call);
    cured_region_free(region);
}

START_TEST(written_by_the_daemon) {
    uint32_t stream;
    cured_options o = into(NULL);
    cured_call *call = begin(true, &o);
    registered(taken_register(true, true));
    ck_assert_uint_eq(taken_call(&stream), 2);
    cured_call *second = start(conn, &o); /* of a region that is open nothing waits */
    end(stream, 32);
    OK(cured_wait(call, &error));
    ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
    ck_assert_uint_eq(cured_call_count(call), 4);
    cured_call_free(call);
    ck_assert_uint_eq(taken_call(&stream), 2);
    end(stream, 32);
    finish(second, CURED_OK, "");
    cr_frame h;
    expect(CR_CALL_UNREGISTER, &h);
}
END_TEST

/* A GPU's memory: the same, but that the library cannot fill it where the daemon does not. */
START_TEST(in_a_gpus_memory) {
    uint32_t stream;
    of_gpu = true;
    cured_options o = into(NULL);
    cured_call *call = begin(true, &o);
    registered(taken_register(true, true));
    ck_assert_uint_eq(taken_call(&stream), 2);
    end(stream, 32);
    OK(cured_wait(call, &error));
    cured_call_free(call);
    int64_t own[2][2];
    void *const results[] = {own[0], own[1]};
    o = into(results);
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_I64, ops, 2, four, 4, &o, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "leave out results"));
    cured_region_free(region);
    o = into(NULL);
    call = begin(false, &o);
    registered(taken_register(false, true));
    finish(call, CURED_UNIMPLEMENTED, "too old");
    cured_conn *here;
    OK(cured_connect("embedded:", NULL, &here, &error));
    make_region(here);
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_UNIMPLEMENTED);
    cured_region_free(region);
    cured_close(here);
    of_gpu = false;
}
END_TEST

START_TEST(hostile_answers) {
    for (int i = 0; i < 4; i++) {
        uint32_t stream;
        cured_options o = into(NULL);
        cured_call *call = begin(true, &o);
        registered(taken_register(true, true));
        taken_call(&stream);
        if (i == 3) part(stream, 0, sums);
        end(stream, (uint64_t[]){0, 31, UINT64_MAX, 32}[i]);
        finish(call, CURED_INTERNAL, "broke the protocol");
    }
}
END_TEST

static void say(uint32_t stream, uint32_t op, uint64_t first, const char *statuses, size_t count) {
    fake_part(&f, stream,
              &(cr_wire_part){.op = op, .first = first, .statuses = (const uint8_t *)statuses, .statuses_len = count});
}

static void end_with(uint32_t stream, cr_status status) {
    static uint8_t p[1024];
    static cr_wire_result r;
    r = (cr_wire_result){.count = 4, .result_count = 2, .written = 32};
    r.results[0] = (cr_wire_op_result){.op = CURED_OP_SUM, .dtype = CURED_I64, .status = status};
    r.results[1] = (cr_wire_op_result){.op = CURED_OP_MAX, .dtype = CURED_I64};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(&r, p, sizeof p));
}

/* Those of answers without a value come, and nothing else does. */
START_TEST(statuses_of_what_is_written) {
    uint32_t stream;
    uint64_t missing;
    const uint8_t wanted[] = {0, CURED_OUT_OF_RANGE}, none[] = {0, 0};
    cured_options o = into(NULL);
    o.statuses = true;
    cured_call *call = begin(true, &o);
    registered(taken_register(true, true));
    ck_assert_uint_eq(taken_call(&stream), 2);
    say(stream, 0, 1, "\13", 1);
    end_with(stream, CR_OUT_OF_RANGE);
    OK(cured_wait(call, &error));
    ck_assert_mem_eq(cured_call_array_statuses(call, 0, &missing), wanted, 2);
    ck_assert_uint_eq(missing, 1);
    ck_assert_int_eq(cured_call_array_status(call, 0, &error), CURED_OUT_OF_RANGE);
    ck_assert_mem_eq(cured_call_array_statuses(call, 1, &missing), none, 2);
    ck_assert_uint_eq(missing, 0);
    ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
    cured_call_free(call);
    cured_region_free(region);
}
END_TEST

/* first, the statuses, and again; and whether the call asks for them. */
static const struct {
    uint64_t first;
    const char *statuses, *again;
    bool asks;
} lies[] = {{2, "\13", NULL, true},  {1, "\13\13", NULL, true},  {UINT64_MAX, "\13", NULL, true},
            {0, "\13", "\13", true}, {0, "\13\13", "\13", true}, {0, "\200", NULL, true},
            {0, "\13", NULL, false}, {0, "", NULL, true}};

START_TEST(hostile_statuses) {
    uint32_t stream;
    cured_options o = into(NULL);
    o.statuses = lies[_i].asks;
    cured_call *call = begin(true, &o);
    registered(taken_register(true, true));
    taken_call(&stream);
    say(stream, 0, lies[_i].first, lies[_i].statuses, strlen(lies[_i].statuses));
    if (lies[_i].again != NULL) say(stream, 0, lies[_i].first, lies[_i].again, strlen(lies[_i].again));
    end_with(stream, CR_OUT_OF_RANGE);
    finish(call, CURED_INTERNAL, "broke the protocol");
}
END_TEST

/* What the daemon makes of a region that is to be writable. */
typedef enum refusal { TOO_OLD, REFUSED, READ_ONLY, REFUSALS } refusal;

static void answer_register(refusal how, uint32_t stream) {
    if (how == REFUSED)
        fake_status(&f, stream, CR_INVALID_ARGUMENT, 0, "writable: the memory has holes");
    else
        registered_as(stream, how == READ_ONLY);
}

/* Where the daemon cannot write, it sends, if the program says where that goes. */
START_TEST(daemons_that_do_not_write) {
    static const struct {
        cured_status code;
        const char *word;
    } without[REFUSALS] = {{CURED_UNIMPLEMENTED, "too old"},
                           {CURED_INVALID_ARGUMENT, "holes"},
                           {CURED_FAILED_PRECONDITION, "userfaultfd"}};
    for (refusal how = TOO_OLD; how < REFUSALS; how++) {
        const bool knows = how != TOO_OLD;
        uint32_t stream;
        int64_t own[2][2] = {{0}};
        void *const results[] = {own[0], own[1]};
        cured_options o = into(results);
        cured_call *call = begin(knows, &o);
        answer_register(how, taken_register(knows, knows));
        ck_assert_uint_eq(taken_call(&stream), 0);
        part(stream, 0, sums);
        part(stream, 1, most);
        end(stream, 0);
        finish(call, CURED_OK, "");
        ck_assert(memcmp(own[0], sums, sizeof sums) == 0 && memcmp(own[1], most, sizeof most) == 0);
        o = into(NULL);
        call = begin(knows, &o);
        answer_register(how, taken_register(knows, true));
        finish(call, without[how].code, without[how].word);
    }
}
END_TEST

/* A connection that is lost takes the region along: it is registered anew before the call that is tried again. */
START_TEST(on_the_next_connection) {
    uint32_t stream;
    cured_options o = into(NULL);
    o.retries = 3;
    cured_call *call = begin(true, &o);
    registered(taken_register(true, true));
    taken_call(&stream);
    fake_drop(&f);
    for (int i = 0; i < 1000 && cured_call_retries(call) == 0; i++) cured_process(conn, NULL);
    while (cured_fd(conn) < 0) cured_process(conn, NULL); /* after its delay of milliseconds */
    fake_accept(&f);
    cr_frame h;
    const uint8_t *p;
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f); /* which grants nothing: the library does as an old daemon wants it */
    taken_register(false, true);
    finish(call, CURED_UNIMPLEMENTED, "too old");
}
END_TEST

static void refused(cured_conn *of, const cured_options *o, const char *says) {
    cured_call *call = NULL;
    cured_status status = cured_reduce_buffer(of, CURED_I64, ops, 2, four, 4, o, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    ck_assert_int_eq(status, CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, says) != NULL, "'%s' does not say '%s'", error.text, says);
    cured_call_free(call);
}

START_TEST(in_this_process) {
    cured_conn *own;
    cured_call *call;
    OK(cured_connect("embedded:", NULL, &own, &error));
    make_region(own);
    uint8_t *data = cured_array_data(array), wanted[BYTES];
    memset(wanted, 0xa5, BYTES);
    memcpy(wanted + AT, sums, sizeof sums);
    memcpy(wanted + OTHER, most, sizeof most);
    cured_options o = into(NULL);
    call = start(own, &o);
    OK(cured_wait(call, &error));
    ck_assert_mem_eq(data, wanted, BYTES);
    ck_assert_ptr_null(cured_call_array(call, 0, NULL, NULL));
    cured_call_free(call);
    void *const results[] = {data + AT, data + OTHER};
    memset(data, 0xa5, BYTES);
    o = into(results);
    call = start(own, &o);
    OK(cured_wait(call, &error));
    ck_assert_mem_eq(data, wanted, BYTES);
    ck_assert_ptr_eq(cured_call_array(call, 1, NULL, NULL), data + OTHER);
    cured_call_free(call);
    const int64_t large[] = {INT64_MAX, 1, 2, 3};
    uint64_t missing;
    memset(data + AT, 0xa5, sizeof sums);
    o = into(NULL);
    o.statuses = true;
    OK(cured_reduce_buffer(own, CURED_I64, ops, 1, large, 4, &o, &call, &error));
    OK(cured_wait(call, &error));
    ck_assert_mem_eq(cured_call_array_statuses(call, 0, &missing), "\13", 2);
    ck_assert_uint_eq(missing, 1);
    ck_assert_mem_eq(data + AT, ((int64_t[]){0, 5}), sizeof sums);
    cured_call_free(call);
    const cured_axis none = {3, 0, 1}; /* which takes a job */
    o = into(NULL);
    o.axis = &none;
    OK(cured_reduce_buffer(own, CURED_I64, ops, 1, four, 0, &o, &call, &error));
    OK(cured_wait(call, &error));
    memset(wanted + AT, 0, 24);
    ck_assert_mem_eq(data, wanted, BYTES);
    cured_call_free(call);
    cured_region_free(region);
    cured_close(own);
}
END_TEST

START_TEST(what_is_refused_here) {
    cured_conn *own;
    cured_region *plain;
    OK(cured_connect("embedded:", NULL, &own, &error));
    make_region(own);
    cured_options o = into(NULL);
    const uint64_t offsets[] = {BYTES - 15, BYTES, BYTES + 1, UINT64_MAX, UINT64_MAX - 15};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        outputs[1].offset = offsets[i];
        refused(own, &o, "beyond its region");
    }
    outputs[1].offset = AT + 15;
    refused(own, &o, "those of outputs[0]");
    outputs[1].offset = OTHER;
    o.axis = NULL;
    refused(own, &o, "axis");
    o = into(NULL);
    OK(cured_region_fd(own, cured_array_fd(array), &plain, &error));
    outputs[1].region = plain;
    refused(own, &o, "cured_region_fd_writable");
    outputs[1].region = NULL;
    refused(own, &o, "NULL");
    cured_call *call;
    outputs[1] = (cured_output){region, 96};
    OK(cured_region_reduce(region, CURED_I64, ops, 2, 100, 4, &o, &call, &error));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "those of the input"));
    cured_call_free(call);
    cured_region_free(plain);
    cured_region_free(region);
    int fd = memfd_create("holes", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    OK(cured_region_fd_writable(own, fd, &region, &error));
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "holes"));
    outputs[0].region = outputs[1].region = region;
    refused(own, &o, "holes");
    close(fd);
    cured_region_free(region);
    cured_close(own);
}
END_TEST

CR_CHECK_MAIN("outputs") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, written_by_the_daemon);
    tcase_add_test(tc, in_a_gpus_memory);
    tcase_add_test(tc, hostile_answers);
    tcase_add_test(tc, statuses_of_what_is_written);
    tcase_add_loop_test(tc, hostile_statuses, 0, sizeof lies / sizeof lies[0]);
    tcase_add_test(tc, daemons_that_do_not_write);
    tcase_add_test(tc, on_the_next_connection);
    tcase_add_test(tc, in_this_process);
    tcase_add_test(tc, what_is_refused_here);
}
