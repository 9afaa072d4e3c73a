/* sum_bf16: the exact sums of bf16.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/short_sums.cuh"

extern "C" cr_fold_launcher cr_launch_sum_bf16(uint32_t family) { return cr_sum_launcher<cr_bf16>(family); }
