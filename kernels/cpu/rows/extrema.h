/* extrema: extrema and counts of short rows, for each element type (rows.h). Includes extrema_lane.inc once per lane width.
 *
 * Thread: any. Owner: the caller owns rows and data. */
#ifndef CURED_KERNELS_CPU_ROWS_EXTREMA_H
#define CURED_KERNELS_CPU_ROWS_EXTREMA_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/family/extrema.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/rows/tree.h"

struct row_kind {
    int64_t flip, top, infinity; /* infinity: floats only, else 0 */
    uint8_t limit;               /* of bytes: 1 for bool */
};

#define TEMPLATE "kernels/cpu/rows/extrema_lane.inc"
#define LANE 8
#include "kernels/cpu/instance.inc"
#define LANE 16
#include "kernels/cpu/instance.inc"
#define LANE 32
#include "kernels/cpu/instance.inc"
#define LANE 64
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

static struct row_kind row_kind_of(cr_dtype dtype) {
    struct row_kind kind = {0, 0, 0, dtype == CR_BOOL ? 1 : 255};
    switch (dtype) {
#define CASE(type, lane, how, inf)                                                                  \
    case type:                                                                                      \
        kind.infinity = inf;                                                                        \
        if (how == KEY_UNSIGNED || how == KEY_BOOL) kind.top = (int64_t)(UINT64_MAX << (lane - 1)); \
        break;
        EXTREMA_CASES(CASE)
#undef CASE
        case CR_NO_INPUT:
            break;
    }
    kind.flip = kind.top;
    return kind;
}

static void extrema_rows(const cr_axis_plan *plan, cr_strip *strip, const uint8_t *p, uint64_t n, unsigned count) {
    typedef bool extremum(const uint8_t *, uint64_t, unsigned, const struct row_kind *, bool, uint8_t *, uint64_t *);
    extremum *const find = plan->size == 1   ? rows_extremum_8
                           : plan->size == 2 ? rows_extremum_16
                           : plan->size == 4 ? rows_extremum_32
                                             : rows_extremum_64;
    struct row_kind least = row_kind_of(plan->dtype), most = least;
    uint8_t *min = cr_strip_array(strip, plan->min_key), *max = cr_strip_array(strip, plan->max_key);
    uint64_t *min_index = plan->wants & CR_WANTS_ARGMIN ? cr_strip_array(strip, plan->min_index) : NULL;
    uint64_t *max_index = plan->wants & CR_WANTS_ARGMAX ? cr_strip_array(strip, plan->max_index) : NULL;
    uint64_t *first_nan = cr_strip_array(strip, plan->first_nan);
    most.flip = ~most.flip;
    strip->nans = 0;
    if ((!(plan->wants & CR_WANTS_MIN) || find(p, n, count, &least, false, min, min_index)) &&
        (!(plan->wants & CR_WANTS_MAX) || find(p, n, count, &most, false, max, max_index))) {
        memset(first_nan, 0xff, count * sizeof *first_nan);
        return;
    }
    /* Whether a row holds nothing but NaNs is seen at its minimum. */
    strip->nans = 1;
    find(p, n, count, &least, true, min, min_index);
    find(p, n, count, &most, true, max, max_index);
    (plan->size == 1   ? rows_first_nan_8
     : plan->size == 2 ? rows_first_nan_16
     : plan->size == 4 ? rows_first_nan_32
                       : rows_first_nan_64)(p, n, count, &least, first_nan);
}

static void count_rows(const cr_axis_plan *plan, cr_strip *strip, const uint8_t *p, uint64_t n, unsigned count) {
    struct row_kind kind = row_kind_of(plan->dtype);
    uint64_t *zeros = cr_strip_array(strip, plan->zeros), *nans = cr_strip_array(strip, plan->nans);
    (plan->size == 1   ? rows_counts_8
     : plan->size == 2 ? rows_counts_16
     : plan->size == 4 ? rows_counts_32
                       : rows_counts_64)(p, n, count, &kind, zeros, nans);
}

#endif
