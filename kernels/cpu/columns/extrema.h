/* extrema: minimum, maximum, their lowest lines and the first NaN of each column. Includes extrema_lane.inc
 * once per lane width. Keys are those of family/extrema.h.
 *
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_EXTREMA_H
#define CURED_KERNELS_CPU_COLUMNS_EXTREMA_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/part.h"
#include "kernels/cpu/family/extrema.h"
#include "kernels/cpu/table.h"

#define TEMPLATE "kernels/cpu/columns/extrema_lane.inc"
#define LANE 8
#include "kernels/cpu/instance.inc"
#define LANE 16
#include "kernels/cpu/instance.inc"
#define LANE 32
#include "kernels/cpu/instance.inc"
#define LANE 64
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

#define CASE(dtype, lane, kind, infinity)                                                                \
    NEVER void extrema_lines_##dtype(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, \
                                     uint64_t line) {                                                    \
        if (plan->indices) {                                                                             \
            extrema_lines_##lane(plan, strip, part, line, kind, infinity, true);                         \
        } else {                                                                                         \
            extrema_lines_##lane(plan, strip, part, line, kind, infinity, false);                        \
        }                                                                                                \
    }
EXTREMA_CASES(CASE)
#undef CASE

static void extrema_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, uint64_t line) {
    switch (plan->dtype) {
#define CASE(dtype, lane, kind, infinity)               \
    case dtype:                                         \
        extrema_lines_##dtype(plan, strip, part, line); \
        break;
        EXTREMA_CASES(CASE)
#undef CASE
        case CR_NO_INPUT:
            break;
    }
}

/* A whole row, by the fold of a whole array. */
static void extrema_row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n) {
    cr_array_extrema row;
    OF_ISA(cr_fold).extrema(plan->dtype, plan->wants, p, n, &row);
    if (row.first_nan != UINT64_MAX) strip->nans = 1;
    ((uint64_t *)cr_strip_array(strip, plan->first_nan))[column] = row.first_nan;
    if (!row.some) return;
    size_t size = plan->size;
    memcpy((uint8_t *)cr_strip_array(strip, plan->min_key) + column * size, &row.min_key, size);
    memcpy((uint8_t *)cr_strip_array(strip, plan->max_key) + column * size, &row.max_key, size);
    if (plan->wants & CR_WANTS_ARGMIN) {
        ((uint64_t *)cr_strip_array(strip, plan->min_index))[column] = row.min_index;
    }
    if (plan->wants & CR_WANTS_ARGMAX) {
        ((uint64_t *)cr_strip_array(strip, plan->max_index))[column] = row.max_index;
    }
}

#endif
