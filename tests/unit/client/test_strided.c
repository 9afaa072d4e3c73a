/* libcured on arrays with strides: whatever the order of the axes, their gaps, directions and byte order, under masks, over any of the
 * axes, the answers are those of a copy in C order; and what is wrong with an array is said. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cured/strided.h"
#include "tests/unit/check_main.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum { DIMS = 4, CASES = 1500, MEMORY = 1 << 20, MOST = 20000 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

typedef struct sample {
    cured_strided array;
    uint64_t shape[DIMS];
    int64_t strides[DIMS];
    uint64_t count;
    cured_dtype dtype;
    size_t size;
} sample;

static uint8_t memory[MEMORY], marks[MOST], bits[MOST / 8 + 2];
static uint8_t squeezed[8 * MOST];
static uint64_t places[MOST];

/* An array of some axes in a random order, with gaps, some backwards, some of stride 0. */
static void make(sample *s) {
    static const cured_dtype dtypes[] = {CURED_U8, CURED_I16, CURED_F32, CURED_F64};
    int order[DIMS] = {0, 1, 2, 3};
    uint64_t span = 0, at = 0;
    memset(s, 0, sizeof *s);
    s->dtype = dtypes[draw(4)];
    s->size = cured_dtype_size(s->dtype);
    s->array.dims = draw(DIMS + 1);
    s->array.big_endian = draw(4) == 0;
    s->array.shape = s->shape;
    s->array.strides = s->strides;
    s->count = 1;
    for (size_t i = s->array.dims; i > 1; i--) {
        const size_t k = draw(i);
        const int other = order[i - 1];
        order[i - 1] = order[k];
        order[k] = other;
    }
    span = s->size;
    for (size_t i = 0; i < s->array.dims; i++) {
        const int axis = order[i];
        s->shape[axis] = draw(20) == 0 ? 0 : 1 + draw(12);
        const bool still = draw(10) == 0;
        if (draw(3) == 0) span += draw(3) * s->size + draw(2);
        s->strides[axis] = still ? 0 : (int64_t)span;
        if (!still && s->shape[axis] != 0) span *= s->shape[axis];
        s->count *= s->shape[axis];
    }
    ck_assert_uint_lt(span, MEMORY);
    for (size_t i = 0; i < s->array.dims; i++) {
        if (draw(4) != 0 || s->shape[i] == 0) continue;
        at += (s->shape[i] - 1) * (uint64_t)s->strides[i];
        s->strides[i] = -s->strides[i];
    }
    s->array.data = memory + at;
}

/* Element `index` of C order, as the machine has it. */
static void element(const sample *s, uint64_t index, uint8_t *out) {
    const uint8_t *at = s->array.data;
    for (size_t i = s->array.dims; i-- > 0; index /= s->shape[i]) at += (int64_t)(index % s->shape[i]) * s->strides[i];
    for (size_t b = 0; b < s->size; b++) out[b] = at[s->array.big_endian ? s->size - 1 - b : b];
}

static void same(const cured_value *got, const cured_value *want, bool index) {
    size_t bytes, want_bytes;
    ck_assert_int_eq(cured_value_status(got, NULL), cured_value_status(want, NULL));
    if (cured_value_status(want, NULL) != CURED_OK) return;
    const void *x = cured_value_bytes(got, &bytes), *y = cured_value_bytes(want, &want_bytes);
    uint64_t place = 0;
    ck_assert_uint_eq(bytes, want_bytes);
    memcpy(&place, y, bytes < 8 ? bytes : 8);
    if (index) place = places[place];
    ck_assert_msg(memcmp(x, index ? (const void *)&place : y, bytes) == 0, "%s", cured_op_name(cured_value_op(got)));
}

