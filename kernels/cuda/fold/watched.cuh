/* watched: extrema of integers, and of floats of one byte, beside other families.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_WATCHED_CUH
#define CURED_KERNELS_CUDA_FOLD_WATCHED_CUH

#include "kernels/cuda/fold/extrema.cuh"

/* Extrema beside other families. A thread looks for the place of an extremum only in a tile that is better than all its warp has
 * seen, for the others of the warp wait for it: that is in one tile of many, not in most; and in a tile with a NaN. */
template <cr_dtype D>
struct cr_watched_extrema : cr_fold_extrema<D> {
    typedef cr_fold_extrema<D> extrema;
    typedef typename extrema::rank rank;
    static constexpr int BLOCKS = extrema::FLOAT ? 3 : extrema::BLOCKS;
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
        bool nan = false;
        if (count != 0) {
            const auto least = extrema::template best_among<false, false>(v, count);
            const auto most = extrema::template best_among<true, false>(v, count);
            low = least.rank(), high = most.rank();
            nan = extrema::FLOAT && (least.nan() || most.nan());
        }
        if (!__any_sync(CR_EVERYONE, low < bar[0] || high < bar[1] || !met || nan)) return;
        if (!extrema::FLOAT || !__any_sync(CR_EVERYONE, nan)) {
            met = true;
            low = cr_warp_rank(low), high = cr_warp_rank(high);
            bar[0] = min(bar[0], low);
            bar[1] = min(bar[1], high);
        }
        extrema::template tile<U>(v, vector, count);
    }
};

#endif
