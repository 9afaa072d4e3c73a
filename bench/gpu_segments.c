/* cured-bench gpu-segments: segments by offsets of an array in a GPU's memory, cold, as shares of the sum of the whole array, of a
 * loop that reads what is read and written, and beside CUB's segmented sum (f32, added in f32), all in turn in the same run. Every answer is
 * compared, bit by bit, with the CPU's; CUB's are looked at within the error that sums of f32 may have.
 *
 * Thread: main. Owner: this file owns the bench. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels.h"
#include "bench/kernels_peer.h"
#include "bench/options.h"
#include "bench/rows.h"
#include "kernels/cpu/offsets.h"
#include "kernels/cuda/offsets/offsets.h"
#include "kernels/cuda/swaths/swaths.h"

enum { READ_VARIANT = 2, OURS = 0, WHOLE, READING, CUB, CONTESTANTS };

typedef enum lengths {
    SAME,
    RANDOM, /* from 1 to twice that */
    POWERS, /* 2^0 … 2^20, as often each in bytes */
    HALF,   /* half in one segment, the rest of that many elements each */
} lengths;

typedef enum contents {
    NORMAL,
    BITS,
    SPECKS, /* as normal, but a few elements are far below the others */
} contents;
static const char *const contents_names[] = {"normal", "bits", "specks"};

typedef struct row {
    const char *name;
    cr_dtype dtype;
    contents contents;
    cr_op op;
    lengths lengths;
    uint64_t each;
    uint64_t bytes; /* 0: as the options say */
} row;