/* The elements of answer number `answer` over the axes, squeezed, with their places; how many. */
static uint64_t slice(const sample *s, uint64_t axes, uint64_t answer, const cured_mask *mask) {
    uint64_t kept = 0, place = 0;
    for (uint64_t index = 0; index < s->count; index++) {
        uint64_t rest = index, number = 0, step = 1;
        for (size_t i = s->array.dims; i-- > 0; rest /= s->shape[i]) {
            if (axes >> i & 1) continue;
            number += rest % s->shape[i] * step;
            step *= s->shape[i];
        }
        if (number != answer) continue;
        if (mask == NULL || (marks[index] != 0) != mask->leaves_out) {
            element(s, index, squeezed + kept * s->size);
            places[kept++] = place;
        }
        place++;
    }
    return kept;
}

static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM2, CURED_OP_COUNT_NONZERO, CURED_OP_ARGMAX, CURED_OP_DIGEST};
enum { OPS = sizeof ops / sizeof ops[0], ARGMAX = 3 };

/* first: the first op. An array without elements has no greatest. */
static void check(cured_conn *conn, const sample *s, size_t first, size_t op_count, const cured_mask *mask) {
    const uint64_t all = ((uint64_t)1 << s->array.dims) - 1, axes = s->array.axes;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    const bool whole = axes == 0 || axes == all;
    o.mask = mask;
    o.statuses = !whole;
    cured_reduce_strided(conn, s->dtype, ops + first, op_count, &s->array, &o, &call, &error);
    ck_assert_msg(call != NULL, "%s", error.text);
    ck_assert_msg(cured_wait(call, &error) == CURED_OK, "%s", error.text);
    uint64_t answers = 1;
    for (size_t i = 0; i < s->array.dims && !whole; i++) answers *= axes >> i & 1 ? 1 : s->shape[i];
    for (uint64_t a = 0; a < answers; a += 1 + draw(1 + answers / 8)) {
        cured_values *want = NULL;
        const uint64_t kept = slice(s, whole ? all : axes, a, mask);
        OK(cured_reduce_here(s->dtype, ops + first, op_count, squeezed, kept, NULL, &want, NULL));
        for (size_t k = 0; k < op_count; k++) {
            const cured_value *value = cured_values_get(want, k);
            const bool index = first + k == ARGMAX;
            if (whole) {
                same(cured_call_value(call, k), value, index);
                continue;
            }
            cured_dtype dtype;
            const uint8_t *got = cured_call_array(call, k, &dtype, NULL);
            const uint8_t *statuses = cured_call_array_statuses(call, k, NULL);
            size_t bytes = 0;
            ck_assert_int_eq(statuses != NULL ? statuses[a] : 0, cured_value_status(value, NULL));
            const void *right = cured_value_bytes(value, &bytes);
            if (right == NULL) continue;
            uint64_t place = 0;
            memcpy(&place, right, bytes < 8 ? bytes : 8);
            if (index) place = places[place];
            ck_assert_msg(memcmp(got + a * cured_dtype_size(dtype), index ? (const void *)&place : right, bytes) == 0,
                          "answer %llu of %s", (unsigned long long)a, cured_op_name(ops[first + k]));
        }
        cured_values_free(want);
    }
    cured_call_free(call);
}

START_TEST(as_a_copy_in_c_order) {
    cured_conn *conn = NULL;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    for (size_t i = 0; i < MEMORY; i++) memory[i] = (uint8_t)draw(256);
    for (int c = 0; c < CASES; c++) {
        sample s;
        make(&s);
        cured_mask mask = {marks, s.count, 0, CURED_MASK_BYTES, draw(2) == 0};
        const bool masked = draw(2) == 0, as_bits = draw(2) == 0;
        for (uint64_t i = 0; i < s.count; i++) {
            marks[i] = draw(2) == 0;
            bits[(i + 3) / 8] =
                (uint8_t)((bits[(i + 3) / 8] & ~(1u << (i + 3) % 8)) | (unsigned)marks[i] << (i + 3) % 8);
        }
        if (as_bits) mask = (cured_mask){bits, s.count, 3, CURED_MASK_BITS, mask.leaves_out};
        s.array.axes = draw((uint64_t)1 << s.array.dims);
        const size_t first = draw(OPS - 1), most = (masked ? OPS - 1 : OPS) - first;
        check(conn, &s, first, 1 + draw(most), masked ? &mask : NULL);
    }
    cured_close(conn);
}
END_TEST

