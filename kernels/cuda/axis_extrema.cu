/* axis_extrema: the kernels of minimum, maximum and their places along an axis.
 *
 * Thread: GPU; the launchers are called by the stream's thread. */
#include "kernels/cuda/axis_counts.cuh"

extern "C" cr_axis_launcher cr_axis_extrema(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_axis_launch_walk<cr_axis_extreme<d>>;
        CR_INTEGER_TYPES(CASE)
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
