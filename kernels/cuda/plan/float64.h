/* float64: whether a device does float64 so slowly that sums of floats go by second ways, which have none (walk/narrow.cu, second.cu).
 *
 * A device says how many times as fast as float64 its float32 is: 2 where float64 is for computing, and much more where it is
 * for programs to run at all. docs/CHIPS.md has their rates, and a model: at memory's speed a sum of 16-bit floats, whose fast way has one float64 instruction an
 * element, has room for 9.4 float32 instructions on the chip of the table with the least, so for one of float64 up to a ratio of 9.
 * Thread: any. Owner: float64.c has the answers. */
#ifndef CURED_KERNELS_CUDA_PLAN_FLOAT64_H
#define CURED_KERNELS_CUDA_PLAN_FLOAT64_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CR_FLOAT64_RATIO = 9 }; /* the largest with which the fast ways are taken */

/* Of the current device, which is asked once; by the fast ways gpu_float64 and gpu_ratio (kernels/core/fast.def). */
bool cr_float64_is_slow(void);

#ifdef __cplusplus
}
#endif
#endif
