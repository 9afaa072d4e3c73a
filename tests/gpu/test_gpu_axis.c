/* test_gpu_axis: the GPU's answers along an axis against the CPU's, bit for bit, over kinds of data, shapes, alignments, types, ops
 * and NaN policies. Every case follows from its number and the seed.
 *
 * usage: test_gpu_axis [--seed S] [--lengths few|all] [--dtype NAME] [--case K] [--sample N]
 * The seed is CURED_TEST_SEED's, or 1. --sample N takes one array in N; by default all, and
 * one in four of the short run.
 * Exits 77 without a GPU. Thread: one. Owner: this file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/axis.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/plan/fold.h"
#include "tests/gpu/gpu_cases.h"

enum { MAX_BYTES = 40 << 20, SPARE = 64, WITHOUT_IN = 7 };

static struct {
    uint64_t seed, only, sample;
    bool few;
    const char *dtype;
} options = {.only = UINT64_MAX};

static struct {
    case_device on;
    uint64_t cases, wrong, answers, number;
    const char *without; /* a fast way that is off; NULL: none is */
} run;

typedef struct shape_case {
    cr_shape shape;
    bool few; /* also in the short run */
} shape_case;

/* Rows shorter and longer than units, teams, blocks; columns narrower and wider than tiles; few long ones, which are split. */
static const shape_case shapes[] = {
    {{1, 1, 1}, true},        {{5, 3, 1}, true},        {{300, 7, 1}, true},     {{1000, 1, 1}, false},
    {{33, 32, 1}, false},     {{40, 100, 1}, true},     {{9, 1000, 1}, false},   {{600, 257, 1}, false},
    {{3, 5003, 1}, true},     {{1, 70001, 1}, true},    {{1, 16, 3}, true},      {{1, 1, 1000}, false},
    {{7, 5, 4}, true},        {{50, 9, 6}, false},      {{2, 300, 12}, false},   {{1, 2011, 3}, true},
    {{1, 900, 37}, true},     {{1, 70, 300}, true},     {{3, 11, 513}, false},   {{1, 1200, 64}, false},
    {{1, 40000, 8}, false},   {{4, 1000, 100}, false},  {{2, 33, 1024}, false},  {{1, 1000003, 1}, false},
    {{1, 300001, 5}, false},  {{1, 4097, 260}, false},  {{130, 4000, 1}, false}, {{1, 13, 70000}, false},
    {{2000, 64, 3}, false},   {{6200, 8, 1}, true},     {{6200, 7, 1}, true},    {{3000, 512, 1}, false},
    {{9000, 1024, 1}, false}, {{700, 32, 1}, true},     {{200, 1024, 1}, true},  {{1, 0, 1}, false},
    {{200, 2056, 1}, true},   {{8500, 1096, 1}, false},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Kinds beyond the arrays': normal ones with rows that only a second launch folds, at places where strips go wrong if they do. */
enum {
    PLACE_FIRST = DATA_KINDS,
    PLACE_LAST,
    PLACE_MIDDLE,
    PLACE_PAIR,
    PLACE_OTHERS,
    PLACE_UPPER_HALF,
    EDGES,
    TIES,
    PATTERNS,
    PLACES_END
};
static const char *const places_names[] = {"first hard",       "last hard",       "middle hard", "two near hard",
                                           "every third hard", "upper half hard", "edges",       "ties",
                                           "patterns"};

static bool is_hard(int place, uint64_t row, uint64_t rows) {
    switch (place) {
        case PLACE_FIRST:
            return row == 0;
        case PLACE_LAST:
            return row == rows - 1;
        case PLACE_MIDDLE:
            return row == rows / 2;
        case PLACE_PAIR:
            return row == rows / 3 || row == rows / 3 + 64;
        case PLACE_OTHERS:
            return row % 3 == 1;
        default:
            return row >= rows / 2;
    }
}

/* Rows whose sums need all the bits that elements so far apart can take: full mantissas, alike but for one that is smaller by 0 to 63
 * binades. */
static void edges(uint8_t *at, cr_dtype dtype, const cr_shape *shape) {
    const uint64_t size = cr_dtype_size(dtype), width = shape->n * shape->inner;
    const int mantissa = (int)(8 * size) - 1 -
                         (dtype == CR_F8_E4M3                      ? 4
                          : dtype == CR_F8_E5M2 || dtype == CR_F16 ? 5
                          : dtype == CR_F64                        ? 11
                                                                   : 8);
    const int field = dtype == CR_F8_E4M3                      ? 14
                      : dtype == CR_F8_E5M2 || dtype == CR_F16 ? 25
                      : dtype == CR_F64                        ? 1040
                                                               : 140;
    for (uint64_t row = 0; row < shape->outer; row++) {
        for (uint64_t i = 0; i < width; i++) {
            const int down = i == row * 7 % width ? (int)(row % 64) : 0;
            const uint64_t bits = ((uint64_t)(down < field ? field - down : 0) + 1) << mantissa;
            const uint64_t full = bits - 1;
            memcpy(at + (row * width + i) * size, &full, size);
        }
    }
}

/* Sums of f64, and of f32's squares, that lie between two answers, or beside that by what only the last anchor holds. */
static void ties(uint8_t *at, cr_dtype dtype, const cr_shape *shape) {
    const uint64_t width = shape->n * shape->inner;
    for (uint64_t row = 0; row < shape->outer; row++) {
        const double beside = (double)(row % 3) - 1, half = ldexp(1, ilogb((double)(width > 4 ? width - 4 : 1)) - 53);
        const double wide[4] = {0x1p-20 + half, 0x1p-20 + beside * half / 128, -0x1p-20, -0x1p-20};
        const float narrow[4] = {1, 0x1p-27f, 0x1p-27f, (float)beside * 0x1p-40f};
        for (uint64_t i = 0; i < width; i++) {
            const double x = i < 4 ? wide[i] : 1;
            const float y = i < 4 ? narrow[i] : 0;
            memcpy(at + (row * width + i) * cr_dtype_size(dtype), dtype == CR_F64 ? (const void *)&x : &y,
                   cr_dtype_size(dtype));
        }
    }
}

/* Rows of 16-bit floats by which anchors hold the most that they may. */
static void patterns(uint8_t *at, cr_dtype dtype, const cr_shape *shape) {
    const uint64_t width = shape->n * shape->inner;
    for (uint64_t row = 0; row < shape->outer; row++)
        case_fill_pair(at + 2 * row * width, width, case_pair(dtype, row / 2 + run.number));
}

/* Puts a large and a tiny element into rows, at an end of them or across it. */
static void harden(uint8_t *at, cr_dtype dtype, const cr_shape *shape, int place) {
    const uint64_t size = cr_dtype_size(dtype), width = shape->n * shape->inner,
                   top = dtype == CR_F16 || dtype == CR_F8_E5M2 ? 0x7b : 0x7e;
    for (uint64_t row = 0; row < shape->outer; row++) {
        if (!is_hard(place, row, shape->outer)) continue;
        const uint64_t large = row % 2 ? width - 1 : 0, tiny = width - 1 - large;
        memset(at + (row * width + large) * size, 0x11, size);
        at[(row * width + large + 1) * size - 1] = (uint8_t)top;
        if (tiny == large) continue;
        memset(at + (row * width + tiny) * size, 0, size);
        at[(row * width + tiny) * size] = 3;
    }
}

/* Every op of dtype that the GPU answers; products of integers, which seldom fit, alone, and digests, to which no option or fast way
 * matters, one time in three. */
static void ask_all(cr_axis_spec *spec, bool product) {
    bool floats = cr_dtype_kind(spec->dtype) == CR_KIND_FLOAT;
    spec->op_count = spec->families = 0;
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        cr_op one = (cr_op)op;
        if (!floats && product != (one == CR_OP_PROD)) continue;
        if (one == CR_OP_DIGEST && run.cases % 3 != 0) continue;
        const cr_gpu_axis axis = {
            .dtype = spec->dtype, .shape = spec->shape, .ops = &one, .op_count = 1, .finish = spec->finish};
        cr_finish_opts own = cr_finish_share(one, spec->dtype, &spec->finish, NULL);
        if (cr_axis_check(one, spec->dtype, &spec->shape, &own, NULL) != CR_OK || !cr_cuda.axis_takes(&axis)) continue;
        spec->ops[spec->op_count++] = one;
        spec->families |= cr_op_needs(one, spec->dtype);
    }
}

