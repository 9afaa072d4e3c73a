/* cpu_run: see cpu.h. The array is touched before it is folded. Threads are pinned to a core each and claim pieces, read loops and
 * folds alike.
 *
 * Thread: main starts and joins the workers of a walk. Owner: the array, while a bench runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/options.h"
#include "kernels/cpu/fold.h"

static void work(void *argument, int id) {
    cpu_walk *w = argument;
    if (w->begin != NULL) w->begin(w->context, id);
    for (size_t at; (at = atomic_fetch_add(&w->next, w->claim)) < w->bytes;)
        w->fold(w->context, id, at, w->bytes - at < w->claim ? w->bytes - at : w->claim);
}

double cpu_walk_run(cpu_walk *walk, int threads) {
    atomic_store(&walk->next, 0);
    return bench_together(threads, work, walk);
}

typedef struct reading {
    const cpu_floor *loop;
    const uint8_t *data;
    atomic_uint_least64_t sink;
} reading;

static void read_piece(void *context, int id, size_t at, size_t bytes) {
    reading *r = context;
    (void)id;
    atomic_fetch_or(&r->sink, r->loop->run(r->data + at, bytes));
}

double cpu_read(const cpu_floor *loop, const uint8_t *data, size_t bytes, int threads) {
    reading r = {.loop = loop, .data = data};
    cpu_walk walk = {.fold = read_piece, .context = &r, .bytes = bytes, .claim = CPU_CLAIM};
    return cpu_walk_run(&walk, threads);
}

bool cpu_select(const char *isa) {
    cr_error error;
    if (cr_cpu_select(isa, &error) == CR_OK) return true;
    fprintf(stderr, "cured-bench: %s\n", error.text);
    return false;
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(const cpu_bench *bench, int argc, char **argv, cpu_settings *s) {
    const bench_option options[] = {
        {"size", BENCH_BYTES, &s->bytes, "BYTES", .what = "of the array (1G)", .least = CPU_CLAIM, .most = 0x1p40,
         .step = 64},
        {"threads", BENCH_NUMBER, &s->threads, "N", .what = "workers, one a core (one, then all)", .least = 1,
         .most = BENCH_MAX_THREADS},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "times that everything is measured (7)", .least = 3,
         .most = 101},
        {"only", BENCH_TEXT, &s->only, "TEXT", .what = "rows whose name and data hold TEXT, e.g. \"sum f32\""},
        {"isa", BENCH_TEXT, &s->isa, "NAME", .what = "auto, portable, avx2 or avx512 (auto)"},
        BENCH_WITHOUT("fused,half"),
        BENCH_JSON(&s->table.path),
        {"claim", BENCH_BYTES, &s->claim, "BYTES",
         .what = "what a worker folds into its columns at once (sixteen lines, 4M … 16M)"},
    };
    const size_t count = sizeof options / sizeof options[0] - !bench->claims;
    const int status = bench_options(options, count, NULL, argc, argv);
    return status >= 0 || cpu_select(s->isa) ? status : 64;
}

static bool wanted(const cpu_settings *s, cpu_row row) {
    char text[64];
    snprintf(text, sizeof text, "%s %s", row.name, cpu_data_name(row.data));
    return bench_wanted(s->only, text);
}

/* Groups of rows, each over data of its own. How many answers were wrong. */
static int run_groups(const cpu_bench *bench, cpu_settings *s, uint8_t *data) {
    const int cores = bench_cores();
    int wrong = 0, group[64], count;
    cpu_row filled = {NULL, CR_DTYPE_NONE, DATA_COUNT};
    for (int at = 0; at < bench->rows;) {
        const cpu_row first = bench->row(at);
        for (count = 0; at < bench->rows && (count == 0 || bench->together); at++) {
            const cpu_row row = bench->row(at);
            if (row.dtype != first.dtype || row.data != first.data) break;
            if (wanted(s, row)) group[count++] = at;
        }
        if (count == 0) continue;
        if (first.dtype != filled.dtype || first.data != filled.data) cpu_fill(data, s->bytes, first.dtype, first.data);
        filled = first;
        wrong += bench->run(s, data, s->threads != 0 ? s->threads : 1, group, count);
        if (s->threads == 0 && cores > 1) wrong += bench->run(s, data, cores, group, count);
    }
    return wrong;
}

int cpu_bench_run(const cpu_bench *bench, int argc, char **argv) {
    cpu_settings s = {.bytes = (size_t)1 << 30, .rounds = 7, .isa = "auto"};
    int status = parse(bench, argc, argv, &s);
    if (status >= 0) return status;
    uint8_t *data = mmap(NULL, s.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        fprintf(stderr, "cured-bench: no memory for %zu bytes\n", s.bytes);
        return 71;
    }
    char folds[32];
    snprintf(folds, sizeof folds, "folds: %s", cr_cpu_isa());
    status = bench_table_open(&s.table, argc, argv, folds,
                              BENCH_CELLS(CELL_NOTE("bytes", s.bytes), CELL_NOTE("rounds", s.rounds)));
    if (status != 0) return status;
    printf("%zu bytes, medians of %d rounds\n\n", s.bytes, s.rounds);
    const int wrong = run_groups(bench, &s, data);
    munmap(data, s.bytes);
    if (wrong) fprintf(stderr, "cured-bench: %d rows gave a wrong answer\n", wrong);
    return bench_table_close(&s.table, NULL, 0) && !wrong ? 0 : 1;
}
