/* answers: what the host says to the kernel of answer.h. Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/cuda/axis/answer.h"
#include "kernels/cuda/plan/list.h"

static bool is_answer(cr_op op, const cr_gpu_axis *axis) {
    const cr_finish_opts own = cr_finish_share(op, axis->dtype, &axis->finish, NULL);
    const uint32_t needs = cr_op_needs(op, axis->dtype);
    return cr_op_closing(op) == CR_CLOSING_SUMS && cr_op_term(op) != CR_TERM_SPREAD &&
           (axis->second != NULL ? cr_fold_takes_pairs(axis->dtype, needs) : cr_fold_takes(axis->dtype, needs)) &&
           cr_dtype_kind(cr_axis_dtype(op, axis->dtype, &own)) == CR_KIND_FLOAT;
}

bool cr_answer_takes(const cr_gpu_axis *axis) {
    bool all = axis->op_count != 0 && axis->op_count <= CR_GPU_AXIS_OPS && axis->shape.n != 0 &&
               axis->shape.outer == 1 && axis->shape.inner == 1 && cr_dtype_kind(axis->dtype) == CR_KIND_FLOAT;
    for (uint32_t k = 0; all && k < axis->op_count; k++) all = is_answer(axis->ops[k], axis);
    return all;
}

uint32_t cr_answer_families(const cr_gpu_axis *axis) {
    uint32_t families = 0;
    for (uint32_t k = 0; k < axis->op_count; k++) families |= cr_op_needs(axis->ops[k], axis->dtype);
    return families;
}

static void begin(cr_answer_args *args, const cr_gpu_axis *axis, const cr_fold_slot *slot) {
    memset(args, 0, sizeof *args);
    args->slot = slot;
    args->axis.at.n = axis->shape.n;
    args->axis.skip = axis->finish.nan == CR_NAN_SKIP;
}

static void add(cr_answer_args *args, const cr_gpu_axis *axis, uint32_t k) {
    const cr_sum_at at = cr_sum_of(cr_op_needs(axis->ops[k], axis->dtype));
    const uint32_t i = args->axis.out_count++;
    args->axis.out[i] = cr_axis_out_of(axis, k, axis->to[k]);
    args->sum[i].at = (uint8_t)cr_fold_sum_at(at);
    args->sum[i].limbs = (uint16_t)cr_sum_limbs(at, axis->dtype);
    args->sum[i].grid = (int16_t)cr_sum_grid(at, axis->dtype);
}

static int enqueue_average(const cr_gpu_axis *axis, uint32_t k, const cr_fold_slot *slot, void *stream) {
    const cr_average_args args = {
        .slot = slot,
        .out = cr_axis_out_of(axis, k, axis->to[k]),
        .skip = axis->finish.nan == CR_NAN_SKIP,
        .products = {(uint16_t)cr_sum_limbs(CR_AT_DOT, axis->dtype), (int16_t)cr_sum_grid(CR_AT_DOT, axis->dtype)},
        .weights = {(uint16_t)cr_sum_limbs(CR_AT_WEIGHTS, axis->dtype),
                    (int16_t)cr_sum_grid(CR_AT_WEIGHTS, axis->dtype)},
    };
    return cr_average_launch(&args, stream);
}

int cr_answer_enqueue(const cr_gpu_axis *axis, const cr_fold_slot *slot, void *stream) {
    cr_answer_args args;
    int failure = 0;
    begin(&args, axis, slot);
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        if (cr_op_term(axis->ops[k]) == CR_TERM_WEIGHTED)
            failure = enqueue_average(axis, k, slot, stream);
        else
            add(&args, axis, k);
        const bool full = args.axis.out_count == CR_AXIS_OUTS, last = k + 1 == axis->op_count;
        if (failure != 0 || args.axis.out_count == 0 || (!full && !last)) continue;
        failure = cr_answer_launch(&args, stream);
        args.axis.out_count = 0;
    }
    return failure;
}

bool cr_answered_enqueue(const cr_gpu_axis *axis, const cr_fold_args *fold, void *stream, int *failure) {
    cr_answered_args args;
    const cr_fold_launcher launcher = cr_answered_launcher(axis->dtype, cr_answer_families(axis));
    if (launcher == NULL || axis->op_count > CR_AXIS_OUTS) return false;
    args.fold = *fold;
    begin(&args.answer, axis, fold->slot);
    for (uint32_t k = 0; k < axis->op_count; k++) add(&args.answer, axis, k);
    *failure = launcher(&args.fold, stream);
    return true;
}
