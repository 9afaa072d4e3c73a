/* linears: what the host says to the kernels of linear.h. Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/core/linear.h"
#include "kernels/cuda/axis/answer.h"
#include "kernels/cuda/axis/linear.h"

static bool is_float(cr_dtype dtype) { return cr_dtype_kind(dtype) == CR_KIND_FLOAT; }

cr_status cr_linear_takes(cr_dtype dtype, uint32_t families, cr_dtype as, cr_error *error) {
    cr_status status = cr_linear_check(families, error);
    if (status != CR_OK) return status;
    if (families & ~(CR_FAM_KNOWN_SUMS | CR_FAM_COUNTS | CR_FAM_EXTREMA))
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "ops: one of them has no linear form that a GPU writes; ask for the partial, whose linear form "
                       "the host writes");
    if (as != dtype && families & CR_FAM_EXTREMA)
        return cr_fail(error, CR_UNIMPLEMENTED, "as: extrema are written as %s alone, the arrays' type",
                       cr_dtype_name(dtype));
    const bool finer = is_float(dtype) && is_float(as) && cr_sum_grid(CR_AT_SUM, as) <= cr_sum_grid(CR_AT_SUM, dtype);
    if (as != dtype && !finer)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "as: %s does not hold each element of %s; it must be that type, or of floats a wider one",
                       cr_dtype_name(as), cr_dtype_name(dtype));
    return CR_OK;
}

/* Folds of floats' sums write all of theirs. */
int cr_linear_begin(cr_dtype dtype, uint32_t families, cr_fold_slot *slot, void *stream) {
    if (is_float(dtype) && (families & ~(uint32_t)CR_FAM_KNOWN_SUMS) == 0) return 0;
    return cr_linear_begin_launch(slot, stream);
}

int cr_linear_enqueue(cr_dtype dtype, uint32_t families, uint64_t n, const cr_linear_to *to, cr_fold_slot *slot,
                      void *stream) {
    cr_linear_args args = {.slot = slot, .n = n, .sums = to->sums, .floats = is_float(dtype)};
    for (unsigned at = 0; at < CR_KNOWN_SUMS; at++) {
        if (!(families & cr_sum_rows[at].family)) continue;
        args.sum[args.sum_count++] =
            (cr_linear_sum){.at = (uint8_t)at,
                            .first = (uint16_t)cr_linear_place(to->as, families, at),
                            .limbs = (uint16_t)cr_sum_limbs((cr_sum_at)at, to->as),
                            .found = (uint16_t)cr_sum_limbs((cr_sum_at)at, dtype),
                            .shift = (uint16_t)(cr_sum_grid((cr_sum_at)at, dtype) - cr_sum_grid((cr_sum_at)at, to->as)),
                            .grid = (int16_t)cr_sum_grid((cr_sum_at)at, dtype)};
    }
    if (families & CR_FAM_COUNTS) args.counts = (uint32_t)cr_linear_place(to->as, families, CR_SUMS);
    if (families & CR_FAM_EXTREMA) args.maxima = to->maxima;
    return cr_linear_write_launch(&args, stream);
}

int cr_linear_answer(const cr_gpu_axis *axis, uint32_t families, const int64_t *sums, void *wrong, void *stream) {
    int failure = 0;
    cr_linear_read_args args = {.sums = sums, .wrong = wrong};
    args.axis.skip = axis->finish.nan == CR_NAN_SKIP;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        const cr_sum_at at = cr_sum_of(cr_op_needs(axis->ops[k], axis->dtype));
        const uint32_t i = args.axis.out_count++;
        args.axis.out[i] = cr_axis_out_of(axis, k, axis->to[k]);
        args.sum[i] = (cr_linear_sum){.at = (uint8_t)at,
                                      .first = (uint16_t)cr_linear_place(axis->dtype, families, at),
                                      .limbs = (uint16_t)cr_sum_limbs(at, axis->dtype),
                                      .grid = (int16_t)cr_sum_grid(at, axis->dtype)};
        if (args.axis.out_count < CR_AXIS_OUTS && k + 1 < axis->op_count) continue;
        failure = cr_linear_read_launch(&args, stream);
        args.axis.out_count = 0;
    }
    return failure;
}
