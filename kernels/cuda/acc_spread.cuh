/* acc_spread: Σx and Σx² of float32 or float64 in one pass, for mean and variance. A tile that lies in the windows of both is looked
 * at once, and its elements are made float64 once; any other goes to one sum after the other.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_ACC_SPREAD_CUH
#define CURED_KERNELS_CUDA_ACC_SPREAD_CUH

#include "kernels/cuda/sums.cuh"

template <class E, int RESIDENT = 3, int U = 4>
struct cr_spread {
    typedef cr_float_sum<E, CR_SUM_PLAIN> plain_sum;
    typedef cr_float_sum<E, CR_SUM_SQUARE> square_sum;
    static constexpr int SIZE = E::SIZE, UNROLL = U, BLOCKS = RESIDENT;
    static constexpr bool SELF = true, CHUNKED = true;
    struct Shared {
        typename plain_sum::Shared sum;
        typename square_sum::Shared squares;
    };
    struct Sample {
        typename plain_sum::Sample sum;
        typename square_sum::Sample squares;
    };
    plain_sum sum;
    square_sum squares;

    CR_DEVICE Sample sample(const cr_fold_args &args) {
        Sample found = {sum.sample(args), squares.sample(args)};
        return found;
    }
    CR_DEVICE void begin(const cr_fold_args &args, Shared &shared, const Sample &sample) {
        sum.begin(args, shared.sum, sample.sum);
        squares.begin(args, shared.squares, sample.squares);
    }

    /* Whether all elements are in both windows. */
    template <int N>
    CR_DEVICE bool glance(const uint4 (&v)[N]) {
        if (!sum.placed || sum.streak > 1 || !squares.placed || squares.streak > 1) return false;
        const cr_span both = {min(sum.bounds.most, squares.bounds.most), max(sum.bounds.least, squares.bounds.least)};
        if (both.most <= both.least) return false;
        const uint32_t low = plain_sum::Window::low(both);
        uint32_t worst = 0;
#pragma unroll
        for (int j = 0; j < N; j++) E::glance(worst, v[j], low);
        return __all_sync(~0u, plain_sum::Window::near(worst, both));
    }

    template <int N>
    CR_DEVICE void tile(const uint4 (&v)[N], uint64_t vector, uint32_t count, Shared &shared) {
        if (glance(v)) {
            sum.template reserve<N>(shared.sum);
            squares.template reserve<N>(shared.squares);
#pragma unroll
            for (int j = 0; j < N; j++) {
                sum.add_one(v[j]);
                squares.add_one(v[j]);
            }
            return;
        }
        sum.template tile<N>(v, vector, count, shared.sum);
        squares.template tile<N>(v, vector, count, shared.squares);
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        sum.one(bits, index, shared.sum);
        squares.one(bits, index, shared.squares);
    }
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        sum.publish(args, shared.sum);
        __syncthreads();
        squares.publish(args, shared.squares);
    }
};

#endif
