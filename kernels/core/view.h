/* view: how a fold's elements come. A plain view is an array; a masked one is an array of which a mask says what counts; one of pairs
 * has a second array beside the first, of the same type, for ops of two.
 *
 * What a mask leaves out is for no op there: it is not counted, not compared, and has no value. Indices stay those of the whole
 * array, and so do the places of a product of floats, in which an element that is left out is a one (docs/NUMERICS.md). So a masked
 * array may be cut and merged as any other, and the folds know nothing of masks: kernels/cpu/view hands them what is left.
 *
 * Thread: any; a view is a plain value. Owner: the caller owns arrays and mask, which may change meanwhile (then the answer is some
 * answer). */
#ifndef CURED_KERNELS_CORE_VIEW_H
#define CURED_KERNELS_CORE_VIEW_H

#include "kernels/core/mask.h"

typedef struct cr_view {
    const uint8_t *data;
    cr_mask mask;          /* of both arrays, where there are two */
    const uint8_t *second; /* the second array's elements that belong to data's. NULL: the ops are of one array */
} cr_view;

static inline cr_view cr_view_plain(const void *data) { return (cr_view){.data = data}; }

/* The same second array from so many bytes on. */
static inline const uint8_t *cr_second_from(const uint8_t *second, uint64_t bytes) {
    return second ? second + bytes : NULL;
}

/* The same view from a later element on, where elements have so many bytes each. */
static inline cr_view cr_view_from(cr_view view, uint64_t elements, size_t size) {
    return (cr_view){view.data + elements * size, cr_mask_from(view.mask, elements),
                     cr_second_from(view.second, elements * size)};
}

#endif
