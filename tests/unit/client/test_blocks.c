/* libcured on blocks of a larger array (cured_options.layout): an array cut into boxes at random has, whatever the order in which their
 * partials are merged, the sums, indices and digest of the whole, by arithmetic of this test's own; a box that is missing, or there twice,
 * is told by the digest; and what is wrong with a block is said.
 *
 * CURED_TEST_CASES says how many arrays are cut, CURED_TEST_SEED which. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/fake.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { DIMS = 4, MOST = 4096, BOXES = 64, CASES = 400 };

static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMIN, CURED_OP_ARGMAX, CURED_OP_COUNT_NONZERO, CURED_OP_DIGEST};
enum { OPS = sizeof ops / sizeof ops[0] };

typedef struct box {
    uint64_t start[DIMS], extent[DIMS];
} box;

static uint64_t random_state;
static cured_conn *conn;
static int32_t array[MOST], part[MOST];
static uint8_t partials[BOXES][2048];

static uint64_t draw(uint64_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static void setup(void) {
    random_state = check_seed(1);
    OK(cured_connect("embedded:", NULL, &conn, NULL));
}

static void teardown(void) { cured_close(conn); }

static uint64_t count_of(const uint64_t *extent, size_t dims) {
    uint64_t count = 1;
    for (size_t i = 0; i < dims; i++) count *= extent[i];
    return count;
}

/* Cuts one of the boxes in two, where that can be done. */
static size_t cut(box *boxes, size_t count, size_t dims) {
    const size_t b = draw(count), axis = draw(dims);
    const uint64_t n = boxes[b].extent[axis];
    if (n < 2) return count;
    const uint64_t at = 1 + draw(n - 1);
    boxes[count] = boxes[b];
    boxes[b].extent[axis] = at;
    boxes[count].start[axis] += at;
    boxes[count].extent[axis] -= at;
    return count + 1;
}

static uint64_t gather(const uint64_t *shape, const box *b, size_t dims) {
    const uint64_t count = count_of(b->extent, dims);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t rest = k, index = 0, step = 1;
        for (size_t i = dims; i-- > 0; rest /= b->extent[i]) {
            index += (b->start[i] + rest % b->extent[i]) * step;
            step *= shape[i];
        }
        part[k] = array[index];
    }
    return count;
}

static size_t partial_of(const uint64_t *shape, const box *b, size_t dims, uint8_t *out) {
    const cured_block block = {dims, shape, b->start, b->extent};
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    size_t bytes;
    o.partial = true;
    o.layout = &block;
    cured_reduce_buffer(conn, CURED_I32, ops, OPS, part, gather(shape, b, dims), &o, &call, &error);
    ck_assert_msg(call != NULL && cured_wait(call, &error) == CURED_OK, "%s", error.text);
    const void *data = cured_call_partial(call, &bytes);
    ck_assert_uint_le(bytes, sizeof partials[0]);
    memcpy(out, data, bytes);
    cured_call_free(call);
    return bytes;
}

/* The residue of the array's words at r, by Horner's rule. */
static uint64_t residue(uint64_t count, uint64_t r) {
    const uint64_t p = (UINT64_C(1) << 61) - 1;
    uint64_t h = 0;
    for (uint64_t k = count; k-- > 0;) h = (uint64_t)(((unsigned __int128)h * r + (uint32_t)array[k]) % p);
    return h;
}

