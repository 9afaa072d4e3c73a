/* generic: reductions along an axis by one partial per output, for every type and family that cr_cpu_fold knows; and pairs, by what takes
 * many outputs at once, with a partial for those that it leaves.
 * What the strips do not hold is done here, and what they do hold is tested against it.
 *
 * Columns are gathered, a few at a time, into contiguous scratch, and folded from there.
 * Thread: any. Owner: the caller owns every buffer. */
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/pairs/sums.h"
#include "kernels/cpu/rows/pairs.h"

enum {
    GATHER_BYTES = 32768, /* on the stack; holds 4,096 elements of any type */
    GATHER_LINES = 512,
    GATHER_COLUMNS = 64,
    NEAR_LINE = 512 /* bytes */
};

/* Gathers lines × columns at p (stride bytes a line) so that each column is contiguous. */
static void gather(uint8_t *to, const uint8_t *p, uint64_t stride, size_t lines, size_t columns, size_t size) {
    for (size_t c = 0; c < columns; c++) {
        uint8_t *column = to + c * lines * size;
        for (size_t k = 0; k < lines; k++) memcpy(column + k * size, p + k * stride + c * size, size);
    }
}

/* The mask of the same elements, as bytes; at: the first one's number in it. */
static void gather_mask(uint8_t *to, const cr_mask *mask, uint64_t at, uint64_t stride, size_t lines, size_t columns) {
    for (size_t k = 0; k < lines; k++) {
        const uint64_t word = cr_mask_word(mask, at + k * stride, (unsigned)columns); /* GATHER_COLUMNS at most */
        for (size_t c = 0; c < columns; c++) to[c * lines + k] = (uint8_t)(word >> c & 1);
    }
}

/* Folds lines × columns of a block, which lie at p, the first of them at (line, column) of the block, into partials. beside: of the
 * block, its mask and second array. */
static void fold_lines(const cr_axis_plan *plan, cr_partial *partials, const uint8_t *p, const cr_view *beside,
                       uint64_t line, uint64_t column, uint64_t lines, uint64_t columns) {
    uint8_t tile[GATHER_BYTES], kept[GATHER_BYTES], others[GATHER_BYTES];
    const size_t size = plan->size;
    const uint64_t stride = plan->spec->shape.inner * size, mask_line = plan->spec->mask_line;
    const uint64_t second_line = plan->spec->second_line;
    const uint64_t grain = cr_partial_grain(plan->dtype, plan->generic);
    const size_t deep = grain > GATHER_LINES ? (size_t)grain : GATHER_LINES;
    size_t wide = GATHER_BYTES / (deep * size);
    if (wide > GATHER_COLUMNS) wide = GATHER_COLUMNS;
    for (uint64_t c = 0; c < columns; c += wide) {
        const size_t now_wide = columns - c < wide ? (size_t)(columns - c) : wide;
        for (uint64_t k = 0; k < lines;) {
            /* Cuts fall on multiples of the grain, wherever the first line lies. */
            size_t now = deep - (size_t)((line + k) % deep);
            if (lines - k < now) now = (size_t)(lines - k);
            gather(tile, p + k * stride + c * size, stride, now, now_wide, size);
            if (mask_line != 0)
                gather_mask(kept, &beside->mask, (line + k) * mask_line + column + c, mask_line, now, now_wide);
            if (second_line != 0)
                gather(others, beside->second + ((line + k) * second_line + column + c) * size, second_line * size, now,
                       now_wide, size);
            for (size_t i = 0; i < now_wide; i++) {
                const cr_view view = {tile + i * now * size,
                                      {kept + i * now, 0, mask_line != 0 ? CR_MASK_BYTES : CR_MASK_NONE, false},
                                      second_line != 0 ? others + i * now * size : NULL};
                cr_cpu_fold_view(&partials[c + i], &view, now, line + k);
            }
            k += now;
        }
    }
}

void cr_axis_generic_fold(const cr_axis_plan *plan, cr_partial *partials, const cr_view *view, uint64_t count,
                          uint64_t at) {
    const uint64_t inner = plan->spec->shape.inner;
    const uint8_t *data = view->data;
    while (count > 0) {
        uint64_t line = at / inner, column = at % inner, lines = 1, columns = inner - column;
        if (column == 0 && count >= inner) {
            lines = count / inner;
        } else if (columns > count) {
            columns = count;
        }
        fold_lines(plan, partials + column, data, view, line, column, lines, columns);
        data += lines * columns * plan->size;
        at += lines * columns;
        count -= lines * columns;
    }
}

static size_t partials_bytes(uint64_t inner) {
    return cr_lined((inner < GATHER_COLUMNS ? (size_t)inner : GATHER_COLUMNS) * sizeof(cr_partial));
}

