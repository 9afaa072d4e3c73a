/* fused_int: extrema, sum and squares of integers in one pass, and sum and squares without the extrema.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_extrema.cuh"
#include "kernels/cuda/acc_sums.cuh"

template <cr_dtype D>
static cr_fold_launcher fused_of(uint32_t families) {
    typedef cr_fold_sum<cr_sum_int<D, false>> sum;
    typedef cr_fold_sum<cr_sumsq_int<D>> squares;
    return families & CR_FAM_EXTREMA ? cr_walk_launch<cr_self<cr_fold_extrema<D>, sum, squares>>
                                     : cr_walk_launch<cr_self<sum, squares>>;
}

extern "C" cr_fold_launcher cr_launch_fused_int(cr_dtype dtype, uint32_t families) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return fused_of<d>(families);
        CR_INTEGER_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
