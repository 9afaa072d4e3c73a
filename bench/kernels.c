/* cured-bench kernels: everything on a GPU that reduces an array, on the same buffers in one run: the ladder's kernels, the
 * production folds, CUB and Thrust, and read loops as the floor. Cold: no byte of a buffer is in the L2 when its turn comes
 * (kernels_run.c). Every answer is judged by the exact one, from cured's own partial on the host.
 *
 * In each round all candidates have a turn, one after the other; figures are medians over rounds. "of read" is the share of
 * the best read loop of this size, "to CUB" the ratio to CUB's own.
 *
 * CUB's sum is asked as it comes, and where its headers know it with a promise for its bits (kernels_require.cu). Its answer is wrong,
 * too, if it breaks one.
 *
 * Thread: main. Owner: this file owns the bench. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels.h"
#include "bench/kernels_peer.h"
#include "bench/options.h"
#include "bench/rows.h"

const char *const bench_group_names[GROUP_COUNT] = {"read", "fold", "cub", "thrust", "ladder"};
const char *const bench_answer_names[] = {"", "exact", "within bound", "within bound, varies", "wraps", "WRONG"};
/* CUB's sums, by what is asked of their bits; the first is "to CUB". */
static const char *const promises[] = {"cub", "gpu_to_gpu", "not_guaranteed"};

static const char describe[] = "sum+mean+min+max+argmin+argmax+count_nan+std";
enum { MAX_DTYPES = CR_DTYPE_INPUTS, MAX_OP_SETS = 24, NAMES = 512, NAME = 64, PROMISES = 3 };

typedef struct settings {
    uint64_t sizes[BENCH_MAX_SIZES];
    cr_dtype dtypes[MAX_DTYPES];
    bench_ops ops[MAX_OP_SETS];
    unsigned size_count, dtype_count, op_count, rounds;
    bool bits, follow;
    char kernels[NAMES]; /* "," NAME "," … ","; "" for all */
    bench_table table;
} settings;

static bench_gpu gpu;

/* ---- Options ---- */

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool add_size(void *to, const char *word) {
    settings *s = to;
    const uint64_t bytes = bench_bytes(word) / 16 * 16;
    if (bytes == 0 || s->size_count == BENCH_MAX_SIZES) return false;
    s->sizes[s->size_count++] = bytes;
    return true;
}

static bool add_dtype(void *to, const char *word) {
    settings *s = to;
    cr_dtype dtype;
    if (strcmp(word, "all") == 0) {
        for (s->dtype_count = 0; s->dtype_count < MAX_DTYPES; s->dtype_count++)
            s->dtypes[s->dtype_count] = (cr_dtype)(CR_BOOL + s->dtype_count);
        return true;
    }
    if (s->dtype_count == MAX_DTYPES || cr_dtype_parse(word, &dtype, NULL) != CR_OK || !cr_dtype_is_input(dtype))
        return false;
    s->dtypes[s->dtype_count++] = dtype;
    return true;
}

/* "OP", or "OP+OP+…". */
static bool add_op(void *to, const char *word) {
    static char names[MAX_OP_SETS][NAME];
    settings *s = to;
    if (s->op_count == MAX_OP_SETS || strlen(word) >= NAME) return false;
    char *const name = names[s->op_count], parts[NAME], *rest = parts;
    strcpy(name, word);
    strcpy(parts, strcmp(word, "describe") == 0 ? describe : word);
    bench_ops set = {.name = name};
    for (unsigned i = 0; rest; i++) {
        const char *part = strsep(&rest, "+");
        if (i >= BENCH_MAX_OPS || cr_op_parse(part, &set.ops[i], NULL) != CR_OK) return false;
    }
    s->ops[s->op_count++] = set;
    return true;
}

static bool add_kernel(void *to, const char *word) {
    settings *s = to;
    bool known = cr_ladder_find(word) < cr_ladder_count();
    for (int g = 0; g < GROUP_COUNT; g++) known = known || strcmp(word, bench_group_names[g]) == 0;
    for (unsigned p = 0; p < PROMISES; p++) known = known || strcmp(word, promises[p]) == 0;
    size_t used = strlen(s->kernels);
    if (!known || used + strlen(word) + 3 > NAMES) return false;
    snprintf(s->kernels + used, NAMES - used, "%s%s,", used ? "" : ",", word);
    return true;
}

