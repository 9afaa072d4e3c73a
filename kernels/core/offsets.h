/* offsets: the borders of segments: segment i has the elements from offset i up to, but without, offset i + 1. Elements before the first
 * offset and from the last on are in no segment.
 *
 * Another thread may change offsets at any time. So whoever reads elements by them copies some first, and checks the copy.
 *
 * Thread: any; offsets are a plain value. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CORE_OFFSETS_H
#define CURED_KERNELS_CORE_OFFSETS_H

#include <string.h>

#include "kernels/core/dtype.h"

typedef struct cr_offsets {
    const uint8_t *data; /* count + 1 offsets, at any alignment */
    uint64_t count;      /* of segments */
    cr_dtype dtype;      /* CR_I32, CR_I64, CR_U32 or CR_U64; CR_DTYPE_NONE: there are none */
} cr_offsets;

/* Offset i as it is now. A negative one is beyond 2^63. */
static inline uint64_t cr_offsets_at(const cr_offsets *offsets, uint64_t i) {
    const bool narrow = offsets->dtype == CR_I32 || offsets->dtype == CR_U32;
    uint64_t wide;
    int32_t half;
    if (!narrow) {
        memcpy(&wide, offsets->data + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&half, offsets->data + i * sizeof half, sizeof half);
    return offsets->dtype == CR_I32 ? (uint64_t)half : (uint32_t)half;
}

/* Elements from the first border to the last. */
static inline uint64_t cr_offsets_span(const cr_offsets *offsets) {
    const uint64_t begin = cr_offsets_at(offsets, 0), end = cr_offsets_at(offsets, offsets->count);
    return end > begin ? end - begin : 0;
}

/* Whether offsets may have this type, and so many of them fit memory. */
cr_status cr_offsets_make(cr_offsets *offsets, const void *data, uint64_t count, cr_dtype dtype, cr_error *error);
/* Copies the borders of segments [first, first + count) to `to`, count + 1 of them. INVALID_ARGUMENT, which names the first that is wrong:
 * not between low and high, or below the one before it. */
cr_status cr_offsets_take(const cr_offsets *offsets, uint64_t first, uint64_t count, uint64_t low, uint64_t high,
                          uint64_t *to, cr_error *error);
/* Checks borders first … last, those before which were checked, for an input of so many elements. */
cr_status cr_offsets_check_some(const cr_offsets *offsets, uint64_t first, uint64_t last, uint64_t elements,
                                cr_error *error);
/* Checks all of them. */
cr_status cr_offsets_check(const cr_offsets *offsets, uint64_t elements, cr_error *error);
/* The first border that is not below the element; count + 1: none. */
uint64_t cr_offsets_find(const cr_offsets *offsets, uint64_t element);

#endif
