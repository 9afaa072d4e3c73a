/* sum_f16: the exact sums of f16.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/short_sums.cuh"

extern "C" cr_fold_launcher cr_launch_sum_f16(uint32_t family) { return cr_sum_launcher<cr_f16>(family); }
