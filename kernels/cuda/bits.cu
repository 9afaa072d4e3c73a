/* bits: the kernels of bitwise and, or and exclusive or. Types of one width are alike, but for bool.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/acc_counts.cuh"

extern "C" cr_fold_launcher cr_launch_bits(cr_dtype dtype) {
    if (cr_is_float(dtype)) return NULL;
    if (dtype == CR_BOOL) return cr_walk_launch<cr_totals<cr_fold_bits<CR_BOOL>>>;
    switch (cr_dtype_size(dtype)) {
        case 1:
            return cr_walk_launch<cr_totals<cr_fold_bits<CR_U8>>>;
        case 2:
            return cr_walk_launch<cr_totals<cr_fold_bits<CR_U16>>>;
        case 4:
            return cr_walk_launch<cr_totals<cr_fold_bits<CR_U32>>>;
        case 8:
            return cr_walk_launch<cr_totals<cr_fold_bits<CR_U64>>>;
    }
    return NULL;
}