static void check_whole(const uint8_t *partial, size_t bytes, uint64_t count) {
    cured_values *values = NULL;
    int64_t sum = 0, got;
    uint64_t least = 0, greatest = 0, nonzero = 0, index, digest[3];
    for (uint64_t k = 0; k < count; k++) {
        sum += array[k];
        nonzero += array[k] != 0;
        if (array[k] < array[least]) least = k;
        if (array[k] > array[greatest]) greatest = k;
    }
    OK(cured_partial_finish(partial, bytes, ops, OPS, NULL, &values, NULL));
    OK(cured_value_int64(cured_values_get(values, 0), &got));
    ck_assert_int_eq(got, sum);
    const uint64_t want[] = {least, greatest, nonzero};
    for (size_t i = 0; i < 3; i++) {
        OK(cured_value_uint64(cured_values_get(values, 1 + i), &index));
        ck_assert_uint_eq(index, want[i]);
    }
    memcpy(digest, cured_value_bytes(cured_values_get(values, 4), &bytes), sizeof digest);
    ck_assert_uint_eq(digest[0], residue(count, UINT64_C(0x0487ed5110b4612c)));
    ck_assert_uint_eq(digest[1], residue(count, UINT64_C(0x16fc2a2c515da557)));
    ck_assert_uint_eq(digest[2], 4 * count);
    cured_values_free(values);
}

static void no_digest(const cured_bytes *parts, size_t count) {
    static const cured_op digest = CURED_OP_DIGEST;
    static uint8_t merged[CURED_PARTIAL_BYTES];
    size_t bytes = sizeof merged;
    cured_values *values = NULL;
    cured_error error;
    const cured_status status = cured_partial_merge(parts, count, merged, &bytes, &error);
    if (status == CURED_OK)
        ck_assert_int_eq(cured_partial_finish(merged, bytes, &digest, 1, NULL, &values, &error),
                         CURED_INVALID_ARGUMENT);
    else
        ck_assert_msg(status == CURED_INVALID_ARGUMENT, "%s", error.text);
    ck_assert(values == NULL);
}

static void check_case(void) {
    const size_t dims = 1 + draw(DIMS);
    uint64_t shape[DIMS];
    box boxes[BOXES] = {{{0}, {0}}};
    cured_bytes parts[BOXES + 1];
    static uint8_t merged[CURED_PARTIAL_BYTES];
    size_t count = 1, bytes = sizeof merged;
    for (size_t i = 0; i < dims; i++) boxes[0].extent[i] = shape[i] = 1 + draw(dims == 1 ? MOST : dims == 2 ? 64 : 8);
    const uint64_t elements = count_of(shape, dims);
    const uint64_t range = draw(2) == 0 ? 5 : UINT64_C(1) << 32;
    for (uint64_t k = 0; k < elements; k++) array[k] = (int32_t)(uint32_t)(draw(range) - range / 2);
    for (uint64_t cuts = draw(BOXES); cuts > 0; cuts--) count = cut(boxes, count, dims);
    for (size_t i = 0; i < count; i++)
        parts[i] = (cured_bytes){partials[i], partial_of(shape, &boxes[i], dims, partials[i])};
    for (size_t i = count; i > 1; i--) {
        const size_t k = draw(i);
        const cured_bytes other = parts[i - 1];
        parts[i - 1] = parts[k];
        parts[k] = other;
    }
    OK(cured_partial_merge(parts, count, merged, &bytes, NULL));
    check_whole(merged, bytes, elements);
    if (count > 1) no_digest(parts, count - 1);
    parts[count] = parts[draw(count)];
    no_digest(parts, count + 1);
}

START_TEST(cut_at_random) {
    const char *cases = getenv("CURED_TEST_CASES");
    for (long c = cases != NULL ? atol(cases) : CASES; c > 0; c--) check_case();
}
END_TEST

static void refused(const cured_block *block, uint64_t count, cured_options o, const char *word) {
    const cured_op sum = CURED_OP_SUM;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    o.layout = block;
    cured_status status = cured_reduce_buffer(conn, CURED_I32, &sum, 1, array, count, &o, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    ck_assert_int_eq(status, CURED_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, word) != NULL, "%s", error.text);
    cured_call_free(call);
}