static bool set_data(void *to, const char *word) {
    settings *s = to;
    s->bits = strcmp(word, "bits") == 0;
    return s->bits || strcmp(word, "normal") == 0;
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv, settings *s) {
    s->rounds = 7;
    const bench_option options[] = {
        {"sizes", BENCH_WORDS, s, "4K,1M,…", .what = "bytes of one array (4K to 4G by fours)", .each = add_size},
        {"types", BENCH_WORDS, s, "f32,…|all", .what = "element types (f32)", .each = add_dtype},
        {"ops", BENCH_WORDS, s, "sum,…", .what = "ops, OP+OP for several by one pass, or describe (sum)",
         .each = add_op},
        {"kernels", BENCH_WORDS, s, "NAME,…",
         .what =
             "read, fold, cub, thrust, ladder, or of cub gpu_to_gpu, not_guaranteed, or kernels of the ladder (all)",
         .each = add_kernel},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "turns of every candidate (7)", .least = 5,
         .most = BENCH_MAX_ROUNDS},
        {"data", BENCH_WORDS, s, "normal|bits", .what = "floats: normal, or any bit patterns (normal)",
         .each = set_data},
        {"follow", BENCH_SWITCH, &s->follow, NULL, .what = "folds begin while those before them end, as in the daemon"},
        BENCH_WITHOUT("gpu_sets"),
        BENCH_JSON(&s->table.path),
    };
    const int status =
        bench_options(options, sizeof options / sizeof options[0],
                      "Exit status: 0; 1 a fold of cured or a kernel of the ladder was wrong; 69 no CUDA "
                      "device, or it failed.",
                      argc, argv);
    if (status >= 0) return status;
    if (s->size_count == 0)
        for (uint64_t bytes = 4 << 10; bytes <= 4ull << 30; bytes *= 4) s->sizes[s->size_count++] = bytes;
    if (s->dtype_count == 0) add_dtype(s, "f32");
    if (s->op_count == 0) add_op(s, "sum");
    qsort(s->sizes, s->size_count, sizeof s->sizes[0], by_size);
    return -1;
}

/* ---- One array ---- */

static bool chosen(const settings *s, bench_group group, const char *name) {
    char word[80];
    if (s->kernels[0] == '\0' || group == GROUP_READ) return true; /* the floor is always there */
    snprintf(word, sizeof word, ",%s,", bench_group_names[group]);
    if (strstr(s->kernels, word)) return true;
    snprintf(word, sizeof word, ",%s,", name);
    return strstr(s->kernels, word) != NULL;
}

static unsigned add(const settings *s, bench_candidate *list, unsigned count, bench_group group, const char *name,
                    unsigned variant) {
    if (!chosen(s, group, name) || count == BENCH_MAX_CANDIDATES) return count;
    list[count] = (bench_candidate){.group = group, .name = name, .variant = variant};
    return count + 1;
}

static unsigned candidates(const settings *s, bench_candidate *list) {
    unsigned count = 0;
    for (unsigned v = 0; v < bench_read_variants(); v++) count = add(s, list, count, GROUP_READ, bench_read_name(v), v);
    count = add(s, list, count, GROUP_FOLD, "cured", 0);
    for (unsigned p = 0; p < PROMISES; p++) count = add(s, list, count, GROUP_CUB, promises[p], p);
    count = add(s, list, count, GROUP_THRUST, "thrust", 0);
    for (uint32_t row = 0; row < cr_ladder_count(); row++)
        count = add(s, list, count, GROUP_LADDER, cr_ladder_at(row)->name, row);
    return count;
}

/* Buffers so that a graph reads tens of MiB, of what there is room for. */
static uint32_t buffers_for(uint64_t bytes) {
    uint64_t count = (64u << 20) / bytes;
    count = count > 128 ? 128 : count < 2 ? 2 : count;
    if (count * bytes > gpu.arena_bytes) count = gpu.arena_bytes / bytes;
    return (uint32_t)count;
}

