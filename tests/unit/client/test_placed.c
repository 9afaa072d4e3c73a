/* libcured's answers by key, by offsets and by rank in regions of this process: every way in, by one thread and by several, under a mask,
 * with memory of the program's own or without, has the bits of the same call whose answers come back. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/ways.h"

#define OK(call) ck_assert_msg((call) == CURED_OK, "%s", error.text)

enum { MOST = 700 * 1000 + 28, FEW = 1204, WAYS = 4, GEOMETRIES = 4, OUTPUTS = 2, AT = 64, ROOM = 1 << 20 };
typedef enum geometry { BY_KEY, ROWS_BY_KEY, BY_OFFSETS, BY_RANK } geometry;

static float data[MOST];
static uint8_t marks[MOST];
static int32_t key[MOST];
static uint32_t border[1001];
static cured_keys keys;
static cured_offsets offsets;
static cured_axis axis;
static cured_error error;

static uint32_t draw(void) {
    static uint32_t x;
    if (x == 0) x = (uint32_t)check_seed(1) | 1;
    return (x = x * 1664525u + 1013904223u) >> 8;
}

static void setup(void) {
    for (size_t i = 0; i < MOST; i++) {
        data[i] = (float)(int32_t)(draw() - (1 << 23)) * (i % 7 ? 1 : 1e-30f);
        key[i] = (int32_t)(i % 1000);
        marks[i] = i < 1000 || draw() % 3;
    }
}

/* A geometry of n elements, and how many answers an op has. */
static uint64_t take(geometry g, uint64_t n, cured_options *o) {
    const uint64_t columns = g == ROWS_BY_KEY ? 2 : 1, few = n < 2 * MOST / 3 ? 300 : 1000;
    switch (g) {
        case BY_KEY:
        case ROWS_BY_KEY:
            for (size_t i = 0; i < n / columns; i++) key[i] = (int32_t)(i % few);
            keys = (cured_keys){key, n / columns, CURED_I32, few, columns, false};
            o->keys = &keys;
            return few * columns;
        case BY_OFFSETS:
            for (size_t i = 0; i <= few; i++) border[i] = (uint32_t)((n - 5) * i / few + 3);
            offsets = (cured_offsets){border, few + 1, CURED_U32};
            o->offsets = &offsets;
            return few;
        case BY_RANK:
            axis = (cured_axis){n / 28, 28, 1};
            o->axis = &axis;
            return n / 28;
    }
    return 0;
}

static void placed(cured_conn *conn, geometry g, uint64_t n, bool masked, bool results) {
    const cured_op ops[OUTPUTS] = {g == BY_RANK ? CURED_OP_MEDIAN : CURED_OP_SUM, CURED_OP_COUNT};
    const cured_mask mask = {.data = marks, .count = n, .kind = CURED_MASK_BYTES};
    cured_options o = CURED_OPTIONS_INIT;
    cured_array *array;
    cured_region *region, *input;
    const uint64_t answers = take(g, n, &o), bytes = answers * sizeof(double);
    if (masked) o.mask = &mask;
    OK(cured_array_alloc(CURED_U8, AT + OUTPUTS * bytes + 100, &array, &error));
    OK(cured_region_fd_writable(conn, cured_array_fd(array), &region, &error));
    const int fd = memfd_create("input", MFD_CLOEXEC);
    ck_assert(fd >= 0 && write(fd, data, n * sizeof *data) == (ssize_t)(n * sizeof *data));
    OK(cured_region_fd(conn, fd, &input, &error));
    uint8_t *at = cured_array_data(array);
    const cured_output outputs[OUTPUTS] = {{region, AT}, {region, AT + bytes}};
    void *own[OUTPUTS] = {at + AT, at + AT + bytes};
    cured_call *want = run_way(conn, 0, fd, input, ops, OUTPUTS, data, n, &o);
    o.outputs = outputs;
    if (results) o.results = own;
    for (int way = 0; way < WAYS; way++) {
        memset(at, 0xa5, cured_array_bytes(array));
        cured_call *call = run_way(conn, way, fd, input, ops, OUTPUTS, data, n, &o);
        for (size_t i = 0; i < OUTPUTS; i++) {
            uint64_t count;
            ck_assert_mem_eq(cured_call_array(want, i, NULL, &count), own[i], bytes);
            ck_assert_uint_eq(count, answers);
        }
        for (size_t i = 0; i < AT; i++) ck_assert_uint_eq(at[i], 0xa5);
        for (size_t i = AT + OUTPUTS * bytes; i < cured_array_bytes(array); i++) ck_assert_uint_eq(at[i], 0xa5);
        cured_call_free(call);
    }
    cured_call_free(want);
    cured_region_free(input);
    cured_region_free(region);
    cured_array_free(array);
    close(fd);
}

START_TEST(the_bits_of_answers_that_come_back) {
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        cured_conn *conn = connect_threads(threads);
        for (geometry g = BY_KEY; g <= BY_RANK; g++)
            for (int i = 0; i < 8; i++) {
                if ((i & 1) && draw() % CHECK_SPARSE != 0) continue;
                placed(conn, g, i & 1 ? MOST : FEW, i & 2, i & 4);
            }
        cured_close(conn);
    }
}
END_TEST

/* Places beyond the region, and over the input, are refused before anything is read. */
START_TEST(wrong_places) {
    const cured_op op = CURED_OP_SUM;
    cured_conn *conn = connect_threads(1);
    cured_array *array;
    cured_region *region;
    cured_call *call;
    OK(cured_array_alloc(CURED_F32, FEW, &array, &error));
    memcpy(cured_array_data(array), data, cured_array_bytes(array));
    OK(cured_region_fd_writable(conn, cured_array_fd(array), &region, &error));
    for (geometry g = BY_KEY; g < BY_RANK; g++) {
        cured_options o = CURED_OPTIONS_INIT;
        const uint64_t bytes = take(g, FEW, &o) * sizeof(double), all = cured_array_bytes(array);
        const struct {
            cured_output output;
            const char *says;
        } wrong[] = {{{region, all - bytes + 8}, "outputs[0]"}, {{region, all - bytes}, "input"}};
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            o.outputs = &wrong[i].output;
            OK(cured_region_reduce(region, CURED_F32, &op, 1, 0, CURED_TO_END, &o, &call, &error));
            ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
            ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%d: %s", (int)g, error.text);
            cured_call_free(call);
        }
    }
    cured_region_free(region);
    cured_array_free(array);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/placed") {
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, the_bits_of_answers_that_come_back);
    tcase_add_test(tc, wrong_places);
}
