/* fused_int: extrema, sum and squares of integers in one pass, and sum and squares without the extrema.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_extrema.cuh"
#include "kernels/cuda/acc_sums.cuh"

/* Extrema beside other families. A thread looks for the place of an extremum only in a tile that is better than all its warp has
 * seen, for the others of the warp wait for it: that is in one tile of many, not in most. */
template <cr_dtype D>
struct cr_watched_extrema : cr_fold_extrema<D> {
    typedef cr_fold_extrema<D> extrema;
    typedef typename extrema::rank rank;
    rank bar[2];
    bool met;

    CR_IN void begin(const cr_fold_args &given) {
        extrema::begin(given);
        bar[0] = bar[1] = CR_NO_RANK(rank);
        met = false;
    }
    template <int U>
    CR_IN void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
        rank low = CR_NO_RANK(rank), high = CR_NO_RANK(rank);
        if (count != 0) {
            low = extrema::template best_among<false, false>(v, count).rank();
            high = extrema::template best_among<true, false>(v, count).rank();
        }
        if (!__any_sync(CR_EVERYONE, low < bar[0] || high < bar[1] || !met)) return;
        met = true;
        low = cr_warp_rank(low), high = cr_warp_rank(high);
        bar[0] = min(bar[0], low);
        bar[1] = min(bar[1], high);
        extrema::template tile<U>(v, vector, count);
    }
};

template <cr_dtype D>
static cr_fold_launcher fused_of(uint32_t families) {
    typedef cr_fold_sum<cr_sum_int<D, false>> sum;
    typedef cr_fold_sum<cr_sumsq_int<D>> squares;
    return families & CR_FAM_EXTREMA ? cr_walk_launch<cr_self<cr_watched_extrema<D>, sum, squares>>
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
