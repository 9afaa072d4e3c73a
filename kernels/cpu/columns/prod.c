/* prod: products of floats down columns: panels, blocks, the tree above them. See prod.h.
 *
 * Thread: any; a state belongs to one thread at a time. Owner: the caller. */
#include "kernels/cpu/columns/prod.h"

#include <string.h>

#include "kernels/core/prod.h"

/* The arrays of a panel, in their order; then (h, l) of each accumulator, and (h, l, exponent) of each level. */
enum { WORD, NANS, ZEROS, INFS, SIGNS, ARRAYS, COLUMNS_PAD = 8, FIELD_OF_ONE = 1023 };

cr_prods cr_prods_layout(const cr_axis_spec *spec) {
    cr_prods p = {.dtype = spec->dtype, .n = spec->shape.n, .inner = spec->shape.inner};
    uint64_t panels = (p.inner + CR_PROD_PANEL - 1) / CR_PROD_PANEL, blocks = (p.n + CR_PROD_BLOCK - 1) / CR_PROD_BLOCK;
    uint64_t columns = panels ? (p.inner + panels - 1) / panels : 0;
    p.columns = (uint32_t)(columns + COLUMNS_PAD - 1) / COLUMNS_PAD * COLUMNS_PAD;
    p.panels = p.columns ? (p.inner + p.columns - 1) / p.columns : 0;
    p.accumulators = p.n < CR_PROD_ACCUMULATORS ? (uint32_t)p.n : CR_PROD_ACCUMULATORS;
    while (blocks >> p.levels) p.levels++;
    p.panel_bytes = (ARRAYS + 2 * p.accumulators + 3 * p.levels) * (size_t)p.columns * sizeof(uint64_t);
    return p;
}

/* A vector may be read where a panel's last columns begin. */
size_t cr_prods_bytes(const cr_prods *p) { return p->panels * p->panel_bytes + COLUMNS_PAD * sizeof(uint64_t); }

static uint64_t *panel_at(const cr_prods *p, const void *state, uint64_t panel) {
    return (uint64_t *)(void *)((uint8_t *)(uintptr_t)state + panel * p->panel_bytes);
}

static uint64_t *array_of(const cr_prods *p, uint64_t *panel, int which) { return panel + which * (size_t)p->columns; }
/* part: 0 h, 1 l. */
static double *accumulator(const cr_prods *p, uint64_t *panel, uint32_t number, int part) {
    return (double *)(void *)(panel + (ARRAYS + 2 * number + (uint32_t)part) * (size_t)p->columns);
}
/* part: 0 h, 1 l, 2 exponent. */
static void *node(const cr_prods *p, uint64_t *panel, unsigned level, int part) {
    return panel + (ARRAYS + 2 * p->accumulators + 3 * level + (uint32_t)part) * (size_t)p->columns;
}

void cr_prods_init(const cr_prods *p, void *state) {
    for (uint64_t i = 0; i < p->panels; i++)
        memset(panel_at(p, state, i), 0, ARRAYS * (size_t)p->columns * sizeof(uint64_t));
}

static void normalise(double *h, double *l, int64_t *exponent, size_t count) {
    for (size_t c = 0; c < count; c++) exponent[c] += cr_prod_normalise(&h[c], &l[c]);
}

/* Columns [begin, end) have taken the last of the `lines` lines of a block: its product joins those of the blocks before. */
static void close_block(const cr_prods *p, const cr_axis_isa *isa, uint64_t *panel, size_t begin, size_t end,
                        uint64_t block, uint32_t lines) {
    size_t count = end - begin;
    uint64_t *word = array_of(p, panel, WORD) + begin, *sign = array_of(p, panel, SIGNS) + begin;
    int64_t exponent[CR_PROD_PANEL];
    for (size_t c = 0; c < count; c++) {
        exponent[c] = (int64_t)(word[c] & INT64_MAX) - (int64_t)lines * (FIELD_OF_ONE + CR_PROD_BIAS);
        sign[c] ^= word[c] >> 63;
    }
    double *h = accumulator(p, panel, 0, 0) + begin, *l = accumulator(p, panel, 0, 1) + begin;
    uint32_t live = lines < CR_PROD_ACCUMULATORS ? lines : CR_PROD_ACCUMULATORS;
    for (uint32_t i = 0; i < live; i++)
        normalise(accumulator(p, panel, i, 0) + begin, accumulator(p, panel, i, 1) + begin, exponent, count);
    for (uint32_t width = CR_PROD_ACCUMULATORS / 2; width; width /= 2) { /* what is missing is ones */
        for (uint32_t i = 0; i + width < live; i++)
            isa->prod_joins(accumulator(p, panel, i, 0) + begin, accumulator(p, panel, i, 1) + begin,
                            accumulator(p, panel, i + width, 0) + begin, accumulator(p, panel, i + width, 1) + begin,
                            count);
        if (live > width) live = width;
    }
    normalise(h, l, exponent, count);
    unsigned level = 0;
    for (; block >> level & 1; level++) {
        const int64_t *risen = (const int64_t *)node(p, panel, level, 2) + begin;
        isa->prod_joins(h, l, (double *)node(p, panel, level, 0) + begin, (double *)node(p, panel, level, 1) + begin,
                        count);
        normalise(h, l, exponent, count);
        for (size_t c = 0; c < count; c++) exponent[c] += risen[c];
    }
    memcpy((double *)node(p, panel, level, 0) + begin, h, count * sizeof *h);
    memcpy((double *)node(p, panel, level, 1) + begin, l, count * sizeof *l);
    memcpy((int64_t *)node(p, panel, level, 2) + begin, exponent, count * sizeof exponent[0]);
}

