/* int_sums: the kernels of the sums of integers and bools.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/burst.cuh"

template <cr_dtype D, bool ABSOLUTE>
static cr_fold_launcher sum_of() {
    typedef cr_burst_sum<D, ABSOLUTE, 256> burst;
    return cr_burst_launch<burst, burst>;
}
template <cr_dtype D>
static cr_fold_launcher squares_of() {
    return cr_walk_launch<cr_self<cr_fold_sum<cr_sumsq_int<D>>>>;
}

extern "C" cr_fold_launcher cr_launch_int_sum(cr_dtype dtype, uint32_t family) {
    if (family != CR_FAM_SUM && family != CR_FAM_SUMABS && family != CR_FAM_SUMSQ) return NULL;
    switch ((int)dtype) {
#define CASE(d)                                                                            \
    case d:                                                                                \
        return family == CR_FAM_SUMSQ                       ? squares_of<d>()              \
               : family == CR_FAM_SUMABS && cr_is_signed(d) ? sum_of<d, cr_is_signed(d)>() \
                                                            : sum_of<d, false>();
        CR_INTEGER_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
