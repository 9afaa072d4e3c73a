/* fused_float: describe (counts, extrema, sum and, for the spread, squares) and mean with variance, each in one pass over floats.
 *
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FUSED_FLOAT_CUH
#define CURED_KERNELS_CUDA_FUSED_FLOAT_CUH

#include "kernels/cuda/acc_set.cuh"

/* The kernel of a set of families of floats. */
template <cr_dtype D, class E>
cr_fold_launcher cr_fused_float_launcher(uint32_t families) {
    switch (families) {
        case CR_FUSED_SPREAD:
            return cr_walk_launch<cr_set<E, D, true, false>>;
        case CR_FUSED_SUMMARY:
            return cr_walk_launch<cr_set<E, D, false, true>>;
        case CR_FUSED_DESCRIBE:
            return cr_walk_launch<cr_set<E, D, true, true>>;
        default:
            return NULL;
    }
}

#endif
