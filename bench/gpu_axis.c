/* cured-bench gpu-axis: reductions along an axis on a GPU, of arrays in its memory, cold, as shares of the sum of the whole array
 * and of a loop that only reads it, all in turn in the same run. Every answer is compared, bit by bit, with the CPU's.
 *
 * Thread: main. Owner: this file owns the bench. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels.h"
#include "bench/kernels_peer.h"
#include "bench/options.h"
#include "bench/rows.h"
#include "kernels/cpu/axis.h"
#include "kernels/cuda/axis/axis.h"

enum { READ_VARIANT = 2 };

/* n lines of `inner` columns; inner 0: as many columns as n lines of the array have. */
typedef struct row {
    const char *name;
    cr_dtype dtype;
    bool bits;
    cr_op op;
    uint64_t n, inner;
} row;

static const row rows[] = {
    {"rows of 1024", CR_F32, false, CR_OP_SUM, 1024, 1},    {"1024 tall", CR_F32, false, CR_OP_SUM, 1024, 0},
    {"1024 wide, tall", CR_F32, false, CR_OP_SUM, 0, 1024}, {"rows of 64 Ki", CR_F32, false, CR_OP_SUM, 65536, 1},
    {"rows of 4 Mi", CR_F32, false, CR_OP_SUM, 4 << 20, 1}, {"rows of 256", CR_F32, false, CR_OP_SUM, 256, 1},
    {"rows of 100", CR_F32, false, CR_OP_SUM, 100, 1},      {"rows of 32", CR_F32, false, CR_OP_SUM, 32, 1},
    {"rows of 8", CR_F32, false, CR_OP_SUM, 8, 1},          {"inner 3, n 4096", CR_F32, false, CR_OP_SUM, 4096, 3},
    {"3 wide, tall", CR_F32, false, CR_OP_SUM, 0, 3},       {"inner 37, n 1000", CR_F32, false, CR_OP_SUM, 1000, 37},
    {"rows of 1024", CR_F32, false, CR_OP_MEAN, 1024, 1},   {"rows of 1024", CR_F32, false, CR_OP_ARGMAX, 1024, 1},
    {"1024 tall", CR_F32, false, CR_OP_ARGMAX, 1024, 0},    {"1024 wide, tall", CR_F32, false, CR_OP_ARGMAX, 0, 1024},
    {"rows of 1024", CR_F32, false, CR_OP_SUMSQ, 1024, 1},  {"rows of 1024", CR_F32, true, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_F32, true, CR_OP_SUM, 1024, 0},        {"1024 wide, tall", CR_F32, true, CR_OP_SUM, 0, 1024},
    {"rows of 32", CR_F32, true, CR_OP_SUM, 32, 1},         {"rows of 1024", CR_F64, false, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_F64, false, CR_OP_SUM, 1024, 0},       {"1024 wide, tall", CR_F64, false, CR_OP_SUM, 0, 1024},
    {"rows of 32", CR_F64, false, CR_OP_SUM, 32, 1},        {"rows of 1024", CR_F64, true, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_F64, true, CR_OP_SUM, 1024, 0},        {"rows of 1024", CR_F16, false, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_F16, false, CR_OP_SUM, 1024, 0},       {"rows of 1024", CR_BF16, false, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_BF16, false, CR_OP_SUM, 1024, 0},      {"rows of 1024", CR_I32, true, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_I32, true, CR_OP_SUM, 1024, 0},        {"rows of 1024", CR_I64, true, CR_OP_MEAN, 1024, 1},
    {"1024 tall", CR_I64, true, CR_OP_MEAN, 1024, 0},       {"rows of 1024", CR_U8, true, CR_OP_SUM, 1024, 1},
    {"1024 tall", CR_U8, true, CR_OP_SUM, 1024, 0},         {"rows of 1024", CR_U8, true, CR_OP_MAX, 1024, 1},
    {"1024 tall", CR_U8, true, CR_OP_MAX, 1024, 0},         {"rows of 1024", CR_F32, false, CR_OP_VAR, 1024, 1},
    {"1024 tall", CR_F32, false, CR_OP_VAR, 1024, 0},       {"rows of 1024", CR_F32, true, CR_OP_VAR, 1024, 1},
    {"rows of 1024", CR_F32, false, CR_OP_NORM2, 1024, 1},  {"rows of 1024", CR_F64, false, CR_OP_VAR, 1024, 1},
    {"rows of 1024", CR_F16, false, CR_OP_VAR, 1024, 1},    {"rows of 1024", CR_I32, true, CR_OP_VAR, 1024, 1},
    {"rows of 1024", CR_BF16, true, CR_OP_SUM, 1024, 1},    {"rows of 4096", CR_F32, false, CR_OP_SUM, 4096, 1},
    {"rows of 4096", CR_F64, false, CR_OP_SUM, 4096, 1},    {"rows of 1000", CR_F32, false, CR_OP_SUM, 1000, 1},
    {"rows of 999", CR_F32, false, CR_OP_SUM, 999, 1},      {"inner 64, n 1024", CR_F32, false, CR_OP_SUM, 1024, 64},
    {"rows of 4 Mi", CR_F32, false, CR_OP_VAR, 4 << 20, 1}, {"rows of 64 Ki", CR_F32, false, CR_OP_VAR, 65536, 1},
    {"rows of 1024", CR_F32, false, CR_OP_NORM1, 1024, 1},  {"rows of 999", CR_F32, false, CR_OP_VAR, 999, 1},
    {"rows of 1024", CR_F16, false, CR_OP_SUMSQ, 1024, 1},  {"1024 tall", CR_F16, false, CR_OP_SUMSQ, 1024, 0},
    {"rows of 1024", CR_BF16, false, CR_OP_SUMSQ, 1024, 1}, {"1024 tall", CR_BF16, false, CR_OP_SUMSQ, 1024, 0},
    {"rows of 32", CR_BF16, false, CR_OP_SUM, 32, 1},       {"rows of 8192", CR_BF16, false, CR_OP_SUM, 8192, 1},
    {"1024 tall", CR_F64, false, CR_OP_VAR, 1024, 0},       {"1024 wide, tall", CR_F64, false, CR_OP_VAR, 0, 1024},
    {"rows of 1024", CR_F64, true, CR_OP_VAR, 1024, 1},     {"rows of 1024", CR_F64, false, CR_OP_NORM2, 1024, 1},
    {"rows of 32", CR_F64, false, CR_OP_VAR, 32, 1},        {"rows of 999", CR_F64, false, CR_OP_VAR, 999, 1},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct settings {
    uint64_t bytes;
    int rounds, first, count;
    bench_table table;
} settings;

static bench_gpu gpu;
static struct {
    uint8_t *scratch, *host, *got, *want, *out; /* out: on the device */
    uint64_t out_bytes;
    cr_axis_failure *failure;
    cr_dtype dtype;
    bool bits, filled;
} own;

static int told(int failure, const char *what) {
    if (failure != 0)
        fprintf(stderr, "cured-bench: gpu-axis: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    return failure;
}

static cr_shape shape_of(const row *r, uint64_t elements) {
    cr_shape s = {.outer = 1, .n = r->n, .inner = r->inner};
    if (s.inner == 0) s.inner = elements / s.n;
    if (s.n == 0) s.n = elements / s.inner;
    s.outer = elements / (s.n * s.inner);
    return s;
}

static int enqueue(const row *r, const cr_shape *shape, const uint8_t *data) {
    const cr_gpu_axis axis = {.dtype = r->dtype, .shape = *shape, .data = data, .ops = &r->op, .op_count = 1};
    void *out[1] = {own.out};
    return cr_axis_enqueue(&axis, gpu.multiprocessors, out, own.scratch, own.failure, gpu.stream);
}

/* Seconds of one array. */
static double time_axis(const row *r, const cr_shape *shape, uint64_t bytes) {
    float milliseconds = 0;
    uint32_t buffers = (uint32_t)(gpu.arena_bytes / bytes);
    int f = bench_read(READ_VARIANT, gpu.flush, gpu.flush_bytes, gpu.out, gpu.multiprocessors, gpu.stream);
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu.begin, (cudaStream_t)gpu.stream);
    for (uint32_t b = 0; b < buffers && f == 0; b++) f = enqueue(r, shape, gpu.arena + b * bytes);
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu.end, (cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaStreamSynchronize((cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaEventElapsedTime(&milliseconds, (cudaEvent_t)gpu.begin, (cudaEvent_t)gpu.end);
    return told(f, r->name) ? -1 : (double)milliseconds / 1e3 / buffers;
}

/* The first buffer's answers: 0 right, 1 wrong, -1 the device failed. */
static int judge(const row *r, const cr_shape *shape) {
    uint64_t count = shape->outer * shape->inner;
    cr_axis_spec spec = {.dtype = r->dtype, .shape = *shape, .op_count = 1, .ops = {r->op}};
    spec.families = cr_op_needs(r->op, r->dtype);
    size_t bytes = count * cr_dtype_size(cr_axis_dtype(r->op, r->dtype, &spec.finish));
    int f = (int)cudaMemset(own.failure, 0, sizeof *own.failure);
    if (f == 0) f = enqueue(r, shape, gpu.arena);
    if (f == 0) f = (int)cudaStreamSynchronize((cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaMemcpy(own.got, own.out, bytes, cudaMemcpyDeviceToHost);
    if (told(f, r->name)) return -1;
    void *scratch = aligned_alloc(64, (cr_axis_scratch(&spec) + 64) / 64 * 64), *want[1] = {own.want};
    cr_error error = {CR_OK, ""};
    cr_status status = cr_cpu_axis_blocks(&spec, own.host, 0, shape->outer, scratch, want, &error);
    free(scratch);
    if (status != CR_OK) fprintf(stderr, "cured-bench: gpu-axis: %s\n", error.text);
    return status != CR_OK || memcmp(own.got, own.want, bytes) != 0;
}

/* The first buffer whole, because later rows of the same data may take more of it. */
static int fill(const row *r, uint64_t bytes) {
    if (own.filled && own.dtype == r->dtype && own.bits == r->bits) return 0;
    if (bench_gpu_fill(&gpu, r->dtype, r->bits)) return -1;
    own.dtype = r->dtype;
    own.bits = r->bits;
    own.filled = true;
    return told((int)cudaMemcpy(own.host, gpu.arena, bytes, cudaMemcpyDeviceToHost), "copy");
}

/* A row while it races: the reduction, the sum of the whole array, and a loop that reads it. */
typedef struct running {
    const row *row;
    cr_shape shape;
    bench_array array;
    bench_candidate peers[2];
} running;

static double measure(void *context, int which) {
    running *r = context;
    return which == 0 ? time_axis(r->row, &r->shape, r->array.n * cr_dtype_size(r->array.dtype))
                      : bench_time(&gpu, &r->array, &r->peers[which - 1]);
}

static int run_row(settings *s, const row *r) {
    static const bench_ops sum = {"sum", {CR_OP_SUM}};
    const uint64_t size = cr_dtype_size(r->dtype);
    running now = {.row = r,
                   .shape = shape_of(r, s->bytes / size),
                   .peers = {{.group = GROUP_FOLD, .name = "sum"}, {.group = GROUP_READ, .variant = READ_VARIANT}}};
    const uint64_t bytes = now.shape.outer * now.shape.n * now.shape.inner * size;
    now.array = (bench_array){r->dtype, &sum, bytes / 16 * 16, bytes / size, (uint32_t)(gpu.arena_bytes / bytes)};
    if (fill(r, s->bytes)) return -1;
    const int wrong = judge(r, &now.shape);
    bench_race race = {.count = 3, .rounds = s->rounds, .warm = 1, .measure = measure, .context = &now};
    const bool good = wrong >= 0 && !bench_prepare(&gpu, &now.array, &now.peers[0]) &&
                      !bench_prepare(&gpu, &now.array, &now.peers[1]) && bench_race_run(&race);
    double speed[3];
    for (int k = 0; k < 3 && good; k++) speed[k] = (double)bytes / bench_race_of(&race, k).median / 1e9;
    bench_race_end(&race);
    for (int k = 0; k < 2; k++) bench_release(&now.peers[k]);
    if (!good) return -1;
    bench_table_row(
        &s->table,
        BENCH_CELLS(CELL_TEXT("name", "row", -18, r->name), CELL_TEXT("dtype", "type", -5, cr_dtype_name(r->dtype)),
                    CELL_TEXT("data", "data", -6, r->bits ? "bits" : "normal"),
                    CELL_TEXT("op", "op", -6, cr_op_name(r->op)), CELL_NOTE("outer", now.shape.outer),
                    CELL_NOTE("n", now.shape.n), CELL_NOTE("inner", now.shape.inner),
                    CELL_FIGURE("gb_per_s", "GB/s", 8, 1, speed[0]),
                    CELL_FIGURE("whole_sum_gb_per_s", "whole sum", 9, 1, speed[1]),
                    CELL_FIGURE("read_gb_per_s", "reading", 8, 1, speed[2]),
                    CELL_FIGURE("of_whole_sum", "of the sum", 10, 3, speed[0] / speed[1]),
                    CELL_FIGURE("of_read", "of reading", 10, 3, speed[0] / speed[2]), CELL_TRUTH("right", !wrong),
                    CELL_TEXT(NULL, "answer", 0, wrong ? "WRONG" : "exact")));
    return wrong;
}

/* Room for the largest of all rows. */
static int reserve(const settings *s) {
    uint64_t scratch = 0, out = 0;
    for (int i = 0; i < ROWS; i++) {
        cr_shape shape = shape_of(&rows[i], s->bytes / cr_dtype_size(rows[i].dtype));
        cr_axis_launch at;
        cr_axis_launch_make(&at, 0, &shape, rows[i].dtype, rows[i].op == CR_OP_VAR, gpu.multiprocessors);
        if (at.scratch_bytes > scratch) scratch = at.scratch_bytes;
        if (shape.outer * shape.inner * 8 > out) out = shape.outer * shape.inner * 8;
    }
    own.host = malloc(s->bytes);
    own.got = malloc(out);
    own.want = malloc(out);
    if (!own.host || !own.got || !own.want) return told(cudaErrorMemoryAllocation, "memory");
    int f = (int)cudaMalloc((void **)&own.scratch, scratch);
    if (f == 0) f = (int)cudaMemset(own.scratch, 0, scratch);
    if (f == 0) f = (int)cudaMalloc((void **)&own.out, out);
    if (f == 0) f = (int)cudaMalloc((void **)&own.failure, sizeof *own.failure);
    return told(f, "memory");
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv, settings *s) {
    *s = (settings){.bytes = 1u << 30, .rounds = 9, .count = ROWS};
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &s->bytes, "BYTES", .what = "of the array (1G)", .least = 64u << 20, .most = 0x1p40,
         .step = 4096},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "turns of every candidate (9)", .least = 5,
         .most = BENCH_MAX_ROUNDS},
        {"first", BENCH_NUMBER, &s->first, "ROW", .what = "the first row of the table to measure (0)", .least = 0,
         .most = ROWS - 1},
        {"count", BENCH_NUMBER, &s->count, "N", .what = "how many rows of the table (all)", .least = 1, .most = ROWS},
        BENCH_WITHOUT("gpu_ahead"),
        BENCH_JSON(&s->table.path),
    };
    return bench_options(options, sizeof options / sizeof options[0],
                         "Exit status: 0; 1 an answer was wrong; 69 no CUDA device.", argc, argv);
}

int bench_gpu_axis(int argc, char **argv) {
    settings s;
    int code = parse(argc, argv, &s), devices = 0, wrong = 0;
    if (code >= 0) return code;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "cured-bench: gpu-axis: no CUDA device\n");
        return 69;
    }
    if (bench_gpu_open(&gpu, s.bytes) != 0 || reserve(&s) != 0) return 69;
    code = bench_table_open(&s.table, argc, argv, gpu.name,
                            BENCH_CELLS(CELL_TEXT("gpu", NULL, 0, gpu.name), CELL_NOTE("rounds", s.rounds)));
    if (code != 0) return code;
    for (int i = s.first; i < ROWS && i - s.first < s.count && wrong >= 0; i++) {
        const int more = run_row(&s, &rows[i]);
        wrong = more < 0 ? -1 : wrong + more;
    }
    bench_table_close(&s.table, BENCH_CELLS(CELL_NOTE("wrong", wrong)));
    cudaFree(own.scratch);
    cudaFree(own.out);
    cudaFree(own.failure);
    free(own.host);
    free(own.got);
    free(own.want);
    bench_gpu_close(&gpu);
    if (wrong > 0) fprintf(stderr, "cured-bench: %d rows are wrong\n", wrong);
    return wrong != 0;
}
