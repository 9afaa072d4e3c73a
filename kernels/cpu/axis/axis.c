/* axis: the CPU's folds along one axis: whole blocks to answers. (States of columns: columns/range.c.)
 *
 * Four ways: rows are taken many at a time, long ones one by one; small blocks are gathered, so that the outputs of many lie
 * side by side; blocks of many columns are folded line by line, a few strips at a time.
 * Thread: any; the caller owns every buffer. */
#include "kernels/cpu/axis.h"

#include <string.h>

#include "kernels/core/close.h"
#include "kernels/core/fast.h"
#include "kernels/core/float_state.h"
#include "kernels/cpu/axis/hidden.h"
#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/range.h"
#include "kernels/cpu/order.h"
#include "kernels/cpu/rows/rows.h"

enum {
    BLOCK_SMALL = 16384,   /* bytes of a block that is gathered */
    NARROW = CR_STRIP / 2, /* columns of one, at most */
    ROWS_AT_ONCE = 64,     /* rows that share a strip */
    STRIPS_AT_ONCE = 16    /* of a wide block */
};

typedef enum way { WAY_GATHER, WAY_ROWS, WAY_LONG_ROWS, WAY_COLUMNS } way;

static way way_of(const cr_axis_plan *plan) {
    const cr_shape *shape = &plan->spec->shape;
    if (shape->inner == 1) return cr_axis_has_short_rows(plan->spec) ? WAY_ROWS : WAY_LONG_ROWS;
    const bool gathers = !plan->hidden || plan->spec->mask_line == shape->inner;
    if (gathers && shape->inner <= NARROW && shape->n <= BLOCK_SMALL / plan->size / shape->inner &&
        cr_fast_on(CR_FAST_GATHER))
        return WAY_GATHER;
    return WAY_COLUMNS;
}

/* Outputs that are gathered at once: a tile's worth, a whole number of blocks, at least one. */
static uint32_t gather_columns(const cr_axis_plan *plan) {
    const cr_shape *shape = &plan->spec->shape;
    uint64_t outputs = CR_AXIS_TILE / plan->size / shape->n;
    if (outputs > CR_STRIP) outputs = CR_STRIP;
    if (outputs < NARROW) outputs = NARROW;
    return (uint32_t)(outputs / shape->inner * shape->inner);
}

static uint32_t padded(uint32_t columns) { return (columns + CR_STRIP_PAD - 1) / CR_STRIP_PAD * CR_STRIP_PAD; }

/* The plan for whole blocks, and the bytes of scratch its way takes. */
static way plan_blocks(cr_axis_plan *plan, const cr_axis_spec *spec, size_t *scratch) {
    cr_axis_plan_make(plan, spec);
    *scratch = 0;
    if (plan->generic_ops != 0) *scratch = cr_axis_generic_scratch(plan);
    if (plan->order_ops != 0) {
        const size_t bytes = cr_order_blocks_scratch(spec);
        if (bytes > *scratch) *scratch = bytes;
    }
    if (spec->shape.n == 0 || spec->shape.inner == 0) return WAY_GATHER;
    way w = way_of(plan);
    size_t strips = 1, tile = 0;
    if (w == WAY_GATHER) {
        uint32_t columns = padded(gather_columns(plan));
        cr_axis_plan_strips(plan, columns);
        tile = columns * spec->shape.n * plan->size;
        if (plan->hidden) tile += columns * spec->shape.n + BLOCK_SMALL;
    } else if (w == WAY_ROWS) {
        cr_axis_plan_strips(plan, CR_ROWS);
        tile = sizeof(cr_rows) + (plan->hidden ? cr_hidden_rows_bytes(plan) : 0);
    } else if (w == WAY_LONG_ROWS) {
        cr_axis_plan_strips(plan, ROWS_AT_ONCE);
    } else {
        strips = plan->strips < STRIPS_AT_ONCE ? (size_t)plan->strips : STRIPS_AT_ONCE;
    }
    size_t bytes = strips * plan->strip_bytes + tile;
    if (bytes > *scratch) *scratch = bytes;
    return w;
}

bool cr_axis_is_uncut(const cr_axis_spec *spec) {
    for (uint32_t k = 0; k < spec->op_count; k++)
        if (cr_op_closing(spec->ops[k]) == CR_CLOSING_ORDER) return true;
    return false;
}

size_t cr_axis_scratch(const cr_axis_spec *spec) {
    cr_axis_plan plan;
    size_t bytes;
    plan_blocks(&plan, spec, &bytes);
    return bytes;
}

/* Where a call's answers go. */
typedef struct target {
    uint64_t output; /* number of the call's first answer */
    void *const *out;
    cr_error *error;
} target;

/* What served the last rows is tried first with the next; what did not is chosen anew. */
typedef struct hints {
    int32_t slot[CR_KNOWN_SUMS], base[CR_KNOWN_SUMS];
} hints;

enum { HINT_MISSES = 8 };

