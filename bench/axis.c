/* cured-bench axis: reductions along one axis, as shares of the best loop that only reads the same bytes in the same run.
 *
 * Small blocks are answered on the spot, a claim of them at a time; a block larger than a claim is folded into one state a
 * worker, which are merged and finished within the measured time. Answers are compared, bit by bit, with those of the
 * portable folds over other claims. Of a masked row half the elements count, at random; its GB/s count the mask's bytes, its share
 * does not. Otherwise as `cured-bench cpu`.
 *
 * Thread: main. Owner: this file owns the answers. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"

enum { COLUMNS_CLAIM = 4 << 20, MOST_CLAIM = 16 << 20 };

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
    {"axis0 var f64 1024", CR_F64, DATA_NORMAL, CR_OP_VAR, 1024, 0},
    {"axis0 norm2 f64", CR_F64, DATA_NORMAL, CR_OP_NORM2, 1024, 0},
    {"axis0 var f64 1024", CR_F64, DATA_BITS, CR_OP_VAR, 1024, 0},
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
    {"axis0 var i32 1024", CR_I32, DATA_BITS, CR_OP_VAR, 1024, 0},
    {"axis0 norm2 i32", CR_I32, DATA_BITS, CR_OP_NORM2, 1024, 0},
    {"axis0 var i64 1024", CR_I64, DATA_BITS, CR_OP_VAR, 1024, 0},
    {"axis0 var u8 1024", CR_U8, DATA_BITS, CR_OP_VAR, 1024, 0},
    {"axis1 max u8 1024", CR_U8, DATA_BITS, CR_OP_MAX, 1024, 1},
    {"rows sum u8 32", CR_U8, DATA_BITS, CR_OP_SUM, 32, 1},
    {"rows var i32 32", CR_I32, DATA_BITS, CR_OP_VAR, 32, 1},
    {"rows norm2 u8 32", CR_U8, DATA_BITS, CR_OP_NORM2, 32, 1},
    {"axis0 dot f32 1024", CR_F32, DATA_NORMAL, CR_OP_DOT, 1024, 0},
    {"axis0 sqdist f32", CR_F32, DATA_NORMAL, CR_OP_SQDIST, 1024, 0},
    {"axis0 dot f64 1024", CR_F64, DATA_NORMAL, CR_OP_DOT, 1024, 0},
    {"axis0 dot f16 1024", CR_F16, DATA_NORMAL, CR_OP_DOT, 1024, 0},
    {"axis0 dot i16 1024", CR_I16, DATA_BITS, CR_OP_DOT, 1024, 0},
    {"rows dot f32 32", CR_F32, DATA_NORMAL, CR_OP_DOT, 32, 1},
    {"rows dot f16 32", CR_F16, DATA_NORMAL, CR_OP_DOT, 32, 1},
    {"rows dot i16 32", CR_I16, DATA_BITS, CR_OP_DOT, 32, 1},
    {"rows dot f32 mask", CR_F32, DATA_NORMAL, CR_OP_DOT, 32, 1},
    {"axis0 dot f32 mask", CR_F32, DATA_NORMAL, CR_OP_DOT, 1024, 0},
    {"axis1 sum f32 mask", CR_F32, DATA_NORMAL, CR_OP_SUM, 1024, 1},
    {"axis0 sum f32 mask", CR_F32, DATA_NORMAL, CR_OP_SUM, 1024, 0},
    {"axis0 mean f32 mask", CR_F32, DATA_NORMAL, CR_OP_MEAN, 1024, 0},
    {"axis0 var f32 mask", CR_F32, DATA_NORMAL, CR_OP_VAR, 1024, 0},
    {"axis0 max f32 mask", CR_F32, DATA_NORMAL, CR_OP_MAX, 1024, 0},
    {"rows sum f32 mask", CR_F32, DATA_NORMAL, CR_OP_SUM, 32, 1},
    {"rows mean f32 mask", CR_F32, DATA_NORMAL, CR_OP_MEAN, 32, 1},
    {"axis0 sum f64 mask", CR_F64, DATA_NORMAL, CR_OP_SUM, 1024, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0], MASKED = 10 /* the last ones */ };

