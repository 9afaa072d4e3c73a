/* alone: what the folds of kernels/ ask of the tree, said of the two types that cured_sum.c knows. scripts/sum-file puts it in place of
 * kernels/core/dtype.h.
 *
 * Thread: any; constants only. Owner: nothing. */
#ifndef CURED_CLIENT_SUM_ALONE_H
#define CURED_CLIENT_SUM_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbered as in kernels/core/dtype.def. */
typedef enum cr_dtype {
    CR_F16 = 10,
    CR_BF16 = 11,
    CR_F32 = 12,
    CR_F64 = 13,
    CR_F8_E4M3 = 16,
    CR_F8_E5M2 = 17
} cr_dtype;

typedef enum cr_format {
    CR_FORMAT_INT,
    CR_FORMAT_F16,
    CR_FORMAT_BF16,
    CR_FORMAT_F32,
    CR_FORMAT_F64,
    CR_FORMAT_F8_E4M3,
    CR_FORMAT_F8_E5M2
} cr_format;

static inline size_t cr_dtype_size(cr_dtype dtype) { return dtype == CR_F64 ? 8 : 4; }
static inline cr_format cr_dtype_format(cr_dtype dtype) { return dtype == CR_F64 ? CR_FORMAT_F64 : CR_FORMAT_F32; }

#endif
