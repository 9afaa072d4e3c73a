/* cured-bench pack: many small arrays in device memory folded in one launch, beside CUB's segmented sum of the same segments.
 *
 * Each figure is that of a launch inside a graph of many: cold, each on arrays of its own, together several times the L2, after
 * another region was read; warm, all on the same arrays. The list of units lies in device memory, or in pinned memory as the
 * daemon has it; what is found goes to pinned memory, or to device memory. Every answer is checked against the CPU's.
 *
 * Thread: main. Owner: this file owns the bench. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels_peer.h"
#include "bench/options.h"
#include "bench/rows.h"
#include "kernels/cpu/fold.h"
#include "kernels/cuda/pack/pack.h"

enum { ROUNDS_MAX = 99, FLUSH_BYTES = 512 << 20, MORE_WORDS = 1 << 20, KINDS = 5 };

/* Where the kernel finds its list, and leaves what it found. */
typedef enum place { ON_DEVICE, LIST_PINNED, BOTH_PINNED, PLACES } place;
static const char *const place_names[PLACES] = {"list and answers on the device", "list in pinned memory",
                                                "list and answers in pinned memory"};

static struct bench {
    uint32_t jobs, sets;
    int rounds;
    uint64_t bytes;
    uint8_t *arena, *host; /* host: a copy of the first set */
    uint8_t *flush;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cr_pack pack; /* of the first set */
    uint64_t *words;
    cr_pack_unit *lists; /* device: one for each set */
    cr_pack_unit *pinned_lists;
    uint64_t *found, *more; /* device: of the first set, found for each */
    void *temp, *sums;
    size_t temp_bytes;
    int *offsets;
    unsigned wrong;
    bench_table table;
} b;

static void check(int failure, const char *what) {
    if (failure == cudaSuccess) return;
    fprintf(stderr, "cured-bench: pack: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    exit(70);
}

static uint64_t set_bytes(void) { return b.jobs * b.bytes; }

/* What the kinds ask of job i. */
static cr_gpu_fold fold_of(int kind, uint32_t i) {
    cr_gpu_fold fold = {.dtype = CR_F32, .families = CR_FAM_SUM, .data = b.arena + i * b.bytes, .index = 0};
    uint64_t bytes = b.bytes;
    if (kind == 1) fold.families = CR_FAM_EXTREMA;
    if (kind >= 3) { /* all types and families, and lengths */
        fold.dtype = (cr_dtype)(CR_BOOL + i % CR_F64);
        fold.families = 1u << i / CR_F64 % 7;
        if (cr_dtype_kind(fold.dtype) == CR_KIND_FLOAT && fold.families == CR_FAM_BITS) fold.families = CR_FAM_SUM;
        if (kind == 4) bytes = bytes * (i * 7 % 100 + 1) / 100;
    }
    fold.n = bytes / cr_dtype_size(fold.dtype);
    return fold;
}
static const char *const kind_names[KINDS] = {"sum of f32", "extrema of f32", "sum of f32, any bits",
                                              "all types and families", "the same, of 1 to 100 % of the length"};

static void judge(int kind) {
    static cr_partial cpu, gpu; /* large */
    uint32_t unit = 0;
    check((int)cudaMemcpy(b.host, b.arena, set_bytes(), cudaMemcpyDeviceToHost), "copy");
    if (!cr_pack_done(&b.pack)) b.wrong++;
    for (uint32_t i = 0; i < b.jobs; i++) {
        cr_gpu_fold fold = fold_of(kind, i);
        cr_pack_result(&b.pack, &fold, unit, &gpu);
        unit += cr_pack_units(&fold);
        cr_partial_init(&cpu, fold.dtype, fold.families);
        cr_cpu_fold(&cpu, b.host + ((const uint8_t *)fold.data - b.arena), fold.n, 0);
        for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
            cr_value got, wanted;
            if (cr_op_supports(op, fold.dtype, NULL) != CR_OK || !cr_op_needs(op, fold.dtype) ||
                cr_op_needs(op, fold.dtype) & ~fold.families)
                continue;
            memset(&got, 0, sizeof got);
            memset(&wanted, 0, sizeof wanted);
            cr_partial_finish(&cpu, op, &(cr_finish_opts){0}, &wanted);
            cr_partial_finish(&gpu, op, &(cr_finish_opts){0}, &got);
            if (got.error.code != wanted.error.code || memcmp(got.bytes, wanted.bytes, sizeof got.bytes) != 0 ||
                memcmp(got.at, wanted.at, sizeof got.at) != 0)
                b.wrong++;
        }
    }
}

