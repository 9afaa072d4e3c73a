/* shapes: how a reduction along an axis is laid over a GPU. A pure function, tested without one.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/fast.h"
#include "kernels/cuda/axis/axis.h"

enum {
    UNITS_EACH = 128,         /* of a short row, a thread's, about: what a row costs beside is shared by few threads */
    UNITS_EACH_MOMENTS = 256, /* where a row costs more beside */
    UNITS_ALONE = 32,         /* of a row that a thread takes alone */
    UNITS_MANY = 1024,        /* of a row: of shorter ones half as many a thread */
    UNITS_LEAST = 16,         /* of a thread, before lines are cut among more */
    SEGMENT = 8,              /* neighbours in a line or row, so that whole sectors are read */
    STRIP = 32,               /* units of a line that a block takes when it takes several lines */
    RESIDENT = 2048,          /* threads on a multiprocessor */
    BLOCKS_PER_SM = 4,
    FLOAT_BLOCKS_PER_SM = 3,
    WIDE_BLOCKS_PER_SM = 2, /* of 64-bit floats */
    AHEAD_BLOCKS_PER_SM = 2,
    FEW_SPLITS = 4,        /* that leave too many idle, were they rounded down */
    WAVES = 6,             /* of blocks, where there is so much: what the last leaves idle is then little */
    WAVES_OF_ANSWERS = 2,  /* where an answer is much work: it pays that more are made at once */
    BLOCK_BYTES = 1 << 17, /* that a block takes, at least */
    STRIP_BLOCKS_PER_SM = 2,
    STRIP_ANSWERS = 4, /* pieces that a tile's answers cost a warp, about */
};

/* Bytes of a tile of strips at most. Tests have less, so that a block of a small array has several. */
#if !defined(CR_STRIP_TILE)
#define CR_STRIP_TILE (1 << 20)
#endif

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static uint32_t log_of(uint32_t power_of_two) {
    uint32_t log = 0;
    while (power_of_two >> log > 1) log++;
    return log;
}

/* The largest power of two up to x, at least 1. */
static uint32_t power(uint64_t x, uint32_t most) {
    uint32_t p = 1;
    while (p < most && (uint64_t)p * 2 <= x) p *= 2;
    return p;
}

/* Threads of a row: few, but neighbours, for short ones; a warp, and where there are few rows up to a block, for long ones. Rows
 * of a team in turn where there are many: the last step, which is one thread's of each row, is then that of many at once. */
static void rows(cr_axis_launch *at, uint64_t lines, uint64_t threads, uint32_t multiprocessors, bool answers,
                 bool moments) {
    const uint32_t neighbours = SEGMENT / at->vector, waves = answers ? WAVES_OF_ANSWERS : WAVES;
    uint32_t m = power(lines / (moments ? UNITS_EACH_MOMENTS : UNITS_EACH), 32),
             least = lines <= UNITS_ALONE ? 1 : power(lines / at->vector, neighbours);
    if (!moments && lines <= UNITS_MANY && m < SEGMENT) m = power(2 * lines / UNITS_EACH, SEGMENT);
    if (m < least) m = least;
    while (m < CR_GPU_THREADS && at->outer < threads / m && lines / (2 * m) >= UNITS_LEAST) m *= 2;
    at->p_tile = 1;
    at->m = m;
    if (m <= 32 && lines <= CR_AXIS_STRIP_LINES && cr_fast_on(CR_FAST_GPU_ROUNDS))
        at->rounds = power(at->outer / (multiprocessors * waves * FLOAT_BLOCKS_PER_SM * (CR_GPU_THREADS / m)), m);
}

