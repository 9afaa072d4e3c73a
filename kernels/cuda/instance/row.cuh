/* row: makes a launcher of a row of fold.def or axis.def.
 *
 * Thread: the stream's. Owner: none. */
#ifndef CURED_KERNELS_CUDA_INSTANCE_ROW_CUH
#define CURED_KERNELS_CUDA_INSTANCE_ROW_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/plan/fold.h"

#define CR_FOLD_ROW(kind, dtype, kernels, ...)                                                  \
    extern "C" int cr_launch_##kind##_##dtype(const cr_fold_args *args, void *stream) {         \
        [[maybe_unused]] constexpr cr_dtype D = dtype;                                          \
        return __VA_ARGS__(args, stream);                                                       \
    }
#define CR_AXIS_ROW(kind, dtype, kernels, ...)                                                  \
    extern "C" int cr_launch_axis_##kind##_##dtype(const cr_axis_args *args, void *stream) {    \
        [[maybe_unused]] constexpr cr_dtype D = dtype;                                          \
        return __VA_ARGS__(args, stream);                                                       \
    }

#endif