/* Of floats, ops that kernels know by themselves: a sum alone, squares, and all that goes with a variance in one pass. */
static void ask_few(cr_axis_spec *spec, uint64_t which) {
    static const cr_op few[] = {CR_OP_SUM, CR_OP_SUMSQ, CR_OP_NORM2, CR_OP_MEAN, CR_OP_VAR, CR_OP_STD};
    static const uint32_t sets[][2] = {{0, 1}, {1, 3}, {1, 6}};
    spec->op_count = spec->families = 0;
    for (uint32_t k = sets[which][0]; k < sets[which][1]; k++) {
        spec->ops[spec->op_count++] = few[k];
        spec->families |= cr_op_needs(few[k], spec->dtype);
    }
}

static void differ(const cr_axis_spec *spec, uint32_t k, uint64_t output, int kind, uint64_t offset) {
    if (run.wrong++ >= 20) return;
    printf(
        "wrong: case %llu: %s of %s, %s data, shape (%llu, %llu, %llu), output %llu, offset %llu, nan %d, without "
        "%s\n",
        (unsigned long long)run.number, cr_op_name(spec->ops[k]), cr_dtype_name(spec->dtype),
        kind < DATA_KINDS ? data_names[kind] : places_names[kind - DATA_KINDS], (unsigned long long)spec->shape.outer,
        (unsigned long long)spec->shape.n, (unsigned long long)spec->shape.inner, (unsigned long long)output,
        (unsigned long long)offset, (int)spec->finish.nan, run.without ? run.without : "none");
}

