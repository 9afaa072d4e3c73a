/* early: whether a kernel may begin while the kernel before it on its stream ends.
 *
 * The kernel's code must know how to wait, which takes compute capability 9.0. All kernels are compiled for the same chips, so
 * one answer holds for a device; a host may have devices of several kinds, so each device has an answer of its own.
 * Thread: any. Owner: early.c has the answers. */
#ifndef CURED_KERNELS_CUDA_PLAN_EARLY_H
#define CURED_KERNELS_CUDA_PLAN_EARLY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* kernel: a __global__ function; asked of the current device. */
bool cr_can_launch_early(const void *kernel);

#ifdef __cplusplus
}
#endif
#endif
