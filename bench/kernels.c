/* cured-bench kernels: everything on a GPU that reduces an array, on the same buffers in one run: the ladder's kernels, the
 * production folds, CUB and Thrust, and read loops as the floor. Cold: no byte of a buffer is in the L2 when its turn comes
 * (kernels_run.c). Every answer is judged by the exact one, from cured's own partial on the host.
 *
 * In each round all candidates have a turn, one after the other; figures are medians over rounds. "of read" is the share of
 * the best read loop of this size, "to CUB" the ratio to CUB's own.
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

const char *const bench_group_names[GROUP_COUNT] = {"read", "fold", "cub", "thrust", "ladder"};
const char *const bench_answer_names[] = {"", "exact", "within bound", "WRONG"};

static const char describe[] = "sum+mean+min+max+argmin+argmax+count_nan+std";
enum { MAX_DTYPES = 13, MAX_OP_SETS = 24, NAMES = 512, NAME = 64 };

typedef struct settings {
    uint64_t sizes[BENCH_MAX_SIZES];
    cr_dtype dtypes[MAX_DTYPES];
    bench_ops ops[MAX_OP_SETS];
    unsigned size_count, dtype_count, op_count, rounds;
    bool bits, follow;
    char kernels[NAMES]; /* "," NAME "," … ","; "" for all */
    const char *json;
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
        {"kernels", BENCH_WORDS, s, "NAME,…", .what = "read, fold, cub, thrust, ladder, or kernels of the ladder (all)",
         .each = add_kernel},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "turns of every candidate (7)", .least = 5,
         .most = BENCH_MAX_ROUNDS},
        {"data", BENCH_WORDS, s, "normal|bits", .what = "floats: normal, or any bit patterns (normal)",
         .each = set_data},
        {"follow", BENCH_SWITCH, &s->follow, NULL, .what = "folds begin while those before them end, as in the daemon"},
        {"json", BENCH_TEXT, &s->json, "FILE", .what = "writes the figures to FILE"},
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
    count = add(s, list, count, GROUP_CUB, "cub", 0);
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

typedef struct figures {
    double median, low, high; /* GB/s */
} figures;

static figures figures_of(const bench_candidate *c, unsigned rounds, uint64_t bytes) {
    double x[BENCH_MAX_ROUNDS];
    memcpy(x, c->seconds, rounds * sizeof *x);
    double middle = bench_median(x, rounds); /* sorts */
    return (figures){(double)bytes / middle / 1e9, (double)bytes / x[rounds - 1] / 1e9, (double)bytes / x[0] / 1e9};
}

static void print_row(FILE *json, bool first, const settings *s, const bench_array *array, const bench_candidate *c,
                      double read, double cub) {
    figures f = figures_of(c, s->rounds, array->bytes);
    char error[32] = "null", to_cub[32] = "null", shown[16] = "-";
    if (cub > 0) snprintf(to_cub, sizeof to_cub, "%.4f", f.median / cub);
    if (cub > 0) snprintf(shown, sizeof shown, "%.3f", f.median / cub);
    if (isfinite(c->error)) snprintf(error, sizeof error, "%.3g", c->error);
    printf("%-7s %-24s %9.1f  %9.1f … %-9.1f  %6.3f  %6s  %s%s\n", bench_group_names[c->group], c->name, f.median,
           f.low, f.high, f.median / read, shown, bench_answer_names[c->answer], c->by_clock ? " (by the clock)" : "");
    if (!json) return;
    fprintf(json,
            "%s\n  {\"op\": \"%s\", \"dtype\": \"%s\", \"bytes\": %llu, \"group\": \"%s\", \"kernel\": \"%s\", "
            "\"gb_per_s\": %.2f, \"low\": %.2f, \"high\": %.2f, \"of_read\": %.4f, \"to_cub\": %s, \"timed\": \"%s\", "
            "\"answer\": \"%s\", \"error\": %s}",
            first ? "" : ",", array->ops->name, cr_dtype_name(array->dtype), (unsigned long long)array->bytes,
            bench_group_names[c->group], c->name, f.median, f.low, f.high, f.median / read, to_cub,
            c->by_clock ? "clock" : "graph", bench_answer_names[c->answer], error);
}

