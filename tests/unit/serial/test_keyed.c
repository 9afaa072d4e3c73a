/* kernels/core/keyed: partials by key have one form (golden/, written by hand from docs/PARTIALS.md), however their rows were cut and
 * merged, and a sentence says what is wrong with bytes that are none. What is allocated goes by the bytes, not by what they claim.
 *
 * Thread: main. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/keyed.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/keys/keys.h"
#include "tests/protocol/hex.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { FAMILIES = CR_FAM_SUM | CR_FAM_BITS, CAP = 1024, HEAD = 32, CELL = 12 };

static cr_error error;

/* Rows with their keys as a partial, which the caller frees. */
static cr_keyed_bytes part_of(const int16_t *x, const uint8_t *key, uint64_t count) {
    const cr_axis_spec spec = {.dtype = CR_I16, .families = FAMILIES};
    const cr_keys keys = {key, count, 4, 1, CR_U8, false};
    const cr_view view = cr_view_plain(x);
    cr_by_key *state;
    uint64_t outside, length;
    uint8_t *bytes;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, CR_WANTS_ALL, &state, &error), CR_OK);
    ck_assert_int_eq(cr_by_key_fold(state, &view, count, 0, &outside, &error), CR_OK);
    ck_assert_int_eq(cr_by_key_pack(state, &bytes, &length, &error), CR_OK);
    cr_by_key_free(state);
    return (cr_keyed_bytes){bytes, (size_t)length};
}

static const int16_t x[] = {3, -1, 4};
static const uint8_t key[] = {2, 0, 2};

START_TEST(golden) {
    uint8_t want[CAP], *merged;
    const size_t length = hex_read("i16-by-key", want, sizeof want);
    const cr_keyed_bytes all = part_of(x, key, 3);
    ck_assert_uint_eq(all.length, length);
    ck_assert_mem_eq(all.data, want, length);
    cr_keyed of;
    uint64_t n, bytes;
    ck_assert_int_eq(cr_keyed_check(want, length, &of, &n, &error), CR_OK);
    ck_assert(of.dtype == CR_I16 && of.families == FAMILIES && of.groups == 4 && of.columns == 1 && of.cells == 2 &&
              n == 3);
    cr_keyed_bytes parts[4] = {part_of(x + 2, key + 2, 1), part_of(x, key, 0), part_of(x + 1, key + 1, 1),
                               part_of(x, key, 1)}; /* each element apart, the last first, and one of none */
    size_t which;
    ck_assert_uint_eq(parts[1].length, HEAD);
    ck_assert_int_eq(cr_keyed_merge(parts, 4, &merged, &bytes, &which, &error), CR_OK);
    ck_assert_uint_eq(bytes, length);
    ck_assert_mem_eq(merged, want, length);
    free(merged);
    for (int i = 0; i < 4; i++) free((void *)(uintptr_t)parts[i].data);
    free((void *)(uintptr_t)all.data);
}
END_TEST

START_TEST(answers) {
    const uint32_t ops[] = {CR_OP_SUM, CR_OP_BIT_OR, CR_OP_MIN}, without = CR_OP_MAX;
    uint8_t bytes[CAP];
    const size_t length = hex_read("i16-by-key", bytes, sizeof bytes);
    int64_t sums[4];
    int16_t ors[4];
    uint8_t status[2][4];
    void *const out[] = {sums, ors};
    uint8_t *const statuses[] = {status[0], status[1]};
    const cr_finish_opts opts = {0};
    ck_assert_int_eq(cr_keyed_finish(bytes, length, ops, 2, &opts, out, statuses, &error), CR_OK);
    ck_assert_mem_eq(sums, ((const int64_t[]){-1, 0, 7, 0}), sizeof sums);
    ck_assert_mem_eq(ors, ((const int16_t[]){-1, 0, 7, 0}), sizeof ors);
    ck_assert_mem_eq(status, ((const uint8_t[2][4]){{0}}), sizeof status);
    ck_assert_int_eq(cr_keyed_finish(bytes, length, &without, 1, &opts, out, NULL, &error), CR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "partial: it was not made for max");
}
END_TEST

