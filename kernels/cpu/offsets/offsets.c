/* offsets: segments to answers, a batch at a time: by rank (order.h); short ones as rows, where that is known of the op (grouped.h); every
 * other by a partial of its own.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/offsets.h"

#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/float_state.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/offsets/grouped.h"
#include "kernels/cpu/order.h"
#include "kernels/cpu/rows/pairs.h"

enum { ALIGN = 64 /* of scratch */ };

/* A call. */
typedef struct segments {
    const cr_axis_spec *spec;
    cr_axis_spec row; /* what the plan is for */
    cr_axis_plan plan;
    cr_ops rows; /* ops of which short segments are rows */
    const cr_view *view;
    void *const *out;
    cr_error *error;
} segments;

static void plan(segments *s, const cr_axis_spec *spec) {
    s->spec = spec;
    s->row = cr_offsets_row(spec, 1);
    cr_axis_plan_make(&s->plan, &s->row);
    const bool rows = s->row.mask_line == 0 && cr_axis_has_short_rows(&s->row) && cr_fast_on(CR_FAST_GROUPS);
    s->rows = rows ? s->plan.strip_ops : 0;
    cr_axis_plan_strips(&s->plan, CR_ROWS);
}

/* Of those that go as rows; what goes by rank has its own behind them. */
static size_t grouped_bytes(const segments *s) {
    return s->rows ? (cr_grouped_bytes(&s->plan) + ALIGN - 1) / ALIGN * ALIGN : 0;
}

size_t cr_offsets_scratch(const cr_axis_spec *spec) {
    segments s;
    plan(&s, spec);
    return grouped_bytes(&s) + (s.plan.order_ops ? cr_order_segments_scratch(spec) : 0);
}

/* Segment i of the batch by a partial, for these ops. */
static cr_status fold_one(const segments *s, const cr_batch *b, uint64_t i, cr_ops ops) {
    const uint64_t n = b->borders[i + 1] - b->borders[i], skipped = b->borders[i] - b->low;
    const cr_view view = cr_view_from(*s->view, skipped, s->plan.size);
    cr_partial partial;
    uint32_t families = 0;
    for (uint32_t k = 0; k < s->spec->op_count; k++)
        if (cr_ops_has(ops, s->spec->ops[k])) families |= cr_op_needs(s->spec->ops[k], s->spec->dtype);
    cr_partial_init(&partial, s->spec->dtype, families);
    if (n) cr_cpu_fold_view(&partial, &view, n, 0);
    return cr_axis_store_ops(&s->plan, ops, &partial, b->first + i, b->at + i, s->out, s->error);
}

/* All segments of the batch, in order, for these ops. */
static cr_status fold_each(const segments *s, const cr_batch *b, cr_ops ops) {
    cr_status status = CR_OK;
    for (uint64_t i = 0; i < b->count && status == CR_OK; i++) status = fold_one(s, b, i, ops);
    return status;
}

/* Segments of pairs: the short ones side by side, long ones and those in doubt by partials. */
static cr_status fold_pairs(const segments *s, const cr_batch *b, cr_ops ops) {
    const uint64_t *borders = b->borders, most = CR_PAIR_ROW_BYTES / s->plan.size;
    cr_status status = CR_OK;
    for (uint64_t i = 0, run; i < b->count && status == CR_OK; i += run) {
        uint8_t hard[CR_ROWS] = {1};
        for (run = 0; run < CR_ROWS && i + run < b->count && borders[i + run + 1] - borders[i + run] <= most;) run++;
        const cr_view view = cr_view_from(*s->view, borders[i] - b->low, s->plan.size);
        const cr_pair_rows rows = {
            .x = view.data, .y = view.second, .narrow = s->plan.dtype == CR_F32, .borders = borders + i};
        if (run != 0)
            cr_pair_rows_answer(&s->plan, ops, &rows, (unsigned)run, b->at + i, s->out, hard);
        else
            run = 1; /* a long one */
        for (uint64_t k = 0; k < run && status == CR_OK; k++)
            if (hard[k]) status = fold_one(s, b, i + k, ops);
    }
    return status;
}

/* Short segments as rows; and by partials empty and long ones, and what rows do not answer. */
static cr_status fold_mixed(const segments *s, const cr_batch *b, cr_grouped *own, cr_ops all) {
    uint16_t others[CR_BATCH];
    unsigned count;
    const uint64_t state = cr_float_enter();
    cr_status status = cr_grouped_fold(own, b, others, &count, s->error);
    cr_float_leave(state);
    for (unsigned i = 0; i < count && status == CR_OK; i++) status = fold_one(s, b, others[i], s->rows);
    return status == CR_OK && all != s->rows ? fold_each(s, b, all & ~s->rows) : status;
}

static cr_status fold_batch(const segments *s, const cr_batch *b, void *scratch) {
    const cr_ops all = s->plan.strip_ops | s->plan.generic_ops;
    if (s->plan.order_ops)
        cr_cpu_order_segments(s->spec, s->view, b->low, b->borders, b->borders + 1, b->count,
                              (uint8_t *)scratch + grouped_bytes(s), s->out, b->at);
    if (!all || (s->rows && fold_mixed(s, b, scratch, all) == CR_OK)) return CR_OK;
    if (cr_pair_rows_take(&s->plan, all) && fold_pairs(s, b, all) == CR_OK) return CR_OK;
    return fold_each(s, b, all); /* which names the first segment that lacks a value */
}

cr_status cr_cpu_offsets_view(const cr_axis_spec *spec, const cr_view *view, uint64_t low, uint64_t high,
                              uint64_t first, uint64_t count, void *scratch, void *const out[], cr_error *error) {
    uint64_t borders[CR_BATCH + 1];
    segments s;
    cr_status status = CR_OK;
    plan(&s, spec);
    s.view = view;
    s.out = out;
    s.error = error;
    if (s.rows) cr_grouped_init(&s.plan, scratch);
    cr_batch b = {
        .plan = &s.plan, .row = &s.row, .data = view->data, .low = low, .high = high, .borders = borders, .out = out};
    for (uint64_t done = 0; done < count && status == CR_OK; done += b.count) {
        b.first = first + done;
        b.at = done;
        b.count = count - done < CR_BATCH ? count - done : CR_BATCH;
        status = cr_offsets_take(&spec->offsets, b.first, b.count, low, high, borders, error);
        if (status == CR_OK) status = fold_batch(&s, &b, scratch);
    }
    return status;
}