/* The candidates of an array while they race. */
typedef struct field {
    const bench_array *array;
    bench_candidate list[BENCH_MAX_CANDIDATES];
    bench_candidate none[PROMISES + 1]; /* those of CUB and Thrust that this build lacks: rows without figures */
    int count, nones;
} field;

static double measure(void *context, int which) {
    field *f = context;
    return bench_time(&gpu, f->array, &f->list[which]);
}

static double speed_of(const field *f, const bench_race *race, int which) {
    return (double)f->array->bytes / bench_race_of(race, which).median / 1e9;
}

/* read, cub: speeds that shares are taken of. */
static void put_row(settings *s, const bench_array *array, const bench_candidate *c, bench_spread took, double read,
                    double cub) {
    const double gigabytes = (double)array->bytes / 1e9;
    bench_table_row(
        &s->table,
        BENCH_CELLS(CELL_TEXT("op", NULL, 0, array->ops->name),
                    CELL_TEXT("dtype", NULL, 0, cr_dtype_name(array->dtype)), CELL_NOTE("bytes", array->bytes),
                    CELL_TEXT("group", "group", -7, bench_group_names[c->group]),
                    CELL_TEXT("kernel", "kernel", -24, c->name), CELL_FIGURE("us", "µs", 9, 2, took.median * 1e6),
                    CELL_FIGURE("gb_per_s", "GB/s", 9, 1, gigabytes / took.median),
                    CELL_FIGURE("low", "low", 9, 1, gigabytes / took.most),
                    CELL_FIGURE("high", "high", 9, 1, gigabytes / took.least),
                    CELL_FIGURE("of_read", "of read", 7, 3, gigabytes / took.median / read),
                    CELL_FIGURE("to_cub", "to CUB", 7, 3, gigabytes / took.median / cub),
                    CELL_TEXT("timed", "timed", -5,
                              c->none       ? "-"
                              : c->by_clock ? "clock"
                                            : "graph"),
                    CELL_TEXT("answer", "answer", 0, c->none ? c->none : bench_answer_names[c->answer]),
                    CELL_NOTE("error", c->none ? NAN : c->error)));
}

static void print(settings *s, const field *f, const bench_race *race) {
    const bench_array *array = f->array;
    double read = 0, cub = NAN;
    for (int i = 0; i < f->count; i++) {
        const double speed = speed_of(f, race, i);
        if (f->list[i].group == GROUP_READ && speed > read) read = speed;
        if (f->list[i].group == GROUP_CUB && f->list[i].variant == BENCH_RUN_TO_RUN) cub = speed;
    }
    printf("\n%s %s, %llu bytes, %u buffers\n", array->ops->name, cr_dtype_name(array->dtype),
           (unsigned long long)array->bytes, array->buffers);
    s->table.headed = false;
    for (int i = 0; i < f->count; i++) put_row(s, array, &f->list[i], bench_race_of(race, i), read, cub);
    const bench_spread nothing = {NAN, NAN, NAN, NAN, NAN};
    for (int i = 0; i < f->nones; i++) put_row(s, array, &f->none[i], nothing, read, cub);
}

/* Measures all candidates over one array, and adds the wrong answers that are ours to *wrong. Not 0: the device failed. */
static int run_array(settings *s, const bench_array *array, const cr_partial *exact, int *wrong) {
    static field f;
    const unsigned all = candidates(s, f.list);
    f.array = array;
    f.count = f.nones = 0;
    for (unsigned i = 0; i < all; i++) {
        bench_candidate *c = &f.list[i];
        if (!bench_exists(array, c)) {
            if (c->none) f.none[f.nones++] = *c;
            continue;
        }
        if (bench_judge(&gpu, array, c, exact)) return -1;
        *wrong += c->answer == ANSWER_WRONG && (c->group == GROUP_FOLD || c->group == GROUP_LADDER);
        f.list[f.count++] = *c;
    }
    bench_race race = {.count = f.count, .rounds = (int)s->rounds, .warm = 1, .measure = measure, .context = &f};
    bool good = true;
    for (int i = 0; i < f.count && good; i++) good = !bench_prepare(&gpu, array, &f.list[i]);
    good = good && bench_race_run(&race);
    if (good) print(s, &f, &race);
    bench_race_end(&race);
    for (int i = 0; i < f.count; i++) bench_release(&f.list[i]);
    return good ? 0 : -1;
}

