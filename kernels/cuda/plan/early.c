/* early: asks a device once how its kernels were compiled, and remembers the answer.
 *
 * Thread: any. Owner: this file. */
#include "kernels/cuda/plan/early.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "kernels/core/fast.h"

enum { DEVICES = 64, CHIP = 90, UNKNOWN = 0, NO, YES };

static _Atomic unsigned char answers[DEVICES]; /* a device beyond them is asked each time */

bool cr_can_launch_early(const void *kernel) {
    int device = 0;
    if (!cr_fast_on(CR_FAST_GPU_EARLY)) return false;
    if (cudaGetDevice(&device) != cudaSuccess || device < 0) return false;
    if (device < DEVICES && answers[device] != UNKNOWN) return answers[device] == YES;
    struct cudaFuncAttributes found;
    if (cudaFuncGetAttributes(&found, kernel) != cudaSuccess) return false;
    /* Code that a driver made from the PTX of an older chip runs as the device's own, but does not wait. */
    const bool can = found.binaryVersion >= CHIP && found.ptxVersion >= CHIP;
    if (device < DEVICES) answers[device] = can ? YES : NO;
    return can;
}
