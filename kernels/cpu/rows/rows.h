/* rows: many short rows at once: what the kernels of an instruction set leave to the finish. Private to kernels/cpu.
 *
 * A row that lies whole in one call needs no state that can be merged. Σ of a row is S + E: S the float64 sum of its elements, E
 * the sum of the errors of those additions (TwoSum: Knuth, TAOCP 2, 4.2.2), which is exact where the row's magnitudes lie close
 * enough, and otherwise off by less than a bound that the sum of the errors' magnitudes gives (Ogita, Rump and Oishi,
 * "Accurate Sum and Dot Product", SIAM J. Sci. Comput. 26, 2005). A row whose bound leaves its rounding open is folded
 * again as an array of its own.
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_ROWS_ROWS_H
#define CURED_KERNELS_CPU_ROWS_ROWS_H

#include "kernels/cpu/axis/plan.h"

enum {
    CR_ROWS = 256,           /* rows of a batch at most; a multiple of the lanes of every vector */
    CR_ROWS_BYTES = 65536,   /* of a batch, about: it is read again where the first way does not serve */
    CR_ROW_SUMS = 3,         /* Σx, Σ|x|, Σx² */
    CR_ROW_TREE_BYTES = 4096 /* up to here extrema and counts of several rows are gathered in one vector */
};

/* Σ of each row. Floats: hi + lo, off by at most doubt (a NaN: nothing is known). Integers: the low and the high word. */
typedef struct cr_row_sums {
    union {
        double hi[CR_ROWS];
        uint64_t low[CR_ROWS];
    };
    union {
        double lo[CR_ROWS];
        int64_t high[CR_ROWS];
    };
    double doubt[CR_ROWS];
    uint64_t nans[CR_ROWS], pinfs[CR_ROWS], ninfs[CR_ROWS]; /* written if special */
    bool plain;                                             /* lo and doubt are all zeros, and were not written */
    bool special;                                           /* some row has NaNs or infinities */
    uint32_t top; /* floats: the exponent field that the last rows' elements stayed below; kept from batch to batch */
    uint32_t misses; /* groups that the first way did not serve, of late; kept too */
    bool strange;    /* the last group had NaNs or infinities; kept too */
} cr_row_sums;

typedef struct cr_rows {
    cr_row_sums sums[CR_ROW_SUMS];
    cr_strip *strip; /* of CR_ROWS columns: extrema and counts of row i in column i */
    const uint8_t *data;
    const uint64_t *borders; /* of rows that differ in length, for sums of floats alone; NULL: all have n elements */
} cr_rows;

/* Rows of a batch. */
static inline unsigned cr_rows_at_once(uint64_t row_bytes) {
    uint64_t rows = CR_ROWS_BYTES / row_bytes;
    return rows >= CR_ROWS ? CR_ROWS : (unsigned)(rows / 8 * 8 > 8 ? rows / 8 * 8 : 8);
}
/* The answers whose divisor is nothing (core/close.h), where counts[i] elements of output i count: NaN, and no longer hard. */
void cr_undivided(const double *counts, unsigned count, cr_divisor_kind divisor, uint64_t ddof, cr_dtype result,
                  uint8_t *to, uint8_t *hard);
/* Answers of a batch's rows, the first of which is output number `output`, to out[k][at …]. */
cr_status cr_rows_finish(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_rows *rows, unsigned count,
                         uint64_t output, void *const out[], uint64_t at, cr_error *error);

#endif