/* Beyond one block, in order and not, with threads beside the one that gathers, and answers by the million. */
START_TEST(long_arrays) {
    enum { ROWS = 3000, COLUMNS = 1500 };
    const uint64_t shape[] = {COLUMNS, ROWS};
    const int64_t strides[] = {-8, 16 * COLUMNS}, turned[] = {8, 8 * COLUMNS};
    static const cured_op sum = CURED_OP_SUM, both[] = {CURED_OP_ARGMIN, CURED_OP_SUM};
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    double *data = malloc(sizeof *data * 2 * ROWS * COLUMNS), total = 0;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    double value;
    uint64_t index;
    options.threads = _i == 0 ? 1 : 3;
    OK(cured_connect("embedded:", &options, &conn, NULL));
    for (size_t i = 0; i < 2 * ROWS * COLUMNS; i++) data[i] = (double)(int64_t)draw(1000);
    data[2 * COLUMNS * 7 + 11] = -1;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++) total += data[2 * COLUMNS * r + c];
    cured_strided array = {data + COLUMNS - 1, 2, shape, strides, 0, false};
    OK(cured_reduce_strided(conn, CURED_F64, both, 2, &array, NULL, &call, NULL));
    OK(cured_wait(call, NULL));
    OK(cured_value_double(cured_call_value(call, 1), &value));
    ck_assert(value == total);
    OK(cured_value_uint64(cured_call_value(call, 0), &index));
    ck_assert_uint_eq(index, (COLUMNS - 1 - 11) * ROWS + 7);
    cured_call_free(call);
    array.axes = 1; /* of Fortran order: rows of memory */
    OK(cured_reduce_strided(conn, CURED_F64, both, 2, &array, NULL, &call, NULL));
    OK(cured_wait(call, NULL));
    ck_assert_uint_eq(((const uint64_t *)cured_call_array(call, 0, NULL, NULL))[7], COLUMNS - 1 - 11);
    cured_call_free(call);
    array = (cured_strided){data, 2, shape, turned, 1, false}; /* no gap: it is read where it lies */
    OK(cured_reduce_strided(conn, CURED_F64, &sum, 1, &array, NULL, &call, NULL));
    OK(cured_wait(call, NULL));
    const double *sums = cured_call_array(call, 0, NULL, NULL);
    for (size_t r = 0; r < ROWS; r++) {
        double want = 0;
        for (size_t c = 0; c < COLUMNS; c++) want += data[COLUMNS * r + c];
        ck_assert(sums[r] == want);
    }
    cured_call_free(call);
    cured_close(conn);
    free(data);
}
END_TEST

