/* pairs: what the kernels of sums of pairs over short rows and few lines share with those who ask for them. Private to kernels/cpu.
 *
 * Σ of a row's terms is S + E, as of other short rows (rows.h). A row whose products lose bits, overflow or are no numbers is in doubt.
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_ROWS_PAIRS_H
#define CURED_KERNELS_CPU_ROWS_PAIRS_H

#include "kernels/cpu/rows/rows.h"

enum {
    CR_PAIR_ROW_BYTES = 16384, /* of a row, at most: the folds of arrays take longer ones */
    CR_PAIR_LINES_LOG2 = 20    /* of a column */
};

/* CR_ROWS rows at most, or columns that lie side by side. */
typedef struct cr_pair_rows {
    const uint8_t *x, *y;    /* the first row's first elements */
    bool narrow;             /* float32, not float64 */
    const uint64_t *borders; /* of rows, in elements: one more than there are rows. NULL: columns, */
    uint64_t n;              /* of n lines, */
    size_t x_line, y_line;   /* each so many bytes from the one before it */
} cr_pair_rows;

/* Whether these ops are sums of pairs that the kernels know, without a mask: then cr_pair_rows_answer stores theirs of count rows to out[k][at …], but for
 * those that hard[i] says. */
bool cr_pair_rows_take(const cr_axis_plan *plan, cr_ops ops);
void cr_pair_rows_answer(const cr_axis_plan *plan, cr_ops ops, const cr_pair_rows *rows, unsigned count, uint64_t at,
                         void *const out[], uint8_t hard[CR_ROWS]);

#endif
