/* layout: folds of a block of a larger array (kernels/core/layout.h), whose digest goes by the places of its elements.
 *
 * Thread: any. Owner: the caller owns all that is passed. */
#ifndef CURED_KERNELS_CPU_LAYOUT_H
#define CURED_KERNELS_CPU_LAYOUT_H

#include "kernels/core/layout.h"
#include "kernels/core/partial.h"

/* cr_cpu_fold of n of the block's elements, from its element `from` on: indices are the block's, which cr_share_make_block knows, and
 * digests go by places in the array, run by run. */
void cr_cpu_fold_layout(cr_partial *p, const cr_layout *block, const void *data, uint64_t n, uint64_t from);

#endif