/* Measures all candidates over one array, and adds the wrong answers that are ours to *wrong. Not 0: the device failed. */
static int measure(const settings *s, const bench_array *array, const cr_partial *exact, FILE *json, bool *first,
                   int *wrong) {
    static bench_candidate list[BENCH_MAX_CANDIDATES];
    unsigned all = candidates(s, list), count = 0;
    int failed = 0;
    for (unsigned i = 0; i < all; i++) {
        if (!bench_exists(array, &list[i])) continue;
        if (bench_judge(&gpu, array, &list[i], exact)) return -1;
        *wrong += list[i].answer == ANSWER_WRONG && (list[i].group == GROUP_FOLD || list[i].group == GROUP_LADDER);
        list[count++] = list[i];
    }
    for (unsigned i = 0; i < count && !failed; i++) failed = bench_prepare(&gpu, array, &list[i]);
    for (unsigned round = 0; round <= s->rounds && !failed; round++) {
        for (unsigned i = 0; i < count && !failed; i++) {
            double took = bench_time(&gpu, array, &list[i]);
            if (round > 0) list[i].seconds[round - 1] = took; /* the first turn warms up */
            failed = took < 0;
        }
    }
    double read = 0, cub = 0;
    for (unsigned i = 0; i < count && !failed; i++) {
        double speed = figures_of(&list[i], s->rounds, array->bytes).median;
        if (list[i].group == GROUP_READ && speed > read) read = speed;
        if (list[i].group == GROUP_CUB) cub = speed;
    }
    if (!failed)
        printf("\n%s %s, %llu bytes, %u buffers\n%-7s %-24s %9s  %9s   %-9s  %6s  %6s  answer\n", array->ops->name,
               cr_dtype_name(array->dtype), (unsigned long long)array->bytes, array->buffers, "", "kernel", "GB/s",
               "low", "high", "of read", "to CUB");
    for (unsigned i = 0; i < count && !failed; i++, *first = false)
        print_row(json, *first, s, array, &list[i], read, cub);
    for (unsigned i = 0; i < count; i++) bench_release(&list[i]);
    fflush(stdout);
    return failed ? -1 : 0;
}

static int measure_dtype(const settings *s, cr_dtype dtype, FILE *json, bool *first, int *wrong) {
    uint64_t size = cr_dtype_size(dtype), known = 0;
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    uint32_t families = floats ? CR_FAM_SUMABS : 0; /* for the bound */
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
            if (measure(s, &array, &exact, json, first, wrong)) return -1;
        }
    }
    return 0;
}

static void head(const settings *s, FILE *json, int argc, char **argv) {
    char machine[256], command[1024];
    bench_machine(machine, sizeof machine);
    bench_command(argc, argv, command, sizeof command);
    printf("%s, %u multiprocessors, %.0f MiB of L2; %s\ncured-bench %s\n", gpu.name, gpu.multiprocessors,
           (double)gpu.l2_bytes / (1 << 20), machine, command);
    if (!json) return;
    fprintf(json, "{\"gpu\": ");
    bench_json_string(json, gpu.name);
    fprintf(json, ", \"multiprocessors\": %u, \"l2_bytes\": %llu, \"machine\": ", gpu.multiprocessors,
            (unsigned long long)gpu.l2_bytes);
    bench_json_string(json, machine);
    fprintf(json, ", \"command\": ");
    bench_json_string(json, command);
    fprintf(json, ", \"cuda\": %d, \"rounds\": %u, \"data\": \"%s\", \"rows\": [", CUDART_VERSION, s->rounds,
            s->bits ? "bits" : "normal");
}

int bench_kernels(int argc, char **argv) {
    static settings s;
    int devices = 0, wrong = 0, failed = 0;
    const int code = parse(argc, argv, &s);
    if (code >= 0) return code;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "cured-bench: kernels: no CUDA device\n");
        return 69;
    }
    FILE *json = s.json ? fopen(s.json, "we") : NULL;
    if (s.json && !json) {
        fprintf(stderr, "cured-bench: cannot write %s\n", s.json);
        return 74;
    }
    if (bench_gpu_open(&gpu, s.sizes[s.size_count - 1]) != 0) return 69;
    gpu.follow = s.follow;
    head(&s, json, argc, argv);
    bool first = true;
    for (unsigned i = 0; i < s.dtype_count && !failed; i++)
        failed = measure_dtype(&s, s.dtypes[i], json, &first, &wrong);
    if (json) fprintf(json, "\n], \"wrong\": %d, \"failed\": %s}\n", wrong, failed ? "true" : "false");
    if (json && fclose(json) != 0) fprintf(stderr, "cured-bench: cannot write %s\n", s.json);
    bench_gpu_close(&gpu);
    if (wrong > 0) fprintf(stderr, "cured-bench: %d answers of cured are wrong\n", wrong);
    if (failed) fprintf(stderr, "cured-bench: kernels: the device failed: what follows was not measured\n");
    return wrong != 0 ? 1 : failed ? 69 : 0;
}
