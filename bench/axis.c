/* cured-bench axis: reductions along one axis, as shares of the best loop that only reads the same bytes in the same run.
 *
 * Small blocks are answered on the spot, a claim of them at a time; a block larger than a claim is folded into one state a
 * worker, which are merged and finished within the measured time. Answers are compared, bit by bit, with those of the
 * portable folds over other claims. Otherwise as `cured-bench cpu`.
 *
 * Thread: main starts and joins the workers of a run. Owner: this file owns array and answers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/options.h"
#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"

enum { BLOCKS_CLAIM = 1 << 20, COLUMNS_CLAIM = 4 << 20, MOST_CLAIM = 16 << 20, MAX_ROUNDS = 101, MAX_FLOORS = 16 };

/* inner 0: as many columns as n lines of the array have. */
typedef struct row {
    const char *name;
    cr_dtype dtype;
    cpu_data data;
    cr_op op;
    uint64_t n, inner;
} row;

static const row rows[] = {
    {"axis1 sum f32 1024", CR_F32, DATA_NORMAL, CR_OP_SUM, 1024, 1},
    {"axis0 sum f32 1024", CR_F32, DATA_NORMAL, CR_OP_SUM, 1024, 0},
    {"axis0 sum f32 tall", CR_F32, DATA_NORMAL, CR_OP_SUM, 262144, 1024},
    {"rows sum f32 32", CR_F32, DATA_NORMAL, CR_OP_SUM, 32, 1},
    {"rows mean f32 32", CR_F32, DATA_NORMAL, CR_OP_MEAN, 32, 1},
    {"rows mean f32 33", CR_F32, DATA_NORMAL, CR_OP_MEAN, 33, 1},
    {"rows var f32 32", CR_F32, DATA_NORMAL, CR_OP_VAR, 32, 1},
    {"axis1 var f32 1024", CR_F32, DATA_NORMAL, CR_OP_VAR, 1024, 1},
    {"axis0 var f32 1024", CR_F32, DATA_NORMAL, CR_OP_VAR, 1024, 0},
    {"axis1 norm2 f32", CR_F32, DATA_NORMAL, CR_OP_NORM2, 1024, 1},
    {"rows max f32 32", CR_F32, DATA_NORMAL, CR_OP_MAX, 32, 1},
    {"rows argmax f32 32", CR_F32, DATA_NORMAL, CR_OP_ARGMAX, 32, 1},
    {"rows sum f32 4", CR_F32, DATA_NORMAL, CR_OP_SUM, 4, 1},
    {"rows sum f32 100", CR_F32, DATA_NORMAL, CR_OP_SUM, 100, 1},
    {"axis1 max f32 1024", CR_F32, DATA_NORMAL, CR_OP_MAX, 1024, 1},
    {"axis0 max f32 1024", CR_F32, DATA_NORMAL, CR_OP_MAX, 1024, 0},
    {"axis0 argmax f32", CR_F32, DATA_NORMAL, CR_OP_ARGMAX, 1024, 0},
    {"inner 3 sum f32", CR_F32, DATA_NORMAL, CR_OP_SUM, 4096, 3},
    {"inner 3 small f32", CR_F32, DATA_NORMAL, CR_OP_SUM, 40, 3},
    {"inner 3 tall f32", CR_F32, DATA_NORMAL, CR_OP_SUM, 4194304, 3},
    {"axis1 sum f32 1024", CR_F32, DATA_ORDERS20, CR_OP_SUM, 1024, 1},
    {"axis0 sum f32 1024", CR_F32, DATA_ORDERS20, CR_OP_SUM, 1024, 0},
    {"axis1 sum f32 1024", CR_F32, DATA_BITS, CR_OP_SUM, 1024, 1},
    {"axis0 sum f32 1024", CR_F32, DATA_BITS, CR_OP_SUM, 1024, 0},
    {"rows sum f32 32", CR_F32, DATA_BITS, CR_OP_SUM, 32, 1},
    {"axis1 sum f32 1024", CR_F32, DATA_NANS, CR_OP_SUM, 1024, 1},
    {"axis0 max f32 1024", CR_F32, DATA_NANS, CR_OP_MAX, 1024, 0},
    {"axis1 sum f64 1024", CR_F64, DATA_NORMAL, CR_OP_SUM, 1024, 1},
    {"axis0 sum f64 1024", CR_F64, DATA_NORMAL, CR_OP_SUM, 1024, 0},
    {"rows sum f64 32", CR_F64, DATA_NORMAL, CR_OP_SUM, 32, 1},
    {"axis1 std f64 1024", CR_F64, DATA_NORMAL, CR_OP_STD, 1024, 1},
    {"rows mean f64 33", CR_F64, DATA_NORMAL, CR_OP_MEAN, 33, 1},
    {"axis1 sum f64 1024", CR_F64, DATA_BITS, CR_OP_SUM, 1024, 1},
    {"axis0 sum f64 1024", CR_F64, DATA_BITS, CR_OP_SUM, 1024, 0},
    {"rows sum f64 32", CR_F64, DATA_BITS, CR_OP_SUM, 32, 1},
    {"axis1 sum f16 1024", CR_F16, DATA_NORMAL, CR_OP_SUM, 1024, 1},
    {"axis0 sum f16 1024", CR_F16, DATA_NORMAL, CR_OP_SUM, 1024, 0},
    {"axis1 sum i32 1024", CR_I32, DATA_BITS, CR_OP_SUM, 1024, 1},
    {"axis0 sum i32 1024", CR_I32, DATA_BITS, CR_OP_SUM, 1024, 0},
    {"axis1 max u8 1024", CR_U8, DATA_BITS, CR_OP_MAX, 1024, 1},
    {"rows sum u8 32", CR_U8, DATA_BITS, CR_OP_SUM, 32, 1},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct settings {
    size_t bytes, claim; /* claim 0: as the daemon's, sixteen lines */
    int threads, rounds;
    const char *only, *isa;
    const char *path; /* of the figures; NULL: none */
    FILE *json;
} settings;

/* One timed walk: a read loop (floor set) or a reduction. */
typedef struct walk {
    const cpu_floor *floor;
    cr_axis_spec spec;
    bool columns;
    const uint8_t *data;
    uint8_t *out;
    size_t bytes, claim;
    atomic_size_t next;
    atomic_int failed;
    void *states[BENCH_MAX_THREADS], *scratch[BENCH_MAX_THREADS];
    atomic_uint_least64_t sink;
} walk;

static void work(void *argument, int id) {
    walk *w = argument;
    const cr_shape *shape = &w->spec.shape;
    size_t size = cr_dtype_size(w->spec.dtype), block = (size_t)(shape->n * shape->inner) * size;
    size_t answer = cr_dtype_size(cr_axis_dtype(w->spec.ops[0], w->spec.dtype, &w->spec.finish));
    if (w->floor == NULL && w->columns) cr_columns_init(&w->spec, w->states[id]);
    for (;;) {
        size_t at = atomic_fetch_add(&w->next, w->claim);
        if (at >= w->bytes) break;
        size_t now = w->bytes - at < w->claim ? w->bytes - at : w->claim;
        if (w->floor != NULL) {
            atomic_fetch_or(&w->sink, w->floor->run(w->data + at, now));
        } else if (w->columns) {
            cr_cpu_columns_fold(&w->spec, w->states[id], w->data + at, now / size, at / size);
        } else {
            uint64_t first = at / block;
            void *out[] = {w->out + first * shape->inner * answer};
            if (cr_cpu_axis_blocks(&w->spec, w->data + at, first, now / block, w->scratch[id], out, NULL) != CR_OK)
                atomic_store(&w->failed, 1);
        }
    }
}

static void *room(size_t bytes) {
    void *p = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
    if (p == NULL) exit(71);
    memset(p, 0, bytes); /* touched before, as the daemon's pools are */
    return p;
}

static double run_walk(walk *w, int threads) {
    bool folds = w->floor == NULL;
    atomic_store(&w->next, 0);
    for (int i = 0; folds && i < threads; i++) {
        w->states[i] = w->columns ? room(cr_columns_bytes(&w->spec)) : NULL;
        w->scratch[i] = w->columns ? NULL : room(cr_axis_scratch(&w->spec));
    }
    double seconds = bench_together(threads, work, w), merging = bench_now();
    if (folds && w->columns) {
        void *out[] = {w->out};
        for (int i = 1; i < threads; i++) cr_columns_merge(&w->spec, w->states[0], w->states[i]);
        if (cr_columns_finish(&w->spec, w->states[0], 0, 0, w->spec.shape.inner, out, NULL) != CR_OK) w->failed = 1;
        seconds += bench_now() - merging;
    }
    for (int i = 0; folds && i < threads; i++) {
        free(w->states[i]);
        free(w->scratch[i]);
    }
    return seconds;
}

/* The walk of one row over an array of bytes; what does not make a whole block is left out. */
static void set_up(walk *w, const row *r, size_t bytes, size_t claim) {
    size_t size = cr_dtype_size(r->dtype);
    uint64_t n = r->n, inner = r->inner ? r->inner : bytes / size / n;
    if (inner * n * size > bytes) n = bytes / size / inner;
    size_t block = (size_t)(n * inner) * size;
    w->spec = (cr_axis_spec){.dtype = r->dtype,
                             .shape = {bytes / block, n, inner},
                             .families = cr_op_needs(r->op, r->dtype),
                             .op_count = 1,
                             .ops = {r->op}};
    w->columns = block > COLUMNS_CLAIM;
    if (w->columns) w->spec.shape.outer = 1;
    w->bytes = w->spec.shape.outer * block;
    size_t lines = (size_t)inner * size * 16;
    if (claim == 0) claim = lines < COLUMNS_CLAIM ? COLUMNS_CLAIM : lines < MOST_CLAIM ? lines : MOST_CLAIM;
    w->claim = w->columns ? claim : BLOCKS_CLAIM / block * block;
    if (w->claim == 0) w->claim = block;
}

static size_t answers_bytes(const walk *w) {
    return w->spec.shape.outer * w->spec.shape.inner *
           cr_dtype_size(cr_axis_dtype(w->spec.ops[0], w->spec.dtype, &w->spec.finish));
}

/* Measures one row; whether its answers were right. */
static bool measure(const row *r, const uint8_t *data, const settings *s, int threads) {
    static walk w;
    static double floor_times[MAX_FLOORS][MAX_ROUNDS], times[MAX_ROUNDS], shares[MAX_ROUNDS];
    w.data = data;
    w.floor = NULL;
    set_up(&w, r, s->bytes, s->claim);
    size_t out_bytes = answers_bytes(&w), own_claim = w.claim;
    uint8_t *expected = room(out_bytes), *out = room(out_bytes);
    w.out = expected;
    w.claim = w.columns ? 3 * own_claim / 2 : own_claim * 3;
    w.failed = 0;
    cr_cpu_select("portable", NULL);
    run_walk(&w, threads);
    cr_cpu_select(s->isa, NULL);
    w.claim = own_claim;
    w.out = out;
    bool right = true;
    int floors = 0, best = 0;
    const cpu_floor *usable[MAX_FLOORS];
    for (const cpu_floor *f = cpu_floors(); f->name != NULL; f++) {
        if (cr_cpu_select(f->isa, NULL) == CR_OK) usable[floors++] = f;
    }
    if (cr_cpu_select(s->isa, NULL) != CR_OK) exit(64);
    for (int round = 0; round < s->rounds; round++) {
        w.claim = BLOCKS_CLAIM;
        for (int i = 0; i < floors; i++) {
            w.floor = usable[i];
            floor_times[i][round] = run_walk(&w, threads);
        }
        w.floor = NULL;
        w.claim = own_claim;
        memset(out, 0xa5, out_bytes);
        times[round] = run_walk(&w, threads);
        if (memcmp(out, expected, out_bytes) != 0) right = false;
    }
    double medians[MAX_FLOORS];
    for (int i = 0; i < floors; i++) {
        double copy[MAX_ROUNDS];
        memcpy(copy, floor_times[i], sizeof copy);
        medians[i] = bench_median(copy, (size_t)s->rounds);
        if (medians[i] < medians[best]) best = i;
    }
    for (int round = 0; round < s->rounds; round++) shares[round] = floor_times[best][round] / times[round];
    double share = bench_median(shares, (size_t)s->rounds), time = bench_median(times, (size_t)s->rounds);
    right = right && !w.failed;
    printf("%-19s %-12s %7d %9.2f %9.2f %7.3f   %5.2f … %5.2f  %s\n", r->name, cpu_data_name(r->data), threads,
           (double)w.bytes * 1e-9 / time, (double)w.bytes * 1e-9 / medians[best], share, shares[0],
           shares[s->rounds - 1], right ? "ok" : "WRONG");
    fflush(stdout);
    if (s->json != NULL) {
        fprintf(
            s->json,
            "%s{\"row\": \"%s\", \"data\": \"%s\", \"threads\": %d, \"n\": %llu, \"inner\": %llu, \"gb_per_s\": %.4f, "
            "\"share\": %.4f, \"share_low\": %.4f, \"share_high\": %.4f, \"floor_gb_per_s\": %.4f, \"right\": %s}",
            ftell(s->json) < 1 ? "[\n  " : ",\n  ", r->name, cpu_data_name(r->data), threads,
            (unsigned long long)w.spec.shape.n, (unsigned long long)w.spec.shape.inner, (double)w.bytes * 1e-9 / time,
            share, shares[0], shares[s->rounds - 1], (double)w.bytes * 1e-9 / medians[best], right ? "true" : "false");
    }
    free(expected);
    free(out);
    return right;
}

/* -1: the caller goes on; otherwise the status to end with. */
static int parse(int argc, char **argv, settings *s) {
    *s = (settings){.bytes = (size_t)1 << 30, .rounds = 7, .isa = "auto"};
    const bench_option options[] = {
        {"size", BENCH_BYTES, &s->bytes, "BYTES", .what = "of the array (1G)", .least = 1 << 20, .most = 0x1p40,
         .step = 64},
        {"threads", BENCH_NUMBER, &s->threads, "N", .what = "workers, one a core (one, then all)", .least = 1,
         .most = BENCH_MAX_THREADS},
        {"rounds", BENCH_NUMBER, &s->rounds, "N", .what = "times that everything is measured (7)", .least = 3,
         .most = MAX_ROUNDS},
        {"only", BENCH_TEXT, &s->only, "TEXT", .what = "rows whose name and data hold TEXT, e.g. \"axis0 sum\""},
        {"claim", BENCH_BYTES, &s->claim, "BYTES",
         .what = "what a worker folds into its columns at once (sixteen lines, 4M … 16M)"},
        {"isa", BENCH_TEXT, &s->isa, "NAME", .what = "auto, portable, avx2 or avx512 (auto)"},
        {"without", BENCH_WORDS, NULL, "WAYS", .what = "leaves out fast ways (kernels/core/fast.def), e.g. fused,half",
         .each = cpu_without},
        {"json", BENCH_TEXT, &s->path, "FILE", .what = "writes the figures to FILE"},
    };
    int status = bench_options(options, sizeof options / sizeof options[0], NULL, argc, argv);
    cr_error error;
    if (status < 0 && cr_cpu_select(s->isa, &error) != CR_OK) {
        fprintf(stderr, "cured-bench: %s\n", error.text);
        status = 64;
    }
    if (status < 0 && s->path && !(s->json = fopen(s->path, "we"))) {
        fprintf(stderr, "cured-bench: cannot write %s\n", s->path);
        status = 73;
    }
    return status;
}

int bench_axis(int argc, char **argv) {
    settings s;
    int wrong = 0, cores = bench_cores(), code = parse(argc, argv, &s);
    if (code >= 0) return code;
    uint8_t *data = mmap(NULL, s.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        fprintf(stderr, "cured-bench: no memory for %zu bytes\n", s.bytes);
        return 71;
    }
    char machine[256], command[512];
    bench_machine(machine, sizeof machine);
    bench_command(argc, argv, command, sizeof command);
    printf("machine  %s; folds: %s\ncommand  cured-bench %s\n%zu bytes, medians of %d rounds\n\n", machine,
           cr_cpu_isa(), command, s.bytes, s.rounds);
    printf("%-19s %-12s %7s %9s %9s %7s   %s\n", "row", "data", "threads", "GB/s", "read loop", "share",
           "low … high share, answer");
    const row *filled = NULL;
    for (int at = 0; at < ROWS; at++) {
        char text[64];
        snprintf(text, sizeof text, "%s %s", rows[at].name, cpu_data_name(rows[at].data));
        if (s.only != NULL && strstr(text, s.only) == NULL) continue;
        if (filled == NULL || filled->dtype != rows[at].dtype || filled->data != rows[at].data) {
            cpu_fill(data, s.bytes, rows[at].dtype, rows[at].data);
        }
        filled = &rows[at];
        wrong += !measure(&rows[at], data, &s, s.threads ? s.threads : 1);
        if (s.threads == 0 && cores > 1) wrong += !measure(&rows[at], data, &s, cores);
    }
    if (s.json != NULL) {
        fprintf(s.json, "%s]\n", ftell(s.json) < 1 ? "[" : "\n");
        if (fclose(s.json) != 0) wrong++;
    }
    munmap(data, s.bytes);
    if (wrong) fprintf(stderr, "cured-bench: %d rows gave a wrong answer\n", wrong);
    return wrong ? 1 : 0;
}
