/* row: makes a launcher of each row of fold.def, axis.def or offsets.def that is in the unit that includes this: CR_IN_unit(…) takes it.
 *
 * Thread: the stream's. Owner: none. */
#ifndef CURED_KERNELS_CUDA_INSTANCE_ROW_CUH
#define CURED_KERNELS_CUDA_INSTANCE_ROW_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/instance/product.h"
#include "kernels/cuda/plan/fold.h"

struct cr_segments_args; /* offsets/offsets.h, which units of offsets.def include */

#define CR_UNIT(unit, headers)
#define CR_FOLD(unit, kind, dtype, kernels, ...) CR_IN_##unit(CR_FOLD_ROW(kind, dtype, __VA_ARGS__))
#define CR_FOLD_SAME(kind, dtype, other)
#define CR_FOLD_AS(kind, dtype, other)
#define CR_AXIS(unit, kind, dtype, kernels, ...) CR_IN_##unit(CR_AXIS_ROW(kind, dtype, __VA_ARGS__))
#define CR_AXIS_SAME(kind, dtype, other)
#define CR_AXIS_AS(kind, dtype, other)
#define CR_OFFSETS(unit, kind, dtype, kernels, ...) CR_IN_##unit(CR_OFFSETS_ROW(kind, dtype, __VA_ARGS__))

#define CR_FOLD_ROW(kind, dtype, ...)                                                        \
    extern "C" int cr_launch_##kind##_##dtype(const cr_fold_args *args, void *stream) {      \
        [[maybe_unused]] constexpr cr_dtype D = dtype;                                       \
        return __VA_ARGS__(args, stream);                                                    \
    }
#define CR_AXIS_ROW(kind, dtype, ...)                                                        \
    extern "C" int cr_launch_axis_##kind##_##dtype(const cr_axis_args *args, void *stream) { \
        [[maybe_unused]] constexpr cr_dtype D = dtype;                                       \
        return __VA_ARGS__(args, stream);                                                    \
    }
#define CR_OFFSETS_ROW(kind, dtype, ...)                                                             \
    extern "C" int cr_launch_offsets_##kind##_##dtype(const cr_segments_args *args, void *stream) { \
        [[maybe_unused]] constexpr cr_dtype D = dtype;                                              \
        return __VA_ARGS__(args, stream);                                                           \
    }

#endif