static const row rows[] = {
    {"of 32", CR_F32, NORMAL, CR_OP_SUM, SAME, 32, 0},
    {"of 256", CR_F32, NORMAL, CR_OP_SUM, SAME, 256, 0},
    {"of 1024", CR_F32, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 65536", CR_F32, NORMAL, CR_OP_SUM, SAME, 65536, 0},
    {"of 2^0 to 2^20", CR_F32, NORMAL, CR_OP_SUM, POWERS, 1, 0},
    {"half in one, of 3", CR_F32, NORMAL, CR_OP_SUM, HALF, 3, 0},
    {"of 1 to 8", CR_F32, NORMAL, CR_OP_SUM, RANDOM, 4, 0},
    {"of 1 to 64", CR_F32, NORMAL, CR_OP_SUM, RANDOM, 32, 0},
    {"one", CR_F32, NORMAL, CR_OP_SUM, SAME, UINT64_MAX, 0},
    {"4096 of 4 KiB", CR_F32, NORMAL, CR_OP_SUM, SAME, 1024, 16 << 20},
    {"of 1024", CR_F32, NORMAL, CR_OP_MEAN, SAME, 1024, 0},
    {"of 1024", CR_F32, NORMAL, CR_OP_NORM2, SAME, 1024, 0},
    {"of 1024", CR_F32, NORMAL, CR_OP_VAR, SAME, 1024, 0},
    {"of 32", CR_F32, NORMAL, CR_OP_VAR, SAME, 32, 0},
    {"of 1024", CR_F32, BITS, CR_OP_SUM, SAME, 1024, 64 << 20},
    {"of 1024", CR_F32, SPECKS, CR_OP_SUM, SAME, 1024, 0},
    {"of 32", CR_F64, NORMAL, CR_OP_SUM, SAME, 32, 0},
    {"of 1024", CR_F64, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 1024", CR_F64, NORMAL, CR_OP_VAR, SAME, 1024, 0},
    {"of 32", CR_F64, NORMAL, CR_OP_VAR, SAME, 32, 0},
    {"of 32", CR_BF16, NORMAL, CR_OP_SUM, SAME, 32, 0},
    {"of 1024", CR_BF16, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 1024", CR_F16, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 1024", CR_BF16, NORMAL, CR_OP_NORM2, SAME, 1024, 0},
    {"of 1024", CR_F16, NORMAL, CR_OP_NORM2, SAME, 1024, 0},
    {"of 32", CR_F32, NORMAL, CR_OP_MAX, SAME, 32, 0},
    {"of 256", CR_F32, NORMAL, CR_OP_MAX, SAME, 256, 0},
    {"of 1024", CR_F32, NORMAL, CR_OP_MAX, SAME, 1024, 0},
    {"of 65536", CR_F32, NORMAL, CR_OP_MAX, SAME, 65536, 0},
    {"one", CR_F32, NORMAL, CR_OP_MAX, SAME, UINT64_MAX, 0},
    {"half in one, of 3", CR_F32, NORMAL, CR_OP_MAX, HALF, 3, 0},
    {"of 2^0 to 2^20", CR_F32, NORMAL, CR_OP_MAX, POWERS, 1, 0},
    {"of 1 to 8", CR_F32, NORMAL, CR_OP_MAX, RANDOM, 4, 0},
    {"of 1 to 64", CR_F32, NORMAL, CR_OP_MAX, RANDOM, 32, 0},
    {"4096 of 4 KiB", CR_F32, NORMAL, CR_OP_MAX, SAME, 1024, 16 << 20},
    {"of 1024", CR_F32, NORMAL, CR_OP_ARGMAX, SAME, 1024, 0},
    {"of 32", CR_F32, NORMAL, CR_OP_ARGMAX, SAME, 32, 0},
    {"of 1024", CR_F32, NORMAL, CR_OP_COUNT_NONZERO, SAME, 1024, 0},
    {"of 1024", CR_BF16, NORMAL, CR_OP_MAX, SAME, 1024, 0},
    {"of 1024", CR_U8, NORMAL, CR_OP_MAX, SAME, 1024, 0},
    {"of 1024", CR_U8, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 32", CR_I32, NORMAL, CR_OP_SUM, SAME, 32, 0},
    {"of 1024", CR_I32, NORMAL, CR_OP_SUM, SAME, 1024, 0},
    {"of 1024", CR_I32, NORMAL, CR_OP_VAR, SAME, 1024, 0},
    {"of 32", CR_I32, NORMAL, CR_OP_VAR, SAME, 32, 0},
    {"of 1024", CR_I32, NORMAL, CR_OP_BIT_XOR, SAME, 1024, 0},
    {"of 1024", CR_I64, NORMAL, CR_OP_SUM, SAME, 1024, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct settings {
    uint64_t bytes;
    int rounds, first, count;
    bench_table table;
} settings;

static bench_gpu gpu;
static struct {
    uint8_t *scratch, *out, *host, *got, *want;
    int32_t *offsets, *borders; /* borders: the host's */
    unsigned long long *wrong;
    void *temp;
    size_t temp_bytes;
    cr_dtype dtype;
    contents contents;
    bool filled;
} own;

static int told(int failure, const char *what) {
    if (failure != 0)
        fprintf(stderr, "cured-bench: gpu-segments: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    return failure;
}

/* A row while it races. */
typedef struct running {
    const row *row;
    uint64_t n, count, bytes, moved; /* moved: with offsets and answers */
    uint32_t buffers;
    bench_array array;
    bench_candidate whole;
    cudaGraphExec_t graphs[CONTESTANTS];
} running;

static uint64_t make_borders(running *now) {
    const row *r = now->row;
    uint64_t at = 0, count = 0, state = 1;
    own.borders[0] = 0;
    while (at < now->n) {
        uint64_t length = r->each;
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (r->lengths == RANDOM) length = 1 + (state >> 33) % (2 * r->each);
        if (r->lengths == POWERS) /* the shorter, the more of them */
            for (length = 1 << 20; length > 1 && (state >> 33) % (((uint64_t)2 << 20) / length) >= 1; length /= 2)
                state = state * 6364136223846793005u + 1442695040888963407u;
        if (r->lengths == HALF && count == 0) length = now->n / 2;
        at = now->n - at < length ? now->n : at + length;
        own.borders[++count] = (int32_t)at;
    }
    return count;
}

static cr_gpu_segments asked_of(const running *now, const uint8_t *data) {
    return (cr_gpu_segments){
        {.dtype = now->row->dtype, .shape = {1, now->n, 1}, .data = data, .ops = &now->row->op, .op_count = 1},
        {(const uint8_t *)own.offsets, now->count, CR_I32},
        {.kind = CR_MASK_NONE}};
}

/* What segments have no kernels for, or shall do without, goes by key, as in a caller's process. */
static bool by_key(const running *now) {
    const cr_finish_opts finish = {0};
    return !cr_segments_takes(now->row->op, now->row->dtype, &finish);
}
static cr_gpu_keys keys_of(const cr_gpu_segments *s) {
    return (cr_gpu_keys){.axis = s->axis,
                         .keys = cr_keys_of_offsets(&s->offsets, s->axis.shape.n),
                         .offsets = s->offsets,
                         .mask = {.kind = CR_MASK_NONE}};
}

static int enqueue(const running *now, const uint8_t *data) {
    const cr_gpu_segments asked = asked_of(now, data);
    const cr_gpu_keys keys = keys_of(&asked);
    void *out[1] = {own.out};
    if (by_key(now)) return cr_ways_enqueue(&keys, gpu.multiprocessors, out, own.scratch, own.wrong, gpu.stream);
    return cr_segments_enqueue(&asked, gpu.multiprocessors, out, own.scratch, own.wrong, gpu.stream);
}

static int enqueue_cub(const running *now, const uint8_t *data) {
    return bench_cub_segments(own.temp, &own.temp_bytes, data, own.out, (uint32_t)now->count, own.offsets, gpu.stream);
}

/* Squares of integers, by key. */
static bool lacks_kernels(const running *now) {
    const cr_gpu_segments asked = asked_of(now, NULL);
    const cr_gpu_keys keys = keys_of(&asked);
    cr_error ignored;
    return by_key(now) && cr_ways_check(&keys, &ignored) != CR_OK;
}

/* All buffers by a contestant, as a graph. */
static int make_graph(running *now, int which) {
    cudaGraph_t graph = NULL;
    cudaStream_t stream = (cudaStream_t)gpu.stream;
    int f = (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (uint32_t b = 0; b < now->buffers && f == 0; b++) {
        const uint8_t *data = gpu.arena + b * now->bytes;
        f = which == OURS  ? enqueue(now, data)
            : which == CUB ? enqueue_cub(now, data)
                           : bench_read(READ_VARIANT, data, now->bytes, gpu.out, gpu.multiprocessors, stream);
    }
    const int ended = (int)cudaStreamEndCapture(stream, &graph);
    if (f == 0) f = ended;
    if (f == 0) f = (int)cudaGraphInstantiate(&now->graphs[which], graph, 0);
    if (graph != NULL) cudaGraphDestroy(graph);
    return told(f, now->row->name);
}

static double measure(void *context, int which) {
    running *now = context;
    float milliseconds = 0;
    if (which == WHOLE) return bench_time(&gpu, &now->array, &now->whole);
    if (now->graphs[which] == NULL) return 1;
    int f = bench_read(READ_VARIANT, gpu.flush, gpu.flush_bytes, gpu.out, gpu.multiprocessors, gpu.stream);
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu.begin, (cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaGraphLaunch(now->graphs[which], (cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu.end, (cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaStreamSynchronize((cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaEventElapsedTime(&milliseconds, (cudaEvent_t)gpu.begin, (cudaEvent_t)gpu.end);
    return told(f, now->row->name) ? -1 : (double)milliseconds / 1e3 / now->buffers;
}

/* The first buffer's answers: 0 right, 1 wrong, -1 the device failed. */
static int judge(const running *now) {
    const row *r = now->row;
    unsigned long long bad = 0;
    cr_axis_spec spec = {.dtype = r->dtype, .shape = {now->count, now->n, 1}, .op_count = 1, .ops = {r->op}};
    spec.families = cr_op_needs(r->op, r->dtype);
    spec.offsets = (cr_offsets){(const uint8_t *)own.borders, now->count, CR_I32};
    const cr_view view = {.data = own.host};
    const size_t bytes = now->count * cr_dtype_size(cr_axis_dtype(r->op, r->dtype, &spec.finish));
    int f = enqueue(now, gpu.arena);
    if (f == 0) f = (int)cudaStreamSynchronize((cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaMemcpy(own.got, own.out, bytes, cudaMemcpyDeviceToHost);
    if (f == 0) f = (int)cudaMemcpy(&bad, own.wrong, sizeof bad, cudaMemcpyDeviceToHost);
    if (told(f, r->name)) return -1;
    void *scratch = aligned_alloc(64, (cr_offsets_scratch(&spec) + 64) / 64 * 64), *want[1] = {own.want};
    cr_error error = {CR_OK, ""};
    const cr_status status = cr_cpu_offsets_view(&spec, &view, 0, now->n, 0, now->count, scratch, want, &error);
    free(scratch);
    if (status != CR_OK) fprintf(stderr, "cured-bench: gpu-segments: %s\n", error.text);
    return status != CR_OK || bad != 0 || memcmp(own.got, own.want, bytes) != 0;
}

/* CUB's answers beside the exact ones, which are f64: -1 the device failed, 1 one is further away than its rounding explains. */
static int judge_cub(const running *now) {
    const double *exact = (const double *)(const void *)own.want;
    const float *got = (const float *)(const void *)own.got;
    int f = enqueue_cub(now, gpu.arena);
    if (f == 0) f = (int)cudaStreamSynchronize((cudaStream_t)gpu.stream);
    if (f == 0) f = (int)cudaMemcpy(own.got, own.out, now->count * sizeof *got, cudaMemcpyDeviceToHost);
    if (told(f, "CUB")) return -1;
    for (uint64_t i = 0; i < now->count; i++) {
        const double n = (double)(own.borders[i + 1] - own.borders[i]);
        if (!(fabs((double)got[i] - exact[i]) <= n * 6 * 0x1p-24 * sqrt(n + 1))) return 1;
    }
    return 0;
}

/* One in four million, so small that no window takes it beside the others. */
static int put_specks(uint64_t bytes) {
    const float small = 1e-35f;
    int f = 0;
    for (uint64_t at = 123456; at < bytes && f == 0; at += (uint64_t)1 << 24)
        f = (int)cudaMemcpy(gpu.arena + at, &small, sizeof small, cudaMemcpyHostToDevice);
    return f;
}

static int fill(const row *r, uint64_t bytes) {
    if (own.filled && own.dtype == r->dtype && own.contents == r->contents) return 0;
    if (bench_gpu_fill(&gpu, r->dtype, r->contents == BITS)) return -1;
    if (r->contents == SPECKS && told(put_specks(gpu.arena_bytes), "specks")) return -1;
    own.dtype = r->dtype;
    own.contents = r->contents;
    own.filled = true;
    return told((int)cudaMemcpy(own.host, gpu.arena, bytes, cudaMemcpyDeviceToHost), "copy");
}

/* Offsets, and room for what the row needs beside. */
static int reserve(running *now) {
    const cr_gpu_segments asked = asked_of(now, gpu.arena);
    const cr_gpu_keys keys = keys_of(&asked);
    const uint64_t scratch =
        by_key(now) ? cr_ways_state(&keys, gpu.multiprocessors) : cr_segments_scratch(&asked, gpu.multiprocessors);
    int f = (int)cudaMalloc((void **)&own.offsets, (now->count + 1) * sizeof *own.offsets);
    if (f == 0) f = (int)cudaMalloc((void **)&own.out, now->count * 8);
    if (f == 0) f = (int)cudaMalloc((void **)&own.scratch, scratch);
    if (f == 0) f = (int)cudaMemset(own.scratch, 0, scratch);
    if (f == 0)
        f = (int)cudaMemcpy(own.offsets, own.borders, (now->count + 1) * sizeof *own.offsets, cudaMemcpyHostToDevice);
    own.temp_bytes = 0;
    if (f == 0 && bench_cub_lacks() == NULL)
        f = bench_cub_segments(NULL, &own.temp_bytes, NULL, NULL, (uint32_t)now->count, own.offsets, gpu.stream);
    if (f == 0) f = (int)cudaMalloc(&own.temp, own.temp_bytes + 16);
    own.got = malloc(now->count * 8);
    own.want = malloc(now->count * 8);
    return told(f, "memory");
}
static void release(running *now) {
    for (int k = 0; k < CONTESTANTS; k++)
        if (now->graphs[k] != NULL) cudaGraphExecDestroy(now->graphs[k]);
    bench_release(&now->whole);
    cudaFree(own.offsets);
    cudaFree(own.out);
    cudaFree(own.scratch);
    cudaFree(own.temp);
    free(own.got);
    free(own.want);
}

static void print(settings *s, const running *now, const bench_race *race, int wrong, int cub_wrong) {
    const row *r = now->row;
    double seconds[CONTESTANTS];
    for (int k = 0; k < CONTESTANTS; k++) seconds[k] = bench_race_of(race, k).median;
    const bool has_cub = now->graphs[CUB] != NULL;
    const double floor = seconds[READING] * (double)now->moved / (double)now->bytes;
    bench_table_row(
        &s->table,
        BENCH_CELLS(
            CELL_TEXT("name", "segments", -18, r->name), CELL_TEXT("dtype", "type", -5, cr_dtype_name(r->dtype)),
            CELL_TEXT("data", "data", -6, contents_names[r->contents]), CELL_TEXT("op", "op", -6, cr_op_name(r->op)),
            CELL_NOTE("elements", now->n), CELL_FIGURE("segments", "segments", 9, 0, now->count),
            CELL_FIGURE("us", "us", 9, 1, seconds[OURS] * 1e6),
            CELL_FIGURE("gb_per_s", "GB/s", 8, 1, (double)now->bytes / seconds[OURS] / 1e9),
            CELL_FIGURE("of_whole_sum", "of the sum", 10, 3, seconds[WHOLE] / seconds[OURS]),
            CELL_FIGURE("of_moving", "of moving", 10, 3, floor / seconds[OURS]),
            CELL_FIGURE("cub_gb_per_s", "CUB GB/s", 9, 1, has_cub ? (double)now->bytes / seconds[CUB] / 1e9 : NAN),
            CELL_FIGURE("whole_sum_gb_per_s", "whole sum", 9, 1, (double)now->bytes / seconds[WHOLE] / 1e9),
            CELL_FIGURE("read_gb_per_s", "reading", 8, 1, (double)now->bytes / seconds[READING] / 1e9),
            CELL_TRUTH("right", !wrong), CELL_TRUTH("cub_near", !cub_wrong),
            CELL_TEXT(NULL, "answer", 0,
                      wrong       ? "WRONG"
                      : cub_wrong ? "exact, CUB's far off"
                                  : "exact")));
}

static int run_row(settings *s, const row *r) {
    static const bench_ops sum = {"sum", {CR_OP_SUM}};
    const uint64_t size = cr_dtype_size(r->dtype), most = r->bytes != 0 && r->bytes < s->bytes ? r->bytes : s->bytes;
    running now = {.row = r,
                   .n = most / size,
                   .bytes = most,
                   .buffers = (uint32_t)(gpu.arena_bytes / most),
                   .whole = {.group = GROUP_FOLD, .name = "sum"}};
    if (now.n > INT32_MAX) return told(cudaErrorInvalidValue, "offsets of 32 bits reach no further");
    if (lacks_kernels(&now)) return 0;
    now.array = (bench_array){r->dtype, &sum, most, now.n, now.buffers};
    now.count = make_borders(&now);
    cr_finish_opts finish = {0};
    now.moved = most + now.count * (sizeof *own.offsets + cr_dtype_size(cr_axis_dtype(r->op, r->dtype, &finish)));
    if (reserve(&now) || fill(r, s->bytes)) return -1;
    const bool peer = bench_cub_lacks() == NULL && r->dtype == CR_F32 && r->op == CR_OP_SUM && r->contents == NORMAL;
    const int wrong = judge(&now), cub_wrong = wrong == 0 && peer ? judge_cub(&now) : 0;
    bench_race race = {.count = CONTESTANTS, .rounds = s->rounds, .warm = 1, .measure = measure, .context = &now};
    bool good = wrong >= 0 && cub_wrong >= 0 && !bench_prepare(&gpu, &now.array, &now.whole) &&
                !make_graph(&now, OURS) && !make_graph(&now, READING) && (!peer || !make_graph(&now, CUB));
    good = good && bench_race_run(&race);
    if (good) print(s, &now, &race, wrong, cub_wrong);
    bench_race_end(&race);
    release(&now);
    return good ? wrong || cub_wrong : -1;
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv, settings *s) {
    *s = (settings){.bytes = 1u << 30, .rounds = 9, .count = ROWS};
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &s->bytes, "BYTES", .what = "of the array (1G)", .least = 64u << 20, .most = 0x1p31,
         .step = 4096},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "turns of every candidate (9)", .least = 5,
         .most = BENCH_MAX_ROUNDS},
        {"first", BENCH_NUMBER, &s->first, "ROW", .what = "the first row of the table to measure (0)", .least = 0,
         .most = ROWS - 1},
        {"count", BENCH_NUMBER, &s->count, "N", .what = "how many rows of the table (all)", .least = 1, .most = ROWS},
        BENCH_WITHOUT("gpu_pieces, gpu_teams"),
        BENCH_JSON(&s->table.path),
    };
    return bench_options(options, sizeof options / sizeof options[0],
                         "Exit status: 0; 1 an answer was wrong; 69 no CUDA device.", argc, argv);
}

int bench_gpu_segments(int argc, char **argv) {
    settings s;
    int code = parse(argc, argv, &s), devices = 0, wrong = 0;
    if (code >= 0) return code;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "cured-bench: gpu-segments: no CUDA device\n");
        return 69;
    }
    own.host = malloc(s.bytes);
    own.borders = malloc((s.bytes / 2 + 1) * sizeof *own.borders);
    if (own.host == NULL || own.borders == NULL || bench_gpu_open(&gpu, s.bytes) != 0) return 69;
    if (told((int)cudaMalloc((void **)&own.wrong, sizeof *own.wrong), "memory")) return 69;
    if (told((int)cudaMemset(own.wrong, 0, sizeof *own.wrong), "memory")) return 69;
    code = bench_table_open(&s.table, argc, argv, gpu.name,
                            BENCH_CELLS(CELL_TEXT("gpu", NULL, 0, gpu.name), CELL_NOTE("rounds", s.rounds)));
    if (code != 0) return code;
    for (int i = s.first; i < ROWS && i - s.first < s.count && wrong >= 0; i++) {
        const int more = run_row(&s, &rows[i]);
        wrong = more < 0 ? -1 : wrong + more;
    }
    bench_table_close(&s.table, BENCH_CELLS(CELL_NOTE("wrong", wrong)));
    cudaFree(own.wrong);
    free(own.host);
    free(own.borders);
    bench_gpu_close(&gpu);
    if (wrong > 0) fprintf(stderr, "cured-bench: %d rows are wrong\n", wrong);
    return wrong != 0;
}
