/* test_gpu_offsets: the GPU's answers of segments by offsets against the CPU's, bit for bit, over kinds of data, lengths of segments,
 * alignments, types, ops and NaN policies; and offsets that are wrong. Every case follows from its number and the seed.
 *
 * usage: test_gpu_offsets [--seed S] [--lengths few|all] [--dtype NAME] [--case K] [--sample N]
 * As test_gpu_axis. Exits 77 without a GPU. Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/offsets.h"
#include "kernels/cuda/offsets/offsets.h"
#include "tests/gpu/gpu_cases.h"

enum { MAX_BYTES = 24 << 20, MOST_SEGMENTS = 1 << 20, SPARE = 64, ANSWER = 8 };

static struct {
    uint64_t seed, only, sample;
    bool few;
    const char *dtype;
} options = {.only = UINT64_MAX};

/* host and device: the array; the others are in memory of the device. */
static struct {
    case_device on;
    uint8_t *offsets, *scratch, *answers;
    unsigned long long *wrong;
    uint32_t multiprocessors;
    uint64_t scratch_bytes, cases, segments, failures, number, lacking;
    const char *without;
} run;

enum lengths {
    SAME,    /* all of one length */
    RANDOM,  /* from none to twice that */
    POWERS,  /* 2^0 … 2^14, in any order */
    HALF,    /* half in one segment, the rest of three elements each */
    ONE,     /* all in one */
    EMPTIES, /* many empty ones at few places */
    SPARSE,  /* most empty, some long */
    LENGTHS
};
static const char *const lengths_names[] = {"same", "random", "powers", "half in one", "one", "empties", "sparse"};

