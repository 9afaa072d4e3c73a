/* extrema: the kernels of minimum, maximum and their indices.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_extrema.cuh"

extern "C" cr_fold_launcher cr_launch_extrema(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_walk_launch<cr_self<cr_fold_extrema<d>>>;
        CASE(CR_BOOL)
        CASE(CR_U8)
        CASE(CR_I8)
        CASE(CR_U16)
        CASE(CR_I16)
        CASE(CR_U32)
        CASE(CR_I32)
        CASE(CR_U64)
        CASE(CR_I64)
        CASE(CR_F16)
        CASE(CR_BF16)
        CASE(CR_F32)
        CASE(CR_F64)
#undef CASE
    }
    return NULL;
}
