/* libcured under a mask, in the caller's process, or asking the daemon at CURED_TEST_ADDRESS: every way in, whole and along an axis, answers as the elements that count do by
 * themselves, with the whole array's indices; and what is wrong with a mask is said. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/fake.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { MOST = 2100 * 1000 + 17 }; /* f32: above what is folded without the pool */

static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_VAR,    CURED_OP_MIN,   CURED_OP_NORM2,
                               CURED_OP_ANY, CURED_OP_ARGMAX, CURED_OP_COUNT, CURED_OP_COUNT_NAN};
enum { OPS = sizeof ops / sizeof ops[0], ARGMAX = 5 };

static float data[MOST], squeezed[MOST];
static uint8_t bytes[MOST], bits[MOST / 8 + 2];
static uint64_t places[MOST];

static uint32_t draw(void) {
    static uint32_t x = 1;
    return (x = x * 1664525u + 1013904223u) >> 8;
}

/* Both forms of a mask of n elements, of which the bits begin at bit 3, and what counts; how many. */
static uint64_t make(uint64_t n, unsigned one_in) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        data[i] = ((float)draw() - 8388608.0f) * (i % 5 == 0 ? 1e-20f : 1.0f / 8388608.0f);
        const bool counts = draw() % one_in == 0;
        bytes[i] = counts ? 7 : 0;
        const unsigned bit = (i + 3) % 8;
        bits[(i + 3) / 8] = (uint8_t)((bits[(i + 3) / 8] & ~(1u << bit)) | (unsigned)counts << bit);
        if (!counts) continue;
        squeezed[kept] = data[i];
        places[kept++] = i;
    }
    return kept;
}

static cured_mask mask_of(uint64_t n, bool as_bits) {
    return as_bits ? (cured_mask){bits, n, 3, CURED_MASK_BITS, false}
                   : (cured_mask){bytes, n, 0, CURED_MASK_BYTES, false};
}

static void same_value(const cured_value *a, const cured_value *b, bool index) {
    size_t a_bytes, b_bytes;
    const void *x = cured_value_bytes(a, &a_bytes), *y = cured_value_bytes(b, &b_bytes);
    ck_assert_int_eq(cured_value_status(a, NULL), cured_value_status(b, NULL));
    if (cured_value_status(a, NULL) != CURED_OK) return;
    ck_assert_uint_eq(a_bytes, b_bytes);
    uint64_t at = 0;
    memcpy(&at, y, b_bytes < 8 ? b_bytes : 8);
    if (index) at = places[at];
    ck_assert_msg(memcmp(x, index ? (const void *)&at : y, a_bytes) == 0, "%s", cured_op_name(cured_value_op(a)));
}

static int file_of(uint64_t n) {
    const int fd = memfd_create("masked", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(write(fd, data, n * sizeof *data), (ssize_t)(n * sizeof *data));
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static const char *address(void) {
    const char *of_daemon = getenv("CURED_TEST_ADDRESS");
    return of_daemon != NULL ? of_daemon : "embedded:";
}

START_TEST(every_way_in) {
    static const uint64_t lengths[] = {0, 1000, 300 * 1000, MOST};
    static const unsigned one_in[] = {1, 2, 1000, 1u << 30};
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)_i);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const uint64_t n = lengths[l], kept = make(n, one_in[(l + (size_t)_i) % 4]);
        cured_values *want = NULL, *here = NULL;
        cured_region *region = NULL;
        const int fd = file_of(n);
        OK(cured_region_fd(conn, fd, &region, NULL));
        OK(cured_reduce_here(CURED_F32, ops, OPS, squeezed, kept, NULL, &want, NULL));
        for (int way = 0; way < 8; way += n == MOST && CHECK_SPARSE > 1 ? 3 : 1) {
            const cured_mask mask = mask_of(n, way / 4);
            cured_options o = CURED_OPTIONS_INIT;
            o.mask = &mask;
            cured_call *call = run_way(conn, way % 4, fd, region, ops, OPS, data, n, &o);
            for (size_t k = 0; k < OPS; k++)
                same_value(cured_call_value(call, k), cured_values_get(want, k), k == ARGMAX);
            cured_call_free(call);
            if (way % 4 != 0) continue;
            OK(cured_reduce_here(CURED_F32, ops, OPS, data, n, &o, &here, NULL));
            for (size_t k = 0; k < OPS; k++)
                same_value(cured_values_get(here, k), cured_values_get(want, k), k == ARGMAX);
            cured_values_free(here);
        }
        cured_values_free(want);
        cured_region_free(region);
        close(fd);
    }
    cured_close(conn);
}
END_TEST

