/* bytes: floats of one byte for several families in one pass: one family after the other has each tile. All numbers lie in one window, so
 * that there is nothing to be looked at but whether they are numbers; wider floats have more (set.cuh).
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_BYTES_CUH
#define CURED_KERNELS_CUDA_FOLD_BYTES_CUH

#include "kernels/cuda/fold/counts.cuh"
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/fold/watched.cuh"

/* Σx; SQUARES: and Σx²; ORDER: and extrema and counts. */
template <class E, cr_dtype D, bool SQUARES, bool ORDER>
struct cr_byte_set {
    typedef cr_float_sum<E, CR_SUM_PLAIN> plain_sum;
    typedef cr_float_sum<E, CR_SUM_SQUARE> square_sum;
    typedef cr_watched_extrema<D> extrema_type;
    typedef cr_fold_counts<D> counts_type;
    static constexpr int SIZE = 1, UNROLL = CR_GPU_FEWER, BLOCKS = 2;
    static constexpr bool SELF = true;
    struct Shared {
        typename plain_sum::Shared sum;
        typename square_sum::Shared squares;
        uint64_t extrema[extrema_type::ROOM], counts[counts_type::ROOM];
    };
    struct Sample {};
    plain_sum sum;
    square_sum squares;
    extrema_type extrema;
    counts_type counts;

    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }
    CR_DEVICE void begin(const cr_fold_args &args, Shared &shared, Sample) {
        sum.begin(args, shared.sum, {0});
        if constexpr (SQUARES) squares.begin(args, shared.squares, {0});
        if constexpr (ORDER) {
            extrema.begin(args);
            counts.begin(args);
        }
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count, Shared &shared) {
        sums<U>(v, vector, count, shared);
        if constexpr (ORDER) {
            extrema.template tile<U>(v, vector, count);
            counts.template tile<U>(v, vector, count);
        }
    }
    /* An element becomes a float64 once, for both. */
    template <int U>
    CR_DEVICE void sums(const uint4 (&v)[U], uint64_t vector, uint32_t count, Shared &shared) {
        uint32_t special = SQUARES ? 0 : 1;
#pragma unroll
        for (int j = 0; SQUARES && j < U; j++) E::glance(special, v[j], 0);
        if (SQUARES && __all_sync(CR_EVERYONE, special == 0)) {
            sum.template reserve<U>(shared.sum);
            squares.template reserve<U>(shared.squares);
#pragma unroll
            for (int j = 0; j < U; j++) {
                sum.add_one(v[j]);
                squares.add_one(v[j]);
            }
            return;
        }
        sum.template tile<U>(v, vector, count, shared.sum);
        if constexpr (SQUARES) squares.template tile<U>(v, vector, count, shared.squares);
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        sum.one(bits, index, shared.sum);
        if constexpr (SQUARES) squares.one(bits, index, shared.squares);
        if constexpr (ORDER) {
            extrema.one(bits);
            counts.one(bits);
        }
    }
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        if constexpr (ORDER) {
            extrema.leave(args, shared.extrema); /* with a barrier */
            counts.leave(args, shared.counts);
        }
        sum.publish(args, shared.sum);
        if constexpr (SQUARES) {
            __syncthreads();
            squares.publish(args, shared.squares);
        }
    }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

#endif
