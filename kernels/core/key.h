/* key: order-preserving unsigned keys, so that min and max are integer comparisons and −0 orders below +0.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_KEY_H
#define CURED_KERNELS_CORE_KEY_H

#include "kernels/core/dtype.h"

#include <stdint.h>

/* The element, zero-extended, that a key stands for; a bool is 0 or 1. */
static inline uint64_t cr_bits_of_key(cr_dtype dtype, uint64_t key) {
    unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    uint64_t top = (uint64_t)1 << (width - 1);
    switch (cr_dtype_kind(dtype)) {
        case CR_KIND_SINT:
            return key ^ top;
        case CR_KIND_FLOAT:
            return (key & top) ? key ^ top : ~key & (top | (top - 1));
        case CR_KIND_BOOL:
        case CR_KIND_UINT:
        case CR_KIND_NONE:
            break;
    }
    return key;
}

/* The key of an element, zero-extended. */
static inline uint64_t cr_key_of_bits(cr_dtype dtype, uint64_t bits) {
    unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    uint64_t top = (uint64_t)1 << (width - 1);
    switch (cr_dtype_kind(dtype)) {
        case CR_KIND_SINT:
            return bits ^ top;
        case CR_KIND_FLOAT:
            return (bits & top) ? ~bits & (top | (top - 1)) : bits | top;
        case CR_KIND_BOOL:
        case CR_KIND_UINT:
        case CR_KIND_NONE:
            break;
    }
    return bits;
}

/* The magnitude of the least or of the greatest element, whichever is greater, as bits. */
static inline uint64_t cr_greatest_magnitude(cr_dtype dtype, uint64_t least, uint64_t greatest) {
    const uint64_t top = (uint64_t)1 << (8 * cr_dtype_size(dtype) - 1);
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
        least &= top - 1;
        greatest &= top - 1;
    } else if (cr_dtype_kind(dtype) == CR_KIND_SINT) {
        if (least & top) least = (~least + 1) & (top | (top - 1));
        if (greatest & top) greatest = (~greatest + 1) & (top | (top - 1));
    }
    return least > greatest ? least : greatest;
}

#endif
