/* pairs: answers of ops of two arrays over short rows, or over columns. Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/rows/pairs.h"

#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/float_state.h"

bool cr_pair_rows_take(const cr_axis_plan *plan, cr_ops ops) {
    const cr_axis_spec *spec = plan->spec;
    bool known = spec->dtype == CR_F32 || spec->dtype == CR_F64;
    known = known && spec->second_line != 0 && spec->mask_line == 0;
    known = known && cr_fast_on(CR_FAST_SHORT_PAIRS) && cr_fast_on(CR_FAST_PAIRS);
    for (uint32_t k = 0; k < spec->op_count && known; k++) {
        if (!cr_ops_has(ops, spec->ops[k])) continue;
        known =
            (cr_op_needs(spec->ops[k], spec->dtype) & ~(uint32_t)(CR_FAM_DOT | CR_FAM_SQDIST | CR_FAM_WEIGHTS)) == 0 &&
            cr_op_divisor(spec->ops[k]) == CR_DIVISOR_ONE && !cr_op_is_root(spec->ops[k]) &&
            cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish) == CR_F64;
    }
    return known;
}

void cr_pair_rows_answer(const cr_axis_plan *plan, cr_ops ops, const cr_pair_rows *rows, unsigned count, uint64_t at,
                         void *const out[], uint8_t hard[CR_ROWS]) {
    const cr_axis_spec *spec = plan->spec;
    const cr_axis_isa *isa = cr_axis_current();
    cr_row_sums sum, weights;
    uint8_t own[CR_ROWS];
    const uint64_t state = cr_float_enter();
    memset(hard, 0, count);
    for (uint32_t k = 0; k < spec->op_count; k++) {
        if (!cr_ops_has(ops, spec->ops[k])) continue;
        const uint32_t needs = cr_op_needs(spec->ops[k], spec->dtype);
        uint8_t *to = (uint8_t *)out[k] + at * sizeof(double);
        isa->pairs(rows, count, needs & CR_FAM_SQDIST ? CR_AT_SQDIST : CR_AT_DOT, &sum);
        if (needs & CR_FAM_WEIGHTS) {
            isa->pairs(rows, count, CR_AT_WEIGHTS, &weights);
            isa->round_averages(&sum, &weights, count, to, own);
        } else {
            isa->round_rows(&sum, count, 0, NULL, false, to, own);
        }
        for (unsigned i = 0; i < count; i++) hard[i] |= own[i];
    }
    cr_float_leave(state);
}
