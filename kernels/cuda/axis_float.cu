/* axis_float: the kernels of float sums along an axis.
 *
 * Thread: GPU; the launchers are called by the stream's thread. */
#include "kernels/cuda/axis_floats.cuh"
#include "kernels/cuda/axis_hard.cuh"
#include "kernels/cuda/axis_levels.cuh"

extern "C" cr_axis_launcher cr_axis_float_sum(cr_dtype dtype, uint32_t family) {
    const bool square = family == CR_FAM_SUMSQ;
    switch ((int)dtype) {
        case CR_F16:
            return square ? cr_axis_launch_walk<cr_axis_float<CR_F16, CR_SUM_SQUARE>>
                          : cr_axis_launch_walk<cr_axis_float<CR_F16, CR_SUM_PLAIN>>;
        case CR_BF16:
            return square ? cr_axis_launch_walk<cr_axis_float<CR_BF16, CR_SUM_SQUARE>>
                          : cr_axis_launch_walk<cr_axis_float<CR_BF16, CR_SUM_PLAIN>>;
        case CR_F32:
            return square ? cr_axis_launch_walk<cr_axis_float<CR_F32, CR_SUM_SQUARE>>
                          : cr_axis_launch_walk<cr_axis_float<CR_F32, CR_SUM_PLAIN>>;
        case CR_F64:
            return square ? cr_axis_launch_walk<cr_axis_float<CR_F64, CR_SUM_SQUARE>>
                          : cr_axis_launch_walk<cr_axis_float<CR_F64, CR_SUM_PLAIN>>;
    }
    return NULL;
}

/* Every float16 lies in one window. */
extern "C" cr_axis_launcher cr_axis_float_hard(cr_dtype dtype, uint32_t family) {
    const bool square = family == CR_FAM_SUMSQ;
    switch ((int)dtype) {
        case CR_BF16:
            return square ? cr_axis_launch_again<cr_axis_level<CR_BF16, CR_SUM_SQUARE>>
                          : cr_axis_launch_again<cr_axis_level<CR_BF16, CR_SUM_PLAIN>>;
        case CR_F32:
            return square ? cr_axis_launch_again<cr_axis_level<CR_F32, CR_SUM_SQUARE>>
                          : cr_axis_launch_again<cr_axis_level<CR_F32, CR_SUM_PLAIN>>;
        case CR_F64:
            return square ? cr_axis_launch_hard<CR_SUM_SQUARE> : cr_axis_launch_hard<CR_SUM_PLAIN>;
    }
    return NULL;
}
