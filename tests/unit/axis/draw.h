/* draw: arrays and ops that the tests along an axis and by offsets draw at random. Included by one file of a test.
 *
 * Thread: main. Owner: the test. */
#ifndef CURED_TESTS_UNIT_AXIS_DRAW_H
#define CURED_TESTS_UNIT_AXIS_DRAW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/axis.h"

enum { OPS_AT_ONCE = 4 };

static uint64_t random_state = 1;

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}
static uint64_t below(uint64_t n) { return (next_random() >> 20) % n; }

static int mantissa_of(cr_dtype dtype) {
    return dtype == CR_F64 ? 52 : dtype == CR_F32 ? 23 : dtype == CR_BF16 ? 7 : 10;
}
static int exponent_of(cr_dtype dtype) { return dtype == CR_F64 ? 11 : dtype == CR_F16 ? 5 : 8; }

/* A finite value with an exponent about `spread` binades around one. */
static uint64_t around(cr_dtype dtype, int spread) {
    int m = mantissa_of(dtype), bias = (1 << (exponent_of(dtype) - 1)) - 1;
    int64_t field = bias + (int64_t)below(2 * (uint64_t)spread + 1) - spread;
    if (field < 0) field = 0;
    if (field > 2 * bias) field = 2 * bias;
    uint64_t sign = next_random() >> 63;
    return sign << (m + exponent_of(dtype)) | (uint64_t)field << m | (next_random() & (((uint64_t)1 << m) - 1));
}

static uint64_t special(cr_dtype dtype) {
    int m = mantissa_of(dtype), e = exponent_of(dtype);
    uint64_t top = (((uint64_t)1 << e) - 1) << m;
    switch (below(4)) {
        case 0:
            return top | 1 | (next_random() & (((uint64_t)1 << m) - 1)) | (next_random() >> 63) << (m + e);
        case 1:
            return top | (uint64_t)1 << (m - 1);
        case 2:
            return top;
        default:
            return top | (uint64_t)1 << (m + e);
    }
}

typedef enum distribution {
    NORMAL,
    SPREAD10,
    SPREAD30,
    WIDE,
    BITS,
    DENORMAL,
    CANCEL,
    TIES,
    LARGEST,
    MIX,
    ZEROS,
    ALL_NAN,
    OUTLIERS,
    ONE_ODD, /* a few in 4,000, so that most groups of lines have none */
    SCALED,  /* alike, anywhere in the range, and with outliers */
    DISTRIBUTIONS,
    INT_DISTRIBUTIONS = 5 /* of integers, in turn */
} distribution;

static uint64_t draw_float(cr_dtype dtype, distribution d, uint64_t i) {
    static uint64_t last, scale;
    int m = mantissa_of(dtype), e = exponent_of(dtype);
    uint64_t sign = (uint64_t)1 << (m + e), low = ((uint64_t)1 << m) - 1;
    switch (d) {
        case NORMAL:
            return around(dtype, (int)below(6));
        case SPREAD10:
            return around(dtype, 33);
        case SPREAD30:
            return around(dtype, 100);
        case WIDE:
            return around(dtype, 600);
        case DENORMAL:
            return (next_random() & (low | sign)) | below(3) << m;
        case CANCEL:
            if (i % 2 == 0) return last = around(dtype, 60);
            return last ^ sign;
        case TIES: { /* one, and halves of the last place of one in some type */
            static const int steps[] = {0, 0, 53, 24, 11, 8, 60};
            int step = steps[below(7)], bias = (1 << (e - 1)) - 1;
            return (step <= bias - 1 ? (uint64_t)(bias - step) << m : 1) | (step ? (next_random() >> 63) * sign : 0);
        }
        case LARGEST:
            return ((((uint64_t)1 << e) - 2 - below(3)) << m | (next_random() & low)) | (below(4) == 0 ? sign : 0);
        case MIX:
            return below(40) == 0 ? special(dtype) : around(dtype, 20);
        case ZEROS:
            return below(20) == 0 ? around(dtype, 3) : below(2) * sign;
        case ALL_NAN:
            return (((uint64_t)1 << e) - 1) << m | 1 | (next_random() & (low | sign));
        case OUTLIERS:
            return below(300) == 0 ? around(dtype, 1000) : around(dtype, 3);
        case ONE_ODD:
            if (below(4000) != 0) return around(dtype, 3);
            return below(4) == 0 ? special(dtype) : around(dtype, below(2) ? 60 : 1000);
        case SCALED: {
            const uint64_t fields = ((uint64_t)1 << e) - 1;
            if (i == 0) scale = below(fields);
            const uint64_t field = (scale + below(below(50) == 0 ? 60 : 6)) % fields;
            return (next_random() & (low | sign)) | field << m;
        }
        default:
            return next_random();
    }
}

static uint64_t draw(cr_dtype dtype, distribution d, uint64_t i) {
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) return draw_float(dtype, d, i);
    switch (d % INT_DISTRIBUTIONS) {
        case 0:
            return next_random();
        case 1:
            return below(3);
        case 2:
            return UINT64_MAX >> below(3);
        case 3:
            return (uint64_t)1 << (8 * cr_dtype_size(dtype) - 1);
        default:
            return 0 - below(7);
    }
}

static uint8_t *make(cr_dtype dtype, distribution d, uint64_t n, unsigned misalign, uint8_t **block) {
    size_t size = cr_dtype_size(dtype);
    /* The array ends where the allocation ends, for the sanitizers. */
    *block = malloc(n * size + misalign + 1);
    uint8_t *data = *block + misalign + 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = draw(dtype, d, i);
        memcpy(data + i * size, &bits, size);
    }
    return data;
}

/* Any op. */
static cr_op any_op(void) {
    cr_op all[CR_OP_IDS];
    size_t count = 0;
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
        if (cr_op_closing(op) != CR_CLOSING_ORDER && cr_op_inputs(op) == 1) /* those: tests/property */
            all[count++] = op;
    return all[below(count)];
}

static cr_dtype any_input(void) {
    cr_dtype dtype;
    do {
        dtype = (cr_dtype)(1 + below(CR_DTYPE_INPUTS));
    } while (!cr_dtype_is_input(dtype));
    return dtype;
}

/* Up to OPS_AT_ONCE ops that go together under random options. */
__attribute__((unused)) static void choose_ops(cr_axis_spec *spec) {
    static const cr_dtype results[] = {0, 0, 0, CR_F16, CR_BF16, CR_F32, CR_F64, CR_I128, CR_I64, CR_U64};
    do {
        spec->op_count = 0;
        spec->families = 0;
        spec->finish = (cr_finish_opts){.nan = (cr_nan_policy)below(2), .result_dtype = results[below(10)]};
        uint32_t most = 1 + (uint32_t)below(OPS_AT_ONCE);
        for (int tries = 0; tries < 40 && spec->op_count < most; tries++) {
            cr_op op = any_op();
            if (cr_axis_check(op, spec->dtype, &spec->shape, &spec->finish, NULL) != CR_OK) continue;
            spec->ops[spec->op_count++] = op;
            spec->families |= cr_op_needs(op, spec->dtype);
        }
    } while (spec->op_count == 0);
}

#endif
