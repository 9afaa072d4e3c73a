/* prod: products of floats down columns, by the fixed tree of docs/NUMERICS.md, where a block comes in pieces. Private to
 * kernels/cpu.
 *
 * The tree multiplies in order, so the pieces of a block are folded in order into one state. A column has an accumulator for
 * each of the tree's 256, while a block of 4,096 lines is open, and of the blocks before it one node for each bit of their
 * number: what siblings leave as they join. All columns are at the same line, so all of this is arithmetic on arrays.
 *
 * A panel is up to CR_PROD_PANEL columns, whose arrays lie together, so that many lines pass while they are near.
 * Thread: any; a state belongs to one thread at a time. Owner: the caller. */
#ifndef CURED_KERNELS_CPU_COLUMNS_PROD_H
#define CURED_KERNELS_CPU_COLUMNS_PROD_H

#include "kernels/cpu/axis/plan.h"

enum { CR_PROD_PANEL = 64, CR_PROD_ACCUMULATORS = 256 };

/* What a word of an open block holds of a column: the sum of (exponent field + CR_PROD_BIAS), and in the top bit the sign. */
enum { CR_PROD_BIAS = -CR_F64_LEAST };

/* One line's part in a panel: columns [begin, end), and the arrays of all of the panel's. */
typedef struct cr_prod_line {
    size_t begin, end;
    bool opens, first; /* the line is the first of a block; of its accumulators */
    uint64_t *word, *nans, *zeros, *infs;
    double *h, *l;
} cr_prod_line;

/* How the state of a spec's columns lies in memory: arrays of `columns` words, panel by panel. */
typedef struct cr_prods {
    cr_dtype dtype;
    uint64_t n, inner, panels;
    uint32_t columns;              /* of a panel */
    uint32_t accumulators, levels; /* that n needs */
    size_t panel_bytes;
} cr_prods;

cr_prods cr_prods_layout(const cr_axis_spec *spec);
size_t cr_prods_bytes(const cr_prods *prods);
void cr_prods_init(const cr_prods *prods, void *state);
/* Folds count elements, the first of which is element `at` of the block: the one after the last call's. */
void cr_prods_fold(const cr_prods *prods, const cr_axis_isa *isa, void *state, const uint8_t *data, uint64_t count,
                   uint64_t at);
/* The product of a whole column, as a partial of nothing else. */
void cr_prods_column(const cr_prods *prods, const void *state, uint64_t column, cr_partial *p);

#endif
