/* axis (emulated): the kernels of reductions along an axis that run on the host.
 *
 * Thread: one. Owner: device.cc. */
#include "kernels/cuda/axis_count.cu"
#include "kernels/cuda/axis_extrema.cu"
#include "kernels/cuda/axis_float.cu"
#include "kernels/cuda/axis_int.cu"
#include "kernels/cuda/axis_prod.cu"