/* Whether pairs go by rows/pairs.h. */
static bool by_pair_rows(const cr_axis_plan *plan) {
    const cr_shape *shape = &plan->spec->shape;
    const bool rows = cr_axis_has_rows(plan->spec);
    const uint64_t most = rows ? CR_PAIR_ROW_BYTES / plan->size : (uint64_t)1 << CR_PAIR_LINES_LOG2;
    /* Lines that lie far apart are read again and again where each vector of columns is taken by itself. */
    const bool near = rows || shape->inner * plan->size <= NEAR_LINE || !cr_fast_on(CR_FAST_PAIR_TERMS);
    return near && shape->n <= most && cr_pair_rows_take(plan, plan->generic_ops);
}

static size_t terms_bytes(const cr_axis_plan *plan) {
    cr_pair_sums sums;
    if (by_pair_rows(plan) || !cr_pair_sums_make(&sums, plan)) return 0;
    if (!cr_axis_has_rows(plan->spec)) return cr_pair_group_bytes(&sums);
    return cr_pair_rows_at_once(&sums) ? cr_pair_rows_bytes(&sums) : 0;
}

size_t cr_axis_generic_scratch(const cr_axis_plan *plan) {
    uint64_t inner = plan->spec->shape.inner;
    return plan->generic_ops == 0 ? 0 : partials_bytes(inner) + terms_bytes(plan);
}

