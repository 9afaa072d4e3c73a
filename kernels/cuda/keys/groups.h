/* groups: what a GPU is asked by key. Thread: any; a plain value. Owner: the caller owns what it points to. */
#ifndef CURED_KERNELS_CUDA_KEYS_GROUPS_H
#define CURED_KERNELS_CUDA_KEYS_GROUPS_H

#include "kernels/core/keys.h"
#include "kernels/core/mask.h"
#include "kernels/core/offsets.h"
#include "kernels/cuda/gpu.h"

/* An array of values: axis.shape is (1, elements, 1). Keys, offsets and the mask lie in memory of the device, the first two at a multiple of
 * their size. keys has no type where offsets or an axis say of which group an element is: it then tells how many answers there are, as
 * cr_keys_of_offsets and cr_keys_of_axis do. */
typedef struct cr_gpu_keys {
    cr_gpu_axis axis;
    cr_keys keys;
    cr_offsets offsets; /* of no type: there are none */
    cr_shape by;        /* without keys and offsets: the axis */
    cr_mask mask;
} cr_gpu_keys;

static inline cr_keys cr_keys_of_offsets(const cr_offsets *offsets, uint64_t elements) {
    return (cr_keys){NULL, elements, offsets->count, 1, CR_DTYPE_NONE, true};
}
static inline cr_keys cr_keys_of_axis(const cr_shape *by) {
    return (cr_keys){NULL, cr_shape_elements(by), cr_shape_answers(by), 1, CR_DTYPE_NONE, true};
}

#endif
