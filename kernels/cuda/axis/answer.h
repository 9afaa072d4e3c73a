/* answer: what a fold has found, finished on the device: for answers that stay there, of whole arrays and of lists. Sums of floats only;
 * a whole array of another kind is a row (axis.h).
 *
 *   fold ──▶ slot in device memory ──▶ one block: digits to a number, root?(number / divisor), rounded once ──▶ out[k].to
 *
 * Thread: one at a time for a slot. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_AXIS_ANSWER_H
#define CURED_KERNELS_CUDA_AXIS_ANSWER_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/axis/axis.h"

/* axis: n, skip, ddof and the answers, whose row says how each is closed. */
typedef struct cr_answer_args {
    cr_axis_args axis;
    const cr_fold_slot *slot;
    struct {
        uint8_t at; /* cr_sum_at */
        uint16_t limbs;
        int16_t grid;
    } sum[CR_AXIS_OUTS];
} cr_answer_args;

/* Whether every op of axis is one. */
bool cr_answer_takes(const cr_gpu_axis *axis);
/* The families of axis' ops. */
uint32_t cr_answer_families(const cr_gpu_axis *axis);
/* Behind the fold of axis->shape.n elements: enqueues what puts the answers to axis->to. Gives a cudaError_t. */
int cr_answer_enqueue(const cr_gpu_axis *axis, const cr_fold_slot *slot, void *stream);
int cr_answer_launch(const cr_answer_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