/* Answers of every other case go to device memory of the test's, side by side, and are brought from there. */
static struct {
    void *device, *host;
    size_t bytes;
    void *to[CR_GPU_AXIS_OPS];
} placed;

static size_t answer_bytes(const cr_axis_spec *spec, uint32_t k) {
    const size_t size = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
    return (spec->shape.outer * spec->shape.inner * size + 15) / 16 * 16;
}

static void need_places(size_t bytes) {
    cr_error error;
    if (placed.bytes >= bytes) return;
    if (placed.bytes) cr_cuda.device_free(run.on.gpu, placed.device);
    if (placed.bytes) cr_cuda.host_free(run.on.gpu, placed.host);
    placed.bytes = bytes;
    case_check(cr_cuda.device_alloc(run.on.gpu, bytes, &placed.device, &error), &error);
    case_check(cr_cuda.host_alloc(run.on.gpu, bytes, &placed.host, &error), &error);
}

static void *const *places(const cr_axis_spec *spec) {
    size_t all = 16;
    for (uint32_t k = 0; k < spec->op_count; k++) all += answer_bytes(spec, k);
    need_places(all);
    uint8_t *at = placed.device;
    for (uint32_t k = 0; k < spec->op_count; at += answer_bytes(spec, k++)) placed.to[k] = at;
    return placed.to;
}

static void bring(const cr_axis_spec *spec, const void *got[]) {
    cr_error error;
    uint8_t *at = placed.host;
    for (uint32_t k = 0; k < spec->op_count; at += answer_bytes(spec, k++)) {
        const size_t bytes = answer_bytes(spec, k);
        if (bytes) case_check(cr_cuda.fetch(run.on.stream, at, placed.to[k], bytes, bytes, 1, &error), &error);
        got[k] = at;
    }
    for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
}

static void compare(cr_axis_spec *spec, uint64_t offset, int kind) {
    uint64_t count = spec->shape.outer * spec->shape.inner;
    void *want[CR_AXIS_MAX_OPS], *scratch = aligned_alloc(64, (cr_axis_scratch(spec) + 64) / 64 * 64);
    for (uint32_t k = 0; k < spec->op_count; k++) want[k] = malloc(count * CR_DIGEST_BYTES);
    cr_error cpu_error = {CR_OK, ""}, error = {CR_OK, ""};
    cr_status expected =
        cr_cpu_axis_blocks(spec, run.on.host + offset, 0, spec->shape.outer, scratch, want, &cpu_error);
    const cr_gpu_axis axis = {.dtype = spec->dtype,
                              .shape = spec->shape,
                              .data = run.on.device + offset,
                              .ops = spec->ops,
                              .op_count = spec->op_count,
                              .finish = spec->finish,
                              .to = run.cases % 2 ? places(spec) : NULL};
    case_check(cr_cuda.axis(run.on.stream, &axis, &error), &error);
    for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
    const void *got[CR_GPU_AXIS_OPS];
    uint64_t failed = 0;
    cr_status status = cr_cuda.axis_result(run.on.stream, got, &failed, &error);
    if (axis.to && status == CR_OK) bring(spec, got);
    run.cases++;
    if (status != expected) {
        printf("status %d: %s; the CPU: %d: %s\n", status, error.text, expected, cpu_error.text);
        differ(spec, 0, 0, kind, offset);
    }
    for (uint32_t k = 0; status == CR_OK && expected == CR_OK && k < spec->op_count; k++) {
        size_t size = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        run.answers += count;
        if (memcmp(want[k], got[k], count * size) == 0) continue;
        uint64_t at = 0;
        while (memcmp((uint8_t *)want[k] + at * size, (const uint8_t *)got[k] + at * size, size) == 0) at++;
        differ(spec, k, at, kind, offset);
    }
    for (uint32_t k = 0; k < spec->op_count; k++) free(want[k]);
    free(scratch);
}

