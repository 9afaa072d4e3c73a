/* no_table (emulated): for the ladder's test, which runs the kernels directly: a device's table with nothing in it.
 *
 * Thread: any. */
#include "kernels/cuda/gpu.h"

const cr_gpu_api cr_cuda = {.name = "none"};