/* Keys and offsets take the elements in C order, whatever the order of memory: here the columns of a matrix in Fortran order, backwards. */
START_TEST(by_key_and_by_offsets) {
    enum { ROWS = 3, COLUMNS = 4 };
    static const uint64_t shape[] = {ROWS, COLUMNS}, all[] = {ROWS * COLUMNS};
    static const int64_t strides[] = {8, -8 * ROWS}, backwards[] = {-8};
    static const int32_t groups[] = {1, 0, 1}, borders[] = {0, 5, 12};
    static const cured_op op = CURED_OP_ARGMAX;
    const cured_keys keys = {groups, ROWS, CURED_I32, 2, COLUMNS, false};
    const cured_offsets offsets = {borders, 3, CURED_I32};
    static const uint64_t by_key[] = {1, 1, 1, 1, 2, 2, 2, 2}, by_offsets[] = {0, 0};
    double data[ROWS * COLUMNS];
    cured_options o = CURED_OPTIONS_INIT;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = i;
    o.keys = &keys;
    const cured_strided matrix = {data + (COLUMNS - 1) * ROWS, 2, shape, strides, 0, false};
    OK(cured_reduce_strided(conn, CURED_F64, &op, 1, &matrix, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    ck_assert_mem_eq(cured_call_array(call, 0, NULL, NULL), by_key, sizeof by_key);
    cured_call_free(call);
    o.keys = NULL;
    o.offsets = &offsets;
    const cured_strided row = {data + ROWS * COLUMNS - 1, 1, all, backwards, 0, false};
    OK(cured_reduce_strided(conn, CURED_F64, &op, 1, &row, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    ck_assert_mem_eq(cured_call_array(call, 0, NULL, NULL), by_offsets, sizeof by_offsets);
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

static void refused(cured_conn *conn, const cured_strided *array, const cured_options *o, const char *word) {
    const cured_op sum = CURED_OP_SUM;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    ck_assert_int_eq(cured_reduce_strided(conn, CURED_F64, &sum, 1, array, o, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_msg(call == NULL && strstr(error.text, word) != NULL, "%s", error.text);
}

START_TEST(what_is_wrong_is_said) {
    static const uint64_t shape[65] = {3, 4}, wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, vast[] = {UINT64_MAX};
    static const int64_t strides[65] = {32, 8}, far[] = {INT64_MIN, 8}, none[] = {0, 0};
    static const double data[12];
    const cured_axis axis = {1, 12, 1};
    cured_options o = CURED_OPTIONS_INIT;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    const cured_op sum = CURED_OP_SUM;
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    refused(conn, &(cured_strided){data, 65, shape, strides, 0, false}, NULL, "dims is 65, limit is 64");
    refused(conn, &(cured_strided){data, 2, shape, strides, 4, false}, NULL, "bit 2 names an axis, the array has 2");
    refused(conn, &(cured_strided){data, 2, shape, far, 0, false}, NULL, "strides[0] is -9223372036854775808");
    refused(conn, &(cured_strided){data, 2, wide, none, 0, false}, NULL, "more than 2^60 elements");
    refused(conn, &(cured_strided){data, 1, vast, none, 0, false}, NULL, "limit is 2^60 elements");
    refused(conn, &(cured_strided){NULL, 2, shape, strides, 0, false}, NULL, "data is NULL");
    refused(conn, &(cured_strided){data, 2, NULL, strides, 0, false}, NULL, "shape is NULL with 2 axes");
    refused(conn, NULL, NULL, "array is NULL");
    o.axis = &axis;
    refused(conn, &(cured_strided){data, 2, shape, strides, 0, false}, &o, "axes what is reduced");
    static const int32_t groups[] = {0, 1, 0};
    const cured_keys keys = {groups, 3, CURED_I32, 2, 4, false};
    const cured_offsets offsets = {groups, 2, CURED_I32};
    o.axis = NULL;
    o.keys = &keys;
    refused(conn, &(cured_strided){data, 2, shape, strides, 1, false}, &o, "axes: they go with no keys");
    o.keys = NULL;
    o.offsets = &offsets;
    refused(conn, &(cured_strided){data, 2, shape, strides, 2, false}, &o, "axes: they go with no keys and no offsets");
    OK(cured_reduce_strided(conn, CURED_F64, &sum, 1, &(cured_strided){data, 2, shape, NULL, 0, false}, NULL, &call,
                            NULL));
    ck_assert_int_eq(cured_stream_write(call, data, 8, NULL), CURED_FAILED_PRECONDITION);
    ck_assert_int_eq(cured_stream_end(call, NULL), CURED_FAILED_PRECONDITION);
    OK(cured_wait(call, NULL));
    cured_call_free(call);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/strided") {
    tcase_add_test(tc, as_a_copy_in_c_order);
    tcase_add_loop_test(tc, long_arrays, 0, 2);
    tcase_add_test(tc, by_key_and_by_offsets);
    tcase_add_test(tc, what_is_wrong_is_said);
}