static const struct refusal {
    size_t at;
    uint8_t bytes[2];
    const char *says;
} refusals[] = {
    {0, {0x44, 0x4b}, "not one by key"},
    {2, {2, 5}, "its version is 2"},
    {3, {14, 0x21}, "not an input type"},
    {3, {4, 0x21}, "of another type than its head says"},
    {4, {0x01, 0}, "other families than its head says"},
    {4, {0xa1, 0}, "families that there are not by key"}, /* a digest */
    {4, {0x21, 1}, "families that there are not by key"}, /* products of two arrays, beside sums of one */
    {6, {0, 1}, "families that are not known"},
    {8, {2, 0}, "beyond its groups"},
    {8, {1, 0}, "more cells than its groups"},
    {12, {1, 0}, "more than a call by key has"}, /* 2^32 groups */
    {15, {0xff, 0xff}, "more than a call by key has"},
    {16, {0, 0}, "more than a call by key has"},
    {23, {0x80, 2}, "more than a call by key has"},
    {24, {1, 0}, "bytes follow its end"},
    {24, {3, 0}, "it is cut short"},
    {26, {1, 0}, "more cells than its groups"},
    {HEAD, {2, 0}, "do not rise"},
    {HEAD, {3, 0}, "do not rise"},
    {HEAD, {4, 0}, "beyond its groups"},
    {HEAD + 7, {0x80, 0x38}, "beyond its groups"},
    {HEAD + 8, {0x37, 0}, "it is cut short"},
    {HEAD + 8, {0x39, 0}, "cell 0: bytes follow its end"},
    {HEAD + 10, {0, 0xff}, "it is cut short"},
    {HEAD + CELL, {0x44, 0x50}, "cell 0: these bytes are not one"},
    {HEAD + CELL + 1, {0x4b, 2}, "cell 0: it is by key"},
    {HEAD + CELL + 2, {1, 5}, "cell 0: its head is out of bounds"}, /* with a position */
    {HEAD + CELL + 8, {0, 0}, "cell 0: a sum is larger than its elements"},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

START_TEST(refuses) {
    const struct refusal *r = &refusals[_i];
    uint8_t bytes[CAP], *merged;
    const size_t length = hex_read("i16-by-key", bytes, sizeof bytes);
    cr_keyed of;
    uint64_t n;
    size_t which;
    memcpy(bytes + r->at, r->bytes, 2);
    const cr_status status = cr_keyed_check(bytes, length, &of, &n, &error);
    ck_assert_int_eq(status, r->at == 2 ? CR_UNIMPLEMENTED : CR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, r->says) != NULL, "%s", error.text);
    const cr_keyed_bytes parts[] = {{bytes, length}, {bytes, length}};
    ck_assert_int_eq(cr_keyed_merge(parts, 2, &merged, &n, &which, &error), status);
    ck_assert(merged == NULL && error.text[0] != '\0');
}
END_TEST

START_TEST(refuses_other_lengths) {
    uint8_t bytes[CAP];
    const size_t length = hex_read("i16-by-key", bytes, sizeof bytes);
    cr_keyed of;
    uint64_t n;
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *exact = malloc(cut + 1); /* a sanitizer sees what is read behind it */
        memcpy(exact + 1, bytes, cut);
        ck_assert_int_eq(cr_keyed_check(exact + 1, cut, &of, &n, &error), CR_INVALID_ARGUMENT);
        free(exact);
    }
    ck_assert_int_eq(cr_keyed_check(bytes, length + 1, &of, &n, &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "bytes follow its end"));
}
END_TEST

/* A cell that nothing is in takes no bytes, so it may not stand there. */
START_TEST(refuses_empty_cells) {
    const cr_keyed of = {CR_U8, CR_FAM_COUNTS, 3, 1, 0};
    cr_keyed_writer w;
    cr_keyed found;
    cr_partial none;
    uint64_t length, n;
    cr_share *share = malloc(sizeof *share);
    cr_partial_init(&none, CR_U8, CR_FAM_COUNTS);
    ck_assert_int_eq(cr_share_make(share, &none, CR_UNPLACED, &error), CR_OK);
    ck_assert_int_eq(cr_keyed_begin(&w, &of, 1, &error), CR_OK);
    ck_assert_int_eq(cr_keyed_put(&w, 1, share, &error), CR_OK);
    uint8_t *bytes = cr_keyed_end(&w, &length);
    ck_assert_int_eq(cr_keyed_check(bytes, (size_t)length, &found, &n, &error), CR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "partial: cell 1: it has no elements, and stands there all the same");
    free(bytes);
    free(share);
}
END_TEST