/* enough: columns that are left whole. */
static void columns(cr_axis_launch *at, uint64_t lines, uint64_t threads, uint64_t enough) {
    uint64_t all = at->outer * at->units;
    at->p_tile = power(at->units, CR_GPU_THREADS);
    if (at->p_tile < at->units && at->p_tile < CR_GPU_THREADS) at->p_tile *= 2;
    at->m = 1;
    if (all < enough) {
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

static void split(cr_axis_launch *at, uint64_t lines, uint64_t size, uint64_t wanted) {
    uint64_t most = lines / ((uint64_t)at->m * UNITS_LEAST), splits = 1;
    /* All that are resident at once, or some waves of them. */
    if (at->tiles < wanted)
        splits = at->tiles * FEW_SPLITS <= wanted ? wanted / at->tiles : divide_up(wanted, at->tiles);
    if (splits > most) splits = most;
    uint64_t least = divide_up(lines, (uint64_t)at->m * CR_AXIS_LINES);
    if (splits < least) splits = least;
    if (splits == 0) splits = 1;
    if (at->rounds > 1) splits = 1;
    at->per_split = divide_up(divide_up(lines, splits), (uint64_t)at->m * at->vector) * at->m * at->vector;
    at->splits = (uint32_t)divide_up(lines, at->per_split);
    uint64_t blocks = at->tiles * at->splits, enough = at->outer * at->n * at->inner / BLOCK_BYTES * size;
    if (enough < wanted * WAVES) enough = wanted * WAVES;
    if (at->splits == 1 && blocks > enough) blocks = enough;
    at->blocks = blocks > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)blocks;
}

/* Rows of a tile of strips, at least: those that the warps of a block take at once. */
static uint32_t strip_side(const cr_axis_launch *at) {
    return (at->strips > 1 ? 1 : 32 >> at->strip_log) * (CR_GPU_THREADS / 32);
}

/* Lanes share a row so that each has no more vectors than it holds, as few as do. Rows of more than a warp go by strips where each
 * multiprocessor has a block of them. */
static void strips(cr_axis_launch *at, uint64_t size, uint32_t multiprocessors) {
    const uint64_t vectors = at->n * size / CR_GPU_VECTOR;
    if (!at->rows || at->vector == 1 || at->splits != 1 || at->n > CR_AXIS_STRIP_LINES) return;
    at->strips = (uint32_t)divide_up(vectors, CR_AXIS_STRIP);
    while (at->strip_log < 5 && vectors > (uint64_t)CR_AXIS_STRIP / 32 << at->strip_log) at->strip_log++;
    if (at->m > 32 && divide_up(at->outer, strip_side(at)) < multiprocessors) at->strips = at->strip_log = 0;
}

/* One wave of blocks. Of a tile's rows there are as many as make the busiest warp cheapest: it has so many pieces, and the answers of so
 * many tiles. */
void cr_axis_launch_by_strips(cr_axis_launch *at, uint64_t size, uint32_t multiprocessors) {
    const uint32_t least = strip_side(at);
    const uint64_t row = at->n * size, resident = (uint64_t)multiprocessors * STRIP_BLOCKS_PER_SM;
    uint64_t best = UINT64_MAX;
    uint32_t many = least;
    for (uint32_t k = least; k <= CR_GPU_THREADS && (k == least || k * row <= CR_STRIP_TILE); k *= 2) {
        const uint64_t tiles = divide_up(divide_up(at->outer, k), resident),
                       cost = tiles * (k / least * at->strips + STRIP_ANSWERS);
        if (cost <= best) best = cost, many = k;
    }
    /* The list has outputs of 64-bit elements: the second launch knows no teams. Of others each team has a row or more. */
    if (size == 8 || many * at->m < CR_GPU_THREADS) at->m = CR_GPU_THREADS / many;
    if (at->m > 32) at->m = 32; /* rows in turn are for teams within a warp */
    at->rounds = many * at->m / CR_GPU_THREADS;
    at->tiles = divide_up(at->outer, many);
    at->blocks = (uint32_t)(resident > at->tiles ? at->tiles : resident);
    if (size != 8 && at->hard_blocks > at->tiles) at->hard_blocks = (uint32_t)at->tiles;
    at->per_split = divide_up(at->per_split, (uint64_t)at->m * at->vector) * at->m * at->vector;
    at->m_log = log_of(at->m);
}

/* Columns that are cut: with a block for nearly each multiprocessor loads that run ahead are faster without cuts; otherwise elements of two
 * bytes have fewer cuts for them, because fewer of their blocks are resident. */
bool cr_axis_launch_ahead(cr_axis_launch *at, uint64_t size, uint32_t multiprocessors) {
    if (at->splits == 1) return at->ahead;
    if (!at->together || at->rounds != 1 || !cr_fast_on(CR_FAST_GPU_AHEAD)) return false;
    if (at->tiles >= multiprocessors - multiprocessors / 10 && at->n <= (uint64_t)at->m * CR_AXIS_LINES) {
        at->splits = 1;
        at->per_split = divide_up(at->n, at->m) * at->m;
        at->blocks = (uint32_t)at->tiles;
    } else if (size == 2) {
        split(at, at->n, size, (uint64_t)multiprocessors * AHEAD_BLOCKS_PER_SM);
    } else {
        return false;
    }
    at->ahead = 1;
    return true;
}

/* resident: threads on a multiprocessor. */
static void make(cr_axis_launch *at, uintptr_t address, const cr_shape *shape, cr_dtype dtype, bool slots,
                 uint32_t multiprocessors, uint32_t resident) {
    const uint64_t size = cr_dtype_size(dtype);
    const bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT, wide = floats && size == 8;
    if (multiprocessors == 0) multiprocessors = 1;
    if (multiprocessors > CR_AXIS_STATES / 32) multiprocessors = CR_AXIS_STATES / 32;
    *at = (cr_axis_launch){.outer = shape->outer, .n = shape->n, .inner = shape->inner, .rows = shape->inner == 1};
    at->odd = address % size != 0;
    at->wide = cr_fast_on(CR_FAST_GPU_WIDE) && size < 4 && !at->odd &&
               (at->rows || (address % 4 == 0 && shape->inner * size % 4 == 0));
    at->unit = at->wide ? 4 : (uint32_t)size;
    at->units = at->wide && !at->rows ? shape->inner * size / 4 : shape->inner;
    at->line = at->wide && at->rows ? 4 : shape->inner * size;
    at->rounds = at->vector = 1;
    if (at->rows && !at->odd && address % CR_GPU_VECTOR == 0 && shape->n * size % CR_GPU_VECTOR == 0 &&
        (at->wide || size >= 4) && cr_fast_on(CR_FAST_GPU_VECTORS))
        at->vector = CR_GPU_VECTOR / at->unit;
    uint64_t threads = (uint64_t)multiprocessors * resident, lines = shape->n;
    if (at->rows) {
        if (at->wide)
            lines = divide_up(shape->n * size, 4) + (at->vector == 1); /* where a row does not begin with a unit */
        rows(at, lines, threads, multiprocessors, slots, slots && floats && size >= 4);
    } else {
        columns(at, lines, threads, (uint64_t)multiprocessors * RESIDENT / (wide ? 4 : 2));
    }
    const bool aligned = !at->odd && address % CR_GPU_VECTOR == 0 && at->line % CR_GPU_VECTOR == 0;
    at->together = !at->rows && at->p_tile >= 32 && aligned && (size >= 4 || at->wide);
    uint32_t teams = CR_GPU_THREADS / (at->p_tile * at->m);
    at->tiles = at->units > at->p_tile ? at->outer * divide_up(at->units, at->p_tile)
                                       : divide_up(at->outer, (uint64_t)teams * at->rounds);
    at->p_log = log_of(at->p_tile);
    at->m_log = log_of(at->m);
    const uint32_t blocks = wide ? WIDE_BLOCKS_PER_SM : floats ? FLOAT_BLOCKS_PER_SM : BLOCKS_PER_SM;
    split(at, lines, size, (uint64_t)multiprocessors * blocks);
    at->ahead = at->splits == 1 && at->rounds == 1 && (at->together || (at->vector > 1 && at->m >= SEGMENT)) &&
                cr_fast_on(CR_FAST_GPU_AHEAD);

    if (floats && cr_fast_on(CR_FAST_GPU_STRIPS)) strips(at, size, multiprocessors);

    uint64_t outputs = shape->outer * shape->inner;
    const uint64_t most = (uint64_t)multiprocessors * (size == 8 ? BLOCKS_PER_SM : FLOAT_BLOCKS_PER_SM),
                   pieces = divide_up(shape->n, CR_AXIS_HARD_LINES);
    at->hard_blocks = (uint32_t)(outputs >= most * 8 || pieces >= most * 8 || outputs * pieces >= most * 8
                                     ? most
                                     : divide_up(outputs * pieces, 8));
    if (at->hard_blocks == 0) at->hard_blocks = 1;

    at->records = sizeof(cr_axis_head) + (floats ? (outputs * 4 + 63) / 64 * 64 : 0);
    at->scratch_bytes = at->records;
    if (at->splits > 1) {
        uint64_t each = (uint64_t)CR_GPU_THREADS / at->m * (size < 4 ? 4 / size : 1) * CR_AXIS_RECORD;
        at->scratch_bytes += at->tiles * at->splits * each;
    }
    at->slots = (at->scratch_bytes + 63) / 64 * 64;
    if (slots) at->scratch_bytes = at->slots + outputs * CR_AXIS_SLOT;
}

/* Its threads are few, and what each costs at its end is much. It has no slots. */
void cr_axis_launch_for_quarters(cr_axis_launch *at, uintptr_t address, uint32_t multiprocessors) {
    const cr_shape shape = {at->outer, at->n, at->inner};
    make(at, address, &shape, CR_F64, true, multiprocessors, WIDE_BLOCKS_PER_SM * CR_GPU_THREADS);
    at->scratch_bytes = at->slots;
}

void cr_axis_launch_make(cr_axis_launch *at, uintptr_t address, const cr_shape *shape, cr_dtype dtype, bool slots,
                         uint32_t multiprocessors) {
    make(at, address, shape, dtype, slots, multiprocessors, RESIDENT);
    if (dtype != CR_F64) return;
    cr_axis_launch quarters = *at;
    cr_axis_launch_for_quarters(&quarters, address, multiprocessors);
    if (quarters.scratch_bytes > at->scratch_bytes) at->scratch_bytes = quarters.scratch_bytes;
}
