/* groups: what a GPU is asked by key. Thread: any; a plain value. Owner: the caller owns what it points to. */
#ifndef CURED_KERNELS_CUDA_KEYS_GROUPS_H
#define CURED_KERNELS_CUDA_KEYS_GROUPS_H

#include "kernels/core/keys.h"
#include "kernels/cuda/gpu.h"

/* An array of values: axis.shape is (1, elements, 1). The keys lie in memory of the device, at a multiple of their size. */
typedef struct cr_gpu_keys {
    cr_gpu_axis axis;
    cr_keys keys;
} cr_gpu_keys;

#endif