START_TEST(what_is_wrong_is_said) {
    static const uint64_t shape[33] = {4, 6}, start[33] = {1, 2}, extent[33] = {2, 3}, far[] = {3, 2},
                          vast[] = {UINT64_MAX, 8};
    cured_options o = CURED_OPTIONS_INIT;
    refused(&(cured_block){2, shape, start, extent}, 6, o, "only a partial");
    o.partial = true;
    refused(&(cured_block){2, shape, start, extent}, 7, o, "the block has 6 elements, the input 7");
    refused(&(cured_block){33, shape, start, extent}, 6, o, "32");
    refused(&(cured_block){2, NULL, start, extent}, 6, o, "shape, start or extent is NULL with 2 axes");
    refused(&(cured_block){2, shape, NULL, extent}, 6, o, "shape, start or extent is NULL with 2 axes");
    refused(&(cured_block){2, shape, start, NULL}, 6, o, "shape, start or extent is NULL with 2 axes");
    refused(&(cured_block){2, shape, far, extent}, 6, o, "along axis 0, 2 elements from 3 on lie outside");
    refused(&(cured_block){2, vast, start, extent}, 6, o, "more than 2^60 elements");
    o.first = 4;
    refused(&(cured_block){2, shape, start, extent}, 6, o, "first");
    o.first = 0;
    o.unplaced = true;
    refused(&(cured_block){2, shape, start, extent}, 6, o, "unplaced");
}
END_TEST

/* A daemon is told of a block of any axes that fits no usual head; one that grants no "layout" is asked nothing, and several regions are
 * no block. */
START_TEST(by_a_daemon) {
    enum { AXES = CURED_BLOCK_MAX_DIMS };
    static const char *const grants[] = {"layout", "stride"};
    uint64_t shape[AXES], start[AXES], extent[AXES];
    fake f;
    cured_error error;
    for (size_t i = 0; i < AXES; i++) shape[i] = UINT64_MAX - i, start[i] = shape[i] - 5, extent[i] = 5;
    shape[0] = start[0] = extent[0] = 0;
    for (int granted = 1; granted >= 0; granted--) {
        cured_options o = CURED_OPTIONS_INIT;
        cured_call *call;
        cr_frame frame;
        const uint8_t *payload;
        cr_wire_welcome welcome = {.version = 1, .feature_count = 1};
        uint8_t packed[256];
        o.partial = true;
        o.layout = &(cured_block){AXES, shape, start, extent};
        fake_start(&f);
        cured_conn *own;
        OK(cured_connect(f.address, NULL, &own, NULL));
        fake_accept(&f);
        fake_expect(&f, own, CR_FRAME_HELLO, &frame, &payload);
        OK(cured_reduce_buffer(own, CURED_I32, ops, OPS, NULL, 0, &o, &call, NULL));
        strcpy(welcome.features[0], grants[!granted]);
        fake_send(&f, CR_FRAME_WELCOME, 0, 0, packed, cr_wire_pack_welcome(&welcome, packed, sizeof packed));
        if (granted) {
            cr_wire_call m;
            cr_wire_layout asked;
            fake_expect(&f, own, CR_FRAME_CALL, &frame, &payload);
            ck_assert_int_eq(cr_wire_unpack_call(payload, frame.length, &m, NULL), CR_OK);
            ck_assert(m.reduce.has_layout && m.reduce.want_partial);
            ck_assert_int_eq(cr_wire_unpack_layout(CR_FORM_CALL, payload, frame.length, &asked, NULL), CR_OK);
            ck_assert_uint_eq(asked.axes, AXES);
            ck_assert_mem_eq(asked.shape, shape, sizeof shape);
            ck_assert_mem_eq(asked.start, start, sizeof start);
            ck_assert_mem_eq(asked.extent, extent, sizeof extent);
        } else {
            ck_assert_int_eq(cured_wait(call, &error), CURED_UNIMPLEMENTED);
            ck_assert_str_eq(error.text,
                             "layout: this daemon is too old to take blocks; a connection to \"embedded:\" does, in "
                             "this process");
        }
        cured_call_free(call);
        cured_close(own);
        fake_stop(&f);
    }
}
END_TEST

CR_CHECK_MAIN("client/blocks") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, cut_at_random);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, by_a_daemon);
}
