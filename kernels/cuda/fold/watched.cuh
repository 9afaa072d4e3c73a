/* watched: extrema of integers beside other families.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_WATCHED_CUH
#define CURED_KERNELS_CUDA_FOLD_WATCHED_CUH

#include "kernels/cuda/fold/extrema.cuh"

/* Extrema beside other families. A thread looks for the place of an extremum only in a tile that is better than all its warp has
 * seen, for the others of the warp wait for it: that is in one tile of many, not in most. */
template <cr_dtype D>
struct cr_watched_extrema : cr_fold_extrema<D> {
    typedef cr_fold_extrema<D> extrema;
    typedef typename extrema::rank rank;
    rank bar[2];
    bool met;

    CR_DEVICE void begin(const cr_fold_args &given) {
        extrema::begin(given);
        bar[0] = bar[1] = CR_NO_RANK(rank);
        met = false;
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count) {
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

#endif
