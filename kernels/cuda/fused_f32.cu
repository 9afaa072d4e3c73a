/* fused_f32: several families of f32 in one pass.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/fused_float.cuh"

extern "C" cr_fold_launcher cr_launch_fused_f32(uint32_t families) {
    return cr_fused_float_launcher<CR_F32, cr_f32>(families);
}
