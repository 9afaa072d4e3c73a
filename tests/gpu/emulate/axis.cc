/* axis (emulated): the kernels of reductions along an axis that run on the host.
 *
 * Thread: one. Owner: device.cc. */
#define CR_SUM_ADDS 62 /* so that anchors are drained often */
#include "kernels/cuda/axis_count.cu"
#include "kernels/cuda/axis_extrema.cu"
#include "kernels/cuda/axis_float.cu"
#include "kernels/cuda/axis_int.cu"
#include "kernels/cuda/axis_prod.cu"
