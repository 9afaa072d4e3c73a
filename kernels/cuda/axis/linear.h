/* linear: the linear form of a partial (kernels/core/linear.h) made and finished on the device, for programs that let an Allreduce of GPU
 * buffers add the vectors up.
 *
 *   begin ──▶ fold ──▶ slot in device memory ──▶ one block: carried digits ──▶ sums, maxima
 *   sums that were added up ──▶ one block: carries, root?(number / divisor), rounded once ──▶ out[k].to
 *
 * Thread: one at a time for a slot. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_AXIS_LINEAR_H
#define CURED_KERNELS_CUDA_AXIS_LINEAR_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/axis/axis.h"

/* What is written, and on which grid. sums, maxima: device memory, as long as cr_linear_sums and cr_linear_maxima say. */
typedef struct cr_linear_to {
    cr_dtype as; /* the arrays' type, or a type of floats that holds their elements */
    int64_t *sums, *maxima;
} cr_linear_to;

typedef struct cr_linear_sum {
    uint8_t at;                   /* cr_sum_at */
    uint16_t first, limbs, found; /* first: its place in the vector. limbs: there. found: in the slot */
    uint16_t shift;               /* of the slot's grid on the vector's */
    int16_t grid;                 /* of the slot */
} cr_linear_sum;

typedef struct cr_linear_args {
    cr_fold_slot *slot;
    uint64_t n;
    int64_t *sums, *maxima;     /* maxima NULL: without extrema */
    uint32_t sum_count, counts; /* counts: where the two counts come in the vector; 0: it has none */
    bool floats;                /* sums lie in slot->sums; else in slot->partial */
    cr_linear_sum sum[CR_KNOWN_SUMS];
} cr_linear_args;

/* axis: the answers, whose rows say how each is closed; its n is read from the vector. */
typedef struct cr_linear_read_args {
    cr_axis_args axis;
    const int64_t *sums;
    unsigned long long *wrong; /* becomes 1 where no elements have such a vector; NULL: nobody asks */
    cr_linear_sum sum[CR_AXIS_OUTS];
} cr_linear_read_args;

/* Refuses what has no linear form on a device: products, bits, digests; extrema on another grid. */
cr_status cr_linear_takes(cr_dtype dtype, uint32_t families, cr_dtype as, cr_error *error);
/* Before the fold: makes the slot one of no elements, where a fold does not write all of it. Gives a cudaError_t. */
int cr_linear_begin(cr_dtype dtype, uint32_t families, cr_fold_slot *slot, void *stream);
/* Behind the fold of n elements. Gives a cudaError_t. */
int cr_linear_enqueue(cr_dtype dtype, uint32_t families, uint64_t n, const cr_linear_to *to, cr_fold_slot *slot,
                      void *stream);
/* Enqueues the answers, which cr_answer_takes, of a vector of axis->dtype's grid that holds these families, to axis->to. Gives a
 * cudaError_t. */
int cr_linear_answer(const cr_gpu_axis *axis, uint32_t families, const int64_t *sums, void *wrong, void *stream);

int cr_linear_begin_launch(cr_fold_slot *slot, void *stream);
int cr_linear_write_launch(const cr_linear_args *args, void *stream);
int cr_linear_read_launch(const cr_linear_read_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
