/* order: quantiles of elements in memory. Few elements are copied, as keys, and narrowed down digit by digit; many are read several
 * times where they lie (family/quantile.h). Columns are gathered, a few at a time, a bounded number of lines at once.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/order.h"

#include <string.h>

#include "kernels/core/key.h"
#include "kernels/core/round.h"
#include "kernels/core/turns.h"
#include "kernels/cpu/fold.h"

enum {
    FEW = 2048,     /* elements that are copied */
    SORTED = 16,    /* keys that are put in order one by one */
    DIGIT_BITS = 8, /* of a key, looked at in a turn */
    DIGIT = (1 << DIGIT_BITS) - 1,
    COLUMNS = 16,  /* gathered at once: a line of the cache of each line of f32 */
    LINES = 16384, /* of them; more are read in several goes */
    ALIGN = 64
};

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static size_t counts_bytes(const cr_order *order) {
    cr_quantile s;
    cr_quantile_begin(&s, order->dtype, order->items, order->count, order->skips);
    s.groups = 2 * order->count;
    return aligned(cr_quantile_words(&s) * sizeof(uint64_t));
}

/* ---- Few elements ---- */

/* Keys of up to 64 elements of `size` bytes, of which word says which count: how many. */
static inline __attribute__((always_inline)) size_t take_some(const cr_turns *t, const uint8_t *p, unsigned n,
                                                              uint64_t word, size_t size, uint64_t *keys) {
    size_t kept = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, p + i * size, size);
        keys[kept] = cr_turned(t, bits);
        kept += (word >> i & 1) && cr_turns_number(t, bits);
    }
    return kept;
}

/* The keys of the numbers that count; how many elements count, NaNs too, is *seen. */
static size_t take_keys(cr_dtype dtype, const cr_view *view, size_t n, uint64_t *keys, size_t *seen) {
    const size_t size = cr_dtype_size(dtype);
    const cr_turns t = cr_turns_of(dtype);
    size_t kept = 0;
    *seen = 0;
    for (size_t at = 0; at < n; at += 64) {
        const unsigned now = n - at < 64 ? (unsigned)(n - at) : 64;
        const uint64_t word = cr_mask_word(&view->mask, at, now);
        const uint8_t *p = view->data + at * size;
        *seen += (size_t)__builtin_popcountll(word);
        kept += size == 1   ? take_some(&t, p, now, word, 1, keys + kept)
                : size == 2 ? take_some(&t, p, now, word, 2, keys + kept)
                : size == 4 ? take_some(&t, p, now, word, 4, keys + kept)
                            : take_some(&t, p, now, word, 8, keys + kept);
    }
    for (size_t i = 0; dtype == CR_BOOL && i < kept; i++) keys[i] = keys[i] != 0;
    return kept;
}

static void sort(uint64_t *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        size_t k = i;
        for (; k > 0 && keys[k - 1] > key; k--) keys[k] = keys[k - 1];
        keys[k] = key;
    }
}

/* The least of the keys whose digit is this. */
static uint64_t least_of(const uint64_t *keys, size_t n, unsigned shift, uint64_t digit) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < n; i++)
        if ((keys[i] >> shift & DIGIT) == digit && keys[i] < least) least = keys[i];
    return least;
}

/* The key of a rank, and of the one after it if there is one; keys are used up. The first turn looks at the highest bits in which keys
 * differ, and each adds up its counts from the least digit that there is: both spare turns and steps where keys are alike. */