typedef struct shape_case {
    uint64_t n;
    enum lengths lengths;
    uint64_t each; /* elements of a segment, about */
    bool few;
} shape_case;
static const shape_case shapes[] = {
    {1, SAME, 1, true},           {0, EMPTIES, 40, true},      {1000, SAME, 1, true},        {5003, SAME, 3, true},
    {20000, SAME, 7, false},      {40000, SAME, 32, true},     {40000, SAME, 33, false},     {70001, SAME, 256, true},
    {90000, SAME, 1024, false},   {150000, SAME, 30000, true}, {50000, RANDOM, 5, true},     {50000, RANDOM, 40, true},
    {90000, RANDOM, 700, false},  {120000, POWERS, 1, true},   {60000, HALF, 3, true},       {30000, HALF, 3, false},
    {100000, ONE, 1, true},       {7, ONE, 1, true},           {30000, EMPTIES, 9000, true}, {50000, SPARSE, 900, true},
    {2000000, RANDOM, 20, false}, {1500000, POWERS, 1, false}, {3000000, HALF, 3, false},    {4000000, ONE, 1, false},
    {4000000, SAME, 1000, false},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static uint64_t borders[MOST_SEGMENTS + 1];

/* Fills borders for n elements; gives the number of segments. Some elements before the first and after the last are in none. */
static uint64_t make_borders(const shape_case *shape, uint64_t seed) {
    uint64_t state = seed, count = 0, at = shape->n > 100 && seed % 3 == 0 ? case_random(&state) % 50 : 0;
    const uint64_t end = shape->n > 100 && seed % 3 == 1 ? shape->n - case_random(&state) % 50 : shape->n;
    borders[0] = at;
    if (shape->lengths == ONE) at = end, borders[++count] = end;
    if (shape->lengths == EMPTIES && shape->n == 0)
        while (count < shape->each) borders[++count] = at;
    while (at < end && count + 1 < MOST_SEGMENTS) {
        const uint64_t r = case_random(&state);
        uint64_t length = shape->each;
        if (shape->lengths == RANDOM) length = r % (2 * shape->each + 1);
        if (shape->lengths == POWERS) length = (uint64_t)1 << r % 15;
        if (shape->lengths == HALF) length = (seed % 2 ? count == 0 : at + 3 > shape->n / 2) ? shape->n / 2 : 3;
        if (shape->lengths == SPARSE) length = r % 16 == 0 ? r >> 8 & 2047 : 0;
        if (shape->lengths == EMPTIES)
            for (uint64_t k = 0; k < r % 3000 && count + 2 < MOST_SEGMENTS; k++) borders[++count] = at;
        at = end - at < length ? end : at + length;
        borders[++count] = at;
    }
    return count;
}

/* The borders as the device has them; their bytes. */
static size_t put_offsets(uint64_t count, cr_dtype dtype) {
    const size_t size = cr_dtype_size(dtype);
    uint8_t *own = malloc((count + 1) * size);
    for (uint64_t i = 0; i <= count; i++) memcpy(own + i * size, &borders[i], size);
    cudaMemcpy(run.offsets, own, (count + 1) * size, cudaMemcpyHostToDevice);
    free(own);
    return size;
}

static void check(int failure, const char *what) {
    if (failure == 0) return;
    printf("failed: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    exit(1);
}

/* What the kernels tell: 0, 1: an offset is wrong, more: an answer lacks a value. */
static unsigned long long ask_gpu(const cr_axis_spec *spec, const uint8_t *data, uint64_t n, uint64_t count,
                                  cr_dtype offset_dtype) {
    void *out[CR_AXIS_MAX_OPS];
    unsigned long long wrong = 0;
    for (uint32_t k = 0; k < spec->op_count; k++) out[k] = run.answers + k * (size_t)MOST_SEGMENTS * ANSWER;
    const cr_gpu_segments asked = {{.dtype = spec->dtype,
                                    .shape = {1, n, 1},
                                    .data = data,
                                    .ops = spec->ops,
                                    .op_count = spec->op_count,
                                    .finish = spec->finish},
                                   {run.offsets, count, offset_dtype},
                                   {.kind = CR_MASK_NONE}};
    const uint64_t bytes = cr_segments_scratch(&asked, run.multiprocessors);
    void *scratch = run.scratch;
    if (bytes > run.scratch_bytes) {
        cudaFree(scratch);
        check((int)cudaMalloc(&scratch, bytes), "scratch");
        check((int)cudaMemset(scratch, 0, bytes), "scratch");
        run.scratch = scratch;
        run.scratch_bytes = bytes;
    }
    check((int)cudaMemset(run.wrong, 0, sizeof *run.wrong), "wrong");
    check(cr_segments_enqueue(&asked, run.multiprocessors, out, run.scratch, run.wrong, NULL), "enqueue");
    check((int)cudaMemcpy(&wrong, run.wrong, sizeof wrong, cudaMemcpyDeviceToHost), "kernels");
    return wrong;
}

static void differ(const cr_axis_spec *spec, const shape_case *shape, uint32_t k, uint64_t segment, int kind,
                   uint64_t offset) {
    if (run.failures++ >= 20) return;
    printf(
        "wrong: case %llu: %s of %s, %s data, %llu elements, lengths %s of %llu, segment %llu of %llu, offset %llu, "
        "nan "
        "%d, without %s\n",
        (unsigned long long)run.number, cr_op_name(spec->ops[k]), cr_dtype_name(spec->dtype),
        kind < DATA_KINDS ? data_names[kind] : "patterns", (unsigned long long)shape->n, lengths_names[shape->lengths],
        (unsigned long long)shape->each, (unsigned long long)segment,
        (unsigned long long)(borders[segment + 1] - borders[segment]), (unsigned long long)offset,
        (int)spec->finish.nan, run.without ? run.without : "none");
}

static void compare(const cr_axis_spec *given, const shape_case *shape, uint64_t count, int kind, uint64_t offset) {
    static const cr_dtype types[] = {CR_I32, CR_I64, CR_U32, CR_U64};
    cr_axis_spec spec = *given;
    void *want[CR_AXIS_MAX_OPS];
    cr_error error = {CR_OK, ""};
    spec.shape = (cr_shape){count, shape->n, 1};
    spec.offsets = (cr_offsets){(const uint8_t *)borders, count, CR_U64};
    void *scratch = aligned_alloc(64, (cr_offsets_scratch(&spec) + 64) / 64 * 64);
    const cr_view view = {.data = run.on.host + offset};
    for (uint32_t k = 0; k < spec.op_count; k++) want[k] = malloc(count * ANSWER + 1);
    const cr_status status = cr_cpu_offsets_view(&spec, &view, 0, shape->n, 0, count, scratch, want, &error);
    const bool lacks = status == CR_OUT_OF_RANGE || status == CR_INVALID_ARGUMENT; /* an answer its value */
    if (!lacks) case_check(status, &error);
    const cr_dtype type = types[run.cases % 4];
    put_offsets(count, type);
    const unsigned long long told = ask_gpu(&spec, run.on.device + offset, shape->n, count, type);
    if (lacks != (told >> 32 != 0) || told == 1) {
        printf("right offsets are called wrong, or what lacks a value is not told: %llx, the CPU: %s\n", told,
               lacks ? error.text : "nothing");
        differ(&spec, shape, 0, 0, kind, offset);
    }
    run.cases++;
    run.lacking += lacks;
    uint8_t *got = malloc(count * ANSWER + 1);
    for (uint32_t k = 0; k < spec.op_count && !lacks; k++) {
        const size_t size = cr_dtype_size(cr_axis_dtype(spec.ops[k], spec.dtype, &spec.finish));
        cudaMemcpy(got, run.answers + k * (size_t)MOST_SEGMENTS * ANSWER, count * size, cudaMemcpyDeviceToHost);
        run.segments += count;
        for (uint64_t i = 0; i < count; i++) {
            if (memcmp((uint8_t *)want[k] + i * size, got + i * size, size) == 0) continue;
            differ(&spec, shape, k, i, kind, offset);
            break;
        }
    }
    for (uint32_t k = 0; k < spec.op_count; k++) free(want[k]);
    free(got);
    free(scratch);
}

/* The ops of a case, by the types that have them. */
enum of { NARROW = 1, FLOATS = 2, INTEGERS = 4, ALL = NARROW | FLOATS | INTEGERS }; /* NARROW: floats of one byte */
static const struct {
    int of;
    cr_op ops[8];
} sets[] = {
    {FLOATS | INTEGERS, {CR_OP_SUM}},
    {FLOATS | INTEGERS, {CR_OP_SUMSQ, CR_OP_NORM2}},
    {FLOATS | INTEGERS, {CR_OP_VAR}},
    {FLOATS | INTEGERS, {CR_OP_NORM1}},
    {FLOATS | INTEGERS, {CR_OP_SUM, CR_OP_MEAN, CR_OP_SUMSQ, CR_OP_NORM1, CR_OP_NORM2, CR_OP_VAR, CR_OP_STD}},
    {FLOATS | INTEGERS, {CR_OP_MEAN}},
    {ALL, {CR_OP_MAX}},
    {ALL, {CR_OP_MIN, CR_OP_MAX, CR_OP_ARGMIN, CR_OP_ARGMAX, CR_OP_PTP, CR_OP_NORMINF}},
    {ALL, {CR_OP_NORMINF, CR_OP_COUNT}},
    {ALL, {CR_OP_COUNT_NONZERO, CR_OP_ANY, CR_OP_ALL, CR_OP_COUNT_NAN, CR_OP_COUNT_INF}},
    {INTEGERS, {CR_OP_BIT_AND, CR_OP_BIT_OR, CR_OP_BIT_XOR}},
    {FLOATS | INTEGERS, {CR_OP_COUNT_NONZERO, CR_OP_NORM1, CR_OP_ARGMAX, CR_OP_VAR}},
};
enum { SETS = sizeof sets / sizeof sets[0] };

static bool has_set(cr_dtype dtype, unsigned which) {
    const bool narrow = dtype == CR_F8_E4M3 || dtype == CR_F8_E5M2;
    return (sets[which].of & (cr_dtype_kind(dtype) != CR_KIND_FLOAT ? INTEGERS : narrow ? NARROW : FLOATS)) != 0;
}

static void ask_ops(cr_axis_spec *spec, unsigned which) {
    spec->op_count = spec->families = 0;
    for (unsigned k = 0; k < 8 && sets[which].ops[k] != CR_OP_NONE; k++) {
        spec->ops[spec->op_count++] = sets[which].ops[k];
        spec->families |= cr_op_needs(sets[which].ops[k], spec->dtype);
    }
}

/* Ways off. */
static void compare_without(const cr_axis_spec *spec, const shape_case *shape, uint64_t count, int kind,
                            uint64_t offset, cr_fast way) {
    cr_fast_switch_off(UINT64_C(1) << way);
    run.without = cr_fast_name(way);
    compare(spec, shape, count, kind, offset);
    cr_fast_switch_off(0);
    run.without = NULL;
}

static void to_device(uint64_t bytes) {
    cr_error error = {CR_OK, ""};
    case_check(cr_cuda.copy(run.on.stream, run.on.device, run.on.host, bytes, &error), &error);
    for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
}

/* kind: of data; of 16-bit floats from DATA_KINDS on, pairs of patterns. */
static void array(cr_dtype dtype, const shape_case *shape, int kind, uint64_t offset) {
    static const cr_dtype results[] = {CR_DTYPE_NONE, CR_F32, CR_F16, CR_BF16};
    const uint64_t size = cr_dtype_size(dtype);
    const bool halves = dtype == CR_F16 || dtype == CR_BF16, is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    if (kind < DATA_KINDS)
        case_fill(run.on.host + offset, shape->n, dtype, (enum cr_data_kind)kind,
                  options.seed + shape->n * 31 + offset);
    else
        case_fill_pair(run.on.host + offset, shape->n, case_pair(dtype, (uint64_t)kind - DATA_KINDS));
    to_device(offset + shape->n * size);
    const uint64_t count = make_borders(shape, options.seed + run.number);
    for (unsigned which = 0; which < SETS; which++) {
        if (!has_set(dtype, which)) continue;
        if (options.few && (which + run.number) % 3 != 0 && which != 0) continue;
        cr_axis_spec spec = {.dtype = dtype};
        spec.finish = (cr_finish_opts){.nan = (run.number + which) % 3 == 0 ? CR_NAN_SKIP : CR_NAN_PROPAGATE,
                                       .ddof = which == 2 || which == 4 ? run.number % 4 == 3 ? 5 : run.number % 2 : 0};
        if (is_float && which < 6) spec.finish.result_dtype = results[which == 0 ? 0 : (run.number + which) % 4];
        ask_ops(&spec, which);
        compare(&spec, shape, count, kind, offset);
        if (dtype == CR_F64 && (which + run.number) % 4 == 0)
            compare_without(&spec, shape, count, kind, offset, CR_FAST_GPU_TEAMS);
        if (!is_float || which >= 6) continue;
        if (halves) compare_without(&spec, shape, count, kind, offset, CR_FAST_GPU_FLOAT64);
        if ((run.number + which) % 5 != 0 || shape->n > 70000) continue;
        compare_without(&spec, shape, count, kind, offset, CR_FAST_GPU_PIECES);
    }
}

static void type(cr_dtype dtype) {
    const uint64_t size = cr_dtype_size(dtype);
    const int kinds = DATA_KINDS + (dtype == CR_F16 || dtype == CR_BF16 ? CASE_PAIRS : 0);
    for (int kind = 0; kind < kinds; kind++) {
        for (int i = 0; i < SHAPES; i++, run.number++) {
            if (options.only != UINT64_MAX && run.number != options.only) continue;
            if (options.few && !shapes[i].few) continue;
            if (!case_sampled((uint64_t)(i + kind + (int)dtype), options.seed - 1, options.sample)) continue;
            if (shapes[i].n * size + SPARE > MAX_BYTES) continue;
            array(dtype, &shapes[i], kind, run.number % 4 == 0 ? run.number * 7 % 16 : run.number % 4 == 1 ? size : 0);
        }
    }
}

/* Many pieces without an end in one chunk (where there are few states), of which each adds as much as a window takes: a window is placed
 * by the first elements, and what follows reaches its top, or all of it is left to the next level. */
static void long_runs(cr_dtype dtype) {
    static const uint64_t quarter[] = {0x3400, 0x3e80, 0x3e800000, 0x3fd0000000000000};
    static const uint64_t rest[][4] = {
        {0x3fff, 0x3fff, 0x3fffffff, 0x3fffffffffffffff},
        {0x0001, 0x2980, 0x29000000, 0x3d10000000000000}}; /* 2^-24; half a unit: 2^-44, 2^-45, 2^-46 */
    const uint64_t size = cr_dtype_size(dtype), each = 310 * 4096 / size, count = 7;
    const shape_case shape = {1025 + (count - 1) * each, SAME, each, true};
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t i = 0; i < shape.n; i++)
            memcpy(run.on.host + i * size, i < 1024 ? &quarter[dtype - CR_F16] : &rest[kind][dtype - CR_F16], size);
        to_device(shape.n * size);
        for (uint64_t i = 0; i <= count; i++) borders[i] = i == 0 ? 0 : 1025 + (i - 1) * each;
        for (unsigned which = 0; which < 3; which++) {
            cr_axis_spec spec = {.dtype = dtype};
            ask_ops(&spec, which);
            if (dtype != CR_F64 || which == 0) compare(&spec, &shape, count, DATA_KINDS, 0);
        }
    }
}