/* However many parts have one cell, a step merges as many cells of parts as it is told: a daemon's thread does no more at once. */
START_TEST(a_step_is_short) {
    enum { PARTS = 1000, STEP = 10 };
    const cr_keyed_bytes one = part_of(x, key, 1);
    cr_keyed_bytes *parts = malloc(PARTS * sizeof *parts);
    for (int i = 0; i < PARTS; i++) parts[i] = one;
    cr_keyed_merger *m;
    uint8_t *at_once;
    uint64_t length, bytes;
    size_t which;
    bool over = false;
    int steps = 0;
    ck_assert_int_eq(cr_keyed_merger_new(parts, PARTS, &m, &error), CR_OK);
    for (; !over; steps++) ck_assert_int_eq(cr_keyed_merger_step(m, STEP, &over, &which, &error), CR_OK);
    ck_assert_int_eq(steps, 2 * PARTS / STEP); /* each part is opened, and has one cell */
    ck_assert_uint_eq(cr_keyed_merger_elements(m), PARTS);
    uint8_t *merged = cr_keyed_merger_end(m, &length);
    ck_assert_int_eq(cr_keyed_merge(parts, PARTS, &at_once, &bytes, &which, &error), CR_OK);
    ck_assert_uint_eq(length, bytes);
    ck_assert_mem_eq(merged, at_once, length);
    cr_keyed_merger_free(m);
    free(merged);
    free(at_once);
    free(parts);
    free((void *)(uintptr_t)one.data);
}
END_TEST

/* Of all digits that a state has. */
static cr_share *make_large_share(void) {
    static const double elements[] = {-1.7976931348623157e308, 1e150, 1e-10, 5e-324};
    cr_share *share = malloc(sizeof *share);
    cr_partial p;
    cr_partial_init(&p, CR_F64, CR_FAM_SUM | CR_FAM_SUMSQ);
    cr_cpu_fold(&p, elements, sizeof elements / sizeof elements[0], 0);
    ck_assert_int_eq(cr_share_make(share, &p, CR_UNPLACED, &error), CR_OK);
    return share;
}

/* A copy is made while it grows: both are at most what so many elements make, and the room for one share. */
START_TEST(grows_no_further_than_is_said) {
    const uint64_t slack = CELL + CR_SERIAL_MAX_BYTES;
    cr_share *share = make_large_share();
    for (uint64_t cells = 1; cells < 8000; cells = cells * 3 / 2 + 1) {
        const cr_keyed of = {CR_F64, CR_FAM_SUM | CR_FAM_SUMSQ, cells, 1, 0};
        const uint64_t most = cr_keyed_most(&of, cells);
        cr_keyed_writer w;
        ck_assert_int_eq(cr_keyed_begin(&w, &of, cells, &error), CR_OK);
        for (uint64_t cell = 0; cell < cells; cell++) {
            const uint64_t before = w.room;
            ck_assert_int_eq(cr_keyed_put(&w, cell, share, &error), CR_OK);
            if (w.room != before) ck_assert_uint_le(before + w.room, 2 * (most + slack));
        }
        free(cr_keyed_end(&w, &(uint64_t){0}));
    }
    free(share);
}
END_TEST

/* The same of a merge, of as many cells as its parts have. */
START_TEST(merges_grow_no_further) {
    const uint64_t slack = CELL + CR_SERIAL_MAX_BYTES;
    cr_share *share = make_large_share();
    for (uint64_t cells = 1; cells < 8000; cells = cells * 3 / 2 + 1) {
        const cr_keyed of = {CR_F64, CR_FAM_SUM | CR_FAM_SUMSQ, 4 * cells, 1, 0};
        cr_keyed_bytes parts[2];
        uint64_t length;
        uint8_t *merged;
        size_t which;
        for (uint64_t i = 0; i < 2; i++) { /* half of the cells are in both */
            cr_keyed_writer w;
            ck_assert_int_eq(cr_keyed_begin(&w, &of, cells, &error), CR_OK);
            for (uint64_t cell = 0; cell < cells; cell++)
                ck_assert_int_eq(cr_keyed_put(&w, cell + i * cells / 2, share, &error), CR_OK);
            parts[i].data = cr_keyed_end(&w, &length);
            parts[i].length = (size_t)length;
        }
        most_reallocated();
        ck_assert_int_eq(cr_keyed_merge(parts, 2, &merged, &length, &which, &error), CR_OK);
        const size_t most = most_reallocated();
        ck_assert_uint_ge(most, length);
        ck_assert_uint_le(most, cr_keyed_most(&of, 2 * cells) + slack);
        free(merged);
        for (int i = 0; i < 2; i++) free((void *)(uintptr_t)parts[i].data);
    }
    free(share);
}
END_TEST

