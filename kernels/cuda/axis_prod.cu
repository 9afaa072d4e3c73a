/* axis_prod: the kernels of products along an axis.
 *
 * Thread: GPU; the launchers are called by the stream's thread. */
#include "kernels/cuda/axis_prods.cuh"

extern "C" cr_axis_launcher cr_axis_prod(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_axis_launch_walk<cr_axis_int_prod<d>>;
        CR_INTEGER_TYPES(CASE)
#undef CASE
#define CASE(d) \
    case d:     \
        return cr_axis_launch_prod<d>;
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
