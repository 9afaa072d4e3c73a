/* libcured by key, in the caller's process or asking the daemon at CURED_TEST_ADDRESS: values, rows, files and streams, by one thread and by several, have one set of bits; what is
 * wrong with keys is said, and what a group without elements answers. Partials, by one thread and by several, have the bytes of one partial and
 * the answers and statuses of one call, by a daemon, too. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/by_key.h"
#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { ROWS = 1500 * 1000 + 3, COLUMNS = 2, GROUPS = 1000 }; /* f32: above what is folded without the pool */

static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MEAN, CURED_OP_ARGMAX, CURED_OP_COUNT};
enum { OPS = sizeof ops / sizeof ops[0] };

static float data[ROWS * COLUMNS];
static int32_t key[ROWS];

static uint32_t draw(void) {
    static uint32_t x = 1;
    return (x = x * 1664525u + 1013904223u) >> 8;
}

static cured_options with(const cured_keys *keys) {
    cured_options o = CURED_OPTIONS_INIT;
    o.keys = keys;
    return o;
}

static void same_answers(const cured_call *a, const cured_call *b, uint64_t answers) {
    for (size_t k = 0; k < OPS; k++) {
        cured_dtype dtype, other;
        uint64_t count, more;
        const void *x = cured_call_array(a, k, &dtype, &count), *y = cured_call_array(b, k, &other, &more);
        ck_assert_uint_eq(count, answers);
        ck_assert(more == count && dtype == other);
        ck_assert_mem_eq(x, y, count * cured_dtype_size(dtype));
    }
}