/* Columns [begin, end) of the panel, of one line, at data. */
static void fold_line(const cr_prods *p, const cr_axis_isa *isa, uint64_t *panel, uint64_t line, size_t begin,
                      size_t end, const uint8_t *data) {
    uint64_t block = line / CR_PROD_BLOCK;
    uint32_t at = (uint32_t)(line % CR_PROD_BLOCK);
    cr_prod_line to = {.begin = begin,
                       .end = end,
                       .opens = at == 0,
                       .first = at < CR_PROD_ACCUMULATORS,
                       .word = array_of(p, panel, WORD),
                       .nans = array_of(p, panel, NANS),
                       .zeros = array_of(p, panel, ZEROS),
                       .infs = array_of(p, panel, INFS),
                       .h = accumulator(p, panel, at % CR_PROD_ACCUMULATORS, 0),
                       .l = accumulator(p, panel, at % CR_PROD_ACCUMULATORS, 1)};
    isa->prod_line(&to, p->dtype, data);
    if (at + 1 == CR_PROD_BLOCK || line + 1 == p->n) close_block(p, isa, panel, begin, end, block, at + 1);
}

void cr_prods_fold(const cr_prods *p, const cr_axis_isa *isa, void *state, const uint8_t *data, uint64_t count,
                   uint64_t at) {
    size_t size = cr_dtype_size(p->dtype);
    uint64_t end = at + count;
    if (count == 0) return;
    for (uint64_t i = 0; i < p->panels; i++) {
        uint64_t *panel = panel_at(p, state, i), from = i * p->columns, to = from + p->columns;
        if (to > p->inner) to = p->inner;
        for (uint64_t line = at / p->inner; line <= (end - 1) / p->inner; line++) {
            uint64_t start = line * p->inner, a = start + from, b = start + to;
            if (a < at) a = at;
            if (b > end) b = end;
            if (a >= b) continue;
            fold_line(p, isa, panel, line, (size_t)(a - start - from), (size_t)(b - start - from),
                      data + (a - at) * size);
        }
    }
}

void cr_prods_column(const cr_prods *p, const void *state, uint64_t column, cr_partial *partial) {
    uint64_t *panel = panel_at(p, state, column / p->columns), blocks = (p->n + CR_PROD_BLOCK - 1) / CR_PROD_BLOCK;
    size_t c = column % p->columns;
    cr_partial_init(partial, p->dtype, CR_FAM_PROD);
    partial->n = p->n;
    cr_float_prod *prod = &partial->float_prod;
    prod->nans = array_of(p, panel, NANS)[c];
    prod->zeros = array_of(p, panel, ZEROS)[c];
    prod->infs = array_of(p, panel, INFS)[c];
    prod->negative = array_of(p, panel, SIGNS)[c] & 1;
    /* The nodes as they lie along the column: the highest level first. */
    uint64_t first = 0;
    for (unsigned level = p->levels; level-- > 0;) {
        if (!(blocks >> level & 1)) continue;
        prod->nodes[prod->count++] = (cr_prod_node){.place = 2 * first + ((uint64_t)1 << level),
                                                    .h = ((const double *)node(p, panel, level, 0))[c],
                                                    .l = ((const double *)node(p, panel, level, 1))[c],
                                                    .exponent = ((const int64_t *)node(p, panel, level, 2))[c]};
        first += (uint64_t)1 << level;
    }
}
