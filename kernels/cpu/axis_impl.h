/* axis_impl: the folds along an axis for one instruction set. axis_portable.c, axis_avx2.c and axis_avx512.c define VB,
 * the VEC_* switch, AXIS_NAME and AXIS_FOLDS, and include this once.
 *
 * Thread: any. Owner: the caller owns strips and data. */
#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"
#include "kernels/cpu/axis_plan.h"
#include "kernels/cpu/axis_rows.h"
#include "kernels/cpu/fold_table.h"
#include "kernels/cpu/vec.h"

/* Rows long enough to be arrays of their own use the folds of arrays; not all of those are needed here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "kernels/cpu/fold_int.h"

#include "kernels/cpu/fold_counts.h"
#include "kernels/cpu/fold_extrema.h"
#pragma GCC diagnostic pop

#include "kernels/cpu/axis_part.h"
#include "kernels/cpu/axis_rows_tree.h"

#include "kernels/cpu/axis_counts.h"
#include "kernels/cpu/axis_extrema.h"
#include "kernels/cpu/axis_int.h"
#include "kernels/cpu/axis_plain.h"
#include "kernels/cpu/axis_prod_lines.h"
#include "kernels/cpu/axis_rows_extrema.h"
#include "kernels/cpu/axis_rows_int.h"
#include "kernels/cpu/axis_sum.h"

#include "kernels/cpu/axis_square.h"

#include "kernels/cpu/axis_round.h"

static void lines(const cr_axis_plan *plan, cr_strip *strip, const uint8_t *p, size_t stride, unsigned count,
                  unsigned first, unsigned columns, uint64_t line, size_t ahead) {
    struct part part = {p, stride, count, first, columns, ahead};
    if (plan->fast & CR_FAM_SUM) sum_lines(plan, strip, &part, 0);
    if (plan->fast & CR_FAM_SUMABS) sum_lines(plan, strip, &part, 1);
    if (plan->fast & CR_FAM_SUMSQ) square_lines(plan, strip, &part);
    if ((plan->fast & (CR_FAM_EXTREMA | CR_FAM_COUNTS)) == 0) return;
    if (!strip->started) cr_strip_start(plan, strip);
    if (plan->fast & CR_FAM_EXTREMA) extrema_lines(plan, strip, &part, line);
    if (plan->fast & CR_FAM_COUNTS) count_lines(plan, strip, &part);
}

static void row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n) {
    if (plan->fast & CR_FAM_SUM) sum_row(plan, strip, column, p, n, 0);
    if (plan->fast & CR_FAM_SUMABS) sum_row(plan, strip, column, p, n, 1);
    if ((plan->fast & (CR_FAM_EXTREMA | CR_FAM_COUNTS)) == 0) return;
    if (!strip->started) cr_strip_start(plan, strip);
    if (plan->fast & CR_FAM_EXTREMA) extrema_row(plan, strip, column, p, n);
    if (plan->fast & CR_FAM_COUNTS) count_row(plan, strip, column, p, n);
}

static void rows(const cr_axis_plan *plan, cr_rows *all, const uint8_t *p, unsigned count, uint64_t n) {
    static const uint32_t families[CR_ROW_SUMS] = {CR_FAM_SUM, CR_FAM_SUMABS, CR_FAM_SUMSQ};
    for (int which = 0; which < CR_ROW_SUMS; which++) {
        if (plan->fast & families[which]) sum_rows(plan->dtype, &all->sums[which], p, n, count, which);
    }
    if ((plan->fast & (CR_FAM_EXTREMA | CR_FAM_COUNTS)) == 0) return;
    if (n * plan->size > CR_ROW_TREE_BYTES) { /* long enough to be arrays of their own */
        cr_strip_start(plan, all->strip);
        for (unsigned i = 0; i < count; i++, p += n * plan->size) {
            if (plan->fast & CR_FAM_EXTREMA) extrema_row(plan, all->strip, i, p, n);
            if (plan->fast & CR_FAM_COUNTS) count_row(plan, all->strip, i, p, n);
        }
        return;
    }
    if (plan->fast & CR_FAM_EXTREMA) extrema_rows(plan, all->strip, p, n, count);
    if (plan->fast & CR_FAM_COUNTS) count_rows(plan, all->strip, p, n, count);
}

const cr_axis_isa AXIS_NAME = {AXIS_TEXT,   lines,         row,       round_sums, rows,      round_rows,
                               column_sums, round_squares, prod_line, prod_joins, plain_sums};
