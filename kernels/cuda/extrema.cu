/* extrema: the kernels of minimum, maximum and their indices.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_extrema.cuh"

extern "C" cr_fold_launcher cr_launch_extrema(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_walk_launch<cr_self<cr_fold_extrema<d>>>;
        CR_INTEGER_TYPES(CASE)
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
