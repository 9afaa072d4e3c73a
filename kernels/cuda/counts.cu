/* counts: the kernels that count NaNs and non-zero elements. Types of one width and no NaNs count alike.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_counts.cuh"

extern "C" cr_fold_launcher cr_launch_counts(cr_dtype dtype) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return cr_walk_launch<cr_self<cr_fold_counts<d>>>;
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
    switch (cr_dtype_size(dtype)) {
        case 1:
            return cr_walk_launch<cr_self<cr_fold_counts<CR_U8>>>;
        case 2:
            return cr_walk_launch<cr_self<cr_fold_counts<CR_U16>>>;
        case 4:
            return cr_walk_launch<cr_self<cr_fold_counts<CR_U32>>>;
        case 8:
            return cr_walk_launch<cr_self<cr_fold_counts<CR_U64>>>;
    }
    return NULL;
}
