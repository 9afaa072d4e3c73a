/* axis_plan: how a reduction along an axis is laid over a GPU. A pure function, tested without one.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/cuda/axis.h"

enum {
    UNITS_EACH = 32,  /* of a short row, a thread's, about: what a row costs beside is shared by few threads */
    UNITS_LEAST = 16, /* of a thread, before lines are cut among more */
    SEGMENT = 8,      /* neighbours in a line or row, so that whole sectors are read */
    STRIP = 32,       /* units of a line that a block takes when it takes several lines */
    RESIDENT = 2048,  /* threads on a multiprocessor */
    BLOCKS_PER_SM = 8,
    ROUNDS = 4, /* tiles of a block, at least, where there are many */
};

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* The largest power of two up to x, at least 1. */
static uint32_t power(uint64_t x, uint32_t most) {
    uint32_t p = 1;
    while (p < most && (uint64_t)p * 2 <= x) p *= 2;
    return p;
}

/* Threads of a row: few, but neighbours, for short ones; a warp, and where there are few rows up to a block, for long ones. */
static uint32_t row_threads(uint64_t outer, uint64_t lines, uint64_t threads) {
    uint32_t m = power(lines / UNITS_EACH, 32), least = power(lines, SEGMENT);
    if (m < least) m = least;
    while (m < CR_GPU_THREADS && outer < threads / m && lines / (2 * m) >= UNITS_LEAST) m *= 2;
    return m;
}

static void columns(cr_axis_launch *at, uint64_t lines, uint64_t threads) {
    uint64_t all = at->outer * at->units;
    at->p_tile = power(at->units, CR_GPU_THREADS);
    if (at->p_tile < at->units && at->p_tile < CR_GPU_THREADS) at->p_tile *= 2;
    at->m = 1;
    if (all < threads / 2) {
        if (at->p_tile > STRIP) at->p_tile = STRIP;
        while (at->m * at->p_tile < CR_GPU_THREADS && all < threads / at->m && lines / (2 * at->m) >= UNITS_LEAST)
            at->m *= 2;
    }
    while (at->m * at->p_tile < SEGMENT && lines >= 2 * at->m) at->m *= 2;
    /* Lines of several tiles: a block is one team. */
    if (at->units > at->p_tile) at->p_tile = CR_GPU_THREADS / at->m;
    while (at->units > at->p_tile && at->m > 1) {
        at->m /= 2;
        at->p_tile *= 2;
        if (at->units > STRIP) break;
    }
    if (at->units > at->p_tile && at->p_tile * at->m < CR_GPU_THREADS) at->p_tile = CR_GPU_THREADS / at->m;
}

static void split(cr_axis_launch *at, uint64_t lines, uint32_t multiprocessors) {
    uint64_t wanted = (uint64_t)multiprocessors * BLOCKS_PER_SM, most = lines / ((uint64_t)at->m * UNITS_LEAST),
             splits = 1;
    if (at->tiles < wanted) splits = divide_up(wanted, at->tiles);
    if (splits > most) splits = most;
    uint64_t least = divide_up(lines, (uint64_t)at->m * CR_AXIS_LINES);
    if (splits < least) splits = least;
    if (splits == 0) splits = 1;
    at->per_split = divide_up(divide_up(lines, splits), at->m) * at->m;
    at->splits = (uint32_t)divide_up(lines, at->per_split);
    uint64_t blocks = at->tiles * at->splits;
    if (at->splits == 1 && blocks > wanted * ROUNDS) blocks = wanted * ROUNDS;
    at->blocks = blocks > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)blocks;
}

void cr_axis_launch_make(cr_axis_launch *at, uintptr_t address, const cr_shape *shape, cr_dtype dtype,
                         uint32_t multiprocessors) {
    const uint64_t size = cr_dtype_size(dtype);
    if (multiprocessors == 0) multiprocessors = 1;
    if (multiprocessors > CR_AXIS_STATES / 32) multiprocessors = CR_AXIS_STATES / 32;
    *at = (cr_axis_launch){.outer = shape->outer, .n = shape->n, .inner = shape->inner, .rows = shape->inner == 1};
    at->odd = address % size != 0;
    at->wide = size < 4 && !at->odd && (at->rows || (address % 4 == 0 && shape->inner * size % 4 == 0));
    at->unit = at->wide ? 4 : (uint32_t)size;
    at->units = at->wide && !at->rows ? shape->inner * size / 4 : shape->inner;
    at->line = at->wide && at->rows ? 4 : shape->inner * size;
    uint64_t threads = (uint64_t)multiprocessors * RESIDENT, lines = shape->n;
    if (at->rows) {
        if (at->wide) lines = divide_up(shape->n * size, 4) + 1; /* where a row does not begin with a unit */
        at->p_tile = 1;
        at->m = row_threads(shape->outer, lines, threads);
    } else {
        columns(at, lines, threads);
    }
    uint32_t teams = CR_GPU_THREADS / (at->p_tile * at->m);
    at->tiles = at->units > at->p_tile ? at->outer * divide_up(at->units, at->p_tile) : divide_up(at->outer, teams);
    split(at, lines, multiprocessors);

    uint64_t outputs = shape->outer * shape->inner;
    at->hard_splits = 1;
    if (outputs <= CR_AXIS_STATES) at->hard_splits = (uint32_t)divide_up(shape->n, CR_AXIS_HARD_LINES);
    if (at->hard_splits == 0) at->hard_splits = 1;
    at->hard_lines = divide_up(shape->n, at->hard_splits);
    uint64_t warps = outputs * at->hard_splits, most = (uint64_t)multiprocessors * 4;
    at->hard_blocks = (uint32_t)(divide_up(warps, 8) < most ? divide_up(warps, 8) : most);

    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    at->records = sizeof(cr_axis_head) + (floats ? (outputs * 4 + 63) / 64 * 64 : 0);
    at->scratch_bytes = at->records;
    if (at->splits > 1) {
        uint64_t each = (uint64_t)CR_GPU_THREADS / at->m * (size < 4 ? 4 / size : 1) * CR_AXIS_RECORD;
        at->scratch_bytes += at->tiles * at->splits * each;
    }
}
