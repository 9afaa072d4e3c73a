/* kernels (emulated): the kernels that run on the host.
 *
 * Thread: one. Owner: device.cc. */
#define CR_SUM_ADDS 62 /* so that anchors are drained often */
#define CR_PROD_GROUPS 5 /* so that a group has many blocks */
#include "kernels/cuda/batch.cu"
#include "kernels/cuda/bits.cu"
#include "kernels/cuda/counts.cu"
#include "kernels/cuda/extrema.cu"
#include "kernels/cuda/fused_f32.cu"
#include "kernels/cuda/fused_f64.cu"
#include "kernels/cuda/fused_half.cu"
#include "kernels/cuda/fused_int.cu"
#include "kernels/cuda/int_sums.cu"
#include "kernels/cuda/prod.cu"
#include "kernels/cuda/sum_bf16.cu"
#include "kernels/cuda/sum_f16.cu"
#include "kernels/cuda/sum_f32.cu"
#include "kernels/cuda/sum_f64.cu"
