/* fused_float: describe (counts, extrema, sum and, for the spread, squares) and mean with variance, each in one pass over floats.
 *
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FUSED_FLOAT_CUH
#define CURED_KERNELS_CUDA_FUSED_FLOAT_CUH

#include "kernels/cuda/acc_counts.cuh"
#include "kernels/cuda/acc_extrema.cuh"
#include "kernels/cuda/acc_spread.cuh"
#include "kernels/cuda/fused.cuh"

/* The kernel of a set of families of floats: of D's counts and extrema, and E's sums. */
template <cr_dtype D, class E>
cr_fold_launcher cr_fused_float_launcher(uint32_t families) {
    typedef cr_self<cr_fold_counts<D>, cr_fold_extrema<D>> order;
    typedef cr_float_sum<E, CR_SUM_PLAIN> sum;
    typedef cr_with<sum, cr_float_sum<E, CR_SUM_SQUARE>, 3, 4> spread;
    switch (families) {
        case CR_FUSED_SPREAD:
            return cr_walk_launch<cr_spread<E>>;
        case CR_FUSED_SUMMARY:
            return cr_walk_launch<cr_with<order, sum, 3, 4>>;
        case CR_FUSED_DESCRIBE:
            return cr_walk_launch<cr_with<order, spread, 3, 4>>;
        default:
            return NULL;
    }
}

#endif
