/* answer: what a fold has found, finished on the device: for answers that stay there, of whole arrays and of lists. Sums of floats only;
 * a whole array of another kind is a row (axis.h).
 *
 *   fold ──▶ slot in device memory ──▶ one block: digits to a number, root?(number / divisor), rounded once ──▶ out[k].to
 *
 * Of one array and one sum the block is the fold's last (answered.cuh), else a kernel of its own.
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
        uint8_t at; /* in the slot */
        uint16_t limbs;
        int16_t grid;
    } sum[CR_AXIS_OUTS];
} cr_answer_args;

/* An average: the sum of the products, divided by that of the weights. */
typedef struct cr_average_args {
    const cr_fold_slot *slot;
    cr_axis_out out;
    bool skip;
    struct {
        uint16_t limbs;
        int16_t grid;
    } products, weights;
} cr_average_args;

/* Of a fold that makes its answers: its slot is answer.slot. Launchers of such take it for the cr_fold_args that it begins with. */
typedef struct cr_answered_args {
    cr_fold_args fold;
    cr_answer_args answer;
} cr_answered_args;

/* Whether every op of axis is one. */
bool cr_answer_takes(const cr_gpu_axis *axis);
/* The families of axis' ops. */
uint32_t cr_answer_families(const cr_gpu_axis *axis);
/* Behind the fold of axis->shape.n elements: enqueues what puts the answers to axis->to. Gives a cudaError_t. */
int cr_answer_enqueue(const cr_gpu_axis *axis, const cr_fold_slot *slot, void *stream);
/* The fold and the answers by one launch: fold is made ready. False: there is none for these. *failure: a cudaError_t. */
bool cr_answered_enqueue(const cr_gpu_axis *axis, const cr_fold_args *fold, void *stream, int *failure);
int cr_answer_launch(const cr_answer_args *args, void *stream);
int cr_average_launch(const cr_average_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
