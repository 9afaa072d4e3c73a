/* cured-bench cpu: the CPU's folds, as shares of the best loop that only reads the same bytes in the same run.
 *
 * Threads are pinned to a core each and claim 1 MiB at a time, folds and read loops alike. The data is touched before.
 * Every round runs all read loops and all folds of a group once, in turn, so that a neighbour's noise meets all of them; figures
 * are medians over rounds, and a share is the median of the round's own shares. Every answer is compared, bit by bit, with
 * that of the portable folds over the same data cut otherwise.
 *
 * Thread: main starts and joins the workers of a run. Owner: this file owns the array. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "kernels/cpu/fold.h"

enum { CLAIM = 1 << 20, MAX_ROUNDS = 101, MAX_CANDIDATES = 16, MAX_OPS = 12 };

/* What is measured: ops of one type on one distribution. Rows of one group share the array and its read loops. */
typedef struct row {
    const char *name;
    cr_dtype dtype;
    cpu_data data;
    cr_op ops[MAX_OPS];
} row;

static const row rows[] = {
    {"sum f32", CR_F32, DATA_NORMAL, {CR_OP_SUM}},
    {"min f32", CR_F32, DATA_NORMAL, {CR_OP_MIN}},
    {"max f32", CR_F32, DATA_NORMAL, {CR_OP_MAX}},
    {"argmax f32", CR_F32, DATA_NORMAL, {CR_OP_ARGMAX}},
    {"describe f32",
     CR_F32,
     DATA_NORMAL,
     {CR_OP_COUNT, CR_OP_COUNT_NAN, CR_OP_MIN, CR_OP_MAX, CR_OP_ARGMIN, CR_OP_ARGMAX, CR_OP_SUM, CR_OP_MEAN,
      CR_OP_STD}},
    {"mean+var f32", CR_F32, DATA_NORMAL, {CR_OP_MEAN, CR_OP_VAR}},
    {"sum f64", CR_F64, DATA_NORMAL, {CR_OP_SUM}},
    {"argmax f64", CR_F64, DATA_NORMAL, {CR_OP_ARGMAX}},
    {"mean+var f64", CR_F64, DATA_NORMAL, {CR_OP_MEAN, CR_OP_VAR}},
    {"sum f32", CR_F32, DATA_ORDERS20, {CR_OP_SUM}},
    {"sum f64", CR_F64, DATA_ORDERS20, {CR_OP_SUM}},
    {"sum f32", CR_F32, DATA_BITS, {CR_OP_SUM}},
    {"sumsq f32", CR_F32, DATA_BITS, {CR_OP_SUMSQ}},
    {"max f32", CR_F32, DATA_BITS, {CR_OP_MAX}},
    {"sum f64", CR_F64, DATA_BITS, {CR_OP_SUM}},
    {"sumsq f64", CR_F64, DATA_BITS, {CR_OP_SUMSQ}},
    {"sum f32", CR_F32, DATA_DENORMAL, {CR_OP_SUM}},
    {"sum f64", CR_F64, DATA_DENORMAL, {CR_OP_SUM}},
    {"sum f32", CR_F32, DATA_NANS, {CR_OP_SUM}},
    {"argmax f32", CR_F32, DATA_NANS, {CR_OP_ARGMAX}},
    {"sum u8", CR_U8, DATA_BITS, {CR_OP_SUM}},
    {"max u8", CR_U8, DATA_BITS, {CR_OP_MAX}},
    {"sum i32", CR_I32, DATA_BITS, {CR_OP_SUM}},
    {"argmax i32", CR_I32, DATA_BITS, {CR_OP_ARGMAX}},
    {"sum i64", CR_I64, DATA_BITS, {CR_OP_SUM}},
    {"sum f16", CR_F16, DATA_NORMAL, {CR_OP_SUM}},
    {"sum bf16", CR_BF16, DATA_NORMAL, {CR_OP_SUM}},
    {"mean+var bf16", CR_BF16, DATA_NORMAL, {CR_OP_MEAN, CR_OP_VAR}},
    {"mean+var f16", CR_F16, DATA_NORMAL, {CR_OP_MEAN, CR_OP_VAR}},
    {"sum+max i32", CR_I32, DATA_BITS, {CR_OP_SUM, CR_OP_MAX}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct settings {
    size_t bytes;
    int threads; /* 0: one, then all */
    int rounds;
    const char *json, *only, *isa;
} settings;

/* One timed walk over the array: a read loop or a fold. */
typedef struct walk {
    const cpu_floor *floor; /* NULL: fold */
    const row *row;
    uint32_t families, wants;
    const uint8_t *data;
    size_t bytes, claim;
    atomic_size_t next;
    cr_partial partials[BENCH_MAX_THREADS];
    atomic_uint_least64_t sink;
} walk;

static void work(void *argument, int id) {
    walk *w = argument;
    cr_partial *p = &w->partials[id];
    size_t size = cr_dtype_size(w->row->dtype);
    for (;;) {
        size_t at = atomic_fetch_add(&w->next, w->claim);
        if (at >= w->bytes) break;
        size_t now = w->bytes - at < w->claim ? w->bytes - at : w->claim;
        if (w->floor != NULL) {
            atomic_fetch_or(&w->sink, w->floor->run(w->data + at, now));
        } else {
            cr_cpu_fold(p, w->data + at, now / size, at / size);
        }
    }
}

/* Seconds from the start of all workers to the end of the last; for a fold, *out is the merged partial. */
static double run_walk(walk *w, int threads, cr_partial *out) {
    atomic_store(&w->next, 0);
    for (int i = 0; w->floor == NULL && i < threads; i++) {
        cr_partial_init(&w->partials[i], w->row->dtype, w->families);
        cr_partial_want(&w->partials[i], w->wants);
    }
    double seconds = bench_together(threads, work, w);
    if (w->floor == NULL && out != NULL) {
        for (int i = 1; i < threads; i++) cr_partial_merge(&w->partials[0], &w->partials[i]);
        *out = w->partials[0];
    }
    return seconds;
}

static uint32_t wants_of(const row *r) {
    uint32_t wants = 0;
    for (int i = 0; i < MAX_OPS && r->ops[i]; i++) wants |= cr_op_wants(r->ops[i]);
    return wants;
}

static uint32_t families_of(const row *r) {
    uint32_t families = 0;
    for (int i = 0; i < MAX_OPS && r->ops[i]; i++) families |= cr_op_needs(r->ops[i], r->dtype);
    return families;
}

static bool same_answers(const row *r, const cr_partial *a, const cr_partial *b) {
    cr_finish_opts opts = {0};
    for (int i = 0; i < MAX_OPS && r->ops[i]; i++) {
        cr_value x, y;
        cr_partial_finish(a, r->ops[i], &opts, &x);
        cr_partial_finish(b, r->ops[i], &opts, &y);
        if (x.error.code != CR_OK || x.dtype != y.dtype || x.len != y.len || x.at_len != y.at_len ||
            memcmp(x.bytes, y.bytes, x.len) != 0 || memcmp(x.at, y.at, x.at_len) != 0)
            return false;
    }
    return true;
}

typedef struct figures {
    double times[MAX_ROUNDS], shares[MAX_ROUNDS];
} figures;

/* The answers to compare with: the portable folds', cut otherwise. */
static void expect(walk *w, const row *const *group, int count, int threads, cr_partial *expected) {
    w->floor = NULL;
    w->claim = 3 * CLAIM / 2;
    cr_cpu_select("portable", NULL);
    for (int i = 0; i < count; i++) {
        w->row = group[i];
        w->families = families_of(group[i]);
        w->wants = wants_of(group[i]);
        run_walk(w, threads, &expected[i]);
    }
}

/* Runs the rows of one group on `threads` threads; returns how many answers were wrong. */
static int run_group(const row *const *group, int count, const uint8_t *data, const settings *s, int threads,
                     FILE *json, bool *first) {
    static walk w;
    static figures floor_figures[MAX_CANDIDATES], row_figures[ROWS];
    const cpu_floor *usable[MAX_CANDIDATES];
    cr_partial expected[ROWS];
    int floors = 0, wrong = 0;
    bool right[ROWS];
    w.data = data;
    w.bytes = s->bytes;
    for (const cpu_floor *f = cpu_floors(); f->name != NULL; f++) {
        if (cr_cpu_select(f->isa, NULL) == CR_OK) usable[floors++] = f;
    }
    const cpu_floor *pages = cpu_floor_pages();
    int plain = floors;
    if (pages != NULL) usable[floors++] = pages; /* beside the others; never what shares are of */
    expect(&w, group, count, threads, expected);
    for (int i = 0; i < count; i++) right[i] = true;
    if (cr_cpu_select(s->isa, NULL) != CR_OK) exit(64);
    w.claim = CLAIM;
    for (int round = 0; round < s->rounds; round++) {
        for (int i = 0; i < floors; i++) {
            w.floor = usable[i];
            floor_figures[i].times[round] = run_walk(&w, threads, NULL);
        }
        w.floor = NULL;
        for (int i = 0; i < count; i++) {
            cr_partial p;
            w.row = group[i];
            w.families = families_of(group[i]);
            w.wants = wants_of(group[i]);
            row_figures[i].times[round] = run_walk(&w, threads, &p);
            if (!same_answers(group[i], &p, &expected[i])) right[i] = false;
        }
    }
    /* The floor is the loop with the best median; a share compares times of one round. */
    int best = 0;
    double medians[MAX_CANDIDATES] = {0};
    for (int i = 0; i < floors; i++) {
        double copy[MAX_ROUNDS];
        memcpy(copy, floor_figures[i].times, sizeof copy);
        medians[i] = bench_median(copy, (size_t)s->rounds);
        if (i < plain && medians[i] < medians[best]) best = i;
    }
    double gigabytes = (double)s->bytes * 1e-9;
    printf("%-13s %-12s %7d %9.2f  %s\n", "read loop", cpu_data_name(group[0]->data), threads,
           gigabytes / medians[best], usable[best]->name);
    if (pages != NULL) printf("%-13s %-12s %7d %9.2f  %s\n", "", "", threads, gigabytes / medians[plain], pages->name);
    for (int i = 0; i < count; i++) {
        figures *f = &row_figures[i];
        for (int round = 0; round < s->rounds; round++) {
            f->shares[round] = floor_figures[best].times[round] / f->times[round];
        }
        double share = bench_median(f->shares, (size_t)s->rounds), time = bench_median(f->times, (size_t)s->rounds);
        printf("%-13s %-12s %7d %9.2f %7.3f   %5.2f … %5.2f  %s\n", group[i]->name, cpu_data_name(group[i]->data),
               threads, gigabytes / time, share, f->shares[0], f->shares[s->rounds - 1], right[i] ? "ok" : "WRONG");
        wrong += !right[i];
        if (json == NULL) continue;
        fprintf(
            json,
            "%s\n  {\"row\": \"%s\", \"data\": \"%s\", \"threads\": %d, \"gb_per_s\": %.4f, \"share\": %.4f, "
            "\"share_low\": %.4f, \"share_high\": %.4f, \"floor\": \"%s\", \"floor_gb_per_s\": %.4f, \"right\": %s}",
            *first ? "" : ",", group[i]->name, cpu_data_name(group[i]->data), threads, gigabytes / time, share,
            f->shares[0], f->shares[s->rounds - 1], usable[best]->name, gigabytes / medians[best],
            right[i] ? "true" : "false");
        *first = false;
    }
    fflush(stdout);
    return wrong;
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv, settings *s) {
    *s = (settings){.bytes = (size_t)1 << 30, .rounds = 7, .isa = "auto"};
    const bench_option options[] = {
        {"size", BENCH_BYTES, &s->bytes, "BYTES", .what = "of the array (1G)", .least = CLAIM, .most = 0x1p40,
         .step = 64},
        {"threads", BENCH_NUMBER, &s->threads, "N", .what = "workers, one a core (one, then all)", .least = 1,
         .most = BENCH_MAX_THREADS},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "times that everything is measured (7)", .least = 5,
         .most = MAX_ROUNDS},
        {"only", BENCH_TEXT, &s->only, "TEXT", .what = "rows whose name and data hold TEXT, e.g. \"sum f32 normal\""},
        {"isa", BENCH_TEXT, &s->isa, "NAME", .what = "auto, portable, avx2 or avx512 (auto)"},
        {"without", BENCH_WORDS, NULL, "WAYS", .what = "leaves out fast ways (kernels/core/fast.def), e.g. fused,half",
         .each = cpu_without},
        {"json", BENCH_TEXT, &s->json, "FILE", .what = "writes the figures to FILE"},
    };
    int status = bench_options(options, sizeof options / sizeof options[0], NULL, argc, argv);
    cr_error error;
    if (status < 0 && cr_cpu_select(s->isa, &error) != CR_OK) {
        fprintf(stderr, "cured-bench: %s\n", error.text);
        status = 64;
    }
    return status;
}

static bool wanted(const row *r, const char *only) {
    char text[64];
    snprintf(text, sizeof text, "%s %s", r->name, cpu_data_name(r->data));
    return only == NULL || strstr(text, only) != NULL;
}

int bench_cpu(int argc, char **argv) {
    settings s;
    int wrong = 0, code = parse(argc, argv, &s);
    if (code >= 0) return code;
    uint8_t *data = mmap(NULL, s.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        fprintf(stderr, "cured-bench: no memory for %zu bytes\n", s.bytes);
        return 71;
    }
    char machine[256], command[512];
    bench_machine(machine, sizeof machine);
    bench_command(argc, argv, command, sizeof command);
    FILE *json = s.json ? fopen(s.json, "we") : NULL;
    if (s.json != NULL && json == NULL) {
        fprintf(stderr, "cured-bench: cannot write %s\n", s.json);
        return 73;
    }
    bool first = true;
    printf("machine  %s; folds: %s\ncommand  cured-bench %s\n%zu bytes, medians of %d rounds\n\n", machine,
           cr_cpu_isa(), command, s.bytes, s.rounds);
    printf("%-13s %-12s %7s %9s %7s   %s\n", "row", "data", "threads", "GB/s", "share", "low … high share, answer");
    if (json != NULL) {
        fprintf(json, "{\"machine\": ");
        bench_json_string(json, machine);
        fprintf(json, ", \"command\": ");
        bench_json_string(json, command);
        fprintf(json, ", \"bytes\": %zu, \"rounds\": %d, \"rows\": [", s.bytes, s.rounds);
    }
    int cores = bench_cores();
    for (int at = 0; at < ROWS;) {
        const row *group[ROWS];
        int count = 0, start = at;
        for (; at < ROWS && rows[at].dtype == rows[start].dtype && rows[at].data == rows[start].data; at++) {
            if (wanted(&rows[at], s.only)) group[count++] = &rows[at];
        }
        if (count == 0) continue;
        cpu_fill(data, s.bytes, rows[start].dtype, rows[start].data);
        if (s.threads != 0) {
            wrong += run_group(group, count, data, &s, s.threads, json, &first);
        } else {
            wrong += run_group(group, count, data, &s, 1, json, &first);
            if (cores > 1) wrong += run_group(group, count, data, &s, cores, json, &first);
        }
    }
    if (json != NULL) {
        fprintf(json, "\n]}\n");
        if (fclose(json) != 0) wrong++;
    }
    munmap(data, s.bytes);
    if (wrong) fprintf(stderr, "cured-bench: %d rows gave a wrong answer\n", wrong);
    return wrong ? 1 : 0;
}
