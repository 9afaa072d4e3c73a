/* axis_extrema: minimum, maximum, their lowest lines and the first NaN of each column. Included once per instruction set;
 * itself includes axis_extrema_lane.h once per lane width. Keys are those of fold_extrema.h.
 *
 * Thread: any. Owner: the caller owns strip and data. */

#define TEMPLATE "kernels/cpu/axis_extrema_lane.h"
#define LANE 8
#include "kernels/cpu/instance.h"
#define LANE 16
#include "kernels/cpu/instance.h"
#define LANE 32
#include "kernels/cpu/instance.h"
#define LANE 64
#include "kernels/cpu/instance.h"
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
    switch ((int)plan->dtype) {
#define CASE(dtype, lane, kind, infinity)               \
    case dtype:                                         \
        extrema_lines_##dtype(plan, strip, part, line); \
        break;
        EXTREMA_CASES(CASE)
#undef CASE
    }
}

/* A whole row, by the fold of a whole array. */
static void extrema_row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n) {
    struct extremum_run run = {.first_nan = UINT64_MAX};
    extrema_tile(&run, plan->dtype, plan->wants, p, n, 0, row_ahead(p));
    if (run.first_nan != UINT64_MAX) strip->nans = 1;
    ((uint64_t *)cr_strip_array(strip, plan->first_nan))[column] = run.first_nan;
    /* A side that nobody asked for takes the other's: what counts is that there was an element. */
    const struct extremum_block *min = run.min.block ? &run.min : &run.max, *max = run.max.block ? &run.max : &run.min;
    if (min->block == NULL) return;
    size_t size = plan->size;
    memcpy((uint8_t *)cr_strip_array(strip, plan->min_key) + column * size, &min->key, size);
    memcpy((uint8_t *)cr_strip_array(strip, plan->max_key) + column * size, &max->key, size);
    if (plan->wants & CR_WANTS_ARGMIN) {
        ((uint64_t *)cr_strip_array(strip, plan->min_index))[column] =
            min->index + extrema_find(plan->dtype, min->block, min->n, min->key);
    }
    if (plan->wants & CR_WANTS_ARGMAX) {
        ((uint64_t *)cr_strip_array(strip, plan->max_index))[column] =
            max->index + extrema_find(plan->dtype, max->block, max->n, max->key);
    }
}
