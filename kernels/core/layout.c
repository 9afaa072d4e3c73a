/* layout: see layout.h. Thread: any; nothing here holds state. */
#include "kernels/core/layout.h"

#include "kernels/core/digest.h"

typedef unsigned long long ull;

/* Axis i, whose neighbours lie `stride` apart in the array. */
static void add_axis(cr_layout *b, uint64_t stride, uint64_t extent) {
    const uint32_t last = b->dims - 1; /* looked at only where there is one */
    if (extent == 1) return;
    if (b->dims == 0 && stride == b->run) {
        b->run *= extent;
    } else if (b->dims != 0 && stride == b->stride[last] * b->extent[last]) {
        b->extent[last] *= extent;
    } else {
        b->stride[b->dims] = stride;
        b->extent[b->dims++] = extent;
    }
}

cr_status cr_layout_make(cr_layout *block, uint64_t dims, const uint64_t *shape, const uint64_t *start,
                         const uint64_t *extent, cr_error *error) {
    *block = (cr_layout){.whole = 1, .count = 1, .run = 1};
    if (dims > CR_LAYOUT_MAX_DIMS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: %llu axes, limit is %d", (ull)dims, CR_LAYOUT_MAX_DIMS);
    if (dims != 0 && (shape == NULL || start == NULL || extent == NULL))
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: shape, start or extent is NULL with %llu axes", (ull)dims);
    for (uint64_t i = 0; i < dims; i++) {
        if (start[i] > shape[i] || extent[i] > shape[i] - start[i])
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "layout: along axis %llu, %llu elements from %llu on lie outside the array's %llu", (ull)i,
                           (ull)extent[i], (ull)start[i], (ull)shape[i]);
        if (shape[i] == 0) block->whole = 0;
        if (extent[i] == 0) block->count = 0;
    }
    for (uint64_t i = dims; i-- > 0 && block->whole != 0;) {
        const uint64_t stride = block->whole;
        if (shape[i] > CR_LAYOUT_MAX_WHOLE / stride)
            return cr_fail(error, CR_INVALID_ARGUMENT, "layout: the array has more than 2^60 elements");
        block->whole = stride * shape[i];
        if (block->count == 0) continue;
        block->count *= extent[i];
        block->first += start[i] * stride;
        add_axis(block, stride, extent[i]);
    }
    return CR_OK;
}

uint64_t cr_layout_place(const cr_layout *block, uint64_t k) {
    uint64_t place = block->first + k % block->run;
    k /= block->run;
    for (uint32_t i = 0; i < block->dims; i++) {
        place += k % block->extent[i] * block->stride[i];
        k /= block->extent[i];
    }
    return place;
}

uint64_t cr_layout_cover(const cr_layout *block) {
    if (block->count == 0) return 0;
    uint64_t cover = cr_digest_cover(block->first, block->run);
    for (uint32_t i = 0; i < block->dims; i++)
        cover = cr_digest_mul(cover, cr_digest_series(cr_digest_power(0, block->stride[i]), block->extent[i]));
    return cover;
}
