/* segments: what a GPU is asked by offsets. Thread: any; a plain value. Owner: the caller owns what it points to. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_SEGMENTS_H
#define CURED_KERNELS_CUDA_OFFSETS_SEGMENTS_H

#include "kernels/core/mask.h"
#include "kernels/core/offsets.h"
#include "kernels/cuda/gpu.h"

/* Segments of an array, as a row of all its elements: axis.shape is (1, elements, 1). Kernels find the offsets in memory of the device, at a
 * multiple of their size; libcured-cuda takes them from the host's, too. Under a mask, and of ops that kernels by offsets have not, the kernels
 * by key answer (keys/groups.h). */
typedef struct cr_gpu_segments {
    cr_gpu_axis axis;
    cr_offsets offsets;
    cr_mask mask; /* in memory of the device */
} cr_gpu_segments;

#endif
