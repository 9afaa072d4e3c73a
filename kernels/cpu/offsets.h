/* offsets: the CPU's folds of segments, each of which lies whole in memory: an answer each. A segment that comes in pieces is a row in
 * pieces, with a state (axis.h: cr_columns_…, for a shape of one row).
 *
 * Every segment obeys the exact rules of partial.h: its answers' bits are those of the same op on the segment alone, and its indices
 * count from its first element.
 *
 * Thread: any; the caller owns every buffer. Data, mask and offsets: read only, any byte alignment, may be changed by another thread
 * meanwhile (then the answer is some answer, or INVALID_ARGUMENT; no access leaves the given ranges). */
#ifndef CURED_KERNELS_CPU_OFFSETS_H
#define CURED_KERNELS_CPU_OFFSETS_H

#include "kernels/cpu/axis.h"

/* What is asked of one segment of n elements: a row. */
static inline cr_axis_spec cr_offsets_row(const cr_axis_spec *spec, uint64_t n) {
    cr_axis_spec row = *spec;
    row.shape = (cr_shape){1, n, 1};
    row.offsets = (cr_offsets){.dtype = CR_DTYPE_NONE};
    return row;
}

/* Segments [first, first + count) of spec->offsets, all of which lie among elements [low, high): view begins at element low, and its mask
 * does. Answers go to out[k][0 … count). scratch: cr_offsets_scratch(spec) bytes, 64-byte aligned. */
size_t cr_offsets_scratch(const cr_axis_spec *spec);
cr_status cr_cpu_offsets_view(const cr_axis_spec *spec, const cr_view *view, uint64_t low, uint64_t high,
                              uint64_t first, uint64_t count, void *scratch, void *const out[], cr_error *error);

#endif
