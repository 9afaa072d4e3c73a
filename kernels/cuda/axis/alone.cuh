/* alone: sums of rows of float32 by strips (strips.cuh) where no block has more than one tile, by one launch: a block whose tile does not do
 * folds it again itself, by bins. A second launch takes 2 µs (docs/KERNELS.md).
 *
 * Its launch is made while the kernel before it runs; what that has written is waited for.
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_ALONE_CUH
#define CURED_KERNELS_CUDA_AXIS_ALONE_CUH

#include "kernels/cuda/axis/bins.cuh"
#include "kernels/cuda/axis/strips.cuh"

/* The strips' pieces, and then the bins, in the same place. */
struct cr_alone_place {
    typedef cr_rows<cr_f32, false>::Shared Bins;
    static CR_DEVICE cr_strip_shared &strip() {
        __shared__ cr_strip_shared shared;
        return shared;
    }
    static_assert(sizeof(cr_strip_shared::piece) >= sizeof(Bins), "bins are larger than pieces");
    static CR_DEVICE Bins &bins() { return reinterpret_cast<Bins &>(strip().piece); }
};

CR_CALLED void cr_alone_again(const cr_axis_args &args, uint64_t tile) {
    typedef cr_axis_bin_in<cr_alone_place> A;
    __shared__ A::record room[CR_GPU_THREADS];
    __shared__ typename cr_axis_feed<A>::Shared ahead;
    cr_axis_feed<A> feed(ahead);
    cr_axis_work<A>(args, tile, room, feed);
}

static __global__ void __launch_bounds__(CR_GPU_THREADS, 2) cr_axis_strips_alone(const __grid_constant__ cr_axis_args args) {
    cr_let_the_next_begin();
    cr_after_the_last();
    bool done = true;
    {
        cr_strip<CR_F32, false> strip(args, cr_alone_place::strip());
        done = strip.take(0);
    }
    if (__syncthreads_or(!done)) cr_alone_again(args, blockIdx.x);
}

template <cr_dtype D> int cr_axis_launch_alone(const cr_axis_args *args, void *stream) {
    static_assert(D == CR_F32, "the bins are of float32");
    return cr_launch(cr_axis_strips_alone, (uint32_t)args->at.tiles, CR_GPU_THREADS, stream, true, *args);
}

#endif