/* Fast ways off by turns, each with its part of the arrays: with all ops, and with few, since many have no single pass. */
static void without_each(const cr_axis_spec *all, uint64_t offset, int kind) {
    unsigned way = CR_FAST_GPU_VECTORS;
    while ((run.without = case_without(&way, CR_FAST_GPU_ALONE)) != NULL) {
        cr_axis_spec spec = *all;
        if ((run.number + way) % WITHOUT_IN != 0) continue;
        compare(&spec, offset, kind);
        if (cr_dtype_kind(spec.dtype) != CR_KIND_FLOAT) continue;
        ask_few(&spec, 2);
        compare(&spec, offset, kind);
    }
}

/* 16-bit floats by float32: with strips, by loads that run ahead, and with neither. */
static void by_float32(const cr_axis_spec *all, uint64_t offset, int kind) {
    const uint64_t none = UINT64_C(1) << CR_FAST_GPU_FLOAT64, ahead = none | UINT64_C(1) << CR_FAST_GPU_STRIPS;
    const uint64_t ways[] = {none, ahead, ahead | UINT64_C(1) << CR_FAST_GPU_AHEAD};
    if (all->dtype != CR_F16 && all->dtype != CR_BF16) return;
    run.without = cr_fast_name(CR_FAST_GPU_FLOAT64);
    for (int i = 0; i < 3; i++) {
        cr_axis_spec spec = *all;
        cr_fast_switch_off(ways[i]);
        for (uint64_t which = 0; which < 2; which++) {
            ask_few(&spec, which);
            compare(&spec, offset, kind);
        }
        if ((run.number + (uint64_t)i) % 3 != 0) continue;
        spec = *all;
        compare(&spec, offset, kind);
    }
    cr_fast_switch_off(0);
    run.without = NULL;
}

static void array(cr_dtype dtype, const cr_shape *shape, int kind, uint64_t offset) {
    uint64_t n = shape->outer * shape->n * shape->inner, size = cr_dtype_size(dtype);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    cr_error error = {CR_OK, ""};
    case_fill(run.on.host + offset, n, dtype, kind < DATA_KINDS ? (enum cr_data_kind)kind : DATA_NORMAL,
              options.seed + n * 31 + offset);
    if (kind == EDGES)
        edges(run.on.host + offset, dtype, shape);
    else if (kind == TIES)
        ties(run.on.host + offset, dtype, shape);
    else if (kind == PATTERNS)
        patterns(run.on.host + offset, dtype, shape);
    else if (kind >= DATA_KINDS)
        harden(run.on.host + offset, dtype, shape, kind);
    case_check(cr_cuda.copy(run.on.stream, run.on.device, run.on.host, offset + n * size, &error), &error);
    cr_axis_spec spec = {.dtype = dtype, .shape = *shape};
    /* A narrow result where floats are, so that rounding to each is seen; wide ones for integers, and then the usual ones, where
     * sums may not fit. */
    static const cr_dtype narrow[] = {CR_DTYPE_NONE, CR_F32, CR_F16, CR_BF16};
    spec.finish = (cr_finish_opts){.nan = floats && run.number % 3 == 0 ? CR_NAN_SKIP : CR_NAN_PROPAGATE,
                                   .ddof = run.number % 4 == 3 ? 5 : run.number % 2,
                                   .result_dtype = floats           ? narrow[run.number % 4]
                                                   : run.number % 2 ? CR_I128
                                                                    : CR_F64};
    ask_all(&spec, false);
    compare(&spec, offset, kind);
    without_each(&spec, offset, kind);
    by_float32(&spec, offset, kind);
    for (uint64_t which = 0; floats && which < 3; which += 1 + run.number % 2) {
        if (which == 0) spec.finish.result_dtype = CR_DTYPE_NONE; /* there is a shorter way to it */
        ask_few(&spec, which);
        compare(&spec, offset, kind);
    }
    if (floats && options.few) return;
    spec.finish = (cr_finish_opts){.nan = floats && run.number % 3 != 0 ? CR_NAN_SKIP : CR_NAN_PROPAGATE};
    ask_all(&spec, false);
    compare(&spec, offset, kind);
    for (int wrap = 0; wrap < 2 && !floats; wrap++) {
        spec.finish.overflow = wrap ? CR_OVERFLOW_WRAP : CR_OVERFLOW_ERROR;
        spec.finish.result_dtype = run.number % 3 == 0 ? CR_I64 : run.number % 3 == 1 ? CR_U64 : CR_DTYPE_NONE;
        ask_all(&spec, true);
        compare(&spec, offset, kind);
    }
}