/* The units of every set: the first one's, further on. */
static void make_lists(int kind) {
    uint32_t first;
    cr_pack_clear(&b.pack);
    for (uint32_t i = 0; i < b.jobs; i++) {
        cr_gpu_fold fold = fold_of(kind, i);
        if (!cr_pack_add(&b.pack, &fold, &first)) check(cudaErrorMemoryAllocation, "too many units");
    }
    for (uint32_t set = 0; set < b.sets; set++) {
        cr_pack_unit *list = b.pinned_lists + (size_t)set * b.pack.room;
        memcpy(list, b.pack.units, b.pack.count * sizeof *list);
        for (uint32_t i = 0; i < b.pack.count; i++) list[i].data += set * set_bytes();
    }
    check((int)cudaMemcpy(b.lists, b.pinned_lists, (size_t)b.sets * b.pack.room * sizeof *b.lists,
                          cudaMemcpyHostToDevice),
          "copy");
}

static int enqueue(place where, uint32_t set) {
    cr_pack_args args = {.units = (where == ON_DEVICE ? b.lists : b.pinned_lists) + (size_t)set * b.pack.room,
                         .found = where == BOTH_PINNED ? b.pack.found : b.found,
                         .more = where == BOTH_PINNED ? b.pack.more : b.more,
                         .count = b.pack.count};
    return cr_pack_launch(&args, b.stream);
}

static int enqueue_peer(uint32_t set) {
    return bench_cub_segments(b.temp, &b.temp_bytes, b.arena + set * set_bytes(), b.sums, b.jobs, b.offsets, b.stream);
}

/* What is launched again and again, as one graph. */
typedef struct launches {
    cudaGraphExec_t graph;
    bool cold;
} launches;

/* Microseconds of a launch. */
static double launch(void *context, int which) {
    const launches *l = context;
    float milliseconds = 0;
    (void)which;
    if (l->cold) check((int)cudaMemsetAsync(b.flush, 0, FLUSH_BYTES, b.stream), "flush");
    check((int)cudaEventRecord(b.begin, b.stream), "event");
    check((int)cudaGraphLaunch(l->graph, b.stream), "launch");
    check((int)cudaEventRecord(b.end, b.stream), "event");
    check((int)cudaStreamSynchronize(b.stream), "launch");
    check((int)cudaEventElapsedTime(&milliseconds, b.begin, b.end), "event");
    return (double)milliseconds * 1e3 / b.sets;
}

/* Cold and warm are no race, because one would leave the other's arrays in the cache. where PLACES: the peer. */
static double measure(place where, bool cold) {
    launches l = {.cold = cold};
    cudaGraph_t graph = NULL;
    check((int)cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal), "graph");
    for (uint32_t set = 0; set < b.sets; set++)
        check(where == PLACES ? enqueue_peer(cold ? set : 0) : enqueue(where, cold ? set : 0), "launch");
    check((int)cudaStreamEndCapture(b.stream, &graph), "graph");
    check((int)cudaGraphInstantiate(&l.graph, graph, 0), "graph");
    bench_race race = {.count = 1, .rounds = b.rounds, .warm = 2, .measure = launch, .context = &l};
    const double median = bench_race_run(&race) ? bench_race_of(&race, 0).median : NAN;
    bench_race_end(&race);
    cudaGraphExecDestroy(l.graph);
    cudaGraphDestroy(graph);
    return median;
}

/* One launch on the first set, and its answers in pinned memory, as they were in `where`. */
static void run_once(int kind, place where) {
    memset(b.pack.found, 0, (size_t)b.pack.count * CR_PACK_WORDS * 8);
    check((int)cudaMemset(b.found, 0, (size_t)b.pack.count * CR_PACK_WORDS * 8), "clear");
    check(enqueue(where, 0), "launch");
    check((int)cudaStreamSynchronize(b.stream), "launch");
    if (where != BOTH_PINNED) {
        check((int)cudaMemcpy(b.pack.found, b.found, (size_t)b.pack.count * CR_PACK_WORDS * 8, cudaMemcpyDeviceToHost),
              "copy");
        check((int)cudaMemcpy(b.pack.more, b.more, (size_t)MORE_WORDS * 8, cudaMemcpyDeviceToHost), "copy");
    }
    b.pack.launched = b.pack.count;
    b.pack.there = 0;
    judge(kind);
}

static void row(const char *what, int where) {
    const double cold = measure((place)where, true), warm = measure((place)where, false), bytes = (double)set_bytes();
    const char *name = where == PLACES ? "" : place_names[where];
    bench_table_row(&b.table, BENCH_CELLS(CELL_TEXT("what", "what", -40, what), CELL_TEXT("where", "where", -36, name),
                                          CELL_FIGURE("cold_us", "cold us", 8, 2, cold),
                                          CELL_FIGURE(NULL, "GB/s", 6, 0, bytes / cold / 1e3),
                                          CELL_FIGURE("warm_us", "warm us", 8, 2, warm),
                                          CELL_FIGURE(NULL, "GB/s", 6, 0, bytes / warm / 1e3)));
}