/* What is wrong is told, does no harm, and leaves nothing behind: right ones are answered rightly afterwards. */
static void wrong_offsets(cr_dtype dtype) {
    static const shape_case shape = {50000, RANDOM, 40, true};
    cr_axis_spec spec = {.dtype = dtype};
    case_fill(run.on.host, shape.n, dtype, DATA_NORMAL, options.seed);
    to_device(shape.n * cr_dtype_size(dtype));
    uint64_t state = options.seed;
    for (unsigned k = 0; k < (options.few ? 40 : 400); k++) {
        const uint64_t count = make_borders(&shape, options.seed + k), at = case_random(&state) % (count + 1),
                       r = case_random(&state);
        const uint64_t was = borders[at], near = at != 0 ? borders[at - 1] : 0;
        const uint64_t bad[] = {shape.n + 1 + r % 1000, (uint64_t)0 - 1 - r % 9, near - 1 - r % (near + 1),
                                UINT64_MAX / 2};
        const unsigned which = at == 0 || near == 0 ? k % 2 : k % 4;
        const cr_dtype type = k / 4 % 2 && which != 3 ? CR_I32 : CR_I64;
        ask_ops(&spec, k % SETS);
        if (!has_set(dtype, k % SETS)) continue;
        borders[at] = bad[which];
        put_offsets(count, type);
        if (ask_gpu(&spec, run.on.device, shape.n, count, type) != 1) {
            printf("wrong: offsets[%llu] is %lld, and the GPU does not say so\n", (unsigned long long)at,
                   (long long)borders[at]);
            run.failures++;
        }
        borders[at] = was;
        compare(&spec, &shape, count, 0, 0);
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
    if (options.sample == 0) options.sample = options.few ? 4 : 1;
}

int main(int argc, char **argv) {
    void *memory[3];
    parse(argc, argv);
    run.on = case_device_open(1, MAX_BYTES);
    case_say_sample(options.seed, options.sample);
    run.multiprocessors = cr_cuda.info(run.on.gpu)->multiprocessors;
    check((int)cudaMalloc(&memory[0], sizeof borders), "memory");
    check((int)cudaMalloc(&memory[1], (size_t)MOST_SEGMENTS * ANSWER * 8), "memory");
    check((int)cudaMalloc(&memory[2], sizeof *run.wrong), "memory");
    run.offsets = memory[0];
    run.answers = memory[1];
    run.wrong = memory[2];
    for (cr_dtype dtype = CR_BOOL; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input(dtype)) continue; /* ids have a gap */
        const uint64_t cases = run.cases, segments = run.segments, failures = run.failures;
        run.number = (uint64_t)dtype * 1000;
        if (options.dtype && strcmp(options.dtype, cr_dtype_name(dtype)) != 0) continue;
        type(dtype);
        if (options.only == UINT64_MAX && has_set(dtype, 0) && dtype >= CR_F16) long_runs(dtype);
        printf("%-5s %6llu cases, %llu answers, %llu wrong\n", cr_dtype_name(dtype),
               (unsigned long long)(run.cases - cases), (unsigned long long)(run.segments - segments),
               (unsigned long long)(run.failures - failures));
    }
    if (options.only == UINT64_MAX) wrong_offsets(CR_F32);
    if (options.only == UINT64_MAX) wrong_offsets(CR_F64); /* some by the slow kernel alone */
    if (options.only == UINT64_MAX) wrong_offsets(CR_I16);
    printf("%llu cases, of which %llu lack values, %llu answers, %llu wrong in all\n", (unsigned long long)run.cases,
           (unsigned long long)run.lacking, (unsigned long long)run.segments, (unsigned long long)run.failures);
    for (int i = 0; i < 3; i++) cudaFree(memory[i]);
    cudaFree(run.scratch);
    case_device_close(&run.on);
    return run.failures != 0;
}
