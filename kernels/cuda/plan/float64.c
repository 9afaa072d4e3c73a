/* float64: asks a device once how fast its float64 is, and remembers the answer.
 *
 * Thread: any. Owner: this file. */
#include "kernels/cuda/plan/float64.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "kernels/core/fast.h"

enum { DEVICES = 64, UNKNOWN = 0, SLOW, FAST };

static _Atomic unsigned char answers[DEVICES]; /* a device beyond them is asked each time */

bool cr_float64_is_slow(void) {
    int device = 0, ratio = 0;
    if (!cr_fast_on(CR_FAST_GPU_FLOAT64)) return true;
    if (!cr_fast_on(CR_FAST_GPU_RATIO)) return false;
    if (cudaGetDevice(&device) != cudaSuccess || device < 0) return false;
    if (device < DEVICES && answers[device] != UNKNOWN) return answers[device] == SLOW;
    if (cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, device) != cudaSuccess) {
        (void)cudaGetLastError(); /* the fast ways are right everywhere */
        return false;
    }
    const bool slow = ratio > CR_FLOAT64_RATIO;
    if (device < DEVICES) answers[device] = slow ? SLOW : FAST;
    return slow;
}