/* All families that cells have, of elements with any bits: whole types full of them, which reach the first and the last digit. */
START_TEST(no_longer_than_is_said) {
    static uint8_t elements[8 * 4096];
    cr_share *share = malloc(sizeof *share);
    uint32_t seed = 1;
    for (int dtype = 1; dtype < 64; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        cr_keyed of = {(cr_dtype)dtype, 0, 1, 1, 0};
        for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
            if (cr_op_supports(op, of.dtype, &error) == CR_OK && cr_op_inputs(op) == 1 &&
                cr_keys_takes(op, of.dtype, &error) == CR_OK && cr_share_unplaced_takes(op, of.dtype, &error) == CR_OK)
                of.families |= cr_op_needs(op, of.dtype);
        for (int kind = 0; kind < 4; kind++) { /* random bits, all bits, the largest of a float, the smallest */
            const size_t size = cr_dtype_size(of.dtype);
            const uint8_t top[] = {0, 0xff, 0x7b, 0};
            for (size_t i = 0; i < sizeof elements; i++)
                elements[i] = kind == 0   ? (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24)
                              : kind == 3 ? i % size == 0
                                          : top[kind];
            for (size_t i = 0; of.dtype == CR_BOOL && i < sizeof elements; i++) elements[i] &= 1;
            cr_partial p;
            uint64_t length;
            cr_keyed_writer w;
            cr_partial_init(&p, of.dtype, of.families);
            cr_partial_want(&p, CR_WANTS_ALL);
            cr_cpu_fold(&p, elements, sizeof elements / size, 0);
            ck_assert_int_eq(cr_share_make(share, &p, CR_UNPLACED, &error), CR_OK);
            ck_assert_int_eq(cr_keyed_begin(&w, &of, 1, &error), CR_OK);
            ck_assert_int_eq(cr_keyed_put(&w, 0, share, &error), CR_OK);
            free(cr_keyed_end(&w, &length));
            ck_assert_msg(length <= cr_keyed_most(&of, 1), "%s: %d bytes of %d", cr_dtype_name(of.dtype), (int)length,
                          (int)cr_keyed_most(&of, 1));
        }
    }
    free(share);
    const cr_keyed many = {CR_F64, CR_FAM_SUM, UINT64_MAX / 3, 7, 0}, few = {CR_F64, CR_FAM_SUM, 5, 2, 0};
    ck_assert_uint_eq(cr_keyed_most(&many, UINT64_MAX), (uint64_t)1 << CR_KEYED_MAX_LOG2);
    ck_assert_uint_eq(cr_keyed_most(&many, 3) - HEAD, 3 * (cr_keyed_most(&few, 1) - HEAD));
    ck_assert_uint_eq(cr_keyed_most(&few, 100) - HEAD, 10 * (cr_keyed_most(&few, 1) - HEAD));
    ck_assert_uint_eq(cr_keyed_most(&few, 0), HEAD);
}
END_TEST

CR_CHECK_MAIN("serial/keyed") {
    tcase_add_test(tc, no_longer_than_is_said);
    tcase_add_test(tc, grows_no_further_than_is_said);
    tcase_add_test(tc, merges_grow_no_further);
    tcase_add_test(tc, a_step_is_short);
    tcase_add_test(tc, golden);
    tcase_add_test(tc, answers);
    tcase_add_loop_test(tc, refuses, 0, REFUSALS);
    tcase_add_test(tc, refuses_other_lengths);
    tcase_add_test(tc, refuses_empty_cells);
}