static void pick(uint64_t *keys, size_t n, size_t rank, uint64_t found[2]) {
    bool pair = rank + 1 < n;
    uint64_t differ = 0;
    for (size_t i = 0; i < n; i++) differ |= keys[i] ^ keys[0];
    for (unsigned shift, below = differ ? 64 - (unsigned)__builtin_clzll(differ) : 0; n > SORTED; below = shift) {
        if (!below) { /* all that are left are equal */
            found[0] = keys[0];
            if (pair) found[1] = keys[0];
            return;
        }
        uint16_t counts[DIGIT + 1] = {0};
        uint64_t digit = DIGIT;
        shift = below > DIGIT_BITS ? below - DIGIT_BITS : 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t of = keys[i] >> shift & DIGIT;
            digit = of < digit ? of : digit;
            counts[of]++;
        }
        for (; rank >= counts[digit]; digit++) rank -= counts[digit];
        if (pair && rank + 1 >= counts[digit]) {
            uint64_t after = digit + 1;
            while (!counts[after]) after++;
            found[1] = least_of(keys, n, shift, after);
            pair = false;
        }
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t key = keys[i];
            keys[kept] = key;
            kept += (key >> shift & DIGIT) == digit;
        }
        n = kept;
    }
    sort(keys, n);
    found[0] = keys[rank];
    if (pair) found[1] = keys[rank + 1];
}

static void few(const cr_order *order, const cr_view *view, size_t n, uint64_t *keys, uint64_t *answers) {
    size_t seen;
    const size_t kept = take_keys(order->dtype, view, n, keys, &seen);
    const bool none = !kept || (kept != seen && !order->skips);
    uint64_t *copy = keys + n;
    if (kept <= SORTED) sort(keys, kept);
    for (uint32_t i = 0; i < order->count; i++) {
        answers[i] = cr_float_nan(order->result);
        if (none) continue;
        const cr_quantile_place place = cr_quantile_place_of(&order->items[i], kept);
        uint64_t found[2] = {0, 0};
        if (kept <= SORTED) {
            found[0] = keys[place.low];
            found[1] = keys[place.high];
        } else {
            if (i + 1 < order->count) memcpy(copy, keys, kept * sizeof keys[0]);
            pick(i + 1 < order->count ? copy : keys, kept, (size_t)place.low, found);
            if (place.high == place.low) found[1] = found[0];
        }
        answers[i] = cr_quantile_between(order->dtype, order->result, found[0], found[1], &place);
    }
}

/* ---- Many ---- */

static void finish(const cr_order *order, const cr_quantile *s, uint64_t *answers) {
    for (uint32_t i = 0; i < order->count; i++) answers[i] = cr_quantile_finish(s, i, order->result);
}

size_t cr_order_scratch(const cr_order *order, uint64_t n) {
    return n <= FEW ? aligned(2 * (size_t)n * sizeof(uint64_t)) : counts_bytes(order);
}

void cr_cpu_order(const cr_order *order, const cr_view *view, uint64_t n, void *scratch, uint64_t *answers) {
    if (n <= FEW) {
        few(order, view, (size_t)n, scratch, answers);
        return;
    }
    cr_quantile s;
    uint64_t *counts = scratch;
    cr_quantile_begin(&s, order->dtype, order->items, order->count, order->skips);
    do {
        memset(counts, 0, cr_quantile_words(&s) * sizeof counts[0]);
        cr_cpu_quantile_fold(&s, counts, view, n);
    } while (cr_quantile_next(&s, counts));
    finish(order, &s, answers);
}

/* ---- Along an axis ---- */

/* What a spec asks, and where its answers go: op[i] of the spec's for item i. */
typedef struct asked {
    cr_order order;
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    uint32_t op[CR_QUANTILE_ITEMS];
} asked;

static void ask(const cr_axis_spec *spec, asked *a) {
    a->order = (cr_order){.dtype = spec->dtype, .items = a->items, .skips = spec->finish.nan == CR_NAN_SKIP};
    for (uint32_t k = 0; k < spec->op_count; k++) {
        if (cr_op_closing(spec->ops[k]) != CR_CLOSING_ORDER) continue;
        a->order.result = cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish);
        a->items[a->order.count] = spec->items[k];
        a->op[a->order.count++] = k;
    }
}

static void store(const asked *a, const uint64_t *answers, void *const out[], uint64_t at) {
    const size_t size = cr_dtype_size(a->order.result);
    for (uint32_t i = 0; i < a->order.count; i++) memcpy((uint8_t *)out[a->op[i]] + at * size, &answers[i], size);
}

