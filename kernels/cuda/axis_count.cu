/* axis_count: the kernels of counts and of bits along an axis.
 *
 * Thread: GPU; the launchers are called by the stream's thread. */
#include "kernels/cuda/axis_counts.cuh"

extern "C" cr_axis_launcher cr_axis_counts(cr_dtype dtype) {
    switch ((int)dtype) {
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
            return cr_axis_launch_walk<cr_axis_count<CR_U8>>;
        case CR_U16:
        case CR_I16:
            return cr_axis_launch_walk<cr_axis_count<CR_U16>>;
        case CR_U32:
        case CR_I32:
            return cr_axis_launch_walk<cr_axis_count<CR_U32>>;
        case CR_U64:
        case CR_I64:
            return cr_axis_launch_walk<cr_axis_count<CR_U64>>;
        case CR_F16:
            return cr_axis_launch_walk<cr_axis_count<CR_F16>>;
        case CR_BF16:
            return cr_axis_launch_walk<cr_axis_count<CR_BF16>>;
        case CR_F32:
            return cr_axis_launch_walk<cr_axis_count<CR_F32>>;
        case CR_F64:
            return cr_axis_launch_walk<cr_axis_count<CR_F64>>;
    }
    return NULL;
}

extern "C" cr_axis_launcher cr_axis_bits(cr_dtype dtype) {
    switch ((int)dtype) {
        case CR_BOOL:
            return cr_axis_launch_walk<cr_axis_bit<CR_BOOL>>;
        case CR_U8:
        case CR_I8:
            return cr_axis_launch_walk<cr_axis_bit<CR_U8>>;
        case CR_U16:
        case CR_I16:
            return cr_axis_launch_walk<cr_axis_bit<CR_U16>>;
        case CR_U32:
        case CR_I32:
            return cr_axis_launch_walk<cr_axis_bit<CR_U32>>;
        case CR_U64:
        case CR_I64:
            return cr_axis_launch_walk<cr_axis_bit<CR_U64>>;
    }
    return NULL;
}
