/* test_axis_shapes: the plan of a reduction along an axis covers every element once, by aligned loads, and fits its scratch.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/axis/axis.h"
#include "tests/unit/check_main.h"

/* Check notes every assertion in a file, and here are millions: it hears of those that fail. */
#define holds(what)                             \
    do {                                        \
        if (!(what)) ck_abort_msg("%s", #what); \
    } while (0)

static bool is_power(uint32_t x) { return x != 0 && (x & (x - 1)) == 0; }

/* Bytes of a unit, and what lines and units of a line are then. */
static void check_units(const cr_axis_launch *at, uintptr_t address, const cr_shape *s, uint64_t size) {
    holds(at->odd == (address % size != 0));
    holds(at->rows == (s->inner == 1));
    holds(at->unit == (at->wide ? 4 : size));
    if (at->wide) holds(size < 4 && !at->odd);
    if (at->rows) {
        holds(at->units == 1);
        holds(at->line == at->unit);
    } else {
        holds(at->units * at->unit == s->inner * size);
        holds(at->line == s->inner * size);
        if (at->wide) holds(address % 4 == 0 && at->line % 4 == 0);
    }
    if (at->vector > 1) { /* every row begins with a vector, and ends with one */
        holds(at->rows);
        holds(at->vector * at->unit == CR_GPU_VECTOR);
        holds(address % CR_GPU_VECTOR == 0);
        holds(s->n * size % CR_GPU_VECTOR == 0);
    }
}

/* Lines as the kernel counts them: of rows, units. */
static uint64_t lines_of(const cr_axis_launch *at, uintptr_t address, const cr_shape *s, uint64_t size) {
    if (!at->rows || !at->wide) return s->n;
    return at->vector > 1 ? s->n * size / 4 : (s->n * size + 3) / 4 + (address % 4 != 0 || s->n * size % 4 != 0);
}

static void check_work(const cr_axis_launch *at, uint64_t lines) {
    const uint32_t team = at->p_tile * at->m, teams = CR_GPU_THREADS / team;
    holds(is_power(at->p_tile) && is_power(at->m) && is_power(at->rounds));
    holds(1u << at->p_log == at->p_tile);
    holds(1u << at->m_log == at->m);
    holds(team <= CR_GPU_THREADS);
    if (at->units > at->p_tile) { /* a block is one team */
        holds(team == CR_GPU_THREADS);
        holds(at->tiles == at->outer * ((at->units + at->p_tile - 1) / at->p_tile));
    } else {
        holds(at->tiles * teams * at->rounds >= at->outer);
        holds((at->tiles - 1) * teams * at->rounds < at->outer);
    }
    if (at->rounds > 1) { /* a warp has whole teams, and a thread of each for each round */
        holds(at->rows && at->splits == 1);
        holds(at->rounds <= at->m);
        holds(at->m <= 32);
    }
    holds(at->splits >= 1);
    holds(at->splits * at->per_split >= lines && (at->splits - 1) * at->per_split < lines);
    holds(at->per_split % ((uint64_t)at->m * at->vector) == 0);
    holds(at->per_split / at->m <= CR_AXIS_LINES);
    if (at->splits > 1) holds(at->tiles <= CR_AXIS_TILES);
    holds(at->blocks >= 1);
    holds(at->blocks <= at->tiles * at->splits);
}

static void check_scratch(const cr_axis_launch *at, const cr_shape *s, cr_dtype dtype, bool slots) {
    const uint64_t outputs = s->outer * s->inner, size = cr_dtype_size(dtype), c = size < 4 ? 4 / size : 1;
    const uint64_t list = cr_dtype_kind(dtype) == CR_KIND_FLOAT ? outputs * 4 : 0;
    holds(at->records >= sizeof(cr_axis_head) + list);
    uint64_t ends = at->records;
    if (at->splits > 1) ends += at->tiles * at->splits * (CR_GPU_THREADS / at->m) * c * CR_AXIS_RECORD;
    holds(at->scratch_bytes >= ends);
    holds(at->records % 8 == 0);
    if (slots) {
        holds(at->slots >= ends);
        holds(at->slots % 16 == 0);
        holds(at->scratch_bytes >= at->slots + outputs * CR_AXIS_SLOT);
    }
    holds(at->hard_blocks >= 1);
    holds(at->hard_blocks * (CR_GPU_THREADS / 32) <= CR_AXIS_STATES);
}

/* Rows by strips: lanes of a warp share a row, or a piece of it, and hold all of its vectors. */
static void check_strips(const cr_axis_launch *at, const cr_shape *s, cr_dtype dtype, uint32_t sms) {
    const uint64_t vectors = s->n * cr_dtype_size(dtype) / CR_GPU_VECTOR, lane = CR_AXIS_STRIP / 32;
    if (at->strips == 0) return;
    holds(cr_dtype_kind(dtype) == CR_KIND_FLOAT);
    holds(at->rows && at->vector > 1 && at->splits == 1);
    holds(s->n <= CR_AXIS_STRIP_LINES);
    holds(at->strip_log <= 5);
    holds((vectors + at->strips - 1) / at->strips <= lane << at->strip_log);
    if (at->strips > 1) holds(at->strip_log == 5);

    cr_axis_launch by = *at;
    cr_axis_launch_by_strips(&by, cr_dtype_size(dtype), sms);
    const uint32_t rows = (CR_GPU_THREADS >> by.m_log) * by.rounds, side = at->strips > 1 ? 1 : 32 >> at->strip_log;
    holds(is_power(rows) && rows <= CR_GPU_THREADS && by.m == 1u << by.m_log && by.m <= 32);
    if (at->m > 32) holds(by.tiles >= sms || rows > side * (CR_GPU_THREADS / 32)); /* there is enough for all */
    holds(rows >= side * (CR_GPU_THREADS / 32));                                   /* every warp has some */
    holds(rows / (side * (CR_GPU_THREADS / 32)) <= 1u << at->strip_log); /* a lane of a row keeps one turn's */
    holds(by.tiles * rows >= s->outer && (by.tiles - 1) * rows < s->outer);
    holds(by.blocks >= 1 && by.blocks <= by.tiles);
    holds(by.rounds >= 1 && by.rounds <= by.m); /* of the second launch's teams */
    holds(by.per_split >= at->per_split && by.per_split % ((uint64_t)by.m * by.vector) == 0);
}

static void check(uintptr_t address, cr_shape s, cr_dtype dtype, uint32_t sms) {
    for (int slots = 0; slots < 2; slots++) {
        cr_axis_launch at;
        cr_axis_launch_make(&at, address, &s, dtype, slots != 0, sms);
        uint64_t size = cr_dtype_size(dtype);
        holds(at.outer == s.outer && at.n == s.n && at.inner == s.inner);
        check_units(&at, address, &s, size);
        /* A wide row that is not aligned may need a unit more; never fewer. */
        uint64_t lines = lines_of(&at, address, &s, size);
        holds(at.splits * at.per_split >= lines);
        check_work(&at, at.rows && at.wide && at.vector == 1 ? (s.n * size + 3) / 4 + 1 : lines);
        check_scratch(&at, &s, dtype, slots != 0);
        check_strips(&at, &s, dtype, sms ? sms : 1);
    }
}

static const cr_dtype dtypes[] = {CR_U8, CR_F16, CR_I32, CR_F32, CR_F64};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

START_TEST(small_shapes) {
    for (int t = 0; t < DTYPES; t++)
        for (uintptr_t off = 0; off < 17; off += 1 + off / 9 * 6)
            for (uint64_t outer = 1; outer < 40; outer += 6)
                for (uint64_t n = 1; n < 70; n += 3)
                    for (uint64_t inner = 1; inner < 20; inner += 2)
                        check(4096 + off, (cr_shape){outer, n, inner}, dtypes[t], 132);
}
END_TEST

START_TEST(large_shapes) {
    static const uint32_t sms[] = {0, 1, 16, 108, 132, 5000};
    static const uint64_t sizes[] = {1,    2,    3,    31,    32,      100,     255,       257,
                                     1000, 1024, 4097, 65536, 1000003, 1 << 24, 3000000001};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (int t = 0; t < DTYPES; t++)
        for (int a = 0; a < SIZES * SIZES * SIZES; a++) {
            cr_shape s = {sizes[a % SIZES], sizes[a / SIZES % SIZES], sizes[a / SIZES / SIZES]};
            if (s.outer > UINT32_MAX / s.inner || s.outer * s.inner > ((uint64_t)1 << 40) / s.n) continue;
            for (size_t k = 0; k < sizeof sms / sizeof sms[0]; k++) check((uintptr_t)(a % 3) * 4, s, dtypes[t], sms[k]);
        }
}
END_TEST

/* What the speed of the usual arrays of a GiB rests on. */
START_TEST(usual_shapes) {
    cr_axis_launch at;
    const cr_shape rows = {1 << 18, 1024, 1}, tall = {1, 1024, 1 << 18}, few = {1, 1 << 18, 1024};
    cr_axis_launch_make(&at, 0, &rows, CR_F32, false, 132);
    holds(at.vector == 4);
    holds(at.splits == 1);
    holds(at.tiles >= 132 * 8);
    holds(at.strips == 1 && at.strip_log == 5);
    cr_axis_launch by = at;
    cr_axis_launch_by_strips(&by, 4, 132);
    holds(by.blocks == 132 * 2 &&
          by.tiles >= by.blocks * 3ull);      /* one wave, whose blocks have as much to do as each other */
    holds(by.m == at.m && by.rounds == by.m); /* and the second launch's threads all answer */
    const cr_shape less = {1 << 14, 1024, 1}, small = {8192, 256, 1};
    cr_axis_launch_make(&by, 0, &less, CR_F32, false, 132);
    cr_axis_launch_by_strips(&by, 4, 132);
    holds(by.tiles == by.blocks && by.blocks >= 132 * 3 / 2); /* 64 MiB: a tile each */
    cr_axis_launch_make(&at, 0, &small, CR_F32, false, 132);
    holds(at.strips == 1);
    cr_axis_launch_by_strips(&at, 4, 132);
    holds(at.blocks >= 132); /* 8 MiB keep all of a GPU busy */
    cr_axis_launch_make(&at, 0, &(cr_shape){4096, 1024, 1}, CR_F32, false, 132);
    holds(at.strips == 1 && at.m > 32); /* 16 MiB */
    cr_axis_launch_make(&at, 0, &(cr_shape){512, 1024, 1}, CR_F32, false, 132);
    holds(at.strips == 0);
    cr_axis_launch_make(&at, 0, &tall, CR_F32, false, 132);
    holds(at.splits == 1);
    holds(at.p_tile * at.unit >= 128); /* whole lines of the cache */
    holds(at.tiles >= 132 * 3);
    cr_axis_launch_make(&at, 0, &few, CR_F32, false, 132);
    holds(at.tiles * at.splits >= 132 * 2);
}
END_TEST

/* Columns of sums: not cut where there are nearly as many tiles as multiprocessors. */
START_TEST(columns_without_cuts) {
    cr_axis_launch many, few, halves;
    cr_axis_launch_make(&many, 0, &(cr_shape){1, 1001, 16384}, CR_F32, false, 132);
    cr_axis_launch_make(&few, 0, &(cr_shape){1, 16384, 1024}, CR_F32, false, 132);
    cr_axis_launch_make(&halves, 0, &(cr_shape){1, 16384, 1024}, CR_BF16, false, 132);
    holds(many.splits > 1 && few.splits > 1 && halves.splits > 1);
    holds(!cr_axis_launch_ahead(&few, 4, 132) && few.splits > 1 && !few.ahead);
    const uint32_t before = halves.splits;
    holds(cr_axis_launch_ahead(&halves, 2, 132) && halves.splits > 1 && halves.splits <= before && halves.ahead);
    holds(halves.splits * halves.per_split >= 16384);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_AHEAD);
    holds(!cr_axis_launch_ahead(&many, 4, 132));
    cr_fast_switch_off(0);
    holds(cr_axis_launch_ahead(&many, 4, 132) && many.splits == 1 && many.ahead);
    holds(many.per_split >= 1001 && many.per_split % many.m == 0 && many.blocks == many.tiles);
    holds(cr_axis_launch_ahead(&many, 4, 132) && many.splits == 1); /* it is */
    many.splits = 2;
    many.n = (uint64_t)many.m * CR_AXIS_LINES + 1;
    many.ahead = 0;
    holds(!cr_axis_launch_ahead(&many, 4, 132));
}
END_TEST

