// grid_stride: the kernel of grid_stride_shuffle, which hybrid uses too.
//
// The source document's sample counts twice: its tree stops when 64 values are left in shared memory, but then every warp, not only the
// first, folds its own stale 32 values by shuffles, and all of that is added up; and a warp's sum is written to s[warp] while other
// warps still read there. Here the tree goes down to 32 values, and one warp alone takes them into registers.
#ifndef CURED_KERNELS_LADDER_GRID_STRIDE_CUH
#define CURED_KERNELS_LADDER_GRID_STRIDE_CUH

#include "kernels/ladder/row.cuh"

namespace cr_ladder {

template <class F>
__global__ void __launch_bounds__(BLOCK) grid_stride_kernel(F f, const typename F::In *in, uint64_t n, typename F::Acc *out) {
    using Op = typename F::Op;
    __shared__ typename F::Acc s[BLOCK];
    const unsigned t = threadIdx.x;
    const uint64_t step = (uint64_t)gridDim.x * BLOCK;
    typename F::Acc a = Op::identity();
    for (uint64_t i = (uint64_t)blockIdx.x * BLOCK + t; i < n; i += step) a = Op::combine(a, f.lift(in[i]));
    s[t] = a;
    __syncthreads();
    for (unsigned k = BLOCK / 2; k >= 32; k /= 2) {
        if (t < k) s[t] = Op::combine(s[t], s[t + k]);
        __syncthreads();
    }
    if (t >= 32) return;
    a = fold_warp<Op>(s[t]);
    if (t == 0) out[blockIdx.x] = a;
}

} // namespace cr_ladder

#endif
