/* kernels (emulated): the kernels that run on the host. The float sums are not among them: they count on the device's rounding.
 *
 * Thread: one. Owner: device.cc. */
#include "kernels/cuda/bits.cu"
#include "kernels/cuda/counts.cu"
#include "kernels/cuda/extrema.cu"
#include "kernels/cuda/int_sums.cu"
#define CR_PROD_GROUPS 5 /* so that a group has many blocks */
#include "kernels/cuda/prod.cu"