static void open_all(void) {
    const uint32_t room = 2 * b.jobs;
    void *memory = NULL, *lists = NULL;
    uint64_t n = set_bytes() * b.sets / 4;
    const size_t list_bytes = (size_t)b.sets * room * sizeof(cr_pack_unit);
    check((int)cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream");
    check((int)cudaEventCreate(&b.begin), "event");
    check((int)cudaEventCreate(&b.end), "event");
    check((int)cudaMalloc((void **)&b.arena, set_bytes() * b.sets), "memory");
    check((int)cudaMalloc((void **)&b.flush, FLUSH_BYTES), "memory");
    check((int)cudaMalloc((void **)&b.lists, list_bytes), "memory");
    check((int)cudaMalloc((void **)&b.found, (size_t)room * CR_PACK_WORDS * 8), "memory");
    check((int)cudaMalloc((void **)&b.more, (size_t)MORE_WORDS * 8), "memory");
    check((int)cudaMallocHost(&memory, cr_pack_words(room, MORE_WORDS) * 8), "memory");
    check((int)cudaMallocHost(&lists, list_bytes), "memory");
    memset(memory, 0, cr_pack_words(room, MORE_WORDS) * 8);
    b.words = memory;
    b.pinned_lists = lists;
    cr_pack_init(&b.pack, b.words, room, MORE_WORDS);
    b.host = malloc(set_bytes());
    if (!b.host) check(cudaErrorMemoryAllocation, "memory");
    check(bench_fill(CR_F32, b.arena, n, 1, b.stream), "fill");
    /* CUB's segments */
    int *offsets = malloc((b.jobs + 1) * sizeof *offsets);
    for (uint32_t i = 0; offsets && i <= b.jobs; i++) offsets[i] = (int)(i * (b.bytes / 4));
    check((int)cudaMalloc((void **)&b.offsets, (b.jobs + 1) * sizeof *offsets), "memory");
    check((int)cudaMalloc(&b.sums, b.jobs * 4), "memory");
    check((int)cudaMemcpy(b.offsets, offsets, (b.jobs + 1) * sizeof *offsets, cudaMemcpyHostToDevice), "copy");
    free(offsets);
    if (bench_cub_lacks() == NULL)
        check(bench_cub_segments(NULL, &b.temp_bytes, b.arena, b.sums, b.jobs, b.offsets, b.stream), "CUB");
    check((int)cudaMalloc(&b.temp, b.temp_bytes + 1), "memory");
    check((int)cudaStreamSynchronize(b.stream), "fill");
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv) {
    b.jobs = 4096, b.bytes = 4096, b.rounds = 21;
    const bench_option options[] = {
        {"jobs", BENCH_NUMBER, &b.jobs, "N", .what = "arrays in one launch (4096)", .least = 1, .most = 1 << 16},
        {"bytes", BENCH_BYTES, &b.bytes, "BYTES", .what = "of one array (4K)", .least = 16, .most = CR_PACK_UNIT_BYTES,
         .step = 16},
        {"rounds", BENCH_NUMBER, &b.rounds, "N", .what = "launches of each kind (21)", .least = 1, .most = ROUNDS_MAX},
        BENCH_JSON(&b.table.path),
    };
    return bench_options(options, sizeof options / sizeof options[0],
                         "Exit status: 0; 1 an answer was wrong; 77 no CUDA device.", argc, argv);
}

int bench_pack(int argc, char **argv) {
    int devices = 0, status = parse(argc, argv);
    if (status >= 0) return status;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        fprintf(stderr, "cured-bench: pack: no CUDA device\n");
        return 77;
    }
    b.sets = (uint32_t)((512u << 20) / set_bytes());
    if (b.sets < 4) b.sets = 4;
    if (b.sets > 64) b.sets = 64;
    open_all();
    status = bench_table_open(&b.table, argc, argv, NULL,
                              BENCH_CELLS(CELL_NOTE("jobs", b.jobs), CELL_NOTE("bytes", b.bytes)));
    if (status != 0) return status;
    printf("%u arrays of %llu bytes in a launch, %u sets of them\n", b.jobs, (unsigned long long)b.bytes, b.sets);
    if (bench_cub_lacks() == NULL)
        row("CUB's segmented sum of f32 (inexact)", PLACES);
    else
        printf("CUB's segmented sum: %s\n", bench_cub_lacks());
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == 2) check(bench_fill(CR_U64, b.arena, set_bytes() * b.sets / 8, 1, b.stream), "fill");
        make_lists(kind);
        for (int where = 0; where < PLACES; where++) {
            run_once(kind, (place)where);
            row(kind_names[kind], where);
        }
    }
    printf("%u answers were wrong\n", b.wrong);
    return bench_table_close(&b.table, BENCH_CELLS(CELL_NOTE("wrong", b.wrong))) && b.wrong == 0 ? 0 : 1;
}
