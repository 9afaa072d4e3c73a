/* layout: where the elements of a block lie in a larger array of several axes: rows, columns, boxes (docs/PARTIALS.md, "Of a block").
 *
 * Both are in C order. A block's element k has the number cr_layout_place in the array, and these numbers rise with k: so the first
 * of equals in the block is the first of them in the array. Elements that neighbour each other in both are a run.
 *
 * Thread: any; the caller owns every struct; nothing here allocates. */
#ifndef CURED_KERNELS_CORE_LAYOUT_H
#define CURED_KERNELS_CORE_LAYOUT_H

#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"

enum { CR_LAYOUT_MAX_DIMS = CR_CALL_MAX_AXES };
#define CR_LAYOUT_MAX_WHOLE ((uint64_t)1 << 60) /* so that its bytes are below 2^64 */

typedef struct cr_layout {
    uint64_t whole, count; /* elements of the array, of the block */
    uint64_t first;        /* the number of the block's first element */
    uint64_t run;          /* elements of a run; at least 1 */
    uint32_t dims;         /* axes along which runs repeat, the innermost first */
    uint64_t extent[CR_LAYOUT_MAX_DIMS],
        stride[CR_LAYOUT_MAX_DIMS]; /* of these: how often, and how far apart in the array */
} cr_layout;

/* The block of extent[i] elements from start[i] on along each axis of an array of that shape. INVALID_ARGUMENT where it lies outside, or the
 * array has more than CR_LAYOUT_MAX_WHOLE elements. */
cr_status cr_layout_make(cr_layout *block, uint64_t dims, const uint64_t *shape, const uint64_t *start,
                         const uint64_t *extent, cr_error *error);
/* The number in the array of the block's element k. */
uint64_t cr_layout_place(const cr_layout *block, uint64_t k);
/* The coverage of the block's elements (digest.h). */
uint64_t cr_layout_cover(const cr_layout *block);

#endif