/* How columns go: the scratch of a go. */
typedef struct goes {
    uint64_t columns, lines; /* at once */
    bool whole;              /* all lines */
    size_t tile, marks, own; /* bytes: gathered elements, their mask, and what one column is folded with */
} goes;

static goes plan(const asked *a, const cr_axis_spec *spec) {
    const cr_shape *shape = &spec->shape;
    enum { COUNTS_MOST = 8 << 20 };
    goes g = {.columns = shape->inner < COLUMNS ? shape->inner : COLUMNS, .lines = shape->n};
    g.whole = g.lines <= LINES;
    if (!g.whole) {
        g.lines = LINES;
        g.own = sizeof(cr_quantile) + counts_bytes(&a->order);
        while (g.columns > 1 && g.columns * g.own > COUNTS_MOST) g.columns /= 2;
        g.own *= g.columns;
    } else {
        g.own = cr_order_scratch(&a->order, g.lines);
    }
    g.tile = aligned(g.columns * g.lines * cr_dtype_size(spec->dtype));
    g.marks = spec->mask_line ? aligned(g.columns * g.lines) : 0;
    return g;
}

size_t cr_order_blocks_scratch(const cr_axis_spec *spec) {
    asked a;
    ask(spec, &a);
    if (spec->shape.inner == 1) return cr_order_scratch(&a.order, spec->shape.n);
    const goes g = plan(&a, spec);
    return g.tile + g.marks + aligned(g.own);
}

#define GATHER(name, type)                                                                         \
    static void name(uint8_t *to, const uint8_t *p, size_t stride, size_t lines, size_t columns) { \
        for (size_t k = 0; k < lines; k++, p += stride) {                                          \
            for (size_t c = 0; c < columns; c++)                                                   \
                memcpy(to + (c * lines + k) * sizeof(type), p + c * sizeof(type), sizeof(type));   \
        }                                                                                          \
    }
GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)
#undef GATHER

static void gather(uint8_t *to, const uint8_t *p, size_t stride, size_t lines, size_t columns, size_t size) {
    (size == 1 ? gather_1 : size == 2 ? gather_2 : size == 4 ? gather_4 : gather_8)(to, p, stride, lines, columns);
}

/* A tile of a block, and its mask as bytes: a view of its column c begins at c·lines. */
static cr_view gather_view(const cr_axis_spec *spec, const cr_view *block, uint64_t line, uint64_t column, size_t lines,
                           size_t columns, uint8_t *tile, uint8_t *marks) {
    const size_t size = cr_dtype_size(spec->dtype), stride = spec->shape.inner * size;
    gather(tile, block->data + line * stride + column * size, stride, lines, columns, size);
    if (!spec->mask_line) return cr_view_plain(tile);
    for (size_t k = 0; k < lines; k++) {
        const uint64_t word = cr_mask_word(&block->mask, (line + k) * spec->mask_line + column, (unsigned)columns);
        for (size_t c = 0; c < columns; c++) marks[c * lines + k] = (uint8_t)(word >> c & 1);
    }
    return (cr_view){.data = tile, .mask = {.data = marks, .kind = CR_MASK_BYTES}};
}