/* Of slice (o, i): what counts, squeezed, and where along the axis it stands; how many. */
static uint64_t slice(const cured_axis *axis, uint64_t o, uint64_t i) {
    uint64_t kept = 0;
    for (uint64_t k = 0; k < axis->n; k++) {
        const uint64_t at = (o * axis->n + k) * axis->inner + i;
        if (bytes[at] == 0) continue;
        squeezed[kept] = data[at];
        places[kept++] = k;
    }
    return kept;
}

START_TEST(along_an_axis) {
    static const cured_axis shapes[] = {{700, 3, 1},   {3, 700, 257},  {700, 257, 3},
                                        {1, 9, 70000}, {2, 700001, 1}, {5, 0, 7}};
    static const cured_op some[] = {CURED_OP_SUM, CURED_OP_COUNT, CURED_OP_NORM2};
    cured_conn *conn = connect_threads(1 + 2 * (uint32_t)(_i % 2));
    const cured_axis *axis = &shapes[_i / 2];
    const uint64_t n = axis->outer * axis->n * axis->inner;
    make(n, 2);
    const int fd = file_of(n);
    for (int way = 0; way < 4; way++) {
        const cured_mask mask = mask_of(n, way / 2);
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call = NULL;
        o.mask = &mask;
        o.axis = axis;
        if (way % 2) OK(cured_reduce_fd(conn, CURED_F32, some, 3, fd, 0, n, &o, &call, NULL));
        if (way % 2 == 0) OK(cured_reduce_buffer(conn, CURED_F32, some, 3, data, n, &o, &call, NULL));
        OK(cured_wait(call, NULL));
        const double *sums = cured_call_array(call, 0, NULL, NULL), *norms = cured_call_array(call, 2, NULL, NULL);
        const uint64_t *counts = cured_call_array(call, 1, NULL, NULL);
        for (uint64_t at = 0; at < axis->outer * axis->inner; at += CHECK_SPARSE * (1 + at % 17)) {
            cured_values *want = NULL;
            const uint64_t kept = slice(axis, at / axis->inner, at % axis->inner);
            OK(cured_reduce_here(CURED_F32, some, 3, squeezed, kept, NULL, &want, NULL));
            ck_assert_uint_eq(counts[at], kept);
            size_t size;
            ck_assert(memcmp(&sums[at], cured_value_bytes(cured_values_get(want, 0), &size), 8) == 0);
            ck_assert(memcmp(&norms[at], cured_value_bytes(cured_values_get(want, 2), &size), 8) == 0);
            cured_values_free(want);
        }
        cured_call_free(call);
    }
    close(fd);
    cured_close(conn);
}
END_TEST

/* More columns than have states in a gigabyte: they go strip by strip, and so does the mask. */
START_TEST(in_strips) {
#if defined(__SANITIZE_THREAD__)
    puts("skipped: in_strips: one worker alone touches a gigabyte of states, slowly");
    return;
#endif
    enum { WIDE = 250007 };
    const cured_axis axis = {2, 2, WIDE};
    const cured_op count = CURED_OP_COUNT_NONZERO;
    cured_conn *conn = connect_threads(1);
    make(4 * WIDE, 3);
    const int fd = file_of(4 * WIDE);
    const cured_mask mask = mask_of(4 * WIDE, true);
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    o.mask = &mask;
    o.axis = &axis;
    OK(cured_reduce_fd(conn, CURED_F32, &count, 1, fd, 0, 4 * WIDE, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    const uint64_t *answers = cured_call_array(call, 0, NULL, NULL);
    for (uint64_t at = 0; at < 2 * WIDE; at++) ck_assert_uint_eq(answers[at], slice(&axis, at / WIDE, at % WIDE));
    cured_call_free(call);
    close(fd);
    cured_close(conn);
}
END_TEST

START_TEST(partials_have_no_position) {
    const cured_op sum = CURED_OP_SUM;
    const cured_mask mask = mask_of(1000, false);
    cured_conn *conn = connect_threads(1);
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL, *merged = NULL;
    cured_error error = {CURED_OK, 0, ""};
    cured_values *want = NULL;
    cured_bytes part;
    const uint64_t kept = make(1000, 2);
    o.mask = &mask;
    o.partial = true;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 1000, &o, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "unplaced") != NULL, "%s", error.text);
    const uint64_t shape = 2000, start = 0, extent = 1000;
    o.layout = &(cured_block){1, &shape, &start, &extent};
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 1000, &o, &call, &error));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "leave layout away, and set unplaced") != NULL, "%s", error.text);
    cured_call_free(call);
    o.layout = NULL;
    o.unplaced = true;
    OK(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 1000, &o, &call, &error));
    OK(cured_wait(call, NULL));
    part.data = cured_call_partial(call, &part.bytes);
    OK(cured_merge(conn, &part, 1, &sum, 1, NULL, &merged, NULL));
    OK(cured_wait(merged, NULL));
    OK(cured_reduce_here(CURED_F32, &sum, 1, squeezed, kept, NULL, &want, NULL));
    same_value(cured_call_value(merged, 0), cured_values_get(want, 0), false);
    cured_values_free(want);
    cured_call_free(merged);
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

