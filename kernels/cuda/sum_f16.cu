/* sum_f16: the exact sums of f16.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/sums.cuh"

extern "C" cr_fold_launcher cr_launch_sum_f16(uint32_t family) {
    switch (family) {
        case CR_FAM_SUM:
            return cr_walk_launch<cr_float_sum<cr_f16, CR_SUM_PLAIN>>;
        case CR_FAM_SUMABS:
            return cr_walk_launch<cr_float_sum<cr_f16, CR_SUM_ABSOLUTE>>;
        case CR_FAM_SUMSQ:
            return cr_walk_launch<cr_float_sum<cr_f16, CR_SUM_SQUARE>>;
        default:
            return NULL;
    }
}
