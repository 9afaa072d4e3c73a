/* range: folding and finishing ranges of columns held in strips. Private to kernels/cpu.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_COLUMNS_RANGE_H
#define CURED_KERNELS_CPU_COLUMNS_RANGE_H

#include "kernels/cpu/axis/plan.h"

/* Columns [begin, end) of plan->width, in strips; begin is a multiple of CR_STRIP. */
typedef struct cr_columns_range {
    uint64_t begin, end;
} cr_columns_range;

/* Folds those of count elements at data (element `at` of the block and on) that lie in range into its strips. */
void cr_columns_fold_range(const cr_axis_plan *plan, const cr_axis_isa *isa, void *strips, cr_columns_range range,
                           const uint8_t *data, uint64_t count, uint64_t at);
/* Answers of the array's columns [first, first + count) to out[k][to …]; output numbers the first. */
cr_status cr_columns_finish_range(const cr_axis_plan *plan, const cr_axis_isa *isa, const void *strips,
                                  cr_columns_range range, uint64_t first, uint64_t count, uint64_t output,
                                  void *const out[], uint64_t to, cr_error *error);

#endif
