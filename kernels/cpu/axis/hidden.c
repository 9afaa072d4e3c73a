/* hidden: see hidden.h. Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/axis/hidden.h"

#include "kernels/core/key.h"
#include "kernels/core/round.h"

bool cr_hidden_takes(cr_op op, cr_dtype dtype) {
    const uint32_t known = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS;
    return (cr_op_needs(op, dtype) & ~known) == 0;
}

bool cr_hidden_counts(cr_op op) {
    const cr_term term = cr_op_term(op);
    return cr_op_divisor(op) != CR_DIVISOR_ONE || cr_op_closing(op) == CR_CLOSING_EXTREMA || term == CR_TERM_ELEMENTS ||
           term == CR_TERM_EVERY;
}

/* Of floats that is an infinity, or what is largest where there is none. */
uint64_t cr_hidden_worst(cr_dtype dtype, bool least) {
    const unsigned bits = 8 * (unsigned)cr_dtype_size(dtype);
    switch (cr_dtype_kind(dtype)) {
        case CR_KIND_FLOAT: {
            const uint64_t infinity = cr_float_infinity(dtype, false);
            const uint64_t most = infinity - (infinity == cr_float_nan(dtype));
            return least ? most : most | (uint64_t)1 << (bits - 1);
        }
        case CR_KIND_BOOL:
            return least;
        case CR_KIND_SINT:
        case CR_KIND_UINT:
        case CR_KIND_NONE:
            break;
    }
    return cr_bits_of_key(dtype, least ? UINT64_MAX >> (64 - bits) : 0);
}

static void add_extrema(cr_hidden *h, uint32_t wants, uint64_t fill) {
    cr_hidden_pass *pass = &h->pass[h->passes++];
    *pass = (cr_hidden_pass){*h->plan, fill};
    pass->plan.hidden = false;
    pass->plan.fast = CR_FAM_EXTREMA;
    pass->plan.wants = wants;
}

void cr_hidden_make(cr_hidden *h, const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_mask *mask) {
    const cr_axis_spec *spec = plan->spec;
    h->plan = plan;
    h->isa = isa;
    h->mask = mask;
    h->mask_line = plan->width == spec->shape.inner ? spec->mask_line : plan->width;
    h->bytes = mask->kind == CR_MASK_BYTES && !mask->leaves_out ? mask->data + mask->first : NULL;
    h->passes = 0;
    if (plan->counted) {
        h->count = *plan;
        h->count.hidden = false;
        h->count.dtype = CR_U8;
        h->count.size = 1;
        h->count.fast = CR_FAM_COUNTS;
        h->count.zeros = plan->left;
        h->count.nans = plan->spare;
    }
    const uint32_t wants = plan->wants & (CR_WANTS_MIN | CR_WANTS_MAX);
    if (cr_dtype_kind(plan->dtype) == CR_KIND_FLOAT && spec->finish.nan == CR_NAN_SKIP && wants != 0) {
        add_extrema(h, plan->wants, cr_float_nan(plan->dtype)); /* it loses either way */
    } else {
        if (wants & CR_WANTS_MIN) {
            add_extrema(h, plan->wants & (CR_WANTS_MIN | CR_WANTS_ARGMIN), cr_hidden_worst(plan->dtype, true));
            h->pass[h->passes - 1].plan.max_key = plan->indices ? plan->spare_key[0] : plan->spare;
            if (plan->indices) h->pass[h->passes - 1].plan.max_index = plan->spare_index;
        }
        if (wants & CR_WANTS_MAX) {
            add_extrema(h, plan->wants & (CR_WANTS_MAX | CR_WANTS_ARGMAX), cr_hidden_worst(plan->dtype, false));
            h->pass[h->passes - 1].plan.min_key = plan->indices ? plan->spare_key[1] : plan->spare;
            if (plan->indices) h->pass[h->passes - 1].plan.min_index = plan->spare_index;
        }
    }
    if (plan->fast & ~(uint32_t)CR_FAM_EXTREMA) { /* the last one: sums in doubt are made again of what it folds */
        h->pass[h->passes] = (cr_hidden_pass){*plan, 0};
        h->pass[h->passes].plan.hidden = false;
        h->pass[h->passes++].plan.fast &= ~(uint32_t)CR_FAM_EXTREMA;
    }
}

