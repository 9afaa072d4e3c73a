/* square_int: Σ of squares of integers of up to 32 bits over short rows, as sums of the squares (pairs/terms.h). A part of axis.inc.
 *
 * Thread: any. Owner: the caller owns sums and data. */
#ifndef CURED_KERNELS_CPU_ROWS_SQUARE_INT_H
#define CURED_KERNELS_CPU_ROWS_SQUARE_INT_H

#include "kernels/cpu/pairs/terms.h"

/* count rows of n elements at p, n at least 1; a row of at most CR_ROW_BYTES. */
static void square_rows_int(cr_dtype dtype, cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count) {
    const cr_dtype wide = cr_pair_terms_dtype(dtype, CR_AT_DOT);
    const size_t row = n * cr_dtype_size(dtype), square_row = n * cr_dtype_size(wide);
    uint8_t squares[CR_ROW_BYTES * sizeof(uint32_t)] __attribute__((aligned(64)));
    const unsigned at_once = (unsigned)(sizeof squares / square_row);
    cr_row_sums some;
    for (unsigned i = 0, now; i < count; i += now, p += now * row) {
        now = count - i < at_once ? count - i : at_once;
        terms(squares, 0, p, p, NULL, now * n, dtype, CR_AT_DOT);
        sum_rows_int(wide, &some, squares, n, now, 0);
        memcpy(&sums->low[i], some.low, now * sizeof some.low[0]);
        memcpy(&sums->high[i], some.high, now * sizeof some.high[0]);
    }
}

#endif
