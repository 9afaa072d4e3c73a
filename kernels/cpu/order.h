/* order: quantiles of elements that lie in memory and can be read as often as need be: of an array, of every block along an axis, and of
 * every segment by offsets.
 *
 * Thread: any. Owner: the caller owns every buffer. Data: as in fold.h. */
#ifndef CURED_KERNELS_CPU_ORDER_H
#define CURED_KERNELS_CPU_ORDER_H

#include "kernels/core/quantile.h"
#include "kernels/cpu/axis.h"

typedef struct cr_order {
    cr_dtype dtype, result; /* of the answers: a float type */
    const cr_quantile_item *items;
    uint32_t count; /* 1 … CR_QUANTILE_ITEMS */
    bool skips;     /* NaNs */
} cr_order;

/* The bits of each item's answer over n elements of a view. scratch: cr_order_scratch bytes for as many elements, aligned to 64. */
size_t cr_order_scratch(const cr_order *order, uint64_t n);
void cr_cpu_order(const cr_order *order, const cr_view *view, uint64_t n, void *scratch, uint64_t *answers);

/* As cr_cpu_axis_blocks_view, of the spec's ops that go by rank. */
size_t cr_order_blocks_scratch(const cr_axis_spec *spec);
void cr_cpu_order_blocks(const cr_axis_spec *spec, const cr_view *view, uint64_t blocks, void *scratch,
                         void *const out[]);

/* The same of count segments: segment i has the elements from begins[i] up to ends[i], and the view begins with element low. The answers
 * of segment i go to place at + i. */
size_t cr_order_segments_scratch(const cr_axis_spec *spec);
void cr_cpu_order_segments(const cr_axis_spec *spec, const cr_view *view, uint64_t low, const uint64_t *begins,
                           const uint64_t *ends, uint64_t count, void *scratch, void *const out[], uint64_t at);

#endif