static bool is_masked(const row *r) { return r - rows >= ROWS - MASKED; }

static cpu_row row_at(int at) { return (cpu_row){rows[at].name, rows[at].dtype, rows[at].data}; }

/* A row while it races: the loops are the first contestants, the reduction is the last. */
typedef struct walk {
    cr_axis_spec spec;
    bool columns, wrong;
    const uint8_t *data, *second; /* second: NULL where the op takes one array */
    cr_mask mask;
    uint8_t *out, *expected;
    size_t bytes, claim, out_bytes;
    int threads, floors;
    const cpu_floor *loops[CPU_FLOORS];
    atomic_int failed;
    void *states[BENCH_MAX_THREADS], *scratch[BENCH_MAX_THREADS];
} walk;

static size_t answer_bytes(const walk *w) {
    return cr_dtype_size(cr_axis_dtype(w->spec.ops[0], w->spec.dtype, &w->spec.finish));
}

static void begin(void *context, int id) {
    walk *w = context;
    if (w->columns) cr_columns_init(&w->spec, w->states[id]);
}

static void fold_piece(void *context, int id, size_t at, size_t bytes) {
    walk *w = context;
    const cr_shape *shape = &w->spec.shape;
    const size_t size = cr_dtype_size(w->spec.dtype), block = (size_t)(shape->n * shape->inner) * size;
    cr_view view = {.data = w->data + at, .mask = w->mask, .second = w->second};
    if (w->columns) {
        cr_cpu_columns_fold_view(&w->spec, w->states[id], &view, bytes / size, at / size);
        return;
    }
    view.mask = cr_mask_from(w->mask, at / size);
    view.second = cr_second_from(w->second, at);
    const uint64_t first = at / block;
    void *out[] = {w->out + first * shape->inner * answer_bytes(w)};
    if (cr_cpu_axis_blocks_view(&w->spec, &view, first, bytes / block, w->scratch[id], out, NULL) != CR_OK)
        atomic_store(&w->failed, 1);
}

static void *room(size_t bytes) {
    void *p = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
    if (p == NULL) exit(71);
    memset(p, 0, bytes); /* touched before, as the daemon's pools are */
    return p;
}

/* A mask of half the elements, for a row that has one. */
static cr_mask mask_of(const row *r, size_t elements) {
    uint64_t state = 0x9e3779b97f4a7c15;
    uint8_t *data = is_masked(r) ? room(elements) : NULL;
    for (size_t i = 0; is_masked(r) && i < elements; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = state >> 63;
    }
    return (cr_mask){.data = data, .kind = is_masked(r) ? CR_MASK_BYTES : CR_MASK_NONE};
}

/* The array turned by one element, for an op of two arrays. */
static uint8_t *second_of(const row *r, const uint8_t *data, size_t bytes) {
    const size_t size = cr_dtype_size(r->dtype);
    if (cr_op_inputs(r->op) == 1) return NULL;
    uint8_t *second = room(bytes);
    memcpy(second, data + size, bytes - size);
    memcpy(second + bytes - size, data, size);
    return second;
}

/* Seconds, with the merging of the workers' states. */
static double reduce(walk *w, size_t claim) {
    cpu_walk run = {.begin = begin, .fold = fold_piece, .context = w, .bytes = w->bytes, .claim = claim};
    for (int i = 0; i < w->threads; i++) {
        w->states[i] = w->columns ? room(cr_columns_bytes(&w->spec)) : NULL;
        w->scratch[i] = w->columns ? NULL : room(cr_axis_scratch(&w->spec));
    }
    double seconds = cpu_walk_run(&run, w->threads);
    const double merging = bench_now();
    if (w->columns) {
        void *out[] = {w->out};
        for (int i = 1; i < w->threads; i++) cr_columns_merge(&w->spec, w->states[0], w->states[i]);
        if (cr_columns_finish(&w->spec, w->states[0], 0, 0, w->spec.shape.inner, out, NULL) != CR_OK) w->failed = 1;
        seconds += bench_now() - merging;
    }
    for (int i = 0; i < w->threads; i++) {
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
                             .ops = {r->op},
                             .mask_line = is_masked(r) ? inner : 0,
                             .second_line = cr_op_inputs(r->op) == 2 ? inner : 0};
    w->columns = block > COLUMNS_CLAIM;
    if (w->columns) w->spec.shape.outer = 1;
    w->bytes = w->spec.shape.outer * block;
    size_t lines = (size_t)inner * size * 16;
    if (claim == 0) claim = lines < COLUMNS_CLAIM ? COLUMNS_CLAIM : lines < MOST_CLAIM ? lines : MOST_CLAIM;
    w->claim = w->columns ? claim : CPU_CLAIM / block * block;
    if (w->claim == 0) w->claim = block;
}