cr_status cr_axis_store_ops(const cr_axis_plan *plan, cr_ops ops, const cr_partial *p, uint64_t output, uint64_t at,
                            void *const out[], cr_error *error) {
    const cr_axis_spec *spec = plan->spec;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        if (!cr_ops_has(ops, spec->ops[k])) continue;
        size_t size = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        cr_status status = cr_axis_store_or(p, spec->ops[k], &spec->finish, output, (uint8_t *)out[k] + at * size,
                                            cr_axis_status_at(spec, out, k, at), error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

/* A call. */
typedef struct a_call {
    const cr_axis_plan *plan;
    const cr_view *view;
    uint64_t output;
    cr_partial *partials;
    void *terms; /* scratch of sums of terms */
    void *const *out;
    cr_error *error;
} a_call;

static cr_view block_at(const a_call *call, uint64_t b) {
    const cr_axis_spec *spec = call->plan->spec;
    const uint64_t n = b * spec->shape.n;
    return (cr_view){call->view->data + n * spec->shape.inner * call->plan->size,
                     cr_mask_from(call->view->mask, n * spec->mask_line),
                     cr_second_from(call->view->second, n * spec->second_line * call->plan->size)};
}

/* Columns [c, c + count) of block b, GATHER_COLUMNS at most. */
static cr_status fold_columns(const a_call *call, uint64_t b, uint64_t c, uint64_t count) {
    const cr_axis_plan *plan = call->plan;
    const cr_shape *shape = &plan->spec->shape;
    const cr_view block = block_at(call, b);
    cr_status status = CR_OK;
    for (uint64_t i = 0; i < count; i++) cr_partial_init(&call->partials[i], plan->dtype, plan->generic);
    if (cr_axis_has_rows(plan->spec))
        cr_cpu_fold_view(call->partials, &block, shape->n, 0);
    else
        fold_lines(plan, call->partials, block.data + c * plan->size, &block, 0, c, shape->n, count);
    for (uint64_t i = 0; i < count && status == CR_OK; i++) {
        const uint64_t at = b * shape->inner + c + i;
        status = cr_axis_store_ops(plan, plan->generic_ops, &call->partials[i], call->output + at, at, call->out,
                                   call->error);
    }
    return status;
}

/* Rows [b, b + count), CR_ROWS at most, of pairs. */
static cr_status pairs_of_rows(const a_call *call, uint64_t b, unsigned count) {
    const cr_view first = block_at(call, b);
    uint64_t borders[CR_ROWS + 1];
    uint8_t hard[CR_ROWS];
    cr_status status = CR_OK;
    for (unsigned i = 0; i <= count; i++) borders[i] = i * call->plan->spec->shape.n;
    const cr_pair_rows rows = {
        .x = first.data, .y = first.second, .narrow = call->plan->dtype == CR_F32, .borders = borders};
    cr_pair_rows_answer(call->plan, call->plan->generic_ops, &rows, count, b, call->out, hard);
    for (unsigned i = 0; i < count && status == CR_OK; i++)
        if (hard[i]) status = fold_columns(call, b + i, 0, 1);
    return status;
}

/* Columns [c, c + count) of block b, CR_ROWS at most, of pairs. */
static cr_status pairs_of_columns(const a_call *call, uint64_t b, uint64_t c, uint64_t count) {
    const cr_axis_spec *spec = call->plan->spec;
    const size_t size = call->plan->size;
    const cr_view block = block_at(call, b);
    uint8_t hard[CR_ROWS];
    cr_status status = CR_OK;
    const cr_pair_rows lines = {.x = block.data + c * size,
                                .y = block.second + c * size,
                                .narrow = spec->dtype == CR_F32,
                                .n = spec->shape.n,
                                .x_line = spec->shape.inner * size,
                                .y_line = spec->second_line * size};
    cr_pair_rows_answer(call->plan, call->plan->generic_ops, &lines, (unsigned)count, b * spec->shape.inner + c,
                        call->out, hard);
    for (unsigned i = 0; i < count && status == CR_OK; i++)
        if (hard[i]) status = fold_columns(call, b, c + i, 1);
    return status;
}

/* Rows by sums of their terms. */
static cr_status terms_of_rows(const a_call *call, const cr_pair_sums *sums, uint64_t blocks) {
    const unsigned at_once = cr_pair_rows_at_once(sums);
    cr_status status = CR_OK;
    cr_pair_rows_init(sums, call->terms);
    for (uint64_t b = 0; b < blocks && status == CR_OK; b += at_once) {
        const unsigned count = blocks - b < at_once ? (unsigned)(blocks - b) : at_once;
        const cr_view rows = block_at(call, b);
        uint8_t hard[CR_ROWS];
        cr_pair_rows_answer_all(sums, &rows, count, call->output + b, b, call->terms, call->out, hard);
        for (unsigned i = 0; i < count && status == CR_OK; i++)
            if (hard[i]) status = fold_columns(call, b + i, 0, 1);
    }
    return status;
}

/* Columns of blocks by sums of their terms. */
static cr_status terms_of_columns(const a_call *call, const cr_pair_sums *sums, uint64_t blocks) {
    const uint64_t inner = call->plan->spec->shape.inner;
    /* Where terms lost bits, these leave single columns to partials. */
    const bool known = cr_pair_rows_take(call->plan, call->plan->generic_ops);
    cr_status status = CR_OK;
    for (uint64_t b = 0; b < blocks; b++) {
        const cr_view block = block_at(call, b);
        for (uint64_t c = 0; c < inner && status == CR_OK; c += CR_PAIR_GROUP) {
            const unsigned now = inner - c < CR_PAIR_GROUP ? (unsigned)(inner - c) : (unsigned)CR_PAIR_GROUP;
            const uint64_t at = b * inner + c;
            bool lost;
            status = cr_pair_group_answer(sums, &block, c, now, call->output + at, at, call->terms, call->out, &lost,
                                          call->error);
            for (unsigned i = 0, some; lost && i < now && status == CR_OK; i += some) {
                some = now - i < GATHER_COLUMNS ? now - i : GATHER_COLUMNS;
                status = (known ? pairs_of_columns : fold_columns)(call, b, c + i, some);
            }
        }
    }
    return status;
}

cr_status cr_axis_generic_blocks(const cr_axis_plan *plan, const cr_view *view, uint64_t output, uint64_t blocks,
                                 void *scratch, void *const out[], cr_error *error) {
    cr_pair_sums sums;
    const a_call call = {plan, view, output, scratch, (uint8_t *)scratch + partials_bytes(plan->spec->shape.inner),
                         out,  error};
    const cr_shape *shape = &plan->spec->shape;
    const bool rows = cr_axis_has_rows(plan->spec);
    const bool pairs = by_pair_rows(plan);
    cr_status status = CR_OK;
    for (uint64_t b = 0; rows && pairs && b < blocks && status == CR_OK; b += CR_ROWS)
        status = pairs_of_rows(&call, b, blocks - b < CR_ROWS ? (unsigned)(blocks - b) : CR_ROWS);
    if (rows && pairs) return status;
    if (!pairs && cr_pair_sums_make(&sums, plan)) {
        if (!rows) return terms_of_columns(&call, &sums, blocks);
        if (cr_pair_rows_at_once(&sums)) return terms_of_rows(&call, &sums, blocks);
    }
    const uint64_t step = pairs ? CR_ROWS : GATHER_COLUMNS;
    for (uint64_t b = 0; b < blocks; b++) {
        for (uint64_t c = 0; c < shape->inner && status == CR_OK; c += step) {
            const uint64_t now = shape->inner - c < step ? shape->inner - c : step;
            status = pairs ? pairs_of_columns(&call, b, c, now) : fold_columns(&call, b, c, now);
        }
    }
    return status;
}
