/* axis_int: the kernels of sums of integers along an axis.
 *
 * Thread: GPU; the launchers are called by the stream's thread. */
#include "kernels/cuda/axis_ints.cuh"

extern "C" cr_axis_launcher cr_axis_int_sum(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_axis_launch_walk<cr_axis_int<d>>;
        CR_INTEGER_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