static void type(cr_dtype dtype) {
    uint64_t size = cr_dtype_size(dtype);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    for (int kind = 0; kind < PLACES_END; kind++) {
        if (kind >= DATA_KINDS && !floats) break;
        if (kind == TIES && dtype != CR_F32 && dtype != CR_F64) continue;
        if (kind == PATTERNS && dtype != CR_F16 && dtype != CR_BF16) continue;
        if (!floats && (kind == DATA_CANCEL || kind == DATA_SPECIALS || kind == DATA_SORTED ||
                        kind == DATA_DECADES_30 || kind == DATA_BINADES || kind == DATA_DENORMAL))
            continue;
        for (int i = 0; i < SHAPES; i++, run.number++) {
            const cr_shape *shape = &shapes[i].shape;
            uint64_t elements = shape->outer * shape->n * shape->inner;
            if (options.only != UINT64_MAX && run.number != options.only) continue;
            if (options.few && !shapes[i].few) continue;
            if (!case_sampled((uint64_t)(i + kind + (int)dtype), options.seed - 1, options.sample)) continue;
            if (shape->n == 0 || elements * size + SPARE > MAX_BYTES) continue;
            if (kind >= DATA_KINDS && shape->outer < 2) continue;
            array(dtype, shape, kind,
                  run.number % 3 == 0 && kind < DATA_KINDS ? run.number * 7 % 16 : run.number % 3 * 16);
        }
    }
}

static void parse(int argc, char **argv) {
    options.seed = case_seed();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) options.seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--lengths") == 0) options.few = strcmp(argv[i + 1], "few") == 0;
        if (strcmp(argv[i], "--dtype") == 0) options.dtype = argv[i + 1];
        if (strcmp(argv[i], "--case") == 0) options.only = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--sample") == 0) options.sample = strtoull(argv[i + 1], NULL, 0);
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    if (options.sample == 0) options.sample = options.few ? 4 : 1;
    run.on = case_device_open(1, MAX_BYTES);
    case_say_sample(options.seed, options.sample);
    for (int t = CR_BOOL; t <= CR_DTYPE_INPUTS; t++) {
        if (!cr_dtype_is_input((cr_dtype)t) || !cr_fold_takes((cr_dtype)t, CR_FAM_SUM)) continue;
        uint64_t before = run.cases, wrong = run.wrong, answers = run.answers;
        run.number = (uint64_t)t * 1000;
        if (options.dtype && strcmp(options.dtype, cr_dtype_name((cr_dtype)t)) != 0) continue;
        type((cr_dtype)t);
        printf("%-5s %6llu cases, %llu answers, %llu wrong\n", cr_dtype_name((cr_dtype)t),
               (unsigned long long)(run.cases - before), (unsigned long long)(run.answers - answers),
               (unsigned long long)(run.wrong - wrong));
    }
    if (placed.bytes) cr_cuda.device_free(run.on.gpu, placed.device);
    if (placed.bytes) cr_cuda.host_free(run.on.gpu, placed.host);
    case_device_close(&run.on);
    return run.wrong != 0;
}