static int measure_dtype(settings *s, cr_dtype dtype, int *wrong) {
    uint64_t size = cr_dtype_size(dtype), known = 0;
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    uint32_t families = floats ? CR_FAM_SUMABS | cr_op_needs(CR_OP_NORMINF, dtype) : 0; /* for bounds */
    for (unsigned o = 0; o < s->op_count; o++) families |= bench_families(&s->ops[o], dtype);
    if (bench_gpu_fill(&gpu, dtype, s->bits || !floats)) return -1;
    static cr_partial exact;
    cr_partial_init(&exact, dtype, families);
    for (unsigned i = 0; i < s->size_count; i++) {
        uint64_t n = s->sizes[i] / size;
        if (known % cr_partial_grain(dtype, families) != 0) { /* a part that is added begins at a multiple */
            cr_partial_init(&exact, dtype, families);
            known = 0;
        }
        if (bench_exact(&gpu, dtype, known, n, &exact)) return -1;
        known = n;
        for (unsigned o = 0; o < s->op_count; o++) {
            if (cr_op_supports(s->ops[o].ops[0], dtype, NULL) != CR_OK) continue;
            const bench_array array = {dtype, &s->ops[o], s->sizes[i], n, buffers_for(s->sizes[i])};
            if (run_array(s, &array, &exact, wrong)) return -1;
        }
    }
    return 0;
}

/* 0, or the status to end with. */
static int begin_table(settings *s, int argc, char **argv) {
    char more[720], cub[64] = "no CUB";
    if (gpu.cccl != 0)
        snprintf(cub, sizeof cub, "CUB of CCCL %d.%d.%d", gpu.cccl / 1000000, gpu.cccl / 1000 % 1000, gpu.cccl % 1000);
    snprintf(more, sizeof more, "%s, %u multiprocessors, %.0f MiB of L2, %s", gpu.name, gpu.multiprocessors,
             (double)gpu.l2_bytes / (1 << 20), cub);
    return bench_table_open(
        &s->table, argc, argv, more,
        BENCH_CELLS(CELL_TEXT("gpu", NULL, 0, gpu.name), CELL_NOTE("multiprocessors", gpu.multiprocessors),
                    CELL_NOTE("l2_bytes", gpu.l2_bytes), CELL_NOTE("cuda", CUDART_VERSION), CELL_NOTE("cccl", gpu.cccl),
                    CELL_NOTE("rounds", s->rounds), CELL_TEXT("data", NULL, 0, s->bits ? "bits" : "normal")));
}

int bench_kernels(int argc, char **argv) {
    static settings s;
    int devices = 0, wrong = 0, failed = 0;
    int code = parse(argc, argv, &s);
    if (code >= 0) return code;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "cured-bench: kernels: no CUDA device\n");
        return 69;
    }
    if (bench_gpu_open(&gpu, s.sizes[s.size_count - 1]) != 0) return 69;
    gpu.follow = s.follow;
    code = begin_table(&s, argc, argv);
    if (code != 0) return code;
    for (unsigned i = 0; i < s.dtype_count && !failed; i++) failed = measure_dtype(&s, s.dtypes[i], &wrong);
    bench_table_close(&s.table, BENCH_CELLS(CELL_NOTE("wrong", wrong), CELL_TRUTH("failed", failed != 0)));
    bench_gpu_close(&gpu);
    if (wrong > 0) fprintf(stderr, "cured-bench: %d answers of cured are wrong\n", wrong);
    if (failed) fprintf(stderr, "cured-bench: kernels: the device failed: what follows was not measured\n");
    return wrong != 0 ? 1 : failed ? 69 : 0;
}