START_TEST(every_way_alike) {
    const cured_keys keys = {key, ROWS, CURED_I32, GROUPS, COLUMNS, false};
    const cured_options o = with(&keys);
    cured_conn *one, *more = connect_threads(4);
    cured_call *first, *call;
    OK(cured_connect("embedded:", NULL, &one, NULL));
    for (size_t i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)(int32_t)(draw() - (1 << 23)) * (i % 7 ? 1 : 1e-30f);
    for (size_t i = 0; i < ROWS; i++) key[i] = (int32_t)(draw() % (GROUPS / 2) * 2);
    OK(cured_reduce_buffer(one, CURED_F32, ops, OPS, data, ROWS * COLUMNS, &o, &first, NULL));
    ck_assert_int_eq(cured_wait(first, NULL), CURED_INVALID_ARGUMENT); /* every other group has no elements */
    cured_call_free(first);
    for (size_t i = 0; i < GROUPS; i++) key[i] = (int32_t)i;
    OK(cured_reduce_buffer(one, CURED_F32, ops, OPS, data, ROWS * COLUMNS, &o, &first, NULL));
    OK(cured_wait(first, NULL));
    OK(cured_reduce_buffer(more, CURED_F32, ops, OPS, data, ROWS * COLUMNS, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    same_answers(first, call, GROUPS * COLUMNS);
    cured_call_free(call);
    const int fd = memfd_create("by_key", MFD_CLOEXEC);
    ck_assert(fd >= 0 && write(fd, data, sizeof data) == sizeof data);
    OK(cured_reduce_fd(more, CURED_F32, ops, OPS, fd, 0, CURED_TO_END, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    same_answers(first, call, GROUPS * COLUMNS);
    cured_call_free(call);
    close(fd);
    cured_call_free(first);
    cured_close(more);
    cured_close(one);
}
END_TEST

static void fails(cured_conn *conn, const cured_keys *keys, uint64_t count, cured_status status, const char *sentence) {
    const cured_options o = with(keys);
    cured_error error = {.code = CURED_OK};
    cured_call *call;
    if (cured_reduce_buffer(conn, CURED_F32, ops, 1, data, count, &o, &call, &error) == CURED_OK)
        cured_wait(call, &error);
    ck_assert_int_eq(error.code, status);
    ck_assert_msg(strncmp(error.text, sentence, strlen(sentence)) == 0, "%s", error.text);
    cured_call_free(call);
}

START_TEST(wrong_keys) {
    cured_keys keys = {key, ROWS, CURED_I32, GROUPS, COLUMNS, false};
    cured_conn *conn = connect_threads(4);
    for (size_t i = 0; i < ROWS; i++) key[i] = i % 100000 == 99999 ? -5 : (int32_t)(i % GROUPS);
    for (int turn = 0; turn < 10; turn++) /* whoever meets one, the first is named */
        fails(conn, &keys, ROWS * COLUMNS, CURED_INVALID_ARGUMENT, "keys: number 99999 is -5, not one of 0 to 999;");
    fails(conn, &keys, ROWS, CURED_INVALID_ARGUMENT, "keys: 1500003 rows of 2 columns have 3000006 elements");
    keys.dtype = CURED_F32;
    fails(conn, &keys, ROWS * COLUMNS, CURED_INVALID_ARGUMENT, "keys: their type is f32");
    keys = (cured_keys){key, 3, CURED_I32, UINT64_MAX / 2, 1, false};
    fails(conn, &keys, 3, CURED_RESOURCE_EXHAUSTED, "groups: ");
    keys = (cured_keys){NULL, 3, CURED_I32, 5, 1, false};
    fails(conn, &keys, 3, CURED_INVALID_ARGUMENT, "keys: data is NULL");
    cured_close(conn);
}
END_TEST

START_TEST(no_rows) {
    const cured_keys keys = {NULL, 0, CURED_U8, 3, 2, false};
    const cured_options o = with(&keys);
    cured_conn *conn = connect_threads(1);
    cured_call *call;
    uint64_t count;
    OK(cured_reduce_buffer(conn, CURED_F32, ops, 2, NULL, 0, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    const double *sums = cured_call_array(call, 0, NULL, &count), *means = cured_call_array(call, 1, NULL, NULL);
    ck_assert_uint_eq(count, 6);
    for (int i = 0; i < 6; i++) ck_assert(sums[i] == 0 && means[i] != means[i]);
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

static const cured_op of_parts[] = {CURED_OP_SUM, CURED_OP_VAR, CURED_OP_MIN, CURED_OP_COUNT_NAN};
enum { PART_OPS = sizeof of_parts / sizeof of_parts[0] };

/* Rows [first, first + rows) as a partial; NULL with an error. */
static cured_call *part_of(cured_conn *conn, size_t first, size_t rows, cured_bytes *part, cured_error *error) {
    const cured_keys keys = {key + first, rows, CURED_I32, GROUPS, COLUMNS, false};
    cured_options o = with(&keys);
    cured_call *call;
    o.partial = true;
    if (cured_reduce_buffer(conn, CURED_F32, of_parts, PART_OPS, data + first * COLUMNS, rows * COLUMNS, &o, &call,
                            error) != CURED_OK)
        return NULL;
    ck_assert_int_eq(cured_wait(call, error), CURED_OK);
    part->data = cured_call_partial(call, &part->bytes);
    ck_assert_ptr_nonnull(part->data);
    ck_assert(cured_call_value(call, 0) == NULL && cured_call_array(call, 0, NULL, NULL) == NULL);
    return call;
}

static double answers[PART_OPS][GROUPS * COLUMNS];
static uint8_t statuses[PART_OPS][GROUPS * COLUMNS];

/* Finishes, and holds it against the call of all rows. */
static void check_finished(cured_conn *conn, const void *partial, size_t bytes) {
    const cured_keys keys = {key, ROWS, CURED_I32, GROUPS, COLUMNS, false};
    cured_options o = with(&keys);
    void *results[PART_OPS];
    uint8_t *each[PART_OPS];
    cured_call *call;
    cured_error error;
    o.statuses = true;
    for (size_t k = 0; k < PART_OPS; k++) {
        results[k] = answers[k];
        each[k] = statuses[k];
    }
    OK(cured_by_key_finish(partial, bytes, of_parts, PART_OPS, NULL, results, each, NULL));
    OK(cured_reduce_buffer(conn, CURED_F32, of_parts, PART_OPS, data, ROWS * COLUMNS, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    for (size_t k = 0; k < PART_OPS; k++) {
        cured_dtype dtype;
        const void *whole = cured_call_array(call, k, &dtype, NULL);
        ck_assert_mem_eq(whole, answers[k], GROUPS * COLUMNS * cured_dtype_size(dtype));
        ck_assert_mem_eq(cured_call_array_statuses(call, k, NULL), statuses[k], GROUPS * COLUMNS);
    }
    cured_call_free(call);
    ck_assert_int_eq(cured_by_key_finish(partial, bytes, of_parts, PART_OPS, NULL, results, NULL, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "output 2: min of no elements has no value");
}

START_TEST(partials) {
    static const size_t cuts[] = {ROWS - 5, ROWS - 5, 1000, 0};
    enum { PARTS = sizeof cuts / sizeof cuts[0] };
    cured_conn *one, *more = connect_threads(4);
    cured_call *call[PARTS], *whole;
    cured_bytes part[PARTS], all;
    cured_by_key of;
    cured_error error;
    void *merged;
    size_t bytes, end = ROWS;
    OK(cured_connect("embedded:", NULL, &one, NULL));
    for (size_t i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)(int32_t)(draw() - (1 << 23)) * (i % 7 ? 1 : 1e-30f);
    for (size_t i = 0; i < ROWS; i++) key[i] = (int32_t)(draw() % (GROUPS / 2) * 2);
    whole = part_of(one, 0, ROWS, &all, NULL);
    for (size_t i = 0; i < PARTS; i++) { /* the last rows first, and one part without any */
        call[i] = part_of(one, cuts[i], end - cuts[i], &part[i], NULL);
        end = cuts[i];
    }
    OK(cured_by_key_merge(part, PARTS, &merged, &bytes, NULL));
    ck_assert_uint_eq(bytes, all.bytes);
    ck_assert_mem_eq(merged, all.data, bytes);
    OK(cured_by_key_check(merged, bytes, &of, NULL));
    ck_assert(of.dtype == CURED_F32 && of.groups == GROUPS && of.columns == COLUMNS);
    ck_assert(of.count == ROWS * COLUMNS && of.cells == GROUPS / 2 * COLUMNS);
    check_finished(one, merged, bytes);
    cured_by_key_free(merged);
    for (size_t i = 0; i < PARTS; i++) cured_call_free(call[i]);
    call[0] = part_of(more, 0, ROWS, &part[0], &error); /* several threads, or a daemon */
    ck_assert_msg(call[0] != NULL, "%s", error.text);
    ck_assert(part[0].bytes == all.bytes && memcmp(part[0].data, all.data, all.bytes) == 0);
    cured_call_free(call[0]);
    cured_call_free(whole);
    cured_close(more);
    cured_close(one);
}
END_TEST

START_TEST(wrong_partials) {
    const cured_keys keys = {key, 10, CURED_I32, GROUPS, COLUMNS, false};
    const cured_op variance = CURED_OP_MEAN, index = CURED_OP_ARGMAX;
    cured_options o = with(&keys);
    cured_conn *conn;
    cured_call *call, *given;
    cured_error error;
    cured_bytes part;
    void *merged, *const results[] = {answers[0]};
    size_t bytes;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    for (size_t i = 0; i < 10; i++) key[i] = (int32_t)i;
    given = part_of(conn, 0, 10, &part, NULL);
    ck_assert_int_eq(cured_by_key_finish(part.data, part.bytes, &index, 1, NULL, results, NULL, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "without a position there is no argmax"));
    OK(cured_by_key_finish(part.data, part.bytes, &variance, 1, NULL, results, NULL, &error)); /* the sum, and n */
    ck_assert_int_eq(cured_by_key_finish(part.data, part.bytes, &variance, 1, NULL, NULL, NULL, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_by_key_merge(&part, 0, &merged, &bytes, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_partial_check(part.data, part.bytes, NULL, NULL, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "it is by key"));
    o.partial = o.statuses = true;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, ops, 1, data, 10 * COLUMNS, &o, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "statuses are for answers"));
    o.statuses = false;
    o.first = 7;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, ops, 1, data, 10 * COLUMNS, &o, &call, &error),
                     CURED_INVALID_ARGUMENT);
    cured_call_free(given);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/by_key") {
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, every_way_alike);
    tcase_add_test(tc, wrong_keys);
    tcase_add_test(tc, no_rows);
    tcase_add_test(tc, partials);
    tcase_add_test(tc, wrong_partials);
}