/* Without a fast way a plan covers everything likewise. */
START_TEST(ways_that_are_off) {
    for (unsigned way = CR_FAST_GPU_VECTORS; way <= CR_FAST_GPU_ALONE; way++) {
        cr_fast_switch_off(UINT64_C(1) << way);
        for (int t = 0; t < DTYPES; t++)
            for (uint64_t outer = 1; outer < 40000; outer = outer * 3 + 1)
                for (uint64_t n = 1; n < 40000; n = n * 4)
                    for (uint64_t inner = 1; inner < 5000; inner = inner * 7 + 1)
                        check(4096, (cr_shape){outer, n, inner}, dtypes[t], 132);
        cr_axis_launch rows, halves, short_rows;
        cr_axis_launch_make(&rows, 0, &(cr_shape){1 << 18, 1024, 1}, CR_F32, false, 132);
        cr_axis_launch_make(&halves, 0, &(cr_shape){1 << 18, 1024, 1}, CR_F16, false, 132);
        cr_axis_launch_make(&short_rows, 0, &(cr_shape){1 << 20, 256, 1}, CR_F32, false, 132);
        holds((rows.vector == 1) == (way == CR_FAST_GPU_VECTORS));
        holds((halves.wide == 0) == (way == CR_FAST_GPU_WIDE));
        holds((short_rows.rounds == 1) == (way == CR_FAST_GPU_ROUNDS));
    }
    cr_fast_switch_off(0);
}
END_TEST

CR_CHECK_MAIN("cuda_axis_plan") {
    tcase_add_test(tc, small_shapes);
    tcase_add_test(tc, large_shapes);
    tcase_add_test(tc, usual_shapes);
    tcase_add_test(tc, columns_without_cuts);
    tcase_add_test(tc, ways_that_are_off);
}