static void hints_use(const hints *hint, cr_strip *strip) {
    for (int which = 0; which < CR_KNOWN_SUMS; which++) {
        strip->sums[which].slot = hint->slot[which];
        strip->sums[which].base = hint->base[which];
    }
}

static void hints_take(hints *hint, const cr_strip *strip, uint32_t misses) {
    for (int which = 0; which < CR_KNOWN_SUMS; which++) {
        bool served = strip->sums[which].misses < misses;
        hint->slot[which] = served ? strip->sums[which].slot : -1;
        hint->base[which] = served ? strip->sums[which].base : 0;
    }
}

/* Line k of each block to row k of the tile. */
static void gather(uint8_t *to, size_t stride, const uint8_t *from, uint64_t blocks, uint64_t n, size_t line) {
    for (uint64_t b = 0; b < blocks; b++) {
        for (uint64_t k = 0; k < n; k++, from += line) memcpy(to + k * stride + b * line, from, line);
    }
}

/* The bytes of a mask, from its element `at` on, as gather does it. block: room for one block's. */
static void gather_kept(uint8_t *to, size_t stride, const cr_axis_isa *isa, const cr_mask *mask, uint64_t at,
                        uint64_t blocks, const cr_shape *shape, uint8_t *block) {
    const uint64_t elements = shape->n * shape->inner;
    for (uint64_t b = 0; b < blocks; b++) {
        isa->keep(block, mask, at + b * elements, elements);
        gather(to + b * shape->inner, stride, block, 1, shape->n, shape->inner);
    }
}