/* Columns too long to be gathered as a whole, in several reads. */
static void long_columns(const asked *a, const cr_axis_spec *spec, const cr_view *block, uint64_t column,
                         size_t columns, uint8_t *tile, uint8_t *marks, uint8_t *own,
                         uint64_t (*answers)[CR_QUANTILE_ITEMS]) {
    const size_t size = cr_dtype_size(spec->dtype), bytes = counts_bytes(&a->order);
    const uint64_t n = spec->shape.n;
    cr_quantile *states = (cr_quantile *)(void *)(own + columns * bytes);
    bool open[COLUMNS], any = true;
    for (size_t c = 0; c < columns; c++) {
        cr_quantile_begin(&states[c], spec->dtype, a->items, a->order.count, a->order.skips);
        open[c] = true;
    }
    while (any) {
        for (size_t c = 0; c < columns; c++)
            if (open[c]) memset(own + c * bytes, 0, cr_quantile_words(&states[c]) * sizeof(uint64_t));
        for (uint64_t line = 0; line < n; line += LINES) {
            const size_t now = n - line < LINES ? (size_t)(n - line) : LINES;
            const cr_view view = gather_view(spec, block, line, column, now, columns, tile, marks);
            for (size_t c = 0; c < columns; c++) {
                const cr_view one = cr_view_from(view, c * now, size);
                if (open[c]) cr_cpu_quantile_fold(&states[c], (uint64_t *)(void *)(own + c * bytes), &one, now);
            }
        }
        any = false;
        for (size_t c = 0; c < columns; c++)
            any |= open[c] = open[c] && cr_quantile_next(&states[c], (uint64_t *)(void *)(own + c * bytes));
    }
    for (size_t c = 0; c < columns; c++) finish(&a->order, &states[c], answers[c]);
}

static void order_columns(const asked *a, const cr_axis_spec *spec, const cr_view *block, uint64_t at, void *scratch,
                          void *const out[]) {
    const goes g = plan(a, spec);
    const size_t size = cr_dtype_size(spec->dtype);
    uint8_t *tile = scratch, *marks = tile + g.tile, *own = marks + g.marks;
    uint64_t answers[COLUMNS][CR_QUANTILE_ITEMS];
    for (uint64_t column = 0; column < spec->shape.inner; column += g.columns) {
        const uint64_t left = spec->shape.inner - column;
        const size_t columns = (size_t)(left < g.columns ? left : g.columns);
        if (g.whole) {
            const cr_view view = gather_view(spec, block, 0, column, (size_t)g.lines, columns, tile, marks);
            for (size_t c = 0; c < columns; c++) {
                const cr_view one = cr_view_from(view, c * g.lines, size);
                cr_cpu_order(&a->order, &one, g.lines, own, answers[c]);
            }
        } else {
            long_columns(a, spec, block, column, columns, tile, marks, own, answers);
        }
        for (size_t c = 0; c < columns; c++) store(a, answers[c], out, at + column + c);
    }
}

void cr_cpu_order_blocks(const cr_axis_spec *spec, const cr_view *view, uint64_t blocks, void *scratch,
                         void *const out[]) {
    const cr_shape *shape = &spec->shape;
    const size_t size = cr_dtype_size(spec->dtype);
    asked a;
    ask(spec, &a);
    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t answers[CR_QUANTILE_ITEMS];
        const cr_view block = {.data = view->data + b * shape->n * shape->inner * size,
                               .mask = cr_mask_from(view->mask, b * shape->n * spec->mask_line)};
        if (shape->inner != 1) {
            order_columns(&a, spec, &block, b * shape->inner, scratch, out);
            continue;
        }
        cr_cpu_order(&a.order, &block, shape->n, scratch, answers);
        store(&a, answers, out, b);
    }
}

/* ---- Segments ---- */

size_t cr_order_segments_scratch(const cr_axis_spec *spec) {
    asked a;
    ask(spec, &a);
    const size_t few_bytes = cr_order_scratch(&a.order, FEW), many_bytes = counts_bytes(&a.order);
    return few_bytes > many_bytes ? few_bytes : many_bytes;
}

void cr_cpu_order_segments(const cr_axis_spec *spec, const cr_view *view, uint64_t low, const uint64_t *begins,
                           const uint64_t *ends, uint64_t count, void *scratch, void *const out[], uint64_t at) {
    const size_t size = cr_dtype_size(spec->dtype);
    uint64_t answers[CR_QUANTILE_ITEMS];
    asked a;
    ask(spec, &a);
    for (uint64_t i = 0; i < count; i++) {
        const cr_view segment = cr_view_from(*view, begins[i] - low, size);
        cr_cpu_order(&a.order, &segment, ends[i] - begins[i], scratch, answers);
        store(&a, answers, out, at + i);
    }
}
