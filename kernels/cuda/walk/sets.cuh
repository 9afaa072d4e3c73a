/* sets: several families of integers in one pass.
 *
 * Thread: GPU; the launchers are called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_SETS_CUH
#define CURED_KERNELS_CUDA_WALK_SETS_CUH

#include "kernels/cuda/fold/int_sums.cuh"
#include "kernels/cuda/fold/watched.cuh"
#include "kernels/cuda/walk/families.cuh"

/* Σx and Σx² */
template <cr_dtype D> struct cr_int_spread {
    typedef cr_fold_sum<cr_sum_int<D, false>> sum;
    typedef cr_fold_sum<cr_sumsq_int<D>> squares;
    typedef cr_self<sum, squares> walk;
};
/* and extrema */
template <cr_dtype D> struct cr_int_describe : cr_int_spread<D> {
    typedef cr_self<cr_watched_extrema<D>, typename cr_int_spread<D>::sum, typename cr_int_spread<D>::squares> walk;
};

template <class SET> int cr_set_launch(const cr_fold_args *args, void *stream) { return cr_walk_launch<typename SET::walk>(args, stream); }

#endif
