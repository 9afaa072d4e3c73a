/* hidden: strips under a mask. What the mask leaves out is hidden: the lines of a group, or some rows, are copied into the nearest caches, and
 * there it is an element that changes no answer. So the kernels of lines and rows know of no mask. Sums and counts take a zero for that;
 * a minimum what nothing is above, a maximum what nothing is below. How many elements of a column count is folded from the mask as bytes,
 * by the kernel that counts zeros, where an answer depends on it (cr_strip_n). Private to kernels/cpu.
 *
 * Thread: one at a time for a cr_hidden. Owner: the caller. */
#ifndef CURED_KERNELS_CPU_AXIS_HIDDEN_H
#define CURED_KERNELS_CPU_AXIS_HIDDEN_H

#include "kernels/core/mask.h"
#include "kernels/cpu/rows/rows.h"

/* One pass over what is hidden: what it folds, into arrays of its own, and what the mask leaves out is then. */
typedef struct cr_hidden_pass {
    cr_axis_plan plan;
    uint64_t fill;
} cr_hidden_pass;

typedef struct cr_hidden {
    const cr_axis_plan *plan; /* of all */
    const cr_axis_isa *isa;
    const cr_mask *mask;
    const uint8_t *bytes; /* the mask's, where those that count are not 0; NULL: they are made */
    uint64_t mask_line;   /* elements of the mask from a line of the strips to the next */
    unsigned passes;
    cr_axis_plan count; /* of the mask's bytes, where plan->counted */
    cr_hidden_pass pass[3];
} cr_hidden;

/* Whether strips know the op under a mask. */
bool cr_hidden_takes(cr_op op, cr_dtype dtype);
/* The bits of what the mask leaves out of extrema, where NaNs are no answer or none is skipped: no element is better. The first of equals
 * may then be hidden, but if an extremum is that, all that counts is, and its place is that of the first element that counts. */
uint64_t cr_hidden_worst(cr_dtype dtype, bool least);
/* Whether its answers depend on how many elements count. */
bool cr_hidden_counts(cr_op op);

/* For plan, whose strips are laid out. mask begins with line 0, column 0. */
void cr_hidden_make(cr_hidden *hidden, const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_mask *mask);
/* As isa->lines, of the columns of all strips from number `column` on. */
void cr_hidden_lines(const cr_hidden *hidden, cr_strip *strip, const uint8_t *p, size_t stride, unsigned lines,
                     unsigned first, unsigned columns, uint64_t line, uint64_t column, size_t ahead);
/* As isa->rows, of rows from number `row` of the mask on. tile: cr_hidden_rows_bytes. */
void cr_hidden_rows(const cr_hidden *hidden, cr_rows *rows, const uint8_t *p, unsigned count, uint64_t row,
                    uint8_t *tile);
size_t cr_hidden_rows_bytes(const cr_axis_plan *plan);

#endif