static void refused(cured_conn *conn, const cured_mask *mask, const char *word) {
    const cured_op sum = CURED_OP_SUM;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    cured_values *values = NULL;
    o.mask = mask;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, data, 100, &o, &call, &error),
                     CURED_INVALID_ARGUMENT);
    ck_assert_msg(call == NULL && strstr(error.text, word) != NULL, "%s", error.text);
    ck_assert_int_eq(cured_reduce_here(CURED_F32, &sum, 1, data, 100, &o, &values, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(values == NULL && strstr(error.text, word) != NULL, "%s", error.text);
}

START_TEST(what_is_wrong_is_said) {
    cured_conn *conn = connect_threads(1);
    const cured_mask few = mask_of(99, false), none = {NULL, 100, 0, CURED_MASK_BITS, false},
                     odd = {bytes, 100, 0, (cured_mask_kind)3, false},
                     far = {bytes, 100, UINT64_MAX - 50, CURED_MASK_BITS, false};
    refused(conn, &few, "99 elements, the input 100");
    refused(conn, &none, "NULL");
    refused(conn, &odd, "kind is 3");
    refused(conn, &far, "2^64");
    const cured_op sum = CURED_OP_SUM;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    o.mask = &few;
    if (strcmp(address(), "embedded:") == 0) {
        OK(cured_reduce_stream_begin(conn, CURED_F32, &sum, 1, CURED_UNKNOWN_LENGTH, &o, &call, NULL));
        ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, "says its length") != NULL, "%s", error.text);
        cured_call_free(call);
    }
    make(100, 2);
    const int fd = file_of(100);
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 0, CURED_TO_END, &o, &call, NULL));
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "99 elements, the input 100") != NULL, "%s", error.text);
    cured_call_free(call);
    close(fd);
    cured_close(conn);
}
END_TEST

/* A daemon that grants none of it. */
START_TEST(an_older_daemon) {
    static const int32_t borders[] = {0, 3};
    static const cured_mask mask = {bytes, 3, 0, CURED_MASK_BYTES, false};
    static const cured_offsets offsets = {borders, 2, CURED_I32};
    static const cured_keys keys = {bytes, 3, CURED_U8, 8, 1, false};
    static const char *const names[] = {"mask", "offsets", "keys"};
    fake f;
    fake_start(&f);
    cured_conn *conn = fake_connect(&f);
    for (int i = 0; i < 3; i++) {
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call;
        cured_error error;
        char text[128];
        if (i == 0) o.mask = &mask;
        if (i == 1) o.offsets = &offsets;
        if (i == 2) o.keys = &keys;
        OK(cured_reduce_buffer(conn, CURED_F32, ops, 1, data, 3, &o, &call, NULL));
        ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
        snprintf(text, sizeof text,
                 "%s: this daemon is too old to take any; a connection to \"embedded:\" does, in this process",
                 names[i]);
        ck_assert_str_eq(error.text, text);
        cured_call_free(call);
    }
    cured_close(conn);
    fake_stop(&f);
}
END_TEST

CR_CHECK_MAIN("client/masked") {
    tcase_add_test(tc, an_older_daemon);
    tcase_add_loop_test(tc, every_way_in, 0, 2);
    tcase_add_loop_test(tc, along_an_axis, 0, 12);
    tcase_add_test(tc, in_strips);
    tcase_add_test(tc, partials_have_no_position);
    tcase_add_test(tc, what_is_wrong_is_said);
}
