/* cured-bench cpu: the CPU's folds, as shares of the best loop that only reads the same bytes in the same run.
 *
 * All read loops and all folds of a group race, so that a neighbour's noise meets all of them; figures are medians over rounds, and a
 * share is the median of the round's own shares. Every answer is compared, bit by bit, with that of the portable folds over the same
 * data cut otherwise.
 *
 * Thread: main. Owner: this file owns the partials. */
#include "bench/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "kernels/cpu/fold.h"

enum { MAX_OPS = 12 };

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
    {"sum f8_e4m3", CR_F8_E4M3, DATA_NORMAL, {CR_OP_SUM}},
    {"max f8_e4m3", CR_F8_E4M3, DATA_NORMAL, {CR_OP_MAX}},
    {"sum f8_e5m2", CR_F8_E5M2, DATA_NORMAL, {CR_OP_SUM}},
    {"sumsq f8_e5m2", CR_F8_E5M2, DATA_NORMAL, {CR_OP_SUMSQ}},
    {"sum+max i32", CR_I32, DATA_BITS, {CR_OP_SUM, CR_OP_MAX}},
    {"dot f32", CR_F32, DATA_NORMAL, {CR_OP_DOT}},
    {"dot f64", CR_F64, DATA_NORMAL, {CR_OP_DOT}},
    {"dot f64", CR_F64, DATA_BITS, {CR_OP_DOT}},
    {"dot bf16", CR_BF16, DATA_NORMAL, {CR_OP_DOT}},
    {"dot i32", CR_I32, DATA_BITS, {CR_OP_DOT}},
    {"dot i64", CR_I64, DATA_BITS, {CR_OP_DOT}},
    {"sqdist f32", CR_F32, DATA_NORMAL, {CR_OP_SQDIST}},
    {"average f32", CR_F32, DATA_NORMAL, {CR_OP_AVERAGE}},
    {"digest f32", CR_F32, DATA_BITS, {CR_OP_DIGEST}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static cpu_row row_at(int at) { return (cpu_row){rows[at].name, rows[at].dtype, rows[at].data}; }

/* A group while it races: the loops are its first contestants. */
typedef struct group {
    const uint8_t *data;
    size_t bytes;
    int threads, floors;
    const cpu_floor *loops[CPU_FLOORS];
    const int *rows;
    const row *row; /* that is folded */
    cr_partial partials[BENCH_MAX_THREADS], expected[ROWS];
    bool wrong[ROWS];
} group;

static void begin_fold(void *context, int id) {
    group *g = context;
    uint32_t families = 0, wants = 0;
    for (int i = 0; i < MAX_OPS && g->row->ops[i]; i++) {
        families |= cr_op_needs(g->row->ops[i], g->row->dtype);
        wants |= cr_op_wants(g->row->ops[i]);
    }
    cr_partial_init(&g->partials[id], g->row->dtype, families);
    cr_partial_want(&g->partials[id], wants);
}

/* Of an op of two arrays the second is the other half of the bytes. */
static void fold_piece(void *context, int id, size_t at, size_t bytes) {
    group *g = context;
    const size_t size = cr_dtype_size(g->row->dtype);
    if (cr_op_inputs(g->row->ops[0]) == 2) {
        const cr_view view = {.data = g->data + at / 2, .second = g->data + (g->bytes + at) / 2};
        cr_cpu_fold_view(&g->partials[id], &view, bytes / 2 / size, at / 2 / size);
        return;
    }
    cr_cpu_fold(&g->partials[id], g->data + at, bytes / size, at / size);
}

/* Seconds; the answer is in the first partial. */
static double fold(group *g, int number, size_t claim) {
    g->row = &rows[g->rows[number]];
    for (int i = 0; i < g->threads; i++) begin_fold(g, i);
    cpu_walk walk = {.fold = fold_piece, .context = g, .bytes = g->bytes, .claim = claim};
    const double seconds = cpu_walk_run(&walk, g->threads);
    for (int i = 1; i < g->threads; i++) cr_partial_merge(&g->partials[0], &g->partials[i]);
    return seconds;
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

static double measure(void *context, int which) {
    group *g = context;
    const int number = which - g->floors;
    if (number < 0) return cpu_read(g->loops[which], g->data, g->bytes, g->threads);
    const double seconds = fold(g, number, CPU_CLAIM);
    if (!same_answers(g->row, &g->partials[0], &g->expected[number])) g->wrong[number] = true;
    return seconds;
}

/* A loop is no row of the JSON. */
static void print_row(cpu_settings *s, const group *g, const bench_race *race, int which, int best) {
    const int number = which - g->floors;
    const bool is_loop = number < 0, wrong = !is_loop && g->wrong[number];
    const row *r = &rows[g->rows[is_loop ? 0 : number]];
    const double gigabytes = (double)g->bytes * 1e-9;
    (is_loop ? bench_table_text : bench_table_row)(
        &s->table, BENCH_CELLS(CELL_TEXT("row", "row", -13, is_loop ? "read loop" : r->name),
                               CELL_TEXT("data", "data", -12, cpu_data_name(r->data)),
                               CELL_FIGURE("threads", "threads", 7, 0, g->threads),
                               CELL_FIGURE("gb_per_s", "GB/s", 9, 2, gigabytes / bench_race_of(race, which).median),
                               CELL_SPREAD("share", "share", 7, 3, bench_race_ratio(race, best, which)),
                               CELL_TEXT("floor", NULL, 0, g->loops[best]->name),
                               CELL_NOTE("floor_gb_per_s", gigabytes / bench_race_of(race, best).median),
                               CELL_TRUTH("right", !wrong),
                               CELL_TEXT(NULL, "answer", 0,
                                         is_loop ? g->loops[which]->name
                                         : wrong ? "WRONG"
                                                 : "ok")));
}

static int run(cpu_settings *s, const uint8_t *data, int threads, const int *numbers, int count) {
    static group g;
    int wrong = 0;
    g = (group){.data = data, .bytes = s->bytes, .threads = threads, .rows = numbers};
    g.floors = cpu_floors_here(g.loops);
    const int plain = g.floors;
    const cpu_floor *pages = cpu_floor_pages();
    if (pages != NULL) g.loops[g.floors++] = pages; /* beside the others; never what shares are of */
    cr_cpu_select("portable", NULL);
    for (int i = 0; i < count; i++) {
        fold(&g, i, 3 * CPU_CLAIM / 2);
        g.expected[i] = g.partials[0];
    }
    cr_cpu_select(s->isa, NULL);
    bench_race race = {.count = g.floors + count, .rounds = s->rounds, .measure = measure, .context = &g};
    if (!bench_race_run(&race)) exit(71);
    const int best = bench_race_best(&race, plain);
    print_row(s, &g, &race, best, best);
    if (pages != NULL) print_row(s, &g, &race, plain, best);
    for (int i = 0; i < count; i++) {
        print_row(s, &g, &race, g.floors + i, best);
        wrong += g.wrong[i];
    }
    bench_race_end(&race);
    return wrong;
}

int bench_cpu(int argc, char **argv) {
    return cpu_bench_run(&(cpu_bench){.rows = ROWS, .row = row_at, .together = true, .run = run}, argc, argv);
}