static cr_status gathered(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_view *view, uint64_t blocks,
                          void *scratch, const target *to) {
    const cr_shape *shape = &plan->spec->shape;
    cr_strip *strip = scratch;
    uint8_t *tile = (uint8_t *)scratch + plan->strip_bytes;
    size_t stride = plan->columns * plan->size;
    uint8_t *kept = tile + stride * shape->n, *room = kept + plan->columns * shape->n;
    const cr_mask mask = {.data = kept, .kind = CR_MASK_BYTES};
    cr_hidden hidden;
    if (plan->hidden) cr_hidden_make(&hidden, plan, isa, &mask);
    hidden.mask_line = plan->columns;
    uint64_t at_once = gather_columns(plan) / shape->inner;
    hints hint = {{-1, -1, -1}, {0, 0, 0}};
    for (uint64_t b = 0; b < blocks; b += at_once) {
        uint64_t now = blocks - b < at_once ? blocks - b : at_once;
        unsigned columns = (unsigned)(now * shape->inner);
        gather(tile, stride, view->data + b * shape->n * shape->inner * plan->size, now, shape->n,
               shape->inner * plan->size);
        if (plan->hidden)
            gather_kept(kept, plan->columns, isa, &view->mask, b * shape->n * shape->inner, now, shape, room);
        cr_strip_init(plan, strip);
        hints_use(&hint, strip);
        for (uint64_t k = 0; k < shape->n; k += CR_LINES) {
            unsigned lines = shape->n - k < CR_LINES ? (unsigned)(shape->n - k) : CR_LINES;
            if (plan->hidden)
                cr_hidden_lines(&hidden, strip, tile + k * stride, stride, lines, 0, columns, k, 0, 0);
            else
                isa->lines(plan, strip, tile + k * stride, stride, lines, 0, columns, k, 0);
        }
        hints_take(&hint, strip, HINT_MISSES);
        cr_status status = cr_strip_finish(plan, isa, strip, 0, columns, to->output + b * shape->inner, to->out,
                                           b * shape->inner, to->error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

static cr_status long_rows(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_view *view, uint64_t blocks,
                           void *scratch, const target *to) {
    cr_strip *strip = scratch;
    uint64_t n = plan->spec->shape.n;
    hints hint = {{-1, -1, -1}, {0, 0, 0}};
    for (uint64_t b = 0; b < blocks; b += ROWS_AT_ONCE) {
        unsigned now = blocks - b < ROWS_AT_ONCE ? (unsigned)(blocks - b) : ROWS_AT_ONCE;
        cr_strip_init(plan, strip);
        hints_use(&hint, strip);
        for (unsigned i = 0; i < now; i++) isa->row(plan, strip, i, view->data + (b + i) * n * plan->size, n);
        hints_take(&hint, strip, HINT_MISSES);
        cr_status status = cr_strip_finish(plan, isa, strip, 0, now, to->output + b, to->out, b, to->error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

static cr_status rows(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_view *view, uint64_t blocks,
                      void *scratch, const target *to) {
    uint64_t n = plan->spec->shape.n;
    unsigned at_once = cr_rows_at_once(n * plan->size);
    cr_rows *all = (cr_rows *)(void *)((uint8_t *)scratch + plan->strip_bytes);
    cr_hidden hidden;
    if (plan->hidden) cr_hidden_make(&hidden, plan, isa, &view->mask);
    all->strip = scratch;
    all->borders = NULL;
    cr_strip_init(plan, all->strip);
    for (int which = 0; which < CR_ROW_SUMS; which++) {
        all->sums[which].top = all->sums[which].misses = 0;
        all->sums[which].strange = false;
    }
    for (uint64_t b = 0; b < blocks; b += at_once) {
        unsigned now = blocks - b < at_once ? (unsigned)(blocks - b) : at_once;
        all->data = view->data + b * n * plan->size;
        if (plan->hidden)
            cr_hidden_rows(&hidden, all, all->data, now, b, (uint8_t *)(all + 1));
        else
            isa->rows(plan, all, all->data, now, n);
        cr_status status = cr_rows_finish(plan, isa, all, now, to->output + b, to->out, b, to->error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

/* Answers, from number `at` of the call's on, of a range of columns by plain additions; false: those are not sure. */
static bool plain(const cr_axis_plan *plan, const cr_axis_isa *isa, cr_columns_range range, const uint8_t *block,
                  const target *to, uint64_t at) {
    enum { FEW_LINES = 64, AHEAD = 1024 };
    const cr_axis_spec *spec = plan->spec;
    const uint64_t n = spec->shape.n, count = range.end - range.begin;
    uint8_t *sums = (uint8_t *)to->out[0] + at * sizeof(double); /* the caller's: aligned to nothing */
    if (!plan->plain || isa->plain_sums == NULL || plan->width != spec->shape.inner || (!plan->cached && n > FEW_LINES))
        return false;
    if (!isa->plain_sums(block + range.begin * plan->size, spec->shape.inner * plan->size, n, count,
                         plan->cached ? 0 : AHEAD, sums))
        return false;
    for (uint32_t k = spec->op_count; k-- > 0;) { /* the first comes last: it stands where the sums do */
        uint8_t *out = (uint8_t *)to->out[k] + at * sizeof(double);
        const double divisor = (double)cr_close_divisor(cr_op_divisor(spec->ops[k]), n, 0);
        for (uint64_t i = 0; (k != 0 || divisor != 1) && i < count; i++) {
            double x;
            memcpy(&x, sums + i * sizeof x, sizeof x);
            x /= divisor;
            memcpy(out + i * sizeof x, &x, sizeof x);
        }
    }
    return true;
}

static cr_status columns(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_view *view, uint64_t blocks,
                         void *scratch, const target *to) {
    const cr_shape *shape = &plan->spec->shape;
    uint64_t wide = STRIPS_AT_ONCE * CR_STRIP;
    unsigned unsure = 0;
    enum { PATIENCE = 2 };
    for (uint64_t b = 0; b < blocks; b++) {
        const uint8_t *block = view->data + b * shape->n * shape->inner * plan->size;
        const cr_mask mask = cr_mask_from(view->mask, b * shape->n * plan->spec->mask_line);
        for (uint64_t c = 0; c < plan->width; c += wide) {
            cr_columns_range range = {c, plan->width - c < wide ? plan->width : c + wide};
            if (unsure < PATIENCE && plain(plan, isa, range, block, to, b * shape->inner + c)) continue;
            unsure++;
            for (uint64_t s = 0; s < (range.end - c + CR_STRIP - 1) / CR_STRIP; s++) {
                cr_strip_init(plan, cr_strip_at(plan, scratch, s));
            }
            cr_columns_fold_range(plan, isa, scratch, range, block, &mask, shape->n * shape->inner, 0);
            uint64_t first = plan->width == shape->inner ? c : 0;
            uint64_t count = plan->width == shape->inner ? range.end - c : shape->inner;
            cr_status status =
                cr_columns_finish_range(plan, isa, scratch, range, first, count, to->output + b * shape->inner + first,
                                        to->out, b * shape->inner + first, to->error);
            if (status != CR_OK) return status;
        }
    }
    return CR_OK;
}

cr_status cr_cpu_axis_blocks_view(const cr_axis_spec *spec, const cr_view *view, uint64_t output, uint64_t blocks,
                                  void *scratch, void *const out[], cr_error *error) {
    cr_axis_plan plan;
    size_t bytes;
    way w = plan_blocks(&plan, spec, &bytes);
    if (blocks == 0 || spec->shape.inner == 0) return CR_OK;
    cr_status status = CR_OK;
    if (plan.generic_ops != 0 && cr_axis_bits_take(&plan, view))
        cr_axis_bits_blocks(&plan, view->data, blocks, out);
    else if (plan.generic_ops != 0)
        status = cr_axis_generic_blocks(&plan, view, output, blocks, scratch, out, error);
    if (plan.order_ops != 0) cr_cpu_order_blocks(spec, view, blocks, scratch, out);
    if (status != CR_OK || plan.strip_ops == 0) return status;
    const cr_axis_isa *isa = cr_axis_current();
    target to = {output, out, error};
    const uint64_t state = cr_float_enter();
    status = (w == WAY_GATHER      ? gathered
              : w == WAY_ROWS      ? rows
              : w == WAY_LONG_ROWS ? long_rows
                                   : columns)(&plan, isa, view, blocks, scratch, &to);
    cr_float_leave(state);
    return status;
}
