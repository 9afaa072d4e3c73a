/* keys: shuffled rows give one set of bits, what is outside is named or left out, and states are bounded.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/keys/keys.h"
#include "tests/unit/check_main.h"

enum { ROWS = 3000, GROUPS = 37, SHUFFLES = 1000 };

static uint64_t state = 88172645463325252;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static const cr_op ops[] = {CR_OP_SUM, CR_OP_VAR, CR_OP_MIN, CR_OP_COUNT_NONZERO};
enum { OPS = sizeof ops / sizeof ops[0] };

static cr_axis_spec spec_of(cr_dtype dtype, uint32_t *wants) {
    cr_axis_spec spec = {.dtype = dtype, .op_count = OPS, .statuses = true};
    *wants = 0;
    for (uint32_t k = 0; k < OPS; k++) {
        spec.ops[k] = ops[k];
        spec.families |= cr_op_needs(ops[k], dtype);
        *wants |= cr_op_wants(ops[k]);
    }
    return spec;
}

typedef struct answers {
    uint8_t values[OPS][GROUPS * 8], statuses[OPS][GROUPS];
} answers;

static cr_status reduce(const double *x, const cr_keys *keys, answers *a, cr_error *error) {
    uint32_t wants;
    const cr_axis_spec spec = spec_of(CR_F64, &wants);
    const cr_view view = cr_view_plain(x);
    cr_by_key *by_key;
    uint64_t outside;
    void *out[2 * OPS];
    memset(a, 0, sizeof *a);
    for (int k = 0; k < OPS; k++) {
        out[k] = a->values[k];
        out[OPS + k] = a->statuses[k];
    }
    cr_status status = cr_by_key_new(&spec, keys, wants, &by_key, error);
    if (status == CR_OK) status = cr_by_key_fold(by_key, &view, keys->count, 0, &outside, error);
    if (status == CR_OK) status = cr_by_key_finish(by_key, 0, keys->groups, out, error);
    cr_by_key_free(by_key);
    return status;
}

START_TEST(shuffled) {
    static double x[ROWS];
    static uint32_t key[ROWS];
    static answers first, other;
    const cr_keys keys = {(const uint8_t *)key, ROWS, GROUPS, 1, CR_U32, false};
    cr_error error;
    for (int i = 0; i < ROWS; i++) { /* from 2^-40 to 2^40, and a few far away */
        x[i] = ldexp((double)(int64_t)draw(), (int)(draw() % 80) - 103 + (i % 100 == 0 ? 700 : 0));
        key[i] = (uint32_t)(draw() % GROUPS);
    }
    for (int turn = 0; turn < SHUFFLES; turn++) {
        ck_assert_int_eq(reduce(x, &keys, turn == 0 ? &first : &other, &error), CR_OK);
        if (turn != 0) ck_assert_mem_eq(&first, &other, sizeof first);
        for (uint64_t i = ROWS; i > 1; i--) {
            const uint64_t j = draw() % i;
            const double value = x[j];
            const uint32_t number = key[j];
            x[j] = x[i - 1];
            key[j] = key[i - 1];
            x[i - 1] = value;
            key[i - 1] = number;
        }
    }
}
END_TEST

START_TEST(outside) {
    const double x[] = {1, 2, 4, 8, 16};
    int16_t key[] = {0, 2, -7, 1, 900};
    cr_keys keys = {(const uint8_t *)key, 5, 3, 1, CR_I16, false};
    cr_error error;
    answers a;
    double sums[3];
    ck_assert_int_eq(reduce(x, &keys, &a, &error), CR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "keys: number 2 is -7, not one of 0 to 2; drop leaves such elements out");
    keys.drop = true;
    ck_assert_int_eq(reduce(x, &keys, &a, &error), CR_OK);
    memcpy(sums, a.values[0], sizeof sums);
    ck_assert(sums[0] == 1 && sums[1] == 8 && sums[2] == 2);
    keys.drop = false;
    keys.groups = 0;
    ck_assert_int_eq(reduce(x, &keys, &a, &error), CR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(bounded) {
    const uint8_t key[] = {0};
    uint32_t wants;
    const cr_axis_spec spec = spec_of(CR_F64, &wants);
    cr_keys keys = {key, 1, (uint64_t)1 << 26, 1, CR_U8, false};
    cr_by_key *by_key;
    cr_error error;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(error.text, "1073741824 bytes, the limit"));
    keys.groups = UINT64_MAX;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_RESOURCE_EXHAUSTED);
    keys.groups = 4;
    keys.columns = UINT64_MAX;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_INVALID_ARGUMENT);
    keys.columns = (uint64_t)1 << 40;
    for (keys.groups = 0; keys.groups < 2; keys.groups++) {
        ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_RESOURCE_EXHAUSTED);
        ck_assert_msg(strncmp(error.text, "columns: the state of a group of 1099511627776 columns", 54) == 0, "%s",
                      error.text);
    }
    keys.columns = 1;
    keys.count = UINT64_MAX / 2;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_INVALID_ARGUMENT);
    keys.count = 1;
    keys.dtype = CR_F32;
    ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &by_key, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_keys_takes(CR_OP_DIGEST, CR_F32, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_keys_takes(CR_OP_PROD, CR_F32, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_keys_takes(CR_OP_PROD, CR_I32, &error), CR_OK);
}
END_TEST