static double measure(void *context, int which) {
    walk *w = context;
    if (which < w->floors) return cpu_read(w->loops[which], w->data, w->bytes, w->threads);
    memset(w->out, 0xa5, w->out_bytes);
    const double seconds = reduce(w, w->claim);
    if (memcmp(w->out, w->expected, w->out_bytes) != 0) w->wrong = true;
    return seconds;
}

static void print_row(cpu_settings *s, const walk *w, const row *r, const bench_race *race) {
    const int best = bench_race_best(race, w->floors);
    const double gigabytes = (double)w->bytes * 1e-9, arrays = cr_op_inputs(r->op);
    const double all = gigabytes * (arrays + (is_masked(r) ? 1 / (double)cr_dtype_size(r->dtype) : 0));
    bench_table_row(
        &s->table,
        BENCH_CELLS(CELL_TEXT("row", "row", -19, r->name), CELL_TEXT("data", "data", -12, cpu_data_name(r->data)),
                    CELL_FIGURE("threads", "threads", 7, 0, w->threads), CELL_NOTE("n", w->spec.shape.n),
                    CELL_NOTE("inner", w->spec.shape.inner),
                    CELL_FIGURE("gb_per_s", "GB/s", 9, 2, all / bench_race_of(race, w->floors).median),
                    CELL_FIGURE("floor_gb_per_s", "read loop", 9, 2, gigabytes / bench_race_of(race, best).median),
                    CELL_SPREAD("share", "share", 7, 3, bench_race_ratio(race, best, w->floors)),
                    CELL_TRUTH("right", !w->wrong), CELL_TEXT(NULL, "answer", 0, w->wrong ? "WRONG" : "ok")));
}

static int run(cpu_settings *s, const uint8_t *data, int threads, const int *numbers, int count) {
    static walk w;
    const row *r = &rows[numbers[0]];
    (void)count; /* one by one */
    w = (walk){.data = data, .threads = threads};
    set_up(&w, r, s->bytes, s->claim);
    w.mask = mask_of(r, w.bytes / cr_dtype_size(r->dtype));
    w.second = second_of(r, data, w.bytes);
    w.out_bytes = w.spec.shape.outer * w.spec.shape.inner * answer_bytes(&w);
    w.expected = w.out = room(w.out_bytes);
    cr_cpu_select("portable", NULL);
    reduce(&w, w.columns ? 3 * w.claim / 2 : 3 * w.claim);
    w.out = room(w.out_bytes);
    w.floors = cpu_floors_here(w.loops);
    cr_cpu_select(s->isa, NULL);
    bench_race race = {.count = w.floors + 1, .rounds = s->rounds, .measure = measure, .context = &w};
    if (!bench_race_run(&race)) exit(71);
    w.wrong = w.wrong || w.failed;
    print_row(s, &w, r, &race);
    bench_race_end(&race);
    free(w.expected);
    free(w.out);
    free((void *)(uintptr_t)w.mask.data);
    free((void *)(uintptr_t)w.second);
    return w.wrong;
}

int bench_axis(int argc, char **argv) {
    return cpu_bench_run(&(cpu_bench){.rows = ROWS, .row = row_at, .claims = true, .run = run}, argc, argv);
}
