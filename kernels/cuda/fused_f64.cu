/* fused_f64: describe (counts, extrema, sum and, for the spread, squares) and mean with variance, each in one pass over f64.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_counts.cuh"
#include "kernels/cuda/acc_extrema.cuh"
#include "kernels/cuda/fused.cuh"
#include "kernels/cuda/sums.cuh"

typedef cr_self<cr_fold_counts<CR_F64>, cr_fold_extrema<CR_F64>> cr_f64_order;
typedef cr_float_sum<cr_f64, CR_SUM_PLAIN> cr_f64_sum;
typedef cr_float_sum<cr_f64, CR_SUM_SQUARE> cr_f64_squares;
typedef cr_with<cr_f64_sum, cr_f64_squares, 3, 4> cr_f64_spread;

extern "C" cr_fold_launcher cr_launch_fused_f64(uint32_t families) {
    switch (families) {
        case CR_FUSED_SPREAD:
            return cr_walk_launch<cr_f64_spread>;
        case CR_FUSED_SUMMARY:
            return cr_walk_launch<cr_with<cr_f64_order, cr_f64_sum, 3, 4>>;
        case CR_FUSED_DESCRIBE:
            return cr_walk_launch<cr_with<cr_f64_order, cr_f64_spread, 3, 4>>;
        default:
            return NULL;
    }
}