/* Whatever comes, a state has no more than is measured; less makes it fail, and not have more. */
START_TEST(measured) {
    static uint64_t bits[ROWS];
    static uint32_t key[ROWS];
    const cr_keys keys = {(const uint8_t *)key, ROWS, GROUPS, 1, CR_U32, false};
    uint32_t wants;
    uint64_t first, most, number;
    cr_error error;
    for (cr_dtype dtype = CR_F32; dtype <= CR_F64; dtype++) {
        const cr_axis_spec spec = spec_of(dtype, &wants);
        ck_assert_int_eq(cr_by_key_measure(&spec, &keys, wants, &first, &most, &error), CR_OK);
        ck_assert_uint_lt(first, most);
        for (int turn = 0; turn < 40; turn++) {
            const uint64_t bound = turn % 2 == 0 ? most : first + (most - first) * (uint64_t)turn / 400;
            const cr_view view = cr_view_plain(bits);
            cr_by_key *a, *b;
            for (int i = 0; i < ROWS; i++) bits[i] = draw(); /* every exponent, infinities and NaNs */
            for (int i = 0; i < ROWS; i++) key[i] = (uint32_t)(draw() % GROUPS);
            ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &a, &error), CR_OK);
            ck_assert_int_eq(cr_by_key_new(&spec, &keys, wants, &b, &error), CR_OK);
            cr_by_key_bound(a, bound);
            cr_by_key_bound(b, bound);
            cr_status status = cr_by_key_fold(a, &view, ROWS / 2, 0, &number, &error);
            if (status == CR_OK) status = cr_by_key_fold(b, &view, ROWS / 2, ROWS / 2, &number, &error);
            if (status == CR_OK) status = cr_by_key_merge(a, b, &error);
            ck_assert_int_eq(status, bound == most ? CR_OK : CR_RESOURCE_EXHAUSTED);
            cr_by_key_free(a);
            cr_by_key_free(b);
        }
    }
}
END_TEST

/* The greatest key and one, of every type: nothing is rounded, and negative keys are none. */
START_TEST(groups) {
    for (cr_dtype dtype = CR_U8; dtype <= CR_I64; dtype++) {
        const size_t size = cr_dtype_size(dtype);
        const bool is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
        const uint64_t top = UINT64_MAX >> (64 - 8 * size + is_signed);
        uint8_t bytes[4 * sizeof(uint64_t) + 1];
        cr_keys keys = {.data = bytes + 1, .dtype = dtype};
        ck_assert_uint_eq(cr_keys_groups(&keys), 0);
        const uint64_t some[] = {is_signed ? UINT64_MAX : 3, 0, 5, top};
        for (size_t i = 0; i < 4; i++) memcpy(bytes + 1 + i * size, &some[i], size);
        const uint64_t wanted[] = {0, is_signed ? 0 : 4, is_signed ? 1 : 4, 6, dtype == CR_U64 ? top : top + 1};
        for (keys.count = 0; keys.count <= 4; keys.count++)
            ck_assert_uint_eq(cr_keys_groups(&keys), wanted[keys.count]);
    }
}
END_TEST

CR_CHECK_MAIN("kernels/keys") {
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, shuffled);
    tcase_add_test(tc, outside);
    tcase_add_test(tc, bounded);
    tcase_add_test(tc, measured);
    tcase_add_test(tc, groups);
}
