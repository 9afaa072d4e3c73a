// finish: the last steps that rows share: from a partial of each block to one value, and an identity to begin from. A second
// launch, because blocks of one launch cannot wait for each other; the production folds let the last block to finish do it instead.
#include "kernels/ladder/row.cuh"

namespace cr_ladder {

namespace {

constexpr unsigned FEW = 4096; // partials that one block folds alone

template <class Op>
__global__ void __launch_bounds__(BLOCK) partials_kernel(const typename Op::Acc *in, uint64_t count, typename Op::Acc *out) {
    __shared__ typename Op::Acc s[BLOCK];
    uint64_t length = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * length;
    uint64_t last = first + length < count ? first + length : count;
    s[threadIdx.x] = fold_run(Again<Op>{}, in, first, last);
    __syncthreads();
    tree<Op>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

template <class Op>
__global__ void identity_kernel(typename Op::Acc *at) {
    *at = Op::identity();
}

} // namespace

template <class Op>
void fold_partials(typename Op::Acc *partials, uint64_t count, cudaStream_t stream) {
    typename Op::Acc *from = partials;
    if (count > FEW) {
        from = partials + count;
        CR_START(partials_kernel<Op>, SPARE, BLOCK, stream, partials, count, from);
        count = SPARE;
    }
    // In place when few: the only block has read everything before it writes.
    CR_START(partials_kernel<Op>, 1, BLOCK, stream, from, count, partials);
}

template <class Op>
void set_identity(typename Op::Acc *at, cudaStream_t stream) {
    CR_START(identity_kernel<Op>, 1, 1, stream, at);
}

#define CR_FINISH(...)                                                                        \
    template void fold_partials<__VA_ARGS__>(__VA_ARGS__::Acc *, uint64_t, cudaStream_t); \
    template void set_identity<__VA_ARGS__>(__VA_ARGS__::Acc *, cudaStream_t);
CR_FINISH(SumI32)
CR_FINISH(SumI64)
CR_FINISH(SumReal<float>)
CR_FINISH(SumReal<double>)
CR_FINISH(ProdInt)
CR_FINISH(ProdReal<float, unsigned>)
CR_FINISH(ProdReal<double, unsigned long long>)
CR_FINISH(Max32)
CR_FINISH(Max64)
CR_FINISH(Truths)

} // namespace cr_ladder