/* Notes the first line of each column that counts. */
static void note_kept(const cr_axis_plan *plan, cr_strip *strip, const uint8_t *kept, size_t kept_line, unsigned lines,
                      unsigned first, unsigned columns, uint64_t line) {
    uint64_t *at = (uint64_t *)cr_strip_array(strip, plan->kept) + first;
    for (unsigned c = 0; c < columns; c++) {
        for (unsigned t = 0; t < lines && at[c] > line + t; t++)
            if (kept[t * kept_line + c]) at[c] = line + t;
    }
}

void cr_hidden_lines(const cr_hidden *h, cr_strip *strip, const uint8_t *p, size_t stride, unsigned lines,
                     unsigned first, unsigned columns, uint64_t line, uint64_t column, size_t ahead) {
    uint8_t room[CR_LINES_HARD * CR_STRIP] __attribute__((aligned(64)));
    uint8_t tile[CR_LINES_HARD * CR_STRIP * sizeof(uint64_t)] __attribute__((aligned(64)));
    const size_t size = h->plan->size;
    if (!strip->started) cr_strip_start(h->plan, strip);
    const uint8_t *kept = h->bytes ? h->bytes + line * h->mask_line + column : room;
    const size_t kept_line = h->bytes ? h->mask_line : CR_STRIP;
    for (unsigned t = 0; !h->bytes && t < lines; t++)
        h->isa->keep(room + t * CR_STRIP, h->mask, (line + t) * h->mask_line + column, columns);
    for (unsigned t = 0; h->plan->counted && t < lines; t += CR_LINES)
        h->isa->lines(&h->count, strip, kept + t * kept_line, kept_line, lines - t < CR_LINES ? lines - t : CR_LINES,
                      first, columns, line + t, 0);
    if (h->plan->indices) note_kept(h->plan, strip, kept, kept_line, lines, first, columns, line);
    for (unsigned i = 0; i < h->passes; i++) {
        const cr_hidden_pass *pass = &h->pass[i];
        for (unsigned t = 0; t < lines; t++)
            h->isa->hide(tile + t * CR_STRIP * size, p + t * stride, kept + t * kept_line, columns, size, pass->fill,
                         ahead);
        h->isa->lines(&pass->plan, strip, tile, CR_STRIP * size, lines, first, columns, line, 0);
    }
}

static size_t tile_elements(const cr_axis_plan *plan) {
    const uint64_t n = plan->spec->shape.n;
    return (cr_rows_at_once(n * plan->size) * n + 63) / 64 * 64;
}

size_t cr_hidden_rows_bytes(const cr_axis_plan *plan) { return tile_elements(plan) * (plan->size + 1); }

/* As bools, whose sums are quicker than counts. */
static void count_rows(const cr_hidden *h, cr_rows *rows, const uint8_t *kept, unsigned count, uint64_t n) {
    cr_axis_plan plan = h->count;
    uint64_t *left = cr_strip_array(rows->strip, h->plan->left);
    plan.dtype = CR_BOOL;
    plan.fast = CR_FAM_SUM;
    h->isa->rows(&plan, rows, kept, count, n);
    for (unsigned i = 0; i < count; i++) left[i] = n - rows->sums[CR_AT_SUM].low[i];
}

void cr_hidden_rows(const cr_hidden *h, cr_rows *rows, const uint8_t *p, unsigned count, uint64_t row, uint8_t *tile) {
    enum { AHEAD = 8192 };
    const cr_axis_plan *plan = h->plan;
    const uint64_t n = plan->spec->shape.n;
    uint8_t *room = tile + tile_elements(plan) * plan->size;
    const uint8_t *kept = h->bytes ? h->bytes + row * n : room;
    if (!h->bytes) h->isa->keep(room, h->mask, row * n, count * n);
    cr_strip_start(plan, rows->strip);
    if (plan->counted) count_rows(h, rows, kept, count, n);
    for (unsigned i = 0; i < count && plan->indices; i++)
        note_kept(plan, rows->strip, kept + i * n, 1, (unsigned)n, i, 1, 0);
    for (unsigned i = 0; i < h->passes; i++) {
        h->isa->hide(tile, p, kept, count * n, plan->size, h->pass[i].fill, AHEAD);
        h->isa->rows(&h->pass[i].plan, rows, tile, count, n);
    }
    rows->data = tile;
}
